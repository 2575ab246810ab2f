"""Arrays of points and parameters: any strides and number type in, flat contiguous float64 out.

Points may also come by name: as a dict of columns, or as a table of pandas, polars or pyarrow, none of which is
imported here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
# Arrays, dicts of columns, and tables with named columns.
Points = Any

# All integers up to here are float64 numbers.
_EXACT = 2**53


def float64(values: Any, what: str) -> FloatArray:
    """The values as contiguous float64 of the same shape.

    Integers that float64 cannot represent are refused: a point that is rounded silently may be on the other side of a
    constraint.
    """
    if hasattr(values, "detach"):
        # A tensor of PyTorch, which may have derivatives, be on a device, or have a format that numpy lacks.
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    array: Any = np.asarray(values)
    if array.dtype.kind not in "fiub" and not (array.dtype == object and array.size == 0):
        if array.dtype.kind == "c":
            raise TypeError(f"{what} must be real numbers, not complex ones")
        raise TypeError(f"{what} must be an array of numbers, not of {_kind(array)}")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size and np.abs(array).max() > _EXACT:
        if (array.astype(np.float64).astype(object) != array.astype(object)).any():
            raise ValueError(f"{what} hold an integer beyond 2**53 that float64 cannot represent; round it first")
    # Not `ascontiguousarray`, which makes a single number an array of one.
    return np.asarray(array, dtype=np.float64, order="C")


def _kind(array: Any) -> str:
    """What an array holds that are no numbers: its type, and where that says nothing the first such entry."""
    if array.dtype.kind in "US":
        return "text"
    texts = (entry for entry in array.reshape(-1) if not isinstance(entry, (int, float, np.number)))
    first = next(texts, None) if array.dtype == object else None
    return str(array.dtype) if first is None else f"{type(first).__name__}: {first!r} is not a number"


def points(values: Any, variables: Sequence[str], what: str = "points") -> tuple[FloatArray, tuple[int, ...]]:
    """Points as flat rows in the order of the variables, and the shape of the axes before the last.

    An array has the coordinates along its last axis, in the order of the variables. What has names is taken by name.
    """
    columns = named(values, variables, what)
    if columns is None:
        array = float64(values, what)
    else:
        parts = [float64(column, f"the values of `{name}`") for name, column in zip(variables, columns)]
        try:
            array = np.stack(np.broadcast_arrays(*parts), axis=-1)
        except ValueError:
            shapes = ", ".join(f"{name}: {part.shape}" for name, part in zip(variables, parts))
            raise ValueError(f"the columns of {what} do not have the same shape ({shapes})") from None
    check_width(array.shape, variables, what)
    return array.reshape(-1), array.shape[:-1]


def check_width(shape: Sequence[int], variables: Sequence[str], what: str = "points") -> None:
    """Refuses a shape whose last axis does not have one coordinate for each variable."""
    if len(shape) == 0 or shape[-1] != len(variables):
        found = "are a single number" if len(shape) == 0 else f"have {_counted(shape[-1], 'column')}"
        several = "is 1 variable" if len(variables) == 1 else f"are {len(variables)} variables, in this order"
        full = f" (their shape is {' x '.join(map(str, shape))})" if len(shape) != 0 else ""
        raise ValueError(f"{what} {found}, but there {several}: {', '.join(variables)}{full}")


def labels_of(values: Any) -> list[Any] | None:
    """The names of columns; `None` if they have none."""
    if isinstance(values, Mapping):
        return list(values)
    fields = getattr(getattr(values, "dtype", None), "names", None)
    attributes = (getattr(values, key, None) for key in ("column_names", "columns", "index"))
    found: list[Any] = [each for each in (fields, *attributes) if _is_list(each)]
    labels = list(found[0]) if found and hasattr(values, "__array__") else []
    return labels if any(isinstance(label, str) for label in labels) else None


def named(values: Any, variables: Sequence[str], what: str) -> list[Any] | None:
    """The columns of the variables, in their order, if the values have names; `None` if they have none.

    Dicts have names, and so do tables of pandas, polars and pyarrow, single rows of pandas, and arrays of numpy with
    fields. Further columns are ignored. A table of pandas whose columns are merely numbered has no names.
    """
    labels = labels_of(values)
    if labels is None:
        return None
    missing = [name for name in variables if name not in labels]
    if missing:
        have = ", ".join(map(str, labels)) or "(none)"
        raise ValueError(
            f"{what} have no column {' and no column '.join(f'`{name}`' for name in missing)}; "
            f"their columns are {have}, and the variables are, in this order: {', '.join(variables)}"
            + meant(missing[0], labels)
        )
    repeated = [name for name in variables if labels.count(name) > 1]
    if repeated:
        raise ValueError(f"{what} have several columns `{repeated[0]}`")
    return [values[name] for name in variables]


def meant(name: str, known: Iterable[Any]) -> str:
    """The end of a message about a name that is not there: the known one that was probably meant, if there is one."""
    by_small = {str(other).lower(): str(other) for other in known}
    near = difflib.get_close_matches(name.lower(), by_small, n=1, cutoff=0.6)
    return f"; did you mean `{by_small[near[0]]}`?" if near else ""


def _is_list(labels: Any) -> bool:
    """Whether this may be a list of names: methods such as `list.index` are not."""
    return labels is not None and not callable(labels)


def rows(values: ArrayLike, width: int, what: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Vectors of a given length along the last axis, flat, and the shape of the axes before it."""
    array = float64(values, what)
    if array.ndim == 0 or array.shape[-1] != width:
        shape = " x ".join(map(str, array.shape)) or "a single number"
        raise ValueError(f"{what} need {width} numbers along the last axis; the shape is {shape}")
    return array.reshape(-1), array.shape[:-1]


def params(values: ArrayLike, width: int) -> tuple[FloatArray, tuple[int, ...]]:
    """Parameter vectors along the last axis, flat, and the shape of the axes before it."""
    return rows(values, width, "params")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def count(value: Any, what: str, least: int = 0) -> int:
    """An integer of at least `least`."""
    try:
        number: int = value.__index__()
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
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"a seed must be an integer, not {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"a seed is a number from 0 to 2**64 - 1, not {number}")
    return number
