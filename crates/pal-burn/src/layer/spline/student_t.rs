//! A head that turns a few outputs of a network into the many parameters of a spline mixture.
//!
//! To say where something will be, a network that gives the parameters themselves has to raise the values at a few
//! knots and lower all others, and has to learn that anew for every location. With this head it says so in three
//! numbers per axis and component: a location m, a width w and a tail a, with m and w in bins. The knot at p gets the
//! value and the derivative of
//!
//! ```text
//! s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w.
//! ```
//!
//! The density is the square of the spline: s^2 falls like the density of Student's t distribution with 2 a - 1 degrees
//! of freedom, hence the name.

use burn::tensor::{Tensor, TensorData};

use crate::layer::PalLayer;
use crate::start;

/// The least width in bins: a narrower component would lie between two knots and be seen by neither.
const MIN_WIDTH: f64 = 0.35;
/// The least tail: the square of s has an integral over the real line only for a > 1/2.
const MIN_TAIL: f64 = 0.6;
/// The output that stands for the upper end of an axis; 0 stands for the lower end. Outputs of an untrained network lie
/// between about -1 and 1.
const OUTPUT_RANGE: f64 = 6.0;

/// A head from locations, widths and tails to the parameters of a spline mixture.
///
/// A component has one logit and three numbers per axis. Its factor along an axis has a square that falls like the
/// density of Student's t distribution with 2 a - 1 degrees of freedom, where a is the tail.
#[derive(Clone, Debug)]
pub struct StudentTHead {
    components: usize,
    axes: Vec<AxisKnots>,
}

#[derive(Clone, Debug)]
struct AxisKnots {
    /// The positions of the knots, in bins from the first one.
    knots: Tensor<3>,
    /// The coordinate of the first knot.
    low: f64,
    /// The mean width of a bin.
    bin: f64,
    /// The distance in bins by which an output of 1 moves the location.
    reach: f64,
}

impl StudentTHead {
    /// Makes the head for a layer of spline mixtures; `None` for another kind of family.
    pub fn new(layer: &PalLayer) -> Option<StudentTHead> {
        let recipe = super::recipe(&layer.family)?;
        let axes = layer.family.support().grid().axes().iter().map(|axis| {
            let positions = axis.positions();
            let (low, high) = (positions[0], positions[axis.bins()]);
            let bin = (high - low) / axis.bins() as f64;
            let knots: Vec<f64> = positions.iter().map(|knot| (knot - low) / bin).collect();
            let shape = [1, 1, knots.len()];
            let knots = Tensor::from_data(TensorData::new(knots, shape), (&layer.device, layer.dtype));
            AxisKnots { knots, low, bin, reach: axis.bins() as f64 / OUTPUT_RANGE }
        });
        Some(StudentTHead { components: recipe.components, axes: axes.collect() })
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
            let [location, width, tail] = [1, 2, 3].map(|k| column(3 * j + k));
            let (location, width) = (location * axis.reach, softplus(width) + MIN_WIDTH);
            let tail = softplus(tail) + MIN_TAIL;
            let u = (axis.knots.clone() - location) / width.clone();
            let q = u.clone().square() / tail.clone() + 1.0;
            let log = q.clone().log() * tail * -0.5;
            // Densities do not depend on the scale of s, so the gradient through it is zero and need not be computed.
            let largest = log.clone().detach().max_dim(2);
            let values = (log - largest).exp();
            let derivatives = -values.clone() * u / (q * width);
            parts.extend([values, derivatives]);
        }
        let params = Tensor::cat(parts, 2);
        let width = params.dims()[2];
        params.reshape([rows, self.components * width])
    }

    /// Returns starting values for the outputs of the network, one row: one component for each cluster of the points.
    pub fn start(&self, points: &[f64], seed: u64) -> Vec<f64> {
        let mut outputs = Vec::with_capacity(self.num_params());
        for cluster in start::gaussians(points, self.axes.len(), self.components, seed) {
            outputs.push(cluster.log_size);
            for ((axis, mean), deviation) in self.axes.iter().zip(&cluster.mean).zip(&cluster.deviation) {
                let width = (deviation / axis.bin - MIN_WIDTH).max(0.1);
                outputs.extend([(mean - axis.low) / axis.bin / axis.reach, inverse_softplus(width), 0.0]);
            }
        }
        outputs
    }
}

/// Computes log(1 + e^x) without overflow.
fn softplus(x: Tensor<3>) -> Tensor<3> {
    let correction = (x.clone().abs().neg().exp() + 1.0).log();
    x.clamp_min(0.0) + correction
}

fn inverse_softplus(y: f64) -> f64 {
    y + (-(-y).exp_m1()).ln()
}
