//! Squared splines given by their values at nodes, which tensor frameworks compute from parameters by one matrix
//! product and one square.
//!
//! The square has degree 6 in each bin, so seven values in the bin determine it. Two of them are at the knots, where
//! neighbouring bins share them. Its derivative is continuous too, which would save one more node per bin; but then a
//! node would no longer belong to one bin, and where a spline has no mass on the constraint, its integral would be a
//! difference of large numbers instead of zero.

use nalgebra::SMatrix;

use super::form::BinForm;
use super::hermite::{self, SQUARE};
use super::recipe::SplineAxis;
use crate::density::lanes::Real;

/// The seven nodes of Lobatto's rule on [0, 1]: the zeros of t (1 - t) P'(2 t - 1) with the sixth Legendre polynomial
/// P. All its weights are positive.
pub(super) fn bin_nodes() -> [f64; SQUARE] {
    let root = (5.0f64 / 3.0).sqrt() * 2.0;
    let (far, near) = (((5.0 + root) / 11.0).sqrt(), ((5.0 - root) / 11.0).sqrt());
    [-1.0, -far, -near, 0.0, near, far, 1.0].map(|x| (1.0 + x) / 2.0)
}

/// The number of nodes of a bin that it does not share with the bin above.
pub(super) const STEP: usize = SQUARE - 1;

/// The number of nodes of an axis: a multiple of four, because matrix products are faster then. Nodes beyond the last
/// knot have weight 0.
fn count(bins: usize) -> usize {
    (STEP * bins + 1).next_multiple_of(4)
}

/// The matrix that takes values and derivatives at the knots to values at nodes.
pub(super) fn axis(stretch: &[f64]) -> SplineAxis {
    let (params, nodes) = (2 * (stretch.len() + 1), count(stretch.len()));
    let mut values = vec![0.0; params * nodes];
    let mut column = vec![0.0; params];
    for bin in 0..stretch.len() {
        for (k, t) in bin_nodes().into_iter().enumerate() {
            column.fill(0.0);
            features(bin, t, 0, 1.0, stretch, &mut column);
            values.chunks_mut(nodes).zip(&column).for_each(|(row, feature)| row[bin * STEP + k] = *feature);
        }
    }
    SplineAxis { params, nodes, values }
}

/// Adds to `out` the Jacobian, times `factor`, of a spline's value at a point (or of one of its derivatives there) with
/// respect to its values and derivatives at the knots.
pub(super) fn features(bin: usize, t: f64, order: u16, factor: f64, stretch: &[f64], out: &mut [f64]) {
    let (values, derivatives) = out.split_at_mut(stretch.len() + 1);
    let basis = hermite::basis_derivatives(t, order);
    hermite::pull_back_bin(&basis, bin, stretch[bin], factor, values, derivatives);
}

/// The form in values at nodes rather than in Bernstein coefficients.
pub(super) fn form<T: Real>(form: &BinForm<f64>) -> BinForm<T> {
    form.convert(STEP, &bernstein())
}

/// [`form`] written out, one index per axis, the last one running fastest; `None` if that would be too large.
pub(super) fn dense_form(bin_form: &BinForm<f64>) -> Option<Vec<f64>> {
    let lengths: Vec<usize> = bin_form.bins.iter().map(|bins| count(*bins)).collect();
    form::<f64>(bin_form).dense(&lengths)
}

/// The matrix that takes the values of a polynomial of degree 6 at the nodes of a bin to its Bernstein coefficients.
pub(super) fn bernstein() -> SMatrix<f64, SQUARE, SQUARE> {
    let mut values = SMatrix::<f64, SQUARE, SQUARE>::zeros();
    for (row, t) in bin_nodes().into_iter().enumerate() {
        values.row_mut(row).copy_from_slice(&hermite::square_basis(t));
    }
    values.try_inverse().expect("seven distinct nodes determine a polynomial of degree 6")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::grid::BinIndex;
    use crate::density::spline::form::{BoxPart, BoxSide};
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
            // A linear function of the square, as a form of one variable.
            let function: Vec<f64> = (0..SQUARE * bins).map(random(2)).collect();
            let at_nodes = dense_form(&line(&function)).unwrap();
            assert_eq!(at_nodes.len(), axis.nodes);
            let want: f64 = squares.iter().zip(&function).map(|(s, f)| s * f).sum();
            let got: f64 = (0..axis.nodes).map(|k| node(k).powi(2) * at_nodes[k]).sum();
            let size: f64 = squares.iter().map(|s| s.abs()).sum();
            assert!((got - want).abs() < 1e-13 * size, "{bins}: {got} {want}");
        }
    }

    /// The form in one variable with given factors of the Bernstein coefficients.
    fn line(function: &[f64]) -> BinForm<f64> {
        let bins = function.len() / SQUARE;
        let interval = |(bin, means): (usize, &[f64])| BoxSide {
            bin: BinIndex::new(bin),
            means: means.try_into().expect("seven numbers per bin"),
        };
        let intervals = function.chunks(SQUARE).enumerate().map(interval).collect();
        let boxes = (0..bins as u32).map(|bin| BoxPart { sides: vec![bin], volume: 1.0 }).collect();
        BinForm::new(vec![bins], SQUARE, vec![intervals], boxes, Vec::new(), Vec::new())
    }

    /// Lobatto's rule is exact up to degree 11. Inside one bin its weights are 1 / 42 at the ends and 128 / 525 in the
    /// middle.
    #[test]
    fn weights_of_the_integral_are_those_of_lobatto() {
        for bins in [1, 2, 5, 30] {
            let weights = dense_form(&line(&vec![1.0 / SQUARE as f64; SQUARE * bins])).unwrap();
            let (used, unused) = weights.split_at(STEP * bins + 1);
            assert!(used.iter().all(|w| *w > 0.0) && unused.iter().all(|w| *w == 0.0));
            assert!((used[0] - 1.0 / 42.0).abs() < 1e-14 && (used[3] - 128.0 / 525.0).abs() < 1e-14);
            assert!((used.iter().sum::<f64>() - bins as f64).abs() < 1e-12);
        }
    }
}
