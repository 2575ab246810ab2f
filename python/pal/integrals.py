"""Exact integrals of polynomials over regions, moments, and weighted model integration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _core
from ._arrays import FloatArray
from ._core import Formula, Polynomial, Term, Weight
from .formula import Constrained, Constraint, as_constraint
from .region import Region

Integrand = Union[Polynomial, Term, str, int, float, Fraction]


class Integral(NamedTuple):
    """An integral in float64: `value`, and a bound on its absolute `error`.

    >>> import pal
    >>> x = pal.real("x")
    >>> value, error = pal.integrate(x.between(0, 1), x**2, exact=False)
    >>> abs(value - 1 / 3) <= error < 1e-12
    True
    """

    value: float
    error: float


class SurfaceIntegral(NamedTuple):
    """An integral over a flat by surface measure: `value`, and a bound on its absolute `error`; the exact integral over
    the `free` variables, where it was computed, and the exact square of the factor that it is multiplied by.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> length = pal.integrate((x + y == 1) & (x >= 0) & (y >= 0), 1)
    >>> length.free, length.square_factor, round(length.value, 6)
    (Fraction(1, 1), Fraction(2, 1), 1.414214)
    """

    value: float
    error: float
    free: Fraction | None
    square_factor: Fraction


class Moments(NamedTuple):
    """Integrals of monomials: `exponents` (one row each), `values`, and bounds on their absolute `errors`.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> moments = pal.moments(x.between(0, 1) & y.between(0, 2), 1)
    >>> moments.exponents.tolist(), moments.values.tolist()
    ([[0, 0], [1, 0], [0, 1]], [2.0, 1.0, 2.0])
    """

    exponents: NDArray[np.int64]
    values: FloatArray
    errors: FloatArray


class Solution(NamedTuple):
    """Weighted volumes: `total` of the support, and one for each of the `queries`.

    >>> import pal
    >>> x = pal.real("x")
    >>> solution = pal.wmi(x.between(0, 2), 3 * x**2, queries=[x <= 1])
    >>> solution.total, solution.queries[0] / solution.total
    (Fraction(8, 1), Fraction(1, 8))
    """

    total: Any
    queries: tuple[Any, ...]


def integrate(
    region: Region | Constrained, polynomial: Integrand, exact: bool = True, method: str | None = None
) -> Any:
    """The integral of a polynomial over a region, summed over the assignments of its Boolean variables.

    Args:
        region: a region, or a constraint that is made into one.
        polynomial: a polynomial such as `x**2 * y`, or text such as `"x^2*y - 1/2"`.
        exact: whether to compute in fractions. If not, the result is an `Integral` in float64 with a bound on its
            error.
        method: for `exact=False`, `"recurrence"` (the default) or `"gasp"`, the cubature of the PAL paper.

    Returns:
        a fraction, or an `Integral`. Where equalities hold on the whole region, a `SurfaceIntegral`: by surface measure,
        which no fraction expresses.

    >>> import pal
    >>> x, y = pal.reals("x", "y")
    >>> triangle = pal.Region((x >= 0) & (y >= 0) & (x + y <= 1))
    >>> pal.integrate(triangle, x**2 * y)
    Fraction(1, 60)
    >>> value, error = pal.integrate(triangle, "x^2*y", exact=False)
    >>> abs(value - 1 / 60) <= error < 1e-15
    True
    """
    if exact and method is not None:
        raise ValueError("a method is for exact=False only; in fractions there is only one")
    chosen = "exact" if exact else (method or "recurrence")
    region = _as_region(region)
    answer = region._core.integrate(polynomial, chosen)
    if answer[3] == 0 and region._flat is not None and region.dimension > 0:
        return SurfaceIntegral(*region._flat.integrate(polynomial, chosen))
    return _answer(answer, exact)


def moments(region: Region | Constrained, degree: int) -> Moments:
    """All moments up to a total degree, in float64 with bounds on their errors.

    Args:
        region: a region, or a constraint that is made into one.
        degree: the largest sum of exponents.

    Returns:
        exponents, integrals and bounds on their errors, ordered by degree.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> pal.moments(pal.Region(x.between(0, 2)), 3).values
    array([2.        , 2.        , 2.66666667, 4.        ])
    """
    region = _as_region(region)
    degree = _arrays.count(degree, "the degree")
    if degree > 65535:
        raise ValueError(f"a degree of {degree} is too high; at most 65535 is possible")
    exponents, values, errors = region._core.moments(degree)
    return Moments(exponents.reshape(len(values), len(region.variables)), values, errors)


def wmi(
    support: Constrained | str,
    weight: Weight | Integrand | None = None,
    queries: Sequence[Formula] | Mapping[str, Formula] = (),
    exact: bool = True,
) -> Solution:
    """Weighted model integration (PAL paper, appendix "Background on Weighted Model Integration").

    The integral of a weight over a support, summed over the assignments of its Boolean variables.

    Args:
        support: a constraint with real and Boolean variables; or the text of a whole problem in JSON, which brings its
            own weight and queries.
        weight: a polynomial, or one with cases made by [`pal.ite`][]; a text is read as a term of SMT-LIB with
            `+ - * / pow ite`.
        queries: formulas whose weighted volumes within the support are wanted too.
        exact: whether to compute in fractions rather than in float64 with error bounds.

    Returns:
        the weighted volumes of the support and of the queries, as fractions or `Integral`s.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> (a,) = pal.booleans("a")
    >>> support = x.between(0, 1) & (a | (x <= "1/2"))
    >>> pal.wmi(support, pal.ite(a, x, 2 * x), queries=[a])
    Solution(total=Fraction(3, 4), queries=(Fraction(1, 2),))
    """
    method = "exact" if exact else "recurrence"
    if isinstance(support, str):
        if weight is not None or queries:
            raise ValueError("a problem in JSON brings its own weight and queries; give none besides")
        total, parts = _core.solve(support, None, [], method)
        return Solution(_answer(total, exact), tuple(_answer(part, exact) for part in parts))
    constraint = as_constraint(support)
    if isinstance(queries, Mapping):
        raise TypeError("queries are a list of formulas")
    conditions = list(queries)
    constraint = _with_variables(constraint, weight, conditions)
    if isinstance(weight, str):
        weight = Weight.parse(weight, constraint._core)
    total, parts = _core.solve(constraint._core, weight, conditions, method)
    return Solution(_answer(total, exact), tuple(_answer(part, exact) for part in parts))


def _with_variables(constraint: Constraint, weight: Any, queries: list[Formula]) -> Constraint:
    """The constraint with the Boolean variables of queries, which are summed over as well.

    Real variables must be bounded by the support, which then has them already.
    """
    booleans = list(constraint.booleans)
    for query in queries:
        if isinstance(query, Formula):
            booleans += [name for name in query.booleans if name not in booleans]
    return Constraint(constraint.formula, constraint.variables, booleans)


def _as_region(region: Region | Constrained) -> Region:
    return region if isinstance(region, Region) else Region(region)


def _answer(answer: tuple[float, float, Fraction | None, int, int], exact: bool) -> Any:
    value, error, fraction = answer[:3]
    if not exact:
        return Integral(value, error)
    if fraction is None:
        raise RuntimeError("the exact integrator gave no fraction; this is a bug in pal, please report it")
    return fraction
