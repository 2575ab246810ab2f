"""One mixture of kernels, asked with arrays of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import _arrays
from .._arrays import FloatArray, Points
from ..density import ENTROPY_DEFAULT, MODE_DEFAULT, Entropy, Marginal, Mode
from ..formula import Constraint, Formula
from ..integrals import Integrand

if TYPE_CHECKING:
    from .kernel import KernelDistribution


class KernelDensity:
    """One mixture of kernels on a region, with the methods of [`Density`][pal.Density] that kernels have: points and
    answers are arrays of numpy. [`KernelDistribution.densities`][pal.torch.KernelDistribution.densities] makes it, and
    `pal.plot` draws it.

    Args:
        distribution: a distribution with a single density.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> layer = pal.torch.KernelLayer((x >= 0) & (y >= 0) & (x + y <= 1), components=2)
    >>> density, _ = layer(torch.zeros(2, layer.num_params)).densities()
    >>> float(density.log_prob([[0.25, 0.25], [0.75, 0.75]])[1]), density.sample(100, seed=1).shape
    (-inf, (100, 2))
    >>> ax = pal.plot.density(density)
    """

    #: A density is a batch of itself: what draws distributions draws it.
    batch_shape = torch.Size([])

    def __init__(self, distribution: KernelDistribution) -> None:
        if distribution.batch_shape.numel() != 1:
            raise ValueError(f"one density is made of a single row, not of {distribution.batch_shape.numel()}")
        self._rows = distribution._chosen(torch.zeros((), dtype=torch.int64))
        self._rows.params = self._rows.params.detach().double()

    def densities(self) -> list[KernelDensity]:
        """The density itself."""
        return [self]

    def in_free_coordinates(self) -> KernelDensity:
        """The density itself: regions of kernels have an area, so that all coordinates are free."""
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order of coordinates."""
        return self._rows.layer.variables

    @property
    def constraint(self) -> Constraint:
        """What all samples satisfy."""
        return Constraint._of(self._rows._families[0].constraint)

    def log_prob(self, points: Points) -> FloatArray:
        """The log-density at points: minus infinity outside the region.

        Args:
            points: coordinates along the last axis, in the order of `variables`; or by name in a dict or a table.
        """
        flat, shape = _arrays.points(points, self.variables)
        return np.asarray(self._rows.log_prob(torch.from_numpy(flat).reshape(*shape, len(self.variables))).numpy())[()]

    def probability(self, event: Formula) -> float:
        """The probability of an event."""
        return float(self._rows.probability(event))

    def condition(self, condition: Formula) -> KernelDensity:
        """The density given that a condition holds."""
        return KernelDensity(self._rows.condition(condition))

    def expectation(self, polynomial: Integrand) -> float:
        """The expectation of a polynomial in the variables."""
        return float(self._rows.expectation(polynomial))

    def mean(self) -> FloatArray:
        """The mean of every variable."""
        return self._rows.mean.numpy()

    def covariance(self) -> FloatArray:
        """The covariance matrix of the variables."""
        return self._rows.covariance_matrix.numpy()

    def entropy(self, tolerance: float = ENTROPY_DEFAULT.tolerance) -> Entropy:
        """The entropy in nats, with an estimate of its error."""
        return self._rows.entropies(tolerance)[0]

    def marginal(self, variable: str) -> Marginal:
        """The exact marginal of one variable."""
        return self._rows.marginal(variable).marginals[0]

    def mode(
        self, gap: float = MODE_DEFAULT.gap, nodes: int | None = MODE_DEFAULT.nodes, seconds: float | None = None
    ) -> Mode:
        """The point of largest density, with a certificate."""
        return self._rows.modes(gap, nodes, seconds)[0]

    def sample(self, count: int, seed: int | None = None) -> FloatArray:
        """Independent samples, one per row, all exactly inside the region.

        Args:
            count: how many.
            seed: the same seed gives the same samples; a random one if not given.
        """
        generator = torch.Generator().manual_seed(_arrays.seed(seed) % 2**63)
        return self._rows.sample((_arrays.count(count, "the number of samples"),), generator=generator).numpy()

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draws the density: see [`pal.plot.density`][pal.plot.density]."""
        from .. import plot

        return plot.density(self, ax, **options)

    def __repr__(self) -> str:
        return f"KernelDensity({', '.join(self.variables)})"
