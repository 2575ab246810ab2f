//! A neural spline flow: autoregressive transformations by monotone rational-quadratic splines, to a standard normal.
//!
//! Reference: Durkan, Bekasov, Murray, Papamakarios, Neural spline flows, 2019. Each transformation changes one coordinate after the other; the spline of
//! a coordinate comes from a network that sees the inputs and the coordinates before it. Transformations alternate in the order of coordinates.

use burn::module::Module;
use burn::tensor::activation::{softmax, softplus};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{Batch, Model, ModelError, Scaler, doubles, matrix};
use crate::network::Mlp;
use crate::random::Normal;

/// What a flow looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSettings {
    /// Coordinates.
    pub dimension: usize,
    /// Inputs; 0 for an unconditional flow.
    pub inputs: usize,
    /// Transformations.
    pub transforms: usize,
    /// Bins of a spline.
    pub bins: usize,
    /// Hidden units of each network.
    pub hidden: Vec<usize>,
}

/// Splines act between minus and plus this; beyond, scaled coordinates stay as they are.
const BOUND: f64 = 5.0;
/// The least width and height of a bin, as a share of the whole, and the least slope.
const LEAST: f64 = 1e-3;

/// A neural spline flow.
#[derive(Module, Debug)]
pub struct Flow {
    /// Per transformation and coordinate.
    networks: Vec<Mlp>,
    #[module(skip)]
    settings: FlowSettings,
    #[module(skip)]
    scaler: Scaler,
}

impl Flow {
    /// With random networks.
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

    /// The coordinates of a transformation, in its order.
    fn order(&self, transform: usize) -> Vec<usize> {
        let n = self.settings.dimension;
        if transform.is_multiple_of(2) { (0..n).collect() } else { (0..n).rev().collect() }
    }

    /// The spline of the k-th coordinate of a transformation, given those before it.
    fn spline(
        &self,
        transform: usize,
        k: usize,
        before: &[Tensor<2>],
        inputs: &Option<Tensor<2>>,
        like: &Tensor<2>,
    ) -> Spline {
        let seen: Vec<Tensor<2>> = inputs.iter().chain(before).cloned().collect();
        let seen = if seen.is_empty() { like.ones_like() } else { Tensor::cat(seen, 1) };
        Spline::new(self.networks[transform * self.settings.dimension + k].forward(seen), self.settings.bins)
    }

    fn context(&self) -> (Device, DType) {
        self.networks[0].context()
    }
}

/// Columns of a matrix.
fn columns(matrix: Tensor<2>) -> Vec<Tensor<2>> {
    let [rows, count] = matrix.dims();
    (0..count).map(|j| matrix.clone().slice([0..rows, j..j + 1])).collect()
}

/// Monotone splines, one for each row, with a column for each bin.
struct Spline {
    /// Left ends of bins, and their widths.
    left: Tensor<2>,
    width: Tensor<2>,
    /// The same for the values.
    bottom: Tensor<2>,
    height: Tensor<2>,
    /// Slopes at both ends of bins.
    slope_left: Tensor<2>,
    slope_right: Tensor<2>,
}

impl Spline {
    fn new(params: Tensor<2>, bins: usize) -> Spline {
        let rows = params.dims()[0];
        let part = |from: usize, to: usize| params.clone().slice([0..rows, from..to]);
        let sizes = |raw: Tensor<2>| (softmax(raw, 1) * (1.0 - LEAST * bins as f64) + LEAST) * (2.0 * BOUND);
        let (width, height) = (sizes(part(0, bins)), sizes(part(bins, 2 * bins)));
        // Slope 1 at parameter 0, as beyond the ends.
        let one = (1.0 - LEAST).exp_m1().ln();
        let inner = softplus(part(2 * bins, 3 * bins - 1) + one, 1.0) + LEAST;
        let ones = inner.clone().slice([0..rows, 0..1]).ones_like();
        let slopes = Tensor::cat(vec![ones.clone(), inner, ones], 1);
        // Sums of all bins before, by a matrix of ones above the diagonal.
        let before: Vec<f64> = (0..bins * bins).map(|at| f64::from(u8::from(at / bins < at % bins))).collect();
        let (device, dtype) = (params.device().without_autodiff(), params.dtype());
        let before = Tensor::<2>::from_data(TensorData::new(before, [bins, bins]), (&device, dtype));
        Spline {
            left: width.clone().matmul(before.clone()) - BOUND,
            bottom: height.clone().matmul(before) - BOUND,
            width,
            height,
            slope_left: slopes.clone().slice([0..rows, 0..bins]),
            slope_right: slopes.slice([0..rows, 1..bins + 1]),
        }
    }

