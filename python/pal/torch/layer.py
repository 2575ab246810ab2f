"""Layers: the constants of a family, and log-densities by plain tensor operations.

Whatever depends on parameters is tensor operations, so gradients of any order, any precision and any device come from PyTorch. What depends on points
alone and must be exact, whether a point satisfies the constraint, is asked of the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..family import Family, SplineMixture, SumOfSquares
from ..formula import Constrained, Constraint, Formula, Number
from ..region import Region
from . import _points
from .distribution import ConstrainedDistribution


def tiny(dtype: torch.dtype) -> float:
    """The smallest number whose logarithm is taken: below it a value counts as zero."""
    return 1e-280 if dtype == torch.float64 else 1e-35


class Layer(nn.Module):
    """What spline and sum-of-squares layers share. It has no weights of its own; its constants stay in double precision and follow the device.

    The state of a layer is what it was made from: loading a state dict into a layer on another constraint, or with other settings, is an error.
    """

    def __init__(self, family: Family) -> None:
        super().__init__()
        self.family = family
        self._recipe = family._core.recipe()
        self._number = _points.register(family)
        for name, values in self._constants().items():
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    def _constants(self) -> dict[str, np.ndarray]:
        raise NotImplementedError

    @property
    def num_params(self) -> int:
        """How many outputs a network must have."""
        return self.family.num_params

    @property
    def constraint(self) -> Constraint:
        """What all densities satisfy."""
        return self.family.constraint

    def forward(self, params: Tensor) -> ConstrainedDistribution:
        """The densities of parameter vectors along the last axis."""
        return ConstrainedDistribution(self, params)

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        """The integrals of all components for one form, scaled as the normalisers are; rows by components."""
        raise NotImplementedError

    def log_weights(self, params: Tensor) -> Tensor:
        """The logarithms by which the scaled components of the mixture are multiplied; rows by components."""
        raise NotImplementedError

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the terms of the mixture at points (rows by points by components), and which points are inside.

        `points` are doubles: rows by points by coordinates.
        """
        raise NotImplementedError

    @property
    def whole(self) -> Tensor:
        """The form of the normalisers."""
        raise NotImplementedError

    def form(self, condition: Formula | bool, powers: Sequence[int] = ()) -> Tensor:
        """The form of the integrals over a part of the constraint, times a monomial in the coordinates of the box."""
        constants = self.family._core.form_constants(condition, list(powers))
        return torch.from_numpy(constants).reshape(self.whole.shape).to(self.whole.device)

    def expectation(self, params: Tensor, form: Tensor) -> Tensor:
        """The integral of the densities under a form: of 1 over a part, or of a monomial."""
        integrals = self.integrals(params, form)
        return (self.log_weights(params).exp() * integrals).sum(-1)

    def _apply(self, fn: Any, recurse: bool = True) -> Layer:
        # `float()` and `half()` must not round constants that `double()` will not bring back.
        super()._apply(fn, recurse)
        for name, values in self._constants().items():
            buffer = getattr(self, name)
            if buffer.is_floating_point() and buffer.dtype != torch.float64:
                setattr(self, name, torch.from_numpy(values).to(buffer.device))
        return self

    def get_extra_state(self) -> dict[str, str]:
        return {"constraint": self.constraint.to_smtlib(), "settings": self.family._core.settings}

    def set_extra_state(self, state: dict[str, str]) -> None:
        own = self.get_extra_state()
        for key, what in (("constraint", "another constraint"), ("settings", "other settings")):
            if state.get(key) != own[key]:
                raise RuntimeError(f"the state is that of a layer with {what}: {state.get(key)} instead of {own[key]}")

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_number"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._number = _points.register(self.family)

    def extra_repr(self) -> str:
        return f"{self.family!r}, num_params={self.num_params}"


