"""Pathwise gradients of samples, by implicit differentiation of the inverse transform.

A sample y of a density on a convex set is where the conditional distribution functions take given values, F_k(y_1 .. y_k; params) = u_k. When the
parameters change, y moves so that they keep these values:

    sum_(j <= k) dF_k/dy_j dy_j  =  - dF_k/dparams dparams

The functions F_k are integrals of piecewise polynomials over slices of the set, computed here by Gauss rules that are exact for them, as
differentiable functions of both points and parameters. On a set that is not convex, a sample would have to jump across a gap as the mass on the other
side grows, and the gradient of an expectation is not the expectation of a gradient any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..formula import Constraint
from . import _points
from ._convex import Polytope, convex

if TYPE_CHECKING:
    from .layer import Layer
    from .spline import SplineLayer
    from .sum_of_squares import SumOfSquaresLayer

# More evaluations than this, for the integrals that all samples of a density share, would fill the memory with their gradients.
_MOST = 1_000_000


class Paths:
    """What pathwise gradients need to know of a constraint, and of the polynomials on it; or why there are none."""

    def __init__(self, layer: Layer, constraint: Constraint) -> None:
        self.obstacle: str | None = None
        polytope = convex(constraint)
        if polytope is None:
            self.obstacle = "the region is not convex, so that samples would have to jump"
            return
        self.polytope: Polytope = polytope
        n = polytope.dimension
        knots, degree, growth = _polynomials(layer)
        # A line integral from one facet to another makes a polynomial in all earlier coordinates.
        self.rules = [_gauss(degree + growth * (n - 1 - k)) for k in range(n)]
        self.breaks = polytope.breaks([(at - low) / extent for at, low, extent in zip(knots, polytope.low, polytope.extent)])
        nodes = [(len(alpha) + 1) * len(x) for (alpha, _), (x, _) in zip(self.breaks, self.rules)]
        if np.prod(nodes, dtype=float) > _MOST:
            self.obstacle = f"the integrals over slices of the region would need {np.prod(nodes, dtype=float):.0e} evaluations; fewer knots need less"


def _polynomials(layer: Layer) -> tuple[list[np.ndarray], int, int]:
    """Where the density is not one polynomial, per coordinate; the degree along one; and by how much an integral along one raises that along others."""
    from .spline import SplineLayer

    if isinstance(layer, SplineLayer):
        return [edges[1:-1] for edges in layer.family.edges], 6, 7
    return [np.empty(0)] * len(layer.family.variables), 2 * layer.family.settings["degree"], 1


def _gauss(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The rule on [0, 1] that is exact up to a degree."""
    x, w = np.polynomial.legendre.leggauss(degree // 2 + 1)
    return (x + 1) / 2, w / 2


class Moving(torch.autograd.Function):
    """Samples that move with the parameters of their densities. All is left to the backward pass: who asks for no gradient pays for none."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, fixed: Tensor, layer: Layer, paths: Paths) -> Tensor:
        ctx.save_for_backward(rows, fixed)
        ctx.layer, ctx.paths = layer, paths
        return fixed.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        rows, fixed = ctx.saved_tensors
        if fixed.numel() == 0:
            return torch.zeros_like(rows), None, None, None
        # Rows by samples by coordinates.
        arrange = lambda x: x.detach().to(rows.device, torch.float64).reshape(-1, len(rows), x.shape[-1]).transpose(0, 1).contiguous()
        with torch.enable_grad():
            params, points = rows.detach().double().requires_grad_(), arrange(fixed).requires_grad_()
            values = Transform(ctx.layer, ctx.paths, params)(points)
            slopes = [torch.autograd.grad(value.sum(), points, retain_graph=True)[0] for value in values]
            # The matrix of slopes is lower triangular; its transpose is solved from the last coordinate on.
            wanted = list(arrange(gradient).unbind(-1))
            total = torch.zeros((), dtype=torch.float64, device=rows.device)
            for k in reversed(range(len(values))):
                wanted[k] = wanted[k] / slopes[k][..., k].clamp_min(1e-280)
                for j in range(k):
                    wanted[j] = wanted[j] - slopes[k][..., j] * wanted[k]
                total = total - (wanted[k] * values[k]).sum()
            (moved,) = torch.autograd.grad(total, params)
        return moved.to(rows), None, None, None


class Transform:
    """The conditional distribution functions of all coordinates.

    Positions are in the coordinates of the polytope, from 0 to 1: rows, or one for all, by positions, with earlier coordinates along a last axis.
    """

    def __init__(self, layer: Layer, paths: Paths, rows: Tensor) -> None:
        from .spline import SplineLayer

        self.n = paths.polytope.dimension
        self.low, self.extent = (rows.new_tensor(x) for x in (paths.polytope.low, paths.polytope.extent))
        self.facets = [rows.new_tensor(level) for level in paths.polytope.facets]
        self.rules = [(rows.new_tensor(x), rows.new_tensor(w)) for x, w in paths.rules]
        self.breaks = [(rows.new_tensor(alpha), rows.new_tensor(beta)) for alpha, beta in paths.breaks]
        self.lines = _SplineLines(layer, rows) if isinstance(layer, SplineLayer) else _SquareLines(layer, rows, self.rules[-1])  # type: ignore[arg-type]

    def __call__(self, points: Tensor) -> list[Tensor]:
        at = (points - self.low) / self.extent
        values = []
        for k in range(self.n):
            before, here = at[..., :k], at[..., k]
            low, high = self._ends(before)
            if k == 0 and self.n > 1:
                values.append(self._first(here))
            else:
                below = self._between(before, low, torch.minimum(here, high))
                values.append(below / self._between(before, low, high).clamp_min(1e-280))
        return values

    def _ends(self, before: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest next coordinate."""
        k = before.shape[-1]
        facets = self.facets[k]
        a, slope, b = facets[:, :k], facets[:, k], facets[:, k + 1]
        line = lambda some: (b[some] - before @ a[some].T) / slope[some]
        low, high = line(slope < 0).amax(-1), line(slope > 0).amin(-1)
        return low, torch.maximum(low, high)

    def _between(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The integral of the density over the part of a slice where the next coordinate is in an interval."""
        k = before.shape[-1]
        if k == self.n - 1:
            return self.lines(self.low[:k] + self.extent[:k] * before, *(self.low[k] + self.extent[k] * end for end in (low, high)))
        alpha, beta = self.breaks[k]
        inner = torch.minimum(torch.maximum(alpha + before @ beta.T, low.unsqueeze(-1)), high.unsqueeze(-1))
        ends = torch.cat([low.unsqueeze(-1), inner.sort(-1).values, high.unsqueeze(-1)], -1)
        return self._pieces(before, ends[..., :-1], ends[..., 1:]).sum(-1)

    def _pieces(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The same for several intervals of each slice, along a last axis, on which the integral over a line is one polynomial."""
        x, w = self.rules[before.shape[-1]]
        length = high - low
        nodes = (low.unsqueeze(-1) + length.unsqueeze(-1) * x).flatten(-2)
        here = torch.cat([before.unsqueeze(-2).expand(*nodes.shape, -1), nodes.unsqueeze(-1)], -1)
        here = here.flatten(1, 2)
        values = self._between(here, *self._ends(here))
        return (values.unflatten(-1, (*low.shape[1:], len(x))) * w).sum(-1) * length

    def _first(self, here: Tensor) -> Tensor:
        """The distribution function of the first coordinate: what lies below a break is computed once for all positions."""
        alpha, _ = self.breaks[0]
        ends = torch.cat([alpha.new_zeros(1), alpha, alpha.new_ones(1)]).clamp(0, 1)
        whole = self._pieces(ends.new_empty(1, 1, 0), ends[None, None, :-1], ends[None, None, 1:]).squeeze(1)
        steps = torch.nn.functional.pad(whole.cumsum(-1), (1, 0))
        bin = torch.searchsorted(ends[1:-1].contiguous(), here.detach().contiguous(), right=True)
        start = ends[bin]
        part = self._pieces(here.new_empty(*here.shape, 0), start.unsqueeze(-1), here.unsqueeze(-1)).squeeze(-1)
        return (steps.gather(-1, bin) + part) / steps[:, -1:]


class _SplineLines:
    """Integrals of a mixture of splines along lines of the last coordinate, by its antiderivative."""

    def __init__(self, layer: SplineLayer, rows: Tensor) -> None:
        self.layer, self.splines = layer, layer._splines(rows)
        self.weights = layer.log_weights(rows).exp().unsqueeze(-2)
        self.edges = getattr(layer, f"edges{len(self.splines) - 1}")
        self.rule = [rows.new_tensor(part) for part in _gauss(6)]
        width = self.edges.diff()
        nodes = self.edges[:-1, None] + width[:, None] * self.rule[0]
        bins = (self._squares(-1, nodes.reshape(1, -1)).unflatten(-2, nodes.shape) * self.rule[1][:, None]).sum(-2) * width[:, None]
        # From the first knot to every knot.
        self.steps = torch.nn.functional.pad(bins.cumsum(-2), (0, 0, 1, 0))

    def __call__(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        product = self._upto(high) - self._upto(low)
        for j in range(len(self.splines) - 1):
            product = product * self._squares(j, before[..., j])
        return (product * self.weights).sum(-1)

    def _squares(self, axis: int, at: Tensor) -> Tensor:
        """Squared splines at positions (rows by positions): rows by positions by components."""
        axis %= len(self.splines)
        return self.layer.spline_values(axis, self.splines[axis], at).square()

    def _upto(self, at: Tensor) -> Tensor:
        x, w = self.rule
        bin = torch.searchsorted(self.edges[1:-1].contiguous(), at.detach().contiguous(), right=True)
        start = self.edges[bin]
        length = at - start
        nodes = start.unsqueeze(-1) + length.unsqueeze(-1) * x
        part = (self._squares(-1, nodes.flatten(-2)).unflatten(-2, (-1, len(x))) * w[:, None]).sum(-2) * length.unsqueeze(-1)
        index = bin.expand(self.steps.shape[0], -1).unsqueeze(-1).expand(-1, -1, self.steps.shape[-1])
        return self.steps.gather(-2, index) + part


class _SquareLines:
    """Integrals of a sum of squares along lines of the last coordinate, by a Gauss rule."""

    def __init__(self, layer: SumOfSquaresLayer, rows: Tensor, rule: tuple[Tensor, Tensor]) -> None:
        self.layer, self.rule = layer, rule
        self.coefficients = layer._coefficients(rows).transpose(-1, -2)
        self.weights = layer.log_weights(rows).exp().unsqueeze(-2)

    def __call__(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        x, w = self.rule
        nodes = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * x
        points = torch.cat([before.unsqueeze(-2).expand(*nodes.shape, -1), nodes.unsqueeze(-1)], -1)
        size = self.coefficients.shape[-2]
        features, _ = _points.features(points.reshape(-1, points.shape[-1]), self.layer._number, size)
        values = (features.reshape(nodes.shape[0], -1, size) @ self.coefficients).square()
        density = (values * self.weights).sum(-1)
        return (density.unflatten(-1, nodes.shape[1:]) * w).sum(-1) * (high - low)
