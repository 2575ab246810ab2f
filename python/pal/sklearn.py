"""A density on a constraint as a scikit-learn estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._arrays import Doubles
from .density import Density
from .family import Family, SplineMixture, SumOfSquares
from .formula import Constraint, all_of, as_constraint, real
from .region import Region


class ConstrainedDensity(DensityMixin, BaseEstimator):
    """A density that gives no mass to what violates a constraint, fitted by maximum likelihood.

    Args:
        constraint: a formula, a `Constraint` or a `Region`; its variables, in their order, are the columns of the data. `None`: the box around the
            data, a tenth wider on every side.
        family: `"spline"` for mixtures of squared splines (1 to 4 columns), `"sum-of-squares"` for sums of squares, `"auto"` for splines where they are possible.
        knots: of splines, per column.
        components: components of a spline mixture.
        degree: of the polynomials in a sum of squares.
        components: squares in the sum.
        max_iter: steps of the optimiser.
        tol: relative improvement at which it stops.
        n_init: starts from different random parameters, of which the best is kept.
        random_state: of these.

    Attributes:
        density_: the fitted [`Density`][pal.Density], with all its queries.
        family_: its family.
        params_: its parameter vector.
        log_likelihood_: the mean log-density of the data.
        n_iter_: steps that were taken.

    >>> import pal
    >>> from pal.sklearn import ConstrainedDensity
    >>> x, y = pal.reals("x", "y")
    >>> triangle = (x >= 0) & (y >= 0) & (x + y <= 1)
    >>> data = pal.Region(triangle).sample(500, seed=1)
    >>> model = ConstrainedDensity(triangle, knots=3, components=1, random_state=0).fit(data)
    >>> bool(abs(model.density_.probability(x <= y) - 0.5) < 0.1)
    True
    >>> model.score_samples([[0.9, 0.9]])
    array([-inf])
    """

    def __init__(
        self,
        constraint: Any = None,
        family: str = "auto",
        knots: int = 8,
        components: int = 4,
        degree: int = 4,
        components: int = 2,
        max_iter: int = 200,
        tol: float = 1e-7,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.constraint = constraint
        self.family = family
        self.knots = knots
        self.components = components
        self.degree = degree
        self.components = components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> ConstrainedDensity:
        """Fits the density to the rows of `X`, all of which must satisfy the constraint."""
        points = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        region = self._region(points)
        if region.dimension != points.shape[1]:
            names = ", ".join(region.variables)
            raise ValueError(f"the constraint has {region.dimension} variables ({names}), but X has {points.shape[1]} columns")
        outside = np.flatnonzero(~region.contains(points))
        if len(outside):
            row = outside[0]
            raise ValueError(
                f"row {row} of X, {points[row].tolist()}, violates the constraint, and so do {len(outside) - 1} others; "
                "remove them or widen the constraint"
            )
        self.family_: Family = self._compile(region)
        random = check_random_state(self.random_state)
        starts = [random.normal(size=self.family_.num_params) for _ in range(max(1, self.n_init))]
        results = [self._climb(points, start) for start in starts]
        best = min(results, key=lambda result: result.fun)
        self.params_: Doubles = np.asarray(best.x, dtype=np.float64)
        self.density_: Density = self.family_.density(self.params_)
        self.log_likelihood_ = -float(best.fun)
        self.n_iter_ = int(best.nit)
        return self

    def _region(self, points: Doubles) -> Region:
        if isinstance(self.constraint, Region):
            return self.constraint
        if self.constraint is not None:
            return Region(as_constraint(self.constraint))
        sides = []
        names = [f"x{j}" for j in range(points.shape[1])]
        for name, low, high in zip(names, points.min(0), points.max(0)):
            margin = Fraction(float(high - low)) / 10 if high > low else Fraction(1)
            sides.append(real(name).between(Fraction(float(low)) - margin, Fraction(float(high)) + margin))
        return Region(Constraint(all_of(sides), variables=names))

    def _compile(self, region: Region) -> Family:
        if self.family not in ("auto", "spline", "sum-of-squares"):
            raise ValueError(f'families are "auto", "spline" and "sum-of-squares", not {self.family!r}')
        if self.family == "spline" or (self.family == "auto" and region.dimension <= 4):
            return SplineMixture(region, self.knots, self.components)
        return SumOfSquares(region, self.degree, self.components)

    def _climb(self, points: Doubles, start: Doubles) -> Any:
        weights = np.full(len(points), 1 / len(points))

        def loss(params: Doubles) -> tuple[float, Doubles]:
            logs = self.family_.log_prob(params, points)
            # A zero of the density on a point: a finite number lets the line search turn back.
            value = -float(np.mean(np.maximum(logs, -1e4)))
            return value, -self.family_.log_prob_vjp(params, points, weights)

        return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter, "ftol": self.tol})

    def score_samples(self, X: ArrayLike) -> Doubles:
        """The log-density of every row: minus infinity where the constraint is violated."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        return self.density_.log_prob(points)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Doubles:
        """Independent samples, one per row, all of which satisfy the constraint."""
        check_is_fitted(self)
        seed = check_random_state(random_state).randint(2**31 - 1)
        return self.density_.sample(n_samples, int(seed))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # The density is its family with its parameters.
        return {key: value for key, value in state.items() if key != "density_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "params_" in state:
            self.density_ = self.family_.density(self.params_)
