//! Mixtures of Gaussians with full covariances: a Gaussian mixture model (GMM), or with inputs a mixture density
//! network (MDN). A baseline: nothing keeps its mass inside the constraint.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;
use pal::random::Stream;
use serde::{Deserialize, Serialize};

use super::{Batch, PredictorError, Scaler, Trainable, matrix, to_f64_vec};
use crate::layer::log_sum_exp;
use crate::network::Network;
use crate::start;

/// The size of a Gaussian mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixtureSettings {
    /// Number of Gaussians.
    pub components: usize,
    /// Number of coordinates of a point.
    pub dimension: usize,
}

impl MixtureSettings {
    /// The parameters of one Gaussian: a logit, the mean, the logarithms of the diagonal of the lower Cholesky factor
    /// of the precision matrix, and the entries below that diagonal.
    fn per_component(&self) -> usize {
        1 + 2 * self.dimension + self.dimension * (self.dimension - 1) / 2
    }

    /// Returns the number of outputs that a network in front of the mixture must have.
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
    /// Puts a mixture on a network with [`MixtureSettings::num_params`] outputs. The Gaussians are in scaled
    /// coordinates.
    pub fn new(network: Network, settings: MixtureSettings, scaler: Scaler) -> Mixture {
        Mixture { network, settings, scaler }
    }

    /// Shifts the outputs of the network so that training begins with one Gaussian per cluster of the points.
    #[must_use]
    pub fn start(self, points: &[f64], seed: u64) -> Mixture {
        let params = start::mixture_params(&self.settings, &self.scaler.apply(points), seed);
        Mixture { network: self.network.around(&params), ..self }
    }

    pub(super) fn gaussians(&self, inputs: Option<Tensor<2>>) -> Gaussians {
        Gaussians::new(self.network.forward(inputs), &self.settings)
    }

    pub(super) fn scaler(&self) -> &Scaler {
        &self.scaler
    }
}

/// The parameters of a batch of mixtures: each tensor has one row per mixture and one column per Gaussian.
pub(super) struct Gaussians {
    pub logits: Tensor<2>,
    /// One tensor per coordinate.
    pub means: Vec<Tensor<2>>,
    /// The logarithms of the diagonal of the Cholesky factor of the precision matrix, one tensor per coordinate.
    pub log_diagonal: Vec<Tensor<2>>,
    /// The entries below the diagonal of the same factor, row by row.
    pub lower: Vec<Tensor<2>>,
}

impl Gaussians {
    fn new(params: Tensor<2>, settings: &MixtureSettings) -> Gaussians {
        let rows = params.dims()[0];
        let (k, n) = (settings.components, settings.dimension);
        let params = params.reshape([rows, k, settings.per_component()]);
        let column = |at: usize| -> Tensor<2> { params.clone().slice([0..rows, 0..k, at..at + 1]).squeeze_dim(2) };
        let columns = |from: usize, count: usize| (from..from + count).map(column).collect();
        Gaussians {
            logits: column(0),
            means: columns(1, n),
            log_diagonal: columns(1 + n, n),
            lower: columns(1 + 2 * n, n * (n - 1) / 2),
        }
    }

    /// Returns the log-densities of scaled points, one point per row.
    pub fn log_prob(&self, points: &Tensor<2>) -> Tensor<1> {
        let (n, count) = (self.means.len(), points.dims()[0]);
        let offset = |j: usize| points.clone().slice([0..count, j..j + 1]) - self.means[j].clone();
        let offsets: Vec<Tensor<2>> = (0..n).map(offset).collect();
        let mut terms = log_softmax(self.logits.clone(), 1) - 0.5 * n as f64 * std::f64::consts::TAU.ln();
        for j in 0..n {
            let mut z = self.log_diagonal[j].clone().exp() * offsets[j].clone();
            let lower = &self.lower[j * j.saturating_sub(1) / 2..];
            for (l, offset) in lower.iter().zip(&offsets[..j]) {
                z = z + l.clone() * offset.clone();
            }
            terms = terms + self.log_diagonal[j].clone() - z.square() * 0.5;
        }
        log_sum_exp(terms)
    }
}

impl Trainable for Mixture {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        let gaussians = self.gaussians(batch.inputs.clone());
        let scaled = self.scaler.apply(&batch.points);
        let (device, dtype) = (gaussians.logits.device(), gaussians.logits.dtype());
        let points = matrix(&scaled, batch.dimension, &device.without_autodiff(), dtype);
        Ok(gaussians.log_prob(&points) + self.scaler.log_det())
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        let gaussians = self.gaussians(inputs);
        let rows = gaussians.logits.dims()[0];
        let (k, n) = (self.settings.components, self.settings.dimension);
        let weights = to_f64_vec(log_softmax(gaussians.logits, 1).exp());
        let read = |tensors: Vec<Tensor<2>>| tensors.into_iter().map(to_f64_vec::<2>).collect::<Vec<Vec<f64>>>();
        let (means, lower) = (read(gaussians.means), read(gaussians.lower));
        let log_diagonal = read(gaussians.log_diagonal);
        let mut points = Vec::with_capacity(rows * count * n);
        for index in 0..rows * count {
            let row = index / count;
            let mut stream = Stream::new(seed, index as u64);
            let mut left = stream.unit();
            let chosen = weights[row * k..(row + 1) * k].iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            // Rounding can leave the sum of the weights a little below 1.
            let at = row * k + chosen.unwrap_or(k - 1);
            let mut offsets = vec![0.0; n];
            for j in 0..n {
                let known: f64 = (0..j).map(|i| lower[j * (j - 1) / 2 + i][at] * offsets[i]).sum();
                offsets[j] = (stream.normal() - known) / log_diagonal[j][at].exp();
            }
            points.extend((0..n).map(|j| means[j][at] + offsets[j]));
        }
        Ok(self.scaler.invert(&points))
    }
}
