"""Panels for mixed densities and regions: one for each assignment of Boolean variables and categories that has mass.
`pal.plot` is their door."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from ._arrays import FloatArray, count, meant
from .formula import Constraint, all_of, any_of, substitute
from .mixed import Category, MixedDensity, _Columns
from .plot import _box, _map, _place
from .plot import region as draw_region
from .region import Region

# Colours of log-densities begin this many decades below the largest.
_DECADES = 4
# Characters in a line of a title.
_WIDTH = 24
# More combinations of values than this are not even listed.
_COMBINATIONS = 4096


def densities(
    density: MixedDensity,
    names: Sequence[str],
    figure: Any,
    resolution: int,
    cmap: str,
    log: bool,
    hatch: str | None,
    aspect: Any,
    limit: int,
) -> list[Axes]:
    """Panels of a density: maps for two real variables, curves for one."""
    columns = density._columns
    if len(columns.reals) not in (1, 2):
        raise ValueError(
            f"panels have one or two real variables, and there are {len(columns.reals)}: {', '.join(columns.reals)}; fix "
            "some of them with density.given(..)"
        )
    names = _checked(columns, names)
    table = {key: p for key, p in density.table(*names).items() if p > 0}
    whole = Region(density.constraint)
    axes = _grid(len(table), limit, figure, names, "the density has mass on")
    titles = [textwrap.fill(f"{_label(names, key)}: {p:.3g}", _WIDTH) for key, p in table.items()]
    if len(columns.reals) == 1:
        for ax, key, title in zip(axes, table, titles):
            curve = density.given(dict(zip(names, key))).marginal(columns.reals[0]).polyline()
            ax.fill_between(curve[:, 0], table[key] * curve[:, 1], alpha=0.3, linewidth=0)
            ax.plot(curve[:, 0], table[key] * curve[:, 1])
            ax.set(title=title, xlabel=columns.reals[0], ylabel="density")
        low, high = _box(whole)[0]
        highest = max(ax.get_ylim()[1] for ax in axes)
        for ax in axes:
            ax.set(xlim=(low, high), ylim=(0, highest))
        return axes
    images = []
    for ax, key, title in zip(axes, table, titles):
        assignments = list(_assignments(columns, dict(zip(names, key))))
        area = _region(density.constraint, columns, dict(zip(names, key)))

        def log_prob(points: FloatArray, assignments: list[FloatArray] = assignments) -> FloatArray:
            repeated = (np.broadcast_to(a, (*points.shape[:-1], len(a))) for a in assignments)
            parts = [density.log_prob(np.concatenate([points, a], axis=-1)) for a in repeated]
            return np.logaddexp.reduce(parts, axis=0)

        images.append(_map(ax, log_prob, area, resolution, log, hatch, aspect, whole))
        ax.set_title(title)
    values = np.ma.concatenate([image.get_array().compressed() for image in images])
    scale = Normalize(max(values.min(), values.max() - _DECADES * math.log(10)) if log else 0.0, values.max())
    for image in images:
        image.set(cmap=cmap, norm=scale)
    shown = ScalarMappable(norm=scale, cmap=cmap)
    extend = "min" if log and values.min() < scale.vmin else "neither"
    axes[0].figure.colorbar(shown, ax=axes, label="log-density" if log else "density", extend=extend, fraction=0.05)
    return axes


def regions(region: Region, names: Sequence[str], figure: Any, aspect: Any, limit: int) -> list[Axes]:
    """Panels of a region: where each assignment is allowed."""
    constraint = region.constraint
    columns = _Columns(constraint.variables, constraint.booleans)
    if not constraint.booleans:
        raise ValueError("the constraint has no Boolean variables; draw region.plot()")
    names = _checked(columns, names)
    keys = list(itertools.product(*(columns.values(name) for name in names)))
    parts = {key: _region(constraint, columns, dict(zip(names, key))) for key in keys}
    parts = {key: part for key, part in parts.items() if part.surface_measure.value > 0}
    if not parts:
        raise ValueError("no assignment has mass, so there is nothing to draw")
    axes = _grid(len(parts), limit, figure, names, "the constraint allows")
    for ax, (key, part) in zip(axes, parts.items()):
        draw_region(part, ax, aspect=aspect)
        ax.set_title(textwrap.fill(_label(names, key), _WIDTH))
        # The same limits for all panels.
        _place(ax, region._axes, aspect)
    return axes


def _checked(columns: _Columns, names: Sequence[str]) -> tuple[str, ...]:
    """The variables whose values have panels, all by default, if they do not have too many values."""
    known = columns.discrete
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None:
        have = ", ".join(known) or "none"
        raise ValueError(f"there is no Boolean variable or category `{wrong}`; there are {have}{meant(wrong, known)}")
    chosen = tuple(names) or known
    number = math.prod(len(columns.values(name)) for name in chosen)
    if number > _COMBINATIONS:
        raise ValueError(f"{', '.join(chosen)} have {number} combinations of values; name some of them: {_way(known)}")
    return chosen


def _way(names: Sequence[str]) -> str:
    return f'pal.plot.panels(.., "{names[0]}")'


def _label(names: Sequence[str], key: Sequence[Any]) -> str:
    """An assignment in words: labels of categories, names of what is true, and `not` before what is false."""
    words = (value if isinstance(value, str) else name if value else f"not {name}" for name, value in zip(names, key))
    return ", ".join(words)


def _assignments(columns: _Columns, fixed: dict[str, Any]) -> Any:
    """All rows of 0 and 1 of the Boolean variables with some values fixed."""
    names = columns.discrete
    choices = [(fixed[name],) if name in fixed else columns.values(name) for name in names]
    number = math.prod(map(len, choices))
    if number > _COMBINATIONS:
        raise ValueError(f"a panel stands for {number} assignments; fix some variables with density.given(..)")
    for values in itertools.product(*choices):
        truth = _truth(columns, dict(zip(names, values)))
        yield np.array([float(truth[name]) for name in columns.booleans])


def _truth(columns: _Columns, values: dict[str, Any]) -> dict[str, bool]:
    """Truth values of Boolean variables, those of categories included."""
    return dict(columns.given(values)[1])


def _region(constraint: Constraint, columns: _Columns, values: dict[str, Any]) -> Region:
    """Where the constraint holds under some values of Boolean variables."""
    truth = _truth(columns, values)
    others = [name for name in columns.booleans if name not in truth]
    formula = substitute(constraint.formula, truth)
    for name in set(columns.categories) - set(values):
        # Of the values of a category exactly one is true.
        chosen = [Category(name, columns.categories[name]) == value for value in columns.categories[name]]
        formula = formula & any_of(chosen) & all_of([~(a & b) for a, b in itertools.combinations(chosen, 2)])
    return Region(Constraint(formula, variables=columns.reals, booleans=others))


def _grid(number: int, limit: int, figure: Any, names: Sequence[str], what: str) -> list[Axes]:
    """Axes for some panels, in rows of up to four."""
    if number > count(limit, "the limit", least=1):
        raise ValueError(
            f"{what} {number} combinations of values of {', '.join(names)}, and at most {limit} panels are drawn; name some "
            f"of these variables, as in {_way(names)}, or give a larger limit"
        )
    across = number if number <= 3 else math.ceil(number / math.ceil(number / 4))
    down = math.ceil(number / across)
    if figure is None:
        empty = plt.get_fignums() and not plt.gcf().axes
        figure = plt.gcf() if empty else plt.figure(layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax in axes[number:]:
        ax.remove()
    return list(axes[:number])


def fit_figure(axes: list[Any]) -> None:
    """Gives the figure of panels a size that suits them, and room for their titles."""
    if axes[0].figure.get_layout_engine() is None:
        axes[0].figure.set_layout_engine("constrained")
    rows, across = axes[0].get_gridspec().nrows, axes[0].get_gridspec().ncols
    (x0, x1), (y0, y1) = axes[0].get_xlim(), axes[0].get_ylim()
    ratio = (y1 - y0) / (x1 - x0) if axes[0].get_aspect() == 1 else 0.7
    axes[0].figure.set_size_inches(2.6 * across + 1.2, (1.95 * min(1.3, max(0.4, ratio)) + 1.05) * rows)
