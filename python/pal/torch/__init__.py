"""Densities on constraints as layers of PyTorch networks.

A layer turns the outputs of a network into a `torch.distributions.Distribution` that gives zero mass to everything outside a constraint:

>>> import pal, torch
>>> from pal.torch import SplineLayer
>>> x, y = pal.reals("x", "y")
>>> layer = SplineLayer(pal.Region((x >= 0) & (y >= 0) & (x + y <= 1)), knots=6, components=4)
>>> network = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.ReLU(), torch.nn.Linear(32, layer.num_params))
>>> p = layer(network(torch.randn(5, 3)))
>>> p.batch_shape, p.event_shape, p.sample((2,)).shape
(torch.Size([5]), torch.Size([2]), torch.Size([2, 5, 2]))
>>> p.log_prob(torch.tensor([0.75, 0.75])).tolist()
[-inf, -inf, -inf, -inf, -inf]
>>> loss = -p.log_prob(torch.tensor([0.25, 0.25])).mean()
>>> loss.backward()
"""

from .student_t import StudentTHead
from .distribution import ConstrainedDistribution, InRegion, Marginals
from .layer import Layer
from .spline import SplineLayer
from .sum_of_squares import SumOfSquaresLayer

__all__ = ["StudentTHead", "ConstrainedDistribution", "InRegion", "Layer", "Marginals", "SplineLayer", "SumOfSquaresLayer"]
