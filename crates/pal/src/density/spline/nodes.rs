//! Squared splines by numbers that frameworks get from parameters with few operations.
//!
//! A square is of degree 6 in each bin, but it has a continuous derivative, so B bins leave it 5 B + 2 degrees of freedom rather than 7 B. It is known by
//! its value v^2 and half its derivative, v d, at every knot, and by its values at three inner nodes of every bin. The nodes are those of the
//! quadrature rule with double nodes at both ends, so on bins that are full the weights of all values are positive.

use nalgebra::SMatrix;

use super::form::TensorForm;
use super::hermite::{self, SQUARE};
use crate::density::recipe::SplineAxis;

/// Inner nodes of a bin.
const INNER: usize = 3;

/// The matrix that takes values and derivatives at the knots to values at the inner nodes of all bins.
pub(super) fn axis(stretch: &[f64]) -> SplineAxis {
    let (params, inner) = (2 * (stretch.len() + 1), INNER * stretch.len());
    let mut values = vec![0.0; params * inner];
    let mut features = vec![0.0; params];
    for bin in 0..stretch.len() {
        for (k, t) in inner_nodes().iter().enumerate() {
            features.fill(0.0);
            self::features(bin, *t, 0, 1.0, stretch, &mut features);
            for (row, feature) in values.chunks_mut(inner).zip(&features) {
                row[bin * INNER + k] = *feature;
            }
        }
    }
    SplineAxis { params, inner, values }
}

/// The zeros of the third polynomial that is orthogonal under the weight t^2 (1 - t)^2.
fn inner_nodes() -> [f64; INNER] {
    let reach = 1.0 / 12f64.sqrt();
    [0.5 - reach, 0.5, 0.5 + reach]
}

/// The slopes of a spline's value at a point, or of one of its derivatives there, with respect to its values and derivatives at the knots. Adds to `out`,
/// times `factor`.
pub(super) fn features(bin: usize, t: f64, order: u16, factor: f64, stretch: &[f64], out: &mut [f64]) {
    let (values, derivatives) = out.split_at_mut(stretch.len() + 1);
    let basis = hermite::basis_derivatives(t, order);
    hermite::pull_back_bin(&basis, bin, stretch[bin], factor, values, derivatives);
}

/// The form in the numbers of [`SplineAxis`] rather than in Bernstein coefficients.
pub(super) fn form(form: &TensorForm, stretch: &[Vec<f64>]) -> Vec<f64> {
    let (sizes, entries) = form.raw();
    let mut entries = entries.to_vec();
    let mut inner = entries.len();
    for (size, stretch) in sizes.iter().zip(stretch) {
        inner /= size;
        // Entries are outer x bins x 7 x inner.
        let parts = entries.chunks(size * inner).map(|part| along_axis(part, stretch, inner));
        entries = parts.collect::<Vec<_>>().concat();
    }
    entries
}

/// The same along the first index of a part.
fn along_axis(part: &[f64], stretch: &[f64], inner: usize) -> Vec<f64> {
    let (knots, from) = (stretch.len() + 1, bernstein());
    let mut out = vec![0.0; (2 * knots + INNER * stretch.len()) * inner];
    for (bin, (old, stretch)) in part.chunks(SQUARE * inner).zip(stretch).enumerate() {
        // The derivative of a square is 2 v d, per unit of the bin.
        let ends = [(bin, 1.0), (bin + 1, 1.0), (knots + bin, 2.0 * stretch), (knots + bin + 1, 2.0 * stretch)];
        let nodes = (0..INNER).map(|k| (2 * knots + bin * INNER + k, 1.0));
        for (number, (place, factor)) in ends.into_iter().chain(nodes).enumerate() {
            let new = &mut out[place * inner..(place + 1) * inner];
            for (k, old) in old.chunks(inner).enumerate() {
                let factor = factor * from[(k, number)];
                new.iter_mut().zip(old).for_each(|(new, old)| *new += factor * old);
            }
        }
    }
    out
}

/// From the values and derivatives of a polynomial of degree 6 at both ends of a bin, and its values at the inner nodes, to its Bernstein coefficients.
fn bernstein() -> SMatrix<f64, SQUARE, SQUARE> {
    let mut back = SMatrix::<f64, SQUARE, SQUARE>::zeros();
    back[(0, 0)] = 1.0;
    back[(1, SQUARE - 1)] = 1.0;
    let degree = (SQUARE - 1) as f64;
    (back[(2, 0)], back[(2, 1)]) = (-degree, degree);
    (back[(3, SQUARE - 2)], back[(3, SQUARE - 1)]) = (-degree, degree);
    for (row, t) in inner_nodes().into_iter().enumerate() {
        back.row_mut(4 + row).copy_from_slice(&hermite::square_basis(t));
    }
    // Seven conditions that determine a polynomial of degree 6.
    back.try_inverse().unwrap_or_else(SMatrix::zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product of linear factors is known by its numbers.
    #[test]
    fn bernstein_coefficients_of_powers() {
        for power in 0..SQUARE as i32 {
            let value = |t: f64| t.powi(power);
            let slope = |t: f64| if power == 0 { 0.0 } else { f64::from(power) * t.powi(power - 1) };
            let [a, b, c] = inner_nodes().map(value);
            let numbers = nalgebra::SVector::from([value(0.0), value(1.0), slope(0.0), slope(1.0), a, b, c]);
            let coefficients = bernstein() * numbers;
            for k in 0..SQUARE as i32 {
                // t^p = sum_k C(k, p) / C(6, p) B_k
                let ratio = |k: i32| (0..power).map(|i| f64::from(k - i) / f64::from(6 - i)).product::<f64>();
                assert!((coefficients[k as usize] - ratio(k)).abs() < 1e-14, "{power} {k}");
            }
        }
    }

    /// Exact for degree 9, as no rule with these nodes but this one is.
    #[test]
    fn nodes_of_the_rule_with_double_ends() {
        let moment = |power: i32| 1.0 / f64::from(power + 1);
        // Integral of t^2 (1 - t)^2 (t - a) (t - b) (t - c) times 1, t, t^2.
        let [a, b, c] = inner_nodes();
        let cubic = [-a * b * c, a * b + a * c + b * c, -(a + b + c), 1.0];
        for power in 0..3 {
            let term = |k: usize| {
                let p = power + k as i32;
                cubic[k] * (moment(p + 2) - 2.0 * moment(p + 3) + moment(p + 4))
            };
            assert!((0..4).map(term).sum::<f64>().abs() < 1e-16);
        }
    }
}
