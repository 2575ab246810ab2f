"""Densities on a constraint as scikit-learn estimators.

- [`ConstrainedDensity`][pal.sklearn.ConstrainedDensity] learns a density of rows.
- [`ConstrainedRegressor`][pal.sklearn.ConstrainedRegressor] learns a density of outputs given inputs. It needs PyTorch.
"""

from .density import ConstrainedDensity
from .regressor import ConstrainedRegressor

__all__ = ["ConstrainedDensity", "ConstrainedRegressor"]
