"""The distribution that a layer returns: one density on the constraint for each parameter vector of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property

from .. import _arrays, _core
from ..density import ENTROPY_DEFAULT, Density, Entropy, Marginal, Mode
from ..errors import QueryError
from ..formula import Constraint, Formula, reals
from . import _fused, _pathwise, _rounding
from .normaliser import Normaliser

if TYPE_CHECKING:
    from ..integrals import Integrand
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
        # The sum of finite numbers may be infinite, but a finite sum is one of finite numbers: several times as fast.
        total = value.detach().sum().isfinite()
        if not torch.compiler.is_compiling() and bool(total):
            return total.expand(value.shape[:-1])
        return value.isfinite().all(-1)


class ConstrainedDistribution(Distribution):
    """Densities on a constraint, one for each parameter vector of a batch (PAL paper, Eq. (PAL)):

        p(y) = q(y; params) 1[y satisfies the constraint] / normaliser(params)

    `log_prob`, `probability`, `mean`, `variance` and `covariance` are tensor operations with derivatives. `sample`,
    `mode`, `entropy`, `cdf` and `marginal` are computed by the core and have none. `rsample`, where it exists, has
    first derivatives.

    Unlike other distributions, `log_prob` accepts any point: it is minus infinity outside the constraint.

    Args:
        layer: the layer whose constants are used.
        params: parameter vectors of the family along the last axis; or `None`, if `outputs` are given.
        normaliser: by which integrals the components are divided; by default those over the constraint of the layer.
        event: the form of what is known to hold besides, as [`condition`][pal.torch.ConstrainedDistribution.condition]
            sets it.
        validate_args: whether parameters that are not finite are an error at once.
        outputs: outputs of a network, from which the head of the layer makes the parameters when they are needed; the
            fused pass of `log_prob` does without them.
    """

    arg_constraints = {"params": _Finite()}

    def __init__(
        self,
        layer: Layer,
        params: Tensor | None,
        normaliser: Normaliser | None = None,
        event: Normaliser | None = None,
        validate_args: bool | None = None,
        outputs: Tensor | None = None,
    ) -> None:
        name, given, width = "params", params, layer.family.num_params
        if params is None:
            name, given, width = "outputs", outputs, layer.num_params
        if not isinstance(given, Tensor) or not given.is_floating_point():
            kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
            raise TypeError(f"{name} must be a tensor of floating-point numbers, not {kind}")
        if given.dim() == 0 or given.shape[-1] != width:
            shape = tuple(given.shape)
            raise ValueError(f"{name} need {width} numbers along the last axis; the shape is {shape}")
        self.layer = layer
        self._outputs = None if params is not None else given
        if params is not None:
            self.params = params
        elif self._validate_args if validate_args is None else validate_args:
            finite = self.arg_constraints["params"].check(given)
            if not bool(finite.all()):
                raise ValueError(f"outputs must be finite; those of {int((~finite).sum())} rows are not")
        self.normaliser = layer.normaliser if normaliser is None else normaliser
        self._event = event
        self._variables = layer.family.variables
        super().__init__(given.shape[:-1], torch.Size([len(self._variables)]), validate_args=validate_args)

    @lazy_property
    def params(self) -> Tensor:
        """The parameter vectors of the family, along the last axis."""
        head = self.layer.head
        assert head is not None and self._outputs is not None, "parameters are given, or made from outputs by a head"
        return head(self._outputs)

    @property
    def support(self) -> InRegion:
        """Where the density may be positive."""
        return InRegion(self.constraint)

    @property
    def constraint(self) -> Constraint:
        """The constraint that all samples satisfy."""
        constraint, condition = self.layer.constraint, self._condition
        return constraint if condition is None else constraint & condition

    @property
    def _condition(self) -> Formula | None:
        """What holds besides the constraint of the layer."""
        # The form of an event is that of the conditions of the normaliser and of the event together.
        return self.normaliser.condition if self._event is None else self._event.condition

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether [`rsample`][pal.torch.ConstrainedDistribution.rsample] exists."""
        return self._paths.obstacle is None

    @property
    def _paths(self) -> _pathwise.Paths:
        """The geometry of pathwise derivatives, kept with what it belongs to."""
        owner = (self.layer if self._condition is None else self).__dict__
        if "_known_paths" not in owner:
            owner["_known_paths"] = _pathwise.Paths(self.layer, self.constraint)
        return owner["_known_paths"]

    def expand(self, batch_shape: Any, _instance: Any = None) -> ConstrainedDistribution:
        """The same densities in a larger batch."""
        params = self.params.expand(*torch.Size(batch_shape), self.params.shape[-1])
        return ConstrainedDistribution(self.layer, params, self.normaliser, self._event, validate_args=False)

    @property
    def _rows(self) -> Tensor:
        """Parameters as rows in a precision that logarithms can be taken in."""
        rows = self.params.reshape(-1, self.params.shape[-1])
        return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()

    def _core_params(self) -> np.ndarray:
        """Parameters for the core, whose densities, given the condition, are these."""
        with torch.no_grad():
            if self._outputs is None:
                rows = self.layer.in_float64(self._rows.detach())
            else:
                assert self.layer.head is not None, "outputs go through a head"
                rows = self.layer.head(self._outputs.detach().double()).reshape(-1, self.layer.family.num_params)
            rows = self.layer.conditional_params(rows, self.normaliser)
        return rows.cpu().numpy()

    def _points(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Points with their coordinates along the last axis, from these or from a dict of columns by name."""
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(column) for column in _arrays.named(value, self._variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        _arrays.check_width(value.shape, self._variables)
        return value

    def log_prob(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """The log-density of points: minus infinity outside, never NaN.

        Points have their coordinates along the last axis, in the order of the variables; a dict of tensors has them by
        name.

        Where a density is zero inside the constraint, or too small for the precision of the parameters, it is the
        logarithm of the smallest number at hand, so that training can go on.
        """
        value = self._points(value)
        n = self.event_shape[0]
        outputs = self._outputs
        if outputs is not None and self._condition is None and value.shape[:-1] == self.batch_shape and value.numel():
            # One point for each row of outputs is how networks are trained: head and layer are one pass.
            rows = outputs.reshape(-1, outputs.shape[-1])
            rows = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
            points = value.reshape(-1, n).to(torch.float64)
            if _fused.usable(self.layer, rows, points):
                return _fused.log_prob(self.layer, rows, points, student_t=True).reshape(self.batch_shape)
        # One point for each row is how networks are trained: no time is lost on it.
        full = batch = self.batch_shape
        if value.shape[:-1] != batch:
            full = torch.broadcast_shapes(value.shape[:-1], batch)
        if 0 in full:
            # An empty tensor that has gradients nevertheless.
            return (self.params.sum() * 0).expand(full)
        rows = self._rows
        if full[len(full) - len(batch) :] != batch:
            batch = full
            rows = self.params.expand(*full, -1).reshape(-1, self.params.shape[-1]).to(rows.dtype)
        form = self.normaliser.form
        if full == batch:
            points = value.expand(*full, n).reshape(-1, n).to(torch.float64)
            if self._condition is None and _fused.usable(self.layer, rows, points):
                logs = _fused.log_prob(self.layer, rows, points)
            else:
                logs, inside = self.layer.log_components_paired(rows, points, form)
                logs = self._log_density(logs, inside, points, self._log_mass(rows))
        else:
            points = value.expand(*full, n).reshape(-1, batch.numel(), n).transpose(0, 1).to(torch.float64)
            if self._condition is None and _fused.usable(self.layer, rows, points):
                # Many points of one density, without derivatives: the core needs no large intermediate tensors.
                logs = _fused.log_prob_of_one(self.layer, rows, points)
                if logs is not None:
                    return logs.reshape(full).to(self.params.dtype)
            logs, inside = self.layer.log_components(rows, points, form)
            logs = self._log_density(logs, inside, points, self._log_mass(rows).unsqueeze(-1)).transpose(0, 1)
        return logs.reshape(full).to(self.params.dtype)

    def _log_density(self, log_components: Tensor, inside: Tensor, points: Tensor, log_mass: Tensor) -> Tensor:
        if self._condition is not None:
            inside = inside & self.support.check(points)
        return (log_components.logsumexp(-1) - log_mass).masked_fill(~inside, -math.inf)

    def _log_mass(self, rows: Tensor) -> Tensor:
        """The logarithm of the volume of the box, which components are relative to, times the probability of the
        event."""
        volume = rows.new_tensor([self.layer._log_volume])
        return volume if self._event is None else volume + self._mass(rows).log()

    def _mass(self, rows: Tensor) -> Tensor:
        """The probability of the event."""
        assert self._event is not None, "asked for only where there is an event"
        return self.layer.expectation(rows, self.normaliser.form, self._event.form)

    def _expectation(self, condition: Formula | bool, powers: Sequence[int] = ()) -> Tensor:
        """The expectation of a monomial in box coordinates on an event, given the condition."""
        rows = self._rows
        given = True if self._condition is None else self._condition
        form = self.layer.integral_form(given & condition, powers)
        value = self.layer.expectation(rows, self.normaliser.form, form)
        return value if self._event is None else value / self._mass(rows)

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event, with derivatives."""
        return self._expectation(event).clamp(0, 1).reshape(self.batch_shape).to(self.params.dtype)

    def expectation(self, polynomial: Integrand) -> Tensor:
        """The expectations of a polynomial in the variables, with derivatives.

        >>> import pal, torch
        >>> from pal.torch import SumOfSquaresLayer
        >>> x, y = pal.reals("x", "y")
        >>> p = SumOfSquaresLayer(x.between(0, 2) & y.between(0, 1), degree=0, components=1)(torch.zeros(3, 2))
        >>> p.expectation(x * y + 3)
        tensor([3.5000, 3.5000, 3.5000])
        """
        terms = _core.Polynomial(polynomial).terms_over(self._variables)
        # In the coordinates of the box, which run from 0 to 1, with exact coefficients.
        scaled = _core.Polynomial(0)
        for exponents, coefficient in terms.items():
            product = _core.Polynomial(coefficient)
            for name, edges, exponent in zip(self._variables, self.layer.family.edges, exponents):
                low, high = Fraction(float(edges[0])), Fraction(float(edges[-1]))
                product = product * _core.Polynomial(low + (high - low) * reals(name)[0]) ** exponent
            scaled = scaled + product
        value = self._rows.new_zeros(self.batch_shape.numel())
        for powers, coefficient in scaled.terms_over(self._variables).items():
            value = value + float(coefficient) * self._expectation(True, list(powers))
        return value.reshape(self.batch_shape).to(self.params.dtype)

    def __getitem__(self, index: Any) -> ConstrainedDistribution:
        """The densities at an index into the batch.

        >>> import pal, torch
        >>> from pal.torch import SplineLayer
        >>> (x,) = pal.reals("x")
        >>> layer = SplineLayer(x.between(0, 1))
        >>> p = layer(torch.randn(4, 3, layer.num_params))
        >>> p[1].batch_shape, p[:, 2].batch_shape, p[..., 0, 1].batch_shape
        (torch.Size([3]), torch.Size([4]), torch.Size([]))
        """
        given = self._outputs if self._outputs is not None else self.params
        if not self.batch_shape:
            raise IndexError("this is a single density: there is no batch to index")
        chosen = torch.arange(self.batch_shape.numel()).reshape(self.batch_shape)[index]
        rows = given.reshape(-1, given.shape[-1])[chosen.reshape(-1)].reshape(*chosen.shape, given.shape[-1])
        if self._outputs is not None:
            return ConstrainedDistribution(self.layer, None, self.normaliser, self._event, False, outputs=rows)
        return ConstrainedDistribution(self.layer, rows, self.normaliser, self._event, validate_args=False)

    def condition(self, condition: Formula) -> ConstrainedDistribution:
        """The densities given that a condition holds: zero elsewhere."""
        event = self.layer.normaliser_within(condition if self._condition is None else self._condition & condition)
        new = ConstrainedDistribution(self.layer, self.params, self.normaliser, event, validate_args=False)
        with torch.no_grad():
            mass = new._mass(new._rows)
        if not bool((mass > 0).all()):
            raise QueryError("the condition has probability 0 under some of these densities")
        return new

    @property
    def mean(self) -> Tensor:
        """The means of the variables, with derivatives."""
        edges = self.layer.family.edges
        parts = []
        for j, axis in enumerate(edges):
            fraction = self._expectation(True, [int(k == j) for k in range(len(edges))])
            parts.append(float(axis[0]) + float(axis[-1] - axis[0]) * fraction)
        return torch.stack(parts, -1).reshape(*self.batch_shape, len(edges)).to(self.params.dtype)

    @property
    def covariance(self) -> Tensor:
        """The covariance matrices of the variables, with derivatives."""
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
        """The variances of the variables, with derivatives."""
        return self.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def densities(self) -> list[Density]:
        """One [`Density`][pal.Density] for each parameter vector, for all further questions."""
        if self._condition is None:
            return self.layer.family.densities(self._core_params())
        return self.layer.family.condition(self._condition, self._core_params())

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples in the precision of the parameters, every one of which satisfies the constraint
        exactly. A generator makes them reproducible by itself; without one, `torch.manual_seed` does."""
        shape = torch.Size(sample_shape)
        with torch.no_grad():
            return _rounding.inside(self._draw(shape, generator), self.constraint, self.params)

    def _draw(self, shape: torch.Size, generator: torch.Generator | None) -> Tensor:
        count, n = shape.numel(), self.event_shape[0]
        batch = self.batch_shape
        if count * batch.numel() == 0:
            return torch.empty(*shape, *batch, n, dtype=torch.float64)
        # The generator of PyTorch decides, so that its seed means the same samples.
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), dtype=torch.int64, device=device, generator=generator))
        if self._condition is None:
            samples = self.layer.family.sample(self._core_params(), count, seed)
        else:
            parts = [density.sample(count, seed + row) for row, density in enumerate(self.densities())]
            samples = np.stack(parts)
        return torch.from_numpy(samples.reshape(-1, count, n)).transpose(0, 1).reshape(*shape, *batch, n)

    def rsample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Samples with pathwise derivatives, by implicit differentiation of the inverse transform, in the precision of
        the parameters. The generator is as in `sample`.

        For convex regions, where samples move continuously with the parameters; also for a condition under which a
        region becomes convex. Where a sample would have to jump across an obstacle, no pathwise derivative exists, and
        this is an error: use `log_prob` and a score-function estimate there. Derivatives are of first order only. The
        work, all of it in the backward pass, grows quickly with the number of variables and of knots.
        """
        paths = self._paths
        if paths.obstacle is not None:
            message = f"no pathwise derivatives: {paths.obstacle}; use log_prob and a score-function estimate"
            raise NotImplementedError(message)
        fixed = _rounding.inside(self._draw(torch.Size(sample_shape), generator), self.constraint, self.params)
        return _pathwise.MovingSamples.apply(self._rows, fixed, self.layer, paths, self.normaliser.form)

    @property
    def mode(self) -> Tensor:
        """The points of largest density."""
        modes = self.modes() if self.batch_shape.numel() else []
        points = torch.from_numpy(np.array([mode.point for mode in modes]).reshape(-1, self.event_shape[0]))
        points = points.reshape(*self.batch_shape, self.event_shape[0])
        return _rounding.inside(points, self.constraint, self.params)

    def modes(self, **options: Any) -> list[Mode]:
        """The points of largest density in float64, with certificates; options as of
        [`Density.mode`][pal.Density.mode]."""
        if self._condition is None:
            return self.layer.family.mode(self._core_params(), **options)
        return [density.mode(**options) for density in self.densities()]

    def entropies(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> list[Entropy]:
        """The entropies in float64, with estimates of their errors."""
        if self._condition is None:
            return self.layer.family.entropy(self._core_params(), tolerance)
        return [density.entropy(tolerance) for density in self.densities()]

    def entropy(self) -> Tensor:
        """The differential entropies in nats, to 1e-6; without derivatives."""
        values = torch.tensor([entropy.value for entropy in self.entropies()], dtype=torch.float64)
        return values.reshape(self.batch_shape).to(self.params)

    def cdf(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """The probability that no variable exceeds its coordinate; without derivatives. Points are as in `log_prob`."""
        value = self._points(value)
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
            marginals = self.layer.family.marginal(variable, self._core_params())
        else:
            marginals = [density.marginal(variable) for density in self.densities()]
        return Marginals(marginals, self.batch_shape, self.params)

    def given(self, values: Mapping[str, float]) -> list[Density]:
        """The densities of the other variables, given values of some, one [`Density`][pal.Density] for each
        parameter vector."""
        if self._condition is None:
            return self.layer.family.given(values, self._core_params())
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
        """The means of the variable."""
        values = [m.mean for m in self.marginals]
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._like)

    @property
    def variance(self) -> Tensor:
        """The variances of the variable."""
        values = [m.variance for m in self.marginals]
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._like)
