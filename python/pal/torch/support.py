"""Where densities may be positive, and which parameters are allowed, as constraints of PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.distributions import constraints

from ..formula import Constraint


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


class Finite(constraints.Constraint):
    """Vectors of finite numbers."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        # The sum of finite numbers may be infinite, but a finite sum is one of finite numbers: several times as fast.
        total = value.detach().sum().isfinite()
        if not torch.compiler.is_compiling() and bool(total):
            return total.expand(value.shape[:-1])
        return value.isfinite().all(-1)
