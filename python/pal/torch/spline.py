"""Spline mixtures as a layer (PAL paper, appendix "Polynomial splines")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .. import _core
from ..batch import RegionBatch
from ..families import SplineMixture
from ..families.base import as_region
from ..formula import Constrained, Number
from ..region import Region
from ._lines import ProductLines
from .distribution import ConstrainedDistribution
from .flat import FlatDistribution
from .layer import tiny
from .mixture import MixtureLayer, mixture_log_weights
from .normaliser import Normaliser
from .regions import CompiledRegions, RegionDistribution
from .student_t import StudentTHead


class SplineLayer(MixtureLayer):
    """Mixtures of products of squared cubic splines on a constraint:

        p(y) = sum_m  w_m / Z_m  prod_j s_mj(y_j)^2  where the constraint holds,  and 0 elsewhere

    A network gives location, scale and tail of every component along every axis, and a
    [`StudentTHead`][pal.torch.StudentTHead] turns these into splines. With default initialisation and standardised
    inputs an ordinary network starts with a broad density in the middle of the box and is trained like any other; it
    needs no special start. With `head="values"` its outputs are the parameters of
    [`SplineMixture`][pal.SplineMixture], the values and derivatives of the splines at the knots: for densities of any
    shape, and where nothing but the parameters is learned.

    Reference: "A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction", Eq. (PAL) and appendix
    "Polynomial splines".

    Args:
        region: a region, or a constraint that is made into one, with 1 to 4 variables.
        knots: the number of equally spaced knots per variable, or an increasing list of positions for each variable.
            By default 40 for one or two variables, 14 for three and 6 for four; with `head="values"` as for
            [`SplineMixture`][pal.SplineMixture].
        components: the number of mixture components; by default 8.
        head: how outputs of a network become splines: `"student-t"` or `"values"`.

    >>> import pal, torch
    >>> x, y = pal.reals("x", "y")
    >>> layer = SplineLayer(x.between(0, 2) & y.between(0, 2) & (x + y <= 3))
    >>> network = torch.nn.Linear(5, layer.num_params)
    >>> p = layer(network(torch.randn(10, 5)))
    >>> p.log_prob(torch.tensor([1.8, 1.8])).isneginf().all()
    tensor(True)

    With the values at the knots themselves:

    >>> layer = SplineLayer(x.between(0, 2), knots=4, components=3, head="values")
    >>> layer.num_params
    27
    >>> p = layer(torch.zeros(27))
    >>> round(float(p.probability(x <= 1) + p.probability(x > 1)), 5), p.log_prob(torch.tensor([3.0]))
    (1.0, tensor(-inf))
    """

    family_class = SplineMixture
    # The square of a cubic; its antiderivative has degree 7.
    degree = 6
    degree_growth = 7

    def __init__(
        self,
        region: Region | Constrained,
        knots: int | Sequence[Sequence[Number]] | None = None,
        components: int | None = None,
        head: str = "student-t",
    ) -> None:
        if head not in ("student-t", "values"):
            raise ValueError(f'heads are "student-t" and "values"; not {head!r}')
        if head == "student-t":
            region = as_region(region)
            default = _core.SplineSettings.for_heads(len(region._axes.variables))
            knots = default.knots if knots is None else knots  # type: ignore[assignment]
            components = default.components if components is None else components
        super().__init__(SplineMixture(region, knots, components))
        if head == "student-t":
            assert isinstance(self.family, SplineMixture), "a spline layer computes with splines"
            self.head = StudentTHead(self.family)

    def compile_regions(self, regions: RegionBatch, dtype: torch.dtype = torch.float64) -> CompiledRegions:
        """The regions of a batch compiled on the grid of this layer, to be used again and again; for log-densities up
        to this precision."""
        return CompiledRegions(self, regions, dtype)

    def forward(  # type: ignore[override]
        self,
        outputs: Tensor,
        regions: RegionBatch | CompiledRegions | Normaliser | None = None,
        normaliser: Normaliser | None = None,
    ) -> ConstrainedDistribution | FlatDistribution | RegionDistribution:
        """The densities of outputs of a network along the last axis: on the constraint of the layer or, where regions
        are given, each on the region of its own row.

        The layer gives its grid to all rows, and the box of the grid bounds them: what a region has outside of it does
        not count. Rows without volume there are an error that names them.

        Args:
            outputs: one vector for each density along the last axis.
            regions: one region for each of these vectors; compiled ones
                ([`compile_regions`][pal.torch.SplineLayer.compile_regions]) save the time for that.
            normaliser: the normaliser of a part of the constraint of the layer.

        >>> import pal, torch
        >>> x, y = pal.reals("x", "y")
        >>> room = pal.Region(x.between(0, 9) & y.between(0, 9) & ~(x.between(2, 3) & y.between(2, 3)))
        >>> layer = SplineLayer(x.between(-1, 1) & y.between(-1, 1), knots=8, components=4)
        >>> windows = room.windows([[2, 2], [9, 5]], half_width=1)
        >>> p = layer(torch.zeros(2, layer.num_params), windows)
        >>> p.log_prob(torch.tensor([0.5, 0.5])).isneginf()
        tensor([True, True])
        >>> p.support.check(p.sample((100,))).all()
        tensor(True)
        """
        if isinstance(regions, Normaliser):
            regions, normaliser = None, regions
        if regions is None:
            return super().forward(outputs, normaliser)
        if normaliser is not None:
            raise ValueError("regions have normalisers of their own: give regions or a normaliser, not both")
        if isinstance(regions, RegionBatch):
            regions = CompiledRegions(self, regions, outputs.dtype)
        elif not isinstance(regions, CompiledRegions):
            raise TypeError(f"regions must be a RegionBatch or CompiledRegions, not {type(regions).__name__}")
        if self.head is None:
            return RegionDistribution(self, regions, params=outputs)
        return RegionDistribution(self, regions, outputs=outputs)

    def get_extra_state(self) -> dict[str, str]:
        return {**super().get_extra_state(), "head": "values" if self.head is None else "student-t"}

    def _prepare(self) -> None:
        axes = self.family.recipe.axes
        self._axes = len(axes)
        self._params_per_axis = [axis.params for axis in axes]
        # Axes that are worked on together, as the first of them and their number: all of them, if they have the same
        # knots but for place and scale.
        alike = all(np.array_equal(axis.values, axes[0].values) for axis in axes)
        self._groups = [(0, self._axes)] if alike else [(j, 1) for j in range(self._axes)]

    def _constants(self) -> dict[str, np.ndarray]:
        recipe = self.family.recipe
        constants = {}
        for j, axis in enumerate(recipe.axes):
            knots, widths = axis.knots, axis.widths
            constants[f"values{j}"] = axis.values.reshape(axis.params, axis.nodes)
            constants[f"knots{j}"] = knots
            constants[f"inner{j}"] = knots[1:-1].copy()
            # Of every bin its start, the low part of that, its width, and its width over the mean.
            constants[f"bins{j}"] = np.stack([knots[:-1], axis.low_parts[:-1], widths, widths / widths.mean()], -1)
            # Where the values and the derivatives at both ends of the first bin are among those of all knots.
            constants[f"corners{j}"] = np.array([0, 1, len(knots), len(knots) + 1])
        # The first axis down and all others across.
        if recipe.form is not None:
            constants["form"] = recipe.form.reshape(recipe.axes[0].nodes, -1)
        return constants

    def _split(self, params: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, rows by components; and values and derivatives at the knots for each group of axes, rows by
        components by axes by numbers.

        The latter are scaled by the mean of their sizes: densities do not depend on the scale, so neither do gradients.
        """
        widths = [count * self._params_per_axis[first] for first, count in self._groups]
        logits, *parts = self._theta(params).split([1, *widths], dim=-1)
        return logits.squeeze(-1), [self._scaled(part, count) for part, (_, count) in zip(parts, self._groups)]

    @staticmethod
    def _scaled(part: Tensor, axes: int) -> Tensor:
        theta = part.unflatten(-1, (axes, -1))
        width = theta.shape[-1]
        # Divided before they are added: the sum of finite numbers need not be finite.
        size = theta.detach().abs() @ theta.new_full((width, 1), 1 / width)
        return theta / size.clamp_min(tiny(theta.dtype))

    def integrals(self, params: Tensor, form: Tensor) -> Tensor:
        return self._contract(self._split(params)[1], form)

    def _contract(self, groups: list[Tensor], form: Tensor) -> Tensor:
        """The multilinear form of the squares of all splines at the nodes; rows by components."""
        squares: list[Tensor] = []
        for (first, count), theta in zip(self._groups, groups):
            # One row for each spline: products of two matrices, rather than of many.
            nodes = theta.flatten(0, -2) @ getattr(self, f"values{first}").to(theta)
            squares.extend((nodes * nodes).unflatten(0, (-1, count)).unbind(1))
        return self.contract(squares, form).reshape(groups[0].shape[:2])

    def log_weights(self, params: Tensor, form: Tensor) -> Tensor:
        logits, groups = self._split(params)
        return mixture_log_weights(logits, self._contract(groups, form))

    def log_components(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        logits, groups = self._split(params)
        least = self._least(params)
        product = None
        for j, theta in enumerate(theta for group in groups for theta in group.unbind(-2)):
            value = self.spline_values(j, theta, points[..., j]).abs().clamp_min(least)
            product = value if product is None else product * value
        assert product is not None, "a region has at least one variable"
        inside = self._points.contains(points.reshape(-1, points.shape[-1]))
        weights = mixture_log_weights(logits, self._contract(groups, form)).unsqueeze(-2)
        return torch.add(weights, product.log(), alpha=2), inside.reshape(points.shape[:-1])

    def log_components_paired(self, params: Tensor, points: Tensor, form: Tensor) -> tuple[Tensor, Tensor]:
        if points.requires_grad:
            return super().log_components_paired(params, points, form)
        # The core knows all about the points, and there is nothing to gather.
        logits, groups = self._split(params)
        least = self._least(params)
        widths = [group.shape[-2] * group.shape[-1] for group in groups]
        features, inside = self._points.features(points, sum(widths))
        logs = mixture_log_weights(logits, self._contract(groups, form))
        for group, part in zip(groups, features.to(params.dtype).split(widths, -1)):
            values = (group * part.unflatten(-1, group.shape[-2:]).unsqueeze(1)).sum(-1)
            logs = torch.add(logs, values.abs().clamp_min(least).log().sum(-1), alpha=2)
        return logs, inside

    def _least(self, params: Tensor) -> float:
        """Where a factor is far below the rounding error of its spline, it counts as zero."""
        return tiny(params.dtype) ** (1 / self._axes)

    @staticmethod
    def _basis(at: Tensor, bins: Tensor) -> Tensor:
        """The cubic Hermite basis at positions, given the constants of their bins: the derivatives of a spline's value
        with respect to its values and derivatives at both ends of the bin, along a last axis of four."""
        start, low_part, width, relative_width = bins.unbind(-1)
        # Positions outside, or none at all, give numbers that nobody looks at; they must not spoil gradients.
        t = torch.nan_to_num(((at - start) - low_part) / width).clamp(0.0, 1.0)
        s = 1 - t
        inner = s * t * relative_width
        return torch.stack((s * s * (1 + 2 * t), t * t * (1 + 2 * s), s * inner, -t * inner), -1)

    def spline_values(self, axis: int, theta: Tensor, at: Tensor) -> Tensor:
        """Splines along an axis, given by rows of values and derivatives at the knots, at positions in float64.

        Rows by components by numbers, and rows (or one for all) by positions, make rows by positions by components.
        """
        rows, components, width = theta.shape
        bin = torch.searchsorted(getattr(self, f"inner{axis}"), at.detach().contiguous(), right=True)
        basis = self._basis(at, getattr(self, f"bins{axis}")[bin]).to(theta.dtype)
        places = bin.unsqueeze(-1) + getattr(self, f"corners{axis}")
        table = theta.transpose(-1, -2)
        if rows == 1:
            corners = table[0].index_select(0, places.reshape(-1)).reshape(*places.shape, components)
        else:
            index = places.flatten(-2).expand(rows, -1).unsqueeze(-1).expand(-1, -1, components)
            corners = table.gather(1, index).unflatten(1, (-1, 4))
        return (basis.unsqueeze(-1) * corners).sum(-2)

    def line_integrals(self, params: Tensor, form: Tensor) -> ProductLines:
        splines = [theta for group in self._split(params)[1] for theta in group.unbind(-2)]
        weights = self.log_weights(params, form).exp()
        knots = getattr(self, f"knots{self._axes - 1}")
        squares = lambda axis, at: self.spline_values(axis, splines[axis], at).square()
        return ProductLines(weights, knots, self.degree, squares, self._axes)
