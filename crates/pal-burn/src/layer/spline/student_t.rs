//! A head that turns a few outputs of a network into the many parameters of a spline mixture.
//!
//! To say where something will be, a network that gives the parameters themselves has to raise the values at a few
//! knots and lower all others, and has to learn that anew for every location. With this head it says so in three
//! numbers per axis and component. Let the knots of an axis be p_0 < .. < p_(K-1), c their middle (p_0 + p_(K-1)) / 2,
//! W the half length (p_(K-1) - p_0) / 2, and o_1, o_2, o_3 the outputs for this axis and component k. Then
//!
//! ```text
//! location  m = c + W (o_1 + d_k)
//! scale     w = 0.35 h(m) + 2 W sigmoid(2 o_2 - log 3)
//! tail      a = 0.6 + softplus(o_3 + log(e^1.4 - 1))
//! ```
//!
//! and the knot at p gets the value and the derivative of
//!
//! ```text
//! s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w,
//! ```
//!
//! divided by the largest of the values. The density is the square of the spline: where nothing cuts it off, s^2 is the
//! density of Student's t distribution with 2 a - 1 degrees of freedom, hence the name. All outputs 0 are a broad
//! density in the middle of the box. The parameters are these values and derivatives less the offset of the family,
//! which the layer adds.
//!
//! `h(m)` is the distance of the knots around m, so that no component falls between two knots, however unevenly they
//! are placed: with the mean h_i of the lengths of the bins on both sides of p_i (at the ends, of the only one),
//! h(m) = h_0 + sum_i (h_(i+1) - h_i) clamp((m - p_i) / (p_(i+1) - p_i), 0, 1).
//!
//! `d_k` tells the components apart from the start. On axis j of n it is frac(1/2 + (k + 1) g^-(j+1)) - 1/2, both k and
//! j counted from 0, where g > 1 solves g^(n+1) = g + 1: points that fill half of the box evenly.
//!
//! `StudentTHead` of the Python package is the same function; tests hold both to the same numbers.

use burn::tensor::activation::sigmoid;
use burn::tensor::{Tensor, TensorData};
use pal::density::student_t_shape::{MAX_SCALE, MIN_SCALE, MIN_TAIL, SCALE_GAIN, ZERO_SCALE, ZERO_TAIL, place};

use crate::layer::PalLayer;
use crate::start;

/// A head from locations, scales and tails to the parameters of a spline mixture.
///
/// A component has one logit and three numbers per axis. Its factor along an axis has a square that falls like the
/// density of Student's t distribution with 2 a - 1 degrees of freedom, where a is the tail. Outputs of 0 are a broad
/// density in the middle of the box.
#[derive(Clone, Debug)]
pub struct StudentTHead {
    components: usize,
    axes: Vec<Axis>,
    /// The offset of the family: one row.
    family_offset: Tensor<2>,
}

/// An axis, in coordinates in which it runs from -1 to 1.
#[derive(Clone, Debug)]
struct Axis {
    /// The positions of the knots.
    knots: Tensor<3>,
    /// Where the components are placed by outputs of 0.
    places: Tensor<3>,
    /// The distance of the knots around a location.
    distance: Distance,
    /// The mean length of a bin.
    bin: f64,
    /// The ends of the axis in the coordinates of points.
    ends: [f64; 2],
}

#[derive(Clone, Debug)]
enum Distance {
    /// The same everywhere.
    Even(f64),
    /// Linear between the knots.
    Uneven(Box<UnevenDistance>),
}

#[derive(Clone, Debug)]
struct UnevenDistance {
    /// At the first knot.
    first: f64,
    /// From one knot to the next.
    steps: Tensor<3>,
    /// All knots but the last.
    starts: Tensor<3>,
    /// The lengths of the bins.
    bins: Tensor<3>,
}

impl Distance {
    fn at(&self, location: &Tensor<3>) -> Tensor<3> {
        match self {
            Distance::Even(distance) => location.zeros_like() + *distance,
            Distance::Uneven(distance) => {
                let UnevenDistance { first, steps, starts, bins } = &**distance;
                let way = ((location.clone() - starts.clone()) / bins.clone()).clamp(0.0, 1.0);
                (way * steps.clone()).sum_dim(2) + *first
            }
        }
    }
}

