"""Constraints: variables, connectives, and where else formulas come from.

Constants are exact: an int, a `Fraction`, a `Decimal` or a text such as `"1/3"` stands for itself, and a float for
exactly the number that it denotes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Union

from numpy.typing import NDArray

import numpy as np

from . import _arrays, _core
from ._arrays import Points
from ._core import Formula, PiecewiseTerm, Polynomial, Term, Weight

Number = Union[int, float, str, Fraction, Decimal]


def real(name: str) -> Term:
    """Declares a real variable.

    Args:
        name: its name, which regions, points by name and files have too.

    Returns:
        the variable as a term, from which other terms, polynomials and comparisons are made.

    >>> import pal
    >>> x = pal.real("x")
    >>> 2 * x - 1 <= "1/3"
    3*x <= 2
    """
    return Term({_name(name): 1}, 0)


class Terms(tuple[Term, ...]):
    """Terms in a row, as [`reals`][pal.reals] returns them: a tuple that matrices can be multiplied with.

    >>> import numpy as np, pal
    >>> variables = pal.reals("x", "y")
    >>> np.array([[1, 1], [-1, 0], [0, -1]]) @ variables <= [1, 0, 0]
    x + y <= 1 & x >= 0 & y >= 0
    """

    __slots__ = ()
    # Keeps numpy from taking terms for numbers.
    __array_ufunc__ = None

    def __rmatmul__(self, matrix: Any) -> TermVector:
        return TermVector(self).__rmatmul__(matrix)


class TermVector:
    """A vector of terms, such as `A @ variables`. Comparisons are made entry by entry, and all of them must hold:
    `A @ variables <= b` is one formula.

    Args:
        terms: the entries.

    >>> import numpy as np, pal
    >>> vector = np.array([[1, 2], [3, 4]]) @ pal.reals("x", "y")
    >>> vector - 1
    [x + 2*y - 1, 3*x + 4*y - 1]
    >>> vector <= [1, 0]
    x + 2*y <= 1 & 3*x + 4*y <= 0
    """

    __slots__ = ("terms",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, terms: Iterable[Term]) -> None:
        #: The entries.
        self.terms = tuple(terms)

    def __len__(self) -> int:
        return len(self.terms)

    def __getitem__(self, index: int) -> Term:
        return self.terms[index]

    def __rmatmul__(self, matrix: Any) -> TermVector:
        rows = _numbers(matrix)
        if np.ndim(rows) != 2 or rows.shape[1] != len(self):
            shape = " x ".join(map(str, np.shape(rows)))
            raise ValueError(f"a matrix with {len(self)} columns fits these terms; the shape of this one is {shape}")
        zero = Term({}, 0)
        return TermVector(sum((a * term for a, term in zip(row, self.terms)), zero) for row in rows.tolist())

    def _each(self, other: Any) -> list[Any]:
        """The other side entry by entry: a number or term for all of them, or one for each."""
        if isinstance(other, (Term, str, Fraction, Decimal)) or np.ndim(other) == 0:
            return [other] * len(self)
        if isinstance(other, TermVector):
            other = other.terms
        entries = list(other) if isinstance(other, (list, tuple)) else _numbers(other).tolist()
        if len(entries) != len(self):
            raise ValueError(f"{len(self)} terms are compared with {len(entries)} entries; give one or one for each")
        return entries

    def __add__(self, other: Any) -> TermVector:
        return TermVector(a + b for a, b in zip(self.terms, self._each(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> TermVector:
        return TermVector(a - b for a, b in zip(self.terms, self._each(other)))

    def __rsub__(self, other: Any) -> TermVector:
        return TermVector(b - a for a, b in zip(self.terms, self._each(other)))

    def __neg__(self) -> TermVector:
        return TermVector(-a for a in self.terms)

    def __le__(self, other: Any) -> Formula:
        return all_of(a <= b for a, b in zip(self.terms, self._each(other)))

    def __lt__(self, other: Any) -> Formula:
        return all_of(a < b for a, b in zip(self.terms, self._each(other)))

    def __ge__(self, other: Any) -> Formula:
        return all_of(a >= b for a, b in zip(self.terms, self._each(other)))

    def __gt__(self, other: Any) -> Formula:
        return all_of(a > b for a, b in zip(self.terms, self._each(other)))

    def __eq__(self, other: Any) -> Formula:  # type: ignore[override]
        return all_of(a == b for a, b in zip(self.terms, self._each(other)))

    def __ne__(self, other: Any) -> Formula:  # type: ignore[override]
        return ~(self == other)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.terms))}]"


def _numbers(values: Any) -> Any:
    """An array of numbers with their types kept: fractions stay fractions, and tensors become arrays."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return values if isinstance(values, np.ndarray) else np.array(values, dtype=object)


