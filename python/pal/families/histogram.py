"""Mixtures of products of step functions: histograms on the grid."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _arrays, _core
from ..formula import Constrained, Number
from ..region import Region
from .base import Family, as_region, knot_positions


class HistogramMixture(Family):
    """Mixtures of products of histograms, one per variable:

        q(y) = sum_m  w_m / Z_m  prod_j exp(theta_mj[bin_j(y)]),
        Z_m = integral of prod_j exp(theta_mj[bin_j(y)]) over the constraint

    where bin_j(y) is the bin of coordinate y_j. With one variable and one component this is the histogram that
    everybody knows, except that it stays inside the constraint: a baseline. A density is given by the sum of
    [`offset`][pal.Family.offset] and the parameters: for each component m a logit (the weights w are the softmax of the
    logits over the components with mass) and, for each variable j, one number theta per bin. Parameters of zero are
    close to the uniform density; with one component the offset is zero.

    Args:
        region: a region, or a constraint that is made into one.
        bins: the number of equally wide bins per variable, or an increasing list of their ends for each variable. By
            default the number depends on how many variables there are: `HistogramMixture.defaults(dimension).bins`.
        components: the number of mixture components.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> family = pal.HistogramMixture(x.between(0, 4) & ~x.between(1, 2), bins=2, components=1)
    >>> family.num_params
    3
    >>> density = family.density([0, 0, 0])
    >>> round(density.probability(x <= 1), 12)
    0.333333333333
    """

    kind = "histogram"
    settings_class = _core.HistogramSettings
    options = ("bins", "components")

    def __init__(
        self,
        region: Region | Constrained,
        bins: int | Sequence[int] | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
    ) -> None:
        region = as_region(region)
        self._compile(region, self._settings(region, bins, components))

    @classmethod
    def _settings(
        cls,
        region: Region,
        bins: int | Sequence[int] | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
    ) -> _core.HistogramSettings:
        default = cls.defaults(len(region._axes.variables))
        return _core.HistogramSettings(
            knot_positions(default.bins if bins is None else bins, region, "bins", ends=1),
            default.components if components is None else _arrays.count(components, "the number of components"),
        )

    @staticmethod
    def defaults(dimension: int) -> _core.HistogramSettings:
        """The settings on a region with this many variables, where nothing else is asked for."""
        return _core.HistogramSettings.default(dimension)
