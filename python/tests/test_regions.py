"""Regions and integrals against closed forms and independent computations."""

import copy
import pickle
from fractions import Fraction
from math import factorial

import numpy as np
import pytest

import pal

x, y, z = pal.reals("x", "y", "z")
(a, b) = pal.booleans("a", "b")
TRIANGLE = (x >= 0) & (y >= 0) & (x + y <= 1)


def monomial_over_simplex(*exponents):
    """The integral of x^p y^q .. over the standard simplex: p! q! .. / (p + q + .. + n)!"""
    top = 1
    for e in exponents:
        top *= factorial(e)
    return Fraction(top, factorial(sum(exponents) + len(exponents)))


def test_cells_make_up_the_region():
    square = x.between(-2, 2) & y.between(-2, 2)
    region = pal.Region(square & ~TRIANGLE & ((x <= -1) | (y <= "3/2")))
    # The strip above 3/2 is left for x <= -1 only.
    want = 16 - Fraction(1, 2) - 3 * Fraction(1, 2)
    assert region.status == "bounded" and region.exact_volume == want and region.volume == float(want)
    assert sum(cell.exact_volume for cell in region.cells) == want
    assert region.bounding_box == [(-2, 2), (-2, 2)]
    corners = region.simplices
    sizes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 2
    assert corners.shape[1:] == (3, 2) and abs(sizes.sum() - float(want)) < 1e-13
    points = np.random.default_rng(0).uniform(-2.5, 2.5, (3000, 2))
    inside = np.zeros(len(points), int)
    for cell in region.cells:
        rows = np.array([[float(v) for v in a] for a, _ in cell.half_spaces])
        ends = np.array([float(b) for _, b in cell.half_spaces])
        inside += (points @ rows.T <= ends).all(1)
        assert np.allclose(cell.vertices, np.array(cell.exact_vertices, dtype=float))
    assert (inside == region.contains(points)).all()


def test_booleans_multiply_volumes():
    region = pal.Region(x.between(0, 1) & (a | b | (x <= "1/4")))
    assert region.exact_volume == 3 + Fraction(1, 4)
    values = (None, True, False)
    assert {cell.booleans for cell in region.cells} <= {(p, q) for p in values for q in values}
    with pytest.raises(pal.RegionError, match="Boolean variable `a`"):
        region.contains([[0.5]])


@pytest.mark.parametrize(
    ("formula", "status", "witness"),
    [
        (x.between(0, 1) & (y >= 0), "unbounded", {"x": 0, "y": 1}),
        ((x == 1) & (y == 2 * x), "lower-dimensional", {"x": 1, "y": 2}),
        ((x < y) & (y < x), "empty", None),
        (TRIANGLE, "bounded", None),
    ],
)
def test_status(formula, status, witness):
    region = pal.Region(formula)
    assert region.status == status
    if status == "unbounded":
        ray = region.witness
        assert ray["x"] == 0 and ray["y"] > 0
        with pytest.raises(pal.UnboundedError) as caught:
            region.exact_volume
        assert caught.value.direction == ray
    else:
        assert region.witness == witness
        assert region.exact_volume == (Fraction(1, 2) if status == "bounded" else 0)


def test_samples_are_uniform_and_inside():
    region = pal.Region(TRIANGLE & ~((x > "1/4") & (x < "1/2") & (y < "1/4")))
    samples = region.sample(40_000, seed=3)
    assert region.contains(samples).all() and (samples == region.sample(40_000, seed=3)).all()
    assert (region.sample(5) != region.sample(5)).any()
    below = pal.Region(region.constraint.formula & (y <= x))
    share = float(below.exact_volume / region.exact_volume)
    assert abs((samples[:, 1] <= samples[:, 0]).mean() - share) < 5 * (share * (1 - share) / 40_000) ** 0.5
    assert region.sample(0).shape == (0, 2)
    with pytest.raises(ValueError, match="at least 0"):
        region.sample(-1)
    with pytest.raises(ValueError, match="seed"):
        region.sample(1, seed=-1)


def test_variables_in_another_order():
    region = pal.Region(TRIANGLE & (2 * x <= 1), variables=["y", "x"])
    assert region.variables == ("y", "x") and region.bounding_box == [(0, 1), (0, Fraction(1, 2))]
    assert region.contains([[0.875, 0.125], [0.125, 0.875]]).tolist() == [True, False]
    with pytest.raises(pal.RegionError, match="`y`"):
        pal.Region(TRIANGLE, variables=["x"])
    with pytest.raises(pal.RegionError, match="twice"):
        pal.Region(TRIANGLE, variables=["x", "y", "x"])
    assert pal.Region(x.between(0, 1), variables=["x", "y"]).status == "unbounded"