def reals(*names: str) -> Terms:
    """Declares several real variables. The order of declaration is the order of coordinates.

    Matrices can be multiplied with the result: `A @ pal.reals("x", "y") <= b` is a formula.

    Args:
        *names: the names, one argument each.

    Returns:
        a tuple of variables, as many as there are names.

    >>> import pal
    >>> speed, gap = pal.reals("speed", "gap")
    >>> safe = (gap >= 2) & (speed + gap <= 30)
    >>> safe.reals
    ['speed', 'gap']

    Where one formula uses several declarations of a name, the earliest counts: a condition that declares a variable
    anew does not move the columns of a region that it is joined to.
    """
    if len(names) == 1 and isinstance(names[0], str) and re.search(r"[\s,]", names[0]):
        parts = ", ".join(f'"{part}"' for part in re.split(r"[\s,]+", names[0]) if part)
        raise ValueError(
            f"each name is an argument of its own: pal.reals({parts}); a single variable with this name is "
            f"pal.real({names[0]!r})"
        )
    return Terms(real(name) for name in names)


def boolean(name: str) -> Formula:
    """Declares a Boolean variable.

    Args:
        name: its name.

    Returns:
        the variable as a formula, to be joined to others by `&`, `|` and `~`.

    >>> import pal
    >>> x, door = pal.real("x"), pal.boolean("door")
    >>> pal.Region(x.between(0, 2) & (door | (x <= 1))).exact_volume
    Fraction(3, 1)
    """
    return Formula.boolean(_name(name))


def booleans(*names: str) -> tuple[Formula, ...]:
    """Declares several Boolean variables.

    Args:
        *names: the names, one argument each.

    Returns:
        a tuple of formulas, as many as there are names.

    >>> import pal
    >>> a, b = pal.booleans("a", "b")
    >>> pal.implies(a, b)
    !a | b
    """
    return tuple(boolean(name) for name in names)


def implies(condition: Formula | bool, consequence: Formula | bool) -> Formula:
    """The formula that holds unless the condition holds and the consequence does not.

    Args:
        condition: a formula.
        consequence: what must hold where the condition does.

    Returns:
        the formula `~condition | consequence`.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.Constraint(pal.implies(x > 1, y > 1), ["x", "y"]).contains([[0, 0], [2, 0], [2, 2]])
    array([ True, False,  True])
    """
    return Formula.any([~Formula.all([condition]), consequence])


def _listed(parts: tuple[Formula | bool | Iterable[Formula | bool], ...]) -> list[Formula | bool]:
    """Formulas that were given one by one, in lists or by generators, as one list."""
    listed: list[Formula | bool] = []
    for part in parts:
        if isinstance(part, Iterable):
            listed.extend(part)
        else:
            listed.append(part)
    return listed


def all_of(*parts: Formula | bool | Iterable[Formula | bool]) -> Formula:
    """The conjunction of all parts; true if there are none.

    Args:
        parts: formulas, one by one, from a list or from a generator.

    Returns:
        the formula that all of them hold.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.all_of(v >= 0 for v in (x, y))
    x >= 0 & y >= 0
    >>> pal.all_of(x >= 0, y >= 0, x + y <= 1)
    x >= 0 & y >= 0 & x + y <= 1
    """
    return Formula.all(_listed(parts))


def any_of(*parts: Formula | bool | Iterable[Formula | bool]) -> Formula:
    """The disjunction of all parts; false if there are none.

    Args:
        parts: formulas, one by one, from a list or from a generator.

    Returns:
        the formula that at least one of them holds.

    >>> import pal
    >>> x = pal.real("x")
    >>> pal.Region(pal.any_of(x.between(i, i + 0.25) for i in range(3))).exact_volume
    Fraction(3, 4)
    >>> pal.any_of(x < 0, x > 1)
    x < 0 | x > 1
    """
    return Formula.any(_listed(parts))


