"""Mixtures of products of squared cubic splines (PAL paper, appendix "Polynomial splines")."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _arrays, _core
from ..formula import Constrained, Number
from ..region import Region
from .base import Family, as_region, knot_positions


class SplineMixture(Family):
    """Mixtures of products of squared cubic splines, for 1 to 4 variables:

        q(y) = sum_m  w_m / Z_m  prod_j s_mj(y_j)^2,        Z_m = integral of prod_j s_mj(y_j)^2 over the constraint

    A density is given by theta, the sum of [`offset`][pal.Family.offset] and the parameters: for each component m a
    logit (the weights w are the softmax of the logits) and, for each variable j, the values of the spline s_mj at the
    knots and its derivatives there, in units of the mean width of a bin. Parameters of zero are close to the uniform
    density.

    Reference: "A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction", appendix "Polynomial
        splines".

    Args:
        region: a region, or a constraint that is made into one.
        knots: the number of equally spaced knots per variable, one number for all or one for each, or an increasing
            list of positions for each variable.
            By default the number depends on how many variables there are: `SplineMixture.defaults(dimension).knots`.
        components: the number of mixture components.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture((x >= 0) & (y >= 0) & (x + y <= 1), knots=5, components=3)
    >>> family.num_params
    63
    >>> density = family.density(family.random_params(seed=1))
    >>> abs(density.probability(x <= y) + density.probability(x > y) - 1) < 1e-13
    True
    """

    kind = "spline"
    settings_class = _core.SplineSettings
    options = ("knots", "components")
    max_variables = 4

    def __init__(
        self,
        region: Region | Constrained,
        knots: int | Sequence[int] | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
    ) -> None:
        region = as_region(region)
        self._compile(region, self._settings(region, knots, components))

    @classmethod
    def _settings(
        cls,
        region: Region,
        knots: int | Sequence[int] | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
    ) -> _core.SplineSettings:
        default = cls.defaults(len(region._axes.variables))
        return _core.SplineSettings(
            knot_positions(default.knots if knots is None else knots, region),
            default.components if components is None else _arrays.count(components, "the number of components"),
        )

    @staticmethod
    def defaults(dimension: int) -> _core.SplineSettings:
        """The settings on a region with this many variables, where nothing else is asked for."""
        return _core.SplineSettings.default(dimension)


