"""Densities over real and Boolean variables, and over categories.

A point has its real variables first, then a 0 or 1 for every Boolean one, in the order of declaration. A category is a
group of Boolean variables of which exactly one is true; dicts and tables may hold its labels in one column.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays, _core
from ._arrays import FloatArray, Points
from ._core import Formula
from .density import ENTROPY_DEFAULT, MODE_DEFAULT, Entropy, Marginal, Mode
from .errors import FileError
from .formula import Constrained, Constraint, shortened
from .integrals import Integrand
from .region import Region

# The probabilities of combinations of values.
Table = dict[tuple[Any, ...], float]


class Category:
    """A variable that has one of several named values.

    Formulas compare it with a value; constraints that mention it give it exactly one. In arrays it has one column of 0
    and 1 per value.

    Args:
        name: its name.
        values: the names of its values, at least two, in the order of their columns.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> mode = pal.Category("mode", ["walk", "bike", "car"])
    >>> family = pal.HistogramMixture(x.between(0, 30) & pal.implies(mode == "walk", x <= 6), bins=5, components=1)
    >>> family.columns
    ('x', 'mode=walk', 'mode=bike', 'mode=car')
    >>> density = family.density(np.zeros(family.num_params))
    >>> {label: round(p, 3) for (label,), p in density.table("mode").items()}
    {'walk': 0.091, 'bike': 0.455, 'car': 0.455}
    """

    __slots__ = ("_formulas", "name", "values")

    def __init__(self, name: str, values: Sequence[str]) -> None:
        self.name = str(name)
        self.values = tuple(str(value) for value in values)
        self._formulas = dict(zip(self.values, _core.category_formulas(self.name, list(self.values))))

    def __eq__(self, value: object) -> Formula:  # type: ignore[override]
        if value not in self._formulas:
            raise ValueError(f"the category `{self.name}` has no value {value!r}; it has {', '.join(self.values)}")
        return self._formulas[str(value)]

    def __ne__(self, value: object) -> Formula:  # type: ignore[override]
        return ~(self == value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Sequence[str]) -> Formula:
        """The formula that the category has one of some values."""
        from .formula import any_of

        return any_of([self == value for value in values])

    def __repr__(self) -> str:
        return f"Category({self.name!r}, {list(self.values)!r})"


class _Columns:
    """The columns of mixed points: reals, then Boolean variables, of which some are values of categories."""

    def __init__(self, reals: Sequence[str], booleans: Sequence[str]) -> None:
        self.reals = tuple(reals)
        self.booleans = tuple(booleans)
        self.names = self.reals + self.booleans
        groups: dict[str, list[str]] = {}
        for name in booleans:
            category, separator, value = name.partition("=")
            if separator:
                groups.setdefault(category, []).append(value)
        self.categories = {name: tuple(values) for name, values in groups.items() if len(values) > 1}
        # Boolean variables, with categories in the place of those that are their values.
        self.discrete = tuple(dict.fromkeys(self.short(name) for name in booleans))

    def short(self, boolean: str) -> str:
        """The category that a Boolean variable is a value of, or the variable itself."""
        category = boolean.partition("=")[0]
        return category if category in self.categories else boolean

    def values(self, name: str) -> tuple[Any, ...]:
        """The values of a category or a Boolean variable."""
        return self.categories.get(name, (False, True))

    def flat(self, points: Points) -> tuple[FloatArray, tuple[int, ...]]:
        """Points as flat rows, and the shape of the axes before the last. Columns with labels become 0 and 1."""
        if isinstance(points, Mapping) or hasattr(points, "columns"):
            have = list(points) if isinstance(points, Mapping) else list(points.columns)
            columns: dict[str, Any] = {}
            for name in have:
                if name in self.categories and name not in self.names:
                    columns.update(self._one_hot(name, np.asarray(points[name])))
                else:
                    columns[name] = points[name]
            points = columns
        return _arrays.points(points, self.names)

    def _one_hot(self, category: str, labels: Any) -> dict[str, Any]:
        values = self.categories[category]
        wrong = next((label for label in labels.reshape(-1) if label not in values), None)
        if wrong is not None:
            raise ValueError(f"the category `{category}` has no value {wrong!r}; it has {', '.join(values)}")
        return {f"{category}={value}": (labels == value).astype(np.float64) for value in values}

    def named(self, points: FloatArray) -> dict[str, Any]:
        """Columns by name: numbers, truth values, and labels of categories."""
        by_name = {name: points[..., k] for k, name in enumerate(self.names)}
        result: dict[str, Any] = {name: by_name[name] for name in self.reals}
        for name in self.booleans:
            category = name.partition("=")[0]
            if category not in self.categories:
                result[name] = by_name[name] == 1
            elif category not in result:
                values = self.categories[category]
                one_hot = np.stack([by_name[f"{category}={value}"] for value in values], axis=-1)
                result[category] = np.array(values)[one_hot.argmax(axis=-1)]
        return result

    def given(self, values: Mapping[str, Any]) -> tuple[list[tuple[str, float]], list[tuple[str, bool]]]:
        """Values of reals, and truth values of Boolean variables, those of categories included."""
        reals: list[tuple[str, float]] = []
        booleans: list[tuple[str, bool]] = []
        for name, value in values.items():
            if name in self.categories and name not in self.booleans:
                if value not in self.categories[name]:
                    known = ", ".join(self.categories[name])
                    raise ValueError(f"the category `{name}` has no value {value!r}; it has {known}")
                booleans.extend((f"{name}={other}", other == value) for other in self.categories[name])
            elif name in self.booleans:
                if value not in (0, 1):
                    raise ValueError(f"`{name}` is a Boolean variable; give True or False, not {value!r}")
                booleans.append((name, bool(value)))
            else:
                reals.append((name, float(value)))
        return reals, booleans

    def expanded(self, names: Sequence[str]) -> list[str]:
        """Names of Boolean variables, with all values of a category in its place."""
        values = (
            [f"{name}={value}" for value in self.categories[name]]
            if name in self.categories and name not in self.booleans
            else [name]
            for name in names
        )
        return list(itertools.chain(*values))

    def table(self, names: Sequence[str], rows: Sequence[Sequence[bool]], probabilities: FloatArray) -> Table:
        """A table with labels in the place of the values of categories."""
        result: Table = {}
        for row, probability in zip(rows, probabilities.tolist()):
            rest, possible = list(row), True
            key: list[Any] = []
            for name in names:
                if name in self.categories and name not in self.booleans:
                    width = len(self.categories[name])
                    chosen, rest = rest[:width], rest[width:]
                    possible = possible and sum(chosen) == 1
                    key.append(self.categories[name][chosen.index(True)] if True in chosen else None)
                else:
                    key.append(rest.pop(0))
            if possible:
                result[tuple(key)] = probability

        def rank(key: tuple[Any, ...]) -> tuple[int, ...]:
            return tuple(
                self.categories[name].index(value) if isinstance(value, str) else int(value)
                for name, value in zip(names, key)
            )

        # Values of categories in the order in which they were declared, false before true.
        return dict(sorted(result.items(), key=lambda item: rank(item[0])))


class MixedFamily:
    """A family of densities over real and Boolean variables: components of any kind of family, each with a probability
    for every Boolean variable,

        p(y, b) = sum_m  w_m q_m(y) prod_b t_mb(b) / I_m  where the constraint holds, and 0 elsewhere

    A parameter vector is one of the kind of family, followed by one logit per component and Boolean variable, component
    by component. Zeros are close to the uniform density. The kinds of families make one by themselves where a constraint
    has Boolean variables.

    Args:
        kind: `pal.SplineMixture`, `pal.SumOfSquares` or `pal.HistogramMixture`.
        region: a region, or a constraint that is made into one.
        options: the settings of the kind, such as `knots` and `components`.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> wet = pal.boolean("wet")
    >>> family = pal.HistogramMixture(x.between(0, 4) & (~wet | (x <= 1)), bins=4, components=1)
    >>> density = family.density(np.zeros(family.num_params))
    >>> round(density.probability(wet), 12), round(density.probability((wet | (x >= 3)) & (x >= "1/2")), 12)
    (0.2, 0.3)
    >>> bool((family.sample(np.zeros(family.num_params), 100, seed=1)[:, 1] <= 1).all())
    True
    """

    def __init__(self, kind: Any, region: Region | Constrained, **options: Any) -> None:
        region = region if isinstance(region, Region) else Region(region)
        self._set(_core.MixedFamily(region._core, kind._settings(region, **options)))

    def _set(self, core: _core.MixedFamily) -> None:
        self._core: Any = core
        self._columns = _Columns(core.variables, core.booleans)

    @classmethod
    def _of(cls, core: _core.MixedFamily) -> MixedFamily:
        new = cls.__new__(cls)
        new._set(core)
        return new

    @property
    def constraint(self) -> Constraint:
        """The constraint that the family was compiled on, with exactly one value for every category."""
        return Constraint._of(self._core.constraint)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the real variables."""
        return self._columns.reals

    @property
    def booleans(self) -> tuple[str, ...]:
        """The names of the Boolean variables."""
        return self._columns.booleans

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The values of every category."""
        return dict(self._columns.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns of a point: real variables, then Boolean ones."""
        return self._columns.names

    @property
    def free(self) -> tuple[str, ...] | None:
        """The free real variables, which determine all others, where equalities hold on the whole constraint; `None`
        where there are none."""
        free = self._core.free
        return None if free is None else tuple(free)

    @property
    def settings(self) -> Any:
        """How the components were set up: an object with one attribute per setting."""
        return self._core.settings

    @property
    def num_params(self) -> int:
        """The number of entries of a parameter vector."""
        return self._core.num_params

    @property
    def num_components(self) -> int:
        """The number of components."""
        return self._core.num_components

    @property
    def num_parts(self) -> int:
        """The number of parts of the support, on each of which the same assignments are allowed. It decides the cost."""
        return self._core.num_parts

    def random_params(self, rows: int | None = None, seed: int | None = None) -> FloatArray:
        """Parameter vectors with independent standard normal entries: `rows` of them, or a single one by default."""
        flat = self._core.random_params(1 if rows is None else _arrays.count(rows, "rows"), _arrays.seed(seed))
        return flat if rows is None else flat.reshape(rows, self.num_params)

    def log_prob(self, params: ArrayLike, points: Points) -> FloatArray:
        """Log-densities of mixed points: minus infinity outside the constraint. One parameter vector serves all points,
        or there is one for each."""
        rows, _ = self._rows(params)
        flat, shape = self._columns.flat(points)
        return self._core.log_prob(rows, flat).reshape(shape)[()]

    def log_prob_vjp(self, params: ArrayLike, points: Points, cotangent: ArrayLike) -> FloatArray:
        """The gradient of `sum_i cotangent_i log_prob_i` with respect to the parameters."""
        rows, shape = self._rows(params)
        flat, _ = self._columns.flat(points)
        weights = _arrays.float64(cotangent, "the cotangent").reshape(-1)
        return self._core.log_prob_vjp(rows, flat, weights).reshape(*shape, self.num_params)

    def density(self, params: ArrayLike) -> MixedDensity:
        """The density of one parameter vector."""
        rows, shape = self._rows(params)
        if len(rows) != self.num_params:
            full = (*shape, self.num_params)
            raise ValueError(f"one parameter vector makes a density; the shape of params is {full}")
        return MixedDensity._of(self._core.densities(rows)[0])

    def densities(self, params: ArrayLike) -> list[MixedDensity]:
        """One density for each parameter vector."""
        return [MixedDensity._of(core) for core in self._core.densities(self._rows(params)[0])]

    def probability(self, event: Formula, params: ArrayLike) -> FloatArray:
        """The probability of an event on real and Boolean variables under each parameter vector."""
        rows, shape = self._rows(params)
        return self._core.probability(event, rows).reshape(shape)[()]

    def sample(self, params: ArrayLike, count: int, seed: int | None = None) -> FloatArray:
        """Independent samples, `count` for each parameter vector, one per row along the last two axes. All of them
        satisfy the constraint under exact evaluation."""
        rows, shape = self._rows(params)
        count = _arrays.count(count, "the number of samples")
        samples = self._core.sample(rows, count, _arrays.seed(seed))
        return samples.reshape(*shape, count, len(self.columns))

    def points(self, table: Points) -> FloatArray:
        """Points as an array with one row each, from a dict of columns or a table of pandas. A column of a category holds
        its labels."""
        flat, shape = self._columns.flat(table)
        return flat.reshape(*shape, len(self.columns))

    def named(self, points: ArrayLike) -> dict[str, Any]:
        """The columns of points by name: numbers, truth values, and labels of categories. `pandas.DataFrame` takes it."""
        return self._columns.named(self.points(points))

    def save(self, path: str | os.PathLike[str], params: ArrayLike | None = None) -> None:
        """Writes a safetensors file: the family alone, or a model with parameter vectors. `pal.load` reads it."""
        rows = None if params is None else self._rows(params)[0]
        _core.write_file(os.fspath(path), self._core.write(rows))

    def _rows(self, params: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        rows, shape = _arrays.params(params, self.num_params)
        if not len(rows):
            raise ValueError("there is no parameter vector; give at least one")
        return rows, shape

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (bytes(self._core.write(None)),)

    def __repr__(self) -> str:
        settings = repr(self.settings)
        return f"MixedFamily({', '.join(self.columns)}; {settings})"


class MixedDensity:
    """One density over real and Boolean variables: made by a family, or by conditioning another density.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> wet = pal.boolean("wet")
    >>> family = pal.HistogramMixture(x.between(0, 4) & (~wet | (x <= 1)), bins=4, components=1)
    >>> density = family.density(np.zeros(family.num_params))
    >>> round(density.probability(wet), 6), round(density.given(wet=False).probability(x <= 1), 6)
    (0.2, 0.25)
    """

    __slots__ = ("_columns", "_core")

    def __init__(self) -> None:
        raise TypeError("densities are made by families: SplineMixture(constraint).density(params)")

    @classmethod
    def _of(cls, core: _core.MixedDensity) -> MixedDensity:
        new = cls.__new__(cls)
        new._set(core)
        return new

    def _set(self, core: _core.MixedDensity) -> None:
        self._core: Any = core
        self._columns = _Columns(core.variables, core.booleans)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns of a point: real variables, then Boolean ones."""
        return self._columns.names

    @property
    def constraint(self) -> Constraint:
        """Where the density may be positive."""
        return Constraint._of(self._core.constraint)

    def log_prob(self, points: Points) -> FloatArray:
        """The log-density of mixed points: minus infinity outside the constraint."""
        flat, shape = self._columns.flat(points)
        return self._core.log_prob(flat).reshape(shape)[()]

    def probability(self, event: Formula) -> float:
        """The probability of an event on real and Boolean variables."""
        return self._core.probability(event)

    def condition(self, condition: Formula) -> MixedDensity:
        """The density given that a condition on real and Boolean variables holds."""
        return MixedDensity._of(self._core.condition(condition))

    def given(self, values: Mapping[str, Any] | None = None, **more: Any) -> MixedDensity:
        """The density of the other variables, given values of some: `density.given(x=0.5, wet=True, mode="walk")`. One
        real variable or more must stay free; for values of all of them, see `table`."""
        merged = {**(values or {}), **more}
        if not merged:
            raise ValueError("give the value of at least one variable, such as wet=True")
        return MixedDensity._of(self._core.given(*self._columns.given(merged)))

    def table(self, *names: str, at: ArrayLike | None = None) -> Table:
        """The joint probabilities of Boolean variables and categories, by tuples of their values.

        Args:
            names: Boolean variables and categories; by default all of them.
            at: values of all real variables; the table is then conditional on them, as that of a classifier.
        """
        names = names or self._columns.discrete
        wanted = self._columns.expanded(names)
        if at is None:
            answer = self._core.table(wanted)
        else:
            answer = self._core.table_at(_arrays.float64(at, "the values of real variables").reshape(-1), wanted)
        return self._columns.table(names, *answer)

    def marginal(self, variable: str) -> Marginal:
        """The exact marginal of one real variable. Those of Boolean variables are tables."""
        return Marginal(self._core.marginal(variable))

    def mean(self) -> FloatArray:
        """The mean of every column: means of real variables, then probabilities of Boolean ones."""
        return self._core.mean()

    def covariance(self) -> FloatArray:
        """The covariance matrix of all columns."""
        n = len(self.columns)
        return self._core.covariance().reshape(n, n)

    def expectation(self, polynomial: Integrand, condition: Formula | None = None) -> float:
        """The expectation of a polynomial in the real variables times the indicator of a condition."""
        return self._core.expectation(polynomial, condition)

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> Entropy:
        """The entropy of assignments and reals together, in nats. More than 4096 assignments are an error."""
        return Entropy(*self._core.entropy(_core.EntropyOptions(float(tolerance))))

    def sample(self, count: int, seed: int | None = None) -> FloatArray:
        """Independent samples, one per row, all of which satisfy the constraint under exact evaluation."""
        samples = self._core.sample(_arrays.count(count, "the number of samples"), _arrays.seed(seed))
        return samples.reshape(-1, len(self.columns))

    def named(self, points: ArrayLike) -> dict[str, Any]:
        """The columns of points by name: numbers, truth values, and labels of categories."""
        flat, shape = self._columns.flat(points)
        return self._columns.named(flat.reshape(*shape, len(self.columns)))

    def mode(
        self,
        gap: float = MODE_DEFAULT.gap,
        nodes: int | None = MODE_DEFAULT.nodes,
        seconds: float | None = MODE_DEFAULT.seconds,
    ) -> Mode:
        """The point and assignment of largest density, with a certified bound."""
        return Mode(*self._core.mode(_core.ModeOptions(float(gap), nodes, seconds)))

    def plot(self, *names: str, **options: Any) -> Any:
        """Draws the density, one panel for each assignment that has mass; see [`pal.plot.panels`][]."""
        from . import plot

        return plot.panels(self, *names, **options)

    def _repr_png_(self) -> bytes | None:
        """The picture that notebooks show; `None` where there is none."""
        from ._pictures import png

        return png(self)

    def _repr_html_(self) -> str | None:
        """The table that notebooks show where there is no picture."""
        from ._pictures import html

        return html(self)

    def __repr__(self) -> str:
        return f"MixedDensity({', '.join(self.columns)}: {shortened(self.constraint.formula)})"


def _read(content: bytes) -> MixedFamily:
    return MixedFamily._of(_core.MixedFamily.read(content)[0])


def load_mixed(path: str | os.PathLike[str]) -> tuple[MixedFamily, FloatArray | None]:
    """Reads a file of a mixed family or model."""
    try:
        core, params = _core.MixedFamily.read(Path(path).read_bytes())
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    return MixedFamily._of(core), None if params is None else params.reshape(-1, core.num_params)
