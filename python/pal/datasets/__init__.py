"""Data for examples, and converters of published data sets.

    python -m pal.datasets constrained-sdd PATH --scene 12 -o DIR
"""

from .campus import Campus, campus
from .constrained_sdd import convert as convert_constrained_sdd
from .orders import Orders, orders
from .transport import Transport, transport

__all__ = ["Campus", "Orders", "Transport", "campus", "convert_constrained_sdd", "orders", "transport"]
