"""Families of densities compiled on a region: questions about many parameter vectors at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _arrays, _core
from ._arrays import Doubles
from ._core import Formula
from .density import Density, Entropy, Marginal, Mode, _pairs
from .errors import FileError
from .formula import Constrained, Constraint, Number
from .integrals import Integrand
from .region import Region


class Model(NamedTuple):
    """What a file holds: a family, and parameter vectors, one per row, or `None`."""

    family: Family
    params: Doubles | None


class Family:
    """What spline mixtures and sums of squares share. Parameters and points are arrays with one vector along the last axis.

    A family never changes and may be used by many threads.
    """

    _core: _core.Family

    def __init__(self) -> None:
        raise TypeError("use SplineMixture or SumOfSquares")

    @classmethod
    def _of(cls, core: _core.Family) -> Family:
        kind = {"spline": SplineMixture, "sum-of-squares": SumOfSquares}[json.loads(core.settings)["family"]]
        new = kind.__new__(kind)
        new._core = core
        return new

    @property
    def constraint(self) -> Constraint:
        """What it was compiled on."""
        return Constraint._of(self._core.constraint)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of coordinates."""
        return self.constraint.variables

    @property
    def settings(self) -> dict[str, Any]:
        """How it was set up, as files have it."""
        return json.loads(self._core.settings)

    @property
    def num_params(self) -> int:
        """Numbers in a parameter vector."""
        return self._core.num_params

    @property
    def num_components(self) -> int:
        """Components of the mixture, or squares in the sum."""
        return self._core.num_components

    @property
    def edges(self) -> list[Doubles]:
        """Ends of the bins per variable, between which the densities are polynomials."""
        return [np.array(axis) for axis in self._core.edges]

    def random_params(self, rows: int | None = None, seed: int = 0) -> Doubles:
        """Parameter vectors with independent standard normal entries: so many rows, or one vector."""
        flat = self._core.random_params(1 if rows is None else _arrays.count(rows, "rows"), _arrays.seed(seed))
        return flat if rows is None else flat.reshape(rows, self.num_params)

    def log_prob(self, params: ArrayLike, points: ArrayLike) -> Doubles:
        """Log-densities: minus infinity outside the constraint, never NaN. The axes before the last of `params` and `points` are broadcast.

        >>> import pal
        >>> (x,) = pal.reals("x")
        >>> family = pal.SumOfSquares(pal.Region(x.between(0, 4)), degree=0, components=1)
        >>> family.log_prob([[0.0, 1.0]], [[1.0], [5.0]])
        array([-1.38629436,        -inf])
        """
        params, params_shape = self._params(params)
        flat, shape = _arrays.points(points, len(self.variables))
        full = np.broadcast_shapes(params_shape, shape)
        if 0 in full:
            return np.empty(full)
        if len(params) != self.num_params:
            params = _expand(params, params_shape, full, self.num_params)
            flat = _expand(flat, shape, full, len(self.variables))
        elif full != shape:
            flat = _expand(flat, shape, full, len(self.variables))
        return self._core.log_prob(params, flat).reshape(full)[()]

    def log_prob_vjp(self, params: ArrayLike, points: ArrayLike, cotangent: ArrayLike) -> Doubles:
        """The gradient of `sum_i cotangent_i log_prob_i` with respect to the parameters.

        One parameter vector serves all points, or there is one for each.
        """
        rows, shape = self._params(params)
        flat, _ = _arrays.points(points, len(self.variables))
        weights = _arrays.doubles(cotangent, "the cotangent").reshape(-1)
        return self._core.log_prob_vjp(rows, flat, weights).reshape(*shape, self.num_params)

    def log_normaliser(self, params: ArrayLike) -> Doubles:
        """The logarithms of the integrals of all components over the constraint, along the last axis."""
        rows, shape = self._rows(params)
        return self._core.log_normaliser(rows).reshape(*shape, self.num_components)

    def density(self, params: ArrayLike) -> Density:
        """The density of one parameter vector."""
        rows, shape = self._rows(params)
        if len(rows) != self.num_params:
            raise ValueError(f"one parameter vector makes a density; the shape of params is {(*shape, self.num_params)}")
        return Density._of(self._core.densities(rows)[0])

    def densities(self, params: ArrayLike) -> list[Density]:
        """One density for each parameter vector."""
        rows, _ = self._rows(params)
        return [Density._of(core) for core in self._core.densities(rows)]

    def probability(self, condition: Formula, params: ArrayLike) -> Doubles:
        """The probability of a further constraint under each parameter vector."""
        rows, shape = self._rows(params)
        return self._core.probability(condition, rows).reshape(shape)[()]

    def condition(self, condition: Formula, params: ArrayLike) -> list[Density]:
        """The densities given that a further constraint holds."""
        rows, _ = self._rows(params)
        return [Density._of(core) for core in self._core.condition(condition, rows)]

    def given(self, values: Mapping[str, float], params: ArrayLike) -> list[Density]:
        """The densities of the other variables, given values of some."""
        rows, _ = self._rows(params)
        return [Density._of(core) for core in self._core.given(_pairs(values, {}), rows)]

    def mean(self, params: ArrayLike) -> Doubles:
        """The means of all variables, along the last axis."""
        rows, shape = self._rows(params)
        return self._core.mean(rows).reshape(*shape, len(self.variables))

    def covariance(self, params: ArrayLike) -> Doubles:
        """The covariance matrices, along the last two axes."""
        rows, shape = self._rows(params)
        n = len(self.variables)
        return self._core.covariance(rows).reshape(*shape, n, n)

    def expectation(self, polynomials: Integrand | Sequence[Integrand], params: ArrayLike) -> Doubles:
        """The expectation of one polynomial, or of several along the last axis."""
        rows, shape = self._rows(params)
        if isinstance(polynomials, (list, tuple)):
            return self._core.expectation(list(polynomials), rows).reshape(*shape, len(polynomials))
        return self._core.expectation([polynomials], rows).reshape(shape)[()]

    def entropy(self, params: ArrayLike, tolerance: float = 1e-6) -> list[Entropy]:
        """The differential entropy under each parameter vector."""
        rows, _ = self._rows(params)
        return [Entropy(*answer) for answer in self._core.entropies(rows, float(tolerance))]

    def sample(self, params: ArrayLike, count: int, seed: int | None = None) -> Doubles:
        """Independent samples: for each parameter vector `count` rows, in the last two axes. All satisfy the constraint under exact evaluation."""
        rows, shape = self._rows(params)
        count = _arrays.count(count, "the number of samples")
        samples = self._core.sample(rows, count, _arrays.seed(seed))
        return samples.reshape(*shape, count, len(self.variables))

    def mode(
        self, params: ArrayLike, gap: float = 1e-6, nodes: int | None = 1_000_000, seconds: float | None = None
    ) -> list[Mode]:
        """The certified mode under each parameter vector."""
        rows, _ = self._rows(params)
        return [Mode(*answer) for answer in self._core.modes(rows, float(gap), nodes, seconds)]

    def marginal(self, variable: str, params: ArrayLike) -> list[Marginal]:
        """The exact marginal of one variable under each parameter vector."""
        rows, _ = self._rows(params)
        return [Marginal(core) for core in self._core.marginals(variable, rows)]

    def save(self, path: str | os.PathLike[str], params: ArrayLike | None = None) -> None:
        """Writes a safetensors file that the program `pal` reads as well: the family, and with parameter vectors a model."""
        rows = None if params is None else self._rows(params)[0]
        Path(path).write_bytes(self._core.write(rows))

    def _params(self, params: ArrayLike) -> tuple[Doubles, tuple[int, ...]]:
        return _arrays.params(params, self.num_params)

    def _rows(self, params: ArrayLike) -> tuple[Doubles, tuple[int, ...]]:
        rows, shape = self._params(params)
        if not len(rows):
            raise ValueError("there is no parameter vector; give at least one")
        return rows, shape

    def __copy__(self) -> Family:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Family:
        # It never changes.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (bytes(self._core.write()),)

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items() if key != "family")
        return f"{type(self).__name__}({', '.join(self.variables)}; {settings})"


