"""Mixed densities as the last layer of a network: outputs over real and Boolean variables at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import _core
from .._arrays import seed as as_seed
from .._core import Formula
from ..mixed import MixedDensity, MixedFamily, Table


class MixedLayer(nn.Module):
    """The last layer of a network whose outputs are parameters of a mixed family.

    Log-densities and probabilities have first derivatives with respect to the parameters. The work is done on the CPU in
    float64.

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

    @property
    def num_params(self) -> int:
        """The number of outputs of a network that one density takes."""
        return self.family.num_params

    def forward(self, params: Tensor) -> MixedDistribution:
        """The densities with the given parameters, one per row."""
        return MixedDistribution(self.family, params)

    def extra_repr(self) -> str:
        return repr(self.family)


class MixedDistribution:
    """A batch of mixed densities, one for each row of parameters."""

    def __init__(self, family: MixedFamily, params: Tensor) -> None:
        if params.shape[-1] != family.num_params:
            raise ValueError(
                f"the layer needs {family.num_params} parameters along the last axis; the shape is {tuple(params.shape)}"
            )
        if params.device.type != "cpu":
            raise ValueError(f"mixed layers work on the CPU, and the parameters are on {params.device}; move them there")
        self.family = family
        self.params = params

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch."""
        return self.params.shape[:-1]

    def log_prob(self, points: Any) -> Tensor:
        """The log-density of one point for each row; minus infinity outside the constraint. Points are a tensor with
        real variables first, then 0 and 1 for Boolean ones, or columns by name."""
        if isinstance(points, Tensor):
            if points.requires_grad:
                raise ValueError("mixed densities have no derivatives with respect to points; detach them")
            points = points.detach().cpu().to(torch.float64).numpy()
        points = self.family.points(points)
        if points.shape[:-1] != tuple(self.batch_shape):
            raise ValueError(f"one point for each row: points {points.shape[:-1]}, rows {tuple(self.batch_shape)}")
        return _LogProb.apply(self.params, self.family, points)

    def probability(self, event: Formula) -> Tensor:
        """The probability of an event on real and Boolean variables under each row."""
        return _Probability.apply(self.params, _core.MixedEvent(self.family._core, event))

    def sample(self, count: int = 1, seed: int | None = None) -> Tensor:
        """Independent samples: `count` for each row, along an axis before the last. Without a seed, PyTorch's generator
        chooses one."""
        if seed is None:
            seed = int(torch.randint(2**62, (1,)).item())
        samples = self.family.sample(_numbers(self.params).reshape(*self.params.shape), count, as_seed(seed))
        return torch.from_numpy(samples).to(self.params.dtype)

    def densities(self) -> list[MixedDensity]:
        """One density for each row, which answers all further questions."""
        return self.family.densities(_numbers(self.params).reshape(-1, self.family.num_params))

    def tables(self, *names: str) -> list[Table]:
        """The joint probabilities of Boolean variables and categories under each row."""
        return [density.table(*names) for density in self.densities()]


def _numbers(params: Tensor) -> Any:
    return params.detach().to(torch.float64).contiguous().view(-1).numpy()


class _LogProb(torch.autograd.Function):
    """Log-densities whose gradient is computed with them."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, family: MixedFamily, points: Any) -> Tensor:
        values, gradient = family._core.log_prob_rows(_numbers(params), points.reshape(-1))
        ctx.save_for_backward(torch.from_numpy(gradient).view(params.shape).to(params.dtype))
        return torch.from_numpy(values).view(params.shape[:-1]).to(params.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * cotangent.unsqueeze(-1), None, None


class _Probability(torch.autograd.Function):
    """Probabilities of an event."""

    @staticmethod
    def forward(ctx: Any, params: Tensor, event: _core.MixedEvent) -> Tensor:
        ctx.event = event
        ctx.save_for_backward(params)
        return torch.from_numpy(event.probability(_numbers(params))).view(params.shape[:-1]).to(params.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        (params,) = ctx.saved_tensors
        gradient = ctx.event.probability_vjp(_numbers(params), _numbers(cotangent))
        return torch.from_numpy(gradient).view(params.shape).to(params.dtype), None
