"""Integrals along lines, for kinds of families whose components are products of functions of one variable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def gauss_rule(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss rule on [0, 1] that is exact up to a degree."""
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
    return (nodes + 1) / 2, weights / 2


class ProductLines:
    """Integrals of a mixture of products along lines of the last coordinate, by the antiderivative of its last factor.

    Args:
        weights: the factors of the components; rows by components.
        knots: the knots of the last axis, between which its factors are polynomials.
        degree: the degree of these polynomials.
        factor: the factors of all components along an axis at positions (rows, or one for all, by positions): rows by
            positions by components.
        axes: the number of axes.
    """

    def __init__(
        self, weights: Tensor, knots: Tensor, degree: int, factor: Callable[[int, Tensor], Tensor], axes: int
    ) -> None:
        self.weights, self.knots, self.factor, self.last = weights.unsqueeze(-2), knots, factor, axes - 1
        self.nodes, self.node_weights = (weights.new_tensor(part) for part in gauss_rule(degree))
        widths = knots.diff()
        at = knots[:-1, None] + widths[:, None] * self.nodes
        values = factor(self.last, at.reshape(1, -1)).unflatten(-2, at.shape)
        bins = (values * self.node_weights[:, None]).sum(-2) * widths[:, None]
        # From the first knot to every knot.
        self.cumulative = torch.nn.functional.pad(bins.cumsum(-2), (0, 0, 1, 0))

    def __call__(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        product = self._antiderivative(high) - self._antiderivative(low)
        for j in range(self.last):
            product = product * self.factor(j, before[..., j])
        return (product * self.weights).sum(-1)

    def _antiderivative(self, at: Tensor) -> Tensor:
        bin = torch.searchsorted(self.knots[1:-1].contiguous(), at.detach().contiguous(), right=True)
        start = self.knots[bin]
        length = at - start
        nodes = start.unsqueeze(-1) + length.unsqueeze(-1) * self.nodes
        values = self.factor(self.last, nodes.flatten(-2)).unflatten(-2, (-1, len(self.nodes)))
        part = (values * self.node_weights[:, None]).sum(-2) * length.unsqueeze(-1)
        rows, _, components = self.cumulative.shape
        index = bin.expand(rows, -1).unsqueeze(-1).expand(-1, -1, components)
        return self.cumulative.gather(-2, index) + part
