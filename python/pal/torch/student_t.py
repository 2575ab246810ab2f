"""A head for spline mixtures: location, scale and tail of Student's t distributions in place of values at all knots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..families import SplineMixture

# The least scale, in distances of knots: a narrower component would fall between two knots and be seen by neither.
_MIN_SCALE = 0.35
# The largest scale and that of the output 0, in half lengths of the axis.
_MAX_SCALE, _ZERO_SCALE = 2.0, 0.5
# How fast the logarithm of a small scale grows with its output.
_SCALE_GAIN = 2.0
# The least tail, below which the square of s has no integral over the real line, and that of the output 0.
_MIN_TAIL, _ZERO_TAIL = 0.6, 2.0
# How far from the middle the components are placed by outputs of 0, in half lengths of the axis.
_SPREAD = 0.5

_SCALE_SHIFT = math.log(_ZERO_SCALE / (_MAX_SCALE - _ZERO_SCALE))
_TAIL_SHIFT = math.log(math.expm1(_ZERO_TAIL - _MIN_TAIL))


class StudentTHead(nn.Module):
    """From locations, scales and tails to the parameters of a [`SplineMixture`][pal.SplineMixture]: what a
    [`SplineLayer`][pal.torch.SplineLayer] puts in front of itself unless it is told not to.

    To say where something will be, a network that gives the values at the knots themselves has to raise a few of them
    and lower all others, and must learn that for every location anew. Here it says it in three numbers per axis and
    component. Let the knots of an axis be p_0 < .. < p_(K-1), c their middle (p_0 + p_(K-1)) / 2, W the half length
    (p_(K-1) - p_0) / 2, and o_1, o_2, o_3 the outputs of the network for this axis and component k = 0, 1, ... Then

        location  m = c + W (o_1 + d_k)
        scale     w = 0.35 h(m) + 2 W sigmoid(2 o_2 - log 3)
        tail      a = 0.6 + softplus(o_3 + log(e^1.4 - 1))

    and the spline at the knot p gets the value and the derivative of

        s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w,        s'(p) = -s(p) u / (w (1 + u^2 / a)),

    divided by the largest of the values; the derivative is in units of the mean distance of knots. Where nothing cuts
    it off, s^2 is the density of Student's t distribution with 2 a - 1 degrees of freedom. All outputs 0 are a broad
    density in the middle of the box: w is half of W, a is 2.

    - `h(m)` is the distance of the knots around m, so that no component falls between two knots, however unevenly they
      are placed. With the mean h_i of the lengths of the bins on both sides of p_i (at the ends, of the only one)
      h(m) = h_0 + sum_i (h_(i+1) - h_i) clamp((m - p_i) / (p_(i+1) - p_i), 0, 1).
    - `d_k` tells the components apart from the start: on axis j = 0, 1, .. of n it is
      frac(1/2 + (k + 1) g^-(j+1)) - 1/2, where g > 1 solves g^(n+1) = g + 1. These points are spread evenly over half
      of the box.

    The parameters are these values and derivatives less the offset of the family ([`Family`][pal.families.Family]),
    which every layer adds.

    Args:
        family: the family that the parameters are for.

    >>> import pal, torch
    >>> from pal.torch import StudentTHead
    >>> x, y = pal.reals("x", "y")
    >>> family = pal.SplineMixture(x.between(0, 9) & y.between(0, 9) & ((x <= 4) | (y <= 4)), knots=28, components=8)
    >>> head = StudentTHead(family)
    >>> head.num_params, head(torch.randn(5, 56)).shape, family.num_params
    (56, torch.Size([5, 904]), 904)
    """

    offset: Tensor

    def __init__(self, family: SplineMixture) -> None:
        super().__init__()
        if not isinstance(family, SplineMixture):
            raise TypeError(f"a StudentTHead is for a SplineMixture, not for {type(family).__name__}")
        self._components = family.num_components
        self._edges = [np.asarray(edges) for edges in family.edges]
        self._offset = family.offset
        # Axes with as many knots are worked on together: half as many operations.
        alike = len({len(edges) for edges in self._edges}) == 1
        axes = list(range(len(self._edges)))
        self._groups = [axes] if alike else [[j] for j in axes]
        constants = self._constants()
        self._uneven = [bool(constants[f"steps{k}"].any()) for k in range(len(self._groups))]
        for name, values in constants.items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    def _constants(self) -> dict[str, np.ndarray]:
        """Tensors for every group of axes, in coordinates in which an axis runs from -1 to 1."""
        places = _places(self._components, len(self._edges))
        constants = {"offset": self._offset}
        for k, group in enumerate(self._groups):
            edges = np.stack([self._edges[j] for j in group])
            low, high = edges[:, :1], edges[:, -1:]
            knots = ((edges - low) - (high - edges)) / (high - low)
            bins = np.diff(knots)
            distances = np.concatenate([bins[:, :1], (bins[:, 1:] + bins[:, :-1]) / 2, bins[:, -1:]], 1)
            constants[f"knots{k}"] = knots
            constants[f"bins{k}"] = bins
            # Distances that are equal but for rounding need not be looked up.
            steps = np.diff(distances)
            constants[f"steps{k}"] = np.where(np.abs(steps) < 1e-9 * distances[:, 1:], 0.0, steps)
            constants[f"first{k}"] = distances[:, :1]
            constants[f"places{k}"] = places[:, group, None]
        return constants

    def _apply(self, fn: Any, recurse: bool = True) -> StudentTHead:
        # `float()` and `half()` must not round constants that `double()` will not bring back.
        super()._apply(fn, recurse)
        for name, values in self._constants().items():
            setattr(self, name, torch.from_numpy(values).to(getattr(self, name).device))
        return self

    @property
    def num_params(self) -> int:
        """How many outputs a network must have: for every component a logit and three numbers per axis."""
        return self._components * (1 + 3 * len(self._edges))

    def forward(self, outputs: Tensor) -> Tensor:
        """The parameters of the family, in float32 or float64, for outputs along the last axis: for every component its
        logit, then location, scale and tail along the first axis, then those of the other axes."""
        if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
            kind = outputs.dtype if isinstance(outputs, Tensor) else type(outputs).__name__
            raise TypeError(f"outputs must be a tensor of floating-point numbers, not {kind}")
        if outputs.dim() == 0 or outputs.shape[-1] != self.num_params:
            shape = tuple(outputs.shape)
            raise ValueError(f"outputs need {self.num_params} numbers along the last axis; the shape is {shape}")
        # Values at knots that were rounded to short formats would make poor splines.
        outputs = outputs if outputs.dtype in (torch.float32, torch.float64) else outputs.float()
        widths = [3 * len(group) for group in self._groups]
        logit, *parts = outputs.unflatten(-1, (self._components, -1)).split([1, *widths], -1)
        splines = [self._spline(part.unflatten(-1, (-1, 3)), k) for k, part in enumerate(parts)]
        # Parameters are differences to the offset of the family.
        return torch.cat([logit, *splines], -1).flatten(-2) - self.offset.to(outputs)

    def _spline(self, outputs: Tensor, group: int) -> Tensor:
        """Values and derivatives at the knots of a group of axes, axis by axis."""
        names = ("knots", "bins", "steps", "first", "places")
        knots, bins, steps, distance, places = (getattr(self, f"{name}{group}").to(outputs) for name in names)
        location, scale, tail = outputs.split(1, -1)
        location = location + places
        if self._uneven[group]:
            way = ((location - knots[:, :-1]) / bins).clamp(0.0, 1.0)
            distance = distance + (steps * way).sum(-1, keepdim=True)
        scale = _MIN_SCALE * distance + _MAX_SCALE * (_SCALE_GAIN * scale + _SCALE_SHIFT).sigmoid()
        tail = _MIN_TAIL + softplus(tail + _TAIL_SHIFT)
        u = (knots - location) / scale
        q = u * u / tail
        log = q.log1p() * (-0.5 * tail)
        # Densities do not depend on the size of s, so that its gradient is zero and need not be followed.
        values = (log - log.detach().amax(-1, keepdim=True)).exp()
        mean_bin = 2 / bins.shape[-1]
        return torch.cat([values, -mean_bin * values * u / ((1 + q) * scale)], -1).flatten(-2)

    def start(self, points: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Outputs to begin with, for instance as the bias of a last layer: components at randomly chosen points, wide
        enough to cover all points together. Networks train without it.

        >>> import pal, torch
        >>> (x,) = pal.reals("x")
        >>> head = StudentTHead(pal.SplineMixture(x.between(0, 1), knots=10, components=2))
        >>> last = torch.nn.Linear(5, head.num_params)
        >>> with torch.no_grad():
        ...     _ = last.bias.copy_(head.start(torch.tensor([[0.2], [0.9]])))
        """
        n = len(self._edges)
        low, high = (torch.tensor([edges[end] for edges in self._edges], dtype=torch.float64) for end in (0, -1))
        # In coordinates in which an axis runs from -1 to 1.
        places = (2 * points.detach().cpu().double().reshape(-1, n) - low - high) / (high - low)
        rows = torch.randint(len(places), (self._components,), generator=generator)
        spread = places.std(0, correction=0) / self._components ** (1 / n)
        fraction = (spread / _MAX_SCALE).clamp(1e-3, 0.9)
        scale = ((fraction / (1 - fraction)).log() - _SCALE_SHIFT) / _SCALE_GAIN
        location = places[rows] - torch.from_numpy(_places(self._components, n))
        outputs = torch.stack([location, scale.expand_as(location), torch.zeros_like(location)], -1).flatten(-2)
        logits = torch.zeros(self._components, 1, dtype=torch.float64)
        return torch.cat([logits, outputs], -1).flatten().to(torch.get_default_dtype())


def _places(components: int, axes: int) -> np.ndarray:
    """Points between -1/2 and 1/2 on every axis that fill the box evenly, however many there are: M. Roberts' sequence,
    the generalisation of the golden ratio; components by axes."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (axes + 1))
    steps = ratio ** -np.arange(1.0, axes + 1)
    return 2 * _SPREAD * ((0.5 + np.outer(np.arange(1, components + 1), steps)) % 1.0 - 0.5)
