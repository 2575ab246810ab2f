"""What is left of a batch of densities when values of some variables are known, others for every row."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property

from .. import _arrays, _core
from ..density import Density
from ..errors import QueryError
from ._moments import flat, probability
from ._points import common_shape

if TYPE_CHECKING:
    from .distribution import ConstrainedDistribution


class GivenDistribution(Distribution):
    """The densities of some variables, given values of the others, one for each parameter vector of a batch:

        p(x | y)  =  p(x, y) / p(y),        p(y)  =  integral of p(x, y) over all x

    `log_prob`, `given_log_prob`, `mean`, `variance` and `covariance_matrix` have first derivatives with respect to the
    parameters of the densities; with respect to the given values there are none. `densities` makes one
    [`Density`][pal.Density] for each row, for all further questions.

    It is what [`ConstrainedDistribution.given`][pal.torch.ConstrainedDistribution.given] makes of tensors.

    Args:
        joint: the densities of all variables.
        values: the given values by name; numbers, or tensors that are broadcast against the batch.

    >>> import pal, torch
    >>> from pal.torch import SplineLayer
    >>> x, y = pal.reals("x", "y")
    >>> layer = SplineLayer((x >= 0) & (y >= 0) & (x + y <= 1), knots=5, components=1, head="values")
    >>> p = layer(torch.zeros(2, layer.num_params))
    >>> of_x = p.given({"y": torch.tensor([0.5, 0.75])})
    >>> of_x.variables, of_x.batch_shape, of_x.event_shape
    (('x',), torch.Size([2]), torch.Size([1]))

    Uniform on the triangle: x is uniform between 0 and 1 - y.

    >>> of_x.log_prob(torch.tensor([[0.25], [0.25]])).exp().round(decimals=4), of_x.mean.round(decimals=4).flatten()
    (tensor([2., 4.]), tensor([0.2500, 0.1250]))
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(self, joint: ConstrainedDistribution, values: Mapping[str, Any]) -> None:
        layer = joint.layer
        all_names = layer.family.variables
        unknown = [name for name in values if name not in all_names]
        if unknown:
            raise QueryError(f"there is no variable `{unknown[0]}`; there is {', '.join(all_names)}")
        if not values or len(values) == len(all_names):
            raise QueryError("give values of at least one variable, and leave at least one free")
        self._names = [name for name in all_names if name in values]
        columns = [torch.as_tensor(values[name], device=joint._given_tensor.device) for name in self._names]
        for name, column in zip(self._names, columns):
            if column.requires_grad:
                raise NotImplementedError(f"there are no derivatives with respect to given values; detach `{name}`")
        columns = [column.to(torch.float64) for column in columns]
        batch = torch.broadcast_shapes(joint.batch_shape, *(column.shape for column in columns))
        #: The given values, in the order of the variables, along the last axis.
        self.values = torch.stack([column.expand(batch) for column in columns], -1)
        self.joint = joint if batch == joint.batch_shape else joint.expand(batch)
        self._kept = [k for k, name in enumerate(all_names) if name not in values]
        #: The names of the variables that are not given, in the order of coordinates.
        self.variables = tuple(all_names[k] for k in self._kept)
        condition = True if joint._condition is None else joint._condition
        self._core = None
        if batch.numel():
            self._core = _core.GivenRows(layer.family._core, self._names, flat(self.values), condition)
        super().__init__(batch, torch.Size([len(self._kept)]), validate_args=False)
        with torch.no_grad():
            impossible = torch.nonzero(self._moments([[0] * len(self._kept)])[:, 0] <= 0).flatten()
        if len(impossible):
            row = int(impossible[0])
            at = ", ".join(f"{n} = {v:g}" for n, v in zip(self._names, self.values.reshape(-1, len(columns))[row]))
            raise QueryError(f"the density of {at} (row {row}) is 0, so nothing can be conditioned on it")

    @property
    def support(self) -> constraints.Constraint:
        """Where the densities may be positive: another set in every row."""
        return _Slice(self)

    @lazy_property
    def _rows(self) -> Tensor:
        return self.joint._core_rows()

    def _moments(self, powers: Sequence[Sequence[int]]) -> Tensor:
        """Integrals of monomials in box coordinates over the slices of all rows, in float64: rows by monomials."""
        if self._core is None:
            return self._rows.new_zeros(0, len(powers))
        return _GivenMoments.apply(self._rows, self._core, [list(each) for each in powers])

    @property
    def given_log_prob(self) -> Tensor:
        """The log-density of the given values, with derivatives."""
        value = self._moments([[0] * len(self._kept)])[:, 0].log()
        if self.joint._condition is not None:
            value = value - probability(self.joint.layer, self._rows, self.joint._condition).log()
        return value.reshape(self.batch_shape).to(self.joint._dtype)

    def _join(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Points of all variables."""
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(column) for column in _arrays.named(value, self.variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        _arrays.check_width(value.shape, self.variables)
        full = common_shape(value, self.batch_shape)
        value = value.expand(*full, value.shape[-1]).to(torch.float64)
        given = self.values.expand(*full, self.values.shape[-1]).to(value.device)
        parts = dict(zip(self._kept, value.unbind(-1)))
        parts.update(zip((k for k in range(len(parts) + len(self._names)) if k not in parts), given.unbind(-1)))
        return torch.stack([parts[k] for k in range(len(parts))], -1)

    def log_prob(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """The log-density of points of the other variables: minus infinity outside."""
        return self.joint.log_prob(self._join(value)) - self.given_log_prob

    def densities(self) -> list[Density]:
        """One [`Density`][pal.Density] of the other variables for each row."""
        if self._core is None:
            return []
        return [Density._of(core) for core in self._core.densities(flat(self._rows))]

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples, every one of which satisfies the constraint, exactly, together with the given values.
        They are in float64: rounded, they might not satisfy it any more."""
        shape = torch.Size(sample_shape)
        count, n = shape.numel(), self.event_shape[0]
        if count * self.batch_shape.numel() == 0:
            return torch.empty(*shape, *self.batch_shape, n, dtype=torch.float64)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), dtype=torch.int64, device=device, generator=generator))
        assert self._core is not None, "there are rows"
        samples = torch.from_numpy(self._core.sample(flat(self._rows), count, seed))
        return samples.view(-1, count, n).transpose(0, 1).reshape(*shape, *self.batch_shape, n).to(self.values.device)

    def _box_moments(self, powers: list[list[int]]) -> Tensor:
        """Expectations of monomials in box coordinates; rows by monomials."""
        n = len(self._kept)
        moments = self._moments([[0] * n, *powers])
        return moments[:, 1:] / moments[:, :1]

    @property
    def _axes(self) -> list[np.ndarray]:
        edges = self.joint.layer.family.edges
        return [edges[k] for k in self._kept]

    @property
    def mean(self) -> Tensor:
        """The means of the other variables, with derivatives."""
        n = len(self._kept)
        fractions = self._box_moments(np.eye(n, dtype=int).tolist())
        low = fractions.new_tensor([axis[0] for axis in self._axes])
        length = fractions.new_tensor([axis[-1] - axis[0] for axis in self._axes])
        return (low + length * fractions).reshape(*self.batch_shape, n).to(self.joint._point_dtype)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of the other variables, with derivatives."""
        n = len(self._kept)
        unit = np.eye(n, dtype=int)
        pairs = list(itertools.product(range(n), repeat=2))
        moments = self._box_moments([*unit.tolist(), *((unit[i] + unit[j]).tolist() for i, j in pairs)])
        first, second = moments[:, :n], moments[:, n:].unflatten(-1, (n, n))
        length = first.new_tensor([axis[-1] - axis[0] for axis in self._axes])
        matrix = (second - first.unsqueeze(-1) * first.unsqueeze(-2)) * length.unsqueeze(-1) * length
        return matrix.reshape(*self.batch_shape, n, n).to(self.joint._dtype)

    @property
    def covariance(self) -> Tensor:
        """Another name of `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of the other variables, with derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def __repr__(self) -> str:
        names, given = ", ".join(self.variables), ", ".join(self._names)
        return f"GivenDistribution({names} | {given}; batch_shape={tuple(self.batch_shape)})"


class _Slice(constraints.Constraint):
    """The points that satisfy a constraint together with the given values of their row."""

    event_dim = 1

    def __init__(self, given: GivenDistribution) -> None:
        self.given = given

    def check(self, value: Tensor) -> Tensor:
        return self.given.joint.support.check(self.given._join(value))


class _GivenMoments(torch.autograd.Function):
    """Moments over slices, whose vector-Jacobian product the core knows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, core: Any, powers: list[list[int]]) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.core, ctx.powers = core, powers
        return torch.from_numpy(core.moments(flat(rows), powers)).view(len(rows), -1).to(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        (rows,) = ctx.saved_tensors
        moved = ctx.core.moments_vjp(flat(rows), ctx.powers, flat(cotangent))
        return torch.from_numpy(moved).view_as(rows).to(rows), None, None
