"""Densities that guarantee algebraic constraints.

A constraint phi is a Boolean combination of linear inequalities with rational coefficients. This package cuts the set
of points that satisfy it into convex cells, integrates polynomials over it exactly, and compiles families of densities

    p(y; params) = q(y; params) 1[y satisfies phi] / normaliser(params),
    normaliser(params) = integral of q(y; params) over all y that satisfy phi

on it, which give exactly zero mass to everything outside. (Kurscheidt et al., "A Probabilistic Neuro-symbolic Layer for
Algebraic Constraint Satisfaction", Eq. (PAL).)

>>> import pal
>>> y1, y2 = pal.reals("y1", "y2")
>>> region = pal.Region((y1 >= 0) & (y2 >= 0) & (y1 + y2 <= 1))
>>> region.exact_volume, pal.integrate(region, y1 * y2)
(Fraction(1, 2), Fraction(1, 24))
>>> family = pal.SplineMixture(region, knots=6, components=2)
>>> density = family.density(family.random_params(seed=1))
>>> bool(region.contains(density.sample(1000, seed=1)).all())
True

The pipeline, and where its parts live:

| step | what to use | module |
|---|---|---|
| write or read a constraint | `reals`, `booleans`, `parse_smtlib`, `read_geojson`, `Constraint` | `pal.formula` |
| read a map of OpenStreetMap | `read_osm` | `pal.osm` |
| cut it into convex cells | `Region`, `Cell` | `pal.region` |
| a region for each example | `RegionBatch` | `pal.batch` |
| integrate over it | `integrate`, `moments`, `wmi` | `pal.integrals` |
| compile densities on it | `SplineMixture`, `SumOfSquares`, `HistogramMixture`, `load` | `pal.families` |
| compile densities over reals, Booleans and categories | `MixedFamily`, `MixedDensity`, `Category` | `pal.mixed` |
| ask one density | `Density`, `Marginal`, `Mode`, `Entropy` | `pal.density` |
| make it the last layer of a network | `SplineLayer`, `ConstrainedDistribution` | `pal.torch` |
| fit it to a table | `ConstrainedDensity` | `pal.sklearn` |
| predict a table from another one, within a constraint | `ConstrainedRegressor` | `pal.sklearn` |
| draw it | `region`, `density`, `marginal` | `pal.plot` |
| data sets of the examples | | `pal.datasets` |
| exceptions | `Error` and its subclasses | `pal.errors` |

`pal.torch`, `pal.sklearn` and `pal.plot` need PyTorch, scikit-learn and matplotlib; everything else needs numpy only.
"""

import importlib
import sys
from typing import Any

from . import errors
from ._versions import __version__, show_versions
from .batch import RegionBatch
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
from .families import KINDS, Family, HistogramMixture, Model, SplineMixture, SumOfSquares, load
from .formula import (
    booleans,
    Constraint,
    Formula,
    PiecewiseTerm,
    Polynomial,
    Term,
    TermVector,
    Terms,
    Weight,
    all_of,
    any_of,
    boolean,
    from_geopandas,
    from_mask,
    from_pysmt,
    from_shapely,
    from_wkb,
    from_wkt,
    implies,
    ite,
    maximum,
    minimum,
    parse_geojson,
    parse_pishield,
    parse_smtlib,
    polygon,
    rational,
    read_geojson,
    read_mask,
    read_pishield,
    read_smtlib,
    real,
    reals,
    substitute,
)
from .mixed import Category, MixedDensity, MixedFamily
from .osm import StreetMap, parse_osm, read_osm
from .integrals import Integral, Moments, Solution, SurfaceIntegral, integrate, moments, wmi
from .region import Cell, Region, SurfaceMeasure

__all__ = [
    "Category", "Cell", "Constraint", "Density", "DensityError", "Entropy", "Error", "Family", "FileError", "Formula",
    "HistogramMixture", "Integral", "KINDS", "Marginal", "MixedDensity", "MixedFamily", "Mode", "Model", "Moments",
    "NumberError", "ParseError", "PiecewiseTerm", "Polynomial", "PolynomialError", "QueryError", "Region",
    "RegionBatch", "RegionError", "Solution", "SplineMixture", "StreetMap", "SumOfSquares", "SurfaceIntegral",
    "SurfaceMeasure", "Term", "TermVector", "Terms", "UnboundedError", "Weight", "__version__", "all_of", "any_of",
    "boolean", "booleans", "errors", "from_geopandas", "from_mask", "from_pysmt", "from_shapely", "from_wkb",
    "from_wkt", "implies", "integrate", "ite", "load", "maximum", "minimum", "moments", "parse_geojson", "parse_osm",
    "parse_pishield", "parse_smtlib", "polygon", "rational", "read_geojson", "read_mask", "read_osm", "read_pishield",
    "read_smtlib", "real", "reals", "show_versions", "substitute", "wmi",
]  # fmt: skip

# Modules that need further packages, and are therefore imported when they are first used.
_MODULES = {"datasets": "numpy", "plot": "matplotlib", "sklearn": "scikit-learn", "torch": "PyTorch"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        # With these Python suggests the name that was probably meant.
        raise AttributeError(f"module 'pal' has no attribute '{name}'", name=name, obj=sys.modules[__name__])
    try:
        return importlib.import_module(f".{name}", __name__)
    except ModuleNotFoundError as error:
        if (error.name or "pal").partition(".")[0] == "pal":
            raise
        raise ModuleNotFoundError(
            f"pal.{name} needs {_MODULES[name]}, which is not installed; pip install 'pal-layer[{name}]' brings it"
        ) from error


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
