//! What one kind of family has to provide: spline mixtures, sums of squares, histogram mixtures.
//!
//! A family is a mixture of non-negative components, `p(y) = sum_c exp(l_c) q_c(y)`, polynomial on every bin of a grid.
//! Its numbers go through three stages:
//!
//! ```text
//! theta  --expand-->  coefficients of the components  --Form-->  integrals I_c  --log_weights-->  l_c
//! ```
//!
//! where `theta` is the sum of [`FamilyKind::offset`] and the parameters: zeros stand for a density close to uniform.
//!
//! Everything else (log-densities, gradients, probabilities, samples, modes, files) is written once, on top of these. A
//! new kind is a folder beside `spline` with an implementation of [`FamilyKind`] and of [`Compile`], and one line in
//! the list of `registry.rs`.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::error::DensityError;
use super::file::{FileError, FileTensors, NamedTensor};
use super::functions::Differentiable;
use super::grid::BinIndex;
use super::mesh::{Degree, Mesh};
use super::parts::SupportParts;
use super::patches::PatchSearch;
use super::registry::Settings;
use super::row_kernel::RowKernel;
use super::support::Support;
use crate::random::Stream;
use crate::region::Region;

/// The coefficients of all components of one parameter vector.
///
/// Each component is scaled by a power of two, so that no square overflows or underflows.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// Coefficients, component by component.
    pub coefficients: Vec<f64>,
    /// For each component the logarithm of the factor that `q_c` was divided by.
    pub log_scales: Vec<f64>,
}

/// A kind of family that can be compiled on a region and restored from a file.
pub trait Compile: FamilyKind + Sized {
    /// What there is to choose. The default suits any number of variables that the kind is possible for.
    type Settings: Default;

    /// Cuts the region along the grid of the family and compiles the normaliser.
    fn compile(region: &Region, settings: &Self::Settings) -> Result<Self, DensityError>;

    /// The family whose [`FamilyKind::tensors`] were saved. Tensors that do not fit the region are an error.
    fn restore(region: &Region, settings: &Self::Settings, tensors: &mut FileTensors) -> Result<Self, FileError>;
}

/// A family of densities of one kind, compiled on a support.
pub trait FamilyKind: Any + Send + Sync + Debug {
    /// What the densities live on.
    fn support(&self) -> &Arc<Support>;

    /// The number of parameters of one density.
    fn num_params(&self) -> usize;

    /// The number of components of the mixture.
    fn num_components(&self) -> usize;

    /// The degree of the components on a bin.
    fn degree(&self) -> Degree;

    /// What is added to every parameter vector: with `theta = offset + parameters`, zeros are close to the uniform
    /// density and their components differ. Kinds compute with `theta`.
    fn offset(&self) -> &[f64];

    /// The length of a gradient with respect to the coefficients, which may hold more than one number per coefficient.
    fn gradient_len(&self) -> usize;

    /// Turns `theta` into coefficients.
    fn expand(&self, theta: &[f64]) -> Expansion;

    /// Adds to `gradient`, the gradient with respect to the parameters, what a gradient `from` with respect to the
    /// coefficients contributes: a vector-Jacobian product of [`FamilyKind::expand`].
    fn pull_back(&self, theta: &[f64], from: &[f64], gradient: &mut [f64]);

    /// The logarithms `l_c` of the weights, given the logarithms of the integrals of the components over the support,
    /// scales included.
    fn log_weights(&self, theta: &[f64], log_integrals: &[f64]) -> Vec<f64>;

    /// The vector-Jacobian product of [`FamilyKind::log_weights`]: given the gradient `weights` with respect to `l_c`,
    /// adds to the gradient with respect to the parameters and to the one with respect to the log-integrals.
    fn pull_back_weights(
        &self,
        theta: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    );

    /// The components with given coefficients as functions of a point.
    fn functions(&self, expansion: &Expansion) -> Arc<dyn Differentiable>;