class SplineLayer(Layer):
    """Mixtures of products of squared cubic splines on a constraint:

        p(y) = sum_m  w_m / Z_m  prod_j s_mj(y_j)^2  where the constraint holds,  and 0 elsewhere

    Args:
        region: a region, or a constraint that is made into one, with 1 to 4 variables.
        knots: how many equally spaced knots per variable, or an increasing list of positions for each.
        mixtures: components.

    >>> import pal, torch
    >>> (x,) = pal.reals("x")
    >>> layer = SplineLayer(x.between(0, 2), knots=4, mixtures=3)
    >>> layer.num_params
    27
    >>> p = layer(torch.ones(27))
    >>> round(float(p.prob(x <= 1) + p.prob(x > 1)), 5), p.log_prob(torch.tensor([3.0]))
    (1.0, tensor(-inf))
    """

    def __init__(
        self, region: Region | Constrained, knots: int | Sequence[Sequence[Number]] = 14, mixtures: int = 8
    ) -> None:
        super().__init__(SplineMixture(region, knots, mixtures))

    @classmethod
    def of(cls, family: SplineMixture) -> SplineLayer:
        """The layer of a compiled family, for instance one from a file."""
        layer = cls.__new__(cls)
        Layer.__init__(layer, family)
        return layer

    def _constants(self) -> dict[str, np.ndarray]:
        recipe = self._recipe
        constants = {
            f"values{j}": values.reshape(params, nodes)
            for j, (values, params, nodes) in enumerate(zip(recipe["values"], recipe["params"], recipe["nodes"]))
        }
        for j, edges in enumerate(self.family.edges):
            lengths = np.diff(edges)
            constants[f"edges{j}"] = edges
            constants[f"inner{j}"] = edges[1:-1].copy()
            # Start, length, and length over the mean one, of every bin; and where its values and derivatives are.
            constants[f"bins{j}"] = np.stack([edges[:-1], lengths, lengths * (len(lengths) / (edges[-1] - edges[0]))], -1)
            constants[f"corners{j}"] = np.array([0, 1, len(edges), len(edges) + 1])
        if self._alike:
            for name in ("inner", "bins"):
                constants[name] = np.stack([constants[f"{name}{j}"] for j in range(len(recipe["params"]))])
        # The first axis down and all others across.
        constants["normaliser"] = recipe["form"].reshape(recipe["nodes"][0], -1)
        return constants

    @property
    def _alike(self) -> bool:
        """Whether all axes have the same knots but for place and scale, so that they can be worked on together."""
        first, *others = self._recipe["values"]
        return all(np.array_equal(first, values) for values in others)

    @property
    def whole(self) -> Tensor:
        return self.normaliser

    def _splines(self, params: Tensor) -> list[Tensor]:
        """Values and derivatives at the knots per axis, scaled to size one: densities do not depend on the scale, so neither do gradients."""
        parts = params.unflatten(-1, (self._recipe["mixtures"], -1))[..., 1:].split(self._recipe["params"], dim=-1)
        return [self._scaled(theta) for theta in parts]

    @staticmethod
    def _scaled(theta: Tensor) -> Tensor:
        return theta / theta.detach().abs().amax(-1, keepdim=True).clamp_min(tiny(theta.dtype))

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        return self._contract(self._splines(params), params, form)

    def _contract(self, splines: list[Tensor], params: Tensor, form: Tensor) -> Tensor:
        # One row for each component: products of two matrices, rather than of many.
        flat = [theta.flatten(0, -2) for theta in splines]
        squares = [(theta @ getattr(self, f"values{j}").to(theta)).square() for j, theta in enumerate(flat)]
        return self._multilinear(squares, params, form)

    def _multilinear(self, squares: Sequence[Tensor], params: Tensor, form: Tensor) -> Tensor:
        shape = params.shape[:-1] + (self._recipe["mixtures"],)
        rest = squares[0] @ form.to(params)
        for square in squares[1:]:
            if rest.shape[-1] == square.shape[-1]:
                rest = (rest * square).sum(-1, keepdim=True)
            else:
                rest = torch.bmm(square.unsqueeze(-2), rest.unflatten(-1, (square.shape[-1], -1))).squeeze(-2)
        return rest.reshape(shape)

    def log_weights(self, params: Tensor) -> Tensor:
        return self._log_weights(self._splines(params), params)

    def _log_weights(self, splines: list[Tensor], params: Tensor) -> Tensor:
        return self._normalised(self._contract(splines, params, self.normaliser), params)

    def _normalised(self, integrals: Tensor, params: Tensor) -> Tensor:
        logits = params.unflatten(-1, (self._recipe["mixtures"], -1))[..., 0]
        # A component without mass takes no part in the mixture.
        empty = integrals <= tiny(params.dtype)
        logits = logits.masked_fill(empty, -1e30)
        return logits.log_softmax(-1) - integrals.masked_fill(empty, 1.0).log()

    def log_terms(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        if params.shape[0] > 1 and "bins" in self._buffers:
            return self._log_terms_together(params, points)
        splines = self._splines(params)
        logs, inside = self._log_components(splines, params, points)
        return logs + self._log_weights(splines, params).unsqueeze(-2), inside

    def _log_components(self, splines: list[Tensor], params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        # One logarithm of a product: where a factor is far below the rounding error of its spline, it counts as zero.
        least = tiny(params.dtype) ** (1 / len(splines))
        product = None
        for j, theta in enumerate(splines):
            value = self.spline_values(j, theta, points[..., j]).abs().clamp_min(least)
            product = value if product is None else product * value
        flags = _points.inside(points.reshape(-1, points.shape[-1]), self._number)
        assert product is not None
        return 2 * product.log(), flags.reshape(points.shape[:-1])

    def _log_terms_together(self, params: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """The same with all axes in one tensor, for batches of a network: half as many operations."""
        mixtures, axes, width = self._recipe["mixtures"], len(self._recipe["params"]), self._recipe["params"][0]
        rows = params.shape[0]
        theta = self._scaled(params.unflatten(-1, (mixtures, -1))[..., 1:].unflatten(-1, (axes, width)))
        nodes = theta.reshape(-1, width) @ self.values0.to(theta)
        squares = (nodes * nodes).unflatten(0, (-1, axes)).unbind(1)
        weights = self._normalised(self._multilinear(squares, params, self.normaliser), params)
        # Rows by axes by points.
        at = points.transpose(-1, -2)
        bin = torch.searchsorted(self.inner.expand(rows, -1, -1).contiguous(), at.detach().contiguous(), right=True)
        bins = self.bins[torch.arange(axes, device=bin.device).unsqueeze(-1), bin]
        slopes = self._slopes(at, bins).to(theta.dtype)
        places = (bin.unsqueeze(-1) + self.corners0).flatten(-2)
        table = theta.permute(0, 2, 3, 1)
        knots = table.gather(2, places.unsqueeze(-1).expand(-1, -1, -1, mixtures)).unflatten(2, (-1, 4))
        values = (slopes.unsqueeze(-1) * knots).sum(-2).abs().clamp_min(tiny(theta.dtype) ** (1 / axes))
        first, *others = values.unbind(1)
        for value in others:
            first = first * value
        flags = _points.inside(points.reshape(-1, axes), self._number)
        return 2 * first.log() + weights.unsqueeze(-2), flags.reshape(points.shape[:-1])

    @staticmethod
    def _slopes(at: Tensor, bins: Tensor) -> Tensor:
        """The slopes of a spline's value with respect to its values and derivatives at both ends of a bin, along a last axis of four."""
        start, length, stretch = bins.unbind(-1)
        # Positions outside, or none at all, give numbers that nobody looks at; they must not spoil gradients.
        t = torch.nan_to_num((at - start) / length).clamp(0.0, 1.0)
        s = 1 - t
        bend = s * t * stretch
        return torch.stack((s * s * (1 + 2 * t), t * t * (1 + 2 * s), s * bend, -t * bend), -1)

    def spline_values(self, axis: int, theta: Tensor, at: Tensor) -> Tensor:
        """Splines along an axis, given by rows of values and derivatives at the knots, at positions in doubles.

        Rows by components by numbers, and rows (or one for all) by positions, make rows by positions by components.
        """
        rows, components, width = theta.shape
        bin = torch.searchsorted(getattr(self, f"inner{axis}"), at.detach().contiguous(), right=True)
        slopes = self._slopes(at, getattr(self, f"bins{axis}")[bin]).to(theta.dtype)
        places = bin.unsqueeze(-1) + getattr(self, f"corners{axis}")
        table = theta.transpose(-1, -2)
        if rows == 1:
            knots = table[0].index_select(0, places.reshape(-1)).reshape(*places.shape, components)
        else:
            index = places.flatten(-2).expand(rows, -1).unsqueeze(-1).expand(-1, -1, components)
            knots = table.gather(1, index).unflatten(1, (-1, 4))
        return (slopes.unsqueeze(-1) * knots).sum(-2)


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

    Gradients with respect to parameters are those of tensor operations; there are none with respect to points.
    """

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

    @classmethod
    def of(cls, family: SumOfSquares) -> SumOfSquaresLayer:
        """The layer of a compiled family, for instance one from a file."""
        layer = cls.__new__(cls)
        Layer.__init__(layer, family)
        return layer

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
        if points.requires_grad:
            raise NotImplementedError(
                "a sum of squares has no gradients with respect to points here; detach them, or use a SplineLayer"
            )
        flat = points.reshape(-1, points.shape[-1])
        rows, flags = _points.features(flat, self._number, self._recipe["size"])
        u = self._coefficients(params)
        value = rows.reshape(*points.shape[:-1], -1).to(u) @ u.transpose(-1, -2)
        logs = 2 * value.abs().clamp_min(tiny(u.dtype)).log() + self.log_weights(params).unsqueeze(-2)
        return logs, flags.reshape(points.shape[:-1])
