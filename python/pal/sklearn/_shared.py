"""What both estimators share: regions from data, checks of data, and families by name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._arrays import FloatArray, meant
from ..families import KINDS, Family
from ..formula import Constraint, all_of, as_constraint, real
from ..mixed import MixedFamily
from ..region import Region
from ._layout import Layout


def box_around(points: FloatArray, names: Sequence[str]) -> Region:
    """The box around points, a tenth wider on every side."""
    sides = []
    for name, low, high in zip(names, points.min(0), points.max(0)):
        margin = Fraction(float(high - low)) / 10 if high > low else Fraction(1)
        sides.append(real(name).between(Fraction(float(low)) - margin, Fraction(float(high)) + margin))
    return Region(Constraint(all_of(sides), variables=list(names)))


def as_region(constraint: Any) -> Region:
    """The region of a formula, a constraint, or a region itself."""
    return constraint if isinstance(constraint, Region) else Region(as_constraint(constraint))


def check_inside(region: Region, family: Any, points: FloatArray, layout: Layout) -> None:
    """Refuses data that violate the constraint, and names the first such row."""
    if isinstance(family, MixedFamily):
        # The density of zeros is positive wherever the constraint holds.
        inside = np.isfinite(family.log_prob(np.zeros(family.num_params), points))
    else:
        inside = region.contains(points)
    outside = np.flatnonzero(~inside)
    if len(outside):
        row, what = outside[0], layout.what
        others = {1: "", 2: ", and so does another row"}.get(len(outside), f", and so do {len(outside) - 1} other rows")
        message = f"row {row} of {what}, {layout.shown(points[row])}, violates the constraint{others}; remove them"
        if isinstance(family, MixedFamily):
            raise ValueError(f"{message}, or widen the constraint")
        raise ValueError(
            f"{message}, widen the constraint, or move them to the nearest place inside with region.project({what}). The "
            f"columns are, in this order: {', '.join(region.variables)}"
        )


def warn_of_limit(what: str) -> None:
    """The warning of scikit-learn about a fit that was stopped by `max_iter`."""
    warnings.warn(f"{what}; a larger max_iter may fit better", ConvergenceWarning, stacklevel=4)


def chosen_kind(family: str, region: Region) -> type[Family]:
    """The kind of family of this name; for `"auto"` the first one that is possible on the region."""
    by_name = {kind.kind: kind for kind in KINDS}
    if family == "auto":
        return next(kind for kind in KINDS if (kind.max_variables or region.dimension) >= region.dimension)
    if family not in by_name:
        names = ", ".join(f'"{name}"' for name in by_name)
        raise ValueError(f'families are "auto", {names}; not {family!r}{meant(str(family), by_name)}')
    return by_name[family]


def family_settings(estimator: Any, kind: type[Family]) -> dict[str, Any]:
    """The settings of an estimator that were given and that the kind has. Others are an error, unless it was chosen
    automatically."""
    settings = {name: getattr(estimator, name) for name in ("knots", "bins", "degree", "components")}
    given = {name: value for name, value in settings.items() if value is not None}
    foreign = [name for name in given if name not in kind.options]
    if foreign and estimator.family != "auto":
        raise ValueError(f'the family "{kind.kind}" has no {foreign[0]}; it has {", ".join(kind.options)}')
    return {name: value for name, value in given.items() if name not in foreign}
