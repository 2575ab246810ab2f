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

use nalgebra::SMatrix;

use super::super::hermite::{self, SQUARE};
use crate::density::gauss::Gauss;
use crate::density::lanes::{LaneWork, Simd, dispatch};
use crate::region::planar::Trapezoid;

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
const WIDE: usize = 8;

/// What is needed to make tables in values at nodes.
#[derive(Clone, Debug)]
pub(super) struct TableRule {
    outer: Vec<(f64, f64)>,
    inner: Vec<(f64, f64)>,
    /// From Bernstein coefficients to values at nodes: `table = from^T M from`.
    from: [[f64; WIDE]; SQUARE],
}

impl TableRule {
    /// `from` takes the numbers of a bin to its Bernstein coefficients.
    pub fn new(from: &SMatrix<f64, SQUARE, SQUARE>) -> TableRule {
        let nodes = |count: usize| {
            let gauss = Gauss::with_points(count);
            gauss.nodes.iter().copied().zip(gauss.weights.iter().copied()).collect()
        };
        let row = |k: usize| std::array::from_fn(|node| if node < SQUARE { from[(k, node)] } else { 0.0 });
        TableRule { outer: nodes(7), inner: nodes(4), from: std::array::from_fn(row) }
    }

    /// Appends the table of a bin whose volume is a fraction of the box, given its trapezoids.
    pub fn append<'s>(
        &self,
        fraction: f64,
        trapezoids: impl Iterator<Item = &'s Trapezoid>,
        tables: &mut TableEntries,
    ) {
        let table = dispatch(TableWork { rule: self, fraction, trapezoids });
        match tables {
            TableEntries::Float64(entries) => entries.extend_from_slice(&table),
            TableEntries::Float32(entries) => entries.extend(table.iter().map(|x| *x as f32)),
        }
    }
}

struct TableWork<'r, S> {
    rule: &'r TableRule,
    fraction: f64,
    trapezoids: S,
}

impl<'s, S: Iterator<Item = &'s Trapezoid>> LaneWork for TableWork<'_, S> {
    type Output = [f64; TABLE];

    #[inline(always)]
    fn run<V: Simd>(self, _: V) -> [f64; TABLE] {
        let mut sums = [[0.0; WIDE]; SQUARE];
        for trapezoid in self.trapezoids {
            for (s, weight) in &self.rule.outer {
                let height = trapezoid.height[0] * (1.0 - s) + trapezoid.height[1] * s;
                let low = trapezoid.low[0] * (1.0 - s) + trapezoid.low[1] * s;
                let mut means = [0.0; WIDE];
                for (r, weight) in &self.rule.inner {
                    let values = basis(low + r * height);
                    for (mean, value) in means.iter_mut().zip(values) {
                        *mean += weight * value;
                    }
                }
                let factor = weight * trapezoid.width * height * self.fraction;
                let values = basis(trapezoid.x + s * trapezoid.width);
                for (row, value) in sums.iter_mut().zip(values) {
                    let value = value * factor;
                    for (sum, mean) in row.iter_mut().zip(means) {
                        *sum += value * mean;
                    }
                }
            }
        }
        // Along the second axis, then along the first.
        let mut half = [[0.0; WIDE]; SQUARE];
        for (out, row) in half.iter_mut().zip(&sums) {
            for (value, from) in row.iter().zip(&self.rule.from) {
                for (out, from) in out.iter_mut().zip(from) {
                    *out += value * from;
                }
            }
        }
        let mut table = [0.0; TABLE];
        for (node, out) in table.chunks_exact_mut(SQUARE).enumerate() {
            let mut row = [0.0; WIDE];
            for (values, from) in half.iter().zip(&self.rule.from) {
                for (sum, value) in row.iter_mut().zip(values) {
                    *sum += from[node] * value;
                }
            }
            out.copy_from_slice(&row[..SQUARE]);
        }
        table
    }
}

/// Bernstein polynomials of degree 6, and a zero.
#[inline(always)]
fn basis(t: f64) -> [f64; WIDE] {
    let (s, mut up, mut down) = (1.0 - t, [1.0; SQUARE], [1.0; SQUARE]);
    for k in 1..SQUARE {
        up[k] = up[k - 1] * t;
        down[k] = down[k - 1] * s;
    }
    let mut values = [0.0; WIDE];
    for k in 0..SQUARE {
        values[k] = hermite::BINOMIAL_6[k] * up[k] * down[SQUARE - 1 - k];
    }
    values
}
