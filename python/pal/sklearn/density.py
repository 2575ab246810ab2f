"""A density on a constraint as a scikit-learn estimator, for families of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._arrays import FloatArray
from ..density import Density
from ..families import Family, SplineMixture
from ..mixed import MixedDensity, MixedFamily
from ..region import Region
from ._layout import Layout
from ._shared import as_region, box_around, check_inside, chosen_kind, family_settings, warn_of_limit


# Where there are many data, splines in one and two variables get these settings unless others are asked for.
_FINER = {"knots": 28, "components": 16}
_ROWS_PER_PARAM = 10


class ConstrainedDensity(DensityMixin, BaseEstimator):
    """A density that gives no mass to what violates a constraint, fitted by maximum likelihood.

    Args:
        constraint: a formula, a `Constraint` or a `Region`; its variables, in their order, are the columns of the data,
            and tables with names for their columns are taken by name. Boolean variables come after the reals as columns
            of 0 and 1, in tables as truth values; a category is one column of labels there. `None`: the box around the
            data, a tenth wider on every side.
        family: the kind of densities by name: `"spline"` (1 to 4 columns), `"sum-of-squares"` or `"histogram"`;
            `"auto"` for splines where they are possible and sums of squares elsewhere.
        knots: splines: the number of knots per column, or positions per column.
        bins: histograms: the number of bins per column.
        degree: sums of squares: the degree of the polynomials that are squared.
        components: the number of mixture components, or of squares in the sum.
        max_iter: the largest number of steps of the optimiser.
        tol: the relative improvement at which the optimiser stops.
        n_init: the number of starts from different random parameters, of which the best is kept.
        random_state: the seed of these starts.

    `None` for a setting of the family means its default, as for [`SplineMixture`][pal.SplineMixture],
    [`SumOfSquares`][pal.SumOfSquares] and [`HistogramMixture`][pal.HistogramMixture]. Splines of one or two columns for
    which neither `knots` nor `components` is given have 28 knots and 16 components where there are at least ten rows
    for each of their parameters.

    Attributes:
        density_: the fitted [`Density`][pal.Density], with all its queries; a [`MixedDensity`][pal.MixedDensity] where the
            constraint has Boolean variables.
        family_: the family of the density.
        params_: the parameter vector of the density.
        log_likelihood_: the mean log-density of the data.
        n_iter_: the number of steps that the optimiser took.

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

    With truth values and labels:

    >>> carrier, express = pal.Category("carrier", ["post", "courier"]), pal.boolean("express")
    >>> rules = x.between(0, 30) & pal.implies(carrier == "post", x <= 5) & pal.implies(express, carrier == "courier")
    >>> orders = {"x": [1.0, 20.0, 3.0], "carrier": ["post", "courier", "courier"], "express": [False, True, False]}
    >>> model = ConstrainedDensity(rules, knots=3, components=1, random_state=0).fit(orders)
    >>> samples = model.sample(1000, random_state=1)
    >>> bool((samples["x"][samples["carrier"] == "post"] <= 5).all())
    True
    """

    def __init__(
        self,
        constraint: Any = None,
        family: str = "auto",
        knots: Any = None,
        bins: Any = None,
        degree: int | None = None,
        components: int | None = None,
        max_iter: int = 200,
        tol: float = 1e-7,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.constraint = constraint
        self.family = family
        self.knots = knots
        self.bins = bins
        self.degree = degree
        self.components = components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> ConstrainedDensity:
        """Fits the density to the rows of `X`, all of which must satisfy the constraint."""
        if self.constraint is None:
            points = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
            region = self._around(points)
            self._layout = Layout(region.constraint, "X", X)
        else:
            region = as_region(self.constraint)
            self._layout = Layout(region.constraint, "X", X)
            points = self._points(X, reset=True, ensure_min_samples=2)
        self.family_: Family | MixedFamily = self._compile(region, len(points))
        check_inside(region, self.family_, points, self._layout)
        random = check_random_state(self.random_state)
        starts = [random.normal(size=self.family_.num_params) for _ in range(max(1, self.n_init))]
        results = [self._maximise(points, start) for start in starts]
        best = min(results, key=lambda result: result.fun)
        self.params_: FloatArray = np.asarray(best.x, dtype=np.float64)
        self.density_: Density | MixedDensity = self.family_.density(self.params_)
        self.log_likelihood_ = -float(best.fun)
        self.n_iter_ = int(best.nit)
        if self.n_iter_ >= self.max_iter:
            warn_of_limit(f"the likelihood was still growing after {self.n_iter_} steps of the optimiser")
        return self

    def _points(self, X: Any, reset: bool = False, **checks: Any) -> FloatArray:
        """The rows as the family takes them."""
        if self.constraint is None:
            return validate_data(self, X, dtype=np.float64, reset=reset, **checks)
        # Numbers that are not finite are refused with their row and column, and not by scikit-learn without.
        plain = self._layout.plain(X)
        points = validate_data(self, plain, dtype=np.float64, reset=reset, ensure_all_finite=False, **checks)
        self._layout.check(points)
        return points

    def _around(self, points: FloatArray) -> Region:
        """The box around the data, over the names of its columns, or `x0`, `x1`, ..."""
        names = [str(name) for name in getattr(self, "feature_names_in_", [f"x{j}" for j in range(points.shape[1])])]
        return box_around(points, names)

    def _compile(self, region: Region, rows: int) -> Family | MixedFamily:
        kind = chosen_kind(self.family, region)
        settings = family_settings(self, kind)
        mixed = bool(region.constraint.booleans)
        if kind is SplineMixture and not settings and not mixed and region.dimension in (1, 2):
            # As many parameters as the finer family has, for each of which there should be some rows.
            params = _FINER["components"] * (1 + 2 * region.dimension * _FINER["knots"])
            settings = _FINER if rows >= _ROWS_PER_PARAM * params else {}
        return kind(region, **settings)  # type: ignore[call-arg]

    def _maximise(self, points: FloatArray, start: FloatArray) -> Any:
        weights = np.full(len(points), 1 / len(points))

        def loss(params: FloatArray) -> tuple[float, FloatArray]:
            logs = self.family_.log_prob(params, points)
            # A zero of the density on a point: a finite number lets the line search turn back.
            value = -float(np.mean(np.maximum(logs, -1e4)))
            return value, -self.family_.log_prob_vjp(params, points, weights)

        return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter, "ftol": self.tol})

    def score_samples(self, X: Any) -> FloatArray:
        """The log-density of every row: minus infinity where the constraint is violated."""
        check_is_fitted(self)
        return self.density_.log_prob(self._points(X))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Independent samples, one per row, all of which satisfy the constraint, in the form of the rows that were
        fitted: an array, a dict of columns, or a table of pandas with the same columns. Truth values and labels then
        have the types that were given; real numbers are float64, because rounding could carry them out of the
        constraint."""
        check_is_fitted(self)
        seed = check_random_state(random_state).randint(2**31 - 1)
        return self._layout.restored(self.density_.sample(n_samples, int(seed)))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # The density is its family with its parameters.
        return {key: value for key, value in state.items() if key != "density_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "params_" in state:
            self.density_ = self.family_.density(self.params_)
