//! Local coordinates, and simplices of a region in them.
//!
//! Moments are computed in coordinates `u = (y - shift) / scale` in which the region is of size one. Which shift is
//! best depends on the question: the lower corner of the bounding box makes every term of the recurrence non-negative;
//! the centre keeps the coefficients of an integrand small; no shift gives moments in the user's own powers.

use super::simplex::Simplices;
use crate::number::{self, Rational};
use crate::region::{Polytope, Vertex};

/// An affine change of coordinates per axis: `y = shift + scale * u`, `scale > 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineFrame {
    /// The point that becomes the origin.
    pub shift: Vec<Rational>,
    /// The length that becomes one.
    pub scale: Vec<Rational>,
}

impl AffineFrame {
    /// The bounding box becomes `[0, 1]^n`.
    pub fn unit(ends: &[(Rational, Rational)]) -> AffineFrame {
        AffineFrame {
            shift: ends.iter().map(|(low, _)| low.clone()).collect(),
            scale: ends.iter().map(|(low, high)| non_zero(high - low)).collect(),
        }
    }

    /// The bounding box becomes `[-1, 1]^n`.
    pub fn centred(ends: &[(Rational, Rational)]) -> AffineFrame {
        let two = Rational::from(2);
        AffineFrame {
            shift: ends.iter().map(|(low, high)| (low + high) / &two).collect(),
            scale: ends.iter().map(|(low, high)| non_zero((high - low) / &two)).collect(),
        }
    }

    /// No shift; each axis is scaled by a power of two so that coordinates are at most about 1 in size. Moments in this
    /// frame are moments in the user's coordinates up to an exact factor.
    pub fn origin(ends: &[(Rational, Rational)]) -> AffineFrame {
        let size = |(low, high): &(Rational, Rational)| {
            let largest = number::to_f64(low).abs().max(number::to_f64(high).abs());
            let exponent = if largest > 0.0 && largest.is_finite() {
                (largest.log2().ceil() as isize).clamp(-1000, 1000)
            } else {
                0
            };
            Rational::from(2).pow(exponent)
        };
        AffineFrame { shift: vec![Rational::ZERO; ends.len()], scale: ends.iter().map(size).collect() }
    }

    /// The product of the scales to the given powers: what an unshifted monomial grows by.
    pub(crate) fn power(&self, alpha: &[u16]) -> Rational {
        let powers = self.scale.iter().zip(alpha).filter(|(scale, _)| !scale.is_one());
        powers.fold(Rational::ONE, |product, (scale, a)| product * scale.pow(isize::from(a.cast_signed())))
    }

    /// The factor by which volumes shrink: the product of the scales.
    pub fn volume(&self) -> Rational {
        self.scale.iter().fold(Rational::ONE, |product, s| product * s)
    }
}

fn non_zero(width: Rational) -> Rational {
    if width.is_zero() { Rational::ONE } else { width }
}

/// A frame ready for converting vertices.
pub(crate) struct Converter<'f> {
    frame: &'f AffineFrame,
    /// Shift and scale in float64, and whether the shift is exact in float64.
    axes: Vec<(f64, f64, bool)>,
}

/// Numbers below this size, or products of them, may be inexact because of underflow.
const TINY: f64 = 1e-290;

/// Converted coordinates may be off by this fraction without recourse to exact arithmetic.
const COORDINATE_TOLERANCE: f64 = 1e-14;

/// Sizes of simplices may be off by this fraction without recourse to exact arithmetic.
const SIZE_TOLERANCE: f64 = 1e-12;

/// Relative errors that conversion has introduced, as bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConversionError {
    pub coordinate: f64,
    pub size: f64,
}

impl<'f> Converter<'f> {
    pub fn new(frame: &'f AffineFrame) -> Self {
        let axes = frame.shift.iter().zip(&frame.scale).map(|(shift, scale)| {
            let shift_f64 = number::to_f64(shift);
            let exact = number::from_f64(shift_f64).is_ok_and(|s| &s == shift);
            (shift_f64, number::to_f64(scale), exact)
        });
        Converter { axes: axes.collect(), frame }
    }

