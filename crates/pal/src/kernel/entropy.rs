//! Differential entropies of kernel mixtures, by adaptive cubature over triangles, with gradients.
//!
//! With the density r in coordinates of the box, `H = log |box| / 4 - integral of r log r`. Triangles are halved, worst
//! first, until the errors of all of them add up to less than the tolerance; before that, until no kernel with weight is
//! much smaller than its triangle. For `r = q / I` the derivative is
//!
//! ```text
//! dH = -(1 / I) integral of log r dq - (dI / I) H
//! ```
//!
//! at the same nodes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::KernelFamily;
use super::head::{KernelRow, MixtureGradient};
use super::triangles::Triangle;
use crate::density::gauss::Gauss;
use crate::interrupt::checkpoint;
use crate::query::{Entropy, EntropyOptions, QueryError};

/// The nodes per axis of the rule that counts, and of the one that it is compared with.
const NODES: [usize; 2] = [7, 5];

/// Kernels of less weight than this fraction of the tolerance may be missed by the nodes of a triangle.
const NEGLIGIBLE: f64 = 1e-3;

struct EntropyTriangle {
    value: f64,
    error: f64,
    number: usize,
    triangle: Triangle,
}

impl Ord for EntropyTriangle {
    fn cmp(&self, other: &Self) -> Ordering {
        self.error.total_cmp(&other.error).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for EntropyTriangle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for EntropyTriangle {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for EntropyTriangle {}

impl KernelFamily {
    /// The entropies of the densities of rows of parameters.
    pub fn entropies(&self, params: &[f64], options: &EntropyOptions) -> Result<Vec<Entropy>, QueryError> {
        let rows = self.rows(params)?;
        let answer = |row: &KernelRow| Ok(RowEntropy::integrate(self, row, options)?.0);
        rows.par_iter().map(answer).collect()
    }

    /// The entropies of the densities of rows of parameters, and their gradients with respect to these rows.
    pub fn entropies_with_gradient(
        &self,
        params: &[f64],
        options: &EntropyOptions,
    ) -> Result<(Vec<Entropy>, Vec<f64>), QueryError> {
        let rows = self.rows(params)?;
        let answer = |row: &KernelRow| {
            let (entropy, triangles) = RowEntropy::integrate(self, row, options)?;
            let mut gradient = vec![0.0; self.num_params()];
            self.entropy_gradient(row, &triangles, &mut gradient);
            Ok((entropy, gradient))
        };
        let parts: Vec<(Entropy, Vec<f64>)> = rows.par_iter().map(answer).collect::<Result<_, QueryError>>()?;
        let (values, gradients): (Vec<Entropy>, Vec<Vec<f64>>) = parts.into_iter().unzip();
        Ok((values, gradients.concat()))
    }

    fn entropy_gradient(&self, row: &KernelRow, triangles: &[Triangle], gradient: &mut [f64]) {
        let normaliser = self.normaliser(row);
        let gauss = Gauss::with_points(NODES[0]);
        let (mut from, mut entropy) = (MixtureGradient::zero(row), 0.0);
        for triangle in triangles {
            triangle.visit(&gauss, |v, weight| {
                let r = triangle.density(self, row, v) / normaliser;
                entropy -= weight * r * r.ln();
                let factor = -weight * r.ln() / normaliser;
                for k in triangle.kernels.iter().map(|k| *k as usize) {
                    if let Some((density, gradient)) = row.kernels[k].density_with_gradient(v) {
                        from.weights[k] += factor * row.weights[k] * density;
                        from.kernels[k].add(&gradient, factor * row.weights[k]);
                    }
                }
                from.uniform += factor / self.0.whole_volume;
            });
        }
        self.add_normaliser_gradient(row, -entropy / normaliser, &mut from);
        row.pull_back(&from, gradient);
    }
}

struct RowEntropy<'e> {
    family: &'e KernelFamily,
    row: &'e KernelRow,
    normaliser: f64,
    rules: [std::sync::Arc<Gauss>; 2],
    evaluations: usize,
    number: usize,
}

impl RowEntropy<'_> {
    /// The entropy, and the triangles that its cubature ended with.
    fn integrate(
        family: &KernelFamily,
        row: &KernelRow,
        options: &EntropyOptions,
    ) -> Result<(Entropy, Vec<Triangle>), QueryError> {
        let normaliser = family.normaliser(row);
        if !(normaliser >= f64::MIN_POSITIVE) {
            return Err(QueryError::Impossible);
        }
        let rules = NODES.map(Gauss::with_points);
        let mut work = RowEntropy { family, row, normaliser, rules, evaluations: 0, number: 0 };
        let hidden = NEGLIGIBLE * options.tolerance * normaliser;
        let (mut open, mut heap, mut error) = (Triangle::all(family, row), BinaryHeap::new(), 0.0);
        while let Some(triangle) = open.pop() {
            checkpoint();
            if triangle.hides_kernels(row, hidden) && work.evaluations < options.evaluations {
                open.extend(triangle.halves(row));
                continue;
            }
            let leaf = work.leaf(triangle);
            error += leaf.error;
            heap.push(leaf);
        }
        while error > options.tolerance && work.evaluations < options.evaluations {
            checkpoint();
            let Some(worst) = heap.pop() else { break };
            error -= worst.error;
            for half in worst.triangle.halves(row) {
                let leaf = work.leaf(half);
                error += leaf.error;
                heap.push(leaf);
            }
        }
        let mut leaves = heap.into_vec();
        leaves.sort_unstable_by_key(|leaf| leaf.number);
        // The running error has roundings of its own.
        let error: f64 = leaves.iter().map(|leaf| leaf.error).sum();
        let scale: f64 = family.half_widths().iter().map(|width| width.ln()).sum();
        let value = scale - leaves.iter().map(|leaf| leaf.value).sum::<f64>();
        let converged = error <= options.tolerance;
        let entropy = Entropy { value, error, evaluations: work.evaluations, converged };
        Ok((entropy, leaves.into_iter().map(|leaf| leaf.triangle).collect()))
    }

    /// The integral of r log r over a triangle.
    fn leaf(&mut self, triangle: Triangle) -> EntropyTriangle {
        let sums = [0, 1].map(|k| {
            let mut sum = 0.0;
            triangle.visit(&self.rules[k], |v, weight| {
                self.evaluations += 1;
                let r = triangle.density(self.family, self.row, v) / self.normaliser;
                sum += weight * r * r.ln();
            });
            sum
        });
        self.number += 1;
        EntropyTriangle { value: sums[0], error: (sums[0] - sums[1]).abs(), number: self.number, triangle }
    }
}

impl Triangle {
    /// Shows the nodes of a rule of Gauss and Legendre in collapsed coordinates, with their weights.
    fn visit(&self, rule: &Gauss, mut node: impl FnMut([f64; 2], f64)) {
        let [a, b, c] = self.corners;
        let size = 2.0 * self.area();
        for (s, outer) in rule.nodes.iter().zip(&rule.weights) {
            for (t, inner) in rule.nodes.iter().zip(&rule.weights) {
                let v = [0, 1].map(|j| a[j] + s * ((b[j] - a[j]) + t * (c[j] - b[j])));
                node(v, size * s * outer * inner);
            }
        }
    }
}
