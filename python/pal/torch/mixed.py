"""Mixed densities as the last layer of a network: outputs over real and Boolean variables at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from .. import _core
from .._arrays import Points
from ..density import ENTROPY_DEFAULT, Entropy, Mode
from ..errors import QueryError
from ..formula import Constraint, Formula, as_formula, boolean, reals
from ..integrals import Integrand
from ..mixed import MixedDensity, MixedFamily, Table
from . import _information, _mixed_rows, _precision
from ._points import common_shape
from .marginals import Marginals
from .support import Finite, InMixed


class MixedLayer(nn.Module):
    """The last layer of a network whose outputs are parameters of a mixed family.

    The work is done on the CPU: log-densities in the precision of the outputs, float32 or float64, in one pass of the
    core with their derivatives; everything else in float64.

    Args:
        family: a mixed family, such as `pal.SplineMixture` makes of a constraint with Boolean variables.

    >>> import pal, pal.torch
    >>> (x,) = pal.reals("x")
    >>> wet = pal.boolean("wet")
    >>> layer = pal.torch.MixedLayer(pal.SplineMixture(x.between(0, 4) & (~wet | (x <= 1)), knots=5, components=2))
    >>> params = torch.zeros(3, layer.num_params, requires_grad=True)
    >>> distribution = layer(params)
    >>> loss = -distribution.log_prob(torch.tensor([[0.5, 1.0], [3.0, 0.0], [0.2, 0.0]])).mean()
    >>> loss.backward()
    >>> bool(params.grad.isfinite().all()), distribution.probability(wet).shape
    (True, torch.Size([3]))
    """

    def __init__(self, family: MixedFamily) -> None:
        super().__init__()
        if not isinstance(family, MixedFamily):
            raise TypeError(f"a mixed layer needs a mixed family, not {type(family).__name__}")
        self.family = family
        self._named = _mixed_rows.NamedFamily(family)

    @property
    def num_params(self) -> int:
        """The number of outputs of a network that one density takes."""
        return self.family.num_params

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return self.family.constraint

    def forward(self, params: Tensor) -> MixedDistribution:
        """The densities with the given parameters, along the last axis."""
        validate = False if torch.compiler.is_compiling() else None
        return MixedDistribution(self.family, params, validate_args=validate)

    def get_extra_state(self) -> dict[str, str]:
        """What the layer was made from: weights that were trained for another layer make other densities."""
        free = "" if self.family.free is None else ", ".join(self.family.free)
        return {"constraint": self.constraint.to_smtlib(), "settings": repr(self.family.settings), "free": free}

    def set_extra_state(self, state: dict[str, str]) -> None:
        own = self.get_extra_state()
        wrong = [name for name in own if state.get(name) != own[name]]
        if wrong:
            raise RuntimeError(
                f"the state is that of a layer with another {wrong[0]}: {state.get(wrong[0])} instead of {own[wrong[0]]}"
            )

    def extra_repr(self) -> str:
        return repr(self.family)


class MixedDistribution(Distribution):
    """Densities over real and Boolean variables, one for each parameter vector of a batch.

    A point has its real variables first, then a 0 or 1 for every Boolean one. `log_prob`, `probability`, `table`,
    `mean`, `variance`, `covariance_matrix` and `expectation` have first derivatives with respect to the parameters.
    `sample`, `mode`, `marginal` and `given` have none.

    Unlike other distributions, `log_prob` accepts any point: it is minus infinity outside the constraint.

    Args:
        family: the mixed family.
        params: parameter vectors along the last axis.
        condition: what is known to hold besides; `condition` sets it.
        validate_args: whether parameters that are not finite are an error at once.

    >>> import pal, pal.torch
    >>> (x,) = pal.reals("x")
    >>> wet = pal.boolean("wet")
    >>> family = pal.HistogramMixture(x.between(0, 4) & (~wet | (x <= 1)), bins=4, components=1)
    >>> p = pal.torch.MixedDistribution(family, torch.zeros(3, family.num_params, dtype=torch.float64))
    >>> p.log_prob(torch.tensor([2.0, 1.0])), p.probability(wet)
    (tensor([-inf, -inf, -inf], dtype=torch.float64), tensor([0.2000, 0.2000, 0.2000], dtype=torch.float64))
    """

    arg_constraints = {"params": Finite()}
    has_rsample = False

    def __init__(
        self,
        family: MixedFamily,
        params: Tensor,
        condition: Formula | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(params, Tensor) or not params.is_floating_point():
            kind = params.dtype if isinstance(params, Tensor) else type(params).__name__
            raise TypeError(f"params must be a tensor of floating-point numbers, not {kind}")
        if params.dim() == 0 or params.shape[-1] != family.num_params:
            raise ValueError(
                f"the layer needs {family.num_params} parameters along the last axis; the shape is {tuple(params.shape)}"
            )
        if params.device.type != "cpu":
            raise ValueError(f"mixed layers work on the CPU, and the parameters are on {params.device}; move them there")
        self.family = family
        self.params = params
        self._condition = condition
        # Compiled once for all questions about the same condition.
        self._known: dict[str, Any] = {}
        super().__init__(params.shape[:-1], torch.Size([len(family.columns)]), validate_args=validate_args)

    @property
    def support(self) -> InMixed:
        """Where the density may be positive."""
        return InMixed(self.family if self._condition is None else self._event)

    @property
    def constraint(self) -> Constraint:
        """The constraint that all samples satisfy."""
        constraint = self.family.constraint
        return constraint if self._condition is None else constraint & self._condition

    @property
    def _event(self) -> _core.MixedEvent:
        """The condition, compiled."""
        if "event" not in self._known:
            condition = True if self._condition is None else self._condition
            self._known["event"] = _core.MixedEvent(self.family._core, condition)
        return self._known["event"]

    @property
    def _dtype(self) -> torch.dtype:
        """The precision of answers: that of the parameters, but float32 at least."""
        return _precision.at_least_float32(self.params.dtype)

    @property
    def _point_dtype(self) -> torch.dtype:
        """The precision of points: equalities hold in float64 only."""
        return torch.float64 if self.family.free is not None else self._dtype

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixedDistribution:
        """The same densities in a larger batch."""
        params = self.params.expand(*torch.Size(batch_shape), self.params.shape[-1])
        return self._with(params)

    def __getitem__(self, index: Any) -> MixedDistribution:
        """The densities at an index into the batch."""
        if not self.batch_shape:
            raise IndexError("this is a single density: there is no batch to index")
        chosen = torch.arange(self.batch_shape.numel()).reshape(self.batch_shape)[index]
        rows = self.params.reshape(-1, self.params.shape[-1])[chosen.reshape(-1)]
        return self._with(rows.reshape(*chosen.shape, self.params.shape[-1]))

    def _with(self, params: Tensor) -> MixedDistribution:
        new = MixedDistribution(self.family, params, self._condition, validate_args=False)
        new._known = self._known
        return new

    def _points(self, points: Tensor | Points) -> Tensor:
        """Points with their columns along the last axis, in float64."""
        if not isinstance(points, Tensor):
            return torch.from_numpy(self.family.points(points))
        if points.requires_grad:
            raise ValueError("mixed densities have no derivatives with respect to points; detach them")
        if points.dim() == 0 or points.shape[-1] != self.event_shape[0]:
            columns = ", ".join(self.family.columns)
            raise ValueError(f"points have the columns {columns} along the last axis; the shape is {tuple(points.shape)}")
        if self.family.free is not None and points.dtype != torch.float64:
            raise ValueError(
                f"the constraint has equalities, which numbers of type {points.dtype} do not satisfy; give points in "
                "torch.float64"
            )
        return points.detach().to("cpu", torch.float64)

    def log_prob(self, points: Tensor | Points) -> Tensor:
        """The log-density of points: minus infinity outside the constraint. Points are a tensor with real variables
        first, then 0 and 1 for Boolean ones, or columns by name; one for each density, or several along axes before
        those of the batch.

        Where a density is zero inside the constraint, or too small for the precision of the parameters, it is the
        logarithm of the smallest number at hand, so that training can go on.
        """
        points = self._points(points)
        full = batch = self.batch_shape
        if points.shape[:-1] != batch:
            full = common_shape(points, batch)
        if 0 in full:
            return (self.params.sum() * 0).expand(full).to(self._dtype)
        params = self.params.to(self._dtype).expand(*full, self.params.shape[-1])
        points = points.expand(*full, points.shape[-1])
        logs = _mixed_rows.log_prob(self.family, params.reshape(-1, params.shape[-1]), points.reshape(full.numel(), -1))
        logs = logs.reshape(full)
        if self._condition is None:
            return logs
        return (logs - self._mass().log()).masked_fill(~self.support.check(points), -math.inf)

    def _mass(self) -> Tensor:
        """The probability of the condition."""
        return _Probability.apply(self.params, self._event)

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event on real and Boolean variables, with derivatives."""
        wanted = as_formula(event, "the event")
        if self._condition is None:
            return _Probability.apply(self.params, _core.MixedEvent(self.family._core, wanted))
        both = _Probability.apply(self.params, _core.MixedEvent(self.family._core, self._condition & wanted))
        return (both / self._mass()).clamp(0, 1)

    def condition(self, condition: Formula) -> MixedDistribution:
        """The densities given that a condition on real and Boolean variables holds: zero elsewhere."""
        further: Any = as_formula(condition, "the condition")
        both = further if self._condition is None else self._condition & further
        new = MixedDistribution(self.family, self.params, both, validate_args=False)
        with torch.no_grad():
            if not bool((new._mass() > 0).all()):
                raise QueryError("the condition has probability 0 under some of these densities")
        return new

    def given(self, values: Mapping[str, Any] | None = None, **more: Any) -> list[MixedDensity]:
        """One density of the other variables for each parameter vector, given values of some: `p.given(x=0.5,
        wet=True)`. For a batch given truth values alone, `p.condition(wet)` has derivatives."""
        return [density.given({**(values or {}), **more}) for density in self.densities()]

    def _expectations(self, wanted: Sequence[tuple[Any, Formula | bool]], name: str | None = None) -> Tensor:
        """Expectations of polynomials times indicators of conditions, along a last axis; kept under a name."""
        compiled = None if name is None else self._known.get(name)
        if compiled is None:
            known = self._condition
            if known is not None:
                wanted = [(each, known if event is True else known & event) for each, event in wanted]
            compiled = _core.MixedExpectation(self.family._core, list(wanted))
            if name is not None:
                self._known[name] = compiled
        values = _Expectations.apply(self.params, compiled, len(wanted))
        return values if self._condition is None else values / self._mass().double().unsqueeze(-1)

    def table(self, *names: str) -> dict[tuple[Any, ...], Tensor]:
        """The joint probabilities of Boolean variables and categories, by tuples of their values, with derivatives: one
        tensor of the shape of the batch for each.

        >>> import pal, pal.torch
        >>> (x,) = pal.reals("x")
        >>> wet = pal.boolean("wet")
        >>> layer = pal.torch.MixedLayer(pal.HistogramMixture(x.between(0, 4) & (~wet | (x <= 1)), bins=4, components=1))
        >>> table = layer(torch.zeros(2, layer.num_params)).table("wet")
        >>> {key: p.tolist() for key, p in table.items()}
        {(False,): [0.800000011920929, 0.800000011920929], (True,): [0.20000000298023224, 0.20000000298023224]}
        """
        columns = self.family._columns
        names = names or columns.discrete
        choices: list[list[tuple[Any, Formula]]] = []
        for name in names:
            if name in columns.categories and name not in columns.booleans:
                choices.append([(value, boolean(f"{name}={value}")) for value in columns.categories[name]])
            elif name in columns.booleans:
                choices.append([(False, ~boolean(name)), (True, boolean(name))])
            else:
                known = ", ".join(columns.discrete)
                raise QueryError(f"there is no Boolean variable or category `{name}`; there is {known}")
        if math.prod(map(len, choices)) > 2**16:
            raise QueryError(f"a table of {len(names)} variables has too many rows; ask for fewer")
        keys = [tuple(value for value, _ in row) for row in itertools.product(*choices)]
        rows = [_all(formula for _, formula in row) for row in itertools.product(*choices)]
        values = self._expectations([(_core.Polynomial(1), row) for row in rows], f"table {names}")
        return dict(zip(keys, values.to(self._dtype).unbind(-1)))

    def tables(self, *names: str) -> list[Table]:
        """The joint probabilities of Boolean variables and categories under each row, as numbers."""
        return [density.table(*names) for density in self.densities()]

    def _shifted(self) -> tuple[list[Any], np.ndarray]:
        """The real variables relative to the middle of the box, so that no digits cancel far from the origin."""
        centre = self.family._core.centre
        terms = [_core.Polynomial(reals(name)[0] - Fraction(c)) for name, c in zip(self.family.variables, centre)]
        return terms, centre

    @property
    def mean(self) -> Tensor:
        """The means of all columns, with derivatives: those of the real variables, then probabilities."""
        shifted, centre = self._shifted()
        wanted: list[tuple[Any, Formula | bool]] = [(term, True) for term in shifted]
        wanted += [(_core.Polynomial(1), boolean(name)) for name in self.family.booleans]
        shift = torch.zeros(len(wanted), dtype=torch.float64)
        shift[: len(centre)] = torch.from_numpy(centre)
        return (self._expectations(wanted, "mean") + shift).to(self._point_dtype)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of all columns, with derivatives."""
        shifted, _ = self._shifted()
        truth = [boolean(name) for name in self.family.booleans]
        one = _core.Polynomial(1)
        columns: list[tuple[Any, Formula | bool]] = [(term, True) for term in shifted]
        columns += [(one, formula) for formula in truth]

        def pair(i: int, j: int) -> tuple[Any, Formula | bool]:
            (first, a), (second, b) = columns[i], columns[j]
            return first * second, a if b is True or i == j else b if a is True else a & b

        n = len(columns)
        below = [(i, j) for i in range(n) for j in range(i + 1)]
        values = self._expectations(columns + [pair(i, j) for i, j in below], "covariance")
        at = [n + below.index((max(i, j), min(i, j))) for i in range(n) for j in range(n)]
        first, second = values[..., :n], values[..., at].unflatten(-1, (n, n))
        return (second - first.unsqueeze(-1) * first.unsqueeze(-2)).to(self._dtype)

    @property
    def covariance(self) -> Tensor:
        """Another name of `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of all columns, with derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def expectation(self, polynomial: Integrand, condition: Formula | None = None) -> Tensor:
        """The expectations of a polynomial in the real variables times the indicator of a condition, with
        derivatives."""
        event = True if condition is None else as_formula(condition, "the condition")
        return self._expectations([(polynomial, event)]).squeeze(-1).to(self._dtype)

    def densities(self) -> list[MixedDensity]:
        """One density for each parameter vector, which answers all further questions."""
        densities = self.family.densities(_numbers(self.params).reshape(-1, self.family.num_params))
        if self._condition is None:
            return densities
        return [density.condition(self._condition) for density in densities]

    def marginal(self, variable: str) -> Marginals:
        """The exact marginals of one real variable; those of Boolean variables are tables."""
        marginals = [density.marginal(variable) for density in self.densities()]
        return Marginals(marginals, self.batch_shape, self.params, self._point_dtype)

    def entropies(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> list[Entropy]:
        """The entropies of assignments and reals together in float64, with estimates of their errors."""
        return [density.entropy(tolerance) for density in self.densities()]

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance, samples: int | None = None) -> Tensor:
        """The entropies of assignments and reals together, in nats.

        By cubature they have no derivatives; `samples` of each density give an unbiased Monte Carlo estimate, with
        derivatives by the score function and a leave-one-out baseline.
        """
        if samples is not None:
            return _information.from_samples(self, None, samples)  # type: ignore[arg-type]
        if self.params.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                "entropies of mixed densities by cubature have no derivatives; give samples=1000 for an estimate that "
                "has, or ask within torch.no_grad()"
            )
        values = [entropy.value for entropy in self.entropies(tolerance)]
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._dtype)

    @property
    def mode(self) -> Tensor:
        """The points of largest density, in float64."""
        points = [mode.point for mode in self.modes()]
        return torch.from_numpy(np.array(points).reshape(*self.batch_shape, self.event_shape[0]))

    def modes(self, **options: Any) -> list[Mode]:
        """The points of largest density, with certificates; options as of `MixedDensity.mode`."""
        return [density.mode(**options) for density in self.densities()]

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples, every one of which satisfies the constraint exactly, in float64 where rounding to the
        precision of the parameters would take one out of it. A generator makes them reproducible by itself; without
        one, `torch.manual_seed` does."""
        shape, batch, columns = torch.Size(sample_shape), self.batch_shape, self.event_shape[0]
        count = shape.numel()
        if count * batch.numel() == 0:
            return torch.empty(*shape, *batch, columns, dtype=self._point_dtype)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), dtype=torch.int64, device=device, generator=generator))
        if self._condition is None:
            samples = self.family._core.sample(_numbers(self.params), count, seed)
        else:
            each = (density.sample(count, seed + row) for row, density in enumerate(self.densities()))
            samples = np.concatenate(list(each))
        exact = torch.from_numpy(samples.reshape(-1, count, columns)).transpose(0, 1).reshape(*shape, *batch, columns)
        rounded = exact.to(self._point_dtype)
        return rounded if bool(self.support.check(rounded).all()) else exact

    def __repr__(self) -> str:
        return f"MixedDistribution({', '.join(self.family.columns)}; batch_shape={tuple(self.batch_shape)})"


def _all(formulas: Any) -> Formula | bool:
    joined: Formula | bool = True
    for formula in formulas:
        joined = formula if joined is True else joined & formula
    return joined


def _numbers(params: Tensor) -> np.ndarray:
    return params.detach().to(torch.float64).contiguous().view(-1).numpy()


class _Probability(torch.autograd.Function):
    """Probabilities of an event."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, event: _core.MixedEvent) -> Tensor:
        ctx.event = event
        ctx.save_for_backward(params)
        values = torch.from_numpy(event.probability(_numbers(params))).view(params.shape[:-1])
        return values.to(_precision.at_least_float32(params.dtype))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        (params,) = ctx.saved_tensors
        gradient = ctx.event.probability_vjp(_numbers(params), _numbers(cotangent))
        return torch.from_numpy(gradient).view(params.shape).to(params.dtype), None


class _Expectations(torch.autograd.Function):
    """Several expectations along a last axis, in float64."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, compiled: _core.MixedExpectation, count: int) -> Tensor:
        ctx.compiled = compiled
        ctx.save_for_backward(params)
        return torch.from_numpy(compiled.values(_numbers(params))).view(*params.shape[:-1], count)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        (params,) = ctx.saved_tensors
        gradient = ctx.compiled.values_vjp(_numbers(params), _numbers(cotangent))
        return torch.from_numpy(gradient).view(params.shape).to(params.dtype), None, None
