"""Arrays of points and parameters: any strides and number type in, flat contiguous float64 out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# All integers up to here are float64 numbers.
_EXACT = 2**53


def float64(values: ArrayLike, what: str) -> FloatArray:
    """The values as contiguous float64 of the same shape.

    Integers that float64 cannot represent are refused: a point that is rounded silently may be on the other side of a
    constraint.
    """
    array: Any = np.asarray(values)
    if array.dtype.kind not in "fiub" and not (array.dtype == object and array.size == 0):
        if array.dtype.kind == "c":
            raise TypeError(f"{what} must be real numbers, not complex ones")
        raise TypeError(f"{what} must be an array of numbers, not of {array.dtype}")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size and np.abs(array).max() > _EXACT:
        if (array.astype(np.float64).astype(object) != array.astype(object)).any():
            raise ValueError(f"{what} hold an integer beyond 2**53 that float64 cannot represent; round it first")
    # Not `ascontiguousarray`, which makes a single number an array of one.
    return np.asarray(array, dtype=np.float64, order="C")


def points(values: ArrayLike, dimension: int, what: str = "points") -> tuple[FloatArray, tuple[int, ...]]:
    """Points along the last axis, flat, and the shape of the axes before it."""
    array = float64(values, what)
    if array.ndim == 0 or array.shape[-1] != dimension:
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise ValueError(f"{what} need {dimension} coordinates along the last axis; the shape is {shape}")
    return array.reshape(-1), array.shape[:-1]


def params(values: ArrayLike, width: int) -> tuple[FloatArray, tuple[int, ...]]:
    """Parameter vectors along the last axis, flat, and the shape of the axes before it."""
    array = float64(values, "params")
    if array.ndim == 0 or array.shape[-1] != width:
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise ValueError(f"params need {width} numbers along the last axis; the shape is {shape}")
    return array.reshape(-1), array.shape[:-1]


def count(value: int, what: str, least: int = 0) -> int:
    """An integer of at least `least`."""
    try:
        number = value.__index__()
    except AttributeError:
        raise TypeError(f"{what} must be an integer, not {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{what} must be at least {least}, not {number}")
    if number >= 2**63:
        raise ValueError(f"{what} must be below 2**63")
    return number


def seed(value: int | None) -> int:
    """A seed from 0 to 2**64 - 1; a random one for `None`."""
    if value is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    number = int(value.__index__())
    if not 0 <= number < 2**64:
        raise ValueError(f"a seed is a number from 0 to 2**64 - 1, not {number}")
    return number
