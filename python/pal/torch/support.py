"""Where densities may be positive, and which parameters are allowed, as constraints of PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.distributions import constraints

from .. import _core
from ..formula import Constraint
from ..mixed import MixedFamily


class InRegion(constraints.Constraint):
    """The points that satisfy a formula, decided exactly: the support of
    [`ConstrainedDistribution`][pal.torch.ConstrainedDistribution].

    Args:
        constraint: what points have to satisfy.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> inside = pal.torch.InRegion(pal.Constraint(x + y <= 1))
    >>> inside.check(torch.tensor([[0.5, 0.5], [0.5, 0.75]]))
    tensor([ True, False])
    """

    event_dim = 1

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def check(self, value: Tensor) -> Tensor:
        """Whether points, along the last axis, satisfy the formula."""
        points = value.detach().to("cpu", torch.float64).numpy()
        return torch.from_numpy(np.asarray(self.constraint.contains(points))).to(value.device)

    def __repr__(self) -> str:
        return f"InRegion({self.constraint.formula!r})"


class InMixed(constraints.Constraint):
    """The points over real and Boolean variables that satisfy the constraint of a mixed family, or a condition on it,
    decided exactly. Values of Boolean variables other than 0 and 1 do not."""

    is_discrete = False
    event_dim = 1

    def __init__(self, of: MixedFamily | _core.MixedEvent) -> None:
        self._of = of._core if isinstance(of, MixedFamily) else of

    def check(self, value: Tensor) -> Tensor:
        """Whether points, along the last axis, satisfy the constraint."""
        points = value.detach().to("cpu", torch.float64).contiguous()
        inside = torch.from_numpy(self._of.contains(points.view(-1).numpy()))
        return inside.reshape(value.shape[:-1]).to(value.device)


class Finite(constraints.Constraint):
    """Vectors of finite numbers."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        # The sum of finite numbers may be infinite, but a finite sum is one of finite numbers: several times as fast.
        total = value.detach().sum().isfinite()
        if not torch.compiler.is_compiling() and bool(total):
            return total.expand(value.shape[:-1])
        return value.isfinite().all(-1)