    /// The coordinates of a vertex in the frame, with a bound on their relative errors.
    fn convert(&self, polytope: &Polytope, vertex: &Vertex) -> (Vec<f64>, f64) {
        let mut worst = 0.0f64;
        let fast: Vec<f64> = self
            .axes
            .iter()
            .zip(vertex.coordinates().iter().zip(vertex.error()))
            .map(|(&(shift, scale, exact), (x, error))| {
                let moved = x - shift;
                let slack = error + if exact { 0.0 } else { shift.abs() * f64::EPSILON };
                let quotient = moved / scale;
                worst = if moved == 0.0 && slack <= f64::MIN_POSITIVE {
                    worst
                } else if !scale.is_normal() || quotient.abs() < TINY {
                    f64::INFINITY
                } else {
                    // NaN counts as bad.
                    let relative = slack / moved.abs() + 4.0 * f64::EPSILON;
                    if relative <= worst { worst } else { relative }
                };
                quotient
            })
            .collect();
        if worst <= COORDINATE_TOLERANCE {
            return (fast, worst);
        }
        let exact = polytope.exact_coordinates(vertex);
        let parts = exact.iter().zip(self.frame.shift.iter().zip(&self.frame.scale));
        let mut relative = f64::EPSILON;
        let rounded = parts.map(|(x, (shift, scale))| {
            let quotient = (x - shift) / scale;
            let nearest = number::to_f64(&quotient);
            // Beyond the normal range nothing is known about the relative error.
            if !quotient.is_zero() && !(TINY..f64::INFINITY).contains(&nearest.abs()) {
                relative = f64::INFINITY;
            }
            nearest
        });
        (rounded.collect(), relative)
    }

    /// All vertices in the frame, with a bound on their relative errors.
    pub fn corners(&self, polytope: &Polytope) -> (Vec<Vec<f64>>, f64) {
        let mut worst = 0.0f64;
        let corners = polytope.vertices().iter().map(|vertex| {
            let (coordinates, relative) = self.convert(polytope, vertex);
            worst = worst.max(relative);
            coordinates
        });
        (corners.collect(), worst)
    }

    /// The simplices of a polytope's triangulation, given its vertices in the frame.
    pub fn simplices(
        &self,
        polytope: &Polytope,
        triangulation: &[Vec<usize>],
        corners: &[Vec<f64>],
        coordinate: f64,
    ) -> (Simplices, ConversionError) {
        let mut error = ConversionError { coordinate, size: 0.0 };
        let mut result = Simplices { dimension: polytope.dimension(), ..Simplices::default() };
        for simplex in triangulation {
            let points: Vec<&[f64]> = simplex.iter().map(|v| &corners[*v][..]).collect();
            let (mut size, mut relative) = determinant(&points, coordinate);
            if !(relative <= SIZE_TOLERANCE) {
                size = number::to_f64(&(polytope.exact_size(simplex) / self.frame.volume()));
                relative = f64::EPSILON;
            }
            error.size = error.size.max(relative);
            points.iter().for_each(|point| result.vertices.extend_from_slice(point));
            result.sizes.push(size.abs());
        }
        (result, error)
    }
}

