"""A simulated campus: walkers who go from gate to gate around buildings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import FloatArray
from ..formula import Constraint, real
from ..region import Region

# Buildings and a lawn, as x0, y0, x1, y1 in metres.
OBSTACLES = [(15, 12, 30, 28), (42, 10, 60, 20), (50, 32, 70, 42), (20, 40, 34, 50), (76, 14, 88, 30), (74, 46, 92, 54)]
SIZE = (100, 60)
_GATES = np.array([(2, 5), (2, 55), (98, 4), (97, 40), (40, 58), (66, 2)], float)

Obstacle = tuple[int, int, int, int]


class Campus(NamedTuple):
    """Where one can walk, and what was observed: rows of the last two positions, and the position some steps later.
    [`campus`][pal.datasets.campus] returns it.

    >>> from pal.datasets import campus
    >>> world = campus(walkers=5)
    >>> world.constraint.variables, len(world.inputs) == len(world.targets)
    (('x', 'y'), True)
    """

    constraint: Constraint
    inputs: FloatArray
    targets: FloatArray


def campus(walkers: int = 400, seed: int = 0, ahead: int = 12, map_seed: int | None = None) -> Campus:
    """Simulated walks on a campus of 100 by 60 metres with six obstacles: predict where a walker will be from where it
    was.

    A walker takes steps of about 1.4 metres towards one of six gates, around obstacles. The same seed gives the same
    walks. All positions satisfy the constraint.

    Args:
        walkers: the number of walkers that set out.
        seed: the seed of the walks.
        ahead: the number of steps from the last known position to the target.
        map_seed: the seed of a map whose six obstacles are drawn at random; `None` for the usual map.

    Returns:
        the constraint, the inputs and the targets.

    >>> from pal.datasets import campus
    >>> constraint, inputs, targets = campus(walkers=20, seed=1)
    >>> inputs.shape[1], targets.shape[1], bool(constraint.contains(targets).all())
    (4, 2, True)
    >>> other = campus(walkers=20, seed=1, map_seed=7)
    >>> bool(other.constraint.contains(other.targets).all()), bool(constraint.contains(other.targets).all())
    (True, False)
    """
    obstacles = OBSTACLES if map_seed is None else _obstacles(np.random.default_rng(map_seed))
    x, y = real("x"), real("y")
    formula = x.between(0, SIZE[0]) & y.between(0, SIZE[1])
    for x0, y0, x1, y1 in obstacles:
        formula = formula & ~(x.between(x0, x1) & y.between(y0, y1))
    constraint = Constraint(formula, variables=["x", "y"])
    random = np.random.default_rng(seed)
    inputs, targets = [], []
    for start in Region(constraint).sample(walkers, seed=seed):
        track = _walk(start, _GATES[random.integers(len(_GATES))], obstacles, random)
        track = track[: np.argmin(constraint.contains(track))] if not constraint.contains(track).all() else track
        if len(track) >= ahead + 2:
            inputs.append(np.hstack([track[1:-ahead], track[: -ahead - 1]]))
            targets.append(track[ahead + 1 :])
    return Campus(constraint, np.vstack(inputs), np.vstack(targets))


def _obstacles(random: np.random.Generator) -> list[Obstacle]:
    """Six rectangles in whole metres that leave the gates free; they may overlap."""
    found: list[Obstacle] = []
    while len(found) < len(OBSTACLES):
        width, height = random.integers(8, 21), random.integers(8, 17)
        x0, y0 = random.integers(4, SIZE[0] - width - 3), random.integers(4, SIZE[1] - height - 3)
        low, high = np.array([x0, y0]), np.array([x0 + width, y0 + height])
        if (np.linalg.norm(_GATES - np.clip(_GATES, low, high), axis=1) > 4).all():
            found.append((int(x0), int(y0), int(x0 + width), int(y0 + height)))
    return found


def _walk(
    start: FloatArray, goal: FloatArray, obstacles: list[Obstacle], random: np.random.Generator, steps: int = 60
) -> FloatArray:
    """Steps towards a goal, pushed away from obstacles and off course by chance."""
    track = [start]
    for _ in range(steps):
        here = track[-1]
        ahead = goal - here
        step = 1.4 * ahead / max(1.0, float(np.linalg.norm(ahead)))
        for x0, y0, x1, y1 in obstacles:
            away = here - np.clip(here, (x0, y0), (x1, y1))
            distance = np.linalg.norm(away)
            if 0 < distance < 4:
                step = step + 1.5 * (1 - distance / 4) * away / distance
        there = here + step + random.normal(scale=0.25, size=2)
        if np.linalg.norm(goal - there) < 2:
            break
        track.append(np.clip(there, (0.01, 0.01), (SIZE[0] - 0.01, SIZE[1] - 0.01)))
    return np.array(track)
