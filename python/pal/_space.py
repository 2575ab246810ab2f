"""Views of three variables: regions as solids, points and densities as dots in space. `pal.plot` is their door."""

from __future__ import annotations

from collections import defaultdict
from math import gcd
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from ._arrays import FloatArray
from .density import Density
from .region import Cell, Region

# The dots that stand for a density: enough to see its shape, few enough to turn the view.
_DOTS = 3000


def axes(ax: Axes | None) -> Any:
    """Axes with three dimensions: those given, the current ones, or new ones."""
    if ax is None:
        figure = plt.gcf() if plt.get_fignums() else plt.figure(layout="constrained")
        if not figure.axes:
            return figure.add_subplot(projection="3d")
        ax = figure.gca()
    if getattr(ax, "name", None) != "3d":
        raise ValueError(
            "three variables are drawn in axes with three dimensions: plt.figure().add_subplot(projection='3d')"
        )
    return ax


def place(ax: Any, variables: tuple[str, ...], box: list[tuple[float, float]]) -> None:
    """Sets names and limits of the axes, with the same scale along all of them unless one is much longer."""
    sides = [high - low for low, high in box]
    for axis, name, (low, high) in zip("xyz", variables, box):
        getattr(ax, f"set_{axis}label")(name)
        getattr(ax, f"set_{axis}lim")(low, high)
    ax.set_box_aspect(sides if max(sides) <= 10 * min(sides) else None)


def region(ax: Any, solid: Region, color: Any, alpha: float, label: str | None) -> None:
    """Draws the surface of a region, without the walls between its cells."""
    surface = Poly3DCollection(_surface(solid), facecolors=color, edgecolors="0.3", linewidths=0.4, alpha=alpha)
    surface.set_label(label)
    ax.add_collection3d(surface)


def density(ax: Any, shown: Density, cmap: str, log: bool) -> None:
    """Draws samples, coloured by the density."""
    points = shown.sample(_DOTS, seed=0)
    logs = shown.log_prob(points)
    dots = ax.scatter(*points.T, c=logs if log else np.exp(logs), cmap=cmap, s=4, linewidths=0)
    ax.figure.colorbar(dots, ax=ax, label="log-density" if log else "density", fraction=0.05, pad=0.12)


# A half-space `a . y <= b`, in integers without a common factor.
HalfSpace = tuple[tuple[int, ...], int]


def _surface(solid: Region) -> list[FloatArray]:
    """The faces of all cells, less what two cells share."""
    cells = [[_lowest(a, b) for a, b in cell.half_spaces] for cell in solid.cells]
    on_plane: dict[HalfSpace, list[int]] = defaultdict(list)
    for index, walls in enumerate(cells):
        for wall in walls:
            on_plane[wall].append(index)
    shown = []
    for cell, walls in zip(solid.cells, cells):
        for wall in walls:
            pieces = [_face(cell, wall)]
            opposite = (tuple(-a for a in wall[0]), -wall[1])
            for neighbour in on_plane.get(opposite, ()):
                sides = [side for side in cells[neighbour] if side != opposite]
                pieces = [rest for piece in pieces for rest in _outside(piece, sides)]
            shown += [piece for piece in pieces if len(piece) >= 3]
    return shown


def _lowest(normal: tuple[int, ...], bound: int) -> HalfSpace:
    factor = gcd(*normal, bound)
    return tuple(a // factor for a in normal), bound // factor


def _face(cell: Cell, wall: HalfSpace) -> FloatArray:
    """The corners of a cell on one of its walls, in order around the face."""
    normal, bound = wall
    on = [k for k, corner in enumerate(cell.exact_vertices) if sum(a * v for a, v in zip(normal, corner)) == bound]
    corners = cell.vertices[on]
    if len(corners) < 3:
        return corners
    around = corners - corners.mean(0)
    outwards = _unit(normal)
    along = around[0] / np.linalg.norm(around[0])
    return corners[np.argsort(np.arctan2(around @ np.cross(outwards, along), around @ along))]


def _unit(normal: tuple[int, ...]) -> FloatArray:
    direction = np.array([float(a) for a in normal])
    return direction / np.linalg.norm(direction)


def _outside(polygon: FloatArray, sides: list[HalfSpace]) -> list[FloatArray]:
    """Convex pieces of what a convex polygon has outside of an intersection of half-spaces."""
    pieces = []
    for normal, bound in sides:
        if len(polygon) < 3:
            break
        length = np.sqrt(sum(float(a) ** 2 for a in normal))
        heights = polygon @ _unit(normal) - bound / length
        # What is only just beyond a wall is a matter of rounding.
        heights[np.abs(heights) <= 1e-9 * np.abs(polygon).max()] = 0
        pieces.append(_clipped(polygon, heights))
        polygon = _clipped(polygon, -heights)
    return [piece for piece in pieces if len(piece) >= 3]


def _clipped(polygon: FloatArray, heights: FloatArray) -> FloatArray:
    """The part of a convex polygon where an affine function, given at the corners, is positive."""
    if not (heights > 0).any():
        return polygon[:0]
    kept = []
    for k, (corner, height) in enumerate(zip(polygon, heights)):
        before = heights[k - 1]
        if before * height < 0:
            kept.append(polygon[k - 1] + before / (before - height) * (corner - polygon[k - 1]))
        if height >= 0:
            kept.append(corner)
    return np.array(kept)
