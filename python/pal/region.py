"""Regions: a constraint as disjoint convex cells."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _arrays, _core
from ._arrays import FloatArray, Points
from .errors import RegionError
from .formula import Constrained, Constraint, Number, as_constraint, shortened

if TYPE_CHECKING:
    from .batch import RegionBatch
    from .density import Density


class SurfaceMeasure(NamedTuple):
    """A surface measure: the exact volume of free coordinates, times the root of the exact square of a factor,

        value = free_volume * sqrt(square_factor)

    >>> import pal
    >>> a, b, c = pal.reals("a", "b", "c")
    >>> shares = pal.Region((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0))
    >>> area = shares.surface_measure
    >>> area.free_volume, area.square_factor, round(area.value, 6)
    (Fraction(1, 2), Fraction(3, 1), 0.866025)
    """

    value: float
    free_volume: Fraction
    square_factor: Fraction


class Cell:
    """One of the convex cells of a region, with exact vertices. [`Region.cells`][pal.Region.cells] has them.

    Args:
        region: the region.
        index: the number of the cell in it.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> (cell,) = pal.Region((x >= 0) & (y >= 0) & (x + 3 * y <= 1)).cells
    >>> sorted(cell.exact_vertices)
    [(Fraction(0, 1), Fraction(0, 1)), (Fraction(0, 1), Fraction(1, 3)), (Fraction(1, 1), Fraction(0, 1))]
    >>> cell.exact_volume, len(cell.half_spaces)
    (Fraction(1, 6), 3)
    """

    __slots__ = ("_owner", "_region", "_index", "_dimension")

    def __init__(self, region: Region, index: int) -> None:
        self._owner, self._region, self._index, self._dimension = region, region._core, index, len(region.variables)

    @property
    def vertices(self) -> FloatArray:
        """The vertices rounded to float64, one per row."""
        return self._region.cell_vertices(self._index).reshape(-1, self._dimension)

    @property
    def exact_vertices(self) -> list[tuple[Fraction, ...]]:
        """The exact vertices."""
        return [tuple(vertex) for vertex in self._region.cell_exact_vertices(self._index)]

    @property
    def half_spaces(self) -> list[tuple[tuple[int, ...], int]]:
        """The half-spaces `a . y <= b` whose intersection is the cell: pairs of a and b, in integers."""
        return [(tuple(int(x) for x in a), int(b)) for a, b in self._region.cell_half_spaces(self._index)]

    @property
    def exact_volume(self) -> Fraction:
        """The exact volume, counted once for every assignment of the Boolean variables that the cell stands for."""
        return self._region.cell_exact_volume(self._index)

    @property
    def volume(self) -> float:
        """The volume in float64, counted like [`exact_volume`][pal.Cell.exact_volume]."""
        return float(self.exact_volume)

    @property
    def booleans(self) -> tuple[bool | None, ...]:
        """The values of the Boolean variables; `None` where both belong to the region."""
        return tuple(self._region.cell_booleans(self._index))

    def __repr__(self) -> str:
        return f"Cell(volume {self.volume:g}, {len(self.vertices)} vertices)"

    def __copy__(self) -> Cell:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Cell:
        # A cell never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _cell, (self._owner, self._index)


def _cell(region: Region, index: int) -> Cell:
    return region.cells[index]


class Region:
    """A constraint made ready for geometry: its cells have disjoint interiors and together make up the region.

    No decision on the way depends on rounding. Cells are found when they are first needed, and kept.

    Args:
        constraint: a formula or a [`Constraint`][pal.Constraint].
        variables: the order of coordinates; without it, that of the constraint, or of the declaration of the variables.
        free: the free variables of a region on which equalities hold; by default those that come first, where possible.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> room = x.between(0, 4) & y.between(0, 3) & ~((x > 1) & (x < 2) & (y > 1) & (y < 2))
    >>> region = pal.Region(room)
    >>> region.status, region.exact_volume, len(region.cells)
    ('bounded', Fraction(11, 1), 4)
    >>> region.contains([[1.0, 1.5], [1.5, 1.5]])
    array([ True, False])
    """

    def __init__(
        self,
        constraint: Constrained,
        variables: Sequence[str] | None = None,
        free: Sequence[str] | None = None,
    ) -> None:
        self._constraint = as_constraint(constraint, variables)
        self._core = _core.Region(self._constraint._core)
        self._chosen = None if free is None else list(free)
        if self._chosen is not None:
            self._core = self._core.with_free(self._chosen)
        self._knots: list[list[Number]] | None = None

    @property
    def constraint(self) -> Constraint:
        """The constraint that the region was made from."""
        return self._constraint

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the real variables, in the order of coordinates."""
        return self._constraint.variables

    @cached_property
    def _flat(self) -> _core.Flat | None:
        return self._core.flat()

    @cached_property
    def _is_flat(self) -> bool:
        try:
            return self._flat is not None
        except RegionError:
            # Parts in different flats have points, and nothing else that is asked for here.
            return False

    @cached_property
    def _axes(self) -> Region:
        """The region in its free coordinates, which is this one unless equalities hold on it."""
        if self._flat is None:
            return self
        core = self._flat.region()
        return Region(Constraint._of(core.constraint))

    @cached_property
    def dimension(self) -> int:
        """The dimension of the region: the number of variables where it has volume, the number of free variables where
        equalities hold on all of it, and -1 for the empty region.

        >>> import pal
        >>> a, b, c = pal.reals("a", "b", "c")
        >>> pal.Region((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0)).dimension
        2
        """
        if self._flat is not None:
            return len(self._flat.free)
        return len(self.variables) if self._core.has_volume() or self.status != "empty" else -1

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the free variables: all of them, unless equalities hold on the whole region. Then the others are
        affine functions of the free ones."""
        return self.variables if self._flat is None else tuple(self._flat.free_names)

    @cached_property
    def surface_measure(self) -> SurfaceMeasure:
        """The length, area or volume of the region in as many dimensions as it has; its volume, if it has one.

        >>> import pal
        >>> a, b, c = pal.reals("a", "b", "c")
        >>> shares = pal.Region((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0))
        >>> shares.surface_measure
        SurfaceMeasure(value=0.8660254037844386, free_volume=Fraction(1, 2), square_factor=Fraction(3, 1))
        """
        if self._flat is None:
            return SurfaceMeasure(self.volume, self.exact_volume, Fraction(1))
        return SurfaceMeasure(*self._flat.surface_measure())

    def fill(self, free: Points) -> FloatArray:
        """Points with all coordinates from their free ones: dependent coordinates are their exact image, rounded once.

        Use it for data whose rounding has carried them off the flat.

        Args:
            free: coordinates along the last axis, in the order of `free`; or a dict of columns or a table of pandas, by
                name.

        >>> import pal
        >>> a, b, c = pal.reals("a", "b", "c")
        >>> pal.Region((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0)).fill([[0.25, 0.5]])
        array([[0.25, 0.5 , 0.25]])
        """
        flat, shape = _arrays.points(free, self.free)
        filled = flat if self._flat is None else self._flat.fill(flat)
        return filled.reshape(*shape, len(self.variables))

    @cached_property
    def _status(self) -> tuple[str, list[Fraction] | None]:
        return self._core.status()

    @property
    def status(self) -> str:
        """`bounded`, `unbounded`, `lower-dimensional`, `empty`, or `no-volume` for one of the last two that could not
        be told apart."""
        return self._status[0]

    @property
    def witness(self) -> dict[str, Fraction] | None:
        """A proof of the status: a ray of an unbounded region, a point of a lower-dimensional one.

        >>> import pal
        >>> x, y = pal.reals("x", "y")
        >>> pal.Region((x == 2 * y) & (y == 1)).witness
        {'x': Fraction(2, 1), 'y': Fraction(1, 1)}
        """
        shown = self._status[1]
        return None if shown is None else dict(zip(self.variables, shown))

    @cached_property
    def exact_volume(self) -> Fraction:
        """The exact volume, summed over all assignments of the Boolean variables; 0 for a region of lower dimension."""
        return self._core.exact_volume()

    @property
    def volume(self) -> float:
        """The exact volume, rounded to float64."""
        return float(self.exact_volume)

    @cached_property
    def bounding_box(self) -> list[tuple[Fraction, Fraction]] | None:
        """The exact smallest box around the region: lower and upper end per variable; `None` for a region without
        volume."""
        return self._core.bounding_box()

    @cached_property
    def cells(self) -> list[Cell]:
        """The convex cells, in a fixed order."""
        return [Cell(self, index) for index in range(self._core.num_cells())]

    @cached_property
    def simplices(self) -> FloatArray:
        """The cells cut into simplices: an array of shape (simplices, dimension + 1, dimension)."""
        corners, _ = self._core.simplices()
        n = len(self.variables)
        return corners.reshape(-1, n + 1, n)

    def contains(self, points: Points) -> NDArray[np.bool_]:
        """Whether points are inside, exactly, strictness included. NaN and infinities are not.

        Where equalities hold on the whole region, the free coordinates are tested exactly, and dependent ones may
        differ from their image by rounding: two units in the last place of the sizes of its terms together.

        Args:
            points: coordinates along the last axis, in the order of `variables`; or a dict of columns or a table of
                pandas, by name.
        """
        if not self._is_flat:
            return self._constraint.contains(points)
        flat, shape = _arrays.points(points, self.variables)
        return self._core.contains(flat).reshape(shape)[()]

    def with_knots(self, positions: Sequence[Sequence[Number]]) -> Region:
        """The same region with its cells split at positions along the axes, one increasing list per variable."""
        new = Region.__new__(Region)
        new._constraint = self._constraint
        new._knots = [list(axis) for axis in positions]
        new._core, new._chosen = self._core.with_knots(new._knots), None
        return new

    def project(self, points: Points) -> FloatArray:
        """The nearest point of the region for every point; points inside stay where they are.

        All points that are returned satisfy the constraint under exact evaluation. They are the nearest ones up to
        rounding, and up to the last digits where walls do not belong to the region (`x < 1`) or lie between two numbers
        of float64 (`x <= "1/3"`). For data that measurement errors have carried out of a constraint: their log-density
        would be minus infinity.

        Args:
            points: coordinates along the last axis, in the order of `variables`; or a dict of columns or a table of
                pandas, by name.

        Returns:
            an array of the same shape; for named columns, with the coordinates along its last axis.

        >>> import pal
        >>> x, y = pal.reals("x", "y")
        >>> corner = pal.Region(x.between(0, 2) & y.between(0, 2) & ~((x > 1) & (y > 1)))
        >>> corner.project([[1.75, 1.5], [3.0, -1.0], [0.5, 0.5]])
        array([[1.75, 1.  ],
               [2.  , 0.  ],
               [0.5 , 0.5 ]])
        """
        if not self.variables:
            raise ValueError("the constraint has no real variables, so there are no points to project")
        flat, shape = _arrays.points(points, self.variables)
        return self._core.project(flat).reshape(*shape, len(self.variables))

    @cached_property
    def _map(self) -> _core.RegionMap:
        return _core.RegionMap(self._core)

    def windows(
        self,
        centres: ArrayLike,
        half_width: ArrayLike,
        headings: ArrayLike | None = None,
        scales: ArrayLike | None = None,
        visible: bool = False,
    ) -> RegionBatch:
        """Windows of the region: boxes around centres, in local coordinates that are 0 there, one per row.

        A point u of a window with |u_j| <= half_width_j stands for the point `centre + scale u` of the region; in the
        plane, with a heading h of any length, for

            y_1 = centre_1 + a u_1 - b u_2,        (a, b) = scale h / |h|
            y_2 = centre_2 + b u_1 + a u_2,

        so that the first local coordinate points along the heading and the second one to its left. `a` and `b` are
        computed once in float64; from then on all of these numbers are exactly what they denote, so that every window
        is an exactly defined constraint. Local coordinates have the names of the variables.

        The cells of the region are kept in a spatial index, so that a window costs what is near it.

        Args:
            centres: one centre per row.
            half_width: a number, or one per variable.
            headings: one vector per row, in the plane; by default windows are not turned.
            scales: one positive number per row, or one for all; by default 1.
            visible: whether only those points count that can be seen from the centre: whose whole segment from there
                satisfies the constraint. The region is then bounded and in the plane. A point of such a window stands
                for the point of the region that [`to_map`][pal.RegionBatch.to_map] rounds it to, so that steps from
                point to point never leave the region.

        >>> import pal
        >>> x, y = pal.reals("x", "y")
        >>> room = pal.Region(x.between(0, 9) & y.between(0, 9) & ~(x.between(2, 3) & y.between(2, 3)))
        >>> views = room.windows([[2, 2], [9, 5]], 1, headings=[[1, 0], [0, 1]])
        >>> views.volume, views.contains([[0.5, 0.5], [0.5, 0.5]])
        (array([3., 2.]), array([False,  True]))
        """
        from .batch import windows

        return windows(self, centres, half_width, headings, scales, visible)

    def contains_segments(self, starts: ArrayLike, ends: ArrayLike) -> NDArray[np.bool_]:
        """Whether all points between `starts` and `ends` satisfy the constraint, exactly, strictness included: one answer
        for each segment.

        >>> import pal
        >>> x, y = pal.reals("x", "y")
        >>> room = pal.Region(x.between(0, 9) & y.between(0, 9) & ~(x.between(2, 3) & y.between(2, 3)))
        >>> room.contains_segments([[0, 0], [0, 0]], [[9, 1], [9, 9]])
        array([ True, False])
        """
        first, second = _arrays.float64(starts, "starts"), _arrays.float64(ends, "ends")
        _arrays.check_width(first.shape, self.variables, "starts")
        if first.shape != second.shape:
            raise ValueError(f"each start has its end; the shapes are {first.shape} and {second.shape}")
        if first.size == 0:
            return np.empty(first.shape[:-1], dtype=bool)
        found = self._map.contains_segments(first.reshape(-1), second.reshape(-1))
        return found.reshape(first.shape[:-1])

    @cached_property
    def _uniform(self) -> Density:
        from .density import Density

        constant = _core.SumOfSquaresSettings(0, 1, "orthonormal", None, 0)
        return Density._of(_core.Family(self._core, constant).densities(np.zeros(2))[0], (_uniform, (self,)))

    def sample(self, count: int, seed: int | None = None) -> FloatArray:
        """Independent points that are uniform on the region, one per row.

        All of them satisfy the constraint under exact evaluation.

        The columns are in the order of `variables`.

        Args:
            count: the number of points.
            seed: from 0 to 2**64 - 1; the same seed gives the same points. By default they differ from call to call.
        """
        return self._uniform.sample(count, seed)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draws the region; see [`pal.plot.region`][]. Without axes, the region of a constraint with Boolean variables has
        a panel for each assignment; see [`pal.plot.panels`][]."""
        from . import plot

        if ax is None and self.constraint.booleans:
            return plot.panels(self, **options)
        return plot.region(self, ax=ax, **options)

    def __repr__(self) -> str:
        return f"Region({', '.join(self.variables)}: {shortened(self._constraint.formula)})"

    def _repr_png_(self) -> bytes | None:
        """The picture that notebooks show; `None` where there is none."""
        from ._pictures import png

        return png(self) if len(self._axes.variables) in (1, 2, 3) else None

    def __copy__(self) -> Region:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Region:
        # A region never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._knots is not None:
            return _region_with_knots, (self._constraint, self._knots)
        return Region, (self._constraint, None, self._chosen)


def _region_with_knots(constraint: Constraint, knots: list[list[Number]]) -> Region:
    return Region(constraint).with_knots(knots)


def _uniform(region: Region) -> Density:
    return region._uniform
