//! Tables of cut bins from the trapezoids of their parts.
//!
//! On a trapezoid between two verticals, with the lower end l(x) and the height h(x),
//!
//! ```text
//! integral of B_i(x) B_j(y)  =  integral over x of  B_i(x) h(x) (mean of B_j over [l(x), l(x) + h(x)])
//! ```
//!
//! The mean is exact with four Gauss-Legendre nodes, and the outer integrand, of degree 13, with seven. All terms are
//! positive, and heights are known to all digits, so that a sliver keeps its relative accuracy.
//!
//! Where a part is no sliver, less work is enough: by the divergence theorem its integral is a sum over its
//! edges, counter-clockwise, in which those along a vertical and along the lower side of the bin have no part,
//!
//! ```text
//! integral of B_i(x) B_j(y)  =  - sum over edges of the integral of B_i(x) A_j(y) dx,      A_j = integral of B_j from 0
//! ```
//!
//! with an absolute error of some units of rounding.

// Plain loops over indices become single instructions, as in `density/lanes.rs`.
#![allow(clippy::needless_range_loop)]

use nalgebra::SMatrix;

use super::super::hermite::{self, SQUARE};
use crate::density::gauss::Gauss;
use crate::density::lanes::{LaneWork, Simd, dispatch};
use crate::region::planar::{LocalEdge, Trapezoid};

/// The number of entries of a table.
pub(super) const TABLE: usize = SQUARE * SQUARE;

/// How many digits the tables of cut bins keep. They take most of the memory of compiled regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TablePrecision {
    /// All: for log-densities in float32 and in float64.
    #[default]
    Float64,
    /// As many as log-densities in float32 need, in half of the memory.
    Float32,
}

/// The entries of tables, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TableEntries {
    Float64(Vec<f64>),
    Float32(Vec<f32>),
}

impl Default for TableEntries {
    fn default() -> Self {
        TableEntries::Float64(Vec::new())
    }
}

impl TableEntries {
    pub fn new(precision: TablePrecision) -> TableEntries {
        match precision {
            TablePrecision::Float64 => TableEntries::Float64(Vec::new()),
            TablePrecision::Float32 => TableEntries::Float32(Vec::new()),
        }
    }

    fn push(&mut self, table: &[f64; TABLE]) {
        match self {
            TableEntries::Float64(entries) => entries.extend_from_slice(table),
            TableEntries::Float32(entries) => entries.extend(table.iter().map(|x| *x as f32)),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            TableEntries::Float64(entries) => size_of_val(&**entries),
            TableEntries::Float32(entries) => size_of_val(&**entries),
        }
    }

    pub fn shrink_to_fit(&mut self) {
        match self {
            TableEntries::Float64(entries) => entries.shrink_to_fit(),
            TableEntries::Float32(entries) => entries.shrink_to_fit(),
        }
    }
}

/// A power of two, so that a row of a table is one register.
pub(super) const WIDE: usize = 8;

/// One number for each node of the outer rule, and one more.
type AtNodes = [f64; WIDE];

/// What is needed to make tables in values at nodes.
#[derive(Clone, Debug)]
pub(super) struct TableRule {
    /// Nodes and weights along the first axis; the last node has weight 0.
    outer: [AtNodes; 2],
    inner: [(f64, f64); 4],
    /// From Bernstein coefficients to values at nodes: `table = from^T M from`.
    pub from: [[f64; WIDE]; SQUARE],
}

impl TableRule {
    /// `from` takes the numbers of a bin to its Bernstein coefficients.
    pub fn new(from: &SMatrix<f64, SQUARE, SQUARE>) -> TableRule {
        let (seven, four) = (Gauss::with_points(SQUARE), Gauss::with_points(4));
        let filled = |numbers: &[f64], last: f64| std::array::from_fn(|k| numbers.get(k).copied().unwrap_or(last));
        let row = |k: usize| std::array::from_fn(|node| if node < SQUARE { from[(k, node)] } else { 0.0 });
        TableRule {
            outer: [filled(&seven.nodes, 0.5), filled(&seven.weights, 0.0)],
            inner: std::array::from_fn(|k| (four.nodes[k], four.weights[k])),
            from: std::array::from_fn(row),
        }
    }

    /// Appends the table of a bin whose volume is a fraction of the box, given its trapezoids.
    pub fn append(&self, fraction: f64, trapezoids: &[Trapezoid], tables: &mut TableEntries) {
        tables.push(&dispatch(TableWork { rule: self, fraction, trapezoids }));
    }

    /// The same, given the edges of its parts.
    pub fn append_edges(&self, fraction: f64, edges: &[LocalEdge], tables: &mut TableEntries) {
        tables.push(&dispatch(EdgeWork { rule: self, fraction, edges }));
    }

    /// From integrals of Bernstein polynomials to a table in values at nodes: along the second axis, then along the
    /// first.
    #[inline(always)]
    pub fn at_nodes(&self, sums: &[[f64; WIDE]; SQUARE]) -> [f64; TABLE] {
        let mut half = [[0.0; WIDE]; SQUARE];
        for (out, row) in half.iter_mut().zip(sums) {
            for (value, from) in row.iter().zip(&self.from) {
                for (out, from) in out.iter_mut().zip(from) {
                    *out += value * from;
                }
            }
        }
        let mut table = [0.0; TABLE];
        for (node, out) in table.chunks_exact_mut(SQUARE).enumerate() {
            let mut row = [0.0; WIDE];
            for (values, from) in half.iter().zip(&self.from) {
                for (sum, value) in row.iter_mut().zip(values) {
                    *sum += from[node] * value;
                }
            }
            out.copy_from_slice(&row[..SQUARE]);
        }
        table
    }
}

