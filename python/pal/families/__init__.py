"""Families of densities, one module per kind.

A family is compiled on a constraint and answers questions about many parameter vectors at once. What all kinds share is
in `base`; a new kind is a module of its own, and one line in `KINDS`.

| module | kind | densities |
|---|---|---|
| `spline` | [`SplineMixture`][pal.SplineMixture] | mixtures of products of squared cubic splines |
| `sum_of_squares` | [`SumOfSquares`][pal.SumOfSquares] | sums of squares of polynomials |
| `histogram` | [`HistogramMixture`][pal.HistogramMixture] | mixtures of products of step functions |
"""

from .base import Family, Model, load
from .histogram import HistogramMixture
from .spline import SplineMixture
from .sum_of_squares import SumOfSquares

# One line per kind of family.
KINDS: tuple[type[Family], ...] = (
    SplineMixture,
    SumOfSquares,
    HistogramMixture,
)

__all__ = ["KINDS", "Family", "HistogramMixture", "Model", "SplineMixture", "SumOfSquares", "load"]
