"""Mixtures of kernels: components with a place, scales and a direction of their own, without a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.distributions.utils import lazy_property

from .. import _arrays, _core
from .._arrays import Points
from ..batch import RegionBatch, row_indices
from ..density import ENTROPY_DEFAULT, MODE_DEFAULT, Entropy, Marginal, Mode
from ..errors import QueryError
from ..formula import Constrained, Constraint, Formula, as_formula
from ..integrals import Integrand
from ..region import Region
from . import _devices, _precision
from ._points import common_shape, flat
from .kernel_density import KernelDensity
from .marginals import Marginals
from .support import Finite, InRegion

# What parameters mean: weights that were trained with another version make other densities.
_VERSION = "2"


class KernelLayer(nn.Module):
    """The last layer of a network: its outputs are the places, scales, directions and weights of kernels,

        p(y) = q(y) 1[y in region] / I,        q(y) = sum_m w_m K(L_m^-1 (y - c_m)) / det L_m + w_0 / volume,

    where `K(u)` is the product of `35/32 (1 - u_j^2)^3` on [-1, 1]^n and `I` the exact integral of `q` over the region.
    Unlike splines, kernels can be as narrow and as slanted as the data ask for. Every component has copies of several
    widths, so that it has tails, and the uniform part keeps every point of the region possible.

    The layer has no weights. Outputs of zero are broad kernels all over the box around the region. In the plane all
    questions have answers; in one and in three variables marginals, modes and entropies are missing, which errors say.

    Args:
        region: a bounded region in one to three variables, a constraint or a formula.
        components: the number of components; 8 by default.

    >>> import pal, torch
    >>> from pal.torch import KernelLayer
    >>> x, y = pal.reals("x", "y")
    >>> room = x.between(0, 9) & y.between(0, 6) & ~(x.between(4, 5) & (y >= 2))
    >>> layer = KernelLayer(room, components=4)
    >>> p = layer(torch.zeros(3, layer.num_params))
    >>> p.batch_shape, bool(p.support.check(p.sample((100,))).all())
    (torch.Size([3]), True)
    >>> p.log_prob(torch.tensor([4.5, 3.0])).tolist()
    [-inf, -inf, -inf]
    """

    def __init__(self, region: Region | Constrained, components: int | None = None) -> None:
        super().__init__()
        self.region = region if isinstance(region, Region) else Region(region)
        if components is None:
            components = _core.KernelFamily.default_components()
        if not isinstance(components, int) or components < 1:
            raise ValueError(f"the number of components must be a positive integer, not {components!r}")
        self._core = _core.KernelFamily(self.region._core, components)

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self._core.num_params

    @property
    def components(self) -> int:
        """The number of components."""
        return self._core.components

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of coordinates."""
        return tuple(self._core.variables)

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return Constraint._of(self._core.constraint)

    def compile_regions(self, regions: RegionBatch) -> KernelRegions:
        """Prepares a region for each row, for training with the same regions again and again."""
        return KernelRegions(self, regions)

    def forward(self, outputs: Tensor, regions: RegionBatch | KernelRegions | None = None) -> KernelDistribution:
        """The densities of outputs of a network along the last axis: on the region of the layer or, if regions are given,
        each on the region of its own row, cut to the box around the region of the layer."""
        if regions is None:
            return KernelDistribution(self, outputs, [self._core])
        if isinstance(regions, RegionBatch):
            regions = KernelRegions(self, regions)
        if not isinstance(regions, KernelRegions):
            raise TypeError(f"regions must be a RegionBatch or compiled by this layer, not {type(regions).__name__}")
        rows = outputs.shape[:-1].numel() if isinstance(outputs, Tensor) else len(regions)
        if rows != len(regions):
            shape = tuple(outputs.shape[:-1])
            raise ValueError(f"there are {len(regions)} regions; the batch of outputs has shape {shape}")
        if regions.layer._core.num_params != self.num_params or regions.layer.get_extra_state() != self.get_extra_state():
            raise ValueError("the regions were compiled for a layer with another box or other settings")
        return KernelDistribution(self, outputs, regions.families)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_core"} | {"given": self.components}

    def __setstate__(self, state: dict[str, Any]) -> None:
        components = state.pop("given")
        super().__setstate__(state)
        self._core = _core.KernelFamily(self.region._core, components)

    def get_extra_state(self) -> dict[str, str]:
        settings = f"kernel, {self.components} components"
        return {"version": _VERSION, "constraint": self.constraint.to_smtlib(), "settings": settings}

    def set_extra_state(self, state: dict[str, str]) -> None:
        for key, wanted in self.get_extra_state().items():
            if state.get(key) != wanted:
                raise RuntimeError(f"the state is that of a layer with another {key}")

    def extra_repr(self) -> str:
        return f"{', '.join(self.variables)}; components={self.components}, num_params={self.num_params}"


