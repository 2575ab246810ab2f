"""Convex regions as polytopes: their projections, and where integrals over their slices change from one polynomial to another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..formula import Constraint, Formula, all_of, reals
from ..region import Region

Point = tuple[Fraction, ...]
# All y with a . y <= b.
HalfSpace = tuple[Point, Fraction]

# What rounding may hide, in coordinates that run from 0 to 1. A break too many does no harm; one that is missed would.
_SLACK = 1e-9


class Polytope:
    """A bounded convex set with volume, in coordinates that run from 0 to 1 over the box around it: `y = low + extent * t`."""

    def __init__(self, half_spaces: list[HalfSpace], vertices: list[Point]) -> None:
        n = len(vertices[0])
        low = [min(vertex[j] for vertex in vertices) for j in range(n)]
        extent = [max(vertex[j] for vertex in vertices) - low[j] for j in range(n)]
        self.dimension, self.low, self.extent = n, [float(x) for x in low], [float(x) for x in extent]
        corners = {tuple((x - l) / e for x, l, e in zip(vertex, low, extent)) for vertex in vertices}
        exact = [_facets([(tuple(x * e for x, e in zip(a, extent)), b - _dot(a, low)) for a, b in half_spaces], corners)]
        for k in range(n - 1, 0, -1):
            exact.append(_facets(_eliminated(exact[-1], k), {corner[:k] for corner in corners}))
        # For every k the projection on the first k + 1 coordinates, as rows (a, b).
        self.facets = [np.array([[*map(float, a), float(b)] for a, b in level]) for level in reversed(exact)]

    def breaks(self, knots: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Per coordinate but the last, where the integral over all later ones is not one polynomial: t_k = alpha + beta . (t_1 .. t_(k-1)).

        `knots` are positions where the integrand is not one polynomial, per coordinate. The breaks of coordinate k are the projections of the faces of
        dimension k - 1 into which knots cut the polytope.
        """
        n, facets = self.dimension, self.facets[-1]
        cuts = [np.append(np.eye(n)[j], at) for j in range(n) for at in knots[j] if 0 < at < 1]
        planes = np.array([*facets, *cuts])
        tight = self._vertices(planes, len(facets))
        result = []
        for k in range(n - 1):
            chosen = _choices(len(planes), n - k, len(facets))
            # A face of dimension k has more than k corners.
            chosen = chosen[[tight[:, list(planes)].all(-1).sum() > k for planes in chosen]]
            rows = planes[chosen]
            solved = _solve(rows[:, :, k:n], np.concatenate([rows[:, :, n:], -rows[:, :, :k]], -1))[:, 0]
            own = np.array([[at] + [0.0] * k for at in knots[k] if 0 < at < 1]).reshape(-1, k + 1)
            level = self.facets[k][self.facets[k][:, k] != 0]
            ends = np.concatenate([level[:, k + 1 :], -level[:, :k]], -1) / level[:, k : k + 1]
            # Where every slice begins or ends is no break; coming first, ends are told from all others.
            table = np.concatenate([ends, own, solved])
            _, first = np.unique(np.round(table / _SLACK), axis=0, return_index=True)
            first = first[first >= len(ends)]
            result.append((table[first, 0], table[first, 1:]))
        return result

    def _vertices(self, planes: np.ndarray, facets: int) -> np.ndarray:
        """The points of the polytope where facets and cuts meet, by which of them do."""
        n = self.dimension
        planes = planes / np.abs(planes[:, :n]).max(-1, keepdims=True)
        rows = planes[_choices(len(planes), n, facets)]
        points = _solve(rows[:, :, :n], rows[:, :, n:])[:, :, 0]
        gaps = points @ planes[:, :n].T - planes[:, n]
        inside = (gaps[:, :facets] <= _SLACK).all(-1)
        _, first = np.unique(np.round(points[inside] / _SLACK), axis=0, return_index=True)
        return np.abs(gaps[inside][first]) <= _SLACK


def _choices(count: int, size: int, first: int) -> np.ndarray:
    """All subsets of a size with one of the first members in them."""
    subsets = (chosen for chosen in itertools.combinations(range(count), size) if chosen[0] < first)
    return np.array(list(subsets), dtype=int).reshape(-1, size)


def _solve(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of those systems that have one."""
    good = np.linalg.cond(matrices) < 1e12
    return np.linalg.solve(matrices[good], right[good])


def _eliminated(half_spaces: list[HalfSpace], k: int) -> list[HalfSpace]:
    """The projection along coordinate k, by Fourier and Motzkin."""
    flat = [(a[:k], b) for a, b in half_spaces if a[k] == 0]
    above = [(a, b) for a, b in half_spaces if a[k] > 0]
    below = [(a, b) for a, b in half_spaces if a[k] < 0]
    for (a, b), (c, d) in itertools.product(above, below):
        flat.append((tuple(x / a[k] - y / c[k] for x, y in zip(a[:k], c[:k])), b / a[k] - d / c[k]))
    return flat


def _facets(half_spaces: list[HalfSpace], vertices: set[Point]) -> list[HalfSpace]:
    """Without those that touch fewer vertices than any facet does, and without repetitions."""
    facets = {}
    for a, b in half_spaces:
        size = max(map(abs, a))
        if size and sum(_dot(a, vertex) == b for vertex in vertices) >= len(a):
            facets[tuple(x / size for x in a), b / size] = None
    return list(facets)


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b)), Fraction(0))


def convex(constraint: Constraint) -> Polytope | None:
    """The region of a constraint as a polytope; `None` if it is not convex. Parts without volume do not count."""
    region = Region(constraint)
    vertices = sorted({vertex for cell in region.cells for vertex in cell.exact_vertices})
    candidates = {(tuple(map(Fraction, a)), Fraction(b)) for cell in region.cells for a, b in cell.half_spaces}
    around = [(a, b) for a, b in candidates if all(_dot(a, vertex) <= b for vertex in vertices)]
    if not around:
        return None
    # The facets of a convex region are facets of its cells, so it is all that these half-spaces have in common.
    hull = Region(Constraint(_formula(around, region.variables), region.variables))
    if hull.status != "bounded" or hull.exact_volume != region.exact_volume:
        return None
    return Polytope(around, vertices)


def _formula(half_spaces: list[HalfSpace], names: Sequence[str]) -> Formula:
    variables = reals(*names)
    return all_of(sum(x * v for x, v in zip(a, variables)) <= b for a, b in half_spaces)
