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
        components: components.

    >>> import pal, torch
    >>> (x,) = pal.reals("x")
    >>> layer = SplineLayer(x.between(0, 2), knots=4, components=3)
    >>> layer.num_params
    27
    >>> p = layer(torch.ones(27))
    >>> round(float(p.probability(x <= 1) + p.probability(x > 1)), 5), p.log_prob(torch.tensor([3.0]))
    (1.0, tensor(-inf))
    """

    _made_of = SplineMixture

    def __init__(
        self, region: Region | Constrained, knots: int | Sequence[Sequence[Number]] = 14, components: int = 8
    ) -> None:
        super().__init__(SplineMixture(region, knots, components))

    def _constants(self) -> dict[str, np.ndarray]:
        recipe = self._recipe
        constants = {
            f"values{j}": values.reshape(params, nodes)
            for j, (values, params, nodes) in enumerate(zip(recipe["values"], recipe["params"], recipe["nodes"]))
        }
        for j, (edges, rests, widths) in enumerate(zip(self.family.edges, recipe["rests"], recipe["widths"])):
            constants[f"edges{j}"] = edges
            constants[f"inner{j}"] = edges[1:-1].copy()
            # Of every bin, its start, what rounding has left of that, its width and its width over the mean; and where its values and derivatives are.
            constants[f"bins{j}"] = np.stack([edges[:-1], rests[:-1], widths, widths / widths.mean()], -1)
            constants[f"corners{j}"] = np.array([0, 1, len(edges), len(edges) + 1])
        # The first axis down and all others across.
        constants["normaliser"] = recipe["form"].reshape(recipe["nodes"][0], -1)
        return constants

    @property
    def whole(self) -> Tensor:
        return self.normaliser

    @property
    def _groups(self) -> list[tuple[int, int]]:
        """Axes that are worked on together, as the first of them and their number: all, if they have the same knots but for place and scale."""
        axes = len(self._recipe["params"])
        return [(0, axes)] if self._recipe["alike"] else [(j, 1) for j in range(axes)]

    def _split(self, params: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, rows by components; and values and derivatives at the knots for each group, rows by components by axes by numbers.

        The latter are scaled by the mean of their sizes: densities do not depend on the scale, so neither do gradients.
        """
        widths = [count * self._recipe["params"][first] for first, count in self._groups]
        logits, *parts = params.unflatten(-1, (self._recipe["components"], -1)).split([1, *widths], dim=-1)
        return logits.squeeze(-1), [self._scaled(part, count) for part, (_, count) in zip(parts, self._groups)]

    @staticmethod
    def _scaled(part: Tensor, axes: int) -> Tensor:
        theta = part.unflatten(-1, (axes, -1))
        width = theta.shape[-1]
        # Divided before they are added: the sum of finite numbers need not be finite.
        size = theta.detach().abs() @ theta.new_full((width, 1), 1 / width)
        return theta / size.clamp_min(tiny(theta.dtype))

    def _splines(self, params: Tensor) -> list[Tensor]:
        """Values and derivatives at the knots per axis, scaled; rows by components by numbers."""
        return [theta for group in self._split(params)[1] for theta in group.unbind(-2)]

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        return self._contract(self._split(params)[1], form)

    def _contract(self, groups: list[Tensor], form: Tensor) -> Tensor:
        squares: list[Tensor] = []
        for (first, count), theta in zip(self._groups, groups):
            # One row for each spline: products of two matrices, rather than of many.
            nodes = theta.flatten(0, -2) @ getattr(self, f"values{first}").to(theta)
            squares.extend((nodes * nodes).unflatten(0, (-1, count)).unbind(1))
        rest = squares[0] @ form.to(squares[0])
        for square in squares[1:]:
            if rest.shape[-1] == square.shape[-1]:
                rest = (rest * square).sum(-1, keepdim=True)
            else:
                rest = torch.bmm(square.unsqueeze(-2), rest.unflatten(-1, (square.shape[-1], -1))).squeeze(-2)
        return rest.reshape(groups[0].shape[:2])

    def log_weights(self, params: Tensor) -> Tensor:
        return self._log_weights(*self._split(params))

    def _log_weights(self, logits: Tensor, groups: list[Tensor]) -> Tensor:
        integrals = self._contract(groups, self.normaliser)
        # A component without mass takes no part in the mixture.
        empty = integrals <= tiny(logits.dtype)
        logits = logits.masked_fill(empty, -1e30)
        return logits.log_softmax(-1) - integrals.masked_fill(empty, 1.0).log()

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        logits, groups = self._split(params)
        least = self._least(params)
        product = None
        for j, theta in enumerate(theta for group in groups for theta in group.unbind(-2)):
            value = self.spline_values(j, theta, points[..., j]).abs().clamp_min(least)
            product = value if product is None else product * value
        assert product is not None
        flags = _points.inside(points.reshape(-1, points.shape[-1]), self._number)
        weights = self._log_weights(logits, groups).unsqueeze(-2)
        return torch.add(weights, product.log(), alpha=2), flags.reshape(points.shape[:-1])

    def log_terms_each(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        if points.requires_grad:
            return super().log_terms_each(params, points)
        # The core knows all about the points, and there is nothing to gather.
        logits, groups = self._split(params)
        least = self._least(params)
        widths = [group.shape[-2] * group.shape[-1] for group in groups]
        features, flags = _points.features(points, self._number, sum(widths))
        terms = self._log_weights(logits, groups)
        for group, part in zip(groups, features.to(params.dtype).split(widths, -1)):
            values = (group * part.unflatten(-1, group.shape[-2:]).unsqueeze(1)).sum(-1)
            terms = torch.add(terms, values.abs().clamp_min(least).log().sum(-1), alpha=2)
        return terms, flags

    def _least(self, params: Tensor) -> float:
        """Where a factor is far below the rounding error of its spline, it counts as zero."""
        return tiny(params.dtype) ** (1 / len(self._recipe["params"]))

    @staticmethod
    def _slopes(at: Tensor, bins: Tensor) -> Tensor:
        """The slopes of a spline's value with respect to its values and derivatives at both ends of a bin, along a last axis of four."""
        start, rest, width, stretch = bins.unbind(-1)
        # Positions outside, or none at all, give numbers that nobody looks at; they must not spoil gradients.
        t = torch.nan_to_num(((at - start) - rest) / width).clamp(0.0, 1.0)
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
