//! The N-star problem (PAL paper, Section 7, RQ2, and Appendix E.3): inputs are uniform on a star of radius 10; outputs
//! follow independent Cauchy distributions around the input, truncated to the star.

use pal::formula::{Constraint, Membership, Polygon, Ring, Var, real};
use pal::number::to_f64;
use pal::random::Stream;
use pal::shapes;
use rayon::prelude::*;

/// The radius of the circle through the tips.
const RADIUS: f64 = 10.0;
/// The number of quadrature nodes per edge for the normalisers: edges are short compared with the width of the
/// distributions.
const NODES: usize = 16;

/// Returns the scale of the Cauchy distributions.
fn scale() -> f64 {
    1.5 * 10f64.sqrt()
}

/// A star, which generates rows of data.
#[derive(Debug)]
pub struct Star {
    constraint: Constraint,
    membership: Membership,
    /// In order along the boundary.
    corners: Vec<[f64; 2]>,
}

impl Star {
    /// Makes the star with the given number of tips; `None` unless it is odd and at least 3.
    pub fn new(tips: usize) -> Option<Star> {
        let corners = shapes::star(tips, RADIUS);
        let places = corners.iter().map(|corner| [to_f64(&corner[0]), to_f64(&corner[1])]).collect();
        let ring = Ring::new(corners).ok()?;
        let polygon = Polygon::new(ring, Vec::new()).ok()?;
        let formula = polygon.to_formula(&real("y1"), &real("y2"));
        let constraint = Constraint { formula, reals: vec![Var::new("y1"), Var::new("y2")], booleans: Vec::new() };
        let membership = constraint.membership().ok()?;
        Some(Star { constraint, membership, corners: places })
    }

    /// Returns the constraint that inputs and outputs satisfy: membership in the star.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// Generates rows `x1, x2, y1, y2`. Each row has random numbers of its own: a longer table begins with the same
    /// rows.
    pub fn rows(&self, count: usize, seed: u64) -> Vec<f64> {
        let row = |index: usize| {
            let mut stream = Stream::new(seed, index as u64);
            let x = self.first_inside(|| [0, 1].map(|_| RADIUS * (2.0 * stream.unit() - 1.0)));
            let cauchy = |u: f64| scale() * (std::f64::consts::PI * (u - 0.5)).tan();
            let y = self.first_inside(|| x.map(|x| x + cauchy(stream.unit())));
            [x[0], x[1], y[0], y[1]]
        };
        (0..count).into_par_iter().flat_map_iter(row).collect()
    }

    fn first_inside(&self, mut draw: impl FnMut() -> [f64; 2]) -> [f64; 2] {
        loop {
            let point = draw();
            if self.membership.contains(&point) {
                return point;
            }
        }
    }

    /// Returns the mean of the true log-density over rows, which no predictor exceeds except by chance.
    pub fn mean_log_density(&self, rows: &[f64]) -> f64 {
        let (nodes, weights) = gauss(NODES);
        let each = rows.par_chunks_exact(4).map(|row| {
            let density = |j: usize| log_cauchy(row[2 + j] - row[j]);
            density(0) + density(1) - self.mass([row[0], row[1]], &nodes, &weights).ln()
        });
        let logs: Vec<f64> = each.collect();
        logs.iter().sum::<f64>() / logs.len().max(1) as f64
    }

    /// Returns the mass of the two Cauchy distributions around `x` on the star. By Green's theorem it is an integral
    /// along the boundary, of the density of the first coordinate times the distribution function of the second.
    fn mass(&self, x: [f64; 2], nodes: &[f64], weights: &[f64]) -> f64 {
        let cdf = |offset: f64| (offset / scale()).atan() / std::f64::consts::PI;
        let mut sum = 0.0;
        for (k, from) in self.corners.iter().enumerate() {
            let to = self.corners[(k + 1) % self.corners.len()];
            let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
            for (node, weight) in nodes.iter().zip(weights) {
                let at = [from[0] + dx * node, from[1] + dy * node];
                sum += weight * dx * log_cauchy(at[0] - x[0]).exp() * cdf(at[1] - x[1]);
            }
        }
        sum.abs()
    }
}

fn log_cauchy(offset: f64) -> f64 {
    let z = offset / scale();
    -(std::f64::consts::PI * scale() * (1.0 + z * z)).ln()
}

/// Returns Gauss-Legendre nodes and weights on [0, 1], by Newton's method.
fn gauss(points: usize) -> (Vec<f64>, Vec<f64>) {
    let root = |k: usize| {
        let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (points as f64 + 0.5)).cos();
        let mut derivative = 1.0;
        for _ in 0..50 {
            let (mut below, mut p) = (0.0, 1.0);
            for j in 0..points {
                let j = j as f64;
                (below, p) = (p, ((2.0 * j + 1.0) * x * p - j * below) / (j + 1.0));
            }
            derivative = points as f64 * (x * p - below) / (x * x - 1.0);
            x -= p / derivative;
        }
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * derivative * derivative))
    };
    (0..points).map(root).unzip()
}
