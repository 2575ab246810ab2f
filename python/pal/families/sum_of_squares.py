"""Sums of squares of polynomials (PAL paper, Eq. 3)."""

from __future__ import annotations

from .. import _arrays, _core
from ..formula import Constrained
from ..region import Region
from .base import Family, as_region


class SumOfSquares(Family):
    """Sums of squares of polynomials, for any number of variables:

        q(y) = sum_k  w_k (u_k . phi(y))^2,        normaliser = sum_k w_k u_k^T G u_k

    with a basis phi of polynomials and its Gram matrix G, the integral of phi phi^T over the constraint. A density is
    given by the sum of [`offset`][pal.Family.offset] and the parameters: for each square k a logit (the weights w are
    the softmax of the logits) and the coefficients u_k. Parameters of zero are close to the uniform density.

    Reference: "A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction", Eq. 3; `basis="monomial"`
        is the parametrisation of its appendix "Polynomials".

    Args:
        region: a region, or a constraint that is made into one.
        degree: the degree of the polynomials that are squared. By default it depends on how many variables there are:
            `SumOfSquares.defaults(dimension).degree`.
        components: the number of squares in the sum.
        basis: `"orthonormal"` on the constraint, `"legendre"` on the box around it, or `"monomial"` with the
            reparametrisation of the paper.
        terms: choose this many members of the basis at random instead of all of them.
        seed: the seed of that choice.

    >>> import pal
    >>> (x,) = pal.reals("x")
    >>> family = pal.SumOfSquares(x.between(0, 4), degree=2, components=1)
    >>> family.num_params
    4
    >>> family.density([0, 0, 0, 0]).probability(x <= 1)
    0.25
    """

    kind = "sum-of-squares"
    settings_class = _core.SumOfSquaresSettings
    options = ("degree", "components", "basis", "terms", "seed")

    def __init__(
        self,
        region: Region | Constrained,
        degree: int | None = None,
        components: int | None = None,
        basis: str | None = None,
        terms: int | None = None,
        seed: int = 0,
    ) -> None:
        region = as_region(region)
        self._compile(region, self._settings(region, degree, components, basis, terms, seed))

    @classmethod
    def _settings(
        cls,
        region: Region,
        degree: int | None = None,
        components: int | None = None,
        basis: str | None = None,
        terms: int | None = None,
        seed: int = 0,
    ) -> _core.SumOfSquaresSettings:
        default = cls.defaults(len(region._axes.variables))
        chosen = _arrays.count(default.degree if degree is None else degree, "the degree")
        if chosen > 65535:
            raise ValueError(f"a degree of {chosen} is too high; at most 65535 is possible")
        return _core.SumOfSquaresSettings(
            chosen,
            default.components if components is None else _arrays.count(components, "the number of components"),
            default.basis if basis is None else basis,
            None if terms is None else _arrays.count(terms, "the number of terms"),
            _arrays.seed(seed),
        )

    @staticmethod
    def defaults(dimension: int) -> _core.SumOfSquaresSettings:
        """The settings on a region with this many variables, where nothing else is asked for."""
        return _core.SumOfSquaresSettings.default(dimension)
