"""Enumerated sorts and integers in SMT-LIB, as categories of mixed families."""

import numpy as np
import pytest

import pal

SCRIPT = """
(declare-datatypes ((Mode 0)) (((walk) (bike) (car))))
(declare-const x Real) (declare-const mode Mode) (declare-const n Int)
(assert (and (<= 0 n 2) (<= n x 3)))
(assert (=> (= mode walk) (= n 0)))
"""


def test_a_script_makes_a_mixed_family(tmp_path):
    path = tmp_path / "trip.smt2"
    path.write_text(SCRIPT, encoding="utf-8")
    constraint = pal.read_smtlib(path)
    family = pal.HistogramMixture(constraint, bins=3, components=1)
    assert family.columns == ("x", "mode=walk", "mode=bike", "mode=car", "n=0", "n=1", "n=2")
    density = family.density(np.zeros(family.num_params))
    # Lengths 3, 2, 1 for n = 0, 1, 2, each for bike and car; on foot 3. 15 in all.
    walk = {label: p for (label,), p in density.table("mode").items()}
    stops = {label: p for (label,), p in density.table("n").items()}
    assert walk == pytest.approx({"walk": 3 / 15, "bike": 6 / 15, "car": 6 / 15})
    assert stops == pytest.approx({"0": 9 / 15, "1": 4 / 15, "2": 2 / 15})
    assert density.probability(constraint.parse("(<= x (+ n 1))")) == pytest.approx(7 / 15)
    assert density.probability(constraint.parse("(= mode walk)")) == pytest.approx(3 / 15)
    named = density.named(density.sample(20, seed=1))
    assert set(named) == {"x", "mode", "n"}
    assert np.all(named["x"] >= named["n"].astype(float))


def test_what_is_written_reads_back_as_the_same_constraint():
    constraint = pal.parse_smtlib(SCRIPT)
    text = constraint.to_smtlib()
    assert "(declare-datatype mode-value ((walk) (bike) (car)))" in text
    assert "(declare-const n Int)" in text
    again = pal.parse_smtlib(text)
    assert again.to_smtlib() == text
    assert repr(again.formula) == repr(constraint.formula)


def test_errors_name_the_place():
    with pytest.raises(ValueError, match="line 1, column 16: the integer `n` has no upper bound"):
        pal.parse_smtlib("(declare-const n Int) (assert (<= 0 n))")
    with pytest.raises(ValueError, match="the value `cons` has arguments"):
        pal.parse_smtlib("(declare-datatype List ((nil) (cons (head Real))))")
