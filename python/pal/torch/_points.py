"""What the core knows of points, as operators that `torch.compile` can leave in its graphs.

The arguments of an operator are tensors, numbers and text. In a graph, a family is therefore named by a fingerprint of
its content, under which the `PointOracle` of all layers on that family is found, for as long as one of them lives.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..families import Family


def common_shape(points: Tensor, batch: torch.Size) -> torch.Size:
    """The shape of log-densities: that of the points without their last axis and that of the batch, broadcast."""
    try:
        return torch.broadcast_shapes(points.shape[:-1], batch)
    except RuntimeError:
        shapes = " x ".join(map(str, points.shape)), " x ".join(map(str, batch))
        raise ValueError(
            f"points of shape {shapes[0]} do not fit a batch of {shapes[1]} densities: give one point for each, of shape "
            f"{shapes[1]} x {points.shape[-1]}, or several for each, along axes before these"
        ) from None


class PointOracle:
    """Exact membership and features of points for one family. Families of equal content share one."""

    family: Family
    fingerprint: str

    def __new__(cls, family: Family) -> PointOracle:
        content = f"{family.constraint.to_smtlib()}\0{family._core.settings_json}"
        fingerprint = hashlib.sha256(content.encode()).hexdigest()
        oracle = _oracles.get(fingerprint)
        if oracle is None:
            oracle = super().__new__(cls)
            oracle.family, oracle.fingerprint = family, fingerprint
            oracle = _oracles.setdefault(fingerprint, oracle)
        return oracle

    def contains(self, points: Tensor) -> Tensor:
        """Exact membership of points, one per row."""
        # In a graph or a transform, an operator; otherwise the way through the dispatcher would take longer than the
        # answer.
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return _OPERATORS.contains(points.detach(), self.fingerprint)
        return _contains(points, self.family)

    def features(self, points: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Features of points, one row of `width` numbers each, and exact membership.

        Features have derivatives of any order with respect to the points.
        """
        orders = [0] * points.shape[-1]
        transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
        if points.requires_grad or transformed:
            return _OPERATORS.features(points, self.fingerprint, width, orders)
        return _features(points, self.family, width, orders)

    def __copy__(self) -> PointOracle:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PointOracle:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return PointOracle, (self.family,)


_oracles: weakref.WeakValueDictionary[str, PointOracle] = weakref.WeakValueDictionary()


def family_of(fingerprint: str) -> Family:
    """The family that a graph calls by its fingerprint."""
    oracle = _oracles.get(fingerprint)
    if oracle is None:
        raise RuntimeError("the layer that this graph was made from is gone; keep it, or make an equal one")
    return oracle.family


def flat(points: Tensor) -> np.ndarray:
    """Points as the core takes them: row by row in one array."""
    return points.detach().to("cpu", torch.float64).contiguous().view(-1).numpy()


def _contains(points: Tensor, family: Family) -> Tensor:
    if points.shape[0] == 0:
        return torch.empty(0, dtype=torch.bool, device=points.device)
    return torch.from_numpy(family._core.contains(flat(points))).to(points.device)


def _features(points: Tensor, family: Family, width: int, orders: list[int]) -> tuple[Tensor, Tensor]:
    if points.shape[0] == 0:
        empty = torch.empty(0, width, dtype=torch.float64, device=points.device)
        return empty, torch.empty(0, dtype=torch.bool, device=points.device)
    values, inside = family._core.features(flat(points), orders)
    rows = torch.from_numpy(values.reshape(-1, width)).to(points.device)
    return rows, torch.from_numpy(inside).to(points.device)


def _setup_context(ctx: Any, inputs: tuple[Tensor, str, int, list[int]], output: Any) -> None:
    points, ctx.family, ctx.width, ctx.orders = inputs
    ctx.save_for_backward(points)


def _backward(ctx: Any, rows: Tensor, inside: None) -> tuple[Tensor, None, None, None]:
    (points,) = ctx.saved_tensors
    gradient = []
    for j in range(points.shape[-1]):
        # The operator again, so that it has derivatives itself, up to any order.
        orders = [order + (k == j) for k, order in enumerate(ctx.orders)]
        gradient.append((rows * _OPERATORS.features(points, ctx.family, ctx.width, orders)[0]).sum(-1))
    return torch.stack(gradient, -1), None, None, None


torch.library.define("pal::contains", "(Tensor points, str family) -> Tensor")
torch.library.define("pal::features", "(Tensor points, str family, int width, int[] orders) -> (Tensor, Tensor)")
_OPERATORS = torch.ops.pal


@torch.library.impl("pal::contains", "CompositeExplicitAutograd")
def _(points: Tensor, family: str) -> Tensor:
    return _contains(points, family_of(family))


@torch.library.impl("pal::features", "CompositeExplicitAutograd")
def _(points: Tensor, family: str, width: int, orders: list[int]) -> tuple[Tensor, Tensor]:
    return _features(points, family_of(family), width, orders)


torch.library.register_autograd("pal::features", _backward, setup_context=_setup_context)


@torch.library.register_fake("pal::contains")
def _(points: Tensor, family: str) -> Tensor:
    return points.new_empty(points.shape[0], dtype=torch.bool)


@torch.library.register_fake("pal::features")
def _(points: Tensor, family: str, width: int, orders: list[int]) -> tuple[Tensor, Tensor]:
    rows = points.new_empty(points.shape[0], width, dtype=torch.float64)
    return rows, points.new_empty(points.shape[0], dtype=torch.bool)


def _unbatched(points: Tensor, dim: int, size: int) -> tuple[Tensor, tuple[int, int]]:
    """Batches of points as one list of points, and the shape of the list of batches."""
    batches = points.movedim(dim, 0)
    return batches.reshape(-1, batches.shape[-1]), (size, batches.shape[1])


@torch.library.register_vmap("pal::contains")
def _(info: Any, in_dims: Any, points: Tensor, family: str) -> tuple[Tensor, int]:
    flat_points, shape = _unbatched(points, in_dims[0], info.batch_size)
    return _OPERATORS.contains(flat_points, family).unflatten(0, shape), 0


@torch.library.register_vmap("pal::features")
def _(info: Any, in_dims: Any, points: Tensor, family: str, width: int, orders: list[int]) -> Any:
    flat_points, shape = _unbatched(points, in_dims[0], info.batch_size)
    rows, inside = _OPERATORS.features(flat_points, family, width, orders)
    return (rows.unflatten(0, shape), inside.unflatten(0, shape)), (0, 0)
