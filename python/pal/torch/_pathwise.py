"""Pathwise derivatives of samples, by implicit differentiation of the inverse transform.

A sample y of a density on a convex set is where the conditional distribution functions take given values,
F_k(y_1 .. y_k; params) = u_k (PAL paper, "Sampling with GASP!"). When the parameters change, y moves so that they keep
these values:

    sum_(j <= k) dF_k/dy_j dy_j  =  - dF_k/dparams dparams

The functions F_k are integrals of piecewise polynomials over slices of the set, computed here by Gauss rules that are
exact for them, as differentiable functions of both points and parameters. On a set that is not convex, a sample would
have to jump across a gap as the mass on the other side grows, and the gradient of an expectation is no longer the
expectation of a gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..formula import Constraint
from ..region import Region
from ._lines import gauss_rule

if TYPE_CHECKING:
    from .layer import Layer

#: How many bytes the backward pass of samples may take, unless another limit is given: one gibibyte.
MEMORY = 2**30

# What derivatives take besides the tensors that are kept for them: gradients of these, and temporary ones.
_OVERHEAD = 2.0
# The number of lines on which the memory for a line is measured.
_PROBE = 64


class Paths:
    """The geometry that pathwise derivatives need, and the Gauss rules for the polynomials on it; or why there are
    none."""

    def __init__(self, layer: Layer, constraint: Constraint) -> None:
        self.obstacle: str | None = layer.path_obstacle
        if self.obstacle is not None:
            return
        polytope = Region(constraint)._core.convex()
        if polytope is None:
            self.obstacle = "the region is not convex, so that samples would have to jump"
            return
        # Coordinates from 0 to 1 over the box around the region: y = low + extent * t.
        self.low, self.extent = polytope.low, polytope.extent
        self.dimension = n = len(self.low)
        # For every k the facets of the projection on the first k + 1 coordinates, as rows (a, b) of a . t <= b.
        self.facets = [rows.reshape(-1, k + 2) for k, rows in enumerate(polytope.projections)]
        # For every k but the last, where the integral over later coordinates changes from one polynomial to another:
        # rows (c, d) of t_k = c + d . (t_1 .. t_(k-1)).
        self.breakpoints = [
            rows.reshape(-1, k + 1) for k, rows in enumerate(polytope.breakpoints(layer.family._core))
        ]
        # A line integral from one facet to another makes a polynomial in all earlier coordinates.
        self.rules = [gauss_rule(layer.degree + layer.degree_growth * (n - 1 - k)) for k in range(n)]
        # Integrals along lines, for each density and for each sample: a slice at coordinate k has so many nodes for its
        # next coordinate, each a slice itself.
        nodes = [float((len(breaks) + 1) * len(x)) for breaks, (x, _) in zip(self.breakpoints, self.rules)]
        below = [float(np.prod(nodes[k : n - 1])) for k in range(n)]
        self.lines_per_density = below[0] if n > 1 else 0.0
        first = len(self.rules[0][0]) * below[1] if n > 1 else 2.0
        self.lines_per_sample = first + 2 * sum(below[1:])
        self._bytes_per_line: float | None = None

    def bytes_per_line(self, layer: Layer, form: Tensor) -> float:
        """The memory that the derivatives of one integral along a line take, measured."""
        if self._bytes_per_line is None:
            kept: dict[int, int] = {}

            def count(tensor: Tensor) -> Tensor:
                storage = tensor.untyped_storage()
                kept[storage.data_ptr()] = storage.nbytes()
                return tensor

            rows = torch.zeros(1, layer.family.num_params, dtype=torch.float64, device=form.device)
            with torch.enable_grad():
                lines = layer.line_integrals(rows.requires_grad_(), form)
                at = rows.new_tensor(self.low) + rows.new_tensor(self.extent) * rows.new_full((1, _PROBE, 1), 0.5)
                before, here = at[..., :-1].clone().requires_grad_(), at[..., -1].clone().requires_grad_()
                with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
                    # The result has to live, or nothing is kept for it.
                    values = lines(before, here - 0.25 * self.extent[-1], here)
            assert values.shape[-1] == _PROBE, "one integral for each line"
            # Besides it, a line is a node on the way to it, with a weight and coordinates.
            self._bytes_per_line = sum(kept.values()) / _PROBE + 8.0 * (4 + 2 * self.dimension)
        return self._bytes_per_line

    def chunks(self, layer: Layer, form: Tensor, rows: int, samples: int, memory: float) -> tuple[int, int]:
        """How many rows, and how many samples of each, are differentiated at a time within a limit of memory.

        Results do not depend on it, except for the rounding of sums.
        """
        per_line = _OVERHEAD * self.bytes_per_line(layer, form)
        density, sample = per_line * self.lines_per_density, per_line * self.lines_per_sample
        if density + sample > memory:
            raise NotImplementedError(
                f"no pathwise derivatives: those of a single sample would need {_bytes(density + sample)} of memory, "
                f"more than the limit of {_bytes(memory)}. Raise it, as in rsample(memory={density + sample:.0f}), or "
                "use fewer knots; or use log_prob and a score-function estimate"
            )
        at_once = int(memory // (density + max(samples, 1) * sample))
        if at_once:
            return min(at_once, max(rows, 1)), max(samples, 1)
        return 1, max(1, int((memory - density) // sample))


def _bytes(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the last unit ends the loop")


class MovingSamples(torch.autograd.Function):
    """Samples that move with the parameters of their densities. All work is left to the backward pass, which does it in
    chunks of rows and samples that fit into the memory."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, fixed: Tensor, layer: Layer, paths: Paths, form: Tensor, chunks: tuple[int, int]
    ) -> Tensor:
        ctx.save_for_backward(rows, fixed)
        ctx.layer, ctx.paths, ctx.form, ctx.chunks = layer, paths, form, chunks
        return fixed.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        rows, fixed = ctx.saved_tensors
        moved = torch.zeros_like(rows, dtype=torch.float64)

        def arrange(x: Tensor) -> Tensor:
            """Rows by samples by coordinates, in float64."""
            x = x.detach().to(rows.device, torch.float64)
            return x.reshape(-1, len(rows), x.shape[-1]).transpose(0, 1).contiguous()

        if fixed.numel():
            points, adjoints = arrange(fixed), arrange(gradient)
            at_once, samples = ctx.chunks
            for row in range(0, len(rows), at_once):
                some = slice(row, row + at_once)
                for sample in range(0, points.shape[1], samples):
                    part = slice(sample, sample + samples)
                    moved[some] += _moved(ctx, rows[some], points[some, part], adjoints[some, part])
        return moved.to(rows), None, None, None, None, None


