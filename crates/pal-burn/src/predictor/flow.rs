//! A neural spline flow: autoregressive transformations of the points to a standard normal by monotone
//! rational-quadratic splines. A baseline: nothing keeps its mass inside the constraint.
//!
//! Reference: Durkan, Bekasov, Murray, Papamakarios, Neural spline flows, 2019. A transformation maps one coordinate
//! after the other; the spline of a coordinate comes from a network that sees the inputs and the coordinates before it.
//! Every second transformation takes the coordinates in reverse order.

use burn::module::Module;
use burn::tensor::activation::{softmax, softplus};
use burn::tensor::{DType, Device, Tensor, TensorData};
use pal::random::Stream;
use serde::{Deserialize, Serialize};

use super::{Batch, PredictorError, Scaler, Trainable, matrix, to_f64_vec};
use crate::network::Mlp;

/// The size of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSettings {
    /// The number of coordinates of a point.
    pub dimension: usize,
    /// The number of inputs; 0 for an unconditional flow.
    pub inputs: usize,
    /// The number of autoregressive transformations.
    pub transforms: usize,
    /// The number of bins of each spline.
    pub bins: usize,
    /// The number of units of each hidden layer, in each of the networks.
    pub hidden: Vec<usize>,
}

/// Splines act on `[-BOUND, BOUND]` in scaled coordinates and are the identity beyond.
const BOUND: f64 = 5.0;
/// The least width and height of a bin, as a fraction of `2 BOUND`, and the least derivative at a knot.
const LEAST: f64 = 1e-3;

/// A neural spline flow.
#[derive(Module, Debug)]
pub struct Flow {
    /// One network per transformation and coordinate, transformation by transformation.
    networks: Vec<Mlp>,
    #[module(skip)]
    settings: FlowSettings,
    #[module(skip)]
    scaler: Scaler,
}

impl Flow {
    /// Makes a flow with randomly initialised networks.
    pub fn new(settings: FlowSettings, scaler: Scaler, device: &Device) -> Flow {
        let FlowSettings { dimension, inputs, transforms, bins, hidden } = &settings;
        let network = |index: usize| {
            // The first coordinate of an unconditional flow depends on nothing; its network sees a constant.
            let seen = (inputs + index % dimension).max(1);
            Mlp::new(seen, hidden, 3 * bins - 1, device)
        };
        let networks = (0..transforms * dimension).map(network).collect();
        Flow { networks, settings, scaler }
    }

    /// Returns the order in which a transformation takes the coordinates.
    fn order(&self, transform: usize) -> Vec<usize> {
        let n = self.settings.dimension;
        if transform.is_multiple_of(2) { (0..n).collect() } else { (0..n).rev().collect() }
    }

    /// Returns the splines of the k-th coordinate of a transformation, given the coordinates before it.
    fn spline(
        &self,
        transform: usize,
        k: usize,
        before: &[Tensor<2>],
        inputs: &Option<Tensor<2>>,
        like: &Tensor<2>,
    ) -> MonotoneSpline {
        let seen: Vec<Tensor<2>> = inputs.iter().chain(before).cloned().collect();
        let seen = if seen.is_empty() { like.ones_like() } else { Tensor::cat(seen, 1) };
        MonotoneSpline::new(self.networks[transform * self.settings.dimension + k].forward(seen), self.settings.bins)
    }

    fn context(&self) -> (Device, DType) {
        self.networks[0].context()
    }
}

/// Returns the columns of a matrix.
fn columns(matrix: Tensor<2>) -> Vec<Tensor<2>> {
    let [rows, count] = matrix.dims();
    (0..count).map(|j| matrix.clone().slice([0..rows, j..j + 1])).collect()
}

/// Monotone rational-quadratic splines: one row per spline, one column per bin.
struct MonotoneSpline {
    /// The left end of each bin.
    left: Tensor<2>,
    width: Tensor<2>,
    /// The value at the left end of each bin.
    bottom: Tensor<2>,
    /// The increase of the value over each bin.
    height: Tensor<2>,
    /// The derivatives at both ends of each bin.
    derivative_left: Tensor<2>,
    derivative_right: Tensor<2>,
}

impl MonotoneSpline {
    fn new(params: Tensor<2>, bins: usize) -> MonotoneSpline {
        let rows = params.dims()[0];
        let part = |from: usize, to: usize| params.clone().slice([0..rows, from..to]);
        let sizes = |raw: Tensor<2>| (softmax(raw, 1) * (1.0 - LEAST * bins as f64) + LEAST) * (2.0 * BOUND);
        let (width, height) = (sizes(part(0, bins)), sizes(part(bins, 2 * bins)));
        // A parameter of 0 gives a derivative of 1, that of the identity beyond the ends.
        let one = (1.0 - LEAST).exp_m1().ln();
        let inner = softplus(part(2 * bins, 3 * bins - 1) + one, 1.0) + LEAST;
        let ones = inner.clone().slice([0..rows, 0..1]).ones_like();
        let derivatives = Tensor::cat(vec![ones.clone(), inner, ones], 1);
        // A matrix of ones above the diagonal sums over all bins before each bin.
        let before: Vec<f64> = (0..bins * bins).map(|at| f64::from(u8::from(at / bins < at % bins))).collect();
        let (device, dtype) = (params.device().without_autodiff(), params.dtype());
        let before = Tensor::<2>::from_data(TensorData::new(before, [bins, bins]), (&device, dtype));
        MonotoneSpline {
            left: width.clone().matmul(before.clone()) - BOUND,
            bottom: height.clone().matmul(before) - BOUND,
            width,
            height,
            derivative_left: derivatives.clone().slice([0..rows, 0..bins]),
            derivative_right: derivatives.slice([0..rows, 1..bins + 1]),
        }
    }

