//! The kinds of families that have a layer, and what each of them implements.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;
use pal::density::Family;

use super::histogram::HistogramLayer;
use super::spline::SplineLayer;
use super::sum_of_squares::SumOfSquaresLayer;
use super::{LayerError, Likelihood, Normaliser, Placement};

/// What one kind of family implements to be a layer: log-densities by tensor operations.
pub(super) trait LayerKind: fmt::Debug + Send + Sync {
    /// Returns the numbers of rows and columns of the matrix that holds the form of a normaliser.
    fn form_shape(&self) -> [usize; 2];

    /// Returns log-densities of points, given by their features, and normalising constants. There is one row of
    /// `theta`, parameters with the offset of the family added, for all points or one for each.
    fn likelihood(&self, theta: Tensor<2>, features: Tensor<2>, normaliser: &Normaliser) -> Likelihood;
}

/// A layer kind with the normaliser of the family's own constraint.
pub(super) type LayerParts = (Arc<dyn LayerKind>, Normaliser);

/// Makes the layer of a family of one kind; `None` for families of other kinds.
type Constructor = fn(&Family, Placement) -> Option<Result<LayerParts, LayerError>>;

/// The registry: one line per kind of family.
const KINDS: &[Constructor] = &[SplineLayer::from_family, SumOfSquaresLayer::from_family, HistogramLayer::from_family];

/// Makes the layer of a family, by the first entry of the registry that knows its kind.
pub(super) fn layer_kind(family: &Family, placement: Placement) -> Result<LayerParts, LayerError> {
    KINDS.iter().find_map(|constructor| constructor(family, placement)).unwrap_or(Err(LayerError::Kind))
}