/// `n!` times the signed volume of a simplex whose coordinates are off by at most the fraction `coordinate_error`, with
/// a bound on its relative error (infinite or NaN where none can be given).
///
/// The matrix A of edge vectors is factored with row pivoting; the computed determinant is that of `A + E` with `|E| <=
/// (n + 2) eps |L| |U|` plus the errors of the entries, and `|det(A + E) / det A - 1| <= (1 + |A^-1| |E|)^n - 1`. The
/// norm of the inverse is bounded by a computed inverse X and the residual `I - X A`.
pub(crate) fn determinant(points: &[&[f64]], coordinate_error: f64) -> (f64, f64) {
    let n = points.len() - 1;
    if n == 0 {
        return (1.0, 0.0);
    }
    let edge = |i: usize, j: usize| points[i + 1][j] - points[0][j];
    let matrix: Vec<f64> = (0..n * n).map(|k| edge(k / n, k % n)).collect();
    let entry_error =
        |i: usize, j: usize| (points[i + 1][j].abs() + points[0][j].abs()) * (coordinate_error + f64::EPSILON);
    let mut lu = matrix.clone();
    let mut order: Vec<usize> = (0..n).collect();
    let mut det = 1.0;
    for k in 0..n {
        let best = (k..n).max_by(|a, b| lu[a * n + k].abs().total_cmp(&lu[b * n + k].abs())).unwrap_or(k);
        if best != k {
            (0..n).for_each(|j| lu.swap(k * n + j, best * n + j));
            order.swap(k, best);
            det = -det;
        }
        let pivot = lu[k * n + k];
        if pivot == 0.0 || !pivot.is_finite() {
            return (0.0, f64::INFINITY);
        }
        det *= pivot;
        for i in k + 1..n {
            let factor = lu[i * n + k] / pivot;
            lu[i * n + k] = factor;
            for j in k + 1..n {
                lu[i * n + j] -= factor * lu[k * n + j];
            }
        }
    }
    let mut norm_e = 0.0f64;
    for i in 0..n {
        let mut row = 0.0;
        for j in 0..n {
            let top = i.min(j);
            let product = (0..=top).map(|k| {
                let l = if k == i { 1.0 } else { lu[i * n + k] };
                (l * lu[k * n + j]).abs()
            });
            row += product.sum::<f64>() * (n as f64 + 2.0) * f64::EPSILON + entry_error(order[i], j);
        }
        norm_e = norm_e.max(row);
    }
    // Columns of the inverse of the row-permuted matrix.
    let mut inverse = vec![0.0; n * n];
    for column in 0..n {
        let mut x = vec![0.0; n];
        for i in 0..n {
            let unit = if i == column { 1.0 } else { 0.0 };
            x[i] = unit - (0..i).map(|k| lu[i * n + k] * x[k]).sum::<f64>();
        }
        for i in (0..n).rev() {
            x[i] = (x[i] - (i + 1..n).map(|k| lu[i * n + k] * x[k]).sum::<f64>()) / lu[i * n + i];
        }
        (0..n).for_each(|i| inverse[i * n + column] = x[i]);
    }
    let (mut norm_x, mut residual) = (0.0f64, 0.0f64);
    for i in 0..n {
        norm_x = norm_x.max((0..n).map(|j| inverse[i * n + j].abs()).sum());
        let row = (0..n).map(|j| {
            let product: f64 = (0..n).map(|k| inverse[i * n + k] * matrix[order[k] * n + j]).sum();
            let size: f64 = (0..n).map(|k| (inverse[i * n + k] * matrix[order[k] * n + j]).abs()).sum();
            (product - if i == j { 1.0 } else { 0.0 }).abs() + size * (n as f64 + 1.0) * f64::EPSILON
        });
        residual = residual.max(row.sum());
    }
    if !(residual < 0.5) {
        return (det, f64::INFINITY);
    }
    if !(det.abs() > TINY) {
        return (det, f64::INFINITY);
    }
    let kappa = norm_x / (1.0 - residual) * norm_e;
    let relative = (1.0 + kappa).powi(n as i32) - 1.0 + (n as f64 + 1.0) * f64::EPSILON;
    (det, 1.0001 * relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determinants_come_with_true_bounds() {
        let points = [[0.1, 0.2, 0.3], [1.1, 0.2, 0.35], [0.1, 0.9, 0.3], [0.4, 0.2, 0.8]];
        let points: Vec<&[f64]> = points.iter().map(|p| &p[..]).collect();
        let (size, error) = determinant(&points, 0.0);
        // edges (1, 0, .05), (0, .7, 0), (.3, 0, .5): det = .7 (1 * .5 - .05 * .3)
        assert!((size.abs() / 0.3395 - 1.0).abs() <= error && error < 1e-13, "{size} {error}");
        let flat = [[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]];
        let flat: Vec<&[f64]> = flat.iter().map(|p| &p[..]).collect();
        assert!(!(determinant(&flat, 0.0).1 <= 1.0), "a degenerate simplex has no relative bound");
    }

    #[test]
    fn frames_map_the_box() {
        let ends = [(Rational::from(-3), Rational::from(5))];
        assert_eq!(AffineFrame::unit(&ends).scale, [Rational::from(8)]);
        assert_eq!(AffineFrame::centred(&ends).shift, [Rational::from(1)]);
        let origin = AffineFrame::origin(&ends);
        assert!(origin.shift[0].is_zero() && origin.scale[0] >= Rational::from(5));
    }
}
