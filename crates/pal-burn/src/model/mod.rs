//! Densities that the training loop can fit: the layer on a network, and baselines without guarantees.

mod flow;
mod mixture;
mod pal;
mod predictor;
mod relaxed;

use burn::module::Module;
use burn::tensor::{DType, Device, Tensor, TensorData};
use thiserror::Error;

pub use flow::{Flow, FlowSettings};
pub use mixture::{Mixture, MixtureSettings};
pub use pal::PalModel;
pub use predictor::{Kind, Plan, Predictor};
pub use relaxed::{Relaxed, RelaxedSettings};

/// What goes wrong with models.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The family refuses.
    #[error(transparent)]
    Density(#[from] ::pal::density::DensityError),
    /// A query refuses.
    #[error(transparent)]
    Query(#[from] ::pal::query::QueryError),
    /// The device refuses.
    #[error(transparent)]
    Device(#[from] crate::device::DeviceError),
    /// The constraint cannot be used.
    #[error("{0}")]
    Constraint(String),
}

/// Rows of data on their way through a model.
#[derive(Clone, Debug)]
pub struct Batch {
    /// One row of inputs per point; `None` for an unconditional density.
    pub inputs: Option<Tensor<2>>,
    /// The points in doubles, row by row.
    pub points: Vec<f64>,
    /// Coordinates per point.
    pub dimension: usize,
    /// Which step of the training this is for, for models that draw random numbers or change their loss on the way.
    pub step: u64,
}

impl Batch {
    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// A conditional or unconditional density with parameters to learn.
pub trait Model: Module {
    /// Log-densities of the points of a batch.
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError>;

    /// What training makes small.
    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        Ok(-self.log_prob(batch)?.mean())
    }

    /// So many points drawn from the density; for each row of inputs so many, one row after the other.
    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError>;
}

/// Shift and scale to mean 0 and deviation 1, per column.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Scaler {
    /// Means.
    pub mean: Vec<f64>,
    /// Deviations; 1 for a column that does not vary.
    pub deviation: Vec<f64>,
}

impl Scaler {
    /// Of rows with so many columns.
    pub fn of(values: &[f64], columns: usize) -> Scaler {
        let rows = (values.len() / columns.max(1)).max(1) as f64;
        let column = |j: usize| values.iter().skip(j).step_by(columns.max(1));
        let mean: Vec<f64> = (0..columns).map(|j| column(j).sum::<f64>() / rows).collect();
        let spread = |j: usize| (column(j).map(|x| (x - mean[j]).powi(2)).sum::<f64>() / rows).sqrt();
        let deviation = (0..columns).map(|j| if spread(j) > 0.0 { spread(j) } else { 1.0 }).collect();
        Scaler { mean, deviation }
    }

    /// Scaled rows.
    pub fn apply(&self, values: &[f64]) -> Vec<f64> {
        let columns = self.mean.iter().zip(&self.deviation).cycle();
        values.iter().zip(columns).map(|(x, (mean, deviation))| (x - mean) / deviation).collect()
    }

    /// The way back.
    pub fn invert(&self, values: &[f64]) -> Vec<f64> {
        let columns = self.mean.iter().zip(&self.deviation).cycle();
        values.iter().zip(columns).map(|(x, (mean, deviation))| x * deviation + mean).collect()
    }

    /// What scaling adds to the logarithm of a density: the density of x is that of the scaled x times this factor.
    pub fn log_factor(&self) -> f64 {
        -self.deviation.iter().map(|d| d.ln()).sum::<f64>()
    }
}

/// Rows of numbers as a tensor.
pub fn matrix(values: &[f64], columns: usize, device: &Device, dtype: DType) -> Tensor<2> {
    let rows = values.len() / columns.max(1);
    Tensor::from_data(TensorData::new(values.to_vec(), [rows, columns]), (device, dtype))
}

/// The numbers of a tensor in doubles.
pub fn doubles<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data_dtype(DType::F64).try_into_vec().unwrap_or_default()
}