    /// Reduces each spline to the one bin that a value lies in, where `left` are the lower ends of the bins: arguments
    /// or values of the splines.
    fn bin(&self, values: &Tensor<2>, left: &Tensor<2>) -> MonotoneSpline {
        let bins = left.dims()[1];
        let rows = values.dims()[0];
        let reached = values.clone().detach().greater_equal(left.clone().detach()).float().cast(values.dtype());
        // The bin whose lower end is reached while that of the next one is not.
        let next = reached.clone().slice([0..rows, 1..bins]);
        let next = Tensor::cat(vec![next, reached.clone().slice([0..rows, 0..1]).zeros_like()], 1);
        let first = reached.clone().slice([0..rows, 0..1]).ones_like();
        let reached = if bins > 1 { Tensor::cat(vec![first, reached.slice([0..rows, 1..bins])], 1) } else { first };
        let chosen = reached - next;
        let pick = |of: &Tensor<2>| (of.clone() * chosen.clone()).sum_dim(1);
        MonotoneSpline {
            left: pick(&self.left),
            width: pick(&self.width),
            bottom: pick(&self.bottom),
            height: pick(&self.height),
            derivative_left: pick(&self.derivative_left),
            derivative_right: pick(&self.derivative_right),
        }
    }

    /// Returns the values of the splines and the logarithms of their derivatives.
    fn forward(&self, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let outside = x.clone().abs().greater_equal_elem(BOUND);
        let inside = x.clone().mask_fill(outside.clone(), 0.0);
        let bin = self.bin(&inside, &self.left);
        let mean = bin.height.clone() / bin.width.clone();
        let t = (inside - bin.left) / bin.width;
        let between = t.clone() * (-t.clone() + 1.0);
        let curvature = bin.derivative_left.clone() + bin.derivative_right.clone() - mean.clone() * 2.0;
        let denominator = mean.clone() + curvature * between.clone();
        let numerator = mean.clone() * t.clone().square() + bin.derivative_left.clone() * between.clone();
        let value = bin.bottom + bin.height * numerator / denominator.clone();
        let complement = -t.clone() + 1.0;
        let derivative = bin.derivative_right * t.square()
            + mean.clone() * between * 2.0
            + bin.derivative_left * complement.square();
        let log_derivative = mean.log() * 2.0 + derivative.log() - denominator.log() * 2.0;
        (value.mask_where(outside.clone(), x), log_derivative.mask_fill(outside, 0.0))
    }

    /// Returns the arguments at which the splines have the values `y`, by the quadratic formula.
    fn inverse(&self, y: Tensor<2>) -> Tensor<2> {
        let outside = y.clone().abs().greater_equal_elem(BOUND);
        let inside = y.clone().mask_fill(outside.clone(), 0.0);
        let bin = self.bin(&inside, &self.bottom);
        let mean = bin.height.clone() / bin.width.clone();
        let rise = inside - bin.bottom;
        let curvature = bin.derivative_left.clone() + bin.derivative_right - mean.clone() * 2.0;
        let a = bin.height.clone() * (mean.clone() - bin.derivative_left.clone()) + rise.clone() * curvature.clone();
        let b = bin.height * bin.derivative_left - rise.clone() * curvature;
        let c = -(mean * rise);
        let root = (b.clone().square() - a * c.clone() * 4.0).clamp_min(0.0).sqrt();
        let t = c * 2.0 / (-b - root);
        (bin.left + t * bin.width).mask_where(outside, y)
    }
}

impl Trainable for Flow {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        let (device, dtype) = self.context();
        let scaled = self.scaler.apply(&batch.points);
        let mut y = columns(matrix(&scaled, batch.dimension, &device.without_autodiff(), dtype));
        let mut log_det: Option<Tensor<2>> = None;
        for transform in 0..self.settings.transforms {
            let order = self.order(transform);
            let mut before = Vec::new();
            for (k, j) in order.iter().enumerate() {
                let spline = self.spline(transform, k, &before, &batch.inputs, &y[*j]);
                before.push(y[*j].clone());
                let (value, log_derivative) = spline.forward(y[*j].clone());
                y[*j] = value;
                log_det = Some(log_det.map_or(log_derivative.clone(), |sum| sum + log_derivative));
            }
        }
        let mut log = y.iter().fold(y[0].zeros_like(), |sum, y| sum - y.clone().square() * 0.5);
        if let Some(log_det) = log_det {
            log = log + log_det;
        }
        let constant = self.scaler.log_det() - 0.5 * self.settings.dimension as f64 * std::f64::consts::TAU.ln();
        Ok(log.squeeze_dim::<1>(1) + constant)
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        let n = self.settings.dimension;
        // Each row of inputs is repeated for each of its points.
        let (inputs, count) = match inputs {
            None => (None, count),
            Some(inputs) => {
                let [rows, columns] = inputs.dims();
                let each = inputs.unsqueeze_dim::<3>(1).expand([rows, count, columns]);
                (Some(each.reshape([rows * count, columns])), rows * count)
            }
        };
        let (device, dtype) = self.context();
        let noise = (0..count).flat_map(|index| {
            let mut stream = Stream::new(seed, index as u64);
            (0..n).map(move |_| stream.normal())
        });
        let mut y = columns(matrix(&noise.collect::<Vec<f64>>(), n, &device.without_autodiff(), dtype));
        for transform in (0..self.settings.transforms).rev() {
            let mut before = Vec::new();
            for (k, j) in self.order(transform).iter().enumerate() {
                let spline = self.spline(transform, k, &before, &inputs, &y[*j]);
                y[*j] = spline.inverse(y[*j].clone());
                before.push(y[*j].clone());
            }
        }
        Ok(self.scaler.invert(&to_f64_vec(Tensor::cat(y, 1))))
    }
}
