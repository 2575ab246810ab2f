//! Mixtures of Gaussians with full covariances: a Gaussian mixture model, or a mixture density network.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;
use serde::{Deserialize, Serialize};

use super::{Batch, Model, ModelError, Scaler, doubles, matrix};
use crate::layer::log_sum_exp;
use crate::network::Network;
use crate::random::Normal;
use crate::start;

/// What a mixture looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixtureSettings {
    /// Number of Gaussians.
    pub components: usize,
    /// Coordinates.
    pub dimension: usize,
}

impl MixtureSettings {
    /// Numbers per Gaussian: a logit, the mean, and a triangular root of the inverse covariance with the logarithms of its diagonal.
    fn per_component(&self) -> usize {
        1 + 2 * self.dimension + self.dimension * (self.dimension - 1) / 2
    }

    /// Outputs that a network must have.
    pub fn num_params(&self) -> usize {
        self.components * self.per_component()
    }
}

/// A mixture of Gaussians whose parameters come from a network.
#[derive(Module, Debug)]
pub struct Mixture {
    network: Network,
    #[module(skip)]
    settings: MixtureSettings,
    #[module(skip)]
    scaler: Scaler,
}

impl Mixture {
    /// The network must have [`MixtureSettings::num_params`] outputs; points are scaled before they meet the Gaussians.
    pub fn new(network: Network, settings: MixtureSettings, scaler: Scaler) -> Mixture {
        Mixture { network, settings, scaler }
    }

    /// Begins with one Gaussian for each of as many clusters of the points.
    #[must_use]
    pub fn start(self, points: &[f64], seed: u64) -> Mixture {
        let params = start::mixture_params(&self.settings, &self.scaler.apply(points), seed);
        Mixture { network: self.network.around(&params), ..self }
    }

    pub(super) fn parts(&self, inputs: Option<Tensor<2>>) -> Parts {
        Parts::new(self.network.forward(inputs), &self.settings)
    }

    pub(super) fn scaler(&self) -> &Scaler {
        &self.scaler
    }
}

/// The parameters of a batch of mixtures: each tensor has a row per mixture and a column per Gaussian.
pub(super) struct Parts {
    pub logits: Tensor<2>,
    pub means: Vec<Tensor<2>>,
    pub logs: Vec<Tensor<2>>,
    /// Below the diagonal, row by row.
    pub lower: Vec<Tensor<2>>,
}

impl Parts {
    fn new(params: Tensor<2>, settings: &MixtureSettings) -> Parts {
        let rows = params.dims()[0];
        let (k, n) = (settings.components, settings.dimension);
        let params = params.reshape([rows, k, settings.per_component()]);
        let column = |at: usize| -> Tensor<2> { params.clone().slice([0..rows, 0..k, at..at + 1]).squeeze_dim(2) };
        let columns = |from: usize, count: usize| (from..from + count).map(column).collect();
        Parts {
            logits: column(0),
            means: columns(1, n),
            logs: columns(1 + n, n),
            lower: columns(1 + 2 * n, n * (n - 1) / 2),
        }
    }

    /// Log-densities of scaled points, given by columns.
    pub fn log_prob(&self, points: &Tensor<2>) -> Tensor<1> {
        let (n, count) = (self.means.len(), points.dims()[0]);
        let offset = |j: usize| points.clone().slice([0..count, j..j + 1]) - self.means[j].clone();
        let offsets: Vec<Tensor<2>> = (0..n).map(offset).collect();
        let mut terms = log_softmax(self.logits.clone(), 1) - 0.5 * n as f64 * std::f64::consts::TAU.ln();
        for j in 0..n {
            let mut z = self.logs[j].clone().exp() * offsets[j].clone();
            let lower = &self.lower[j * j.saturating_sub(1) / 2..];
            for (l, offset) in lower.iter().zip(&offsets[..j]) {
                z = z + l.clone() * offset.clone();
            }
            terms = terms + self.logs[j].clone() - z.square() * 0.5;
        }
        log_sum_exp(terms)
    }
}

impl Model for Mixture {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let parts = self.parts(batch.inputs.clone());
        let scaled = self.scaler.apply(&batch.points);
        let (device, dtype) = (parts.logits.device(), parts.logits.dtype());
        let points = matrix(&scaled, batch.dimension, &device.without_autodiff(), dtype);
        Ok(parts.log_prob(&points) + self.scaler.log_factor())
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        let parts = self.parts(inputs);
        let rows = parts.logits.dims()[0];
        let (k, n) = (self.settings.components, self.settings.dimension);
        let weights = doubles(log_softmax(parts.logits, 1).exp());
        let read = |tensors: Vec<Tensor<2>>| tensors.into_iter().map(doubles::<2>).collect::<Vec<Vec<f64>>>();
        let (means, logs, lower) = (read(parts.means), read(parts.logs), read(parts.lower));
        let mut points = Vec::with_capacity(rows * count * n);
        for index in 0..rows * count {
            let row = index / count;
            let mut normal = Normal::new(seed, index as u64);
            let mut left = normal.unit();
            let shares = &weights[row * k..(row + 1) * k];
            let chosen = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            let at = row * k + chosen.unwrap_or(k - 1);
            let mut offsets = vec![0.0; n];
            for j in 0..n {
                let known: f64 = (0..j).map(|i| lower[j * (j - 1) / 2 + i][at] * offsets[i]).sum();
                offsets[j] = (normal.next() - known) / logs[j][at].exp();
            }
            points.extend((0..n).map(|j| means[j][at] + offsets[j]));
        }
        Ok(self.scaler.invert(&points))
    }
}
