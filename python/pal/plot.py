"""Pictures with matplotlib: regions, cells, densities with the forbidden area hatched, marginals, samples.

Regions and densities of two variables are drawn as maps. All functions draw into the axes that they are given, or into
the current ones, and return them.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from ._arrays import FloatArray, count, float64
from .density import Density
from .errors import RegionError
from .region import Region


def region(
    region: Region, ax: Axes | None = None, color: Any = "tab:blue", alpha: float = 0.4, label: str | None = None
) -> Axes:
    """Draws a region of one or two variables.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> ax = pal.plot.region(pal.Region((x >= 0) & (y >= 0) & (x + y <= 1)))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x', 'y')
    """
    ax = ax or plt.gca()
    _place(ax, region)
    if region.dimension == 1:
        for low, high in _intervals(region):
            ax.axvspan(low, high, color=color, alpha=alpha, linewidth=0, label=label)
            label = None
        return ax
    ax.add_collection(PolyCollection(_polygons(region), facecolors=color, edgecolors="face", alpha=alpha, label=label))
    return ax


def cells(region: Region, ax: Axes | None = None, cmap: str = "tab20", edge: Any = "white") -> Axes:
    """Draws the convex cells of a region of two variables, each in its colour."""
    ax = ax or plt.gca()
    _two(region)
    _place(ax, region)
    polygons = _polygons(region)
    colours = plt.get_cmap(cmap)(np.arange(len(polygons)) % plt.get_cmap(cmap).N)
    ax.add_collection(PolyCollection(polygons, facecolors=colours, edgecolors=edge, linewidths=0.8))
    return ax


def density(
    density: Density,
    ax: Axes | None = None,
    resolution: int = 200,
    cmap: str = "viridis",
    log: bool = False,
    hatch: str | None = "////",
) -> Axes:
    """Draws a density: of two variables as a map with the forbidden area hatched, of one variable as a curve.

    Args:
        resolution: the number of values per axis.
        log: whether to colour by the log-density.
        hatch: a pattern of matplotlib for what the constraint forbids; `None` leaves it blank.
    """
    ax = ax or plt.gca()
    resolution = count(resolution, "the resolution", least=2)
    area = Region(density.constraint)
    if area.dimension == 1:
        return marginal(density, density.variables[0], ax)
    _two(area)
    _place(ax, area)
    (x0, x1), (y0, y1) = _box(area)
    xs, ys = (low + (high - low) * (np.arange(resolution) + 0.5) / resolution for low, high in ((x0, x1), (y0, y1)))
    logs = density.log_prob(np.stack(np.meshgrid(xs, ys), -1))
    values = np.ma.masked_where(np.isneginf(logs), logs if log else np.exp(logs))
    if hatch is not None:
        hatched = {"facecolor": "white", "edgecolor": "0.7", "hatch": hatch, "linewidth": 0, "zorder": 0.5}
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, **hatched))
        ax.add_collection(PolyCollection(_polygons(area), facecolors="white", edgecolors="white", zorder=0.6))
    image = ax.imshow(values, extent=(x0, x1, y0, y1), origin="lower", aspect="auto", cmap=cmap, zorder=1)
    ax.figure.colorbar(image, ax=ax, label="log-density" if log else "density")
    return ax


def marginal(density: Density, variable: str, ax: Axes | None = None, **line: Any) -> Axes:
    """Draws the exact marginal density of one variable."""
    ax = ax or plt.gca()
    curve = density.marginal(variable).polyline()
    ax.plot(curve[:, 0], curve[:, 1], **line)
    ax.set_xlabel(variable)
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0)
    return ax


def marginals(density: Density, figure: Any = None) -> list[Axes]:
    """Draws the marginals of all variables side by side."""
    figure = figure or plt.gcf()
    axes = figure.subplots(1, len(density.variables), squeeze=False)[0]
    return [marginal(density, variable, ax) for variable, ax in zip(density.variables, axes)]


def samples(points: ArrayLike, ax: Axes | None = None, **dots: Any) -> Axes:
    """Draws points of two variables, one per row, as dots."""
    ax = ax or plt.gca()
    rows = float64(points, "points")
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"points of two variables are drawn, one per row; the shape is {rows.shape}")
    options = {"s": 4, "color": "black", "alpha": 0.6, "linewidths": 0, "zorder": 2, **dots}
    ax.scatter(rows[:, 0], rows[:, 1], **options)
    return ax


def _two(region: Region) -> None:
    if region.dimension != 2:
        raise ValueError(
            f"a map has two variables, and there are {region.dimension}; draw marginals, or fix the others with given()"
        )


def _box(region: Region) -> list[tuple[float, float]]:
    if region.bounding_box is None:
        raise RegionError(f"the region is {region.status}, so there is nothing to draw")
    return [(float(low), float(high)) for low, high in region.bounding_box]


def _place(ax: Axes, region: Region) -> None:
    if region.dimension not in (1, 2):
        _two(region)
    box = _box(region)
    margins = [0.03 * (high - low) for low, high in box]
    ax.set_xlim(box[0][0] - margins[0], box[0][1] + margins[0])
    ax.set_xlabel(region.variables[0])
    if region.dimension == 2:
        ax.set_ylim(box[1][0] - margins[1], box[1][1] + margins[1])
        ax.set_ylabel(region.variables[1])


def _intervals(region: Region) -> list[tuple[float, float]]:
    return [(cell.vertices.min(), cell.vertices.max()) for cell in region.cells]


def _polygons(region: Region) -> list[FloatArray]:
    """The cells as polygons, with their corners in order around them."""
    polygons = []
    for cell in region.cells:
        corners = cell.vertices
        around = corners - corners.mean(0)
        polygons.append(corners[np.argsort(np.arctan2(around[:, 1], around[:, 0]))])
    return polygons
