"""The pictures and tables that notebooks show for regions and densities."""

from __future__ import annotations

import html as markup
import io
import math
from typing import Any

from .errors import Error
from .mixed import MixedDensity, _Columns

# Mixed densities and regions with more combinations of values have neither a picture nor a table.
_MOST = 12


def png(shown: Any) -> bytes | None:
    """The picture of a region or a density of one to three variables as a PNG file, in panels where there are Boolean
    variables; `None` where it has none, or where matplotlib is not installed: the notebook then shows the text
    instead."""
    try:
        from matplotlib.figure import Figure

        from . import _panels, plot
    except ModuleNotFoundError:
        return None
    constraint = shown.constraint
    figure = Figure(figsize=(4.5, 3.6), layout="constrained")
    try:
        if constraint.booleans or isinstance(shown, MixedDensity):
            if not _has_panels(_Columns(constraint.variables, constraint.booleans)):
                return None
            _panels.fit_figure(plot.panels(shown, figure=figure))
        else:
            draw = plot.density if hasattr(shown, "log_prob") else plot.region
            space = {"projection": "3d"} if len(shown.variables) == 3 else {}
            draw(shown, figure.add_subplot(**space))
    except Error:
        # Such as an unbounded region.
        return None
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()


def html(density: MixedDensity) -> str | None:
    """The probabilities of all combinations of values as a table, where there is no picture and they are few."""
    columns = density._columns
    if not columns.booleans or _has_panels(columns) or _combinations(columns) > _MOST:
        return None
    head = "".join(f"<th>{markup.escape(name)}</th>" for name in [*columns.discrete, "probability"])
    rows = []
    for key, probability in density.table().items():
        values = [*(markup.escape(str(value)) for value in key), f"{probability:.4g}"]
        rows.append("<tr>" + "".join(f"<td>{value}</td>" for value in values) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _has_panels(columns: _Columns) -> bool:
    return len(columns.reals) in (1, 2) and _combinations(columns) <= _MOST


def _combinations(columns: _Columns) -> int:
    return math.prod(len(columns.values(name)) for name in columns.discrete)
