//! Cubature on the elements of a mesh that is exact for polynomials up to a degree.
//!
//! Boxes take products of Gauss-Legendre rules. Simplices take the same products in collapsed coordinates (see
//! [`super::mesh`]), whose weights are positive. Where that needs too many nodes, in many dimensions, simplices take
//! the Grundmann-Moeller rule of the PAL paper (Section 4), whose weights alternate in sign but whose number of nodes
//! grows like a power of the dimension, with half the degree as the exponent.

use std::sync::Arc;

use super::gauss::Gauss;
use super::mesh::{Degree, Element, Shape};
use crate::interrupt::checkpoint;
use crate::moments::gasp::GrundmannMoellerRule;

/// Simplices take the rule with positive weights up to this many nodes. In six variables and degree 4 it has 3600, where
/// the other one has 36.
const MAX_POSITIVE: usize = 3_000;
/// Up to this many nodes they take it where the Grundmann-Moeller rule would lose digits.
const MAX_POSITIVE_AGAINST_CANCELLATION: usize = 50_000;
/// An alternating rule loses digits where the magnitudes of its weights, which sum to 1, add up to this.
const CANCELLATION: f64 = 30.0;
/// The number of nodes that are visited together.
const BLOCK: usize = 256;
/// The largest number of nodes of a rule.
const MAX_NODES: usize = 2_000_000;

