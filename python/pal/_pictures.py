"""The pictures that notebooks show for regions and densities."""

from __future__ import annotations

import io
from typing import Any

from .errors import Error


def png(shown: Any) -> bytes | None:
    """The picture of a region or a density of one to three variables as a PNG file; `None` where it has none, or where
    matplotlib is not installed: the notebook then shows the text instead."""
    try:
        from matplotlib.figure import Figure

        from . import plot
    except ModuleNotFoundError:
        return None
    figure = Figure(figsize=(4.5, 3.6), layout="constrained")
    try:
        draw = plot.density if hasattr(shown, "log_prob") else plot.region
        space = {"projection": "3d"} if len(shown.variables) == 3 else {}
        draw(shown, figure.add_subplot(**space))
    except Error:
        # Such as an unbounded region.
        return None
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()