class SplineMixture(Family):
    """Mixtures of products of squared cubic splines, for 1 to 4 variables:

        q(y) = sum_m  w_m / Z_m  prod_j s_mj(y_j)^2,        Z_m = integral of prod_j s_mj(y_j)^2 over the constraint

    A parameter vector has, for each component, a logit (the weights w are their softmax) and for each variable the values and then the derivatives
    of the spline at the knots.

    Args:
        region: a region, or a constraint that is made into one.
        knots: how many equally spaced knots per variable, or an increasing list of positions for each.
        components: components.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture((x >= 0) & (y >= 0) & (x + y <= 1), knots=5, components=3)
    >>> family.num_params
    63
    >>> density = family.density(family.random_params(seed=1))
    >>> abs(density.probability(x <= y) + density.probability(x > y) - 1) < 1e-13
    True
    """

    def __init__(
        self, region: Region | Constrained, knots: int | Sequence[Sequence[Number]] = 14, components: int = 8
    ) -> None:
        region = region if isinstance(region, Region) else Region(region)
        positions: Any
        if isinstance(knots, Sequence) and not isinstance(knots, str):
            positions = [list(axis) for axis in knots]
        else:
            positions = _arrays.count(knots, "the number of knots")  # type: ignore[arg-type]
        self._core = _core.Family.spline(region._core, positions, _arrays.count(components, "the number of components"))


