"""What mixtures of products share: spline mixtures and histogram mixtures.

Every component m has an integral Z_m of its own, and a logit, so that

    log p(y) = log sum_m exp(log softmax(logits)_m - log Z_m + log q_m(y))
"""

from __future__ import annotations

import torch
from torch import Tensor

from .layer import Layer, tiny
from .normaliser import Normaliser

# A logit for components without mass: far below all others, but finite, so that gradients stay finite.
_NO_WEIGHT = -1e30


def mixture_log_weights(logits: Tensor, integrals: Tensor) -> Tensor:
    """`log softmax(logits)_m - log Z_m`, over the components with mass. One without takes no part in the mixture."""
    empty = integrals <= tiny(logits.dtype)
    logits = logits.masked_fill(empty, _NO_WEIGHT)
    return logits.log_softmax(-1) - integrals.masked_fill(empty, 1.0).log()


class MixtureLayer(Layer):
    """A layer whose components are products of functions of one variable, and are normalised one by one.

    The first number of every component of a parameter vector is its logit.
    """

    @staticmethod
    def contract(factors: list[Tensor], form: Tensor) -> Tensor:
        """A multilinear form (its first axis down, all others across) of one vector per axis and row, for all rows."""
        partial = factors[0] @ form.to(factors[0])
        for factor in factors[1:]:
            if partial.shape[-1] == factor.shape[-1]:
                partial = (partial * factor).sum(-1, keepdim=True)
            else:
                matrix = partial.unflatten(-1, (factor.shape[-1], -1))
                partial = torch.bmm(factor.unsqueeze(-2), matrix).squeeze(-2)
        return partial

    def conditional_params(self, params: Tensor, normaliser: Normaliser) -> Tensor:
        if normaliser.condition is None:
            return params
        # Conditioning multiplies the weight of a component by the fraction of its mass where the condition holds.
        components = params.unflatten(-1, (self._components, -1))
        whole, part = (self.integrals(params, form) for form in (self.form, normaliser.tensor))
        empty = part <= tiny(params.dtype)
        shift = (whole.clamp_min(tiny(params.dtype)) / part.masked_fill(empty, 1.0)).log()
        logits = (components[..., 0] + shift).masked_fill(empty, _NO_WEIGHT)
        return torch.cat([logits.unsqueeze(-1), components[..., 1:]], -1).flatten(-2)
