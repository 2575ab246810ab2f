"""The kinds of layers: one line for each."""

from .histogram import HistogramLayer
from .layer import Layer
from .spline import SplineLayer
from .sum_of_squares import SumOfSquaresLayer

LAYERS: tuple[type[Layer], ...] = (
    SplineLayer,
    SumOfSquaresLayer,
    HistogramLayer,
)
