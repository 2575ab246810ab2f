//! The recurrence with twice the digits of float64, for integrands whose terms cancel.
//!
//! Where the terms of a polynomial are ten orders of magnitude larger than its integral, as those of `(x - y)^20` are,
//! float64 has no certain digits left, but double-doubles have twenty. They cost ten times as much as float64 and a
//! hundredth of exact arithmetic. Simplices are swept one vertex after the other in one table.

use rayon::prelude::*;

use super::exponents::Exponents;
use super::frame::AffineFrame;
use super::integrand::{Estimate, UNDERFLOW};
use crate::double_double::{DoubleDouble, RELATIVE_ERROR};
use crate::interrupt::checkpoint;
use crate::number::Rational;
use crate::region::Polytope;

/// A polynomial in the coordinates of a frame: positions and `c_alpha alpha! / (|alpha| + n)!`, times the volume of the
/// frame.
#[derive(Clone, Debug)]
pub(super) struct WidePolynomial {
    pub coefficients: Vec<(usize, DoubleDouble)>,
}

/// An entry of a table: `[t^alpha]`, and the same with absolute values of the coordinates.
#[derive(Clone, Copy)]
struct WideEntry {
    value: DoubleDouble,
    size: f64,
}

/// Coordinates of vertices in a frame, correct to the last bit of a double-double.
fn corners(polytope: &Polytope, frame: &AffineFrame) -> Option<Vec<Vec<DoubleDouble>>> {
    let corner = |point: Vec<Rational>| {
        let local =
            point.iter().zip(frame.shift.iter().zip(&frame.scale)).map(|(x, (shift, scale))| (x - shift) / scale);
        local.map(|x| wide(&x)).collect::<Option<Vec<_>>>()
    };
    polytope.exact_vertices().into_iter().map(corner).collect()
}

/// The nearest number, unless it is too small for its digits to be in range.
pub(super) fn wide(value: &Rational) -> Option<DoubleDouble> {
    let nearest = DoubleDouble::nearest(value).0;
    let in_range = value.is_zero() || (nearest.high.is_finite() && nearest.high.abs() > UNDERFLOW);
    in_range.then_some(nearest)
}

impl WidePolynomial {
    /// The integral over the simplices of a polytope; `None` where numbers leave the range of float64.
    pub fn estimate(
        &self,
        polytope: &Polytope,
        simplices: &[Vec<usize>],
        exponents: &Exponents,
        frame: &AffineFrame,
    ) -> Option<Estimate> {
        let corners = corners(polytope, frame)?;
        let volume = frame.volume();
        let parts = simplices.par_iter().map(|simplex| {
            let size = wide(&(polytope.exact_size(simplex) / &volume))?;
            let vertices: Vec<&[DoubleDouble]> = simplex.iter().map(|v| &corners[*v][..]).collect();
            self.contract(&sweep(size, &vertices, exponents))
        });
        let parts: Option<Vec<(DoubleDouble, f64)>> = parts.collect();
        let (value, size) =
            parts?.into_iter().fold((DoubleDouble::new(0.0), 0.0), |(value, size), (v, s)| (value.plus(v), size + s));
        let n = polytope.dimension() as f64;
        let degree = exponents.degree() as f64;
        // Relative to the sum of magnitudes: a coordinate, a product and n sums for each degree, n sums for each vertex,
        // sizes and coefficients, and the sums over terms and simplices.
        let roundings = (degree + n + 2.0) * (2.0 * n + 4.0) + (simplices.len() + self.coefficients.len()) as f64 + 8.0;
        let error = 1.01 * roundings * RELATIVE_ERROR * size + value.high.abs() * f64::EPSILON;
        let certain = error.is_finite() && value.high.is_finite();
        certain.then_some(Estimate { value: value.high, error, simplices: simplices.len() })
    }

    /// The sum over the terms, and the sum of their magnitudes.
    fn contract(&self, table: &[WideEntry]) -> Option<(DoubleDouble, f64)> {
        let mut value = DoubleDouble::new(0.0);
        let mut size = 0.0;
        for (position, c) in &self.coefficients {
            let entry = &table[*position];
            let magnitude = entry.size * c.high.abs();
            if entry.size < UNDERFLOW || magnitude < UNDERFLOW {
                return None;
            }
            value = value.plus(c.times(entry.value));
            size += magnitude;
        }
        Some((value, size))
    }
}

/// `n! vol` times the product of `1 / (1 - <t, v>)` over the vertices.
fn sweep(size: DoubleDouble, vertices: &[&[DoubleDouble]], exponents: &Exponents) -> Vec<WideEntry> {
    let mut table = vec![WideEntry { value: DoubleDouble::new(0.0), size: 0.0 }; exponents.len()];
    table[0] = WideEntry { value: size, size: size.high.abs() };
    for vertex in vertices {
        checkpoint();
        for at in 1..table.len() {
            let mut sum = table[at];
            for (x, from) in vertex.iter().zip(exponents.predecessors(at)) {
                if let Some(from) = from.position() {
                    let before = &table[from];
                    sum.value = sum.value.plus(x.times(before.value));
                    sum.size += x.high.abs() * before.size;
                }
            }
            table[at] = sum;
        }
    }
    table
}
