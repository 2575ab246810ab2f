"""The fused pass of the core, as an operator of PyTorch: one point per row of parameters, or of outputs of a network
that a head makes splines of.

On the CPU it takes the place of a dozen tensor operations: the core computes log-densities and their gradients with
respect to the rows at once. Second derivatives come from the tensor operations, which stay the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._points import family_of, flat

if TYPE_CHECKING:
    from ..families import Family
    from .layer import Layer


def usable(layer: Layer, rows: Tensor, points: Tensor) -> bool:
    """Whether the fused pass can take these rows: on the CPU, for points without derivatives, outside of the transforms
    of `torch.func`, which look into operations."""
    return (
        layer.family._core.has_kernel
        and rows.device.type == "cpu"
        and rows.dtype in (torch.float32, torch.float64)
        and not points.requires_grad
        and not torch._C._are_functorch_transforms_active()
    )


def log_prob(layer: Layer, rows: Tensor, points: Tensor, student_t: bool = False) -> Tensor:
    """The log-density of each point under its own row; minus infinity outside. Rows are parameters of the family, or
    outputs of a network for a Student t head."""
    with_gradient = rows.requires_grad and torch.is_grad_enabled()
    if torch.compiler.is_compiling():
        return torch.ops.pal.log_prob_rows(rows, points, layer._points.fingerprint, student_t, with_gradient)[0]
    if not with_gradient:
        return _rows(rows, points, layer.family, student_t, False)[0]
    return _LogProbRows.apply(rows, points, layer, student_t)


def log_prob_of_one(layer: Layer, rows: Tensor, points: Tensor) -> Tensor | None:
    """The log-densities of many points under one row of parameters, in float64; `None` where tensor operations have to
    compute them: for several rows, for derivatives, in a graph, and where the density vanishes inside the constraint,
    which they replace by the smallest number at hand."""
    with_gradient = rows.requires_grad and torch.is_grad_enabled()
    if len(rows) != 1 or with_gradient or torch.compiler.is_compiling() or not bool(rows.isfinite().all()):
        return None
    core = layer.family._core
    values = torch.from_numpy(core.log_prob(layer.in_float64(rows[0].detach()).contiguous().numpy(), flat(points)))
    zeros = values.isneginf()
    if bool(zeros.any()) and core.contains(flat(points.reshape(-1, points.shape[-1])[zeros])).any():
        return None
    return values


def _rows(
    rows: Tensor, points: Tensor, family: Family, student_t: bool, with_gradient: bool
) -> tuple[Tensor, Tensor]:
    core = family._core
    compute = core.log_prob_rows_f32 if rows.dtype == torch.float32 else core.log_prob_rows_f64
    values, gradient = compute(rows.detach().contiguous().view(-1).numpy(), flat(points), student_t, with_gradient)
    if gradient is None:
        return torch.from_numpy(values), rows.new_empty(0)
    return torch.from_numpy(values), torch.from_numpy(gradient).view_as(rows)


class _LogProbRows(torch.autograd.Function):
    """Log-densities of rows whose gradient is known beforehand."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, points: Tensor, layer: Layer, student_t: bool) -> Tensor:
        values, gradient = _rows(rows, points, layer.family, student_t, True)
        ctx.layer, ctx.student_t = layer, student_t
        ctx.save_for_backward(rows, points, gradient)
        return values

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None, None]:
        rows, points, gradient = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return gradient * cotangent.unsqueeze(-1), None, None, None
        # Derivatives of the gradient are asked for.
        values = ctx.layer.log_prob_paired(ctx.layer.head(rows) if ctx.student_t else rows, points)
        return torch.autograd.grad(values, rows, cotangent, create_graph=True)[0], None, None, None


torch.library.define(
    "pal::log_prob_rows",
    "(Tensor rows, Tensor points, str family, bool student_t, bool with_gradient) -> (Tensor, Tensor)",
)


@torch.library.impl("pal::log_prob_rows", "CompositeExplicitAutograd")
def _(rows: Tensor, points: Tensor, family: str, student_t: bool, with_gradient: bool) -> tuple[Tensor, Tensor]:
    return _rows(rows, points, family_of(family), student_t, with_gradient)


@torch.library.register_fake("pal::log_prob_rows")
def _(rows: Tensor, points: Tensor, family: str, student_t: bool, with_gradient: bool) -> tuple[Tensor, Tensor]:
    return rows.new_empty(rows.shape[0]), torch.empty_like(rows) if with_gradient else rows.new_empty(0)


def _setup_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, cotangent: Tensor | None, of_gradient: Tensor | None) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    if of_gradient is not None:
        raise NotImplementedError(
            "there are no second derivatives inside of a graph of torch.compile; call this part without torch.compile"
        )
    return (None if cotangent is None else gradient * cotangent.unsqueeze(-1)), None, None, None, None


torch.library.register_autograd("pal::log_prob_rows", _backward, setup_context=_setup_context)
