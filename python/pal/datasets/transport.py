"""A simulated campus with roads: people on foot, on bikes and in cars, each where they may be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import FloatArray
from .._core import Formula
from ..formula import Constraint, all_of, any_of, implies, real
from ..mixed import Category
from ..region import Region
from .campus import _GATES, OBSTACLES, SIZE

MODES = ("walk", "bike", "car")

# Two streets along the axes, as x0, y0, x1, y1 in metres, and an avenue from the first of them to the east, which is
# where |x / 4 + y - 62| <= 2.
_STREETS = [(35, 0, 41, 60), (0, 2, 100, 8)]
_AVENUE = (0.25, 62.0, 2.0)
# The middles of the roads between their ends and crossings.
_CROSSINGS = {
    "south": (38.0, 5.0), "north": (38.0, 52.5), "west end": (1.0, 5.0), "east end": (99.0, 5.0), "north end": (38.0, 59.0),
    "avenue end": (99.0, 37.25),
}  # fmt: skip
_ROADS = {
    "west end": ("south",), "east end": ("south",), "north end": ("north",), "avenue end": ("north",),
    "south": ("west end", "east end", "north"), "north": ("south", "north end", "avenue end"),
}  # fmt: skip
_SPEEDS = {"walk": (1.4, 0.3), "bike": (2.4, 0.7), "car": (3.2, 0.9)}


class Transport(NamedTuple):
    """Who may be where, and what was observed: rows of the last two positions, and where somebody was some steps later
    by which means, in the columns `x`, `y`, `mode=walk`, `mode=bike`, `mode=car`.
    [`transport`][pal.datasets.transport] returns it.

    >>> from pal.datasets import transport
    >>> world = transport(travellers=6)
    >>> world.constraint.booleans, len(world.inputs) == len(world.targets)
    (('mode=walk', 'mode=bike', 'mode=car'), True)
    """

    constraint: Constraint
    inputs: FloatArray
    targets: FloatArray


def transport(travellers: int = 600, seed: int = 0, ahead: int = 6) -> Transport:
    """Simulated travellers on a campus of 100 by 60 metres with six obstacles and three roads: predict by which means
    somebody travels, and where, from the last two positions.

    Pedestrians keep off the roads, cars stay on them, and bikes go everywhere but into obstacles. Speeds overlap, so the
    means is not certain. All targets satisfy the constraint. The same seed gives the same rows.

    Args:
        travellers: the number of travellers that set out, a third of them by each means.
        seed: the seed of the simulation.
        ahead: the number of steps from the last known position to the target.

    Returns:
        the constraint, the inputs and the targets.

    >>> from pal.datasets import transport
    >>> constraint, inputs, targets = transport(travellers=30, seed=1)
    >>> constraint.variables, inputs.shape[1], targets.shape[1]
    (('x', 'y'), 4, 5)
    """
    x, y = real("x"), real("y")
    free = all_of([~(x.between(x0, x1) & y.between(y0, y1)) for x0, y0, x1, y1 in OBSTACLES])
    free = free & x.between(0, SIZE[0]) & y.between(0, SIZE[1])
    road = _roads()
    mode = Category("mode", MODES)
    allowed = {"walk": free & ~road, "bike": free, "car": free & road}
    constraint = Constraint(free & implies(mode == "walk", ~road) & implies(mode == "car", road), variables=["x", "y"])
    random = np.random.default_rng(seed)
    inputs, targets = [], []
    places = Region(Constraint(free & ~road, variables=["x", "y"])).sample(travellers, seed=seed)
    for number, start in enumerate(places):
        means = MODES[number % len(MODES)]
        mean, spread = _SPEEDS[means]
        pace = max(0.5, random.normal(mean, spread))
        if means == "car":
            track = _drive(pace, random)
        else:
            on_foot = means == "walk"
            # Pedestrians stay on their side of every road.
            goals = places[(_sides(places) == _sides(start)).all(-1)] if on_foot else _GATES
            track = _roam(start, goals[random.integers(len(goals))], pace, on_foot, random)
        inside = Constraint(allowed[means], variables=["x", "y"]).contains(track)
        track = track if inside.all() else track[: np.argmin(inside)]
        if len(track) >= ahead + 2:
            inputs.append(np.hstack([track[1:-ahead], track[: -ahead - 1]]))
            later = track[ahead + 1 :]
            targets.append(np.hstack([later, np.tile(np.eye(len(MODES))[number % len(MODES)], (len(later), 1))]))
    return Transport(constraint, np.vstack(inputs), np.vstack(targets))


def _roads() -> Formula:
    """The formula that `x` and `y` are on a road of the campus."""
    x, y = real("x"), real("y")
    streets = any_of([x.between(x0, x1) & y.between(y0, y1) for x0, y0, x1, y1 in _STREETS])
    return streets | ((x >= 35) & (x / 4 + y - 62).between(-2, 2))


def _sides(places: FloatArray) -> np.ndarray:
    """On which side of the three roads places are."""
    slope, level, _ = _AVENUE
    east = places[..., 0] > 38
    return np.stack([east, places[..., 1] > 5, east & (slope * places[..., 0] + places[..., 1] > level)], axis=-1)


def _roam(
    start: FloatArray, goal: FloatArray, pace: float, on_foot: bool, random: np.random.Generator, steps: int = 40
) -> FloatArray:
    """Steps towards a goal, pushed away from obstacles and off course by chance; on foot also from roads."""
    rectangles = OBSTACLES + (_STREETS if on_foot else [])
    track = [start]
    for _ in range(steps):
        here = track[-1]
        ahead = goal - here
        step = pace * ahead / max(1.0, float(np.linalg.norm(ahead)))
        for x0, y0, x1, y1 in rectangles:
            step = step + _push(here - np.clip(here, (x0, y0), (x1, y1)), pace)
        if on_foot and here[0] > 35:
            slope, level, half = _AVENUE
            above = here[1] - (level - slope * here[0])
            direction = np.array([slope, 1.0]) / np.hypot(slope, 1.0) * np.sign(above)
            step = step + _push(direction * max(abs(above) - half, 0.0), pace)
        there = here + step + random.normal(scale=0.25, size=2)
        if np.linalg.norm(goal - there) < 2:
            break
        track.append(np.clip(there, (0.01, 0.01), (SIZE[0] - 0.01, SIZE[1] - 0.01)))
    return np.array(track)


def _push(away: FloatArray, pace: float) -> FloatArray:
    """A step away from something that is near."""
    distance = float(np.linalg.norm(away))
    return 1.2 * pace * (1 - distance / 4) * away / distance if 0 < distance < 4 else np.zeros(2)


def _drive(pace: float, random: np.random.Generator) -> FloatArray:
    """A way along the roads from one end to another, near their middles, from some place on it."""
    ends = [name for name in _ROADS if name.endswith("end")]
    here, goal = random.choice(ends, size=2, replace=False)
    stops = np.array([_CROSSINGS[name] for name in _way(str(here), str(goal))])
    lengths = np.linalg.norm(np.diff(stops, axis=0), axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    first = random.uniform(0, 0.7 * along[-1])
    at = first + np.cumsum(np.maximum(0.2, random.normal(pace, 0.25, size=40)))
    at = at[at < along[-1]]
    middle = np.stack([np.interp(at, along, stops[:, k]) for k in range(2)], axis=-1)
    return middle + random.normal(scale=0.25, size=(len(at), 2)) + random.uniform(-0.6, 0.6, size=2)


def _way(here: str, goal: str) -> list[str]:
    """The only way between two ends of the roads, which make a tree."""
    ways = [[here]]
    while ways[0][-1] != goal:
        way = ways.pop(0)
        ways += [[*way, name] for name in _ROADS[way[-1]] if name not in way]
    return ways[0]
