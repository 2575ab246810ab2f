"""Histogram mixtures as a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..families import HistogramMixture
from ..formula import Constrained, Number
from ..region import Region
from ._lines import ProductLines
from .mixture import MixtureLayer, mixture_log_weights


class HistogramLayer(MixtureLayer):
    """Mixtures of products of histograms on a constraint:

        p(y) = sum_m  w_m / Z_m  prod_j exp(theta_mj[bin_j(y)])  where the constraint holds,  and 0 elsewhere

    with the parameters of [`HistogramMixture`][pal.HistogramMixture]. Log-densities have derivatives with respect to
    the parameters; with respect to the points they are zero, because the densities are constant on every bin. For the
    same reason `rsample` needs a single component or a single variable, and a function of the samples that does not
    jump at the ends of bins, as the log-density itself does.

    Reference: "A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction", Eq. (PAL), with piecewise
    polynomials of degree 0.

    Args:
        region: a region, or a constraint that is made into one.
        bins: the number of equally wide bins per variable, or an increasing list of their ends for each variable. By
            default the number depends on how many variables there are, as for
            [`HistogramMixture`][pal.HistogramMixture].
        components: the number of mixture components.

    >>> import pal, torch
    >>> (x,) = pal.reals("x")
    >>> layer = HistogramLayer(x.between(0, 2), bins=2, components=1)
    >>> p = layer(torch.tensor([0.0, 0.0, 3.0]))
    >>> torch.allclose(p.probability(x <= 1), torch.tensor(-3.0).sigmoid())
    True
    """

    family_class = HistogramMixture
    # A constant; its antiderivative has degree 1.
    degree = 0
    degree_growth = 1

    def __init__(
        self,
        region: Region | Constrained,
        bins: int | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
    ) -> None:
        super().__init__(HistogramMixture(region, bins, components))

    def _prepare(self) -> None:
        self._bins: list[int] = self.family.recipe.bins

    def _constants(self) -> dict[str, np.ndarray]:
        form = self.family.recipe.form.reshape(self._bins)
        constants = {}
        for j, edges in enumerate(self.family.edges):
            others = tuple(k for k in range(len(self._bins)) if k != j)
            constants[f"edges{j}"] = edges
            constants[f"inner{j}"] = edges[1:-1].copy()
            # Which bins of an axis hold a part of the constraint at all.
            constants[f"occupied{j}"] = form.sum(others) > 0
        # The first axis down and all others across.
        constants["form"] = form.reshape(self._bins[0], -1)
        return constants

    def _split(self, params: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, rows by components; and for each axis the logarithms of the weights of its bins, rows by components
        by bins.

        The largest weight of an axis is 1: densities do not depend on the scale, so neither do gradients. Bins without
        any part of the constraint have no say in that; their weights are never used.
        """
        logits, *parts = self._theta(params).split([1, *self._bins], dim=-1)
        return logits.squeeze(-1), [self._scaled(theta, getattr(self, f"occupied{j}")) for j, theta in enumerate(parts)]

    @staticmethod
    def _scaled(theta: Tensor, occupied: Tensor) -> Tensor:
        largest = theta.detach().masked_fill(~occupied, -torch.inf).amax(-1, keepdim=True)
        return (theta - largest).masked_fill(~occupied, 0.0)

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        return self._integrals(self._split(params)[1], form)

    def _integrals(self, weights: list[Tensor], form: Tensor) -> Tensor:
        factors = [theta.exp().flatten(0, 1) for theta in weights]
        return self.contract(factors, form).reshape(weights[0].shape[:2])

    def log_weights(self, params: Tensor, form: Tensor) -> Tensor:
        logits, weights = self._split(params)
        return mixture_log_weights(logits, self._integrals(weights, form))

    def log_components(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        logits, weights = self._split(params)
        # The features of a point are 1 for its bin along every axis and 0 for all others.
        features, inside = self._points.features(points.reshape(-1, points.shape[-1]), sum(self._bins))
        features = features.reshape(*points.shape[:-1], -1).to(params.dtype)
        logs = features @ torch.cat(weights, -1).transpose(-1, -2)
        logs = logs + mixture_log_weights(logits, self._integrals(weights, form)).unsqueeze(-2)
        return logs, inside.reshape(points.shape[:-1])

    def _at(self, axis: int, theta: Tensor, at: Tensor) -> Tensor:
        """The weights of all components at positions (rows, or one for all, by positions): rows by positions by
        components."""
        rows, components, _ = theta.shape
        bin = torch.searchsorted(getattr(self, f"inner{axis}"), at.detach().contiguous(), right=True)
        table = theta.transpose(-1, -2)
        if rows == 1:
            return table[0].index_select(0, bin.reshape(-1)).reshape(*bin.shape, components)
        return table.gather(1, bin.expand(rows, -1).unsqueeze(-1).expand(-1, -1, components))

    @property
    def path_obstacle(self) -> str | None:
        if self._components > 1 and len(self._bins) > 1:
            # Where the first coordinate enters another bin, the posterior weights of the components jump, and with them
            # the conditional densities of all later coordinates.
            return "conditional densities of a mixture of histograms jump at the ends of bins, and samples with them"
        return None

    def line_integrals(self, params: Tensor, form: Tensor) -> ProductLines:
        weights = [theta.exp() for theta in self._split(params)[1]]
        components = self.log_weights(params, form).exp()
        last = len(weights) - 1
        factor = lambda axis, at: self._at(axis, weights[axis], at)
        return ProductLines(components, getattr(self, f"edges{last}"), self.degree, factor, len(weights))
