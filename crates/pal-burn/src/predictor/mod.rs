//! Densities that the training loop can fit: a network with a [`PalLayer`](crate::PalLayer) or a
//! [`MixedLayer`](crate::MixedLayer), and baselines without guarantees (Gaussian mixtures, neural spline flows, a Gaussian under a relaxed constraint).
//!
//! All of them implement [`Trainable`]. [`Predictor`] is any one of them, built from a [`Plan`] that can be written to
//! a file.

mod family;
mod flow;
mod kernel;
mod mixed;
mod mixture;
mod pal;
mod plan;
mod relaxed;

use ::pal::density::RegionForms;
use ::pal::kernel::KernelFamily;
use burn::module::Module;
use burn::tensor::{DType, Device, Tensor, TensorData};
use thiserror::Error;

use crate::weights::numbers;

pub use family::AnyFamily;
pub use flow::{Flow, FlowSettings};
pub use kernel::KernelPredictor;
pub use mixed::MixedPredictor;
pub use mixture::{Mixture, MixtureSettings};
pub use pal::PalPredictor;
pub use plan::{Plan, Predictor, PredictorKind, RegionPlan, WindowPlan};
pub use relaxed::{Relaxed, RelaxedSettings};

/// Why a predictor cannot be built, evaluated or sampled.
#[derive(Debug, Error)]
pub enum PredictorError {
    /// The family of densities refuses the points or parameters.
    #[error(transparent)]
    Density(#[from] ::pal::density::DensityError),
    /// A query of a density failed.
    #[error(transparent)]
    Query(#[from] ::pal::query::QueryError),
    /// There is no layer for the family on the device.
    #[error(transparent)]
    Layer(#[from] crate::layer::LayerError),
    /// The constraint or the family does not fit the kind of predictor.
    #[error("{0}")]
    Unsuitable(String),
}

/// Rows of data on their way through a predictor.
#[derive(Clone, Debug)]
pub struct Batch {
    /// One row of inputs per point; `None` for an unconditional density.
    pub inputs: Option<Tensor<2>>,
    /// The points in float64, row by row.
    pub points: Vec<f64>,
    /// Coordinates per point.
    pub dimension: usize,
    /// One region per row, where rows have regions of their own. Predictors without guarantees ignore them.
    pub regions: Option<BatchRegions>,
    /// The training step that the batch is for, counted from 0. Predictors that draw random numbers or whose loss
    /// changes during training read it.
    pub step: u64,
}

/// One region per row of a batch, as its predictor needs them.
#[derive(Clone, Debug)]
pub enum BatchRegions {
    /// For spline mixtures.
    Forms(RegionForms),
    /// For kernels.
    Kernels(Vec<KernelFamily>),
}

impl Batch {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// A conditional or unconditional density whose parameters can be learnt by gradient descent.
pub trait Trainable: Module {
    /// Returns the log-density of each point of a batch, given its row of inputs.
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError>;

    /// Returns the loss that training minimises: by default the mean negative log-likelihood.
    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        Ok(-self.log_prob(batch)?.mean())
    }

    /// Draws `count` points for each row of inputs as [`Trainable::sample`] does, on the region of the row where rows have
    /// regions of their own. Predictors without guarantees ignore the regions.
    fn sample_on(
        &self,
        inputs: Option<Tensor<2>>,
        regions: Option<&BatchRegions>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<f64>, PredictorError> {
        let _ = regions;
        self.sample(inputs, count, seed)
    }

    /// Draws `count` points for each row of inputs, or `count` points in all where there are no inputs.
    ///
    /// The points of a row are consecutive. The same seed gives the same points.
    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError>;
}

/// An affine map of each column to mean 0 and standard deviation 1.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scaler {
    /// The mean of each column.
    pub mean: Vec<f64>,
    /// The standard deviation of each column; 1 for a column that does not vary.
    pub deviation: Vec<f64>,
}

impl Scaler {
    /// Fits a scaler to rows with the given number of columns.
    pub fn fit(values: &[f64], columns: usize) -> Scaler {
        let rows = (values.len() / columns.max(1)).max(1) as f64;
        let column = |j: usize| values.iter().skip(j).step_by(columns.max(1));
        let mean: Vec<f64> = (0..columns).map(|j| column(j).sum::<f64>() / rows).collect();
        let deviation = |j: usize| (column(j).map(|x| (x - mean[j]).powi(2)).sum::<f64>() / rows).sqrt();
        let deviation = (0..columns).map(|j| if deviation(j) > 0.0 { deviation(j) } else { 1.0 }).collect();
        Scaler { mean, deviation }
    }

    /// Scales rows to mean 0 and standard deviation 1.
    pub fn apply(&self, values: &[f64]) -> Vec<f64> {
        let columns = self.mean.iter().zip(&self.deviation).cycle();
        values.iter().zip(columns).map(|(x, (mean, deviation))| (x - mean) / deviation).collect()
    }

    /// Undoes [`Scaler::apply`]: maps scaled rows back to the units of the data.
    pub fn invert(&self, values: &[f64]) -> Vec<f64> {
        let columns = self.mean.iter().zip(&self.deviation).cycle();
        values.iter().zip(columns).map(|(x, (mean, deviation))| x * deviation + mean).collect()
    }

    /// Returns the logarithm of the Jacobian determinant of scaling: the log-density of x is that of the scaled x plus
    /// this number.
    pub fn log_det(&self) -> f64 {
        -self.deviation.iter().map(|d| d.ln()).sum::<f64>()
    }
}

/// Makes a matrix with the given number of columns from numbers given row by row.
pub fn matrix(values: &[f64], columns: usize, device: &Device, dtype: DType) -> Tensor<2> {
    let rows = values.len() / columns.max(1);
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, columns]), (device, dtype))
}

/// Reads the entries of a tensor as float64, whatever its precision and device.
pub fn to_f64_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    numbers(tensor)
}

/// Reads a tensor with one entry as float64.
pub(crate) fn to_f64(tensor: Tensor<1>) -> f64 {
    let values = to_f64_vec(tensor);
    assert_eq!(values.len(), 1, "a loss is one number");
    values[0]
}
