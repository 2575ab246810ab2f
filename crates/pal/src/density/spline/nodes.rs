//! Squared splines by their values at nodes, one matrix product and one square away from the parameters: what tensor frameworks want.
//!
//! A square is of degree 6 in each bin, but it has a continuous derivative, so B bins leave it 5 B + 2 degrees of freedom rather than 7 B. Its values at
//! both ends of the axis and at five nodes inside each bin determine it. With them a bin has seven values once those at its knots are known, and
//! that the derivative is continuous says what these are: a tridiagonal system, whose diagonal is at least 26 times as large as all else in a row.

use nalgebra::SMatrix;

use super::form::TensorForm;
use super::hermite::{self, SQUARE};
use crate::density::recipe::SplineAxis;

/// Nodes inside each bin, almost where they determine Bernstein coefficients best. On full bins all weights of the integral are positive.
const INNER: [f64; SQUARE - 2] = [0.06, 0.2455, 0.5, 0.7545, 0.94];

/// Nodes of an axis. Matrix products prefer multiples of four: nodes beyond 5 B + 2 are there for that, and count for nothing.
fn count(bins: usize) -> usize {
    (INNER.len() * bins + 2).next_multiple_of(4)
}

/// The matrix that takes values and derivatives at the knots to values at nodes: those inside the bins, then both ends.
pub(super) fn axis(stretch: &[f64]) -> SplineAxis {
    let bins = stretch.len();
    let (params, nodes) = (2 * (bins + 1), count(bins));
    let inner = (0..bins).flat_map(|bin| INNER.map(|t| (bin, t)));
    let places = inner.chain([(0, 0.0), (bins - 1, 1.0)]);
    let mut values = vec![0.0; params * nodes];
    let mut column = vec![0.0; params];
    for (node, (bin, t)) in places.enumerate() {
        column.fill(0.0);
        features(bin, t, 0, 1.0, stretch, &mut column);
        values.chunks_mut(nodes).zip(&column).for_each(|(row, feature)| row[node] = *feature);
    }
    SplineAxis { params, nodes, values }
}

/// The slopes of a spline's value at a point, or of one of its derivatives there, with respect to its values and derivatives at the knots. Adds to `out`,
/// times `factor`.
pub(super) fn features(bin: usize, t: f64, order: u16, factor: f64, stretch: &[f64], out: &mut [f64]) {
    let (values, derivatives) = out.split_at_mut(stretch.len() + 1);
    let basis = hermite::basis_derivatives(t, order);
    hermite::pull_back_bin(&basis, bin, stretch[bin], factor, values, derivatives);
}

/// The form in values at nodes rather than in Bernstein coefficients.
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
    let bins = stretch.len();
    let from = bernstein();
    // The derivatives of a bin at its two ends, by its seven values.
    let degree = (SQUARE - 1) as f64;
    let left = (from.row(1) - from.row(0)) * degree;
    let right = (from.row(SQUARE - 1) - from.row(SQUARE - 2)) * degree;

    let mut nodes = vec![0.0; count(bins) * inner];
    let mut knots = vec![0.0; (bins + 1) * inner];
    for (bin, old) in part.chunks(SQUARE * inner).enumerate() {
        for value in 0..SQUARE {
            let new = place(&mut nodes, &mut knots, bin, value, inner);
            for (k, old) in old.chunks(inner).enumerate() {
                add(new, from[(k, value)], old);
            }
        }
    }
    // At inner knots, right . values / stretch of the bin below = left . values / stretch of the bin above, so any multiple of the difference may be
    // subtracted: those multiples that leave nothing of the values at inner knots.
    let last = bins - 1;
    let diagonal = |k: usize| right[last_value()] / stretch[k - 1] - left[0] / stretch[k];
    let lower = |k: usize| right[0] / stretch[k - 1];
    let upper = |k: usize| -left[last_value()] / stretch[k];
    // The transposed system, by elimination downwards and substitution upwards.
    let mut multiples = knots[inner..(bins.max(1)) * inner].to_vec();
    let mut pivots = vec![0.0; bins];
    for k in 1..=last {
        pivots[k] = diagonal(k);
        if k > 1 {
            let factor = upper(k - 1) / pivots[k - 1];
            pivots[k] -= factor * lower(k);
            let (before, here) = multiples.split_at_mut((k - 1) * inner);
            add(&mut here[..inner], -factor, &before[(k - 2) * inner..]);
        }
    }
    for k in (1..=last).rev() {
        let (here, after) = multiples.split_at_mut(k * inner);
        let here = &mut here[(k - 1) * inner..];
        if k < last {
            add(here, -lower(k + 1), &after[..inner]);
        }
        here.iter_mut().for_each(|x| *x /= pivots[k]);
    }
    for (k, multiple) in (1..=last).zip(multiples.chunks(inner)) {
        for value in 0..SQUARE {
            add(place(&mut nodes, &mut knots, k - 1, value, inner), -right[value] / stretch[k - 1], multiple);
            add(place(&mut nodes, &mut knots, k, value, inner), left[value] / stretch[k], multiple);
        }
    }
    let ends = INNER.len() * bins * inner;
    nodes[ends..ends + inner].copy_from_slice(&knots[..inner]);
    nodes[ends + inner..ends + 2 * inner].copy_from_slice(&knots[bins * inner..]);
    nodes
}

