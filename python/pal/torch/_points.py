"""What the core knows of points, as operators that `torch.compile` can leave in its graphs."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np
import torch

from ..family import Family

_families: weakref.WeakValueDictionary[int, Family] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def register(family: Family) -> int:
    """A number by which operators find the family, as long as somebody else holds it."""
    number = next(_numbers)
    _families[number] = family
    return number


def _flat(points: torch.Tensor) -> np.ndarray:
    return points.detach().to("cpu", torch.float64).contiguous().view(-1).numpy()


def _inside(points: torch.Tensor, family: int) -> torch.Tensor:
    if points.shape[0] == 0:
        return torch.empty(0, dtype=torch.bool, device=points.device)
    flags = _families[family]._core.contains(_flat(points))
    return torch.from_numpy(flags).to(points.device)


def _features(points: torch.Tensor, family: int, width: int, orders: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    if points.shape[0] == 0:
        empty = torch.empty(0, width, dtype=torch.float64, device=points.device)
        return empty, torch.empty(0, dtype=torch.bool, device=points.device)
    values, flags = _families[family]._core.features(_flat(points), orders)
    rows = torch.from_numpy(values.reshape(-1, width)).to(points.device)
    return rows, torch.from_numpy(flags).to(points.device)


def _remember(ctx: Any, inputs: tuple[torch.Tensor, int, int, list[int]], output: Any) -> None:
    points, ctx.family, ctx.width, ctx.orders = inputs
    ctx.save_for_backward(points)


def _backward(ctx: Any, rows: torch.Tensor, flags: None) -> tuple[torch.Tensor, None, None, None]:
    (points,) = ctx.saved_tensors
    slopes = []
    for j in range(points.shape[-1]):
        # The operator again, so that it has gradients itself, up to any order.
        orders = [order + (k == j) for k, order in enumerate(ctx.orders)]
        slopes.append((rows * _OPS.features(points, ctx.family, ctx.width, orders)[0]).sum(-1))
    return torch.stack(slopes, -1), None, None, None


torch.library.define("pal::inside", "(Tensor points, int family) -> Tensor")
torch.library.impl("pal::inside", "CompositeExplicitAutograd", _inside)
torch.library.define("pal::features", "(Tensor points, int family, int width, int[] orders) -> (Tensor, Tensor)")
torch.library.impl("pal::features", "CompositeExplicitAutograd", _features)
torch.library.register_autograd("pal::features", _backward, setup_context=_remember)
_OPS = torch.ops.pal


@torch.library.register_fake("pal::inside")
def _(points: torch.Tensor, family: int) -> torch.Tensor:
    return points.new_empty(points.shape[0], dtype=torch.bool)


@torch.library.register_fake("pal::features")
def _(points: torch.Tensor, family: int, width: int, orders: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    rows = points.new_empty(points.shape[0], width, dtype=torch.float64)
    return rows, points.new_empty(points.shape[0], dtype=torch.bool)


def inside(points: torch.Tensor, family: int) -> torch.Tensor:
    """Exact membership of points, one per row."""
    # In a graph, an operator; otherwise the way through the dispatcher would take longer than the answer.
    if torch.compiler.is_compiling():
        return _OPS.inside(points.detach(), family)
    return _inside(points, family)


def features(points: torch.Tensor, family: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of points, one per row, and exact membership. They have gradients of any order with respect to the points."""
    orders = [0] * points.shape[-1]
    if points.requires_grad or torch.compiler.is_compiling():
        return _OPS.features(points, family, width, orders)
    return _features(points, family, width, orders)
