"""Data for examples, and converters of published data sets.

    python -m pal.datasets constrained-sdd PATH --scene 12 -o DIR
"""

from .campus import Campus, campus
from .constrained_sdd import convert as convert_constrained_sdd

__all__ = ["Campus", "campus", "convert_constrained_sdd"]
