//! What a family of densities has to provide.
//!
//! A family is a mixture of non-negative components, `p(y) = sum_c exp(l_c) q_c(y)`, polynomial on every bin of a grid. Its numbers go
//! through three stages:
//!
//! ```text
//! parameters  --expand-->  coefficients of the components  --Form-->  integrals I_c  --log_weights-->  l_c
//! ```
//!
//! Everything else (log-densities, gradients, probabilities, samples, modes) is written once, on top of these.

use std::fmt::Debug;
use std::sync::Arc;

use super::error::DensityError;
use super::functions::Differentiable;
use super::grid::BinIndex;
use super::mesh::{Degree, Mesh};
use super::recipe::Recipe;
use super::support::Support;

/// The coefficients of all components of one parameter vector.
///
/// Each component is scaled by a power of two, so that no square overflows or underflows.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// Coefficients, component by component.
    pub coefficients: Vec<f64>,
    /// For each component the logarithm of what `q_c` was divided by.
    pub log_scales: Vec<f64>,
}

/// A family of densities compiled on a constraint.
pub trait FamilyKind: Send + Sync + Debug {
    /// The constraint and its pieces.
    fn support(&self) -> &Arc<Support>;

    /// Parameters per density.
    fn num_params(&self) -> usize;

    /// Components of the mixture.
    fn num_components(&self) -> usize;

    /// The degree of the components on a bin.
    fn degree(&self) -> Degree;

    /// Numbers in a gradient with respect to the coefficients; it may hold more than one number for a coefficient.
    fn gradient_len(&self) -> usize;

    /// From parameters to coefficients.
    fn expand(&self, params: &[f64]) -> Expansion;

    /// Adds to `gradient` what a gradient with respect to the coefficients means for the parameters.
    fn pull_back(&self, params: &[f64], from: &[f64], gradient: &mut [f64]);

    /// The logarithms `l_c` of the weights, given the logarithms of the integrals of the components over the constraint (with scales).
    fn log_weights(&self, params: &[f64], log_integrals: &[f64]) -> Vec<f64>;

    /// Given a gradient with respect to `l_c`, adds to the gradient with respect to the parameters, and to the one with respect to the log-integrals.
    fn pull_back_weights(
        &self,
        params: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    );

    /// The components with given coefficients as functions.
    fn functions(&self, expansion: &Expansion) -> Arc<dyn Differentiable>;

    /// Integrals of the components over the constraint.
    fn normaliser(&self) -> &dyn Form;

    /// Compiles the integrals of the components over pieces on the same grid, times a monomial in the coordinates of the box
    /// (0 at its lower end, 1 at its upper end; no exponents mean 1).
    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError>;

    /// How a framework computes log-densities by tensor operations.
    fn recipe(&self) -> Recipe;

    /// Numbers in the features of a point.
    fn num_features(&self) -> usize;

    /// The features of the point at local coordinates of a bin, for [`FamilyKind::recipe`], or their partial derivatives of given orders with respect to the
    /// coordinates of the point.
    fn features(&self, bin: &[BinIndex], t: &[f64], orders: &[u16], out: &mut [f64]);

    /// The form of [`FamilyKind::form`] for tensor frameworks, in the layout of [`Recipe`].
    fn form_constants(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError>;

    /// Everything that identifies it besides the constraint, for files and messages.
    fn settings(&self) -> super::Settings;

    /// Family tensors by name, with their shapes, for files.
    fn tensors(&self) -> Vec<(&'static str, Vec<usize>, Vec<f64>)>;
}

/// A compiled integral over a set: a function of the coefficients.
pub trait Form: Send + Sync + Debug {
    /// The integrals of all components, for many expansions of the same family; relative to the volume of the box, without scales.
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64>;

    /// How large the terms were that were added up to the integral of a component: its rounding error is a small multiple of eps times this.
    fn scale(&self, coefficients: &[f64], component: usize) -> f64;

    /// More than [`Form::scale`] can be on a set of this volume.
    fn largest_scale(&self, volume: f64) -> f64;

    /// Adds to `gradient` the derivative of `sum_c weights_c I_c` with respect to the coefficients.
    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]);
}