/// Adds the sum over nodes of `first[i] second[j] factor` to the integrals of products.
#[inline(always)]
fn add_products(
    first: &[AtNodes; SQUARE],
    second: &[AtNodes; SQUARE],
    factors: &AtNodes,
    sums: &mut [[f64; WIDE]; SQUARE],
) {
    // From numbers per node to numbers per function.
    let mut across = [[0.0; WIDE]; SQUARE];
    for (k, across) in across.iter_mut().enumerate() {
        for (j, second) in second.iter().enumerate() {
            across[j] = second[k] * factors[k];
        }
    }
    for (row, values) in sums.iter_mut().zip(first) {
        for (value, across) in values.iter().zip(&across) {
            for k in 0..WIDE {
                row[k] += value * across[k];
            }
        }
    }
}

struct EdgeWork<'r> {
    rule: &'r TableRule,
    fraction: f64,
    edges: &'r [LocalEdge],
}

impl LaneWork for EdgeWork<'_> {
    type Output = [f64; TABLE];

    #[inline(always)]
    fn run<V: Simd>(self, _: V) -> [f64; TABLE] {
        let mut sums = [[0.0; WIDE]; SQUARE];
        let [nodes, weights] = &self.rule.outer;
        for LocalEdge { from, to } in self.edges {
            let (run, rise) = (to[0] - from[0], to[1] - from[1]);
            let (mut x, mut y, mut factors) = ([0.0; WIDE], [0.0; WIDE], [0.0; WIDE]);
            for k in 0..WIDE {
                x[k] = from[0] + nodes[k] * run;
                y[k] = from[1] + nodes[k] * rise;
                factors[k] = weights[k] * (-run * self.fraction);
            }
            add_products(&basis(&x, &1.0), &integrals(&y), &factors, &mut sums);
        }
        self.rule.at_nodes(&sums)
    }
}

struct TableWork<'r> {
    rule: &'r TableRule,
    fraction: f64,
    trapezoids: &'r [Trapezoid],
}

impl LaneWork for TableWork<'_> {
    type Output = [f64; TABLE];

    #[inline(always)]
    fn run<V: Simd>(self, _: V) -> [f64; TABLE] {
        let mut sums = [[0.0; WIDE]; SQUARE];
        let [nodes, weights] = &self.rule.outer;
        for trapezoid in self.trapezoids {
            // Side by side for all nodes of the outer rule.
            let (mut heights, mut lows, mut places, mut factors) = ([0.0; WIDE], [0.0; WIDE], [0.0; WIDE], [0.0; WIDE]);
            for k in 0..WIDE {
                let (s, r) = (nodes[k], 1.0 - nodes[k]);
                heights[k] = trapezoid.height[0] * r + trapezoid.height[1] * s;
                lows[k] = trapezoid.low[0] * r + trapezoid.low[1] * s;
                places[k] = trapezoid.x + s * trapezoid.width;
                factors[k] = weights[k] * (trapezoid.width * self.fraction) * heights[k];
            }
            let mut means = [[0.0; WIDE]; SQUARE];
            for (r, weight) in &self.rule.inner {
                let mut t = lows;
                for k in 0..WIDE {
                    t[k] += r * heights[k];
                }
                for (mean, values) in means.iter_mut().zip(basis(&t, weight)) {
                    for k in 0..WIDE {
                        mean[k] += values[k];
                    }
                }
            }
            add_products(&basis(&places, &1.0), &means, &factors, &mut sums);
        }
        self.rule.at_nodes(&sums)
    }
}

/// Bernstein polynomials of degree 6 at several places, times a factor.
#[inline(always)]
fn basis(t: &AtNodes, factor: &f64) -> [AtNodes; SQUARE] {
    let (mut up, mut down) = ([[1.0; WIDE]; SQUARE], [[1.0; WIDE]; SQUARE]);
    for k in 1..SQUARE {
        for lane in 0..WIDE {
            up[k][lane] = up[k - 1][lane] * t[lane];
            down[k][lane] = down[k - 1][lane] * (1.0 - t[lane]);
        }
    }
    let mut values = [[0.0; WIDE]; SQUARE];
    for k in 0..SQUARE {
        let factor = factor * hermite::BINOMIAL_6[k];
        for lane in 0..WIDE {
            values[k][lane] = (factor * up[k][lane]) * down[SQUARE - 1 - k][lane];
        }
    }
    values
}

/// The integrals from 0 of the Bernstein polynomials of degree 6 at several places: sums of those of degree 7.
#[inline(always)]
fn integrals(t: &AtNodes) -> [AtNodes; SQUARE] {
    const BINOMIAL_7: [f64; SQUARE + 1] = [1.0, 7.0, 21.0, 35.0, 35.0, 21.0, 7.0, 1.0];
    let (mut up, mut down) = ([[1.0; WIDE]; SQUARE + 1], [[1.0; WIDE]; SQUARE + 1]);
    for k in 1..=SQUARE {
        for lane in 0..WIDE {
            up[k][lane] = up[k - 1][lane] * t[lane];
            down[k][lane] = down[k - 1][lane] * (1.0 - t[lane]);
        }
    }
    let (mut values, mut sum) = ([[0.0; WIDE]; SQUARE], [0.0; WIDE]);
    for k in (0..SQUARE).rev() {
        let factor = BINOMIAL_7[k + 1] / SQUARE as f64;
        for lane in 0..WIDE {
            sum[lane] += (factor * up[k + 1][lane]) * down[SQUARE - 1 - k][lane];
        }
        values[k] = sum;
    }
    values
}
