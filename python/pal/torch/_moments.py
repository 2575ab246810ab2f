"""Probabilities and moments computed by the core, with first derivatives: for layers whose forms would be too large for
tensor operations, and for conditions on whatever else the core computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .. import _core
from ..formula import Formula

if TYPE_CHECKING:
    from .layer import Layer

# The number of conditions whose integrals a layer keeps.
_KEPT = 16


def moments(layer: Layer, rows: Tensor, condition: Formula | None, powers: Sequence[Sequence[int]]) -> Tensor:
    """The integrals of monomials in the coordinates of the box over the part of the constraint where a condition holds,
    under rows of parameters of the core in float64: rows by monomials."""
    return _Moments.apply(rows, _compiled(layer, condition, powers))


def probability(layer: Layer, rows: Tensor, condition: Formula | None) -> Tensor:
    """The probability of a condition under rows of parameters of the core in float64."""
    return moments(layer, rows, condition, [[0] * len(layer.family.variables)]).squeeze(-1)


def _compiled(layer: Layer, condition: Formula | None, powers: Sequence[Sequence[int]]) -> _core.EventMoments:
    kept = layer.__dict__.setdefault("_known_moments", {})
    key = (None if condition is None else repr(condition), tuple(map(tuple, powers)))
    if key not in kept:
        if len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        given = True if condition is None else condition
        kept[key] = _core.EventMoments(layer.family._core, given, [list(each) for each in powers])
    return kept[key]


def event(layer: Layer, condition: Formula) -> _core.Event:
    """A condition compiled on the family of a layer, kept for the next question."""
    kept = layer.__dict__.setdefault("_known_events", {})
    key = repr(condition)
    if key not in kept:
        if len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = _core.Event(layer.family._core, condition)
    return kept[key]


def flat(rows: Tensor) -> Any:
    """Rows as the core takes them."""
    return rows.detach().to("cpu", torch.float64).contiguous().view(-1).numpy()


class _Moments(torch.autograd.Function):
    """Moments whose vector-Jacobian product the core knows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, compiled: Any) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.compiled = compiled
        return torch.from_numpy(compiled.values(flat(rows))).view(len(rows), -1).to(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return torch.from_numpy(ctx.compiled.vjp(flat(rows), flat(cotangent))).view_as(rows).to(rows), None


class KnownGradient(torch.autograd.Function):
    """One number per row, whose gradient with respect to that row is known beforehand."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, values: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return values.to(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return cotangent.unsqueeze(-1) * gradient.to(cotangent), None, None
