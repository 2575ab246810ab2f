//! Tables of cut bins in three variables from the faces of their parts.
//!
//! With `N_k` the polynomials of degree 6 that are 1 at one node of a bin and 0 at the others, the divergence theorem makes
//! the integral over a part a sum over its faces, in which those orthogonal to the first two axes and in the lower
//! side of the bin have no part:
//!
//! ```text
//! integral of N_i(x) N_j(y) N_k(z)  =  sum over faces of the integral of N_i(x) N_j(y) A_k(z(x, y)) dx dy,
//!                                       A_k = integral of N_k from 0
//! ```
//!
//! with dx dy negative where a face is seen from below. Along a strip of a face between two planes orthogonal to the
//! first axis, seven Gauss-Legendre nodes are exact along the second axis (degree 13) and eleven along the first one
//! (degree 20). The error is some units of rounding of the whole bin.

// Plain loops over indices become single instructions, as in `density/lanes.rs`.
#![allow(clippy::needless_range_loop)]

use super::super::hermite::{BINOMIAL_6, SQUARE};
use super::tables::{TableRule, WIDE};
use crate::density::gauss::Gauss;
use crate::density::lanes::{LaneWork, Simd, dispatch};
use crate::region::solid::FaceStrip;

/// The number of entries of a table.
pub(super) const SOLID_TABLE: usize = SQUARE * SQUARE * SQUARE;
/// The number of nodes along the first axis.
const OUTER: usize = 11;

/// One number for each polynomial, and one more.
type Row = [f64; WIDE];

/// What is needed to make tables in values at nodes.
#[derive(Clone, Debug)]
pub(super) struct SolidTableRule {
    rule: TableRule,
    inner: [(f64, f64); SQUARE],
    outer: [(f64, f64); OUTER],
    /// The coefficients of `N_k` and `A_k` in powers of u = 2 t - 1, whose magnitudes are small.
    values: [Row; SQUARE],
    integrals: [Row; SQUARE + 1],
}

impl SolidTableRule {
    pub fn new(rule: TableRule) -> SolidTableRule {
        let (inner, outer) = (Gauss::with_points(SQUARE), Gauss::with_points(OUTER));
        let (mut values, mut integrals) = ([[0.0; WIDE]; SQUARE], [[0.0; WIDE]; SQUARE + 1]);
        for (b, from) in rule.from.iter().enumerate() {
            // B_b = C(6, b) (1 + u)^b (1 - u)^(6 - b) / 64.
            let mut powers = [0.0; SQUARE];
            powers[0] = BINOMIAL_6[b] / 64.0;
            for factor in 0..SQUARE - 1 {
                let sign = if factor < b { 1.0 } else { -1.0 };
                for p in (1..SQUARE).rev() {
                    powers[p] += sign * powers[p - 1];
                }
            }
            for (row, power) in values.iter_mut().zip(powers) {
                row.iter_mut().zip(from).for_each(|(sum, from)| *sum += power * from);
            }
        }
        for (p, row) in values.iter().enumerate() {
            for k in 0..SQUARE {
                integrals[p + 1][k] = row[k] / (2.0 * (p + 1) as f64);
                integrals[0][k] += if p % 2 == 0 { integrals[p + 1][k] } else { -integrals[p + 1][k] };
            }
        }
        SolidTableRule {
            rule,
            inner: std::array::from_fn(|k| (inner.nodes[k], inner.weights[k])),
            outer: std::array::from_fn(|k| (outer.nodes[k], outer.weights[k])),
            values,
            integrals,
        }
    }

    /// Appends the table of a bin whose volume is a fraction of the box, given the strips of its faces.
    pub fn append(&self, fraction: f64, strips: &[FaceStrip], tables: &mut Vec<f64>) {
        for row in dispatch(StripWork { rule: self, fraction, strips }).iter().flatten() {
            tables.extend_from_slice(&row[..SQUARE]);
        }
    }

    /// Appends a table, given its integrals of products of Bernstein polynomials: converts them along the last axes, then
    /// along the first one.
    pub fn append_bernstein(&self, integrals: &[f64], tables: &mut Vec<f64>) {
        let halves: Vec<_> = integrals
            .chunks_exact(SQUARE * SQUARE)
            .map(|plane| {
                let mut rows = [[0.0; WIDE]; SQUARE];
                let from = plane.chunks_exact(SQUARE);
                rows.iter_mut().zip(from).for_each(|(row, from)| row[..SQUARE].copy_from_slice(from));
                self.rule.at_nodes(&rows)
            })
            .collect();
        for node in 0..SQUARE {
            let mut plane = [0.0; SQUARE * SQUARE];
            for (half, from) in halves.iter().zip(&self.rule.from) {
                plane.iter_mut().zip(half).for_each(|(sum, value)| *sum += from[node] * value);
            }
            tables.extend_from_slice(&plane);
        }
    }
}

/// Polynomials, given by their coefficients in powers of u = 2 t - 1, at t.
#[inline(always)]
fn evaluate<const TERMS: usize>(coefficients: &[Row; TERMS], t: f64) -> Row {
    let u = 2.0 * t - 1.0;
    let mut values = coefficients[TERMS - 1];
    for row in coefficients[..TERMS - 1].iter().rev() {
        for k in 0..WIDE {
            values[k] = values[k] * u + row[k];
        }
    }
    values
}

struct StripWork<'r> {
    rule: &'r SolidTableRule,
    fraction: f64,
    strips: &'r [FaceStrip],
}

impl LaneWork for StripWork<'_> {
    type Output = [[Row; SQUARE]; SQUARE];

    #[inline(always)]
    fn run<V: Simd>(self, _: V) -> [[Row; SQUARE]; SQUARE] {
        let StripWork { rule, fraction, strips } = self;
        let mut sums = [[[0.0; WIDE]; SQUARE]; SQUARE];
        for FaceStrip { x, from, to } in strips {
            let width = x[1] - x[0];
            let mut planes = [[[0.0; WIDE]; SQUARE]; OUTER];
            let mut firsts = [[0.0; WIDE]; OUTER];
            for (((s, weight), plane), first) in rule.outer.iter().zip(&mut planes).zip(&mut firsts) {
                let between = |ends: &[[f64; 2]; 2], axis: usize| ends[0][axis] + s * (ends[1][axis] - ends[0][axis]);
                let (y, z) = (between(from, 0), between(from, 1));
                let (run, rise) = (between(to, 0) - y, between(to, 1) - z);
                let factor = weight * width * run * fraction;
                let mut rows = [[0.0; WIDE]; SQUARE];
                for (t, weight) in &rule.inner {
                    let (second, mut third) =
                        (evaluate(&rule.values, y + t * run), evaluate(&rule.integrals, z + t * rise));
                    third.iter_mut().for_each(|x| *x *= weight * factor);
                    for j in 0..SQUARE {
                        for k in 0..WIDE {
                            rows[j][k] += second[j] * third[k];
                        }
                    }
                }
                *plane = rows;
                *first = evaluate(&rule.values, x[0] + s * width);
            }
            for j in 0..SQUARE {
                let mut rows = [[0.0; WIDE]; SQUARE];
                for (plane, first) in planes.iter().zip(&firsts) {
                    for i in 0..SQUARE {
                        for k in 0..WIDE {
                            rows[i][k] += first[i] * plane[j][k];
                        }
                    }
                }
                for i in 0..SQUARE {
                    for k in 0..WIDE {
                        sums[i][j][k] += rows[i][k];
                    }
                }
            }
        }
        sums
    }
}