def _moved(ctx: Any, rows: Tensor, points: Tensor, adjoints: Tensor) -> Tensor:
    """How the adjoints of some samples pull at the parameters of their rows."""
    with torch.enable_grad():
        params, points = rows.detach().double().requires_grad_(), points.detach().clone().requires_grad_()
        values = Transform(ctx.layer, ctx.paths, params, ctx.form)(points)
        jacobian = [torch.autograd.grad(value.sum(), points, retain_graph=True)[0] for value in values]
        # The Jacobian is lower triangular; its transpose is solved from the last coordinate on.
        adjoint = list(adjoints.unbind(-1))
        total = torch.zeros((), dtype=torch.float64, device=rows.device)
        for k in reversed(range(len(values))):
            adjoint[k] = adjoint[k] / jacobian[k][..., k].clamp_min(1e-280)
            for j in range(k):
                adjoint[j] = adjoint[j] - jacobian[k][..., j] * adjoint[k]
            total = total - (adjoint[k] * values[k]).sum()
        (moved,) = torch.autograd.grad(total, params)
    return moved


class Transform:
    """The conditional distribution functions of all coordinates.

    Positions are in the coordinates of the polytope, from 0 to 1: rows, or one for all, by positions, with earlier
    coordinates along a last axis.
    """

    def __init__(self, layer: Layer, paths: Paths, rows: Tensor, form: Tensor) -> None:
        self.n = paths.dimension
        self.low, self.extent = rows.new_tensor(paths.low), rows.new_tensor(paths.extent)
        self.facets = [rows.new_tensor(level) for level in paths.facets]
        self.rules = [(rows.new_tensor(x), rows.new_tensor(w)) for x, w in paths.rules]
        self.breakpoints = [rows.new_tensor(level) for level in paths.breakpoints]
        self.lines = layer.line_integrals(rows, form)

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
        """The smallest and the largest next coordinate, given those before it."""
        k = before.shape[-1]
        facets = self.facets[k]
        a, along, b = facets[:, :k], facets[:, k], facets[:, k + 1]
        bound = lambda some: (b[some] - before @ a[some].T) / along[some]
        low, high = bound(along < 0).amax(-1), bound(along > 0).amin(-1)
        return low, torch.maximum(low, high)

    def _between(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The integral of the density over the part of a slice where the next coordinate is in an interval."""
        k = before.shape[-1]
        if k == self.n - 1:
            start, stop = (self.low[k] + self.extent[k] * end for end in (low, high))
            return self.lines(self.low[:k] + self.extent[:k] * before, start, stop)
        constant, coefficients = self.breakpoints[k][:, 0], self.breakpoints[k][:, 1:]
        inner = constant + before @ coefficients.T
        inner = torch.minimum(torch.maximum(inner, low.unsqueeze(-1)), high.unsqueeze(-1))
        ends = torch.cat([low.unsqueeze(-1), inner.sort(-1).values, high.unsqueeze(-1)], -1)
        return self._pieces(before, ends[..., :-1], ends[..., 1:]).sum(-1)

    def _pieces(self, before: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The integrals over several intervals of each slice, along a last axis, on which the integral over all later
        coordinates is one polynomial."""
        x, w = self.rules[before.shape[-1]]
        length = high - low
        nodes = (low.unsqueeze(-1) + length.unsqueeze(-1) * x).flatten(-2)
        here = torch.cat([before.unsqueeze(-2).expand(*nodes.shape, -1), nodes.unsqueeze(-1)], -1)
        here = here.flatten(1, 2)
        values = self._between(here, *self._ends(here))
        return (values.unflatten(-1, (*low.shape[1:], len(x))) * w).sum(-1) * length

    def _first(self, here: Tensor) -> Tensor:
        """The distribution function of the first coordinate: what lies below a breakpoint is computed once for all."""
        inner = self.breakpoints[0][:, 0]
        ends = torch.cat([inner.new_zeros(1), inner, inner.new_ones(1)]).clamp(0, 1)
        pieces = self._pieces(ends.new_empty(1, 1, 0), ends[None, None, :-1], ends[None, None, 1:]).squeeze(1)
        cumulative = torch.nn.functional.pad(pieces.cumsum(-1), (1, 0))
        bin = torch.searchsorted(ends[1:-1].contiguous(), here.detach().contiguous(), right=True)
        start = ends[bin]
        part = self._pieces(here.new_empty(*here.shape, 0), start.unsqueeze(-1), here.unsqueeze(-1)).squeeze(-1)
        return (cumulative.gather(-1, bin) + part) / cumulative[:, -1:]
