"""What layers of all kinds share: constants of a family, and log-densities by plain tensor operations.

Whatever depends on parameters is tensor operations, so derivatives of any order, any precision and any device come from
PyTorch. What depends on points alone is asked of the core: whether they satisfy the constraint, exactly, and their
features with their derivatives.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import DensityError
from ..families import Family
from ..formula import Constraint, Formula
from ..mixed import MixedFamily
from . import _devices
from ._points import PointOracle
from .distribution import ConstrainedDistribution
from .flat import FlatDistribution
from .normaliser import Normaliser

if TYPE_CHECKING:
    # Part of `typing` since Python 3.11.
    from typing_extensions import Self

# Integrals of the density along lines of the last coordinate: of the coordinates before it (rows, or one for all, by
# lines by coordinates), of the lower ends and of the upper ends (rows by lines).
LineIntegrals = Callable[[Tensor, Tensor, Tensor], Tensor]


# What parameters mean: weights that were trained with another version make other densities.
_VERSION = "3"


def tiny(dtype: torch.dtype) -> float:
    """The smallest number whose logarithm is taken: below it a value counts as zero."""
    return 1e-280 if dtype == torch.float64 else 1e-35


def _difference(found: str | None, wanted: str | None) -> str:
    """Where two texts differ, in one line: the first lines of scripts that are not the same."""
    lines = [[] if text is None else text.splitlines() for text in (found, wanted)]
    pairs = [pair for pair in itertools.zip_longest(*lines, fillvalue="nothing") if pair[0] != pair[1]] or [("?", "?")]
    shortened = [text if len(text) <= 200 else f"{text[:200]}..." for text in pairs[0]]
    more = f", and {len(pairs) - 1} more differences" if len(pairs) > 2 else ""
    more = ", and another difference" if len(pairs) == 2 else more
    return f"{shortened[0]} instead of {shortened[1]}{more}"


class Layer(nn.Module):
    """The last layer of a network: outputs of the network in, a batch of densities on a constraint out (PAL paper, Eq.
    (PAL)). The outputs are the parameters of a family of densities, or a head turns them into these.

    It has no weights of its own; its constants stay in float64 and follow the device. The state of a layer is what it
    was made from: loading a state dict into a layer on another constraint, or with other settings, is an error.

    A kind of layer implements `_constants`, `integrals`, `log_weights`, `log_components` and `line_integrals`, and is
    listed in `pal.torch.kinds`.

    Args:
        family: the compiled family.

    >>> import pal, torch
    >>> family = pal.HistogramMixture(pal.real("x").between(0, 1), bins=4, components=2)
    >>> layer = pal.torch.Layer.of(family)
    >>> type(layer).__name__, layer.num_params == family.num_params
    ('HistogramLayer', True)
    >>> layer(torch.zeros(3, layer.num_params)).log_prob(torch.tensor([1.5]))
    tensor([-inf, -inf, -inf])
    """

    #: The kind of family that the layer computes with.
    family_class: ClassVar[type[Family]] = Family

    #: The degree of a density along one axis, between knots.
    degree: int
    #: By how much an integral along one axis raises the degree along the others.
    degree_growth: int
    #: What is added to parameters, and the form of the normaliser, where tensor operations have one.
    offset: Tensor
    form: Tensor

    def __init__(self, family: Family) -> None:
        if isinstance(family, MixedFamily):
            raise DensityError(
                f"the constraint has Boolean variables ({', '.join(family.booleans)}), and a {type(self).__name__} is over "
                "real ones only; use MixedLayer"
            )
        super().__init__()
        #: What turns outputs of a network into parameters of the family; `None` where they are the parameters.
        self.head: nn.Module | None = None
        #: The family over all variables; it differs from `family` where the constraint has equalities.
        self.whole = family
        self.flat = family._core.flat
        if self.flat is not None:
            family = Family._of(family._core.in_free_coordinates())
        #: The family that the layer computes with, over the free variables.
        self.family = family
        self._points = PointOracle(family)
        self._components = family.num_components
        self._log_volume: float = family.recipe.log_volume
        self._prepare()
        for name, values in self._all_constants().items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    @classmethod
    def of(cls, family: Family) -> Self:
        """The layer of a compiled family, for instance of one from a file, without a head: it takes parameters of the
        family. Of any kind, if called on `Layer` itself."""
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

    def _all_constants(self) -> dict[str, np.ndarray]:
        return {"offset": self.family.offset, **self._constants()}

    def _theta(self, params: Tensor) -> Tensor:
        """What the layer computes with: the parameters with the offset of the family added, so that zeros are close to
        the uniform density. Components are along the axis before the last."""
        return (params + self.offset.to(params)).unflatten(-1, (self._components, -1))

    def in_float64(self, params: Tensor) -> Tensor:
        """Parameters in float64 that stand for the same densities: the offset is added in the precision of the
        parameters, so that what is zero there stays zero."""
        if params.dtype == torch.float64:
            return params
        offset = self.offset.to(params.device)
        return (params + offset.to(params.dtype)).double() - offset

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self.family.num_params if self.head is None else self.head.num_params  # type: ignore[return-value]

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return self.whole.constraint

    @property
    def normaliser(self) -> Normaliser:
        """The normaliser of the constraint that the layer was compiled on."""
        # Splines in four variables may have none.
        return Normaliser(getattr(self, "form", None))

    def normaliser_within(self, condition: Formula) -> Normaliser:
        """The normaliser of the part of the constraint where a further condition holds.

        >>> import pal, torch
        >>> from pal.torch import SumOfSquaresLayer
        >>> (x,) = pal.reals("x")
        >>> layer = SumOfSquaresLayer(x.between(0, 4), degree=0, components=1)
        >>> p = layer(torch.zeros(2), normaliser=layer.normaliser_within(x <= 1))
        >>> p.log_prob(torch.tensor([[0.5], [2.0]])).exp().round(decimals=4)
        tensor([1., 0.])
        """
        if self.normaliser.form is None:
            # The core integrates over the condition when it is asked.
            return Normaliser(None, condition)
        return Normaliser(self.integral_form(condition), condition)

    def forward(self, outputs: Tensor, normaliser: Normaliser | None = None) -> ConstrainedDistribution | FlatDistribution:
        """The densities of outputs of a network along the last axis, for the normaliser of the constraint or another
        one."""
        # Checks that ask for values are not possible inside of the transforms of `torch.func`.
        validate = False if torch._C._are_functorch_transforms_active() else None
        if self.head is None:
            made = ConstrainedDistribution(self, outputs, normaliser, validate_args=validate)
        else:
            made = ConstrainedDistribution(self, None, normaliser, validate_args=validate, outputs=outputs)
        return made if self.flat is None else FlatDistribution(self, made)

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

    def log_prob_paired(self, params: Tensor, points: Tensor) -> Tensor:
        """The log-density of one point for each row by tensor operations: what the fused pass of the core is held
        against, and where its second derivatives come from."""
        logs, inside = self.log_components_paired(params, points, self.normaliser.tensor)
        return (logs.logsumexp(-1) - self._log_volume).masked_fill(~inside, -math.inf)

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
        _devices.require_float64(fn(torch.empty(0)).device, "a layer")
        # `float()` and `half()` must not round constants that `double()` will not bring back.
        super()._apply(fn, recurse)
        for name, values in self._all_constants().items():
            buffer = getattr(self, name)
            if buffer.is_floating_point() and buffer.dtype != torch.float64:
                setattr(self, name, torch.from_numpy(values).to(buffer.device))
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What the core has compiled for questions is made again where it is needed.
        compiled = ("_known_moments", "_known_events", "flat")
        return {name: value for name, value in self.__dict__.items() if name not in compiled}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.flat = self.whole._core.flat

    def get_extra_state(self) -> dict[str, str]:
        settings = self.family._core.settings_json
        state = {"version": _VERSION, "constraint": self.constraint.to_smtlib(), "settings": settings}
        return state if self.flat is None else {**state, "free": ", ".join(self.flat.free_names)}

    def set_extra_state(self, state: dict[str, str]) -> None:
        own = self.get_extra_state()
        differences = {
            "version": "another version",
            "constraint": "another constraint",
            "settings": "other settings",
            "head": "another head",
            "free": "other free variables",
        }
        for key, what in differences.items():
            found, wanted = state.get(key), own.get(key)
            if found != wanted:
                raise RuntimeError(f"the state is that of a layer with {what}: {_difference(found, wanted)}")

    def extra_repr(self) -> str:
        return f"{self.family!r}, num_params={self.num_params}"
