//! Splines in the shape of bumps: few outputs of a network in place of many.
//!
//! To say where something will be, a network on plain parameters has to raise a few knots and lower all others, and must learn that for every place
//! anew. Here it says it in three numbers per axis and component: a place m, a width w and a tail a, all in bins. The knot at p gets the value and the
//! derivative of
//!
//! ```text
//! s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w,
//! ```
//!
//! whose square falls like the density of Student's t distribution with 2 a - 1 degrees of freedom. What comes out is an ordinary parameter vector.

use burn::tensor::{Tensor, TensorData};
use pal::density::Recipe;

use super::PalLayer;
use crate::start;

/// StudentTHead that are narrower than the space between knots would fall through.
const NARROWEST: f64 = 0.35;
/// The square of a bump must have an integral on the whole line: a > 1/2.
const LONGEST_TAIL: f64 = 0.6;
/// Outputs of an untrained network lie between about -1 and 1; places, over the whole axis.
const REACH: f64 = 6.0;

/// From places, widths and tails to the parameters of a mixture of splines.
#[derive(Clone, Debug)]
pub struct StudentTHead {
    components: usize,
    axes: Vec<Axis>,
}

#[derive(Clone, Debug)]
struct Axis {
    /// Positions of the knots in bins, from the first one.
    knots: Tensor<3>,
    /// The first knot.
    low: f64,
    /// The mean width of a bin.
    bin: f64,
    /// What an output of 1 means for a place, in bins.
    reach: f64,
}

impl StudentTHead {
    /// For a layer of splines; `None` for sums of squares.
    pub fn new(layer: &PalLayer) -> Option<StudentTHead> {
        let Recipe::Spline(recipe) = layer.compiled.recipe() else { return None };
        let axes = layer.compiled.support().grid().axes().iter().map(|axis| {
            let positions = axis.positions();
            let (low, high) = (positions[0], positions[axis.bins()]);
            let bin = (high - low) / axis.bins() as f64;
            let knots: Vec<f64> = positions.iter().map(|knot| (knot - low) / bin).collect();
            let shape = [1, 1, knots.len()];
            let knots = Tensor::from_data(TensorData::new(knots, shape), (&layer.device, layer.dtype));
            Axis { knots, low, bin, reach: axis.bins() as f64 / REACH }
        });
        Some(StudentTHead { components: recipe.components, axes: axes.collect() })
    }

    /// A logit, and three numbers per axis.
    fn per_component(&self) -> usize {
        1 + 3 * self.axes.len()
    }

    /// How many outputs a network must have.
    pub fn num_params(&self) -> usize {
        self.components * self.per_component()
    }

    /// The parameters of the layer for rows of outputs.
    ///
    /// # Panics
    ///
    /// As tensor operations do, if the shapes do not fit.
    pub fn params(&self, outputs: Tensor<2>) -> Tensor<2> {
        let rows = outputs.dims()[0];
        let outputs = outputs.reshape([rows, self.components, self.per_component()]);
        let column = |at: usize| outputs.clone().slice([0..rows, 0..self.components, at..at + 1]);
        let mut parts = vec![column(0)];
        for (j, axis) in self.axes.iter().enumerate() {
            let [place, width, tail] = [1, 2, 3].map(|k| column(3 * j + k));
            let (place, width) = (place * axis.reach, softplus(width) + NARROWEST);
            let tail = softplus(tail) + LONGEST_TAIL;
            let u = (axis.knots.clone() - place) / width.clone();
            let q = u.clone().square() / tail.clone() + 1.0;
            let log = q.clone().log() * tail * -0.5;
            // Densities do not depend on the scale, so its gradient is zero and need not be followed.
            let largest = log.clone().detach().max_dim(2);
            let values = (log - largest).exp();
            let derivatives = -values.clone() * u / (q * width);
            parts.extend([values, derivatives]);
        }
        let params = Tensor::cat(parts, 2);
        let width = params.dims()[2];
        params.reshape([rows, self.components * width])
    }

    /// Outputs to begin with, one row: a bump for each of as many clusters of the points.
    pub fn start(&self, points: &[f64], seed: u64) -> Vec<f64> {
        let mut outputs = Vec::with_capacity(self.num_params());
        for cluster in start::gaussians(points, self.axes.len(), self.components, seed) {
            outputs.push(cluster.log_size);
            for ((axis, mean), deviation) in self.axes.iter().zip(&cluster.mean).zip(&cluster.deviation) {
                let width = (deviation / axis.bin - NARROWEST).max(0.1);
                outputs.extend([(mean - axis.low) / axis.bin / axis.reach, inverse_softplus(width), 0.0]);
            }
        }
        outputs
    }
}

/// log(1 + e^x), without overflow.
fn softplus(x: Tensor<3>) -> Tensor<3> {
    let rest = (x.clone().abs().neg().exp() + 1.0).log();
    x.clamp_min(0.0) + rest
}

fn inverse_softplus(y: f64) -> f64 {
    y + (-(-y).exp_m1()).ln()
}
