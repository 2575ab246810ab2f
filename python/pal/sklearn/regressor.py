"""A density of outputs given inputs, on a constraint, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _arrays
from .._arrays import FloatArray
from ..families import Family
from ..mixed import MixedFamily, Table
from ..region import Region
from ._layout import Layout
from ._shared import as_region, box_around, check_inside, chosen_kind, family_settings, warn_of_limit

# Rows per pass of the network where nothing is trained: bounds memory.
_ROWS = 1024


class ConstrainedRegressor(RegressorMixin, BaseEstimator):
    """A density p(y | x) of outputs given inputs that gives no mass to outputs that violate a constraint: a fully
    connected network with a layer of `pal.torch` on top, trained by maximum likelihood with Adam. The conditional twin
    of [`ConstrainedDensity`][pal.sklearn.ConstrainedDensity]; it needs PyTorch.

    Inputs are scaled to mean 0 and standard deviation 1. A part of the rows is set aside; training stops when their
    mean log-density has not become larger for some epochs, and the weights of the best epoch are kept.

    Args:
        constraint: a formula, a `Constraint` or a `Region`; its variables, in their order, are the columns of y, and
            tables with names for their columns are taken by name. Boolean variables come after the reals as columns of
            0 and 1, in tables as truth values; a category is one column of labels there. `None`: the box around y, a
            tenth wider on every side.
        family: the kind of densities by name: `"kernel"` (2 outputs), `"spline"` (1 to 4 outputs), `"sum-of-squares"` or
            `"histogram"`; `"auto"` for kernels where there are 2 outputs, no Boolean variables, and no knots, bins or
            degree are given, else for splines where they are possible and sums of squares elsewhere.
        knots: splines: the number of knots per output, or positions per output.
        bins: histograms: the number of bins per output.
        degree: sums of squares: the degree of the polynomials that are squared.
        components: the number of mixture components, or of squares in the sum.
        hidden_layer_sizes: the numbers of units of the hidden layers, with ReLU.
        learning_rate: the learning rate of Adam.
        batch_size: the number of rows per step.
        max_iter: the largest number of epochs, that is of passes through the data.
        validation_fraction: the fraction of the rows that is set aside; with 0 all epochs are run on all rows.
        n_iter_no_change: the number of epochs without a larger mean log-density after which training stops.
        random_state: the seed of the network, of the rows set aside and of their order.

    `None` for a setting of the family means its default, as for [`KernelLayer`][pal.torch.KernelLayer],
    [`SplineLayer`][pal.torch.SplineLayer], [`SumOfSquaresLayer`][pal.torch.SumOfSquaresLayer] and [`HistogramLayer`][pal.torch.HistogramLayer].

    Attributes:
        family_: the family of the densities; `None` for kernels, whose layer has none.
        layer_: the layer on top of the network, which returns PyTorch distributions.
        network_: the network, for scaled inputs.
        n_iter_: the number of epochs that were run.
        best_iter_: the epoch whose weights were kept, counted from 1.
        validation_scores_: the mean log-density of the rows set aside after every epoch; of the training rows, where
            none are.

    >>> import numpy as np, pal
    >>> from pal.sklearn import ConstrainedRegressor
    >>> a, b = pal.reals("a", "b")
    >>> X = np.random.default_rng(1).uniform(size=(200, 1))
    >>> Y = np.hstack([X, 1 - X]) / 2
    >>> shares = (a >= 0) & (b >= 0) & (a + b <= 1)
    >>> model = ConstrainedRegressor(shares, knots=10, components=2, max_iter=20, random_state=0).fit(X, Y)
    >>> model.predict(X[:5]).shape, model.sample(X[:5], 3, random_state=0).shape
    ((5, 2), (5, 3, 2))
    >>> model.log_prob([[0.5]], [[0.9, 0.9]])
    array([-inf])
    """

    def __init__(
        self,
        constraint: Any = None,
        family: str = "auto",
        knots: Any = None,
        bins: Any = None,
        degree: int | None = None,
        components: int | None = None,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        learning_rate: float = 1e-3,
        batch_size: int = 256,
        max_iter: int = 200,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 10,
        random_state: Any = None,
    ) -> None:
        self.constraint = constraint
        self.family = family
        self.knots = knots
        self.bins = bins
        self.degree = degree
        self.components = components
        self.hidden_layer_sizes = hidden_layer_sizes
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # The score is a log-density, not a coefficient of determination.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: ArrayLike, y: Any, groups: ArrayLike | None = None) -> ConstrainedRegressor:
        """Fits the densities to rows of inputs and outputs. All rows of `y` must satisfy the constraint.

        Args:
            X: the inputs, one row for each observation.
            y: the outputs, in as many rows; a list of numbers where there is one output.
            groups: a label for each row; rows with the same label, such as the steps of one walk, are set aside
                together.
        """
        given = y
        if self.constraint is None:
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
            outputs = _as_rows(y)
            labels = getattr(given, "columns", None)
            names = [f"y{j}" for j in range(outputs.shape[1])] if labels is None else [str(label) for label in labels]
            region = box_around(outputs, names)
            self._layout = Layout(region.constraint, "y", given)
        else:
            region = as_region(self.constraint)
            self._layout = Layout(region.constraint, "y", given)
            y = _arrays.float64(self._layout.plain(y), "rows of y")
            # Before scikit-learn refuses what is not finite without saying where.
            self._layout.check(_as_rows(y))
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
            outputs = _as_rows(y)
        inputs = np.asarray(X)
        self.family_, self.layer_ = self._compiled(region)
        check_inside(region, self.family_, outputs, self._layout)
        random = check_random_state(self.random_state)
        held_out = self._held_out(len(inputs), groups, random)
        self._one_column = np.ndim(y) == 1
        self._centre: FloatArray = inputs[~held_out].mean(0)
        spread = inputs[~held_out].std(0)
        # A column that does not vary tells nothing.
        self._spread: FloatArray = np.where(spread > 0, spread, 1.0)
        self._train(inputs, outputs, held_out, random)
        return self

    def _held_out(self, rows: int, groups: ArrayLike | None, random: np.random.RandomState) -> np.ndarray:
        """Which rows are set aside: whole groups, until they are the asked fraction, but never all of them."""
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is a fraction from 0 to below 1, not {self.validation_fraction!r}")
        labels = np.arange(rows) if groups is None else np.asarray(groups)
        if labels.shape != (rows,):
            raise ValueError(f"groups need one label for each of the {rows} rows; their shape is {labels.shape}")
        kinds, group = np.unique(labels, return_inverse=True)
        order = random.permutation(len(kinds))
        sizes = np.bincount(group)[order]
        wanted = self.validation_fraction * rows
        aside = np.zeros(len(kinds), dtype=bool)
        aside[order[:-1]] = (np.cumsum(sizes) - sizes / 2)[:-1] <= wanted
        return aside[group] & (wanted > 0)

    def _compiled(self, region: Region) -> tuple[Family | MixedFamily | None, Any]:
        """The family, which kernels have none of, and the layer."""
        from ..torch import KernelLayer, Layer, MixedLayer, SplineLayer

        mixed = bool(region.constraint.booleans)
        foreign = next((name for name in ("knots", "bins", "degree") if getattr(self, name) is not None), None)
        automatic = self.family == "auto" and region.dimension == 2 and foreign is None and not mixed
        if self.family == "kernel" or automatic:
            if mixed:
                raise ValueError('the family "kernel" has no Boolean variables, and the constraint has; choose another')
            if foreign is not None:
                raise ValueError(f'the family "kernel" has no {foreign}; it has components')
            return None, KernelLayer(region, components=self.components)
        kind = chosen_kind(self.family, region)
        settings = family_settings(self, kind)
        layer: Any
        if mixed:
            layer = MixedLayer(cast(Any, kind)(region, **settings))
        elif kind is SplineLayer.family_class:
            layer = SplineLayer(region, **settings)
        else:
            layer = Layer.of(kind(region, **settings))  # type: ignore[call-arg]
        return layer.family, layer

    def _train(self, X: FloatArray, Y: FloatArray, held_out: np.ndarray, random: Any) -> None:
        import torch

        from ..torch import fit

        settings_of_loop: dict[str, Any] = {
            "held_out": held_out if held_out.any() else 0.0,
            "epochs": _arrays.count(self.max_iter, "max_iter", 1),
            "patience": _arrays.count(self.n_iter_no_change, "n_iter_no_change", 1),
            "batch_size": _arrays.count(self.batch_size, "batch_size", 1),
            "learning_rate": self.learning_rate,
        }
        inputs = torch.from_numpy((X - self._centre) / self._spread).float()
        # The generator of the caller is left as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(random.randint(2**31 - 1)))
            network = self._network(inputs.shape[1])
            training = fit(network, self.layer_, inputs, Y, **settings_of_loop)
        self.network_ = network
        self.best_iter_ = training.best_epoch
        self.n_iter_ = len(training.scores)
        self.validation_scores_ = training.scores
        if held_out.any() and not training.stopped:
            warn_of_limit(f"the score of the rows set aside had not settled after {self.n_iter_} epochs")

    def _network(self, inputs: int) -> Any:
        from torch import nn

        layers: list[nn.Module] = []
        for units in self.hidden_layer_sizes:
            layers += [nn.Linear(inputs, _arrays.count(units, "the number of units", 1)), nn.ReLU()]
            inputs = units
        return nn.Sequential(*layers, nn.Linear(inputs, self.layer_.num_params))

    def _distributions(self, X: ArrayLike) -> Iterator[Any]:
        """The densities for rows of inputs, in float64, some rows at a time."""
        import torch

        check_is_fitted(self)
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = torch.from_numpy((inputs - self._centre) / self._spread).float()
        with torch.no_grad():
            for part in scaled.split(_ROWS):
                yield self.layer_(self.network_(part).double())

    def predict(self, X: ArrayLike, kind: str | None = None) -> Any:
        """One point for each row of inputs, in the form of the outputs that were fitted: an array, a dict of columns or a
        table of pandas.

        Args:
            X: the inputs.
            kind: `"mean"`, the mean of the density, which minimises the mean squared error but may violate a constraint
                that is not convex; or `"mode"`, the point of largest density, which never does. By default the mean,
                and the mode where there are Boolean variables or categories. Their means are probabilities: one column
                for each Boolean variable and each value of a category.
        """
        if kind not in (None, "mean", "mode"):
            raise ValueError(f'kinds of predictions are "mean" and "mode"; not {kind!r}')
        check_is_fitted(self)
        if isinstance(self.family_, MixedFamily):
            densities = self.predict_density(X)
            if kind == "mean":
                return self._layout.means(np.stack([density.mean() for density in densities]))
            return self._layout.restored(np.stack([density.mode().point for density in densities]))
        points = np.concatenate([getattr(p, kind or "mean").numpy() for p in self._distributions(X)])
        return points[:, 0] if self._one_column else self._layout.restored(points)

    def predict_tables(self, X: ArrayLike, *names: str) -> list[Table]:
        """The joint probabilities of Boolean variables and categories for each row of inputs, by tuples of their values.

        Args:
            X: the inputs.
            names: Boolean variables and categories; by default all of them.
        """
        check_is_fitted(self)
        if not isinstance(self.family_, MixedFamily):
            raise ValueError("tables are of Boolean variables and categories, and the constraint has none")
        return [density.table(*names) for density in self.predict_density(X)]

    def predict_density(self, X: ArrayLike) -> list[Any]:
        """The [`Density`][pal.Density] for each row of inputs, with all its queries; a
        [`MixedDensity`][pal.MixedDensity] where the constraint has Boolean variables, and with kernels a
        [`KernelDistribution`][pal.torch.KernelDistribution] of one density."""
        check_is_fitted(self)
        if self.family_ is None:
            return [p[row] for p in self._distributions(X) for row in range(p.batch_shape[0])]
        return [density for p in self._distributions(X) for density in p.densities()]

    def log_prob(self, X: ArrayLike, y: Any) -> FloatArray:
        """The log-density of every row of outputs given its inputs: minus infinity where the constraint is violated."""
        import torch

        check_is_fitted(self)
        outputs = _as_rows(self._layout.plain(y))
        inputs = validate_data(self, X, dtype=np.float64, reset=False)
        self._layout.check(outputs)
        if len(outputs) != len(inputs):
            raise ValueError(f"X has {len(inputs)} rows, but y has {len(outputs)}")
        parts = torch.from_numpy(outputs).split(_ROWS)
        return np.concatenate([p.log_prob(points).numpy() for p, points in zip(self._distributions(X), parts)])

    def score(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> float:  # type: ignore
        """The mean log-density of the rows of outputs given their inputs."""
        return float(np.average(self.log_prob(X, y), weights=cast(Any, sample_weight)))

    def sample(self, X: ArrayLike, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Independent samples for each row of inputs, all of which satisfy the constraint.

        Args:
            X: the inputs.
            n_samples: the number of samples for each row.
            random_state: the seed of the samples.

        Returns:
            an array of rows by samples by outputs, in the order of the columns of a family, also where the outputs had
            names; `family_.named` gives them back.
        """
        import torch

        random = check_random_state(random_state)
        parts = []
        for p in self._distributions(X):
            seed = int(random.randint(2**31 - 1))
            if self.family_ is None:
                samples = p.sample((n_samples,), generator=torch.Generator().manual_seed(seed))
                parts.append(samples.transpose(0, 1).numpy())
            else:
                parts.append(self.family_.sample(p.params.numpy(), n_samples, seed))
        return np.concatenate(parts)


def _as_rows(y: Any) -> FloatArray:
    outputs = np.asarray(y, dtype=np.float64)
    return outputs.reshape(-1, 1) if outputs.ndim == 1 else outputs
