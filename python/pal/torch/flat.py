"""Densities on flats: constraints on which equalities hold, such as shares that add up to 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from .. import _arrays, _core
from .._arrays import Points
from ..density import ENTROPY_DEFAULT, Density, Entropy, Mode
from ..formula import Constraint, Formula, as_formula, reals, substitute
from ._points import flat as flattened
from .distribution import ConstrainedDistribution
from .marginals import Marginals

if TYPE_CHECKING:
    from ..integrals import Integrand
    from .layer import Layer


class OnFlat(constraints.Constraint):
    """The points whose free coordinates satisfy what remains of a constraint, exactly, and whose dependent ones are
    their image up to rounding: the support of [`FlatDistribution`][pal.torch.FlatDistribution].

    Args:
        distribution: the densities on the flat.

    >>> import pal, torch
    >>> a, b = pal.reals("a", "b")
    >>> layer = pal.torch.SplineLayer((a + b == 1) & (a >= 0) & (b >= 0), knots=5)
    >>> layer(torch.zeros(layer.num_params)).support.check(torch.tensor([[0.25, 0.75], [0.5, 0.75]]))
    tensor([ True, False])
    """

    event_dim = 1

    def __init__(self, distribution: FlatDistribution) -> None:
        self._distribution = distribution

    def check(self, value: Tensor) -> Tensor:
        """Whether points, along the last axis, are in the region."""
        points = self._distribution._restricted(value.detach())
        return self._distribution.free.support.check(points)


class FlatDistribution(Distribution):
    """Densities on a flat, per unit of surface measure, one for each parameter vector of a batch.

    Everything is computed by a [`ConstrainedDistribution`][pal.torch.ConstrainedDistribution] of the free variables,
    `free`. Points have all coordinates: of points that come in, the dependent coordinates must be the image of the free
    ones up to rounding in the precision of the points; of points that go out, they are this image, with derivatives.

    Args:
        layer: the layer on the flat.
        free: the densities of the free variables.

    >>> import pal, torch
    >>> from pal.torch import SplineLayer
    >>> a, b, c = pal.reals("a", "b", "c")
    >>> layer = SplineLayer((a + b + c == 1) & (a >= 0) & (b >= 0) & (c >= 0), knots=5)
    >>> p = layer(torch.zeros(2, layer.num_params))
    >>> p.sample((10,)).sum(-1).allclose(torch.ones(10, 2)), p.mean.shape, p.free.event_shape
    (True, torch.Size([2, 3]), torch.Size([2]))
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, layer: Layer, free: ConstrainedDistribution) -> None:
        self.layer = layer
        self.free = free
        assert layer.flat is not None, "made by layers on flats"
        self._flat = layer.flat
        self._variables = layer.whole.variables
        super().__init__(free.batch_shape, torch.Size([len(self._variables)]), validate_args=False)

    @property
    def params(self) -> Tensor:
        """The parameter vectors of the family, along the last axis."""
        return self.free.params

    @property
    def support(self) -> OnFlat:
        """Where the density may be positive."""
        return OnFlat(self)

    @property
    def constraint(self) -> Constraint:
        """The constraint over all variables."""
        condition = self.free._condition
        return self.layer.constraint if condition is None else self.layer.constraint & condition

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have pathwise derivatives."""
        return self.free.has_rsample

    def expand(self, batch_shape: Any, _instance: Any = None) -> FlatDistribution:
        """The same densities in a larger batch."""
        return FlatDistribution(self.layer, self.free.expand(batch_shape))

    def __getitem__(self, index: Any) -> FlatDistribution:
        """The densities at an index into the batch."""
        return FlatDistribution(self.layer, self.free[index])

    def _restricted(self, value: Tensor) -> Tensor:
        """The free coordinates of points, with derivatives; NaN where a point is off the flat."""
        epsilon = torch.finfo(value.dtype).eps if value.is_floating_point() else torch.finfo(torch.float64).eps
        known = torch.from_numpy(self._flat.restrict(flattened(value), epsilon))
        known = known.reshape(*value.shape[:-1], -1).to(value.device)
        free = value[..., self._flat.free]
        # A product with zero keeps NaN, and derivatives as they are.
        return free + (known - known).to(free.dtype)

    def _filled(self, free: Tensor) -> Tensor:
        """All coordinates of points given by their free ones, with derivatives."""
        points = torch.from_numpy(self._flat.fill(flattened(free))).reshape(*free.shape[:-1], len(self._variables))
        points = points.to(free.device, free.dtype)
        if not free.requires_grad:
            return points
        moved = free - free.detach()
        return points + moved @ self._jacobian(free).T

    def _jacobian(self, like: Tensor) -> Tensor:
        matrix = torch.from_numpy(self._flat.jacobian).reshape(len(self._variables), -1)
        return matrix.to(like)

    def log_prob(self, value: Tensor | Points) -> Tensor:
        """The log-density of points per unit of surface measure: minus infinity off the flat and outside the
        constraint. Points are as in
        [`ConstrainedDistribution.log_prob`][pal.torch.ConstrainedDistribution.log_prob]."""
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(column) for column in _arrays.named(value, self._variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        elif not isinstance(value, Tensor):
            flat, shape = _arrays.points(value, self._variables)
            value = torch.from_numpy(flat).reshape(*shape, len(self._variables))
        _arrays.check_width(value.shape, self._variables)
        return self.free.log_prob(self._restricted(value)) - self._flat.log_factor

    def _in_free_variables(self, formula: Formula, what: str) -> Any:
        found = as_formula(formula, what)
        return substitute(found, self._images) if isinstance(found, Formula) else found

    @property
    def _images(self) -> dict[str, Any]:
        """The dependent variables as terms in the free ones."""
        free = reals(*self._flat.free_names)
        return {
            self._variables[position]: sum((a * x for a, x in zip(coefficients, free)), 0 * free[0] + constant)
            for position, constant, coefficients in self._flat.dependents
        }

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event over all variables, with derivatives."""
        return self.free.probability(self._in_free_variables(event, "the event"))

    def condition(self, condition: Formula) -> FlatDistribution:
        """The densities given that a condition over all variables holds."""
        return FlatDistribution(self.layer, self.free.condition(self._in_free_variables(condition, "the condition")))

    def expectation(self, polynomial: Integrand) -> Tensor:
        """The expectations of a polynomial in all variables, with derivatives."""
        images = {name: _core.Polynomial(term) for name, term in self._images.items()}
        substituted = _core.Polynomial(0)
        for exponents, coefficient in _core.Polynomial(polynomial).terms_over(self._variables).items():
            product = _core.Polynomial(coefficient)
            for name, exponent in zip(self._variables, exponents):
                base = images[name] if name in images else _core.Polynomial(reals(name)[0])
                product = product * base**exponent
            substituted = substituted + product
        return self.free.expectation(substituted)

    @property
    def mean(self) -> Tensor:
        """The means of all variables, with derivatives."""
        return self._filled(self.free.mean)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of all variables, with derivatives. They are singular."""
        matrix = self.free.covariance_matrix
        jacobian = self._jacobian(matrix)
        return jacobian @ matrix @ jacobian.T

    @property
    def covariance(self) -> Tensor:
        """Another name of `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of all variables, with derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples with all coordinates."""
        with torch.no_grad():
            return self._filled(self.free.sample(sample_shape, generator=generator))

    def rsample(self, sample_shape: Any = torch.Size(), **options: Any) -> Tensor:
        """Samples with pathwise derivatives, as
        [`ConstrainedDistribution.rsample`][pal.torch.ConstrainedDistribution.rsample] has them."""
        return self._filled(self.free.rsample(sample_shape, **options))

    @property
    def mode(self) -> Tensor:
        """The points of largest density."""
        return self._filled(self.free.mode)

    def modes(self, **options: Any) -> list[Mode]:
        """The points of largest density in float64, with certificates."""
        return [density.mode(**options) for density in self.densities()]

    def entropies(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> list[Entropy]:
        """The entropies with respect to surface measure in float64, with estimates of their errors."""
        return [density.entropy(tolerance) for density in self.densities()]

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance, samples: int | None = None) -> Tensor:
        """The differential entropies with respect to surface measure in nats, with first derivatives."""
        return self.free.entropy(tolerance, samples) + self._flat.log_factor

    def kl_divergence(
        self,
        other: FlatDistribution,
        tolerance: float = ENTROPY_DEFAULT.tolerance,
        samples: int | None = None,
    ) -> Tensor:
        """The Kullback-Leibler divergences from densities on the same flat, in the same free variables."""
        if self._flat.dependents != other._flat.dependents or self._variables != other._variables:
            raise ValueError("the densities live on different flats, or have different free variables")
        return self.free.kl_divergence(other.free, tolerance, samples)

    def densities(self) -> list[Density]:
        """One [`Density`][pal.Density] for each parameter vector, for all further questions."""
        params = self.free._core_params()
        if self.free._condition is None:
            return self.layer.whole.densities(params)
        return self.layer.whole.condition(self.free._condition, params)

    def marginal(self, variable: str) -> Marginals:
        """The exact marginals of one variable, free or dependent."""
        marginals = [density.marginal(variable) for density in self.densities()]
        return Marginals(marginals, self.batch_shape, self.free._given_tensor, self.free._point_dtype)

    def given(self, values: Mapping[str, float] | None = None, **more: float) -> list[Density]:
        """The densities of the other variables, given numbers for some free ones. Values that differ from row to row
        are for `free.given`."""
        values = {**(values or {}), **more}
        if any(isinstance(value, Tensor) for value in values.values()):
            raise NotImplementedError("where the constraint has equalities, tensors of values are for `free.given`")
        return [density.given(values) for density in self.densities()]

    def cdf(self, value: Tensor) -> Tensor:
        """The probability that no variable exceeds its coordinate; without derivatives."""
        n = len(self._variables)
        full = torch.broadcast_shapes(value.shape[:-1], self.batch_shape)
        points = value.detach().expand(*full, n).reshape(-1, n).to("cpu", torch.float64).tolist()
        densities = self.densities()
        which = torch.arange(len(densities)).reshape(self.batch_shape).expand(full).reshape(-1).tolist()
        values = [densities[row].cdf(dict(zip(self._variables, point))) for row, point in zip(which, points)]
        return torch.tensor(values, dtype=torch.float64).reshape(full).to(self.params)

    def __repr__(self) -> str:
        return f"FlatDistribution({', '.join(self._variables)}; batch_shape={tuple(self.batch_shape)})"


@register_kl(FlatDistribution, FlatDistribution)
def _(p: FlatDistribution, q: FlatDistribution) -> Tensor:
    return p.kl_divergence(q)
