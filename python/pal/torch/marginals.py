"""Marginals of one variable under all densities of a batch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..density import Marginal


class Marginals:
    """The exact marginals of one variable under all densities of a batch. Positions are broadcast against the batch.
    [`ConstrainedDistribution.marginal`][pal.torch.ConstrainedDistribution.marginal] makes them.

    Args:
        marginals: one for each density.
        batch_shape: the shape of the batch.
        like: a tensor with the device and the precision of answers.
        point_dtype: the precision of positions.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> layer = pal.torch.SumOfSquaresLayer((x >= 0) & (y >= 0) & (x + y <= 1), degree=0, components=1)
    >>> marginals = layer(torch.zeros(2, layer.num_params)).marginal("x")
    >>> marginals.cdf(torch.tensor(0.5)).round(decimals=4), marginals.mean.round(decimals=4)
    (tensor([0.7500, 0.7500]), tensor([0.3333, 0.3333]))
    """

    def __init__(
        self, marginals: list[Marginal], batch_shape: torch.Size, like: Tensor, point_dtype: torch.dtype
    ) -> None:
        self.marginals = marginals
        self.batch_shape = batch_shape
        self._like = like.detach()
        self._point_dtype = point_dtype

    def _each(self, name: str, at: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        full = torch.broadcast_shapes(at.shape, self.batch_shape)
        columns = at.detach().expand(full).reshape(-1, len(self.marginals)).to("cpu", torch.float64).numpy()
        values = [getattr(marginal, name)(columns[:, row]) for row, marginal in enumerate(self.marginals)]
        result = torch.from_numpy(np.stack(values, -1)).reshape(full)
        return result.to(self._like.device, self._like.dtype if dtype is None else dtype)

    def density(self, at: Tensor) -> Tensor:
        """The densities at positions."""
        return self._each("density", at)

    def cdf(self, at: Tensor) -> Tensor:
        """The probabilities of values up to positions."""
        return self._each("cdf", at)

    def icdf(self, p: Tensor) -> Tensor:
        """The positions where probabilities are reached."""
        return self._each("quantile", p, self._point_dtype)

    @property
    def mean(self) -> Tensor:
        """The means of the variable."""
        values = torch.tensor([m.mean for m in self.marginals], dtype=torch.float64).reshape(self.batch_shape)
        return values.to(self._like.device, self._point_dtype)

    @property
    def variance(self) -> Tensor:
        """The variances of the variable."""
        values = [m.variance for m in self.marginals]
        return torch.tensor(values, dtype=torch.float64).reshape(self.batch_shape).to(self._like)
