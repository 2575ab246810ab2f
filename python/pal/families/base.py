"""What families of all kinds share: questions about many parameter vectors at once, and files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _arrays, _core
from .._arrays import FloatArray, Points
from .._core import Density as CoreDensity
from .._core import Family as CoreFamily
from .._core import Formula
from ..density import ENTROPY_DEFAULT, MODE_DEFAULT, Density, Entropy, Marginal, Mode, _pairs
from ..errors import FileError
from ..formula import Constrained, Constraint
from ..integrals import Integrand
from ..mixed import MixedFamily, load_mixed
from ..region import Region


class Model(NamedTuple):
    """What a file holds: a family, and parameter vectors, one per row, or `None`. [`load`][pal.load] returns it.

    >>> import os, pal, tempfile
    >>> family = pal.SplineMixture(pal.real("x").between(0, 1), knots=4, components=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "family.safetensors")
    ...     family.save(file)
    ...     model = pal.load(file)
    >>> model.family.num_params == family.num_params, model.params is None
    (True, True)
    """

    family: Family
    params: FloatArray | None


class Family:
    """A family of densities on a constraint, whatever its kind: one density for every parameter vector,

        p(y; params) = q(y; params) 1[y satisfies the constraint] / normaliser(params)

    Parameters and points are arrays with one vector along the last axis. Points have their coordinates in the order of
    `variables`; dicts of columns and tables of pandas are taken by name. A family never changes and may be used by many
    threads. The kinds are [`SplineMixture`][pal.SplineMixture], [`SumOfSquares`][pal.SumOfSquares] and
    [`HistogramMixture`][pal.HistogramMixture].

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.HistogramMixture(x.between(0, 2) & y.between(0, 1) & (y <= x), bins=4, components=1)
    >>> isinstance(family, pal.Family), family.variables
    (True, ('x', 'y'))
    >>> params = family.random_params(3, seed=1)
    >>> whole = family.probability(x >= 0, params)
    >>> params.shape == (3, family.num_params), whole.round(6)
    (True, array([1., 1., 1.]))
    """

    #: The name of the kind, as files and the program have it.
    kind: ClassVar[str]
    #: The class of the core that holds the settings of this kind.
    settings_class: ClassVar[type]
    #: The names of the settings that the constructor takes.
    options: ClassVar[tuple[str, ...]]
    #: The largest number of variables; `None` where there is no limit but memory.
    max_variables: ClassVar[int | None] = None

    _core: CoreFamily

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """On a constraint with Boolean variables a kind makes a [`MixedFamily`][pal.MixedFamily]."""
        region: Any = arguments[0] if arguments else options.get("region")
        if _has_booleans(region):
            named = {**dict(zip(cls.options, arguments[1:])), **options}
            named.pop("region", None)
            return MixedFamily(cls, region, **named)
        return super().__new__(cls)

    def __init__(self) -> None:
        from . import KINDS

        raise TypeError(f"use {', '.join(kind.__name__ for kind in KINDS[:-1])} or {KINDS[-1].__name__}")

    def _compile(self, region: Region | Constrained, settings: Any) -> None:
        self._core = _core.Family(as_region(region)._core, settings)

    @classmethod
    def _of(cls, core: CoreFamily) -> Family:
        from . import KINDS

        settings = core.settings
        kind = next(kind for kind in KINDS if isinstance(settings, kind.settings_class))
        new = kind.__new__(kind)
        new._core = core
        return new

    @property
    def constraint(self) -> Constraint:
        """The constraint that the family was compiled on."""
        return Constraint._of(self._core.constraint)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of coordinates."""
        return self.constraint.variables

    @property
    def free(self) -> tuple[str, ...]:
        """The names of the free variables: all of them, unless equalities hold on the whole constraint."""
        flat = self._core.flat
        return self.variables if flat is None else tuple(flat.free_names)

    @property
    def settings(self) -> Any:
        """How the family was set up: an object with one attribute per setting."""
        return self._core.settings

    @cached_property
    def recipe(self) -> Any:
        """The constants with which a tensor framework computes log-densities by itself, computed once."""
        return self._core.recipe()

    @property
    def num_params(self) -> int:
        """The number of entries of a parameter vector."""
        return self._core.num_params

    @property
    def num_components(self) -> int:
        """The number of mixture components, or of squares in the sum."""
        return self._core.num_components

    @property
    def edges(self) -> list[FloatArray]:
        """The ends of the bins per variable; inside a bin the densities are polynomials."""
        return [np.array(axis) for axis in self._core.edges]

    @property
    def offset(self) -> FloatArray:
        """What is added to every parameter vector, so that zeros are close to the uniform density: their mean
        log-density is at most 0.3 below it. For one component they are the uniform density.

        The sum is what the documentation of each kind calls theta, such as values and derivatives of splines.
        Parameters for a known theta are `theta - family.offset`.

        >>> import pal
        >>> (x,) = pal.reals("x")
        >>> family = pal.SplineMixture(x.between(0, 4), knots=3, components=1)
        >>> family.offset
        array([0., 1., 1., 1., 0., 0., 0.])
        >>> round(family.density(np.zeros(7)).probability(x <= 1), 12)
        0.25
        """
        return self._core.offset

    def random_params(self, rows: int | None = None, seed: int | None = None) -> FloatArray:
        """Parameter vectors with independent standard normal entries: `rows` of them, or a single one by default. The
        same seed gives the same numbers; by default they differ from call to call."""
        flat = self._core.random_params(1 if rows is None else _arrays.count(rows, "rows"), _arrays.seed(seed))
        return flat if rows is None else flat.reshape(rows, self.num_params)

    def log_prob(self, params: ArrayLike, points: Points) -> FloatArray:
        """Log-densities: minus infinity outside the constraint, never NaN.

        The axes before the last of `params` and `points` are broadcast.

        >>> import pal
        >>> (x,) = pal.reals("x")
        >>> family = pal.SumOfSquares(pal.Region(x.between(0, 4)), degree=0, components=1)
        >>> family.log_prob([[0.0, 0.0]], [[1.0], [5.0]])
        array([-1.38629436,        -inf])
        """
        params, params_shape = self._params(params)
        flat, shape = _arrays.points(points, self.variables)
        full = np.broadcast_shapes(params_shape, shape)
        if 0 in full:
            return np.empty(full)
        if len(params) != self.num_params:
            params = _expand(params, params_shape, full, self.num_params)
            flat = _expand(flat, shape, full, len(self.variables))
        elif full != shape:
            flat = _expand(flat, shape, full, len(self.variables))
        return self._core.log_prob(params, flat).reshape(full)[()]

    def log_prob_vjp(self, params: ArrayLike, points: Points, cotangent: ArrayLike) -> FloatArray:
        """The gradient of `sum_i cotangent_i log_prob_i` with respect to the parameters.

        One parameter vector serves all points, or there is one for each.
        """
        rows, shape = self._params(params)
        flat, _ = _arrays.points(points, self.variables)
        weights = _arrays.float64(cotangent, "the cotangent").reshape(-1)
        return self._core.log_prob_vjp(rows, flat, weights).reshape(*shape, self.num_params)

    def log_normaliser(self, params: ArrayLike) -> FloatArray:
        """The logarithms of the integrals of all components over the constraint, along the last axis."""
        rows, shape = self._rows(params)
        return self._core.log_normaliser(rows).reshape(*shape, self.num_components)

    def density(self, params: ArrayLike) -> Density:
        """The density of one parameter vector."""
        rows, shape = self._rows(params)
        if len(rows) != self.num_params:
            full = (*shape, self.num_params)
            raise ValueError(f"one parameter vector makes a density; the shape of params is {full}")
        return self._density(self._core.densities(rows)[0], rows)

    def _density(self, core: CoreDensity, row: FloatArray) -> Density:
        return Density._of(core, (_density, (self, row)))

    def _each(self, rows: FloatArray) -> Any:
        return rows.reshape(-1, self.num_params)

    def densities(self, params: ArrayLike) -> list[Density]:
        """One density for each parameter vector."""
        rows, _ = self._rows(params)
        return [self._density(core, row) for core, row in zip(self._core.densities(rows), self._each(rows))]

    def probability(self, event: Formula, params: ArrayLike) -> FloatArray:
        """The probability of an event under each parameter vector."""
        rows, shape = self._rows(params)
        return self._core.probability(event, rows).reshape(shape)[()]

    def condition(self, condition: Formula, params: ArrayLike) -> list[Density]:
        """The densities given that a condition holds, one for each parameter vector."""
        rows, _ = self._rows(params)
        conditioned = zip(self._core.condition(condition, rows), self._each(rows))
        return [Density._of(core, (_conditioned_density, (self, row, condition))) for core, row in conditioned]

    def given(self, values: Mapping[str, float] | None = None, params: ArrayLike = (), **more: float) -> list[Density]:
        """The densities of the other variables, given values of some, one for each parameter vector:
        `family.given({"x": 0.5}, params)` or `family.given(params=params, x=0.5)`."""
        rows, _ = self._rows(params)
        pairs = _pairs(values, more)
        given = zip(self._core.given(pairs, rows), self._each(rows))
        return [Density._of(core, (_given_density, (self, row, pairs))) for core, row in given]

    def mean(self, params: ArrayLike) -> FloatArray:
        """The means of all variables, along the last axis."""
        rows, shape = self._rows(params)
        return self._core.mean(rows).reshape(*shape, len(self.variables))

    def covariance(self, params: ArrayLike) -> FloatArray:
        """The covariance matrices, along the last two axes."""
        rows, shape = self._rows(params)
        n = len(self.variables)
        return self._core.covariance(rows).reshape(*shape, n, n)

    def expectation(self, polynomials: Integrand | Sequence[Integrand], params: ArrayLike) -> FloatArray:
        """The expectation of one polynomial, or of several along the last axis."""
        rows, shape = self._rows(params)
        if isinstance(polynomials, (list, tuple)):
            return self._core.expectation(list(polynomials), rows).reshape(*shape, len(polynomials))
        return self._core.expectation([polynomials], rows).reshape(shape)[()]

    def entropy(self, params: ArrayLike, tolerance: float = ENTROPY_DEFAULT.tolerance) -> list[Entropy]:
        """The differential entropy under each parameter vector."""
        rows, _ = self._rows(params)
        options = _core.EntropyOptions(float(tolerance))
        return [Entropy(*answer) for answer in self._core.entropies(rows, options)]

    def sample(self, params: ArrayLike, count: int, seed: int | None = None) -> FloatArray:
        """Independent samples, `count` for each parameter vector, one per row along the last two axes.

        All of them satisfy the constraint under exact evaluation.
        """
        rows, shape = self._rows(params)
        count = _arrays.count(count, "the number of samples")
        samples = self._core.sample(rows, count, _arrays.seed(seed))
        return samples.reshape(*shape, count, len(self.variables))

    def mode(
        self,
        params: ArrayLike,
        gap: float = MODE_DEFAULT.gap,
        nodes: int | None = MODE_DEFAULT.nodes,
        seconds: float | None = MODE_DEFAULT.seconds,
    ) -> list[Mode]:
        """The point of largest density under each parameter vector, with a certified bound."""
        rows, _ = self._rows(params)
        options = _core.ModeOptions(float(gap), nodes, seconds)
        return [Mode(*answer) for answer in self._core.modes(rows, options)]

    def marginal(self, variable: str, params: ArrayLike) -> list[Marginal]:
        """The exact marginal of one variable under each parameter vector."""
        rows, _ = self._rows(params)
        marginals = zip(self._core.marginals(variable, rows), self._each(rows))
        return [Marginal(core, (_marginal, (self, row, variable))) for core, row in marginals]

    def save(self, path: str | os.PathLike[str], params: ArrayLike | None = None) -> None:
        """Writes a safetensors file that the program `pal` reads as well: the family alone, or a model with parameter
        vectors."""
        rows = None if params is None else self._rows(params)[0]
        _core.write_file(os.fspath(path), self._core.write(rows))

    def _params(self, params: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        return _arrays.params(params, self.num_params)

    def _rows(self, params: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
        rows, shape = self._params(params)
        if not len(rows):
            raise ValueError("there is no parameter vector; give at least one")
        return rows, shape

    def __copy__(self) -> Family:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Family:
        # A family never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (bytes(self._core.write(None)),)

    def __repr__(self) -> str:
        settings = repr(self.settings).partition("(")[2].removesuffix(")")
        return f"{type(self).__name__}({', '.join(self.variables)}; {settings})"


def load(path: str | os.PathLike[str]) -> Model:
    """Reads a safetensors file of a family or a model, written by [`Family.save`][pal.Family.save] or the program
    `pal`.

    Args:
        path: the file.

    Returns:
        the family, and the parameter vectors that the file has, if any.

    Raises:
        FileError: the file is damaged or holds something else; the message says what reads it.

    >>> import pal, tempfile, os
    >>> (x,) = pal.reals("x")
    >>> family = pal.SumOfSquares(pal.Region(x.between(0, 1)), degree=2, components=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.safetensors")
    ...     family.save(file, params=[[0, 0, 0, 0], [0, -1, 1, 0]])
    ...     family, params = pal.load(file)
    >>> params.shape, family.probability(x <= "1/2", params)
    ((2, 4), array([0.5, 0.5]))
    """
    try:
        core, params = _core.Family.read(Path(path).read_bytes())
    except FileError as error:
        if "pal-network-" in str(error):
            raise FileError(f"{path}: a network trained by `pal train`; pal.torch.load_network reads it") from None
        if "Boolean variables" in str(error):
            mixed: Any = load_mixed(path)
            return Model(*mixed)
        raise FileError(f"{path}: {error}") from None
    return Model(Family._of(core), None if params is None else params.reshape(-1, core.num_params))


def _density(family: Family, row: FloatArray) -> Density:
    return family.density(row)


def _conditioned_density(family: Family, row: FloatArray, condition: Formula) -> Density:
    return family.condition(condition, row)[0]


def _given_density(family: Family, row: FloatArray, pairs: list[tuple[str, float]]) -> Density:
    return family.given(dict(pairs), row)[0]


def _marginal(family: Family, row: FloatArray, variable: str) -> Marginal:
    return family.marginal(variable, row)[0]


def _read(content: bytes) -> Family:
    return Family._of(_core.Family.read(content)[0])


def _expand(flat: FloatArray, shape: tuple[int, ...], full: tuple[int, ...], width: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(flat.reshape(*shape, width), (*full, width))).reshape(-1)


def _has_booleans(region: Any) -> bool:
    if isinstance(region, Region):
        region = region.constraint
    if isinstance(region, Formula):
        region = Constraint(region)
    return isinstance(region, Constraint) and bool(region.booleans)


def as_region(region: Region | Constrained) -> Region:
    """A region as it is, and a constraint made into one."""
    return region if isinstance(region, Region) else Region(region)


def knot_positions(knots: Any, region: Region, what: str = "knots", ends: int = 0) -> Any:
    """Settings of knots as the core takes them: one number for all variables, or a list of positions for each.

    A number for each variable is spread over the box around the region; `ends` is how many more positions there are
    than the number says, as for bins.
    """
    if not isinstance(knots, (Sequence, np.ndarray)) or isinstance(knots, str):
        return _arrays.count(knots, f"the number of {what}")
    axes = list(knots)
    region = region._axes
    if len(axes) != len(region.variables):
        raise ValueError(
            f"{what} are one number for all variables, or one number or one list of positions for each; there "
            f"{_are(len(axes), 'entry', 'entries')} for {_counted(len(region.variables))}: {', '.join(region.variables)}"
        )
    if any(isinstance(axis, (Sequence, np.ndarray)) and not isinstance(axis, str) for axis in axes):
        if not all(isinstance(axis, (Sequence, np.ndarray)) and not isinstance(axis, str) for axis in axes):
            raise ValueError(f"{what} are numbers for all variables, or lists of positions for all, not a mixture")
        return [list(axis) for axis in axes]
    numbers = [_arrays.count(axis, f"the number of {what}", 2 - ends) + ends for axis in axes]
    box = region.bounding_box
    if box is None:
        raise ValueError(f"a number of {what} per variable needs a region with volume; give positions or one number")
    return [[low + (high - low) * k / (n - 1) for k in range(n)] for (low, high), n in zip(box, numbers)]


def _are(number: int, one: str, many: str) -> str:
    return f"is {number} {one}" if number == 1 else f"are {number} {many}"


def _counted(number: int) -> str:
    return f"{number} variable" if number == 1 else f"{number} variables"
