"""Densities with a region of their own for each row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property
from torch.utils.data import default_collate

from .. import _arrays, _core
from ..batch import RegionBatch, row_indices
from ..density import Density, Entropy, Mode
from ..errors import QueryError
from ..formula import Formula
from ..region import Region
from . import _precision, _rounding
from ._points import common_shape, flat
from .marginals import Marginals

if TYPE_CHECKING:
    from ..families import Family
    from .layer import Layer


class CompiledRegions:
    """The regions of a batch compiled on the grid of a layer, for training with the same regions again and again.

    Indexing selects rows without compiling them again.

    Args:
        layer: the layer, or its family.
        regions: the regions, over the variables of the layer.
        dtype: `torch.float64`, or `torch.float32` for log-densities in that precision or a shorter one only, in half of
            the memory.

    >>> import pal, torch
    >>> from pal.torch import CompiledRegions, SplineLayer
    >>> x, y = pal.reals("x", "y")
    >>> square = x.between(0, 1) & y.between(0, 1)
    >>> layer = SplineLayer(square, knots=6, components=2)
    >>> compiled = CompiledRegions(layer, pal.RegionBatch([square & (x + y <= 1), square & (x >= y)]))
    >>> p = layer(torch.zeros(3, layer.num_params), compiled[[0, 1, 0]])
    >>> p.log_prob(torch.tensor([[0.75, 0.5]] * 3)).isneginf()
    tensor([ True, False,  True])
    """

    def __init__(self, layer: Layer | Family, regions: RegionBatch, dtype: torch.dtype = torch.float64) -> None:
        if not isinstance(regions, RegionBatch):
            raise TypeError(f"regions must be a RegionBatch, not {type(regions).__name__}")
        self.family: Family = layer.family if isinstance(layer, torch.nn.Module) else layer
        self.dtype = torch.float64 if dtype == torch.float64 else torch.float32
        self._core = _core.RegionForms(self.family._core, regions._core, self.dtype == torch.float32)

    @property
    def regions(self) -> RegionBatch:
        """The regions of the rows."""
        return RegionBatch._of(self._core.regions)

    @property
    def volume(self) -> np.ndarray:
        """The volume of each row inside the box of the layer."""
        return self._core.volumes()

    @property
    def nbytes(self) -> int:
        """The memory that the normalisers of all rows take."""
        return self._core.bytes

    def select(self, rows: np.ndarray) -> CompiledRegions:
        """The rows with these numbers."""
        new = CompiledRegions.__new__(CompiledRegions)
        new.family, new.dtype = self.family, self.dtype
        new._core = self._core.select(np.ascontiguousarray(rows, dtype=np.int64))
        return new

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, index: Any) -> CompiledRegions:
        return self.select(row_indices(index, len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledRegions, (self.family, self.regions, self.dtype)

    def __repr__(self) -> str:
        return f"CompiledRegions({', '.join(self.family.variables)}; {len(self)} rows)"


class InRegions(constraints.Constraint):
    """The points that are in the region of their own row, decided exactly: the support of
    [`RegionDistribution`][pal.torch.RegionDistribution].

    Args:
        regions: one region for each row.
        batch_shape: the shape of the batch of these rows.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> square = x.between(0, 1) & y.between(0, 1)
    >>> layer = pal.torch.SplineLayer(square, knots=5, components=2)
    >>> p = layer(torch.zeros(2, layer.num_params), pal.RegionBatch([square & (x + y <= 1), square & (x >= y)]))
    >>> p.support.check(torch.tensor([0.75, 0.5]))
    tensor([False,  True])
    """

    event_dim = 1

    def __init__(self, regions: CompiledRegions, batch_shape: torch.Size) -> None:
        self.regions, self.batch_shape = regions, batch_shape

    def check(self, value: Tensor) -> Tensor:
        """Whether points, along the last axis, are in the regions of their rows."""
        full = common_shape(value, self.batch_shape)
        points = value.detach().expand(*full, value.shape[-1])
        rows = torch.arange(len(self.regions)).reshape(self.batch_shape).expand(full)
        return _contains(self.regions, rows, points).to(value.device)


def _contains(regions: CompiledRegions, rows: Tensor, points: Tensor) -> Tensor:
    if not rows.numel():
        return torch.empty(rows.shape, dtype=torch.bool)
    core = regions.select(rows.reshape(-1).numpy())._core
    return torch.from_numpy(core.contains(flat(points.reshape(-1, points.shape[-1])))).reshape(rows.shape)


class RegionDistribution(Distribution):
    """Densities on regions of their own, one for each parameter vector of a batch: what a
    [`SplineLayer`][pal.torch.SplineLayer] returns if it is given regions.

        p_b(y) = q(y; params_b) 1[y in region b] / normaliser_b(params_b)

    `log_prob` has first derivatives with respect to the parameters. Everything else is computed by the core, row by row,
    and has none; it cuts the region of every row first, which takes milliseconds for each.

    Args:
        layer: the layer whose grid all rows share.
        regions: one region for each parameter vector.
        params: parameter vectors of the family along the last axis; or `None`, if `outputs` are given.
        outputs: outputs of a network, from which the head of the layer makes the parameters when they are needed;
            `log_prob` does without them.
        validate_args: as for all distributions.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> square = x.between(0, 1) & y.between(0, 1)
    >>> layer = pal.torch.SplineLayer(square, knots=5, components=2)
    >>> triangles = pal.RegionBatch([square & (x + y <= 1), square & (x >= y)])
    >>> p = layer(torch.zeros(2, layer.num_params), triangles)
    >>> p.log_prob(torch.tensor([0.75, 0.5])).isfinite(), p.sample((5,)).shape
    (tensor([False,  True]), torch.Size([5, 2, 2]))
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self,
        layer: Layer,
        regions: CompiledRegions,
        params: Tensor | None = None,
        outputs: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, given, width = "params", params, layer.family.num_params
        if params is None:
            name, given, width = "outputs", outputs, layer.num_params
        if not isinstance(given, Tensor) or not given.is_floating_point():
            kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
            raise TypeError(f"{name} must be a tensor of floating-point numbers, not {kind}")
        if given.dim() == 0 or given.shape[-1] != width:
            raise ValueError(f"{name} need {width} numbers along the last axis; the shape is {tuple(given.shape)}")
        if given.shape[:-1].numel() != len(regions):
            shape = tuple(given.shape[:-1])
            raise ValueError(f"there are {len(regions)} regions; the batch of {name} has shape {shape}")
        if regions.family is not layer.family and not _same(regions.family, layer.family):
            raise ValueError("the regions were compiled for a layer with another grid or other settings")
        self.layer, self.regions, self._given = layer, regions, given
        self._headed = params is None
        if params is not None:
            self.params = params
        self._condition: Formula | None = None
        self._variables = layer.family.variables
        super().__init__(given.shape[:-1], torch.Size([len(self._variables)]), validate_args=validate_args)

    @lazy_property
    def params(self) -> Tensor:
        """The parameter vectors of the family, along the last axis."""
        head = self.layer.head
        assert head is not None, "parameters are given, or made from outputs by a head"
        return head(self._given)

    @property
    def support(self) -> InRegions:
        """Where the densities may be positive."""
        return InRegions(self.regions, self.batch_shape)

    def _rows_of(self, given: Tensor) -> Tensor:
        """Parameters or outputs as rows in a precision that logarithms can be taken in."""
        rows = given.reshape(-1, given.shape[-1])
        return rows if rows.dtype in (torch.float32, torch.float64) else rows.float()

    def _points(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(column) for column in _arrays.named(value, self._variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        _arrays.check_width(value.shape, self._variables)
        return value

    def log_prob(self, value: Tensor | Mapping[str, Tensor]) -> Tensor:
        """The log-density of points, each under the density and in the region of its own row: minus infinity outside,
        never NaN. Points are broadcast against the batch; a dict of tensors has coordinates by name."""
        value = self._points(value)
        n = self.event_shape[0]
        full = common_shape(value, self.batch_shape)
        if 0 in full:
            # An empty tensor that has gradients nevertheless.
            return (self._given.sum() * 0).expand(full)
        if self._condition is not None:
            return self._conditional_log_prob(value.expand(*full, n))
        rows, regions = self._rows_of(self._given), self.regions
        if full != self.batch_shape:
            which = torch.arange(len(rows)).reshape(self.batch_shape).expand(full).reshape(-1)
            rows, regions = rows[which.to(rows.device)], regions.select(which.numpy())
        points = value.expand(*full, n).reshape(-1, n)
        if points.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError("with a region for each row, there are no derivatives with respect to points")
        return _LogProb.apply(rows, points, regions, self._headed).reshape(full).to(self._given.dtype)

    def _conditional_log_prob(self, points: Tensor) -> Tensor:
        flat_points = points.detach().reshape(-1, len(self.regions), points.shape[-1]).cpu().double().numpy()
        values = [density.log_prob(flat_points[:, row]) for row, density in enumerate(self.densities())]
        return torch.from_numpy(np.stack(values, -1)).reshape(points.shape[:-1]).to(self._given.detach())

    @lazy_property
    def _densities(self) -> list[Density]:
        with torch.no_grad():
            if self._headed:
                assert self.layer.head is not None, "outputs go through a head"
                params = self.layer.head(self._given.detach().double())
            else:
                params = self.layer.in_float64(self._rows_of(self.params.detach()))
            params = params.cpu().contiguous()
        return [Density._of(core) for core in self.regions._core.densities(params.view(-1).numpy())]

    def densities(self) -> list[Density]:
        """One [`Density`][pal.Density] for each row, for all further questions; made when they are first needed."""
        return self._densities

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples in the precision of the parameters, or in float64 where that would not resolve the box of
        the layer; every one is exactly inside the region of its row. A generator makes them reproducible by itself; without one, `torch.manual_seed` does."""
        shape = torch.Size(sample_shape)
        count, n = shape.numel(), self.event_shape[0]
        if count * len(self.regions) == 0:
            return self._given.new_empty(*shape, *self.batch_shape, n, dtype=self._point_dtype)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), dtype=torch.int64, device=device, generator=generator))
        parts = [density.sample(count, seed + row) for row, density in enumerate(self.densities())]
        samples = torch.from_numpy(np.stack(parts, 1))
        return self._rounded(samples).reshape(*shape, *self.batch_shape, n)

    @property
    def _point_dtype(self) -> torch.dtype:
        """The precision of points: that of the parameters, or float64 where it would not resolve the box."""
        return _precision.point_dtype(self.layer, self._given.dtype)

    def _rounded(self, points: Tensor) -> Tensor:
        """Points, sets by rows by coordinates, in their precision, and still inside."""
        like = self._given.detach().new_empty(0, dtype=self._point_dtype)
        if like.dtype == torch.float64:
            return points.to(like.device)
        rounded = points.to(like.dtype)
        for row, density in enumerate(self.densities()):
            inside = density.constraint.contains(rounded[:, row].double().numpy())
            for outside in np.flatnonzero(~inside):
                exact = points[outside, row].unsqueeze(0)
                rounded[outside, row] = _rounding.inside(exact, density.constraint, like.cpu())[0]
        return rounded.to(like.device)

    def _each(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._given.detach())

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event in the coordinates of the rows; without derivatives."""
        return self._each([density.probability(event) for density in self.densities()])

    def condition(self, condition: Formula) -> RegionDistribution:
        """The densities given that a condition holds: zero elsewhere; without derivatives."""
        new = self._like(self.regions, self._given)
        new._condition = condition if self._condition is None else self._condition & condition
        conditioned = []
        for row, density in enumerate(self.densities()):
            try:
                conditioned.append(density.condition(condition))
            except QueryError as error:
                raise QueryError(f"row {row}: {error}") from None
        new.__dict__["_densities"] = conditioned
        return new

    @property
    def mean(self) -> Tensor:
        """The means of the variables; without derivatives."""
        values = torch.from_numpy(np.stack([density.mean() for density in self.densities()]))
        return values.reshape(*self.batch_shape, -1).to(self._given.device, self._point_dtype)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of the variables; without derivatives."""
        n = self.event_shape[0]
        values = torch.from_numpy(np.stack([density.covariance() for density in self.densities()]))
        return values.reshape(*self.batch_shape, n, n).to(self._given.detach())

    @property
    def covariance(self) -> Tensor:
        """Another name of `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of the variables; without derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def modes(self, **options: Any) -> list[Mode]:
        """The points of largest density in float64, with certificates; options as of
        [`Density.mode`][pal.Density.mode]."""
        return [density.mode(**options) for density in self.densities()]

    @property
    def mode(self) -> Tensor:
        """The points of largest density."""
        points = torch.from_numpy(np.stack([mode.point for mode in self.modes()])).unsqueeze(0)
        return self._rounded(points)[0].reshape(*self.batch_shape, -1)

    def entropies(self, **options: Any) -> list[Entropy]:
        """The entropies in float64, with estimates of their errors."""
        return [density.entropy(**options) for density in self.densities()]

    def entropy(self) -> Tensor:
        """The differential entropies in nats, to 1e-6; without derivatives."""
        return self._each([entropy.value for entropy in self.entropies()])

    def marginal(self, variable: str) -> Marginals:
        """The exact marginals of one variable."""
        marginals = [density.marginal(variable) for density in self.densities()]
        return Marginals(marginals, self.batch_shape, self._given, self._point_dtype)

    def expand(self, batch_shape: Any, _instance: Any = None) -> RegionDistribution:
        """The same densities in a larger batch."""
        shape = torch.Size(batch_shape)
        which = torch.arange(len(self.regions)).reshape(self.batch_shape).expand(shape)
        return self._chosen(which)

    def __getitem__(self, index: Any) -> RegionDistribution:
        """The densities at an index into the batch."""
        if not self.batch_shape:
            raise IndexError("this is a single density: there is no batch to index")
        return self._chosen(torch.arange(len(self.regions)).reshape(self.batch_shape)[index])

    def _like(self, regions: CompiledRegions, given: Tensor) -> RegionDistribution:
        name = "outputs" if self._headed else "params"
        return RegionDistribution(self.layer, regions, **{name: given}, validate_args=False)

    def _chosen(self, which: Tensor) -> RegionDistribution:
        flat_rows = which.reshape(-1)
        given = self._given.reshape(-1, self._given.shape[-1])[flat_rows.to(self._given.device)]
        new = self._like(self.regions.select(flat_rows.numpy()), given.reshape(*which.shape, -1))
        if self._condition is not None:
            new._condition = self._condition
            new.__dict__["_densities"] = [self.densities()[row] for row in flat_rows.tolist()]
        return new

    def __repr__(self) -> str:
        return f"RegionDistribution({', '.join(self._variables)}; batch_shape={tuple(self.batch_shape)})"


def _same(a: Family, b: Family) -> bool:
    """Whether two families have the same variables, grid and settings."""
    edges = zip(a.edges, b.edges)
    return (
        a.variables == b.variables and a.settings == b.settings and all(np.array_equal(x, y) for x, y in edges)
    )


class _LogProb(torch.autograd.Function):
    """Log-densities of rows with regions of their own, whose gradient is computed in the same pass."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, points: Tensor, regions: CompiledRegions, headed: bool) -> Tensor:
        with_gradient = ctx.needs_input_grad[0]
        core = regions._core
        compute = core.log_prob_f32 if rows.dtype == torch.float32 else core.log_prob_f64
        numbers = rows.detach().cpu().contiguous().view(-1).numpy()
        values, gradient = compute(numbers, flat(points), headed, with_gradient)
        if gradient is not None:
            ctx.save_for_backward(torch.from_numpy(gradient).view(rows.shape).to(rows.device))
        return torch.from_numpy(values).to(rows.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * cotangent.unsqueeze(-1), None, None, None


def collate(items: Sequence[Any]) -> Any:
    """Makes a batch of examples, for the `collate_fn` of a `torch.utils.data.DataLoader`: regions become a
    [`RegionBatch`][pal.RegionBatch], and everything else is collated as PyTorch does it by default.

    Examples may be tuples, lists or dicts with regions in them. A region of an example is a [`Region`][pal.Region], or
    a batch such as `windows[i:i + 1]`, which keeps windows of one map together and is faster.

    Args:
        items: the examples.

    Returns:
        what an example is, with a batch in place of each part.

    >>> import pal, torch
    >>> from pal.torch import collate
    >>> (x,) = pal.reals("x")
    >>> budgets = pal.RegionBatch([x.between(0, k) for k in (1, 2, 3)])
    >>> data = [(torch.tensor([float(k)]), budgets[k : k + 1]) for k in range(3)]
    >>> inputs, regions = next(iter(torch.utils.data.DataLoader(data, batch_size=3, collate_fn=collate)))
    >>> inputs.shape, regions.volume
    (torch.Size([3, 1]), array([1., 2., 3.]))
    """
    first = items[0]
    if isinstance(first, RegionBatch):
        return RegionBatch.concatenate(items)
    if isinstance(first, Region):
        return RegionBatch(items)
    if isinstance(first, Mapping):
        return {key: collate([item[key] for item in items]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column) for column in zip(*items)))
    if isinstance(first, (tuple, list)):
        return [collate(list(column)) for column in zip(*items)]
    return default_collate(list(items))
