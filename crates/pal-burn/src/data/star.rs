//! The N-star problem of the paper: inputs uniform on a star of radius 10, outputs around them by independent Cauchy distributions, cut off at the star.

use pal::formula::{Constraint, Membership, Polygon, Ring, Var, real};
use pal::number::to_f64;
use pal::random::Stream;
use pal::region::Region;
use pal::shapes;
use rayon::prelude::*;

/// The radius of the circle through the tips.
const RADIUS: f64 = 10.0;
/// Nodes of the quadrature for normalisers, per strip.
const NODES: usize = 24;

/// The scale of the Cauchy distributions.
fn scale() -> f64 {
    1.5 * 10f64.sqrt()
}

/// A star with its data.
#[derive(Debug)]
pub struct Star {
    constraint: Constraint,
    membership: Membership,
}

impl Star {
    /// With so many tips, an odd number from 3 on.
    pub fn new(tips: usize) -> Option<Star> {
        let ring = Ring::new(shapes::star(tips, RADIUS)).ok()?;
        let polygon = Polygon::new(ring, Vec::new()).ok()?;
        let formula = polygon.to_formula(&real("y1"), &real("y2"));
        let constraint = Constraint { formula, reals: vec![Var::new("y1"), Var::new("y2")], booleans: Vec::new() };
        let membership = constraint.membership().ok()?;
        Some(Star { constraint, membership })
    }

    /// Where outputs lie.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// Rows `x1, x2, y1, y2`; each row has random numbers of its own, so that more rows begin with the same ones.
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

    /// The mean of the true log-density over rows: what no model can beat but by chance.
    pub fn mean_log_density(&self, rows: &[f64]) -> Option<f64> {
        let region = Region::new(&self.constraint).ok()?;
        let mut triangles: Vec<[[f64; 2]; 3]> = Vec::new();
        for cell in region.decompose().ok()? {
            let corners: Vec<[f64; 2]> = cell
                .polytope()
                .exact_vertices()
                .iter()
                .map(|vertex| [to_f64(&vertex[0]), to_f64(&vertex[1])])
                .collect();
            triangles.extend(cell.polytope().triangulate().iter().map(|at| [0, 1, 2].map(|k| corners[at[k]])));
        }
        let each = rows.par_chunks_exact(4).map(|row| {
            let density = |j: usize| log_cauchy(row[2 + j] - row[j]);
            density(0) + density(1) - mass(&triangles, [row[0], row[1]]).ln()
        });
        let logs: Vec<f64> = each.collect();
        Some(logs.iter().sum::<f64>() / logs.len().max(1) as f64)
    }
}

fn log_cauchy(offset: f64) -> f64 {
    let z = offset / scale();
    -(std::f64::consts::PI * scale() * (1.0 + z * z)).ln()
}

/// The mass of the two Cauchy distributions around x on triangles: along the second axis in closed form, along the first by quadrature on strips
/// between corners.
fn mass(triangles: &[[[f64; 2]; 3]], x: [f64; 2]) -> f64 {
    let cdf = |offset: f64| (offset / scale()).atan() / std::f64::consts::PI;
    let (nodes, weights) = gauss(NODES);
    let mut sum = 0.0;
    for triangle in triangles {
        let mut corners = *triangle;
        corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [a, b, c] = corners;
        let on =
            |from: [f64; 2], to: [f64; 2], at: f64| from[1] + (to[1] - from[1]) * (at - from[0]) / (to[0] - from[0]);
        for (low, high, short) in [(a, b, (a, b)), (b, c, (b, c))] {
            let width = high[0] - low[0];
            if width <= 0.0 {
                continue;
            }
            for (node, weight) in nodes.iter().zip(&weights) {
                let at = low[0] + width * node;
                let (u, v) = (on(a, c, at), on(short.0, short.1, at));
                sum += weight * width * log_cauchy(at - x[0]).exp() * (cdf(u - x[1]) - cdf(v - x[1])).abs();
            }
        }
    }
    sum
}

/// Gauss-Legendre nodes and weights on [0, 1].
fn gauss(points: usize) -> (Vec<f64>, Vec<f64>) {
    let root = |k: usize| {
        let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (points as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..50 {
            let (mut below, mut p) = (0.0, 1.0);
            for j in 0..points {
                let j = j as f64;
                (below, p) = (p, ((2.0 * j + 1.0) * x * p - j * below) / (j + 1.0));
            }
            slope = points as f64 * (x * p - below) / (x * x - 1.0);
            x -= p / slope;
        }
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..points).map(root).unzip()
}