class KernelRegions:
    """A region for each row, prepared for a [`KernelLayer`][pal.torch.KernelLayer]. Indexing selects rows.

    Args:
        layer: the layer, whose box all regions are cut to.
        regions: one region for each row.

    >>> import pal, torch
    >>> from pal.torch import KernelLayer
    >>> x, y = pal.reals("x", "y")
    >>> layer = KernelLayer(x.between(-1, 1) & y.between(-1, 1), components=2)
    >>> room = pal.Region(x.between(0, 9) & y.between(0, 9))
    >>> compiled = layer.compile_regions(room.windows([[5, 5], [0, 5]], half_width=1))
    >>> compiled.volume, layer(torch.zeros(3, layer.num_params), compiled[[0, 1, 0]]).batch_shape
    (array([4., 2.]), torch.Size([3]))
    """

    def __init__(self, layer: KernelLayer, regions: RegionBatch) -> None:
        if not isinstance(regions, RegionBatch):
            raise TypeError(f"regions must be a RegionBatch, not {type(regions).__name__}")
        self.layer, self.regions = layer, regions
        self.families: list[_core.KernelFamily] = layer._core.on_regions(regions._core)

    def __len__(self) -> int:
        return len(self.families)

    def __getitem__(self, index: Any) -> KernelRegions:
        rows = row_indices(index, len(self))
        new = KernelRegions.__new__(KernelRegions)
        new.layer, new.regions = self.layer, self.regions[rows]
        new.families = [self.families[row] for row in rows]
        return new

    @property
    def volume(self) -> np.ndarray:
        """The volume of each row inside the box of the layer."""
        return np.array([family.volume for family in self.families])

    def __repr__(self) -> str:
        return f"KernelRegions({', '.join(self.layer.variables)}; {len(self)} rows)"


