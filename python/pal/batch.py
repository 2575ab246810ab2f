"""Batches of regions: one constraint for each example."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _core
from ._arrays import FloatArray
from ._core import RegionBatch as CoreBatch
from .errors import FileError
from .formula import Constrained, Constraint, from_shapely
from .region import Region


class RegionBatch:
    """Regions over the same variables, one per row: the drivable area around each car, the budget of each customer.

    A batch never changes. Indexing and concatenation share the rows; nothing is cut again.

    Args:
        regions: regions, constraints or formulas with the same variables, and no Boolean ones.
        variables: the order of coordinates; without it, that of the first region.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> square = x.between(0, 2) & y.between(0, 2)
    >>> batch = pal.RegionBatch([square & (x + y <= most) for most in (1, 2, -1)])
    >>> len(batch), batch.volume, batch.status
    (3, array([0.5, 2. , 0. ]), ['bounded', 'bounded', 'empty'])
    >>> batch.contains([[1.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    array([False,  True, False])
    >>> batch[1].exact_volume, len(batch[[0, 0, 2]] + batch)
    (Fraction(2, 1), 6)
    """

    _core: CoreBatch

    def __init__(
        self, regions: Sequence[Region | Constrained], variables: Sequence[str] | None = None
    ) -> None:
        made: list[Region] = []
        for row, region in enumerate(regions):
            names = variables if made == [] else made[0].variables
            try:
                if isinstance(region, Region) and variables is None:
                    made.append(region)
                else:
                    made.append(Region(region.constraint if isinstance(region, Region) else region, names))
            except (TypeError, ValueError) as error:
                raise type(error)(f"row {row}: {error}") from None
        self._core = _core.RegionBatch([region._core for region in made])

    @classmethod
    def _of(cls, core: CoreBatch) -> RegionBatch:
        new = cls.__new__(cls)
        new._core = core
        return new

    @classmethod
    def from_shapely(cls, geometries: Sequence[Any], variables: tuple[str, str] = ("x", "y")) -> RegionBatch:
        """Polygons of shapely, one per row: see [`from_shapely`][pal.from_shapely]."""
        return cls([Constraint(from_shapely(geometry, variables), variables) for geometry in geometries])

    @classmethod
    def from_halfspaces(
        cls, A: ArrayLike, b: ArrayLike, mask: ArrayLike | None = None, variables: Sequence[str] | None = None
    ) -> RegionBatch:
        """The sets `A y <= b`, one per row, or unions of such sets. Numbers are float64 and stand for exactly what they
        denote; tensors of PyTorch will do.

        Args:
            A: normals: rows by half-spaces by variables, or rows by parts by half-spaces by variables.
            b: offsets: rows by half-spaces, or rows by parts by half-spaces.
            mask: for unions, rows by parts: which parts there are. By default all.
            variables: the names of the variables; by default `x0`, `x1` and so on.

        >>> import numpy as np, pal
        >>> A = np.array([[1, 0], [0, 1], [-1, -1]])
        >>> batch = pal.RegionBatch.from_halfspaces(np.stack([A, A]), [[1, 1, 0], [2, 2, 0]])
        >>> batch.volume, batch.variables
        (array([2., 8.]), ('x0', 'x1'))
        """
        normals, offsets = _arrays.float64(_array(A), "A"), _arrays.float64(_array(b), "b")
        if normals.ndim not in (3, 4) or offsets.shape != normals.shape[:-1]:
            raise ValueError(
                "A is rows x half-spaces x variables and b rows x half-spaces, or, for unions, both with an axis of parts "
                f"after the first; their shapes are {normals.shape} and {offsets.shape}"
            )
        if normals.ndim == 3:
            normals, offsets = normals[:, None], offsets[:, None]
        rows, parts, count, n = normals.shape
        flags = None
        if mask is not None:
            flags = np.ascontiguousarray(_array(mask), dtype=bool)
            if flags.shape != (rows, parts):
                raise ValueError(f"the mask is rows x parts, {(rows, parts)}; its shape is {flags.shape}")
            # What is masked need not be numbers.
            normals, offsets = normals.copy(), offsets.copy()
            normals[~flags], offsets[~flags] = 0.0, 0.0
        names = [f"x{j}" for j in range(n)] if variables is None else [str(name) for name in variables]
        if len(names) != n:
            raise ValueError(f"A has {n} variables along its last axis, and {len(names)} names are given")
        flat = None if flags is None else flags.reshape(-1)
        core = _core.RegionBatch.half_spaces(
            names, (rows, parts, count), normals.reshape(-1), offsets.reshape(-1), flat
        )
        return cls._of(core)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables of all rows, in the order of coordinates."""
        return tuple(self._core.variables)

    @property
    def dimension(self) -> int:
        """The number of variables."""
        return len(self._core.variables)

    @property
    def status(self) -> list[str]:
        """For each row `bounded`, `unbounded`, `lower-dimensional`, `empty`, or `no-volume` for one of the last two
        that could not be told apart."""
        return self._core.statuses()

    @property
    def volume(self) -> FloatArray:
        """The volume of each row: 0 where it has none, infinite where it is unbounded."""
        return self._core.volumes()

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether points are inside of the region of their own row, exactly, strictness included.

        Args:
            points: rows by coordinates; or with further axes in front: points by rows by coordinates.
        """
        array = _arrays.float64(_array(points), "points")
        _arrays.check_width(array.shape, self.variables)
        if array.ndim < 2 or array.shape[-2] != len(self):
            raise ValueError(f"there are {len(self)} rows, and one point for each is needed; the shape is {array.shape}")
        if array.size == 0:
            return np.empty(array.shape[:-1], dtype=bool)
        sets = array.reshape(-1, len(self), self.dimension)
        return np.stack([self._core.contains(points.reshape(-1)) for points in sets]).reshape(array.shape[:-1])

    def _changed(self, points: ArrayLike, change: Any) -> FloatArray:
        array = _arrays.float64(_array(points), "points")
        _arrays.check_width(array.shape, self.variables)
        if array.ndim < 2 or array.shape[-2] != len(self):
            raise ValueError(f"there are {len(self)} rows, and one point for each is needed; the shape is {array.shape}")
        sets = array.reshape(-1, len(self) * self.dimension)
        changed: FloatArray = np.stack([change(points) for points in sets]) if len(sets) else sets
        return changed.reshape(array.shape)

    def to_local(self, points: ArrayLike) -> FloatArray:
        """Points of the map, one for each row, in the local coordinates of their windows, rounded to float64.

        Args:
            points: rows by coordinates; or with further axes in front.
        """
        return self._changed(points, self._core.to_local)

    def to_map(self, points: ArrayLike) -> FloatArray:
        """Points in local coordinates, one for each row, as points of the map, rounded to float64: the opposite of
        [`to_local`][pal.RegionBatch.to_local].

        >>> import pal
        >>> x, y = pal.reals("x", "y")
        >>> room = pal.Region(x.between(0, 9) & y.between(0, 9))
        >>> room.windows([[4, 5]], 2, headings=[[0, 3]]).to_map([[1.0, 0.5]])
        array([[3.5, 6. ]])
        """
        return self._changed(points, self._core.to_map)

    def constraint(self, row: int) -> Constraint:
        """The constraint of a row, in the coordinates of the row."""
        return Constraint._of(self._core.constraint(int(row_indices(row, len(self))[0])))

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, index: Any) -> Any:
        """The region of a row; for slices, lists and arrays of numbers or flags, the batch of these rows."""
        if isinstance(index, (int, np.integer)) or getattr(index, "shape", None) == ():
            return Region(self.constraint(int(index)))
        return RegionBatch._of(self._core.select(row_indices(index, len(self))))

    def __iter__(self) -> Iterator[Region]:
        return (self[row] for row in range(len(self)))

    def __add__(self, other: RegionBatch) -> RegionBatch:
        if not isinstance(other, RegionBatch):
            return NotImplemented
        return RegionBatch.concatenate([self, other])

    @staticmethod
    def concatenate(batches: Sequence[RegionBatch]) -> RegionBatch:
        """The rows of all batches, one batch after the other."""
        batches = list(batches)
        if not batches:
            raise ValueError("there is nothing to concatenate; give at least one batch")
        return RegionBatch._of(batches[0]._core.concatenate([batch._core for batch in batches[1:]]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a safetensors file. A map that many windows share is written once."""
        Path(path).write_bytes(self._core.write())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RegionBatch:
        """Reads what [`save`][pal.RegionBatch.save] wrote."""
        try:
            return cls._of(_core.RegionBatch.read(Path(path).read_bytes()))
        except FileError as error:
            raise FileError(f"{path}: {error}") from None

    def __copy__(self) -> RegionBatch:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RegionBatch:
        # A batch never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (bytes(self._core.write()),)

    def __repr__(self) -> str:
        return f"RegionBatch({', '.join(self.variables)}; {len(self)} rows)"


def _read(content: bytes) -> RegionBatch:
    return RegionBatch._of(_core.RegionBatch.read(content))


def _array(values: Any) -> Any:
    """Tensors of PyTorch as arrays, which need not be imported for that; anything else as it is."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def row_indices(index: Any, count: int) -> NDArray[np.int64]:
    """The rows that an index selects: a number, a slice, a list or an array of numbers or of flags."""
    index = _array(index)
    try:
        rows = np.arange(count)[index]
    except IndexError as error:
        raise IndexError(f"the batch has {count} rows: {error}") from None
    return np.ascontiguousarray(np.atleast_1d(rows).reshape(-1), dtype=np.int64)


def windows(
    region: Region,
    centres: ArrayLike,
    half_width: ArrayLike,
    headings: ArrayLike | None,
    scales: ArrayLike | None,
    visible: bool,
) -> RegionBatch:
    """See [`Region.windows`][pal.Region.windows]."""
    places = _arrays.float64(_array(centres), "centres")
    _arrays.check_width(places.shape, region.variables, "centres")
    count = places.size // max(len(region.variables), 1)
    widths = _arrays.float64(_array(half_width), "half_width").reshape(-1)
    turned = None
    if headings is not None:
        turned = _arrays.float64(_array(headings), "headings")
        if turned.shape != places.shape:
            raise ValueError(f"there is one heading for each centre; shapes are {turned.shape} and {places.shape}")
        turned = turned.reshape(-1)
    scaled = None
    if scales is not None:
        scaled = np.ascontiguousarray(np.broadcast_to(_arrays.float64(_array(scales), "scales"), places.shape[:-1]))
        scaled = scaled.reshape(count)
    return RegionBatch._of(region._map.windows(places.reshape(-1), widths, turned, scaled, visible))