impl StudentTHead {
    /// Makes the head for a layer of spline mixtures; `None` for another kind of family.
    pub fn new(layer: &PalLayer) -> Option<StudentTHead> {
        let components = super::recipe(&layer.family)?.components;
        let grid = layer.family.support().grid();
        let n = grid.axes().len();
        let row = |values: Vec<f64>, shape: [usize; 3]| -> Tensor<3> {
            Tensor::from_data(TensorData::new(values, shape), (&layer.device, layer.dtype))
        };
        let along = |values: Vec<f64>| {
            let count = values.len();
            row(values, [1, 1, count])
        };
        let axes = grid.axes().iter().enumerate().map(|(j, axis)| {
            let positions = axis.positions();
            let (low, high) = (positions[0], positions[axis.bins()]);
            let knots: Vec<f64> = positions.iter().map(|p| ((p - low) - (high - p)) / (high - low)).collect();
            let bins: Vec<f64> = knots.windows(2).map(|ends| ends[1] - ends[0]).collect();
            let bin = 2.0 / bins.len() as f64;
            let distance = if bins.iter().all(|length| (length - bin).abs() < 1e-9 * bin) {
                Distance::Even(bin)
            } else {
                let near = |i: usize| (bins[i.saturating_sub(1)] + bins[i.min(bins.len() - 1)]) / 2.0;
                let steps = (0..bins.len()).map(|i| near(i + 1) - near(i)).collect();
                let starts = along(knots[..bins.len()].to_vec());
                let (first, steps, bins) = (near(0), along(steps), along(bins));
                Distance::Uneven(Box::new(UnevenDistance { first, steps, starts, bins }))
            };
            let places = row((0..components).map(|k| place(k, j, n)).collect(), [1, components, 1]);
            Axis { knots: along(knots), places, distance, bin, ends: [low, high] }
        });
        Some(StudentTHead { components, axes: axes.collect(), family_offset: layer.offset.clone() })
    }

    /// The outputs per component: a logit, and three numbers per axis.
    fn per_component(&self) -> usize {
        1 + 3 * self.axes.len()
    }

    /// Returns the number of outputs that a network in front of the head must have.
    pub fn num_params(&self) -> usize {
        self.components * self.per_component()
    }

    /// Turns rows of outputs of a network into rows of parameters of the layer.
    ///
    /// # Panics
    ///
    /// If the outputs do not have [`StudentTHead::num_params`] columns.
    pub fn params(&self, outputs: Tensor<2>) -> Tensor<2> {
        let rows = outputs.dims()[0];
        let outputs = outputs.reshape([rows, self.components, self.per_component()]);
        let column = |at: usize| outputs.clone().slice([0..rows, 0..self.components, at..at + 1]);
        let mut parts = vec![column(0)];
        for (j, axis) in self.axes.iter().enumerate() {
            let [location, scale, tail] = [1, 2, 3].map(|k| column(3 * j + k));
            let location = location + axis.places.clone();
            let fraction = sigmoid(scale * SCALE_GAIN + scale_shift());
            let scale = axis.distance.at(&location) * MIN_SCALE + fraction * MAX_SCALE;
            let tail = softplus(tail + inverse_softplus(ZERO_TAIL - MIN_TAIL)) + MIN_TAIL;
            let u = (axis.knots.clone() - location) / scale.clone();
            let q = u.clone().square() / tail.clone();
            let log = q.clone().log1p() * tail * -0.5;
            // Densities do not depend on the size of s, so the gradient through it is zero and need not be computed.
            let largest = log.clone().detach().max_dim(2);
            let values = (log - largest).exp();
            let derivatives = values.clone() * u / ((q + 1.0) * scale) * -axis.bin;
            parts.extend([values, derivatives]);
        }
        let theta = Tensor::cat(parts, 2);
        let width = theta.dims()[2];
        theta.reshape([rows, self.components * width]) - self.family_offset.clone()
    }

    /// Returns starting values for the outputs of the network, one row: one component for each cluster of the points.
    pub fn start(&self, points: &[f64], seed: u64) -> Vec<f64> {
        let n = self.axes.len();
        let mut outputs = Vec::with_capacity(self.num_params());
        for (k, cluster) in start::gaussians(points, n, self.components, seed).iter().enumerate() {
            outputs.push(cluster.log_size);
            for (j, (axis, (mean, deviation))) in
                self.axes.iter().zip(cluster.mean.iter().zip(&cluster.deviation)).enumerate()
            {
                let [low, high] = axis.ends;
                let location = (2.0 * mean - low - high) / (high - low);
                let fraction = (2.0 * deviation / (high - low) / MAX_SCALE).clamp(1e-3, 0.9);
                let scale = ((fraction / (1.0 - fraction)).ln() - scale_shift()) / SCALE_GAIN;
                outputs.extend([location - place(k, j, n), scale, 0.0]);
            }
        }
        outputs
    }
}

/// What is added to the output for the scale, so that 0 stands for [`ZERO_SCALE`].
fn scale_shift() -> f64 {
    (ZERO_SCALE / (MAX_SCALE - ZERO_SCALE)).ln()
}

/// Computes log(1 + e^x) without overflow.
fn softplus(x: Tensor<3>) -> Tensor<3> {
    let correction = (x.clone().abs().neg().exp() + 1.0).log();
    x.clamp_min(0.0) + correction
}

fn inverse_softplus(y: f64) -> f64 {
    y + (-(-y).exp_m1()).ln()
}