def test_regions_survive_pickle_and_copies():
    region = pal.Region(TRIANGLE, variables=["y", "x"])
    again = pickle.loads(pickle.dumps(region))
    assert again.variables == ("y", "x") and again.exact_volume == region.exact_volume
    assert copy.deepcopy(region) is region and copy.copy(region) is region


def test_knots_split_cells():
    region = pal.Region(TRIANGLE).with_knots([["1/2"], []])
    assert sorted(cell.exact_volume for cell in region.cells) == [Fraction(1, 8), Fraction(3, 8)]


@pytest.mark.parametrize("exponents", [(0, 0), (2, 1), (5, 7), (12, 0)])
def test_integrals_of_monomials(exponents):
    p, q = exponents
    want = monomial_over_simplex(p, q)
    region = pal.Region(TRIANGLE)
    assert pal.integrate(region, x**p * y**q) == want
    assert pal.integrate(TRIANGLE, f"x^{p}*y^{q}") == want
    for method in (None, "gasp"):
        value, error = pal.integrate(region, x**p * y**q, exact=False, method=method)
        assert abs(value - float(want)) <= error < 1e-11


def test_moments_in_three_dimensions():
    region = pal.Region((x >= 0) & (y >= 0) & (z >= 0) & (x + y + z <= 1))
    exponents, values, errors = pal.moments(region, 5)
    assert exponents.shape == (56, 3)
    for e, value, error in zip(exponents, values, errors):
        assert abs(value - float(monomial_over_simplex(*map(int, e)))) <= error < 1e-14


def test_integrands_that_do_not_fit():
    region = pal.Region(TRIANGLE)
    with pytest.raises(pal.PolynomialError, match="`?w`?"):
        pal.integrate(region, "w^2")
    with pytest.raises(TypeError, match="polynomial"):
        pal.integrate(region, None)
    with pytest.raises(ValueError, match="exact=False"):
        pal.integrate(region, x, method="gasp")
    assert pal.integrate(region, 3) == Fraction(3, 2)
    assert pal.integrate((x == 1) & (y == 0), x + y) == 0


def test_weighted_model_integration():
    support = x.between(0, 1) & y.between(0, 1) & (a | (x <= y))
    weight = pal.ite(a, x + y, 2) * pal.ite(x <= "1/2", 1, y) + 1
    total, queries = pal.wmi(support, weight, queries=[a, x <= "1/2"])
    rule, half = np.polynomial.legendre.leggauss(8), 0.5

    def panel(low, high):
        nodes, weights = rule
        return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2

    # Over both halves of x, and above and below the diagonal, the weight is a polynomial: Gauss rules are exact.
    def area(of, low, high):
        sum_ = 0.0
        for at, w in zip(*panel(low, high)):
            for start, end in ((0.0, at), (at, 1.0)):
                ys, ws = panel(start, end)
                sum_ += w * sum(v * of(at, t, start < end == 1.0) for t, v in zip(ys, ws))
        return sum_

    with_a = lambda s, t, above: (s + t) * (1 if s <= half else t) + 1
    without = lambda s, t, above: (2 * (1 if s <= half else t) + 1) if above else 0.0
    parts = {(name, low): area(f, low, low + 0.5) for name, f in (("a", with_a), ("b", without)) for low in (0.0, 0.5)}
    assert abs(float(total) - sum(parts.values())) < 1e-12
    assert abs(float(queries[0]) - parts["a", 0.0] - parts["a", 0.5]) < 1e-12
    assert abs(float(queries[1]) - parts["a", 0.0] - parts["b", 0.0]) < 1e-12
    rounded = pal.wmi(support, weight, exact=False).total
    assert abs(rounded.value - float(total)) <= rounded.error < 1e-9


def test_weights_from_text_and_whole_problems():
    support = x.between(0, 1) & (a | (x <= "1/2"))
    assert pal.wmi(support, "(ite a x (* 2 x))", [a]) == (Fraction(3, 4), (Fraction(1, 2),))
    problem = (
        '{"domain": {"reals": {"x": ["0", "1"]}, "booleans": ["a"]}, "support": "(or a (<= x 0.5))",'
        ' "weight": "(ite a x (* 2 x))", "queries": ["a"]}'
    )
    assert pal.wmi(problem) == (Fraction(3, 4), (Fraction(1, 2),))
    with pytest.raises(ValueError, match="own weight"):
        pal.wmi(problem, x)
    with pytest.raises(pal.ParseError):
        pal.wmi('{"domain": 3}')
    with pytest.raises(pal.ParseError, match="column"):
        pal.wmi(support, "(ite a x")
    with pytest.raises(TypeError, match="wmi"):
        pal.integrate(support, pal.ite(a, x, 1))
    with pytest.raises(pal.UnboundedError):
        pal.wmi(x >= 0, x)
    assert pal.wmi(x.between(0, 1), x, queries=[b]) == (1, (Fraction(1, 2),))