    /// The compiled integrals of the components over the support.
    fn normaliser(&self) -> &dyn Form;

    /// Compiles the integrals of the components over elements on the same grid, times a monomial in the coordinates of
    /// the box (0 at its lower end, 1 at its upper end; no exponents mean 1).
    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError>;

    /// The number of entries of one compiled form, which decides how much memory it takes.
    fn form_len(&self) -> f64;

    /// The numbers of [`FamilyKind::form`] in the layout that the recipe of this kind has for the normaliser, for
    /// tensor frameworks.
    fn normaliser_tensor(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError>;

    /// The number of features of a point.
    fn num_features(&self) -> usize;

    /// The features of the point at local coordinates of a bin, or their partial derivatives of given orders with
    /// respect to the coordinates of the point. Features are what the recipe of this kind combines with parameters.
    fn features(&self, bin: &[BinIndex], t: &[f64], orders: &[u16], out: &mut [f64]);

    /// Whether a point that satisfies the constraint lies in a bin without volume, where densities of this kind are 0.
    /// Kinds that are continuous from bin to bin have no need to ask.
    fn in_empty_bin(&self, _point: &[f64]) -> bool {
        false
    }

    /// The logarithms of the probabilities of the components, where no integral is needed to know them: the components
    /// are normalised one by one. Those without mass still have to be left out.
    fn log_component_probabilities(&self, _theta: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// The patches of the support, made when they are first needed; `None` if this kind knows no masses of patches
    /// except by cubature.
    fn patches(&self) -> Option<&dyn PatchSearch> {
        None
    }

    /// The patches of other elements on the same grid, such as the part of the support where an event holds.
    fn patches_within(&self, _mesh: &Mesh) -> Result<Option<Box<dyn PatchSearch>>, DensityError> {
        Ok(None)
    }

    /// The fused pass in float32, if this kind has one.
    fn kernel_f32(&self) -> Option<&dyn RowKernel<f32>> {
        None
    }

    /// The fused pass in float64, if this kind has one.
    fn kernel_f64(&self) -> Option<&dyn RowKernel<f64>> {
        None
    }

    /// The fused pass in float32 on a support in parts, given the forms that this family compiled on them.
    fn kernel_on_parts_f32(&self, _parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f32>>> {
        None
    }

    /// The fused pass in float64 on a support in parts, given the forms that this family compiled on them.
    fn kernel_on_parts_f64(&self, _parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f64>>> {
        None
    }

    /// The `theta` of a density that already resembles the data, for training to begin with. There is one cluster of
    /// points for each component, row by row in a flat vector; clusters may be empty. Random numbers tell components
    /// apart.
    fn start(&self, clusters: &[Vec<f64>], noise: &mut Stream) -> Vec<f64>;

    /// Whether single parameters have such different effects that training wants one factor for each, fitted to the
    /// data, before it begins.
    fn wants_scaled_start(&self) -> bool {
        false
    }

    /// All choices that identify the family besides the constraint, none of them left to a default.
    fn settings(&self) -> Settings;

    /// A short description for people, such as `spline mixture: 14 knots per axis, 8 components`.
    fn description(&self) -> String;

    /// Compiled tensors for files.
    fn tensors(&self) -> Vec<NamedTensor>;
}

/// A compiled integral over a set: a function of the coefficients.
pub trait Form: Any + Send + Sync + Debug {
    /// The integrals of all components, for many expansions of the same family; relative to the volume of the box,
    /// without scales.
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64>;

    /// The size of the terms that were added up to the integral of a component: the rounding error of the integral is a
    /// small multiple of this times the machine epsilon.
    fn scale(&self, coefficients: &[f64], component: usize) -> f64;

    /// An upper bound on [`Form::scale`] for a set of this volume.
    fn largest_scale(&self, volume: f64) -> f64;

    /// Adds to `gradient` the derivative of `sum_c weights_c I_c` with respect to the coefficients.
    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]);
}
