"""The converter on small pickles of the published structure, and the simulated campus."""

import csv
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import pal
from pal.datasets import campus, orders, transport
from pal.datasets.campus import OBSTACLES
from pal.datasets.orders import violations


@pytest.fixture(name="folder")
def pickles(tmp_path):
    """Two scenes of 200 by 100 pixels: a square and a triangle are forbidden."""
    square = np.array([[20.0, 20.0], [60.0, 20.0], [60.0, 60.0], [20.0, 60.0]])
    triangle = np.array([[100.0, 10.0], [140.0, 10.0], [120.0, 50.0]])
    sides = (np.array([[-1.0, 0], [1, 0], [0, -1], [0, 1]]), np.array([-20.0, 60, -20, 60]))
    # Below, left and right of the triangle.
    edges = (np.array([[0, -1.0], [-2, 1], [2, 1]]), np.array([-10.0, -190, 290]))
    tracks = {3: np.array([[5.0, 5.0], [10.5, 7.25], [40.0, 40.0]]), 7: np.array([[150.0, 90.0]])}
    content = {
        "all_images": {12: np.zeros((100, 200, 3), np.uint8), 2: np.zeros((10, 10, 3), np.uint8)},
        "trajectories_dequantized": {12: tracks, 2: {}},
        "ineqs": {12: {"building": [sides], "tree": [edges]}, 2: {}},
        "polygons": {12: {"building": [square], "tree": [triangle]}, 2: {}},
    }
    for name, value in content.items():
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps(value))
    return tmp_path


def test_the_documented_command_converts_a_scene(folder):
    out = folder / "out"
    command = [sys.executable, "-m", "pal.datasets", "constrained-sdd", folder, "--scene", "12", "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = ("constraints.geojson", "constraints.smt2", "trajectories.csv")
    map_, script, table = (out / f"scene12_{name}" for name in names)
    assert done.stdout.split() == [str(map_), str(script), str(table)]
    # The picture without the square and the triangle, by both ways.
    want = Fraction(200 * 100 - 40 * 40 - 40 * 40 // 2)
    for region in (pal.Region(pal.read_geojson(map_)), pal.Region(pal.read_smtlib(script))):
        assert region.exact_volume == want and region.variables == ("x", "y")
    with table.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["trajectory_id"], row["frame"], float(row["x"]), float(row["y"]), row["inside"]) for row in rows] == [
        ("3", "0", 5.0, 5.0, "1"), ("3", "1", 10.5, 7.25, "1"),
        ("3", "2", 40.0, 40.0, "0"), ("7", "0", 150.0, 90.0, "1"),
    ]  # fmt: skip


def test_mistakes_are_named(folder):
    def run(*arguments):
        command = [sys.executable, "-m", "pal.datasets", "constrained-sdd", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True)

    done = run(folder, "--scene", "5", "-o", folder / "out")
    assert done.returncode == 2 and "no scene 5; there are 2, 12" in done.stderr
    done = run(folder / "nowhere", "--scene", "12", "-o", folder / "out")
    assert done.returncode == 2 and "does not exist" in done.stderr
    (folder / "ineqs.pkl").write_bytes(pickle.dumps({12: {"tree": [(np.zeros((3, 3)), np.zeros(3))]}}))
    done = run(folder, "--scene", "12", "-o", folder / "out")
    assert done.returncode == 2 and "obstacle 0 of class tree" in done.stderr


class Evil:
    def __reduce__(self):
        return os.system, ("exit 1",)


def test_a_pickle_that_runs_code_is_refused(folder):
    (folder / "all_images.pkl").write_bytes(pickle.dumps({12: Evil()}))
    with pytest.raises(pal.FileError, match="all_images.pkl.*system"):
        pal.datasets.convert_constrained_sdd(folder, 12, folder / "out")
    (folder / "all_images.pkl").write_bytes(b"no pickle")
    with pytest.raises(pal.FileError, match="all_images.pkl"):
        pal.datasets.convert_constrained_sdd(folder, 12, folder / "out")


def test_the_campus_is_the_same_for_the_same_seed_and_inside():
    constraint, inputs, targets = campus(walkers=30, seed=2)
    again = campus(walkers=30, seed=2)
    assert (again.inputs == inputs).all() and (again.targets == targets).all() and len(inputs) == len(targets) > 100
    assert constraint.contains(targets).all() and constraint.contains(inputs.reshape(-1, 2)).all()
    assert pal.Region(constraint).exact_volume == 6000 - (15 * 16 + 18 * 10 + 20 * 10 + 14 * 10 + 12 * 16 + 18 * 8)
    _, inputs, targets = campus(walkers=30, seed=2, ahead=1)
    # One step is a metre or two.
    assert np.linalg.norm(targets - inputs[:, :2], axis=1).max() < 5
    assert np.linalg.norm(inputs[:, :2] - inputs[:, 2:], axis=1).max() < 5


def test_travellers_keep_to_the_rules_and_seeds_repeat_them():
    constraint, inputs, targets = transport(travellers=90, seed=3)
    x, y = targets[:, 0], targets[:, 1]
    walk, bike, car = targets[:, 2:].T == 1
    assert (targets[:, 2:].sum(1) == 1).all() and min(walk.sum(), bike.sum(), car.sum()) > 100
    # The rules in plain arithmetic.
    road = ((x >= 35) & (x <= 41)) | ((y >= 2) & (y <= 8)) | ((x >= 35) & (abs(x / 4 + y - 62) <= 2))
    blocked = np.any([(x >= a) & (x <= c) & (y >= b) & (y <= d) for a, b, c, d in OBSTACLES], axis=0)
    assert not blocked.any() and road[car].all() and not road[walk].any() and 0 < road[bike].mean() < 1
    again = transport(travellers=90, seed=3)
    assert (again.inputs == inputs).all() and (again.targets == targets).all()
    family = pal.HistogramMixture(constraint, bins=1, components=1)
    assert family.columns == ("x", "y", "mode=walk", "mode=bike", "mode=car")
    assert np.isfinite(family.log_prob(np.zeros(family.num_params), targets)).all()


def test_orders_satisfy_their_rules_and_only_these():
    rules, table = orders(rows=3000, seed=2)
    assert len(table["weight"]) == 3000 and not violations(table).any()
    family = pal.HistogramMixture(rules, bins=1, components=1)
    zeros = np.zeros(family.num_params)
    assert np.isfinite(family.log_prob(zeros, table)).all()
    # Random rows: the formula and plain arithmetic agree on which of them violate the rules.
    random = np.random.default_rng(1)
    wild = {
        "weight": random.uniform(-1, 45, 5000), "price": random.uniform(0, 55, 5000), "express": random.random(5000) < 0.5,
        "insured": random.random(5000) < 0.5, "carrier": random.choice(["post", "parcel", "freight"], 5000),
    }  # fmt: skip
    assert (np.isneginf(family.log_prob(zeros, wild)) == violations(wild)).all() and 0.1 < violations(wild).mean() < 0.9
