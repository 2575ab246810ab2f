"""The distribution that a layer returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from ..density import Density, Entropy, Marginal, Mode
from ..errors import QueryError
from ..formula import Constraint, Formula
from . import _pathwise, _rounding

if TYPE_CHECKING:
    from .layer import Layer


class InRegion(constraints.Constraint):
    """The points that satisfy a formula, decided exactly."""

    event_dim = 1

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def check(self, value: Tensor) -> Tensor:
        """Whether points, along the last axis, satisfy the formula."""
        points = value.detach().to("cpu", torch.float64).numpy()
        return torch.from_numpy(np.asarray(self.constraint.contains(points))).to(value.device)

    def __repr__(self) -> str:
        return f"InRegion({self.constraint.formula!r})"


class _Finite(constraints.Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        # The sum of finite numbers may be infinite, but one that is finite is a sum of finite numbers: several times as fast.
        total = value.detach().sum().isfinite()
        if not torch.compiler.is_compiling() and bool(total):
            return total.expand(value.shape[:-1])
        return value.isfinite().all(-1)


class ConstrainedDistribution(Distribution):
    """Densities on a constraint, one for each parameter vector of a batch.

    `log_prob`, `probability`, `mean`, `variance` and `covariance` are tensor operations with gradients. `sample`, `mode`, `entropy`, `cdf` and `marginal` are
    computed by the core and have none. `rsample`, where it exists, has first derivatives.

    Unlike other distributions, `log_prob` accepts any point: it is minus infinity outside the constraint.
    """

    arg_constraints = {"params": _Finite()}

    def __init__(
        self, layer: Layer, params: Tensor, condition: Formula | None = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(params, Tensor) or not params.is_floating_point():
            kind = params.dtype if isinstance(params, Tensor) else type(params).__name__
            raise TypeError(f"params must be a tensor of floating-point numbers, not {kind}")
        if params.dim() == 0 or params.shape[-1] != layer.num_params:
            raise ValueError(f"params need {layer.num_params} numbers along the last axis; the shape is {tuple(params.shape)}")
        self.layer = layer
        self.params = params
        self._condition = condition
        self._variables = layer.family.variables
        super().__init__(params.shape[:-1], torch.Size([len(self._variables)]), validate_args=validate_args)

    @property
    def support(self) -> InRegion:
        """Where the density may be positive."""
        return InRegion(self.constraint)

    @property
    def constraint(self) -> Constraint:
        """The same as a constraint."""
        whole = self.layer.constraint
        return whole if self._condition is None else whole & self._condition

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether [`rsample`][pal.torch.ConstrainedDistribution.rsample] exists."""
        return self._paths.obstacle is None

    @property
    def _paths(self) -> _pathwise.Paths:
        """The geometry of pathwise gradients, kept with what it belongs to."""
        owner = (self.layer if self._condition is None else self).__dict__
        if "_known_paths" not in owner:
            owner["_known_paths"] = _pathwise.Paths(self.layer, self.constraint)
        return owner["_known_paths"]

    def expand(self, batch_shape: Any, _instance: Any = None) -> ConstrainedDistribution:
        """The same densities in a larger batch."""
        params = self.params.expand(*torch.Size(batch_shape), self.params.shape[-1])
        return ConstrainedDistribution(self.layer, params, self._condition, validate_args=False)

    @property
    def _rows(self) -> Tensor:
        """Parameters as rows in a precision that logarithms can be taken in."""
        rows = self.params.reshape(-1, self.params.shape[-1])
        return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()

    def _numpy(self) -> np.ndarray:
        return self._rows.detach().to("cpu", torch.float64).numpy()

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-density of points along the last axis: minus infinity outside, never NaN.

        Where a density is zero inside the constraint, or too small for the precision of the parameters, it is the logarithm of the smallest number at
        hand, so that training can go on.
        """
        n = self.event_shape[0]
        if value.dim() == 0 or value.shape[-1] != n:
            raise ValueError(f"points need {n} coordinates along the last axis; the shape is {tuple(value.shape)}")
        # One point each is how networks are trained: no time is lost on it.
        full = batch = self.batch_shape
        if value.shape[:-1] != batch:
            full = torch.broadcast_shapes(value.shape[:-1], batch)
        if 0 in full:
            # Nothing, but with gradients.
            return (self.params.sum() * 0).expand(full)
        rows = self._rows
        if full[len(full) - len(batch) :] != batch:
            batch = full
            rows = self.params.expand(*full, -1).reshape(-1, self.params.shape[-1]).to(rows.dtype)
        if full == batch:
            points = value.expand(*full, n).reshape(-1, n).to(torch.float64)
            logs = self._logs(*self.layer.log_terms_each(rows, points), points, self._log_mass(rows))
        else:
            points = value.expand(*full, n).reshape(-1, batch.numel(), n).transpose(0, 1).to(torch.float64)
            logs = self._logs(*self.layer.log_terms(rows, points), points, self._log_mass(rows).unsqueeze(-1)).transpose(0, 1)
        return logs.reshape(full).to(self.params.dtype)

    def _logs(self, terms: Tensor, inside: Tensor, points: Tensor, log_mass: Tensor) -> Tensor:
        if self._condition is not None:
            inside = inside & self.support.check(points)
        return (terms.logsumexp(-1) - log_mass).masked_fill(~inside, -math.inf)

    def _log_mass(self, rows: Tensor) -> Tensor:
        """The logarithm of the volume of the box, which terms are relative to, times the probability of the condition."""
        volume = rows.new_tensor([self.layer._recipe["log_volume"]])
        return volume if self._condition is None else volume + self._mass(rows).log()

    def _mass(self, rows: Tensor) -> Tensor:
        """The probability of the condition."""
        return self.layer.expectation(rows, self.layer.form(self._condition))

    def _expectation(self, condition: Formula | bool, powers: Sequence[int] = ()) -> Tensor:
        """The expectation of a monomial in box coordinates on an event, given the condition."""
        rows = self._rows
        given = True if self._condition is None else self._condition
        value = self.layer.expectation(rows, self.layer.form(given & condition, powers))
        if self._condition is not None:
            value = value / self._mass(rows)
        return value

    def probability(self, gamma: Formula) -> Tensor:
        """The probability of a further constraint, with gradients."""
        return self._expectation(gamma).clamp(0, 1).reshape(self.batch_shape).to(self.params.dtype)

    def condition(self, gamma: Formula) -> ConstrainedDistribution:
        """The densities given that a further constraint holds: zero elsewhere."""
        both = gamma if self._condition is None else self._condition & gamma
        new = ConstrainedDistribution(self.layer, self.params, both, validate_args=False)
        with torch.no_grad():
            mass = new._mass(new._rows)
        if not bool((mass > 0).all()):
            raise QueryError("the condition has probability 0 under some of these densities")
        return new

    @property
    def mean(self) -> Tensor:
        """The means of the variables, with gradients."""
        edges = self.layer.family.edges
        parts = []
        for j, axis in enumerate(edges):
            share = self._expectation(True, [int(k == j) for k in range(len(edges))])
            parts.append(float(axis[0]) + float(axis[-1] - axis[0]) * share)
        return torch.stack(parts, -1).reshape(*self.batch_shape, len(edges)).to(self.params.dtype)

    @property
    def covariance(self) -> Tensor:
        """The covariance matrices of the variables, with gradients."""
        edges = self.layer.family.edges
        n = len(edges)
        unit = np.eye(n, dtype=int)
        first = [self._expectation(True, unit[j].tolist()) for j in range(n)]
        rows = [[None] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                second = self._expectation(True, (unit[i] + unit[j]).tolist())
                scale = float(edges[i][-1] - edges[i][0]) * float(edges[j][-1] - edges[j][0])
                rows[i][j] = rows[j][i] = (second - first[i] * first[j]) * scale
        matrix = torch.stack([torch.stack(row, -1) for row in rows], -2)
        return matrix.reshape(*self.batch_shape, n, n).to(self.params.dtype)

    @property
    def variance(self) -> Tensor:
        """The variances of the variables, with gradients."""
        return self.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def densities(self) -> list[Density]:
        """One density of the core for each parameter vector, for all further questions."""
        if self._condition is None:
            return self.layer.family.densities(self._numpy())
        return self.layer.family.condition(self._condition, self._numpy())

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:
        """Independent samples, every one of which satisfies the constraint exactly, in the precision of the parameters."""
        shape = torch.Size(sample_shape)
        with torch.no_grad():
            return _rounding.inside(self._draw(shape), self.constraint, self.params)

    def _draw(self, shape: torch.Size) -> Tensor:
        count, n = shape.numel(), self.event_shape[0]
        batch = self.batch_shape
        if count * batch.numel() == 0:
            return torch.empty(*shape, *batch, n, dtype=torch.float64)
        # The generator of PyTorch decides, so that its seed means the same samples.
        seed = int(torch.randint(2**62, (), dtype=torch.int64))
        if self._condition is None:
            samples = self.layer.family.sample(self._numpy(), count, seed)
        else:
            parts = [density.sample(count, seed + row) for row, density in enumerate(self.densities())]
            samples = np.stack(parts)
        return torch.from_numpy(samples.reshape(-1, count, n)).transpose(0, 1).reshape(*shape, *batch, n)

    def rsample(self, sample_shape: Any = torch.Size()) -> Tensor:
        """Samples with pathwise gradients, by implicit differentiation of the inverse transform; in the precision of the parameters.

        For convex regions, where samples move continuously with the parameters; also for a condition under which a region becomes convex. Where a
        sample would have to jump across an obstacle no pathwise gradient exists, and this is an error: use `log_prob` and a score-function estimate
        there. Gradients are of first order only. The work, all of it in the backward pass, grows quickly with the number of variables and of knots.
        """
        paths = self._paths
        if paths.obstacle is not None:
            raise NotImplementedError(f"no pathwise gradients: {paths.obstacle}; use log_prob and a score-function estimate")
        fixed = _rounding.inside(self._draw(torch.Size(sample_shape)), self.constraint, self.params)
        return _pathwise.Moving.apply(self._rows, fixed, self.layer, paths)

    @property
    def mode(self) -> Tensor:
        """The points of largest density."""
        modes = self.modes() if self.batch_shape.numel() else []
        points = torch.from_numpy(np.array([mode.point for mode in modes]).reshape(-1, self.event_shape[0]))
        points = points.reshape(*self.batch_shape, self.event_shape[0])
        return _rounding.inside(points, self.constraint, self.params)

    def modes(self, **options: Any) -> list[Mode]:
        """The same in doubles, with certificates; options as of [`Density.mode`][pal.Density.mode]."""
        if self._condition is None:
            return self.layer.family.mode(self._numpy(), **options)
        return [density.mode(**options) for density in self.densities()]

    def entropies(self, tolerance: float = 1e-6) -> list[Entropy]:
        """The entropies in doubles, with estimates of their errors."""
        if self._condition is None:
            return self.layer.family.entropy(self._numpy(), tolerance)
        return [density.entropy(tolerance) for density in self.densities()]

    def entropy(self) -> Tensor:
        """The differential entropies in nats, to 1e-6; without gradients."""
        values = torch.tensor([entropy.value for entropy in self.entropies()], dtype=torch.float64)
        return values.reshape(self.batch_shape).to(self.params)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability that no variable exceeds its coordinate; without gradients."""
        n = self.event_shape[0]
        full = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        points = value.detach().expand(*full, n).reshape(-1, n).to("cpu", torch.float64).tolist()
        densities = self.densities()
        which = torch.arange(len(densities)).reshape(self.batch_shape).expand(full).reshape(-1).tolist()
        values = [densities[row].cdf(dict(zip(self._variables, point))) for row, point in zip(which, points)]
        return torch.tensor(values, dtype=torch.float64).reshape(full).to(self.params)

    def marginal(self, variable: str) -> Marginals:
        """The exact marginals of one variable."""
        if self._condition is None:
            marginals = self.layer.family.marginal(variable, self._numpy())
        else:
            marginals = [density.marginal(variable) for density in self.densities()]
        return Marginals(marginals, self.batch_shape, self.params)

    def given(self, values: Mapping[str, float]) -> list[Density]:
        """The densities of the other variables, given values of some, as densities of the core."""
        if self._condition is None:
            return self.layer.family.given(values, self._numpy())
        return [density.given(values) for density in self.densities()]

    def __repr__(self) -> str:
        return f"ConstrainedDistribution({', '.join(self._variables)}; batch_shape={tuple(self.batch_shape)})"


