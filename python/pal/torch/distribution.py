"""The distribution that a layer returns: one density on the constraint for each parameter vector of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, register_kl
from torch.distributions.utils import lazy_property

from .. import _arrays, _core
from .._arrays import Points
from ..density import ENTROPY_DEFAULT, Density, Entropy, Mode
from ..errors import QueryError
from ..formula import Constraint, Formula, all_of, as_formula, reals
from . import _devices, _fused, _information, _moments, _pathwise, _precision, _rounding
from ._points import common_shape
from .given import GivenDistribution
from .marginals import Marginals
from .normaliser import Normaliser
from .support import Finite, InRegion

if TYPE_CHECKING:
    from ..integrals import Integrand
    from .layer import Layer


class ConstrainedDistribution(Distribution):
    """Densities on a constraint, one for each parameter vector of a batch (PAL paper, Eq. (PAL)):

        p(y) = q(y; params) 1[y satisfies the constraint] / normaliser(params)

    `log_prob`, `probability`, `mean`, `variance` and `covariance_matrix` are tensor operations with derivatives; where
    these would be too large, the core computes them with first derivatives. So do `entropy`, `kl_divergence` and
    `given`. `sample`, `mode`, `cdf` and `marginal` have none. `rsample`, where it exists, has first derivatives.

    Points, such as samples and means, are in the precision of the parameters, or in float64 where the numbers of a
    shorter format are so far apart, far from the origin, that they do not resolve the box around the constraint to
    about a millionth of its side (more than eight times the machine epsilon of the format).

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

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> layer = pal.torch.SplineLayer((x >= 0) & (y >= 0) & (x + y <= 1), knots=6, components=2)
    >>> p = layer(torch.zeros(3, layer.num_params, requires_grad=True))
    >>> p.log_prob(torch.tensor([[0.25, 0.25], [0.5, 0.5], [0.75, 0.75]])).isfinite()
    tensor([ True,  True, False])
    >>> below = p.condition(y <= x)
    >>> below.probability(y > x).detach().round(decimals=6), p.mean.shape, p.probability(x <= y).requires_grad
    (tensor([0., 0., 0.]), torch.Size([3, 2]), True)
    """

    arg_constraints = {"params": Finite()}

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
        _devices.require_float64(given.device, name)
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
        constraint, condition = self.layer.family.constraint, self._condition
        return constraint if condition is None else constraint & condition

    @property
    def _condition(self) -> Formula | None:
        """What holds besides the constraint of the layer."""
        # The form of an event is that of the conditions of the normaliser and of the event together.
        return self.normaliser.condition if self._event is None else self._event.condition

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether [`rsample`][pal.torch.ConstrainedDistribution.rsample] exists, with its usual limit of memory."""
        if self._path_obstacle is not None:
            return False
        try:
            self._paths.chunks(self.layer, self.normaliser.tensor, 1, 1, _pathwise.MEMORY)
        except NotImplementedError:
            return False
        return True

    @property
    def _path_obstacle(self) -> str | None:
        """Why there are no pathwise derivatives, however much memory there is."""
        if self.normaliser.form is None:
            return "written out for all bins, the normaliser of this layer would be too large; fewer knots need less"
        return self._paths.obstacle

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

    def _core_rows(self) -> Tensor:
        """Parameters for the core in float64, whose densities, given the condition, are these; with derivatives."""
        if self._outputs is None:
            rows = self.layer.in_float64(self._rows)
        else:
            assert self.layer.head is not None, "outputs go through a head"
            rows = self.layer.head(self._outputs.double()).reshape(-1, self.layer.family.num_params)
        return self.layer.conditional_params(rows, self.normaliser)

    def _core_params(self) -> np.ndarray:
        """The same as an array."""
        with torch.no_grad():
            return self._core_rows().detach().cpu().numpy()

    @property
    def _given_tensor(self) -> Tensor:
        """What the distribution was made of: parameters, or outputs of a network."""
        return self.params if self._outputs is None else self._outputs

    @property
    def _dtype(self) -> torch.dtype:
        """The precision of log-densities and probabilities: that of the parameters, but float32 at least. Shorter
        formats, which autocast makes, hold two or three digits of a loss."""
        return _precision.at_least_float32(self._given_tensor.dtype)

    @property
    def _point_dtype(self) -> torch.dtype:
        """The precision of points."""
        return _precision.point_dtype(self.layer, self._given_tensor.dtype)

    def _by_core(self) -> bool:
        """Whether integrals have to be computed by the core, because forms would be too large for tensor operations."""
        return self.normaliser.form is None

    def _points(self, value: Tensor | Points) -> Tensor:
        """Points with their coordinates along the last axis, from these or from a dict of columns by name."""
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(column) for column in _arrays.named(value, self._variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        elif not isinstance(value, Tensor):
            flat, shape = _arrays.points(value, self._variables)
            value = torch.from_numpy(flat).reshape(*shape, len(self._variables)).to(self._given_tensor.device)
        _arrays.check_width(value.shape, self._variables)
        _devices.require_float64(value.device, "points")
        _precision.warn_of_lost_points(self.layer, value.dtype)
        return value

    def log_prob(self, value: Tensor | Points) -> Tensor:
        """The log-density of points: minus infinity outside, never NaN. In the precision of the parameters, but float32
        at least.

        Points have their coordinates along the last axis, in the order of the variables; a dict of tensors or a table
        of pandas has them by name. Tensors, arrays and lists of numbers will do; keep them in float64. One warning
        tells of points outside where derivatives are asked for: a mean of minus infinities trains nothing.

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
                logs = _fused.log_prob(self.layer, rows, points, student_t=True)
                return self._noticed(logs.reshape(self.batch_shape))
        # One point for each row is how networks are trained: no time is lost on it.
        full = batch = self.batch_shape
        if value.shape[:-1] != batch:
            full = common_shape(value, batch)
        if 0 in full:
            # An empty tensor that has gradients nevertheless.
            return (self.params.sum() * 0).expand(full).to(self._dtype)
        rows = self._rows
        if full[len(full) - len(batch) :] != batch:
            batch = full
            rows = self.params.expand(*full, -1).reshape(-1, self.params.shape[-1]).to(rows.dtype)
        if full == batch:
            points = value.expand(*full, n).reshape(-1, n).to(torch.float64)
            if self._fusible and _fused.usable(self.layer, rows, points):
                logs = self._log_conditional(_fused.log_prob(self.layer, rows, points), points)
            else:
                logs, inside = self.layer.log_components_paired(rows, points, self.normaliser.tensor)
                logs = self._log_density(logs, inside, points, self._log_mass(rows))
        else:
            points = value.expand(*full, n).reshape(-1, batch.numel(), n).transpose(0, 1).to(torch.float64)
            if self._condition is None and _fused.usable(self.layer, rows, points):
                # Many points of one density, without derivatives: the core needs no large intermediate tensors.
                of_one = _fused.log_prob_of_one(self.layer, rows, points)
                if of_one is not None:
                    return of_one.reshape(full).to(self._dtype)
            if self._by_core() and self._fusible and _fused.usable(self.layer, rows, points):
                # One point of every row at a time.
                each = (_fused.log_prob(self.layer, rows, part) for part in points.unbind(1))
                logs = self._log_conditional(torch.stack(tuple(each), -1), points)
                return logs.transpose(0, 1).reshape(full).to(self._dtype)
            logs, inside = self.layer.log_components(rows, points, self.normaliser.tensor)
            logs = self._log_density(logs, inside, points, self._log_mass(rows).unsqueeze(-1)).transpose(0, 1)
        return self._noticed(logs.reshape(full).to(self._dtype))

    def _noticed(self, logs: Tensor) -> Tensor:
        """Log-densities as they are; once for a layer a warning, if some that are trained on are minus infinity."""
        if logs.requires_grad and logs.device.type == "cpu":
            _precision.warn_of_points_outside(self.layer, logs)
        return logs

    @property
    def _fusible(self) -> bool:
        """Whether the fused pass, which knows no conditions, has all but the probability of an event."""
        return self._condition is None or (self._by_core() and self.normaliser.condition is None)

    def _log_conditional(self, logs: Tensor, points: Tensor) -> Tensor:
        """Log-densities given the event, from those without it: rows, or rows by points."""
        if self._event is None:
            return logs
        log_mass = self._mass(self._rows).log().to(logs)
        log_mass = log_mass if logs.dim() == 1 else log_mass.unsqueeze(-1)
        return (logs - log_mass).masked_fill(~self.support.check(points), -math.inf)

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
        if self._by_core():
            return _moments.probability(self.layer, self._core_rows(), self._event.condition)
        return self.layer.expectation(rows, self.normaliser.tensor, self._event.tensor)

    def _with_condition(self, more: Formula | bool) -> Formula | None:
        """What holds besides the constraint of the layer, and a further formula."""
        parts = [part for part in (self._condition, more) if part is not None and part is not True]
        return all_of(parts) if parts else None

    def _expectations(self, condition: Formula | bool, powers: Sequence[Sequence[int]]) -> Tensor:
        """The expectations of monomials in box coordinates on an event, given the condition: rows by monomials."""
        if self._by_core():
            rows = self._core_rows()
            values = _moments.moments(self.layer, rows, self._with_condition(condition), powers)
            if self._condition is None:
                return values
            return values / _moments.probability(self.layer, rows, self._condition).unsqueeze(-1)
        rows = self._rows
        given = self._with_condition(condition)
        forms = [self.layer.integral_form(True if given is None else given, each) for each in powers]
        values = torch.stack([self.layer.expectation(rows, self.normaliser.tensor, form) for form in forms], -1)
        return values if self._event is None else values / self._mass(rows).unsqueeze(-1)

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event, with derivatives."""
        value = self._expectations(as_formula(event, "the event"), [[0] * self.event_shape[0]]).squeeze(-1)
        return value.clamp(0, 1).reshape(self.batch_shape).to(self._dtype)

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
        terms = scaled.terms_over(self._variables)
        if not terms:
            return self._rows.new_zeros(self.batch_shape).to(self._dtype)
        values = self._expectations(True, [list(powers) for powers in terms])
        value = values @ values.new_tensor([float(coefficient) for coefficient in terms.values()])
        return value.reshape(self.batch_shape).to(self._dtype)

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
        known = self._with_condition(as_formula(condition, "the condition"))
        event = self.layer.normaliser_within(all_of([]) if known is None else known)
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
        fractions = self._expectations(True, np.eye(len(edges), dtype=int).tolist()).double()
        low = fractions.new_tensor([axis[0] for axis in edges])
        length = fractions.new_tensor([axis[-1] - axis[0] for axis in edges])
        return (low + length * fractions).reshape(*self.batch_shape, len(edges)).to(self._point_dtype)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of the variables, with derivatives."""
        edges = self.layer.family.edges
        n = len(edges)
        unit = np.eye(n, dtype=int)
        pairs = [(i, j) for i in range(n) for j in range(i + 1)]
        moments = self._expectations(True, [*unit.tolist(), *((unit[i] + unit[j]).tolist() for i, j in pairs)])
        at = [n + pairs.index((max(i, j), min(i, j))) for i in range(n) for j in range(n)]
        first, second = moments[:, :n], moments[:, at].unflatten(-1, (n, n))
        length = first.new_tensor([axis[-1] - axis[0] for axis in edges])
        matrix = (second - first.unsqueeze(-1) * first.unsqueeze(-2)) * length.unsqueeze(-1) * length
        return matrix.reshape(*self.batch_shape, n, n).to(self._dtype)

    @property
    def covariance(self) -> Tensor:
        """Another name of `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of the variables, with derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def densities(self) -> list[Density]:
        """One [`Density`][pal.Density] for each parameter vector, for all further questions."""
        if self._condition is None:
            return self.layer.family.densities(self._core_params())
        return self.layer.family.condition(self._condition, self._core_params())

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples, every one of which satisfies the constraint exactly; in the precision of points, see
        [`ConstrainedDistribution`][pal.torch.ConstrainedDistribution]. A generator makes them reproducible by itself;
        without one, `torch.manual_seed` does."""
        shape = torch.Size(sample_shape)
        with torch.no_grad():
            return self._in_point_dtype(self._draw(shape, generator))

    def _in_point_dtype(self, points: Tensor) -> Tensor:
        """Points in float64, rounded to the precision of points so that they satisfy the constraint still."""
        like = self._given_tensor.detach()
        return _rounding.inside(points, self.constraint, like.new_empty(0, dtype=self._point_dtype))

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
            event = _moments.event(self.layer, self._condition)
            samples = event.sample(self._core_params().reshape(-1), count, seed)
        return torch.from_numpy(samples.reshape(-1, count, n)).transpose(0, 1).reshape(*shape, *batch, n)

    def rsample(
        self,
        sample_shape: Any = torch.Size(),
        *,
        generator: torch.Generator | None = None,
        memory: float = _pathwise.MEMORY,
    ) -> Tensor:
        """Samples with pathwise derivatives, by implicit differentiation of the inverse transform, in the precision of
        points. The generator is as in `sample`.

        For convex regions, where samples move continuously with the parameters; also for a condition under which a
        region becomes convex. Where a sample would have to jump across an obstacle, no pathwise derivative exists, and
        this is an error: use `log_prob` and a score-function estimate there. Derivatives are of first order only.

        The work, all of it in the backward pass, grows quickly with the number of variables and of knots. It is done in
        chunks of densities and samples that take about `memory` bytes, a gibibyte unless told otherwise; where a single
        sample needs more, this is an error that says how much.
        """
        paths = self._paths
        obstacle = self._path_obstacle
        if obstacle is not None:
            message = f"no pathwise derivatives: {obstacle}; use log_prob and a score-function estimate"
            raise NotImplementedError(message)
        shape, form = torch.Size(sample_shape), self.normaliser.tensor
        rows = self._rows
        chunks = paths.chunks(self.layer, form, len(rows), shape.numel(), memory)
        fixed = self._in_point_dtype(self._draw(shape, generator))
        return _pathwise.MovingSamples.apply(rows, fixed, self.layer, paths, form, chunks)

    @property
    def mode(self) -> Tensor:
        """The points of largest density."""
        modes = self.modes() if self.batch_shape.numel() else []
        points = torch.from_numpy(np.array([mode.point for mode in modes]).reshape(-1, self.event_shape[0]))
        points = points.reshape(*self.batch_shape, self.event_shape[0])
        return self._in_point_dtype(points)

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

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance, samples: int | None = None) -> Tensor:
        """The differential entropies in nats, with first derivatives with respect to the parameters.

        By adaptive cubature until the estimate of the error is below the tolerance for every density; a warning names
        the rows for which it is not. Derivatives are sums over the same nodes. To 1e-3, as for a term of a loss, this
        takes a small part of the time that the default takes. More cautious estimates of the errors are those of
        [`entropies`][pal.torch.ConstrainedDistribution.entropies].

        In many variables cubature would take too long, and is refused; `samples` of each density then give an unbiased
        Monte Carlo estimate, with derivatives by the score function and a leave-one-out baseline.

        >>> import pal, torch
        >>> from pal.torch import SplineLayer
        >>> (x,) = pal.reals("x")
        >>> layer = SplineLayer(x.between(0, 4), knots=5, components=1, head="values")
        >>> params = torch.zeros(3, layer.num_params, requires_grad=True)
        >>> entropy = layer(params).entropy(tolerance=1e-3)              # that of the uniform density is log 4
        >>> entropy.sum().backward()
        >>> entropy.tolist(), params.grad.abs().max() < 1e-6             # and is the largest possible
        ([1.3862943649291992, 1.3862943649291992, 1.3862943649291992], tensor(True))
        """
        if samples is not None:
            return _information.from_samples(self, None, samples)
        if not self.batch_shape.numel():
            return (self.params.sum() * 0).expand(self.batch_shape)
        return _information.entropy(self, tolerance).reshape(self.batch_shape).to(self._dtype)

    def kl_divergence(
        self,
        other: ConstrainedDistribution,
        tolerance: float = ENTROPY_DEFAULT.tolerance,
        samples: int | None = None,
    ) -> Tensor:
        """The Kullback-Leibler divergences `E[log p(y) - log q(y)]` of these densities from others, in nats, with first
        derivatives with respect to the parameters of both. `torch.distributions.kl_divergence` calls this.

        The other densities may come from another layer on the same variables. Where these densities have mass outside
        of the constraint of the others, which is decided exactly, the divergence is infinite. `tolerance` and `samples`
        are as for [`entropy`][pal.torch.ConstrainedDistribution.entropy].

        >>> import pal, torch
        >>> from pal.torch import SplineLayer
        >>> (x,) = pal.reals("x")
        >>> layer = SplineLayer(x.between(0, 4), knots=5, components=1, head="values")
        >>> p = layer(torch.zeros(layer.num_params))
        >>> below = p.condition(x <= 1)
        >>> torch.distributions.kl_divergence(below, p).round(decimals=4), p.kl_divergence(below)
        (tensor(1.3863), tensor(inf))
        """
        batch = torch.broadcast_shapes(self.batch_shape, other.batch_shape)
        p = self if self.batch_shape == batch else self.expand(batch)
        q = other if other.batch_shape == batch else other.expand(batch)
        if samples is not None:
            return _information.from_samples(p, q, samples)
        if not batch.numel():
            return (p.params.sum() * 0 + q.params.sum() * 0).expand(batch)
        return _information.kl_divergence(p, q, tolerance).reshape(batch).to(self._dtype)

    def cdf(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """The probability that no variable exceeds its coordinate; without derivatives. Points are as in `log_prob`."""
        value = self._points(value)
        n = self.event_shape[0]
        full = common_shape(value, self.batch_shape)
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
        return Marginals(marginals, self.batch_shape, self._given_tensor, self._point_dtype)

    def given(
        self, values: Mapping[str, float | Tensor] | None = None, **more: float | Tensor
    ) -> list[Density] | GivenDistribution:
        """The densities of the other variables, given values of some: `p.given(y=0.5)` or `p.given({"y": 0.5})`.

        Of numbers, one [`Density`][pal.Density] for each parameter vector. Of tensors, which are broadcast against the
        batch, a [`GivenDistribution`][pal.torch.GivenDistribution]: another value for each parameter vector, and
        derivatives with respect to the parameters.

        >>> import pal, torch
        >>> from pal.torch import SplineLayer
        >>> x, y = pal.reals("x", "y")
        >>> layer = SplineLayer((x >= 0) & (y >= 0) & (x + y <= 1), knots=5)
        >>> p = layer(torch.randn(3, layer.num_params, requires_grad=True))
        >>> of_x = p.given({"y": torch.tensor([0.25, 0.5, 0.75])})
        >>> of_x.sample((10,)).shape, of_x.log_prob(torch.tensor([0.125])).requires_grad
        (torch.Size([10, 3, 1]), True)
        >>> [density.variables for density in p.given({"y": 0.25})]
        [('x',), ('x',), ('x',)]
        """
        known = {**(values or {}), **more}
        numbers = {name: value for name, value in known.items() if not isinstance(value, Tensor)}
        if len(numbers) < len(known):
            return GivenDistribution(self, known)
        if self._condition is None:
            return self.layer.family.given(numbers, self._core_params())
        return [density.given(numbers) for density in self.densities()]

    def __repr__(self) -> str:
        return f"ConstrainedDistribution({', '.join(self._variables)}; batch_shape={tuple(self.batch_shape)})"


@register_kl(ConstrainedDistribution, ConstrainedDistribution)
def _(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    return p.kl_divergence(q)
