"""What layers of all kinds share: constants of a family, and log-densities by plain tensor operations.

Whatever depends on parameters is tensor operations, so derivatives of any order, any precision and any device come from
PyTorch. What depends on points alone is asked of the core: whether they satisfy the constraint, exactly, and their
features with their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..families import Family
from ..formula import Constraint, Formula
from ._points import PointOracle
from .distribution import ConstrainedDistribution
from .normaliser import Normaliser

if TYPE_CHECKING:
    # Part of `typing` since Python 3.11.
    from typing_extensions import Self

# Integrals of the density along lines of the last coordinate: of the coordinates before it (rows, or one for all, by
# lines by coordinates), of the lower ends and of the upper ends (rows by lines).
LineIntegrals = Callable[[Tensor, Tensor, Tensor], Tensor]


def tiny(dtype: torch.dtype) -> float:
    """The smallest number whose logarithm is taken: below it a value counts as zero."""
    return 1e-280 if dtype == torch.float64 else 1e-35


class Layer(nn.Module):
    """The last layer of a network: parameters in, a batch of densities on a constraint out (PAL paper, Eq. (PAL)).

    It has no weights of its own; its constants stay in float64 and follow the device. The state of a layer is what it
    was made from: loading a state dict into a layer on another constraint, or with other settings, is an error.

    A kind of layer implements `_constants`, `integrals`, `log_weights`, `log_components` and `line_integrals`, and is
    listed in `pal.torch.kinds`.
    """

    #: The kind of family that the layer computes with.
    family_class: ClassVar[type[Family]] = Family

    #: The degree of a density along one axis, between knots.
    degree: int
    #: By how much an integral along one axis raises the degree along the others.
    degree_growth: int

    def __init__(self, family: Family) -> None:
        super().__init__()
        self.family = family
        self._points = PointOracle(family)
        self._components = family.num_components
        self._log_volume: float = family.recipe.log_volume
        self._prepare()
        for name, values in self._constants().items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    @classmethod
    def of(cls, family: Family) -> Self:
        """The layer of a compiled family, for instance of one from a file; of any kind, if called on `Layer` itself."""
        if cls is Layer:
            from .kinds import LAYERS

            cls = next(layer for layer in LAYERS if isinstance(family, layer.family_class))  # type: ignore[assignment]
        if not isinstance(family, cls.family_class):
            wanted, given = cls.family_class.__name__, type(family).__name__
            raise TypeError(f"a {cls.__name__} is made of a {wanted}, not of a {given}")
        layer = cls.__new__(cls)
        Layer.__init__(layer, family)
        return layer

    def _prepare(self) -> None:
        """Sets plain attributes from the recipe of the family, before the constants are made."""

    def _constants(self) -> dict[str, np.ndarray]:
        """The constant tensors by name; `form` is that of the normaliser."""
        raise NotImplementedError

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self.family.num_params

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return self.family.constraint

    @property
    def normaliser(self) -> Normaliser:
        """The normaliser of the constraint that the layer was compiled on."""
        return Normaliser(self.form)

    def normaliser_within(self, condition: Formula) -> Normaliser:
        """The normaliser of the part of the constraint where a further condition holds.

        >>> import pal, torch
        >>> from pal.torch import SumOfSquaresLayer
        >>> (x,) = pal.reals("x")
        >>> layer = SumOfSquaresLayer(x.between(0, 4), degree=0, components=1)
        >>> p = layer(torch.tensor([0.0, 1.0]), normaliser=layer.normaliser_within(x <= 1))
        >>> p.log_prob(torch.tensor([[0.5], [2.0]])).exp().round(decimals=4)
        tensor([1., 0.])
        """
        return Normaliser(self.integral_form(condition), condition)

    def forward(self, params: Tensor, normaliser: Normaliser | None = None) -> ConstrainedDistribution:
        """The densities of parameter vectors along the last axis, for the normaliser of the constraint or another
        one."""
        return ConstrainedDistribution(self, params, normaliser)

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        """The integrals of all components for one form, scaled as the normalisers are; rows by components."""
        raise NotImplementedError

    def log_weights(self, params: Tensor, form: Tensor) -> Tensor:
        """The logarithms of the factors of the scaled components, with normalisers of this form; rows by components."""
        raise NotImplementedError

    def log_components(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the weighted mixture components at points, and which points are inside the constraint.

        `points` are float64: rows by points by coordinates. The results are rows by points by components, relative to
        the volume of the box, and rows by points.
        """
        raise NotImplementedError

    def log_components_paired(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        """Like `log_components` with one point for each row, as networks are trained: rows by components, and rows."""
        logs, inside = self.log_components(params, points.unsqueeze(1), form)
        return logs.squeeze(1), inside.squeeze(1)

    @property
    def path_obstacle(self) -> str | None:
        """Why samples do not move continuously with the parameters even on a convex region; `None` where they do."""
        return None

    def line_integrals(self, params: Tensor, form: Tensor) -> LineIntegrals:
        """Integrals of the densities of parameter rows along lines of the last coordinate, for pathwise derivatives."""
        raise NotImplementedError

    def conditional_params(self, params: Tensor, normaliser: Normaliser) -> Tensor:
        """Parameters whose density with the normaliser of the layer, conditioned as the given normaliser is, is that of
        the given parameters with the given normaliser: for questions to the core."""
        return params

    def integral_form(self, condition: Formula | bool, powers: Sequence[int] = ()) -> Tensor:
        """The form of the integrals over a part of the constraint, times a monomial in the coordinates of the box."""
        constants = self.family._core.normaliser_tensor(condition, list(powers))
        return torch.from_numpy(constants).reshape(self.form.shape).to(self.form.device)

    def expectation(self, params: Tensor, normaliser: Tensor, form: Tensor) -> Tensor:
        """The integral of the densities under a form: of 1 over a part of the constraint, or of a monomial."""
        return (self.log_weights(params, normaliser).exp() * self.integrals(params, form)).sum(-1)

    def _apply(self, fn: Any, recurse: bool = True) -> Layer:
        # `float()` and `half()` must not round constants that `double()` will not bring back.
        super()._apply(fn, recurse)
        for name, values in self._constants().items():
            buffer = getattr(self, name)
            if buffer.is_floating_point() and buffer.dtype != torch.float64:
                setattr(self, name, torch.from_numpy(values).to(buffer.device))
        return self

    def get_extra_state(self) -> dict[str, str]:
        return {"constraint": self.constraint.to_smtlib(), "settings": self.family._core.settings_json}

    def set_extra_state(self, state: dict[str, str]) -> None:
        own = self.get_extra_state()
        for key, what in (("constraint", "another constraint"), ("settings", "other settings")):
            if state.get(key) != own[key]:
                raise RuntimeError(f"the state is that of a layer with {what}: {state.get(key)} instead of {own[key]}")

    def extra_repr(self) -> str:
        return f"{self.family!r}, num_params={self.num_params}"
