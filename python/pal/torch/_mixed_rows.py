"""The fused pass of mixed families as an operator of PyTorch: one mixed point per row of parameters.

The arguments of an operator are tensors, numbers and text. In a graph of `torch.compile`, a family is therefore named by
a fingerprint of its content, under which it is found for as long as a layer on it lives.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

import torch
from torch import Tensor

from ..mixed import MixedFamily
from ._points import flat


class NamedFamily:
    """A mixed family under the fingerprint of its content. Families of equal content share one."""

    family: MixedFamily
    fingerprint: str

    def __new__(cls, family: MixedFamily) -> NamedFamily:
        fingerprint = hashlib.sha256(bytes(family._core.write(None))).hexdigest()
        named = _named.get(fingerprint)
        if named is None:
            named = super().__new__(cls)
            named.family, named.fingerprint = family, fingerprint
            named = _named.setdefault(fingerprint, named)
        # Whoever has the family finds its name without computing it again.
        family.__dict__["_named"] = named
        return named

    def __copy__(self) -> NamedFamily:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> NamedFamily:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedFamily, (self.family,)


_named: weakref.WeakValueDictionary[str, NamedFamily] = weakref.WeakValueDictionary()


def log_prob(family: MixedFamily, rows: Tensor, points: Tensor) -> Tensor:
    """The log-density of each point under its own row of parameters; minus infinity outside."""
    with_gradient = rows.requires_grad and torch.is_grad_enabled()
    if torch.compiler.is_compiling() and "_named" in family.__dict__:
        fingerprint = family.__dict__["_named"].fingerprint
        return torch.ops.pal.mixed_log_prob_rows(rows, points, fingerprint, with_gradient)[0]
    if not with_gradient:
        return _rows(rows, points, family, False)[0]
    return _LogProbRows.apply(rows, points, family)


def _rows(rows: Tensor, points: Tensor, family: MixedFamily, with_gradient: bool) -> tuple[Tensor, Tensor]:
    core = family._core
    compute = core.log_prob_rows_f32 if rows.dtype == torch.float32 else core.log_prob_rows_f64
    values, gradient = compute(rows.detach().contiguous().view(-1).numpy(), flat(points), False, with_gradient)
    if gradient is None:
        return torch.from_numpy(values), rows.new_empty(0)
    return torch.from_numpy(values), torch.from_numpy(gradient).view_as(rows)


class _LogProbRows(torch.autograd.Function):
    """Log-densities of rows whose gradient is computed with them."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, points: Tensor, family: MixedFamily) -> Tensor:
        values, gradient = _rows(rows, points, family, True)
        ctx.save_for_backward(gradient)
        return values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * cotangent.unsqueeze(-1), None, None


torch.library.define(
    "pal::mixed_log_prob_rows",
    "(Tensor rows, Tensor points, str family, bool with_gradient) -> (Tensor, Tensor)",
)


@torch.library.impl("pal::mixed_log_prob_rows", "CompositeExplicitAutograd")
def _(rows: Tensor, points: Tensor, family: str, with_gradient: bool) -> tuple[Tensor, Tensor]:
    named = _named.get(family)
    if named is None:
        raise RuntimeError("the layer that this graph was made from is gone; keep it, or make an equal one")
    return _rows(rows, points, named.family, with_gradient)


@torch.library.register_fake("pal::mixed_log_prob_rows")
def _(rows: Tensor, points: Tensor, family: str, with_gradient: bool) -> tuple[Tensor, Tensor]:
    return rows.new_empty(rows.shape[0]), torch.empty_like(rows) if with_gradient else rows.new_empty(0)


def _setup_context(ctx: Any, inputs: Any, output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, cotangent: Tensor | None, of_gradient: Tensor | None) -> tuple[Tensor | None, ...]:
    (gradient,) = ctx.saved_tensors
    if of_gradient is not None:
        raise NotImplementedError("mixed densities have first derivatives only")
    return (None if cotangent is None else gradient * cotangent.unsqueeze(-1)), None, None, None


torch.library.register_autograd("pal::mixed_log_prob_rows", _backward, setup_context=_setup_context)
