"""A reader of pickles that makes plain containers and numeric arrays, and nothing else.

A pickle is a program, and what it may call decides what it can do. Here it may call the functions of this module only,
whatever it names: they take the place of those with which numpy rebuilds arrays, and believe nothing that they are
told. An array is made from bytes that are as many as its shape and type ask for, and only of numbers: the objects that
an array of another type holds would be addresses out of the file.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np

# Booleans, integers and floats, with their sizes in bytes.
_TYPES = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
_MOST_AXES = 8
_MOST_NESTED = 50


class _Refused(Exception):
    """The pickle asks for something that has no place here."""


class _Dtype:
    """The type of the entries of an array."""

    def __init__(self, name: Any, *_: Any) -> None:
        if name not in _TYPES:
            raise _Refused(f"it holds an array of type {name!r}; only numbers are read")
        self.name, self.order = name, "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise _Refused("it holds an array of an unknown byte order")
        self.order = order

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.name)


class _Array:
    """An array before its content has been read."""

    values: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        self.values = _values(content, dtype, shape, "F" if fortran else "C")


def _values(content: Any, dtype: Any, shape: Any, order: Any) -> Any:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    sound = len(sizes) <= _MOST_AXES and all(type(size) is int and size >= 0 for size in sizes)
    if not sound or not isinstance(dtype, _Dtype) or not isinstance(content, (bytes, bytearray)):
        raise _Refused("it holds an array that is no list of numbers with a shape")
    of = dtype.dtype()
    if math.prod(sizes) * of.itemsize != len(content):
        raise _Refused(f"it holds an array of shape {sizes} with {len(content)} bytes")
    return np.frombuffer(bytes(content), of).reshape(sizes, order="F" if order == "F" else "C")


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _frombuffer(content: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> _Array:
    array = _Array()
    array.values = _values(content, dtype, shape, order)
    return array


def _scalar(dtype: Any, content: Any) -> Any:
    return _values(content, dtype, (), "C").item()


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise _Refused("it holds a text in an unknown encoding")
    return text.encode("latin1")


def _dict(*_: Any) -> dict[Any, Any]:
    """A dictionary, of whatever kind; its entries follow."""
    return {}


# All that a pickle of arrays in dictionaries, lists and tuples names, in old and new versions of numpy.
_NAMES: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array, ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct, ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.multiarray", "scalar"): _scalar, ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer, ("numpy._core.numeric", "_frombuffer"): _frombuffer,
    ("collections", "defaultdict"): _dict, ("collections", "OrderedDict"): _dict,
    ("builtins", "dict"): _dict, ("builtins", "list"): None, ("builtins", "tuple"): None,
    ("_codecs", "encode"): _encode,
}  # fmt: skip


# The reader that is written in Python: the other one makes room for as many objects as a pickle announces.
class _Reader(pickle._Unpickler):  # type: ignore[name-defined, misc]
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise _Refused(f"it holds a {module}.{name}, which has no place among arrays; this is not the data set")
        return _NAMES[module, name]


def load(content: bytes) -> Any:
    """What a pickle holds. Raises `ValueError` if it is none, or holds anything but containers and numbers."""
    try:
        return _plain(_Reader(io.BytesIO(content)).load(), 0)
    except _Refused as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # A damaged pickle can fail in any way.
        raise ValueError(f"not a pickle that can be read: {error}") from None


def _plain(value: Any, depth: int) -> Any:
    """The value with arrays in the place of what they were read as."""
    if depth > _MOST_NESTED:
        raise _Refused("its containers are nested too deeply")
    if isinstance(value, _Array) and value.values is not None:
        return value.values
    if isinstance(value, dict):
        return {_plain(key, depth + 1): _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(entry, depth + 1) for entry in value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    raise _Refused("it holds something that is neither a container nor a number")
