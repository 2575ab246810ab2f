"""Densities on constraints as layers of PyTorch networks.

A layer is the last layer of a network. It takes parameter vectors and returns a `torch.distributions.Distribution`,

    p(y | x) = q(y; params) 1[y satisfies the constraint] / normaliser(params),        params = network(x),

that gives exactly zero mass to everything outside the constraint (PAL paper, Eq. (PAL)). Training by
maximum likelihood is exact, on any device: the core computes log-densities with their gradients on the CPU, and plain
tensor operations elsewhere and for higher derivatives.

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

The pipeline, and where its parts live:

| step | module |
|---|---|
| outputs of a network to parameters of splines | `student_t`: [`StudentTHead`][pal.torch.StudentTHead] |
| parameters to densities, whatever the kind | `layer`: [`Layer`][pal.torch.Layer] |
| one module per kind of family | `spline`, `sum_of_squares`, `histogram`; `mixture` is shared, `kinds` lists all |
| kernels, which have no grid | `kernel`: [`KernelLayer`][pal.torch.KernelLayer]; `kernel_density` for one density |
| paths of many steps that never touch an obstacle | `trajectory`: [`TrajectoryLayer`][pal.torch.TrajectoryLayer], `trajectory_distribution`, `trajectory_network` (its default network), `_frames` (local frames) |
| Boolean variables and categories beside reals | `mixed`: [`MixedLayer`][pal.torch.MixedLayer] |
| a small training loop | `training`: [`fit`][pal.torch.fit] |
| networks that the program trained | `network`: [`load_network`][pal.torch.load_network] |
| what the components are divided by | `normaliser`: [`Normaliser`][pal.torch.Normaliser] |
| a region for each row of a batch | `regions`: [`RegionDistribution`][pal.torch.RegionDistribution] |
| what is asked of densities | `distribution`: [`ConstrainedDistribution`][pal.torch.ConstrainedDistribution] |
| their supports | `support`: [`InRegion`][pal.torch.InRegion] |
| marginals of one variable | `marginals`: [`Marginals`][pal.torch.Marginals] |
| given values of some variables, others for every row | `given`: [`GivenDistribution`][pal.torch.GivenDistribution] |
| entropies, divergences and moments with derivatives, computed by the core | `_information`, `_moments` |
| membership and features of points, asked of the core | `_points` |
| samples in short formats that stay inside, and formats that are too short | `_rounding`, `_precision` |
| devices without float64 | `_devices` |
| derivatives of samples | `_pathwise`, and `_lines` for integrals along lines |
"""

from .distribution import ConstrainedDistribution
from .flat import FlatDistribution, OnFlat
from .given import GivenDistribution
from .histogram import HistogramLayer
from .kernel import KernelDistribution, KernelLayer, KernelRegions
from .kernel_density import KernelDensity
from .kinds import LAYERS
from .layer import Layer
from .marginals import Marginals
from .mixed import MixedDistribution, MixedLayer
from .network import TrainedNetwork, load_network
from .normaliser import Normaliser
from .regions import CompiledRegions, InRegions, RegionDistribution, collate
from .spline import SplineLayer
from .student_t import StudentTHead
from .sum_of_squares import SumOfSquaresLayer
from .support import InRegion
from .training import Training, fit
from .trajectory import Coverage, PathWindows, TrajectoryLayer
from .trajectory_distribution import FreePaths, StepDistribution, TrajectoryDistribution
from .trajectory_network import StepNetwork

__all__ = [
    "CompiledRegions", "ConstrainedDistribution", "Coverage", "FlatDistribution", "FreePaths", "GivenDistribution",
    "HistogramLayer", "InRegion", "InRegions", "KernelDensity", "KernelDistribution", "KernelLayer", "KernelRegions", "LAYERS", "Layer",
    "Marginals", "MixedDistribution", "MixedLayer", "Normaliser", "OnFlat", "PathWindows", "RegionDistribution",
    "SplineLayer", "StepDistribution", "StepNetwork", "StudentTHead", "SumOfSquaresLayer", "TrainedNetwork",
    "Training", "TrajectoryDistribution", "TrajectoryLayer", "collate", "fit", "load_network",
]  # fmt: skip
