"""Densities that guarantee algebraic constraints.

A constraint is a Boolean combination of linear inequalities. This package cuts it into convex cells, integrates polynomials over it exactly, and
compiles families of densities on it that give exactly zero mass to everything outside.

>>> import pal
>>> y1, y2 = pal.reals("y1", "y2")
>>> region = pal.Region((y1 >= 0) & (y2 >= 0) & (y1 + y2 <= 1))
>>> region.exact_volume, pal.integrate(region, y1 * y2)
(Fraction(1, 2), Fraction(1, 24))
>>> family = pal.SplineMixture(region, knots=6, components=2)
>>> density = family.density(family.random_params(seed=1))
>>> bool(region.contains(density.sample(1000, seed=1)).all())
True

`pal.torch` has layers for PyTorch, `pal.sklearn` an estimator, `pal.plot` pictures; each needs the library of its name (matplotlib for pictures).
"""

from . import errors
from .density import Density, Entropy, Marginal, Mode
from .errors import (
    DensityError,
    Error,
    FileError,
    NumberError,
    ParseError,
    PolynomialError,
    QueryError,
    RegionError,
    UnboundedError,
)
from .family import Family, Model, SplineMixture, SumOfSquares, load
from .formula import (
    booleans,
    Constraint,
    Formula,
    Polynomial,
    Term,
    Weight,
    all_of,
    any_of,
    boolean,
    from_pysmt,
    from_shapely,
    implies,
    ite,
    parse_geojson,
    parse_smtlib,
    polygon,
    rational,
    read_geojson,
    read_smtlib,
    real,
    reals,
    substitute,
)
from .integrals import Integral, Moments, Solution, integrate, moments, wmi
from .region import Cell, Region

__all__ = [
    "booleans", "Cell", "Constraint", "Density", "DensityError", "Entropy", "Error", "Family", "FileError", "Formula", "Integral", "Marginal", "Mode",
    "Model", "Moments", "NumberError", "ParseError", "Polynomial", "PolynomialError", "QueryError", "Region", "RegionError", "Solution",
    "SplineMixture", "SumOfSquares", "Term", "UnboundedError", "Weight", "all_of", "any_of", "boolean", "errors", "from_pysmt", "from_shapely",
    "implies", "integrate", "ite", "load", "moments", "parse_geojson", "parse_smtlib", "polygon", "rational", "read_geojson", "read_smtlib",
    "real", "reals", "substitute", "wmi",
]  # fmt: skip