/// A cubature rule on the unit cube or on a simplex: nodes and weights. The weights sum to 1.
#[derive(Clone, Debug)]
pub(crate) struct CubatureRule {
    /// The number of coordinates of a node.
    width: usize,
    /// Coordinates in the unit cube for boxes, barycentric coordinates for simplices.
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl CubatureRule {
    /// The rule for boxes, exact up to `degree` in each variable.
    pub fn cuboid(dimension: usize, degree: usize) -> CubatureRule {
        CubatureRule::product(&vec![Gauss::for_degree(degree); dimension])
    }

    /// The rule for simplices, exact up to the total degree `degree`.
    pub fn simplex(dimension: usize, degree: usize) -> CubatureRule {
        let positive = positive_nodes(dimension, degree);
        if positive > MAX_POSITIVE
            && let Some(rule) = CubatureRule::alternating(dimension, degree)
            && (positive > MAX_POSITIVE_AGAINST_CANCELLATION
                || rule.weights.iter().map(|w| w.abs()).sum::<f64>() < CANCELLATION)
        {
            return rule;
        }
        let n = dimension;
        let axes: Vec<Arc<Gauss>> = (0..n).map(|k| Gauss::for_degree(degree + n - 1 - k)).collect();
        let cube = CubatureRule::product(&axes);
        let mut rule = CubatureRule { width: n + 1, nodes: Vec::new(), weights: cube.weights };
        let all: Vec<Vec<f64>> =
            if n == 0 { vec![Vec::new()] } else { cube.nodes.chunks(n).map(<[f64]>::to_vec).collect() };
        for (s, weight) in all.iter().zip(&mut rule.weights) {
            let mut product = 1.0;
            for (k, s) in s.iter().enumerate() {
                rule.nodes.push(product * (1.0 - s));
                product *= s;
                *weight *= (n - k) as f64 * s.powi((n - 1 - k) as i32);
            }
            rule.nodes.push(product);
        }
        rule
    }

    /// The Grundmann-Moeller rule, if it has a bearable number of nodes.
    fn alternating(dimension: usize, degree: usize) -> Option<CubatureRule> {
        let known = GrundmannMoellerRule::shared(dimension, GrundmannMoellerRule::index_for_degree(degree)).ok()?;
        let n_factorial: f64 = (1..=dimension).map(|k| k as f64).product();
        let mut rule = CubatureRule { width: dimension + 1, nodes: Vec::new(), weights: Vec::new() };
        for at in 0..known.len() {
            let point = known.point(at);
            rule.nodes.push(1.0 - point.iter().sum::<f64>());
            rule.nodes.extend(point);
            rule.weights.push(known.weight(at) * n_factorial);
        }
        Some(rule)
    }

    /// The product of rules along every axis.
    fn product(axes: &[Arc<Gauss>]) -> CubatureRule {
        let mut rule = CubatureRule { width: axes.len(), nodes: Vec::new(), weights: Vec::new() };
        let mut at = vec![0; axes.len()];
        loop {
            rule.nodes.extend(at.iter().zip(axes).map(|(i, axis)| axis.nodes[*i]));
            rule.weights.push(at.iter().zip(axes).map(|(i, axis)| axis.weights[*i]).product());
            let Some(next) = (0..axes.len()).rev().find(|k| at[*k] + 1 < axes[*k].nodes.len()) else { break };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
        rule
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// The weights of all nodes.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Nodes with their weights.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        (0..self.len()).map(|at| (&self.nodes[at * self.width..(at + 1) * self.width], self.weights[at]))
    }
}

/// The number of nodes of the rule with positive weights on simplices.
fn positive_nodes(dimension: usize, degree: usize) -> usize {
    let axes = (0..dimension).map(|k| (degree + k) / 2 + 1);
    axes.fold(1usize, |product, m| product.saturating_mul(m))
}

/// The two rules, for boxes and for simplices, that integrate polynomials up to a degree over the elements of a mesh.
#[derive(Clone, Debug)]
pub(crate) struct MeshCubature {
    cuboid: CubatureRule,
    simplex: CubatureRule,
}

impl MeshCubature {
    /// MeshCubature that are exact for polynomials of the given degree.
    pub fn new(dimension: usize, degree: Degree) -> MeshCubature {
        MeshCubature {
            cuboid: CubatureRule::cuboid(dimension, degree.axis),
            simplex: CubatureRule::simplex(dimension, degree.total),
        }
    }

    /// Whether the rules of [`MeshCubature::new`] have a bearable number of nodes.
    pub fn feasible(dimension: usize, degree: Degree) -> bool {
        let cuboid = (0..dimension).fold(1usize, |product, _| product.saturating_mul(degree.axis / 2 + 1));
        let positive = positive_nodes(dimension, degree.total);
        cuboid <= MAX_NODES
            && (positive <= MAX_NODES
                || GrundmannMoellerRule::shared(dimension, GrundmannMoellerRule::index_for_degree(degree.total))
                    .is_ok_and(|rule| rule.len() <= MAX_NODES))
    }

    /// The rule for elements of a shape.
    pub fn of(&self, shape: &Shape) -> &CubatureRule {
        match shape {
            Shape::Cuboid(..) => &self.cuboid,
            Shape::Simplex(_) => &self.simplex,
        }
    }

    /// Visits all nodes of an element in blocks: their local coordinates, the first ones of all nodes first, and weights
    /// that sum to 1. `points` is memory for the coordinates.
    pub fn visit_blocks(&self, element: &Element, points: &mut Vec<f64>, mut visit: impl FnMut(&[f64], &[f64])) {
        checkpoint();
        let n = element.bin.len();
        let rule = self.of(&element.shape);
        let mut t = vec![0.0; n];
        for (nodes, weights) in rule.nodes.chunks(BLOCK * rule.width).zip(rule.weights.chunks(BLOCK)) {
            points.resize(weights.len() * n, 0.0);
            for (i, node) in nodes.chunks_exact(rule.width).enumerate() {
                element.shape.at(node, &mut t);
                t.iter().enumerate().for_each(|(j, t)| points[j * weights.len() + i] = *t);
            }
            visit(points, weights);
        }
    }

    /// Visits all nodes of an element in local coordinates of its bin, with weights that sum to its volume.
    pub fn visit(&self, element: &Element, mut visit: impl FnMut(&[f64], f64)) {
        checkpoint();
        let mut t = vec![0.0; element.bin.len()];
        for (node, weight) in self.of(&element.shape).iter() {
            element.shape.at(node, &mut t);
            visit(&t, weight * element.volume);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of x_1^a x_2^b .. over the unit simplex is n! a! b! .. / (n + a + b + ..)!.
    #[test]
    fn simplex_rules_are_exact() {
        let factorial = |k: usize| (1..=k).map(|k| k as f64).product::<f64>();
        for (n, degree) in [(1, 5), (2, 12), (2, 48), (3, 18), (4, 6), (10, 4), (7, 6)] {
            let rule = CubatureRule::simplex(n, degree);
            let total: f64 = rule.iter().map(|(_, w)| w).sum();
            assert!((total - 1.0).abs() < 1e-12, "{n} {degree}: {total}");
            for first in [0, 1, degree / 2, degree] {
                let (a, b) = (first, degree - first);
                let value = |l: &[f64]| l[1].powi(a as i32) * l[n].powi(b as i32);
                let sum: f64 = rule.iter().map(|(l, w)| w * value(l)).sum();
                let powers = if n == 1 { factorial(degree) } else { factorial(a) * factorial(b) };
                let want = factorial(n) * powers / factorial(n + degree);
                assert!((sum / want - 1.0).abs() < 1e-10, "{n} {degree} {a}: {sum} {want}");
            }
        }
    }
}
