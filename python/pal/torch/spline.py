"""Mixtures of splines as a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..family import SplineMixture
from ..formula import Constrained, Number
from ..region import Region
from . import _points
from .layer import Layer, tiny


class SplineLayer(Layer):
    """Mixtures of products of squared cubic splines on a constraint:

        p(y) = sum_m  w_m / Z_m  prod_j s_mj(y_j)^2  where the constraint holds,  and 0 elsewhere

    Args:
        region: a region, or a constraint that is made into one, with 1 to 4 variables.
        knots: how many equally spaced knots per variable, or an increasing list of positions for each.
        mixtures: components.

    >>> import pal, torch
    >>> (x,) = pal.reals("x")
    >>> layer = SplineLayer(x.between(0, 2), knots=4, mixtures=3)
    >>> layer.num_params
    27
    >>> p = layer(torch.ones(27))
    >>> round(float(p.prob(x <= 1) + p.prob(x > 1)), 5), p.log_prob(torch.tensor([3.0]))
    (1.0, tensor(-inf))
    """

    _made_of = SplineMixture

    def __init__(
        self, region: Region | Constrained, knots: int | Sequence[Sequence[Number]] = 14, mixtures: int = 8
    ) -> None:
        super().__init__(SplineMixture(region, knots, mixtures))

    def _constants(self) -> dict[str, np.ndarray]:
        recipe = self._recipe
        constants = {
            f"values{j}": values.reshape(params, nodes)
            for j, (values, params, nodes) in enumerate(zip(recipe["values"], recipe["params"], recipe["nodes"]))
        }
        for j, edges in enumerate(self.family.edges):
            lengths = np.diff(edges)
            constants[f"edges{j}"] = edges
            constants[f"inner{j}"] = edges[1:-1].copy()
            # Start, length, and length over the mean one, of every bin; and where its values and derivatives are.
            constants[f"bins{j}"] = np.stack([edges[:-1], lengths, lengths * (len(lengths) / (edges[-1] - edges[0]))], -1)
            constants[f"corners{j}"] = np.array([0, 1, len(edges), len(edges) + 1])
        if self._alike:
            for name in ("inner", "bins"):
                constants[name] = np.stack([constants[f"{name}{j}"] for j in range(len(recipe["params"]))])
        # The first axis down and all others across.
        constants["normaliser"] = recipe["form"].reshape(recipe["nodes"][0], -1)
        return constants

    @property
    def _alike(self) -> bool:
        """Whether all axes have the same knots but for place and scale, so that they can be worked on together."""
        first, *others = self._recipe["values"]
        return all(np.array_equal(first, values) for values in others)

    @property
    def whole(self) -> Tensor:
        return self.normaliser

    def _splines(self, params: Tensor) -> list[Tensor]:
        """Values and derivatives at the knots per axis, scaled to size one: densities do not depend on the scale, so neither do gradients."""
        parts = params.unflatten(-1, (self._recipe["mixtures"], -1))[..., 1:].split(self._recipe["params"], dim=-1)
        return [self._scaled(theta) for theta in parts]

    @staticmethod
    def _scaled(theta: Tensor) -> Tensor:
        return theta / theta.detach().abs().amax(-1, keepdim=True).clamp_min(tiny(theta.dtype))

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        return self._contract(self._splines(params), params, form)

    def _contract(self, splines: list[Tensor], params: Tensor, form: Tensor) -> Tensor:
        # One row for each component: products of two matrices, rather than of many.
        flat = [theta.flatten(0, -2) for theta in splines]
        squares = [(theta @ getattr(self, f"values{j}").to(theta)).square() for j, theta in enumerate(flat)]
        return self._multilinear(squares, params, form)

    def _multilinear(self, squares: Sequence[Tensor], params: Tensor, form: Tensor) -> Tensor:
        shape = params.shape[:-1] + (self._recipe["mixtures"],)
        rest = squares[0] @ form.to(params)
        for square in squares[1:]:
            if rest.shape[-1] == square.shape[-1]:
                rest = (rest * square).sum(-1, keepdim=True)
            else:
                rest = torch.bmm(square.unsqueeze(-2), rest.unflatten(-1, (square.shape[-1], -1))).squeeze(-2)
        return rest.reshape(shape)

    def log_weights(self, params: Tensor) -> Tensor:
        return self._log_weights(self._splines(params), params)

    def _log_weights(self, splines: list[Tensor], params: Tensor) -> Tensor:
        return self._normalised(self._contract(splines, params, self.normaliser), params)

    def _normalised(self, integrals: Tensor, params: Tensor) -> Tensor:
        logits = params.unflatten(-1, (self._recipe["mixtures"], -1))[..., 0]
        # A component without mass takes no part in the mixture.
        empty = integrals <= tiny(params.dtype)
        logits = logits.masked_fill(empty, -1e30)
        return logits.log_softmax(-1) - integrals.masked_fill(empty, 1.0).log()

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        if params.shape[0] > 1 and "bins" in self._buffers:
            return self._log_terms_together(params, points)
        splines = self._splines(params)
        logs, inside = self._log_components(splines, params, points)
        return logs + self._log_weights(splines, params).unsqueeze(-2), inside

    def _log_components(self, splines: list[Tensor], params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        # One logarithm of a product: where a factor is far below the rounding error of its spline, it counts as zero.
        least = tiny(params.dtype) ** (1 / len(splines))
        product = None
        for j, theta in enumerate(splines):
            value = self.spline_values(j, theta, points[..., j]).abs().clamp_min(least)
            product = value if product is None else product * value
        flags = _points.inside(points.reshape(-1, points.shape[-1]), self._number)
        assert product is not None
        return 2 * product.log(), flags.reshape(points.shape[:-1])

    def _log_terms_together(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """The same with all axes in one tensor, for batches of a network: half as many operations."""
        mixtures, axes, width = self._recipe["mixtures"], len(self._recipe["params"]), self._recipe["params"][0]
        rows = params.shape[0]
        theta = self._scaled(params.unflatten(-1, (mixtures, -1))[..., 1:].unflatten(-1, (axes, width)))
        nodes = theta.reshape(-1, width) @ self.values0.to(theta)
        squares = (nodes * nodes).unflatten(0, (-1, axes)).unbind(1)
        weights = self._normalised(self._multilinear(squares, params, self.normaliser), params)
        # Rows by axes by points.
        at = points.transpose(-1, -2)
        bin = torch.searchsorted(self.inner.expand(rows, -1, -1).contiguous(), at.detach().contiguous(), right=True)
        bins = self.bins[torch.arange(axes, device=bin.device).unsqueeze(-1), bin]
        slopes = self._slopes(at, bins).to(theta.dtype)
        places = (bin.unsqueeze(-1) + self.corners0).flatten(-2)
        table = theta.permute(0, 2, 3, 1)
        knots = table.gather(2, places.unsqueeze(-1).expand(-1, -1, -1, mixtures)).unflatten(2, (-1, 4))
        values = (slopes.unsqueeze(-1) * knots).sum(-2).abs().clamp_min(tiny(theta.dtype) ** (1 / axes))
        first, *others = values.unbind(1)
        for value in others:
            first = first * value
        flags = _points.inside(points.reshape(-1, axes), self._number)
        return 2 * first.log() + weights.unsqueeze(-2), flags.reshape(points.shape[:-1])

    @staticmethod
    def _slopes(at: Tensor, bins: Tensor) -> Tensor:
        """The slopes of a spline's value with respect to its values and derivatives at both ends of a bin, along a last axis of four."""
        start, length, stretch = bins.unbind(-1)
        # Positions outside, or none at all, give numbers that nobody looks at; they must not spoil gradients.
        t = torch.nan_to_num((at - start) / length).clamp(0.0, 1.0)
        s = 1 - t
        bend = s * t * stretch
        return torch.stack((s * s * (1 + 2 * t), t * t * (1 + 2 * s), s * bend, -t * bend), -1)

    def spline_values(self, axis: int, theta: Tensor, at: Tensor) -> Tensor:
        """Splines along an axis, given by rows of values and derivatives at the knots, at positions in doubles.

        Rows by components by numbers, and rows (or one for all) by positions, make rows by positions by components.
        """
        rows, components, width = theta.shape
        bin = torch.searchsorted(getattr(self, f"inner{axis}"), at.detach().contiguous(), right=True)
        slopes = self._slopes(at, getattr(self, f"bins{axis}")[bin]).to(theta.dtype)
        places = bin.unsqueeze(-1) + getattr(self, f"corners{axis}")
        table = theta.transpose(-1, -2)
        if rows == 1:
            knots = table[0].index_select(0, places.reshape(-1)).reshape(*places.shape, components)
        else:
            index = places.flatten(-2).expand(rows, -1).unsqueeze(-1).expand(-1, -1, components)
            knots = table.gather(1, index).unflatten(1, (-1, 4))
        return (slopes.unsqueeze(-1) * knots).sum(-2)
