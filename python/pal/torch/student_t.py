"""A head for spline layers: location, scale and tail of Student's t distributions in place of values at all knots."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .spline import SplineLayer

# Components narrower than the distance of knots would fall through between them.
_MIN_SCALE = 0.35
# The square must have an integral on the whole line: its exponent must be above 1/2.
_MIN_TAIL = 0.6
# Outputs of an untrained network lie between about -1 and 1; locations, over the whole axis.
_REACH = 6.0


class StudentTHead(nn.Module):
    """From locations, scales and tails to the parameters of a [`SplineLayer`][pal.torch.SplineLayer].

    To say where something will be, a network on plain parameters has to raise a few knots and lower all others, and
    must learn that for every location anew. Here it says it in three numbers per axis and component: a location m, a
    scale w and a tail a, all in bins. The knot at p gets the value and the derivative of

        s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w,

    whose square falls like the density of Student's t distribution with 2 a - 1 degrees of freedom.

    Args:
        layer: the layer that will get the parameters.

    >>> import pal, torch
    >>> from pal.torch import StudentTHead, SplineLayer
    >>> x, y = pal.reals("x", "y")
    >>> layer = SplineLayer(x.between(0, 9) & y.between(0, 9) & ((x <= 4) | (y <= 4)), knots=28, components=8)
    >>> head = StudentTHead(layer)
    >>> layer.num_params, head.num_params
    (904, 56)
    >>> network = torch.nn.Linear(3, head.num_params)
    >>> p = layer(head(network(torch.randn(5, 3))))
    >>> p.log_prob(torch.tensor([5.0, 5.0])).tolist()
    [-inf, -inf, -inf, -inf, -inf]
    """

    def __init__(self, layer: SplineLayer) -> None:
        super().__init__()
        if not isinstance(layer, SplineLayer):
            raise TypeError(f"a StudentTHead is for a SplineLayer, not for {type(layer).__name__}")
        self._components = layer.family.num_components
        self._edges = [np.asarray(edges) for edges in layer.family.edges]
        # Axes with as many knots are worked on together: half as many operations.
        alike = len({len(edges) for edges in self._edges}) == 1
        self._groups = [self._edges] if alike else [[edges] for edges in self._edges]
        for k, group in enumerate(self._groups):
            knots = np.stack([(edges - edges[0]) / self._bin(edges) for edges in group])
            self.register_buffer(f"knots{k}", torch.from_numpy(knots), persistent=False)

    @staticmethod
    def _bin(edges: np.ndarray) -> float:
        """The mean length of a bin."""
        return (edges[-1] - edges[0]) / (len(edges) - 1)

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self._components * (1 + 3 * len(self._edges))

    def forward(self, outputs: Tensor) -> Tensor:
        """The parameters of the layer for outputs along the last axis."""
        widths = [3 * len(group) for group in self._groups]
        logit, *parts = outputs.unflatten(-1, (self._components, -1)).split([1, *widths], -1)
        knots = [getattr(self, f"knots{k}").to(outputs) for k in range(len(parts))]
        splines = [self._spline(part.unflatten(-1, (-1, 3)), at) for part, at in zip(parts, knots)]
        return torch.cat([logit, *splines], -1).flatten(-2)

    @staticmethod
    def _spline(outputs: Tensor, knots: Tensor) -> Tensor:
        """Values and derivatives at the knots of some axes, axis by axis."""
        location, scale, tail = outputs.split(1, -1)
        scale, tail = softplus(scale) + _MIN_SCALE, softplus(tail) + _MIN_TAIL
        u = (knots - location * ((knots.shape[-1] - 1) / _REACH)) / scale
        q = 1 + u * u / tail
        log = q.log() * (-0.5 * tail)
        # Densities do not depend on the scale, so its gradient is zero and need not be followed.
        values = (log - log.detach().amax(-1, keepdim=True)).exp()
        return torch.cat([values, -values * u / (q * scale)], -1).flatten(-2)

    def start(self, points: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Outputs to begin with, for instance as the bias of a last layer: components at randomly chosen points, wide
        enough to cover all points together.

        >>> import pal, torch
        >>> (x,) = pal.reals("x")
        >>> head = StudentTHead(SplineLayer(x.between(0, 1), knots=10, components=2))
        >>> last = torch.nn.Linear(5, head.num_params)
        >>> with torch.no_grad():
        ...     _ = last.bias.copy_(head.start(torch.tensor([[0.2], [0.9]])))
        """
        points = points.detach().cpu().double().reshape(-1, len(self._edges))
        rows = torch.randint(len(points), (self._components,), generator=generator)
        spread = points.std(0, correction=0) / self._components ** (1 / len(self._edges))
        parts = [torch.zeros(self._components, 1, dtype=torch.float64)]
        for j, edges in enumerate(self._edges):
            bin = self._bin(edges)
            location = (points[rows, j] - edges[0]) / bin / ((len(edges) - 1) / _REACH)
            scale = max(float(spread[j]) / bin - _MIN_SCALE, 0.1)
            # The inverse of softplus.
            scale = scale + math.log(-math.expm1(-scale))
            parts.append(torch.stack([location, torch.full_like(location, scale), torch.zeros_like(location)], -1))
        return torch.cat(parts, -1).flatten().to(torch.get_default_dtype())
