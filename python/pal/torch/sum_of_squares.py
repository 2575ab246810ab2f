"""Sums of squares as a layer."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ..family import SumOfSquares
from ..formula import Constrained
from ..region import Region
from . import _points
from .layer import Layer, tiny


class SumOfSquaresLayer(Layer):
    """Sums of squares of polynomials on a constraint:

        p(y) = sum_k  w_k (u_k . phi(y))^2 / I  where the constraint holds,  and 0 elsewhere

    Args:
        region: a region, or a constraint that is made into one.
        degree: of the polynomials that are squared.
        components: squares in the sum.
        basis: `"orthonormal"` on the constraint, `"legendre"` on the box around it, or `"monomial"` with the reparametrisation of the paper.
        terms: choose so many members of the basis at random rather than all.
        seed: of that choice.
    """

    _made_of = SumOfSquares

    def __init__(
        self,
        region: Region | Constrained,
        degree: int = 7,
        components: int = 4,
        basis: str = "orthonormal",
        terms: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(SumOfSquares(region, degree, components, basis, terms, seed))

    def _constants(self) -> dict[str, np.ndarray]:
        size, gram = self._recipe["size"], self._recipe["gram"]
        return {"gram": np.eye(size) if gram is None else gram.reshape(size, size)}

    @property
    def whole(self) -> Tensor:
        return self.gram

    def _coefficients(self, params: Tensor) -> Tensor:
        z = params.unflatten(-1, (self._recipe["components"], -1))[..., 1:]
        if self._recipe["damped"]:
            # The difference of two roots, without cancellation.
            z = z / ((z.abs() + 0.1).sqrt() + 0.1**0.5)
        # One scale for all squares of a density, which does not depend on it.
        scale = z.detach().abs().amax((-1, -2), keepdim=True).clamp_min(tiny(params.dtype))
        return z / scale

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        u = self._coefficients(params)
        if form is self.gram and self._recipe["gram"] is None:
            return (u * u).sum(-1)
        return (u * (u @ form.to(u))).sum(-1)

    def log_weights(self, params: Tensor) -> Tensor:
        logits = params.unflatten(-1, (self._recipe["components"], -1))[..., 0].log_softmax(-1)
        integrals = self.integrals(params, self.gram).clamp_min(tiny(params.dtype)).log()
        return logits - (logits + integrals).logsumexp(-1, keepdim=True)

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        flat = points.reshape(-1, points.shape[-1])
        rows, flags = _points.features(flat, self._number, self._recipe["size"])
        u = self._coefficients(params)
        value = rows.reshape(*points.shape[:-1], -1).to(u) @ u.transpose(-1, -2)
        logs = 2 * value.abs().clamp_min(tiny(u.dtype)).log() + self.log_weights(params).unsqueeze(-2)
        return logs, flags.reshape(points.shape[:-1])