class SumOfSquares(Family):
    """Sums of squares of polynomials, for any number of variables:

        q(y) = sum_k  w_k (u_k . phi(y))^2,        I = sum_k w_k u_k^T G u_k

    A parameter vector has, for each square, a logit (the weights w are their softmax) and the coefficients u.

    Args:
        region: a region, or a constraint that is made into one.
        degree: of the polynomials that are squared.
        components: squares in the sum.
        basis: `"orthonormal"` on the constraint, `"legendre"` on the box around it, or `"monomial"` with the reparametrisation of the paper.
        terms: choose so many members of the basis at random rather than all.
        seed: of that choice.
    """

    def __init__(
        self,
        region: Region | Constrained,
        degree: int = 7,
        components: int = 4,
        basis: str = "orthonormal",
        terms: int | None = None,
        seed: int = 0,
    ) -> None:
        region = region if isinstance(region, Region) else Region(region)
        degree = _arrays.count(degree, "the degree")
        if degree > 65535:
            raise ValueError(f"a degree of {degree} is too high; at most 65535 is possible")
        some = None if terms is None else _arrays.count(terms, "the number of terms")
        squares = _arrays.count(components, "the number of components")
        self._core = _core.Family.sum_of_squares(region._core, degree, squares, basis, some, _arrays.seed(seed))


def load(path: str | os.PathLike[str]) -> Model:
    """Reads a safetensors file of a family or a model, written by [`Family.save`][pal.Family.save] or by the program `pal`.

    >>> import pal, tempfile, os
    >>> (x,) = pal.reals("x")
    >>> family = pal.SumOfSquares(pal.Region(x.between(0, 1)), degree=2, components=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.safetensors")
    ...     family.save(file, params=[[0, 1, 0, 0], [0, 0, 1, 0]])
    ...     family, params = pal.load(file)
    >>> params.shape, family.probability(x <= "1/2", params)
    ((2, 4), array([0.5, 0.5]))
    """
    try:
        core, params = _core.Family.read(Path(path).read_bytes())
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    return Model(Family._of(core), None if params is None else params.reshape(-1, core.num_params))


def _read(content: bytes) -> Family:
    return Family._of(_core.Family.read(content)[0])


def _expand(flat: Doubles, shape: tuple[int, ...], full: tuple[int, ...], width: int) -> Doubles:
    return np.ascontiguousarray(np.broadcast_to(flat.reshape(*shape, width), (*full, width))).reshape(-1)