def ite(condition: Formula | bool, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds and `no` elsewhere: a formula of formulas, a weight of polynomials.

    Args:
        condition: what decides.
        yes: a formula, or a polynomial, a term, a number or a weight.
        no: the same kind of thing.

    Returns:
        a formula where both cases are formulas, else a weight.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.ite(x <= 0, y <= 1, y <= 2)
    ite(x <= 0, y <= 1, y <= 2)
    >>> weight = pal.ite(x <= y, x * y, 2 * x**2)
    >>> pal.wmi(x.between(0, 1) & y.between(0, 1), weight).total
    Fraction(5, 8)
    """
    if all(isinstance(case, (Formula, bool, np.bool_)) for case in (yes, no)):
        return Formula.ite(condition, yes, no)
    return Weight.ite(condition, yes, no)


def minimum(*terms: Term | PiecewiseTerm | Number) -> PiecewiseTerm:
    """The smallest of some linear terms and numbers. Comparisons with it are formulas, and so are those with
    `maximum` and with `abs(term)`.

    Args:
        *terms: linear terms, piecewise linear terms and numbers.

    Returns:
        a piecewise linear term.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.minimum(x, y, 2) >= 1
    x >= 1 & y >= 1
    >>> pal.Region(abs(x) + abs(y) <= 1).exact_volume
    Fraction(2, 1)
    """
    return _core.minimum(list(terms))


def maximum(*terms: Term | PiecewiseTerm | Number) -> PiecewiseTerm:
    """The largest of some linear terms and numbers; see [`minimum`][pal.minimum].

    Args:
        *terms: linear terms, piecewise linear terms and numbers.

    Returns:
        a piecewise linear term.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.maximum(x, y, 0) <= 1
    x <= 1 & y <= 1
    """
    return _core.maximum(list(terms))


def rational(value: Number) -> Fraction:
    """The exact value of a number, as formulas take it.

    Args:
        value: an int, a float, a `Fraction`, a `Decimal`, or a text such as `"1/3"` or `"0.1"`.

    Returns:
        a fraction; of a float, exactly the number that it denotes.

    >>> import pal
    >>> pal.rational("0.1"), pal.rational(0.5)
    (Fraction(1, 10), Fraction(1, 2))
    >>> pal.rational(0.1) == pal.rational("0.1")
    False
    """
    return _core.rational(value)


class Constraint:
    """A formula over an ordered list of variables: what files hold and regions are made of.

    The order of `variables` is the order of coordinates everywhere. Without one it is that of their declaration. A
    variable that the formula does not mention counts too: as a real it is unbounded, as a Boolean it doubles every
    volume.

    Args:
        formula: what must hold.
        variables: names of the real variables, in the order of coordinates.
        booleans: names of the Boolean variables.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> c = pal.Constraint((x >= 0) & (x + y <= 1) & (y >= 0), variables=["y", "x"])
    >>> c.contains([[0.25, 0.5], [0.75, 0.5]])
    array([ True, False])
    """

    __slots__ = ("_core",)

    def __init__(
        self, formula: Formula | bool, variables: Sequence[str] | None = None, booleans: Sequence[str] | None = None
    ) -> None:
        lists = [None if names is None else [_name(name) for name in names] for names in (variables, booleans)]
        self._core = _core.Constraint(formula, *lists)

    @classmethod
    def _of(cls, core: _core.Constraint) -> Constraint:
        new = cls.__new__(cls)
        new._core = core
        return new

    @property
    def formula(self) -> Formula:
        """What must hold."""
        return self._core.formula

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the real variables, in the order of coordinates."""
        return tuple(self._core.reals)

    @property
    def booleans(self) -> tuple[str, ...]:
        """The names of the Boolean variables."""
        return tuple(self._core.booleans)

    def contains(self, points: Points) -> NDArray[np.bool_]:
        """Whether points satisfy the formula, exactly, strictness included. NaN and infinities do not.

        Args:
            points: coordinates along the last axis, in the order of `variables`; or a dict of columns or a table of
                pandas, by name.
        """
        if not self.variables:
            raise ValueError("the constraint has no real variables, so there are no points to test")
        flat, shape = _arrays.points(points, self.variables)
        return self._core.contains(flat).reshape(shape)

    def parse(self, term: str) -> Formula:
        """Reads one term of SMT-LIB over the variables, such as `"(<= (+ x y) 1)"`."""
        return self._core.parse_term(term)

    def to_smtlib(self) -> str:
        """A script of SMT-LIB 2 that [`parse_smtlib`][pal.parse_smtlib] reads back."""
        return self._core.to_smtlib()

    def __and__(self, other: Constraint | Formula | bool) -> Constraint:
        return self._joined(other, lambda a, b: a & b)

    def __rand__(self, other: Formula | bool) -> Constraint:
        return self._joined(other, lambda a, b: b & a)

    def __or__(self, other: Constraint | Formula | bool) -> Constraint:
        return self._joined(other, lambda a, b: a | b)

    def __ror__(self, other: Formula | bool) -> Constraint:
        return self._joined(other, lambda a, b: b | a)

    def __invert__(self) -> Constraint:
        return Constraint(~self.formula, self.variables, self.booleans)

    def _joined(self, other: Any, connect: Callable[[Formula, Any], Formula]) -> Any:
        """The connection with another constraint or formula. The variables of this one come first, in their order, then
        those that only the other one has."""
        if isinstance(other, Constraint):
            formula, more = connect(self.formula, other.formula), other
        elif isinstance(other, (Formula, bool, np.bool_)):
            formula, more = connect(self.formula, other), Constraint(other)  # type: ignore[arg-type]
        else:
            return NotImplemented
        variables = dict.fromkeys((*self.variables, *more.variables))
        return Constraint(formula, list(variables), list(dict.fromkeys((*self.booleans, *more.booleans))))

    def __repr__(self) -> str:
        booleans = f"; {', '.join(self.booleans)}" if self.booleans else ""
        return f"Constraint({', '.join(self.variables)}{booleans}: {self.formula!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_smtlib, (self.to_smtlib(),)


def shortened(formula: Formula) -> str:
    """The text of a formula for one line: its beginning, and how many inequalities it has, where it is long."""
    text = repr(formula)
    return text if len(text) <= 200 else f"{text[:160]}... ({formula.num_atoms} inequalities)"


def as_formula(value: Any, what: str) -> Formula | bool:
    """The formula that an argument is; an error that names the argument, if it is none."""
    if isinstance(value, (Formula, bool, np.bool_)):
        return value  # type: ignore[return-value]
    if isinstance(value, Constraint):
        return value.formula
    way = "; text of SMT-LIB is read by `constraint.parse(text)`" if isinstance(value, str) else ""
    raise TypeError(f"{what} must be a formula such as x <= 1, not {type(value).__name__}{way}")


Constrained = Union[Formula, Constraint, bool]


def as_constraint(value: Constrained, variables: Sequence[str] | None = None) -> Constraint:
    """A formula or a constraint as a constraint, with the variables in another order if one is given."""
    if isinstance(value, Constraint):
        if variables is None:
            return value
        return Constraint._of(value._core.with_order([_name(name) for name in variables]))
    if isinstance(value, (Formula, bool)):
        return Constraint(value, variables)
    way = ""
    if isinstance(value, str):
        way = "; pal.parse_smtlib(text) reads SMT-LIB, pal.read_geojson(path) a map"
    elif isinstance(value, (list, tuple)):
        way = "; pal.all_of(formulas) is the formula that all of them hold"
    elif hasattr(value, "constraint"):
        way = "; it has one: .constraint"
    raise TypeError(f"a constraint must be a formula such as x <= 1, or a Constraint, not {type(value).__name__}{way}")


def parse_smtlib(text: str) -> Constraint:
    """Reads a script of SMT-LIB 2: the conjunction of its asserts over its declared variables, in the order of
    declaration.

    Args:
        text: the script, in linear real arithmetic with Booleans.

    Returns:
        the constraint.

    Raises:
        ParseError: the script is not one, with line and column; or it uses what is not linear.

    >>> import pal
    >>> pal.parse_smtlib("(declare-const x Real) (assert (<= 0 x (/ 1 3)))").formula
    x >= 0 & 3*x <= 1
    """
    return Constraint._of(_core.parse_smtlib(text))


def read_smtlib(path: str | os.PathLike[str]) -> Constraint:
    """Reads a file of SMT-LIB 2; see [`parse_smtlib`][pal.parse_smtlib].

    Args:
        path: the file.

    Returns:
        the constraint.

    >>> import pal, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "interval.smt2")
    ...     _ = file.write_text("(declare-const x Real) (assert (<= 0 x 2))")
    ...     pal.read_smtlib(file)
    Constraint(x: x >= 0 & x <= 2)
    """
    return parse_smtlib(Path(path).read_text(encoding="utf-8"))


def read_geojson(
    path: str | os.PathLike[str], meaning: str = "forbidden", bounds: Sequence[Number] | None = None
) -> Constraint:
    """Reads a map of polygons as a constraint over `x` and `y`.

    Args:
        path: a file of GeoJSON. Its numbers are taken digit by digit.
        meaning: `"forbidden"` for obstacles, `"walkable"` for the allowed area.
        bounds: `x0, y0, x1, y1`, where the map ends. Overrides what the file says.

    Returns:
        the constraint.

    >>> import pal, pathlib, tempfile
    >>> pond = '{"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "pond.geojson")
    ...     _ = file.write_text(pond)
    ...     park = pal.read_geojson(file, bounds=[0, 0, 4, 3])
    >>> park.variables, pal.Region(park).exact_volume
    (('x', 'y'), Fraction(23, 2))
    """
    return parse_geojson(Path(path).read_text(encoding="utf-8"), meaning, bounds)


def parse_geojson(text: str, meaning: str = "forbidden", bounds: Sequence[Number] | None = None) -> Constraint:
    """Reads the text of a GeoJSON map of polygons as a constraint over `x` and `y`; see
    [`read_geojson`][pal.read_geojson].

    Args:
        text: GeoJSON. Its numbers are taken digit by digit.
        meaning: `"forbidden"` for obstacles, `"walkable"` for the allowed area.
        bounds: `x0, y0, x1, y1`, where the map ends. Overrides what the text says.

    Returns:
        the constraint.

    >>> import pal
    >>> square = '{"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]]}'
    >>> pal.Region(pal.parse_geojson(square, bounds=[0, 0, 4, 3])).exact_volume
    Fraction(11, 1)
    """
    return Constraint._of(_core.parse_geojson(text, meaning, None if bounds is None else list(bounds)))


def polygon(
    outer: Iterable[Sequence[Number]],
    holes: Iterable[Iterable[Sequence[Number]]] = (),
    variables: tuple[str, str] = ("x", "y"),
) -> Formula:
    """A simple polygon with holes, edges included, as a formula over two variables.

    Args:
        outer: the corners in order around the polygon, pairs of numbers.
        holes: the corners of each hole; the edges of holes belong to the polygon.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in the polygon.

    >>> import pal
    >>> pal.Region(pal.polygon([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)])).exact_volume
    Fraction(10, 1)
    """
    return _core.polygon(_corners(outer), [_corners(hole) for hole in holes], *variables)


def _corners(ring: Any) -> list[tuple[Any, Any]]:
    """The corners of a ring as pairs; an error that says what a corner is, where one is none."""
    corners = []
    for k, corner in enumerate(ring):
        if isinstance(corner, (str, bytes)) or not hasattr(corner, "__len__") or len(corner) != 2:
            raise ValueError(f"the corners of a polygon are pairs such as (0, 1.5); corner {k} is {corner!r}")
        corners.append((corner[0], corner[1]))
    return corners


def from_shapely(geometry: Any, variables: tuple[str, str] = ("x", "y")) -> Formula:
    """A `Polygon` or `MultiPolygon` of shapely, edges included, as a formula over two variables.

    Coordinates of shapely are floats and stand for exactly what they denote. shapely itself is not needed: anything
    with its attributes will do.

    Args:
        geometry: the polygon or the polygons.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in one of the polygons.

    >>> import pal
    >>> from shapely import box
    >>> pal.Region(pal.from_shapely(box(0, 0, 4, 3))).exact_volume
    Fraction(12, 1)
    """
    parts = getattr(geometry, "geoms", [geometry])
    formulas = []
    for part in parts:
        if not hasattr(part, "exterior") or not hasattr(part, "interiors"):
            kind = getattr(part, "geom_type", type(part).__name__)
            raise TypeError(f"only polygons have an inside; this is a {kind}")
        rings = [[point[:2] for point in ring.coords] for ring in (part.exterior, *part.interiors)]
        formulas.append(polygon(rings[0], rings[1:], variables))
    return any_of(formulas)


def from_geopandas(series: Any, variables: tuple[str, str] = ("x", "y")) -> Formula:
    """The union of the polygons of a GeoSeries or a GeoDataFrame of geopandas, as a formula over two variables.

    Missing and empty geometries are left out. geopandas itself is not needed: anything with its attributes, or a list
    of polygons of shapely, will do.

    Args:
        series: the series, or a table with a column of geometries.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in one of the polygons.

    >>> import pal
    >>> from shapely import box
    >>> pal.Region(pal.from_geopandas([box(0, 0, 2, 2), None, box(1, 1, 3, 3)])).exact_volume
    Fraction(7, 1)
    """
    series = getattr(series, "geometry", series)
    geometries = [each for each in series if each is not None and not getattr(each, "is_empty", False)]
    return any_of(from_shapely(each, variables) for each in geometries)


def from_wkt(text: str, variables: tuple[str, str] = ("x", "y")) -> Formula:
    """The union of the polygons of well-known text (WKT), edges included, as a formula over two variables. Numbers are
    taken digit by digit.

    Args:
        text: a `POLYGON`, a `MULTIPOLYGON` or a collection of them.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in one of the polygons.

    >>> import pal
    >>> pal.Region(pal.from_wkt("POLYGON ((0 0, 4 0, 4 4, 0 4), (1 1, 2 1, 2 2, 1 1))")).exact_volume
    Fraction(31, 2)
    """
    return _core.parse_wkt(text, *variables)


def from_wkb(content: bytes | str, variables: tuple[str, str] = ("x", "y")) -> Formula:
    """The union of the polygons of well-known binary (WKB), or of its hexadecimal digits, edges included, as a formula
    over two variables.

    Args:
        content: the bytes, or a text of hexadecimal digits.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in one of the polygons.

    >>> import pal
    >>> from shapely import box
    >>> pal.Region(pal.from_wkb(box(0, 0, 4, 3).wkb)).exact_volume
    Fraction(12, 1)
    """
    return _core.parse_wkb(content.encode() if isinstance(content, str) else bytes(content), *variables)


def parse_pishield(text: str) -> Constraint:
    """Reads requirements in the format of PiShield: a line `ordering y_0 y_1 ..`, then one disjunction of inequalities
    per line. The coordinates are `y_0`, `y_1`, .. in the order of their numbers.

    Args:
        text: the requirements.

    Returns:
        the constraint that all of them hold.

    >>> import pal
    >>> pal.parse_pishield("ordering y_1 y_0\\ny_0 - 2y_1 >= 0.5 or neg y_1 >= 3")
    Constraint(y_0, y_1: 2*y_0 - 4*y_1 >= 1 | y_1 < 3)
    """
    return Constraint._of(_core.parse_pishield(text))


def read_pishield(path: str | os.PathLike[str]) -> Constraint:
    """Reads a file of requirements in the format of PiShield; see [`parse_pishield`][pal.parse_pishield].

    Args:
        path: the file.

    Returns:
        the constraint that all requirements hold.

    >>> import pal, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "requirements.txt")
    ...     _ = file.write_text("ordering y_0 y_1\\ny_0 - y_1 >= 0")
    ...     pal.read_pishield(file)
    Constraint(y_0, y_1: y_0 - y_1 >= 0)
    """
    return parse_pishield(Path(path).read_text(encoding="utf-8"))


def from_mask(mask: Any, tolerance: float = 0.75, variables: tuple[str, str] = ("x", "y")) -> Formula:
    """Polygons that cover the obstacles of a picture, as a formula over two variables.

    Pixels are squares with sides of 1; x runs to the right from 0 and y upwards from 0 at the lower left corner. Every
    obstacle pixel is covered, edges included, and no point farther than about the tolerance from all of them is.

    Args:
        mask: rows of truth values from the top, true where there is an obstacle.
        tolerance: by how many pixels polygons may reach beyond obstacles to have fewer corners; with 0 they are exactly
            the pixels.
        variables: the names of the coordinates.

    Returns:
        the formula that a point is in one of the polygons; the free area is its negation within bounds.

    >>> import numpy as np, pal
    >>> steps = np.tri(4, dtype=bool)
    >>> pal.Region(pal.from_mask(steps, tolerance=0)).exact_volume, pal.Region(pal.from_mask(steps)).exact_volume
    (Fraction(10, 1), Fraction(23, 2))
    """
    array = np.asarray(mask)
    if array.ndim != 2 or array.dtype != bool:
        raise TypeError(f"a mask is a table of truth values; this has {array.ndim} axes of {array.dtype}")
    return _core.mask_formula(array.shape[1], np.ascontiguousarray(array).reshape(-1), float(tolerance), *variables)


def read_mask(path: str | os.PathLike[str], threshold: float = 0.5) -> NDArray[np.bool_]:
    """Reads a PNG file as a mask for [`from_mask`][pal.from_mask]: pixels darker than the threshold, from 0 (black) to
    1 (white), are obstacles; transparent ones are not.

    Args:
        path: the file.
        threshold: the brightness from which on a pixel is free.

    Returns:
        rows of truth values from the top, true where there is an obstacle.

    >>> import base64, pal, pathlib, tempfile
    >>> png = (  # a black pixel on the left of a white one
    ...     "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII="
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mask.png")
    ...     _ = file.write_bytes(base64.b64decode(png))
    ...     pal.read_mask(file)
    array([[ True, False]])
    """
    width, flat = _core.png_mask(Path(path).read_bytes(), float(threshold))
    return flat.reshape(-1, width)


def from_pysmt(formula: Any) -> Formula:
    """A formula of pysmt over reals and Booleans, exactly, with the variables in the order in which they were made.

    pysmt itself is not needed: the formula is asked for its SMT-LIB text.

    Args:
        formula: a formula of pysmt.

    Returns:
        the formula.

    >>> import pal
    >>> from pysmt.shortcuts import GE, LE, And, Plus, Real, Symbol
    >>> from pysmt.typing import REAL
    >>> a, b = Symbol("a", REAL), Symbol("b", REAL)
    >>> pal.from_pysmt(And(LE(Plus(a, b), Real(1)), GE(a, Real(0))))
    a + b <= 1 & a >= 0
    """
    try:
        # pysmt numbers its nodes as they are made.
        free = sorted(formula.get_free_variables(), key=lambda symbol: symbol.node_id())
        body = formula.to_smtlib(daggify=True)
    except AttributeError:
        raise TypeError(f"expected a formula of pysmt, not {type(formula).__name__}") from None
    lines = []
    for symbol in free:
        sort = str(symbol.symbol_type())
        if sort not in ("Real", "Bool"):
            raise TypeError(f"variable `{symbol.symbol_name()}` has type {sort}; Real and Bool are possible")
        lines.append(f"(declare-const {symbol.to_smtlib()} {sort})")
    return parse_smtlib("\n".join([*lines, f"(assert {body})"])).formula


def substitute(formula: Formula, values: Mapping[str, Any]) -> Formula:
    """The formula with variables replaced: reals by terms or numbers, Booleans by formulas or truth values.

    Args:
        formula: the formula.
        values: what to put in, by the names of variables.

    Returns:
        the formula without these variables.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> pal.substitute(x + y <= 1, {"y": 2 * x})
    3*x <= 1
    """
    return formula.substitute(dict(values))


def _name(name: str) -> str:
    if not isinstance(name, str):
        way = "; pal.reals(*names) takes a list of them" if isinstance(name, (list, tuple)) else ""
        raise TypeError(f"the name of a variable is a text, not a {type(name).__name__}{way}")
    if not name:
        raise ValueError("the name of a variable must not be empty")
    return name


__all__ = [
    "Constraint", "Formula", "PiecewiseTerm", "Polynomial", "Term", "TermVector", "Terms", "Weight", "all_of",
    "any_of", "boolean", "booleans", "from_geopandas", "from_mask", "from_pysmt", "from_shapely", "from_wkb",
    "from_wkt", "implies", "ite", "maximum", "minimum", "parse_geojson", "parse_pishield", "parse_smtlib",
    "polygon", "rational", "read_geojson", "read_mask", "read_pishield", "read_smtlib", "real", "reals",
    "substitute",
]  # fmt: skip
