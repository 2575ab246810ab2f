"""Points in the precision of a network that still satisfy the constraint."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor

from ..errors import QueryError
from ..formula import Constraint


def inside(points: Tensor, constraint: Constraint, like: Tensor) -> Tensor:
    """Points in float64 that satisfy a constraint, rounded to the precision of another tensor so that they satisfy it
    still.

    Rounding to a shorter format moves a point by up to half a unit in its last place, and perhaps out of the
    constraint. It is then moved on to the nearest of its neighbours that is inside, in steps that double. The result is
    on the device of the other tensor.
    """
    if like.dtype == torch.float64 or points.numel() == 0:
        return points.to(like.device, like.dtype)
    n = points.shape[-1]
    exact = points.reshape(-1, n)
    rounded = exact.to(like.dtype)
    outside = np.flatnonzero(~constraint.contains(rounded.double().numpy()))
    if len(outside):
        rounded[outside] = _neighbours(exact[outside], constraint, like.dtype)
    return rounded.reshape(points.shape).to(like.device)


def _neighbours(exact: Tensor, constraint: Constraint, dtype: torch.dtype) -> Tensor:
    n = exact.shape[-1]
    unit = torch.finfo(dtype).eps * exact.abs().clamp_min(torch.finfo(dtype).tiny)
    directions = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=n)), dtype=torch.float64)
    found = torch.zeros(len(exact), dtype=torch.bool)
    result = exact.to(dtype)
    for doubling in range(24):
        left = torch.nonzero(~found).flatten()
        if not len(left):
            return result
        step = unit[left] * 2.0 ** (doubling - 1)
        candidates = (exact[left, None] + step[:, None] * directions).to(dtype)
        good = torch.from_numpy(np.asarray(constraint.contains(candidates.double().numpy())))
        first = good.int().argmax(-1)
        hit = good.any(-1)
        result[left[hit]] = candidates[hit, first[hit]]
        found[left[hit]] = True
    if not bool(found.all()):
        raise QueryError(
            f"a part of the region is so thin that no point near it has coordinates of type {dtype}; use torch.float64"
        )
    return result
