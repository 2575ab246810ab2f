"""Sums of squares as a layer (PAL paper, Eq. 3)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..families import SumOfSquares
from ..formula import Constrained
from ..region import Region
from ._lines import gauss_rule
from .layer import Layer, LineIntegrals, tiny


class SumOfSquaresLayer(Layer):
    """Sums of squares of polynomials on a constraint:

        p(y) = sum_k  w_k (u_k . phi(y))^2 / sum_k w_k u_k^T G u_k  where the constraint holds,  and 0 elsewhere

    with the parameters of [`SumOfSquares`][pal.SumOfSquares].

    Reference: "A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction", Eq. (PAL) and Eq. 3.

    Args:
        region: a region, or a constraint that is made into one.
        degree: the degree of the polynomials that are squared.
        components: the number of squares in the sum.
        basis: `"orthonormal"` on the constraint, `"legendre"` on the box around it, or `"monomial"` with the
            reparametrisation of the paper.
        terms: choose this many members of the basis at random instead of all of them.
        seed: the seed of that choice.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> layer = SumOfSquaresLayer((x >= 0) & (y >= 0) & (x + y <= 1), degree=0, components=1)
    >>> p = layer(torch.zeros(2))
    >>> p.log_prob(torch.tensor([[0.25, 0.25], [0.75, 0.75]])).exp().round(decimals=4)
    tensor([2., 0.])
    """

    family_class = SumOfSquares
    # An integral of a polynomial of total degree d has total degree d + 1.
    degree_growth = 1

    def __init__(
        self,
        region: Region | Constrained,
        degree: int | None = None,
        components: int | None = None,
        basis: str | None = None,
        terms: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(SumOfSquares(region, degree, components, basis, terms, seed))

    def _prepare(self) -> None:
        recipe = self.family.recipe
        self._size: int = recipe.size
        self._reparametrised: bool = recipe.reparametrised
        self._orthonormal: bool = recipe.gram is None
        self.degree = 2 * recipe.degree

    def _constants(self) -> dict[str, np.ndarray]:
        gram = self.family.recipe.gram
        return {"form": np.eye(self._size) if gram is None else gram.reshape(self._size, self._size)}

    def _coefficients(self, params: Tensor) -> Tensor:
        z = self._theta(params)[..., 1:]
        if self._reparametrised:
            # The difference of two roots, without cancellation.
            z = z / ((z.abs() + 0.1).sqrt() + 0.1**0.5)
        # One scale for all squares of a density, which does not depend on it.
        scale = z.detach().abs().amax((-1, -2), keepdim=True).clamp_min(tiny(params.dtype))
        return z / scale

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        u = self._coefficients(params)
        if form is self.form and self._orthonormal:
            return (u * u).sum(-1)
        return (u * (u @ form.to(u))).sum(-1)

    def log_weights(self, params: Tensor, form: Tensor) -> Tensor:
        logits = self._theta(params)[..., 0].log_softmax(-1)
        integrals = self.integrals(params, form).clamp_min(tiny(params.dtype)).log()
        return logits - (logits + integrals).logsumexp(-1, keepdim=True)

    def log_components(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        features, inside = self._points.features(points.reshape(-1, points.shape[-1]), self._size)
        u = self._coefficients(params)
        value = features.reshape(*points.shape[:-1], -1).to(u) @ u.transpose(-1, -2)
        logs = 2 * value.abs().clamp_min(tiny(u.dtype)).log() + self.log_weights(params, form).unsqueeze(-2)
        return logs, inside.reshape(points.shape[:-1])

    def line_integrals(self, params: Tensor, form: Tensor) -> LineIntegrals:
        x, w = (params.new_tensor(part) for part in gauss_rule(self.degree))
        coefficients = self._coefficients(params).transpose(-1, -2)
        weights = self.log_weights(params, form).exp().unsqueeze(-2)

        def integrals(before: Tensor, low: Tensor, high: Tensor) -> Tensor:
            nodes = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * x
            points = torch.cat([before.unsqueeze(-2).expand(*nodes.shape, -1), nodes.unsqueeze(-1)], -1)
            features, _ = self._points.features(points.reshape(-1, points.shape[-1]), self._size)
            values = (features.reshape(nodes.shape[0], -1, self._size) @ coefficients).square()
            density = (values * weights).sum(-1)
            return (density.unflatten(-1, nodes.shape[1:]) * w).sum(-1) * (high - low)

        return integrals
