"""What the core knows of points, as operators that `torch.compile` can leave in its graphs."""

from __future__ import annotations

import itertools
import weakref

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
    return np.ascontiguousarray(points.detach().to("cpu", torch.float64).numpy()).reshape(-1)


@torch.library.custom_op("pal::inside", mutates_args=())
def inside(points: torch.Tensor, family: int) -> torch.Tensor:
    """Exact membership of points, one per row."""
    if points.shape[0] == 0:
        return torch.empty(0, dtype=torch.bool, device=points.device)
    flags = _families[family]._core.contains(_flat(points))
    return torch.from_numpy(flags).to(points.device)


@inside.register_fake
def _(points: torch.Tensor, family: int) -> torch.Tensor:
    return points.new_empty(points.shape[0], dtype=torch.bool)


@torch.library.custom_op("pal::features", mutates_args=())
def features(points: torch.Tensor, family: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of points, one per row, and exact membership."""
    if points.shape[0] == 0:
        empty = torch.empty(0, width, dtype=torch.float64, device=points.device)
        return empty, torch.empty(0, dtype=torch.bool, device=points.device)
    values, flags = _families[family]._core.features(_flat(points))
    rows = torch.from_numpy(values.reshape(-1, width)).to(points.device)
    return rows, torch.from_numpy(flags).to(points.device)


@features.register_fake
def _(points: torch.Tensor, family: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = points.new_empty(points.shape[0], width, dtype=torch.float64)
    return rows, points.new_empty(points.shape[0], dtype=torch.bool)