class Marginals:
    """The exact marginals of one variable under all densities of a batch. Positions are broadcast against the batch."""

    def __init__(self, marginals: list[Marginal], batch_shape: torch.Size, like: Tensor) -> None:
        self.marginals = marginals
        self.batch_shape = batch_shape
        self._like = like.detach()

    def _each(self, name: str, at: Tensor) -> Tensor:
        full = torch.broadcast_shapes(at.shape, self.batch_shape)
        columns = at.detach().expand(full).reshape(-1, len(self.marginals)).to("cpu", torch.float64).numpy()
        values = [getattr(marginal, name)(columns[:, row]) for row, marginal in enumerate(self.marginals)]
        return torch.from_numpy(np.stack(values, -1)).reshape(full).to(self._like)

    def density(self, at: Tensor) -> Tensor:
        """The densities at positions."""
        return self._each("density", at)

    def cdf(self, at: Tensor) -> Tensor:
        """The probabilities of values up to positions."""
        return self._each("cdf", at)

    def icdf(self, p: Tensor) -> Tensor:
        """The positions where probabilities are reached."""
        return self._each("quantile", p)

    @property
    def mean(self) -> Tensor:
        """The means."""
        return torch.tensor([m.mean for m in self.marginals], dtype=torch.float64).reshape(self.batch_shape).to(self._like)

    @property
    def variance(self) -> Tensor:
        """The variances."""
        values = [m.variance for m in self.marginals]
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._like)