/// The last of the seven values of a bin: that at its upper knot.
const fn last_value() -> usize {
    SQUARE - 1
}

/// Where one of the seven values of a bin is counted.
fn place<'a>(nodes: &'a mut [f64], knots: &'a mut [f64], bin: usize, value: usize, inner: usize) -> &'a mut [f64] {
    let (list, at) = match value {
        0 => (knots, bin),
        value if value == last_value() => (knots, bin + 1),
        value => (nodes, bin * INNER.len() + value - 1),
    };
    &mut list[at * inner..(at + 1) * inner]
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

/// From the values of a polynomial of degree 6 at both ends of a bin, with the inner nodes in between, to its Bernstein coefficients.
fn bernstein() -> SMatrix<f64, SQUARE, SQUARE> {
    let mut values = SMatrix::<f64, SQUARE, SQUARE>::zeros();
    for (row, t) in [0.0].into_iter().chain(INNER).chain([1.0]).enumerate() {
        values.row_mut(row).copy_from_slice(&hermite::square_basis(t));
    }
    // Seven distinct nodes determine a polynomial of degree 6.
    values.try_inverse().unwrap_or_else(SMatrix::zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::spline::hermite::CUBIC;

    #[test]
    fn any_linear_function_of_a_square_is_one_of_its_values_at_nodes() {
        for (bins, spread) in [(1, 1f64), (2, 1.0), (3, 1.0), (13, 1.0), (9, 40.0)] {
            let random = |seed: usize| move |k: usize| (((k + 1) * (seed + 7919) % 1009) as f64 / 504.5) - 1.0;
            let stretch: Vec<f64> = (0..bins).map(|bin| spread.powf(random(3)(bin))).collect();
            let params: Vec<f64> = (0..2 * (bins + 1)).map(random(1)).collect();
            let (values, derivatives) = params.split_at(bins + 1);
            let mut cubics = vec![0.0; CUBIC * bins];
            hermite::expand(values, derivatives, &stretch, &mut cubics);
            let mut squares = vec![0.0; SQUARE * bins];
            for (cubic, square) in cubics.chunks(CUBIC).zip(squares.chunks_mut(SQUARE)) {
                hermite::square(cubic, square);
            }
            let axis = axis(&stretch);
            let node =
                |node: usize| -> f64 { (0..axis.params).map(|p| params[p] * axis.values[p * axis.nodes + node]).sum() };
            // Two functions at once: the number after the index of Bernstein coefficients.
            let function: Vec<f64> = (0..2 * SQUARE * bins).map(random(2)).collect();
            let at_nodes = along_axis(&function, &stretch, 2);
            assert_eq!(at_nodes.len(), 2 * axis.nodes);
            for which in 0..2 {
                let want: f64 = squares.iter().zip(function.iter().skip(which).step_by(2)).map(|(s, f)| s * f).sum();
                let got: f64 = (0..axis.nodes).map(|k| node(k).powi(2) * at_nodes[2 * k + which]).sum();
                let size: f64 = squares.iter().map(|s| s.abs()).sum();
                assert!((got - want).abs() < 1e-13 * size, "{bins} {which}: {got} {want}");
            }
        }
    }

    #[test]
    fn weights_of_the_integral_are_positive() {
        for bins in [1, 2, 5, 30] {
            let weights = along_axis(&vec![1.0 / SQUARE as f64; SQUARE * bins], &vec![1.0; bins], 1);
            let (used, unused) = weights.split_at(5 * bins + 2);
            assert!(used.iter().all(|w| *w > 0.0) && unused.iter().all(|w| *w == 0.0));
            assert!((used.iter().sum::<f64>() - bins as f64).abs() < 1e-12);
        }
    }
}
