"""In which precision points are handed out, and when points that come in have lost too much of theirs.

Far from the origin, as for coordinates in a national grid, the numbers of a short format are so far apart that they no
longer tell the points of a region from each other: at 4 million metres those of float32 are half a metre apart.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from .layer import Layer

# Points in a short format have to resolve the box this many times as coarsely as the interval from 0 to 1, at most: in
# float32 to about a millionth of its side.
_COARSE = 8
# Points that come in and are known to no more than this fraction of a side of the box are worth a warning.
_LOST = 1e-4


def spacing(dtype: torch.dtype, edges: list[np.ndarray]) -> float:
    """How far numbers of a format are apart at the ends of a box, as a fraction of its side; the largest one."""
    eps = torch.finfo(dtype).eps
    return max(eps * 2.0 ** np.floor(np.log2(np.abs(axis).max())) / (axis[-1] - axis[0]) for axis in edges)


def point_dtype(layer: Layer, dtype: torch.dtype) -> torch.dtype:
    """The precision of points for parameters in some precision: the same, or float64 where that would not tell points
    of the box from each other."""
    if dtype == torch.float64:
        return dtype
    known = layer.__dict__.setdefault("_point_dtypes", {})
    if dtype not in known:
        fine = spacing(dtype, layer.family.edges) <= _COARSE * torch.finfo(dtype).eps
        known[dtype] = dtype if fine else torch.float64
    return known[dtype]


def warn_of_lost_points(layer: Layer, dtype: torch.dtype) -> None:
    """Warns, once for a layer, of points in a format that is too short for its box."""
    if dtype == torch.float64 or not dtype.is_floating_point or torch.compiler.is_compiling():
        return
    known = layer.__dict__.setdefault("_checked_points", set())
    if dtype in known:
        return
    known.add(dtype)
    apart = spacing(dtype, layer.family.edges)
    if apart > max(_LOST, _COARSE * torch.finfo(dtype).eps):
        warnings.warn(
            f"points in {str(dtype).removeprefix('torch.')} are {apart:.1e} of the side of the box apart here, so far "
            "from the origin: near walls some are on the other side, and their log-density is minus infinity. Give "
            "points in torch.float64",
            stacklevel=4,
        )


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """A precision, or float32 where it is shorter."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


def warn_of_points_outside(layer: torch.nn.Module, logs: torch.Tensor) -> None:
    """Warns, once for a layer, of log-densities that are minus infinity where derivatives are asked for."""
    # Values cannot be asked for inside of the transforms of `torch.func`.
    transformed = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if transformed or layer.__dict__.get("_warned_of_outside"):
        return
    outside = int(logs.detach().isneginf().sum())
    if outside:
        layer.__dict__["_warned_of_outside"] = True
        warnings.warn(
            f"{outside} of {logs.numel()} points are outside the constraint, so that their log-density and its mean "
            "are minus infinity; region.project(points) moves points to the nearest place inside, and points in "
            "float64 stay where they are",
            stacklevel=4,
        )
