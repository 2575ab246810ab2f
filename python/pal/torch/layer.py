"""Layers: the constants of a family, and log-densities by plain tensor operations.

Whatever depends on parameters is tensor operations, so gradients of any order, any precision and any device come from PyTorch. What depends on points
alone is asked of the core: whether they satisfy the constraint, exactly, and what there is to know of them besides, with its derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..family import Family
from ..formula import Constraint, Formula
from . import _points
from .distribution import ConstrainedDistribution

if TYPE_CHECKING:
    # Part of `typing` since Python 3.11.
    from typing_extensions import Self


def tiny(dtype: torch.dtype) -> float:
    """The smallest number whose logarithm is taken: below it a value counts as zero."""
    return 1e-280 if dtype == torch.float64 else 1e-35


class Layer(nn.Module):
    """What spline and sum-of-squares layers share. It has no weights of its own; its constants stay in double precision and follow the device.

    The state of a layer is what it was made from: loading a state dict into a layer on another constraint, or with other settings, is an error.
    """

    _made_of: type[Family] = Family

    def __init__(self, family: Family) -> None:
        super().__init__()
        self.family = family
        self._recipe = family._core.recipe()
        self._number = _points.register(family)
        for name, values in self._constants().items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    @classmethod
    def of(cls, family: Family) -> Self:
        """The layer of a compiled family, for instance one from a file."""
        if not isinstance(family, cls._made_of):
            raise TypeError(f"a {cls.__name__} is made of a {cls._made_of.__name__}, not of a {type(family).__name__}")
        layer = cls.__new__(cls)
        Layer.__init__(layer, family)
        return layer

    def _constants(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self.family.num_params

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return self.family.constraint

    def forward(self, params: Tensor) -> ConstrainedDistribution:
        """The densities of parameter vectors along the last axis."""
        return ConstrainedDistribution(self, params)

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        """The integrals of all components for one form, scaled as the normalisers are; rows by components."""
        raise NotImplementedError

    def log_weights(self, params: Tensor) -> Tensor:
        """The logarithms by which the scaled components of the mixture are multiplied; rows by components."""
        raise NotImplementedError

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the terms of the mixture at points (rows by points by components), and which points are inside.

        `points` are doubles: rows by points by coordinates.
        """
        raise NotImplementedError

    def log_terms_each(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """The same with one point for each row, as networks are trained: rows by components, and rows."""
        terms, flags = self.log_terms(params, points.unsqueeze(1))
        return terms.squeeze(1), flags.squeeze(1)

    @property
    def whole(self) -> Tensor:
        """The form of the normalisers."""
        raise NotImplementedError

    def form(self, condition: Formula | bool, powers: Sequence[int] = ()) -> Tensor:
        """The form of the integrals over a part of the constraint, times a monomial in the coordinates of the box."""
        constants = self.family._core.form_constants(condition, list(powers))
        return torch.from_numpy(constants).reshape(self.whole.shape).to(self.whole.device)

    def expectation(self, params: Tensor, form: Tensor) -> Tensor:
        """The integral of the densities under a form: of 1 over a part, or of a monomial."""
        integrals = self.integrals(params, form)
        return (self.log_weights(params).exp() * integrals).sum(-1)

    def _apply(self, fn: Any, recurse: bool = True) -> Layer:
        # `float()` and `half()` must not round constants that `double()` will not bring back.
        super()._apply(fn, recurse)
        for name, values in self._constants().items():
            buffer = getattr(self, name)
            if buffer.is_floating_point() and buffer.dtype != torch.float64:
                setattr(self, name, torch.from_numpy(values).to(buffer.device))
        return self

    def get_extra_state(self) -> dict[str, str]:
        return {"constraint": self.constraint.to_smtlib(), "settings": self.family._core.settings}

    def set_extra_state(self, state: dict[str, str]) -> None:
        own = self.get_extra_state()
        for key, what in (("constraint", "another constraint"), ("settings", "other settings")):
            if state.get(key) != own[key]:
                raise RuntimeError(f"the state is that of a layer with {what}: {state.get(key)} instead of {own[key]}")

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_number"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._number = _points.register(self.family)

    def extra_repr(self) -> str:
        return f"{self.family!r}, num_params={self.num_params}"