    /// Of each spline the one bin in which a value lies, between given left ends.
    fn bin(&self, values: &Tensor<2>, left: &Tensor<2>) -> Spline {
        let bins = left.dims()[1];
        let rows = values.dims()[0];
        let reached = values.clone().detach().greater_equal(left.clone().detach()).float().cast(values.dtype());
        // Reached, and the next one not: the last of those reached.
        let next = reached.clone().slice([0..rows, 1..bins]);
        let next = Tensor::cat(vec![next, reached.clone().slice([0..rows, 0..1]).zeros_like()], 1);
        let first = reached.clone().slice([0..rows, 0..1]).ones_like();
        let reached = if bins > 1 { Tensor::cat(vec![first, reached.slice([0..rows, 1..bins])], 1) } else { first };
        let chosen = reached - next;
        let pick = |of: &Tensor<2>| (of.clone() * chosen.clone()).sum_dim(1);
        Spline {
            left: pick(&self.left),
            width: pick(&self.width),
            bottom: pick(&self.bottom),
            height: pick(&self.height),
            slope_left: pick(&self.slope_left),
            slope_right: pick(&self.slope_right),
        }
    }

    /// Values and logarithms of slopes.
    fn forward(&self, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let outside = x.clone().abs().greater_equal_elem(BOUND);
        let inside = x.clone().mask_fill(outside.clone(), 0.0);
        let bin = self.bin(&inside, &self.left);
        let mean = bin.height.clone() / bin.width.clone();
        let t = (inside - bin.left) / bin.width;
        let between = t.clone() * (-t.clone() + 1.0);
        let bend = bin.slope_left.clone() + bin.slope_right.clone() - mean.clone() * 2.0;
        let below = mean.clone() + bend * between.clone();
        let above = mean.clone() * t.clone().square() + bin.slope_left.clone() * between.clone();
        let value = bin.bottom + bin.height * above / below.clone();
        let rest = -t.clone() + 1.0;
        let slope = bin.slope_right * t.square() + mean.clone() * between * 2.0 + bin.slope_left * rest.square();
        let log_slope = mean.log() * 2.0 + slope.log() - below.log() * 2.0;
        (value.mask_where(outside.clone(), x), log_slope.mask_fill(outside, 0.0))
    }

    /// Where the value is y.
    fn inverse(&self, y: Tensor<2>) -> Tensor<2> {
        let outside = y.clone().abs().greater_equal_elem(BOUND);
        let inside = y.clone().mask_fill(outside.clone(), 0.0);
        let bin = self.bin(&inside, &self.bottom);
        let mean = bin.height.clone() / bin.width.clone();
        let rise = inside - bin.bottom;
        let bend = bin.slope_left.clone() + bin.slope_right - mean.clone() * 2.0;
        let a = bin.height.clone() * (mean.clone() - bin.slope_left.clone()) + rise.clone() * bend.clone();
        let b = bin.height * bin.slope_left - rise.clone() * bend;
        let c = -(mean * rise);
        let root = (b.clone().square() - a * c.clone() * 4.0).clamp_min(0.0).sqrt();
        let t = c * 2.0 / (-b - root);
        (bin.left + t * bin.width).mask_where(outside, y)
    }
}

impl Model for Flow {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let (device, dtype) = self.context();
        let scaled = self.scaler.apply(&batch.points);
        let mut y = columns(matrix(&scaled, batch.dimension, &device.without_autodiff(), dtype));
        let mut total: Option<Tensor<2>> = None;
        for transform in 0..self.settings.transforms {
            let order = self.order(transform);
            let mut before = Vec::new();
            for (k, j) in order.iter().enumerate() {
                let spline = self.spline(transform, k, &before, &batch.inputs, &y[*j]);
                before.push(y[*j].clone());
                let (value, log_slope) = spline.forward(y[*j].clone());
                y[*j] = value;
                total = Some(total.map_or(log_slope.clone(), |total| total + log_slope));
            }
        }
        let mut log = y.iter().fold(y[0].zeros_like(), |sum, y| sum - y.clone().square() * 0.5);
        if let Some(total) = total {
            log = log + total;
        }
        let constant = self.scaler.log_factor() - 0.5 * self.settings.dimension as f64 * std::f64::consts::TAU.ln();
        Ok(log.squeeze_dim::<1>(1) + constant)
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        let n = self.settings.dimension;
        // One row of inputs for each point.
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
            let mut normal = Normal::new(seed, index as u64);
            (0..n).map(move |_| normal.next())
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
        Ok(self.scaler.invert(&doubles(Tensor::cat(y, 1))))
    }
}
