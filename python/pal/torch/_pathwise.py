"""Pathwise gradients of samples, by implicit differentiation of the inverse transform.

A sample y of a density on a convex set is where the conditional distribution functions take given values, F_k(y_1 .. y_k; params) = u_k. When the
parameters change, y moves so that they keep these values:

    sum_(j <= k) dF_k/dy_j dy_j  =  - dF_k/dparams dparams

The functions F_k are integrals of piecewise polynomials, computed here by Gauss rules that are exact for them, as differentiable functions of both
points and parameters. On a set that is not convex, a sample would have to jump across a gap as the mass on the other side grows, and the gradient of an
expectation is not the expectation of a gradient any more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..region import Region

if TYPE_CHECKING:
    from .layer import Layer
    from .spline import SplineLayer

# Exact up to degree 7, for squares of cubics; and up to degree 13, for products of these with their integrals between lines.
_SHORT = np.polynomial.legendre.leggauss(4)
_LONG = np.polynomial.legendre.leggauss(7)

Corner = tuple[Fraction, ...]


def obstacle(layer: Layer) -> str | None:
    """Why a layer has no pathwise gradients; `None` if it has."""
    return _geometry(layer)[0]


def _geometry(layer: Layer) -> tuple[str | None, list[Corner]]:
    """The reason against, or the corners of the region: two ends, or a polygon in order."""
    cached = layer.__dict__.get("_convex")
    if cached is None:
        cached = layer.__dict__["_convex"] = _examine(layer)
    return cached


def _examine(layer: Layer) -> tuple[str | None, list[Corner]]:
    from .spline import SplineLayer

    if not isinstance(layer, SplineLayer):
        return "they exist for spline layers only", []
    region = Region(layer.constraint)
    if region.dimension > 2:
        return f"they exist for one or two variables, and there are {region.dimension}", []
    corners = sorted({vertex for cell in region.cells for vertex in cell.exact_vertices})
    if region.dimension == 1:
        ends = [corners[0], corners[-1]]
        size = ends[1][0] - ends[0][0]
    else:
        ends = _hull(corners)
        size = abs(sum(_cross((Fraction(0),) * 2, p, q) for p, q in zip(ends, ends[1:] + ends[:1]))) / 2
    if size != region.exact_volume:
        return "the region is not convex, so that samples would have to jump", []
    return None, ends


def _cross(o: Corner, p: Corner, q: Corner) -> Fraction:
    return (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0])


def _hull(corners: list[Corner]) -> list[Corner]:
    """The convex hull of sorted points, counterclockwise."""

    def half(points: list[Corner]) -> list[Corner]:
        chain: list[Corner] = []
        for point in points:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain

    return half(corners)[:-1] + half(corners[::-1])[:-1]


def attach(layer: Layer, rows: Tensor, fixed: Tensor, batch: torch.Size) -> Tensor:
    """The samples with the gradients of the transform that made them."""
    n = fixed.shape[-1]
    with torch.enable_grad():
        # Rows by samples by coordinates.
        points = fixed.detach().to(rows.device, torch.float64).reshape(-1, batch.numel(), n).transpose(0, 1).contiguous()
        points.requires_grad_(True)
        transform = _Transform(layer, rows.double())  # type: ignore[arg-type]
        values = transform(points)
        slopes = []
        for k in range(n):
            (slope,) = torch.autograd.grad(values[k].sum(), points, retain_graph=True)
            slopes.append(slope.detach())
        again = transform(points.detach())
        moved: list[Tensor] = []
        for k in range(n):
            gap = again[k] - again[k].detach()
            for j in range(k):
                gap = gap + slopes[k][..., j] * moved[j]
            moved.append(-gap / slopes[k][..., k].clamp_min(1e-280))
        shift = torch.stack(moved, -1).transpose(0, 1).reshape(fixed.shape)
    return fixed + shift.to(fixed)


class _Transform:
    """The conditional distribution functions of all coordinates."""

    def __init__(self, layer: SplineLayer, rows: Tensor) -> None:
        self.layer = layer
        self.splines = layer._splines(rows)
        self.weights = layer.log_weights(rows).exp()
        self.corners = [[float(x) for x in corner] for corner in _geometry(layer)[1]]
        self.edges = [getattr(layer, f"edges{j}") for j in range(len(self.splines))]
        self.steps = [self._bins(j) for j in range(len(self.splines))]

    def __call__(self, points: Tensor) -> list[Tensor]:
        if points.shape[-1] == 1:
            low, high = (self._integral(0, points.new_tensor([[end[0]]])) for end in self.corners)
            part = self._integral(0, points[..., 0]) - low
            return [self._mix(part) / self._mix(high - low)]
        u, v = points[..., 0], points[..., 1]
        return [self._first(u), self._second(u, v)]

    def _mix(self, parts: Tensor) -> Tensor:
        return (parts * self.weights.unsqueeze(-2)).sum(-1)

    def _squares(self, axis: int, at: Tensor) -> Tensor:
        """Squared splines at positions (rows by positions): rows by positions by components."""
        return self.layer.spline_values(axis, self.splines[axis], at).square()

    def _bins(self, axis: int) -> Tensor:
        """Integrals of the squares from the first knot to every knot."""
        edges = self.edges[axis]
        x, w = (edges.new_tensor(part) for part in _SHORT)
        width = edges.diff()
        nodes = edges[:-1, None] + width[:, None] * (x + 1) / 2
        values = self._squares(axis, nodes.reshape(1, -1)).unflatten(-2, (-1, len(x)))
        bins = (values * (w / 2)[:, None]).sum(-2) * width[:, None]
        return torch.nn.functional.pad(bins.cumsum(-2), (0, 0, 1, 0))

    def _integral(self, axis: int, at: Tensor) -> Tensor:
        """Integrals of the squares from the first knot to positions."""
        edges, steps = self.edges[axis], self.steps[axis]
        x, w = (edges.new_tensor(part) for part in _SHORT)
        bin = torch.searchsorted(edges[1:-1].contiguous(), at.detach().contiguous(), right=True)
        start = edges[bin]
        length = at - start
        nodes = start.unsqueeze(-1) + length.unsqueeze(-1) * (x + 1) / 2
        values = self._squares(axis, nodes.flatten(-2)).unflatten(-2, (-1, len(x)))
        part = (values * (w / 2)[:, None]).sum(-2) * length.unsqueeze(-1)
        index = bin.expand(steps.shape[0], -1).unsqueeze(-1).expand(-1, -1, steps.shape[-1])
        return steps.gather(-2, index) + part

    def _ends(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Where the line at u enters and leaves the polygon."""
        low, high = torch.full_like(u, -torch.inf), torch.full_like(u, torch.inf)
        for (u0, v0), (u1, v1) in zip(self.corners, self.corners[1:] + self.corners[:1]):
            if u0 != u1:
                line = v0 + (u - u0) * ((v1 - v0) / (u1 - u0))
                # Counterclockwise, the interior is to the left: above edges that go right, below those that go left.
                if u1 > u0:
                    low = torch.maximum(low, line)
                else:
                    high = torch.minimum(high, line)
        return low, torch.maximum(low, high)

    def _slice(self, u: Tensor) -> Tensor:
        """The integral of the density over the line at u."""
        low, high = self._ends(u)
        return self._mix(self._squares(0, u) * (self._integral(1, high) - self._integral(1, low)))

    def _breaks(self) -> np.ndarray:
        """Where the integral over a line changes from one polynomial to another."""
        u_ends = [corner[0] for corner in self.corners]
        breaks = [u for u in self.edges[0].tolist() if min(u_ends) < u < max(u_ends)] + u_ends
        for (u0, v0), (u1, v1) in zip(self.corners, self.corners[1:] + self.corners[:1]):
            for v in self.edges[1].tolist():
                if u0 != u1 and min(v0, v1) < v < max(v0, v1):
                    breaks.append(u0 + (v - v0) * (u1 - u0) / (v1 - v0))
        return np.unique(np.clip(breaks, min(u_ends), max(u_ends)))

    def _first(self, u: Tensor) -> Tensor:
        breaks = u.new_tensor(self._breaks())
        x, w = (u.new_tensor(part) for part in _LONG)
        width = breaks.diff()
        nodes = breaks[:-1, None] + width[:, None] * (x + 1) / 2
        pieces = (self._slice(nodes.reshape(1, -1)).unflatten(-1, (-1, len(x))) * (w / 2)).sum(-1) * width
        steps = torch.nn.functional.pad(pieces.cumsum(-1), (1, 0))
        at = torch.searchsorted(breaks[1:-1].contiguous(), u.detach().contiguous(), right=True)
        length = u - breaks[at]
        inner = breaks[at].unsqueeze(-1) + length.unsqueeze(-1) * (x + 1) / 2
        part = (self._slice(inner.flatten(-2)).unflatten(-1, (-1, len(x))) * (w / 2)).sum(-1) * length
        return (steps.gather(-1, at) + part) / steps[:, -1:]

    def _second(self, u: Tensor, v: Tensor) -> Tensor:
        low, high = self._ends(u)
        first = self._squares(0, u)
        below = self._mix(first * (self._integral(1, v) - self._integral(1, low)))
        return below / self._mix(first * (self._integral(1, high) - self._integral(1, low))).clamp_min(1e-280)