class KernelDistribution(Distribution):
    """Mixtures of kernels on a region, one for each parameter vector of a batch: what a
    [`KernelLayer`][pal.torch.KernelLayer] returns.

        p(y) = q(y) 1[y in region] / I,        q(y) = sum_m w_m K(L_m^-1 (y - c_m)) / det L_m + w_0 / volume

    `log_prob`, `probability` and `entropy` have first derivatives with respect to the parameters, and `log_prob` also with
    respect to points.

    Args:
        layer: the layer that made it.
        params: parameter vectors along the last axis.
        families: what integrates the kernels, one for all rows or one for each.
        validate_args: as for all distributions.

    >>> import pal, torch
    >>> from pal.torch import KernelLayer
    >>> x, y = pal.reals("x", "y")
    >>> layer = KernelLayer(x.between(-1, 1) & y.between(-1, 1), components=2)
    >>> p = layer(torch.randn(3, layer.num_params, requires_grad=True))
    >>> p.sample((10,)).shape, p.log_prob(torch.tensor([2.0, 0.0])).tolist()
    (torch.Size([10, 3, 2]), [-inf, -inf, -inf])
    >>> halves = p.probability(x <= 0) + p.probability(x > 0)
    >>> halves.detach().round(decimals=4), halves.requires_grad
    (tensor([1., 1., 1.]), True)
    """

    arg_constraints = {"params": Finite()}

    def __init__(
        self,
        layer: KernelLayer,
        params: Tensor,
        families: Sequence[_core.KernelFamily],
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(params, Tensor) or not params.is_floating_point():
            kind = params.dtype if isinstance(params, Tensor) else type(params).__name__
            raise TypeError(f"outputs must be a tensor of floating-point numbers, not {kind}")
        _devices.require_float64(params.device, "a layer")
        if params.dim() == 0 or params.shape[-1] != layer.num_params:
            wanted, shape = layer.num_params, tuple(params.shape)
            raise ValueError(f"outputs need {wanted} numbers along the last axis; the shape is {shape}")
        self.layer, self.params, self._families = layer, params, list(families)
        super().__init__(params.shape[:-1], torch.Size([len(layer.variables)]), validate_args=validate_args)

    @property
    def _width(self) -> int:
        return self.event_shape[0]

    @property
    def support(self) -> Any:
        """Where the densities may be positive."""
        if len(self._families) == 1:
            return InRegion(Constraint._of(self._families[0].constraint))
        return _InFamilies(self._families, self.batch_shape)

    @lazy_property
    def _flat(self) -> np.ndarray:
        """The parameters of all rows in float64."""
        return self.params.detach().cpu().double().contiguous().view(-1).numpy()

    @property
    def _dtype(self) -> torch.dtype:
        """The precision of answers: shorter formats, which autocast makes, hold two or three digits of a loss."""
        return _precision.at_least_float32(self.params.dtype)

    def _groups(self) -> list[tuple[_core.KernelFamily, np.ndarray]]:
        """The families with the parameters of their rows."""
        if len(self._families) == 1:
            return [(self._families[0], self._flat)]
        return list(zip(self._families, self._flat.reshape(len(self._families), -1)))

    def _like(self, params: Tensor, families: Sequence[_core.KernelFamily]) -> KernelDistribution:
        return KernelDistribution(self.layer, params, families, validate_args=False)

    def _each(self, values: Any) -> Tensor:
        answers = torch.as_tensor(np.asarray(values), dtype=torch.float64).reshape(self.batch_shape)
        return answers.to(self.params.device, self._dtype)

    def _points(self, value: Tensor | Points) -> Tensor:
        if isinstance(value, Mapping):
            columns = [torch.as_tensor(c) for c in _arrays.named(value, self.layer.variables, "points") or ()]
            value = torch.stack(torch.broadcast_tensors(*columns), -1)
        elif not isinstance(value, Tensor):
            points, shape = _arrays.points(value, self.layer.variables)
            value = torch.from_numpy(points).reshape(*shape, self._width).to(self.params.device)
        _arrays.check_width(value.shape, self.layer.variables)
        return value

    def log_prob(self, value: Tensor | Points) -> Tensor:
        """The log-density of points, broadcast against the batch: minus infinity outside the region, never NaN. A dict of
        tensors and a table of pandas have coordinates by name. At least in float32, whatever the precision of the
        parameters."""
        value = self._points(value)
        full = common_shape(value, self.batch_shape)
        if 0 in full:
            return (self.params.sum() * 0).expand(full).to(self._dtype)
        params = self.params.reshape(-1, self.params.shape[-1])
        derivatives = torch.is_grad_enabled() and (params.requires_grad or value.requires_grad)
        if len(params) == 1 and len(self._families) == 1 and not derivatives:
            found = self._families[0].log_prob(self._flat, flat(value.reshape(-1, self._width)))
            return torch.from_numpy(found).reshape(full).to(self.params.device, self._dtype)
        families = self._families
        if full != self.batch_shape:
            rows = torch.arange(len(params)).reshape(self.batch_shape).expand(full).reshape(-1)
            params = params[rows.to(params.device)]
            if len(families) > 1:
                families = [families[row] for row in rows.tolist()]
        points = value.expand(*full, self._width).reshape(-1, self._width)
        logs = _LogProb.apply(params.to(self._dtype), points, families).reshape(full)
        if logs.requires_grad:
            _precision.warn_of_points_outside(self.layer, logs)
        return logs

    def sample(self, sample_shape: Any = torch.Size(), *, generator: torch.Generator | None = None) -> Tensor:
        """Independent samples in float64, so that every one is exactly inside the region. A generator makes them
        reproducible by itself; without one, `torch.manual_seed` does."""
        shape = torch.Size(sample_shape)
        count = shape.numel()
        if count * self.batch_shape.numel() == 0:
            return self.params.new_empty(*shape, *self.batch_shape, self._width, dtype=torch.float64)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), dtype=torch.int64, device=device, generator=generator))
        parts = [family.sample(rows, count, seed + k) for k, (family, rows) in enumerate(self._groups())]
        samples = torch.from_numpy(np.concatenate(parts)).reshape(-1, count, self._width).transpose(0, 1)
        return samples.reshape(*shape, *self.batch_shape, self._width).to(self.params.device)

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event, with derivatives with respect to the parameters."""
        formula = as_formula(event, "the event")
        events = [family.within(formula) for family in self._families]
        params = self.params.reshape(-1, self.params.shape[-1]).to(self._dtype)
        return _Probability.apply(params, self._families, events).clamp(0, 1).reshape(self.batch_shape)

    def condition(self, condition: Formula) -> KernelDistribution:
        """The densities given that a condition holds: zero elsewhere, with derivatives as before."""
        formula = as_formula(condition, "the condition")
        families = [family.within(formula) for family in self._families]
        # The uniform part gives mass to every volume.
        if not all(family.volume > 0 for family in families):
            raise QueryError("the condition has probability 0 under some of these densities")
        return self._like(self.params, families)

    def expectation(self, polynomial: Integrand) -> Tensor:
        """The expectation of a polynomial in the variables; without derivatives."""
        return self._each(np.concatenate([f.expectation(polynomial, rows) for f, rows in self._groups()]))

    @lazy_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        found = [family.mean_and_covariance(rows) for family, rows in self._groups()]
        mean = torch.from_numpy(np.concatenate([mean for mean, _ in found])).reshape(*self.batch_shape, self._width)
        covariance = np.concatenate([covariance for _, covariance in found])
        return mean, torch.from_numpy(covariance).reshape(*self.batch_shape, self._width, self._width)

    @property
    def mean(self) -> Tensor:
        """The means of the variables in float64; without derivatives."""
        return self._moments[0].to(self.params.device)

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrices of the variables; without derivatives."""
        return self._moments[1].to(self.params.device, self._dtype)

    @property
    def covariance(self) -> Tensor:
        """The same as `covariance_matrix`."""
        return self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """The variances of the variables; without derivatives."""
        return self.covariance_matrix.diagonal(dim1=-2, dim2=-1).clamp_min(0)

    def modes(
        self, gap: float = MODE_DEFAULT.gap, nodes: int | None = MODE_DEFAULT.nodes, seconds: float | None = None
    ) -> list[Mode]:
        """The points of largest density with certificates, one for each row."""
        options = _core.ModeOptions(gap, nodes, seconds)
        return [Mode(*answer) for family, rows in self._groups() for answer in family.modes(rows, options)]

    @property
    def mode(self) -> Tensor:
        """The points of largest density in float64."""
        points = np.stack([mode.point for mode in self.modes()])
        return torch.from_numpy(points).reshape(*self.batch_shape, self._width).to(self.params.device)

    def entropies(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> list[Entropy]:
        """The entropies in nats with estimates of their errors, one for each row."""
        options = _core.EntropyOptions(tolerance)
        found = [answer for family, rows in self._groups() for answer in family.entropies(rows, options, False)[0]]
        return [Entropy(*answer) for answer in found]

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> Tensor:
        """The entropies in nats by adaptive cubature, with derivatives with respect to the parameters."""
        params = self.params.reshape(-1, self.params.shape[-1]).to(self._dtype)
        return _Entropy.apply(params, self._families, _core.EntropyOptions(tolerance)).reshape(self.batch_shape)

    def marginal(self, variable: str) -> Marginals:
        """The exact marginals of one variable."""
        if variable not in self.layer.variables:
            names = ", ".join(self.layer.variables)
            raise QueryError(f"there is no variable {variable!r}; there are {names}")
        axis = self.layer.variables.index(variable)
        found = [Marginal(m) for family, rows in self._groups() for m in family.marginals(axis, rows)]
        return Marginals(found, self.batch_shape, self.params, torch.float64)

    def densities(self) -> list[KernelDensity]:
        """One density for each row, for pictures and for questions with answers in numpy."""
        return [KernelDensity(self._chosen(torch.tensor(row))) for row in range(self.batch_shape.numel())]

    def given(self, *_: Any, **__: Any) -> NoReturn:
        """An error: along a line, kernels have no density of their own kind."""
        raise QueryError("kernels have no densities given values of variables; those of a SplineLayer have: p.given(y=1)")

    def kl_divergence(self, *_: Any, **__: Any) -> NoReturn:
        """An error: there is no divergence of kernels."""
        raise QueryError("kernels have no divergence; densities of a SplineLayer have: p.kl_divergence(q)")

    def expand(self, batch_shape: Any, _instance: Any = None) -> KernelDistribution:
        """The same densities in a larger batch."""
        shape = torch.Size(batch_shape)
        rows = torch.arange(self.batch_shape.numel()).reshape(self.batch_shape).expand(shape)
        return self._chosen(rows)

    def __getitem__(self, index: Any) -> KernelDistribution:
        return self._chosen(torch.arange(self.batch_shape.numel()).reshape(self.batch_shape)[index])

    def _chosen(self, rows: Tensor) -> KernelDistribution:
        params = self.params.reshape(-1, self.params.shape[-1])[rows.reshape(-1).to(self.params.device)]
        families = self._families
        if len(families) > 1:
            families = [families[row] for row in rows.reshape(-1).tolist()]
        return self._like(params.reshape(*rows.shape, -1), families)

    def __repr__(self) -> str:
        return f"KernelDistribution({', '.join(self.layer.variables)}; batch_shape={tuple(self.batch_shape)})"


class _InFamilies(InRegion):
    """The points that are in the region of their own row, decided exactly."""

    def __init__(self, families: list[_core.KernelFamily], batch_shape: torch.Size) -> None:
        self.families, self.batch_shape = families, batch_shape

    def check(self, value: Tensor) -> Tensor:
        full = common_shape(value, self.batch_shape)
        width = value.shape[-1]
        points = value.detach().expand(*full, width).reshape(-1, len(self.families), width).cpu().double().numpy()
        inside = [family.contains(np.ascontiguousarray(points[:, row]).reshape(-1)) for row, family in enumerate(self.families)]
        return torch.from_numpy(np.stack(inside, -1)).reshape(full).to(value.device)

    def __repr__(self) -> str:
        return f"InRegions({len(self.families)} rows)"


def _grouped(rows: np.ndarray, families: Sequence[_core.KernelFamily]) -> list[tuple[int, np.ndarray]]:
    if len(families) == 1:
        return [(0, rows.reshape(-1))]
    return list(enumerate(rows.reshape(len(families), -1)))


def _numbers(rows: Tensor) -> np.ndarray:
    return rows.detach().cpu().double().contiguous().view(-1).numpy()


def _tensor(values: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(values).to(like.detach())


class _LogProb(torch.autograd.Function):
    """Log-densities whose gradients are computed in the same pass."""

    @staticmethod
    def forward(
        ctx: Any,
        params: Tensor,
        points: Tensor,
        families: list[_core.KernelFamily],
        inside: np.ndarray | None = None,
    ) -> Tensor:
        with_gradient = any(ctx.needs_input_grad[:2])
        found, gradient, at_points = _core.KernelFamily.log_prob_each(
            families, _numbers(params), flat(points), with_gradient, inside
        )
        if gradient is not None and at_points is not None:
            ctx.save_for_backward(
                _tensor(gradient, params).view(params.shape), _tensor(at_points, points).view(points.shape)
            )
        return _tensor(found, params)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        gradient, at_points = ctx.saved_tensors
        of_points = (at_points * cotangent.unsqueeze(-1).to(at_points)) if ctx.needs_input_grad[1] else None
        return gradient * cotangent.unsqueeze(-1), of_points, None, None


class _Probability(torch.autograd.Function):
    """Probabilities of an event, with their gradients."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, families: Any, events: Any) -> Tensor:
        with_gradient = ctx.needs_input_grad[0]
        groups = _grouped(_numbers(params), families)
        found = [families[k].probability(events[k], rows, with_gradient) for k, rows in groups]
        if with_gradient:
            gradient = np.concatenate([gradient for _, gradient in found])
            ctx.save_for_backward(_tensor(gradient, params).view(params.shape))
        return _tensor(np.concatenate([values for values, _ in found]), params)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * cotangent.unsqueeze(-1), None, None


class _Entropy(torch.autograd.Function):
    """Entropies, with their gradients."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, families: Any, options: Any) -> Tensor:
        with_gradient = ctx.needs_input_grad[0]
        found = [families[k].entropies(rows, options, with_gradient) for k, rows in _grouped(_numbers(params), families)]
        if with_gradient:
            gradient = np.concatenate([gradient for _, gradient in found])
            ctx.save_for_backward(_tensor(gradient, params).view(params.shape))
        return _tensor(np.array([value for answers, _ in found for value, _, _ in answers]), params)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * cotangent.unsqueeze(-1), None, None
