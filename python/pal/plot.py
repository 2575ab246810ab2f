"""Pictures with matplotlib: regions, cells, densities with the forbidden area hatched, marginals, samples.

Regions and densities of two variables are drawn as maps, those of one variable as intervals and curves, those of three
as solids and dots in space. All functions draw into the axes that they are given, or into the current ones, and return
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from numpy.typing import ArrayLike

from . import _space
from ._arrays import FloatArray, count, float64
from .density import Density
from .mixed import MixedDensity
from .errors import Error, RegionError
from .region import Region

# Maps have the same scale along both axes, unless one side is this many times as long as the other.
_LONGEST = 10


def region(
    region: Region,
    ax: Axes | None = None,
    color: Any = "tab:blue",
    alpha: float = 0.4,
    label: str | None = None,
    aspect: str | float | None = None,
) -> Axes:
    """Draws a region of one, two or three variables. Where the constraint has Boolean variables, a point belongs to the
    picture if some assignment allows it; [`panels`][pal.plot.panels] shows assignments one by one.

    Args:
        region: the region.
        ax: where to draw; by default the current axes.
        color: its colour.
        alpha: how opaque it is, from 0 to 1.
        label: its name in a legend.
        aspect: `"equal"` for the same scale along both axes, `"auto"` to fill the axes. By default it is equal, unless
            one side is more than 10 times as long as the other.

    Returns:
        the axes.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> ax = pal.plot.region(pal.Region((x >= 0) & (y >= 0) & (x + y <= 1)))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x', 'y')
    """
    _check_region(region)
    region = region._axes
    if len(region.variables) == 3:
        space = _space.axes(ax)
        _space.place(space, region.variables, _box(region))
        _space.region(space, region, color, alpha, label)
        return space
    ax = ax or _axes()
    _place(ax, region, aspect)
    if len(region.variables) == 1:
        for low, high in _intervals(region):
            ax.axvspan(low, high, color=color, alpha=alpha, linewidth=0, label=label)
            label = None
        return ax
    ax.add_patch(PathPatch(_outline(region), facecolor=color, edgecolor="none", alpha=alpha, label=label))
    return ax


def cells(
    region: Region,
    ax: Axes | None = None,
    cmap: str = "tab20",
    edge: Any = "white",
    aspect: str | float | None = None,
) -> Axes:
    """Draws the convex cells of a region of two variables, each in its colour.

    Args:
        region: the region.
        ax: where to draw; by default the current axes.
        cmap: the colours, by the name of a map of matplotlib.
        edge: the colour of the edges of cells.
        aspect: as for [`region`][pal.plot.region].

    Returns:
        the axes.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> ax = pal.plot.cells(pal.Region(x.between(0, 2) & y.between(0, 2) & ((x <= 1) | (y <= 1))))
    >>> len(ax.collections[0].get_paths())
    2
    """
    _check_region(region)
    region = region._axes
    _two(region)
    ax = ax or _axes()
    _place(ax, region, aspect)
    polygons = _polygons(region)
    colours = plt.get_cmap(cmap)(np.arange(len(polygons)) % plt.get_cmap(cmap).N)
    ax.add_collection(PolyCollection(polygons, facecolors=colours, edgecolors=edge, linewidths=0.8))
    return ax


def density(
    density: Any,
    ax: Axes | None = None,
    resolution: int = 200,
    cmap: str = "viridis",
    log: bool = False,
    hatch: str | None = "////",
    aspect: str | float | None = None,
) -> Axes:
    """Draws a density: of two variables as a map with the forbidden area hatched, of one variable as a curve, of three
    as samples in space, coloured by it.

    Args:
        density: a [`Density`][pal.Density], or a distribution of `pal.torch` with a single one in its batch.
        ax: where to draw; by default the current axes.
        resolution: the number of values along the longer side.
        cmap: the colours, by the name of a map of matplotlib.
        log: whether to colour by the log-density.
        hatch: a pattern of matplotlib for what the constraint forbids; `None` leaves it blank.
        aspect: as for [`region`][pal.plot.region].

    Returns:
        the axes.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture((x >= 0) & (y >= 0) & (x + y <= 1), knots=4, components=1)
    >>> ax = pal.plot.density(family.density(family.random_params(seed=1)))
    """
    density = _one(density)
    density = density.in_free_coordinates()
    resolution = count(resolution, "the resolution", least=2)
    area = Region(density.constraint)
    if len(area.variables) == 1:
        return marginal(density, density.variables[0], ax)
    if len(area.variables) == 3:
        space = _space.axes(ax)
        _space.place(space, area.variables, _box(area))
        _space.density(space, density, cmap, log)
        return space
    _two(area)
    ax = ax or _axes()
    image = _map(ax, density.log_prob, area, resolution, log, hatch, aspect)
    image.set_cmap(cmap)
    ax.figure.colorbar(image, ax=ax, label="log-density" if log else "density", fraction=0.05)
    return ax


def panels(
    shown: Any,
    *names: str,
    figure: Any = None,
    resolution: int = 150,
    cmap: str = "viridis",
    log: bool = False,
    hatch: str | None = "////",
    aspect: str | float | None = None,
    limit: int = 12,
) -> list[Axes]:
    """Draws a mixed density, or the region of a constraint with Boolean variables: one panel for each assignment that
    has mass.

    A panel of a density has the joint density of the one or two real variables and the assignment, so that what is in
    it adds up to the probability in its title. All panels have the same colours and axes.

    Args:
        shown: a [`MixedDensity`][pal.MixedDensity], a distribution of [`MixedLayer`][pal.torch.MixedLayer] with a single
            one in its batch, or a [`Region`][pal.Region] of a constraint with Boolean variables.
        names: the Boolean variables and categories whose values have panels; others are summed over. By default all.
        figure: where to draw; by default the current figure if it is empty, else a new one, in a size that suits the
            panels.
        resolution: the number of values along the longer side.
        cmap: the colours, by the name of a map of matplotlib.
        log: whether to colour by the log-density, over the four decades below its largest value.
        hatch: a pattern of matplotlib for what the constraint forbids; `None` leaves it blank.
        aspect: as for [`region`][pal.plot.region].
        limit: the largest number of panels; more are an error.

    Returns:
        the axes, one for each panel.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> mode = pal.Category("mode", ["walk", "car"])
    >>> family = pal.HistogramMixture(x.between(0, 2) & y.between(0, 1) & ((mode == "walk") | (x <= 1)), bins=4, components=1)
    >>> [ax.get_title() for ax in pal.plot.panels(family.density([0.0] * family.num_params))]
    ['walk: 0.667', 'car: 0.333']
    """
    from . import _panels

    if isinstance(shown, Region):
        axes = _panels.regions(shown, names, figure, aspect, limit)
    else:
        density = _one(shown, MixedDensity)
        resolution = count(resolution, "the resolution", least=2)
        axes = _panels.densities(density, names, figure, resolution, cmap, log, hatch, aspect, limit)
    if figure is None:
        _panels.fit_figure(axes)
    return axes


def _map(
    ax: Axes,
    log_prob: Callable[[FloatArray], FloatArray],
    area: Region,
    resolution: int,
    log: bool,
    hatch: str | None,
    aspect: str | float | None,
    frame: Region | None = None,
) -> Any:
    """The picture of a density of two variables, with what is outside of its area hatched, in the box of a frame."""
    _place(ax, frame or area, aspect)
    (x0, x1), (y0, y1) = _box(frame or area)
    xs, ys = (low + (high - low) * (np.arange(resolution) + 0.5) / resolution for low, high in ((x0, x1), (y0, y1)))
    pixels = np.stack(np.meshgrid(xs, ys), -1)
    logs = _beyond_walls(log_prob, area, pixels, log_prob(pixels))
    values = np.ma.masked_where(np.isneginf(logs), logs if log else np.exp(logs))
    if hatch is not None:
        hatched: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.7", "hatch": hatch, "linewidth": 0, "zorder": 0.5}
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, **hatched))
        ax.add_patch(PathPatch(_outline(area), facecolor="white", edgecolor="none", zorder=0.6))
    image = ax.imshow(values, extent=(x0, x1, y0, y1), origin="lower", aspect=ax.get_aspect(), zorder=1)
    # The image ends where the region does, not at the next pixel.
    image.set_clip_path(_outline(area), transform=ax.transData)
    return image


def marginal(density: Any, variable: str, ax: Axes | None = None, **line: Any) -> Axes:
    """Draws the exact marginal density of one variable.

    Args:
        density: as for [`density`][pal.plot.density].
        variable: its name.
        ax: where to draw; by default the current axes.
        line: options of matplotlib's `plot`, such as `color` and `label`.

    Returns:
        the axes.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture(x.between(0, 1) & y.between(0, 1), knots=4, components=1)
    >>> ax = pal.plot.marginal(family.density(family.random_params(seed=1)), "y", color="black")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('y', 'density')
    """
    density = _one(density)
    curve = density.marginal(variable).polyline()
    ax = ax or _axes()
    ax.plot(curve[:, 0], curve[:, 1], **line)
    ax.set_xlabel(variable)
    ax.set_ylabel("density")
    ax.set_ylim(bottom=0)
    return ax


def marginals(density: Any, figure: Any = None) -> list[Axes]:
    """Draws the marginals of all variables side by side.

    Args:
        density: as for [`density`][pal.plot.density].
        figure: where to draw; by default the current figure.

    Returns:
        the axes, one for each variable.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture(x.between(0, 1) & y.between(0, 1), knots=4, components=1)
    >>> axes = pal.plot.marginals(family.density(family.random_params(seed=1)))
    >>> [ax.get_xlabel() for ax in axes]
    ['x', 'y']
    """
    density = _one(density)
    figure = figure or _figure()
    axes = figure.subplots(1, len(density.variables), squeeze=False)[0]
    return [marginal(density, variable, ax) for variable, ax in zip(density.variables, axes)]


def samples(points: ArrayLike, ax: Axes | None = None, **dots: Any) -> Axes:
    """Draws points of one to three variables, one per row, as dots; those of one variable as ticks along the axis.

    Args:
        points: an array or a tensor with the coordinates along its last axis.
        ax: where to draw; by default the current axes.
        dots: options of matplotlib's `scatter`, such as `s` for the size.

    Returns:
        the axes.

    >>> import pal, pal.plot
    >>> x, y = pal.reals("x", "y")
    >>> region = pal.Region(x.between(0, 1) & y.between(0, 1))
    >>> ax = pal.plot.samples(region.sample(100, seed=1), pal.plot.region(region))
    >>> len(ax.collections[-1].get_offsets())
    100
    """
    if hasattr(points, "detach"):
        points = points.detach().cpu()
    rows = float64(points, "points")
    if rows.ndim != 2 or rows.shape[1] not in (1, 2, 3):
        shape = " x ".join(map(str, rows.shape))
        raise ValueError(f"points of one to three variables are drawn, one per row; the shape is {shape}")
    options: dict[str, Any] = {"s": 4, "color": "black", "alpha": 0.6, "linewidths": 0, "zorder": 2, **dots}
    if rows.shape[1] == 3:
        space = _space.axes(ax)
        space.scatter(*rows.T, **options)
        return space
    ax = ax or _axes()
    if rows.shape[1] == 1:
        options = {**options, "s": 60, "marker": "|", "linewidths": 0.6, **dots}
        ax.scatter(rows[:, 0], np.zeros(len(rows)), **options)
        return ax
    ax.scatter(rows[:, 0], rows[:, 1], **options)
    return ax


def _figure() -> Any:
    """The current figure; a new one leaves room for all labels, however small it is."""
    return plt.gcf() if plt.get_fignums() else plt.figure(layout="constrained")


def _axes() -> Axes:
    return _figure().gca()


def _one(density: Any, kind: type = Density) -> Any:
    """The density to draw."""
    if isinstance(density, kind):
        return density
    if isinstance(density, MixedDensity):
        raise TypeError("a mixed density has a panel for each assignment; draw pal.plot.panels(density)")
    if hasattr(density, "densities") and hasattr(density, "batch_shape"):
        number = density.batch_shape.numel()
        if number == 1:
            return density.densities()[0]
        raise ValueError(f"one density is drawn at a time, and there are {number}; draw densities()[0], for instance")
    raise TypeError(f"a density is drawn, such as family.density(params), not {type(density).__name__}")


def _check_region(area: Any) -> None:
    if not isinstance(area, Region):
        raise TypeError(f"a region is drawn, such as pal.Region(constraint), not {type(area).__name__}")


def _two(region: Region) -> None:
    if len(region.variables) != 2:
        raise ValueError(
            f"a map has two variables, and there are {len(region.variables)}; draw marginals(density), or fix the others "
            "with density.given(..)"
        )


def _box(region: Region) -> list[tuple[float, float]]:
    if region.bounding_box is None:
        raise RegionError(f"the region is {region.status}, so there is nothing to draw")
    return [(float(low), float(high)) for low, high in region.bounding_box]


def _place(ax: Axes, region: Region, aspect: str | float | None) -> None:
    if len(region.variables) not in (1, 2):
        raise ValueError(
            f"regions of up to three variables can be drawn, and there are {len(region.variables)}: "
            f"{', '.join(region.variables)}; fix some of them with pal.substitute(formula, {{name: value}})"
        )
    box = _box(region)
    margins = [0.03 * (high - low) for low, high in box]
    ax.set_xlim(box[0][0] - margins[0], box[0][1] + margins[0])
    ax.set_xlabel(region.variables[0])
    if len(region.variables) == 2:
        ax.set_ylim(box[1][0] - margins[1], box[1][1] + margins[1])
        ax.set_ylabel(region.variables[1])
        if aspect is None:
            sides = sorted(high - low for low, high in box)
            aspect = "equal" if sides[1] <= _LONGEST * sides[0] else "auto"
        ax.set_aspect(cast(Any, aspect))


def _intervals(region: Region) -> list[tuple[float, float]]:
    """The intervals of a region of one variable; those that touch are one."""
    joined: list[tuple[float, float]] = []
    for low, high in sorted((cell.vertices.min(), cell.vertices.max()) for cell in region.cells):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _polygons(region: Region) -> list[FloatArray]:
    """The cells as polygons, with their corners in order around them."""
    polygons = []
    for cell in region.cells:
        corners = cell.vertices
        around = corners - corners.mean(0)
        polygons.append(corners[np.argsort(np.arctan2(around[:, 1], around[:, 0]))])
    return polygons


def _outline(region: Region) -> Path:
    """All cells as one path. Filled at once, and not one after the other, they leave no seams between them."""
    closed = (Path(np.vstack([corners, corners[:1]]), closed=True) for corners in _polygons(region))
    return Path.make_compound_path(*closed)


def _beyond_walls(
    log_prob: Callable[[FloatArray], FloatArray], area: Region, pixels: FloatArray, logs: FloatArray
) -> FloatArray:
    """The log-densities of pixels, continued by two pixels beyond the walls with the values of the nearest points
    inside, so that the picture can end at the wall itself."""
    outside = np.isneginf(logs)
    near = ~outside
    for _ in range(2):
        padded = np.pad(near, 1)
        shifts = [padded[i : i + near.shape[0], j : j + near.shape[1]] for i in range(3) for j in range(3)]
        near = np.any(shifts, axis=0)
    rim = outside & near
    if rim.any():
        try:
            logs = logs.copy()
            logs[rim] = log_prob(area.project(pixels[rim]))
        except Error:
            # Regions with Boolean variables, and such as are too thin: the picture ends with the pixels inside.
            pass
    return logs
