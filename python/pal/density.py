"""One density on a constraint, and everything one can ask about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from . import _arrays, _core
from ._arrays import FloatArray, Points
from ._core import Density as CoreDensity
from ._core import Formula
from .formula import Constraint, shortened
from .integrals import Integrand


# How a density or a marginal is made again: a function and its arguments, as pickles hold them.
Source = tuple[Any, tuple[Any, ...]]

# The defaults of the library, which the program has too.
ENTROPY_DEFAULT = _core.EntropyOptions.default()
MODE_DEFAULT = _core.ModeOptions.default()


class Mode(NamedTuple):
    """The point of largest density, with a certificate: no point of the region has a log-density above `log_upper`.

    `gap` is the ratio of bound and density, minus 1; `stop` says why the search ended: `certified`, `node-limit`,
    `time-limit` or `precision`.

    >>> import pal
    >>> x = pal.real("x")
    >>> family = pal.SumOfSquares(x.between(0, 1), degree=0, components=1)
    >>> mode = family.density([0.0, 0.0]).mode()
    >>> mode.stop, abs(mode.log_density) < 1e-12, mode.log_density <= mode.log_upper
    ('certified', True, True)
    """

    point: FloatArray
    log_density: float
    log_upper: float
    gap: float
    nodes: int
    stop: str


class Entropy(NamedTuple):
    """A differential entropy in nats, an estimate of its absolute error, and whether that is within the tolerance asked
    for.

        entropy = - integral of p(y) log p(y)

    >>> import pal
    >>> x = pal.real("x")
    >>> entropy = pal.SumOfSquares(x.between(0, 2), degree=0, components=1).density([0.0, 0.0]).entropy()
    >>> round(entropy.value, 6), entropy.converged  # the logarithm of 2
    (0.693147, True)
    """

    value: float
    error: float
    converged: bool


class Marginal:
    """The exact marginal density of one variable: a piecewise polynomial, its distribution function and its
    quantiles. [`Density.marginal`][pal.Density.marginal] makes it.

    Args:
        core: the marginal of the compiled module.
        source: how it is made again, for copies and pickles.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> triangle = (x >= 0) & (y >= 0) & (x + y <= 1)
    >>> marginal = pal.SumOfSquares(triangle, degree=0, components=1).density([0.0, 0.0]).marginal("x")
    >>> marginal.density([0, 0.5]).round(6), float(marginal.cdf(0.5)), round(marginal.mean, 6)
    (array([2., 1.]), 0.75, 0.333333)
    """

    __slots__ = ("_core", "_source")

    def __init__(self, core: _core.Marginal, source: Source | None = None) -> None:
        self._core = core
        self._source = source

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds all mass. There may be gaps inside it."""
        return self._core.support

    @property
    def mean(self) -> float:
        """The mean of the variable."""
        return self._core.mean

    @property
    def variance(self) -> float:
        """The variance of the variable."""
        return self._core.variance

    def density(self, at: ArrayLike) -> FloatArray:
        """The density at positions; 0 outside the support."""
        return self._apply(self._core.density, at, "positions")

    def cdf(self, at: ArrayLike) -> FloatArray:
        """The probability of values up to positions."""
        return self._apply(self._core.cdf, at, "positions")

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest positions at which the distribution function reaches the given probabilities."""
        return self._apply(self._core.quantile, p, "probabilities")

    def polyline(self, inside: int = 15) -> FloatArray:
        """Points to draw the density through: rows of position and density, `inside` of them within every piece."""
        return self._core.polyline(_arrays.count(inside, "the number of points")).reshape(-1, 2)

    @property
    def pieces(self) -> list[tuple[float, float, FloatArray]]:
        """Low end, high end and Legendre coefficients c of every interval on which the density is one polynomial.

        With s = (y - low) / (high - low), the density is sum_k c_k P_k(2 s - 1).
        """
        return self._core.pieces()

    def __copy__(self) -> Marginal:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Marginal:
        # A marginal never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self._source, "marginal")

    def __repr__(self) -> str:
        low, high = self.support
        return f"Marginal(support [{low:g}, {high:g}], mean {self.mean:g}, variance {self.variance:g})"

    @staticmethod
    def _apply(function: Any, at: ArrayLike, what: str) -> FloatArray:
        values = _arrays.float64(at, what)
        return function(values.reshape(-1)).reshape(values.shape)[()]


class Density:
    """One density on a constraint: made by a family from one parameter vector, or by conditioning another density.

    >>> import numpy as np, pal
    >>> x, y = pal.reals("x", "y")
    >>> triangle = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
    >>> uniform = pal.SumOfSquares(triangle, degree=1, components=1).density([0, 0, 0, 0])
    >>> uniform.probability(x <= y), round(float(np.exp(uniform.log_prob([0.25, 0.25]))), 12)
    (0.5, 2.0)
    >>> uniform.given(y=0.5).marginal("x").support
    (0.0, 0.5)
    """

    __slots__ = ("_core", "_source")
    _core: CoreDensity
    _source: Source | None

    def __init__(self) -> None:
        raise TypeError("densities are made by families: SplineMixture(region).density(params)")

    @classmethod
    def _of(cls, core: CoreDensity, source: Source | None = None) -> Density:
        new = cls.__new__(cls)
        new._core = core
        new._source = source
        return new

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of coordinates: that of their declaration, unless another was
        given."""
        return tuple(self._core.variables)

    @property
    def constraint(self) -> Constraint:
        """Where the density may be positive."""
        return Constraint._of(self._core.constraint)

    def in_free_coordinates(self) -> Density:
        """The same density over the free variables alone, per unit of volume of their coordinates; the density itself,
        unless equalities hold on its constraint."""
        return Density._of(self._core.in_free_coordinates(), (_in_free_coordinates, (self,)))

    def log_prob(self, points: Points) -> FloatArray:
        """The log-density of points: minus infinity outside the constraint, never NaN.

        Args:
            points: coordinates along the last axis, in the order of `variables`; or a dict of columns or a table of
                pandas, by name.
        """
        flat, shape = _arrays.points(points, self.variables)
        return self._core.log_prob(flat).reshape(shape)[()]

    def probability(self, event: Formula) -> float:
        """The probability of an event."""
        return self._core.probability(event)

    def condition(self, condition: Formula) -> Density:
        """The density given that a condition holds."""
        return Density._of(self._core.condition(condition), (_conditioned, (self, condition)))

    def given(self, values: Mapping[str, float] | None = None, **more: float) -> Density:
        """The density of the other variables, given values of some: `density.given(x=0.5)`."""
        pairs = _pairs(values, more)
        return Density._of(self._core.given(pairs), (_given, (self, pairs)))

    def cdf(self, values: Mapping[str, float] | None = None, **more: float) -> float:
        """The probability that each of some variables is at most a value."""
        return self._core.cdf(_pairs(values, more))

    def marginal(self, variable: str) -> Marginal:
        """The exact marginal of one variable."""
        return Marginal(self._core.marginal(variable), (_marginal, (self, variable)))

    def marginal_density(self, variables: Sequence[str], points: Points) -> FloatArray:
        """The joint density of some variables at points, whose coordinates are along the last axis in the order of
        `variables`, or by name."""
        flat, shape = _arrays.points(points, list(variables))
        return self._core.marginal_density(list(variables), flat).reshape(shape)[()]

    def mean(self) -> FloatArray:
        """The mean of every variable."""
        return self._core.mean()

    def covariance(self) -> FloatArray:
        """The covariance matrix."""
        n = len(self.variables)
        return self._core.covariance().reshape(n, n)

    def expectation(self, polynomial: Integrand) -> float:
        """The expectation of a polynomial."""
        return self._core.expectation(polynomial)

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> Entropy:
        """The differential entropy in nats, to an absolute error of 1e-6 by default."""
        return Entropy(*self._core.entropy(_core.EntropyOptions(float(tolerance))))

    def sample(self, count: int, seed: int | None = None) -> FloatArray:
        """Independent samples, one per row, without rejection. All of them satisfy the constraint under exact
        evaluation.

        The columns are in the order of `variables`.

        Args:
            count: the number of samples.
            seed: from 0 to 2**64 - 1; the same seed gives the same samples. By default they differ from call to call.
        """
        samples = self._core.sample(_arrays.count(count, "the number of samples"), _arrays.seed(seed))
        return samples.reshape(-1, len(self.variables))

    def transform(self, uniforms: ArrayLike) -> FloatArray:
        """Samples from given uniform numbers, such as a low-discrepancy sequence.

        Args:
            uniforms: along the last axis one number more than there are free variables, each from 0 to 1.
        """
        flat, shape = _arrays.rows(uniforms, self._core.dimension + 1, "uniform numbers")
        return self._core.transform(flat).reshape(*shape, len(self.variables))

    def mode(
        self,
        gap: float = MODE_DEFAULT.gap,
        nodes: int | None = MODE_DEFAULT.nodes,
        seconds: float | None = MODE_DEFAULT.seconds,
    ) -> Mode:
        """The point of largest density, with a certified bound.

        Args:
            gap: the relative gap between the density and its bound at which the search ends, by default 1e-6.
            nodes: the largest number of nodes of the search, by default a million; `None` for no limit.
            seconds: the longest time that the search may take; `None`, the default, for no limit.
        """
        return Mode(*self._core.mode(_core.ModeOptions(float(gap), nodes, seconds)))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draws the density; see [`pal.plot.density`][]."""
        from . import plot

        return plot.density(self, ax=ax, **options)

    def __copy__(self) -> Density:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Density:
        # A density never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self._source, "density")

    def __repr__(self) -> str:
        return f"Density({', '.join(self.variables)}: {shortened(self.constraint.formula)})"

    def _repr_png_(self) -> bytes | None:
        """The picture that notebooks show; `None` where there is none."""
        from ._pictures import png

        return png(self) if self._core.dimension <= 3 else None


def _in_free_coordinates(density: Density) -> Density:
    return density.in_free_coordinates()


def _conditioned(density: Density, condition: Formula) -> Density:
    return density.condition(condition)


def _given(density: Density, pairs: list[tuple[str, float]]) -> Density:
    return density.given(dict(pairs))


def _marginal(density: Density, variable: str) -> Marginal:
    return density.marginal(variable)


def _reduced(source: Source | None, what: str) -> tuple[Any, ...]:
    if source is None:
        raise TypeError(f"this {what} belongs to one row of a batch and cannot be pickled; pickle what made the batch")
    return source


def _pairs(values: Mapping[str, float] | None, more: Mapping[str, float]) -> list[tuple[str, float]]:
    merged = {**(values or {}), **more}
    if not merged:
        raise ValueError("give the value of at least one variable, such as x=0.5")
    return [(name, _number(name, value)) for name, value in merged.items()]


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"the value of `{name}` must be a number, not {value!r}") from None
