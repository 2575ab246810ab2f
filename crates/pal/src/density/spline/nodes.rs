//! Squared splines by their values at nodes.
//!
//! A square is of degree 6 in each bin, so its values at seven nodes say the same as its seven Bernstein coefficients. Frameworks prefer values: they are
//! one matrix product and one square away from the parameters.

use nalgebra::SMatrix;

use super::form::TensorForm;
use super::hermite::{self, SQUARE};
use crate::density::gauss::Gauss;
use crate::density::recipe::SplineAxis;

type Square = SMatrix<f64, SQUARE, SQUARE>;

/// The matrix that takes values and derivatives at the knots to values at the nodes of all bins.
pub(super) fn axis(stretch: &[f64]) -> SplineAxis {
    let (params, nodes) = (2 * (stretch.len() + 1), SQUARE * stretch.len());
    let rule = Gauss::with_points(SQUARE);
    let mut values = vec![0.0; params * nodes];
    let mut features = vec![0.0; params];
    for bin in 0..stretch.len() {
        for (k, t) in rule.nodes.iter().enumerate() {
            self::features(bin, *t, stretch, &mut features);
            for (row, feature) in values.chunks_mut(nodes).zip(&features) {
                row[bin * SQUARE + k] = *feature;
            }
        }
    }
    SplineAxis { params, nodes, values }
}

/// The slopes of a spline's value at a point with respect to its values and derivatives at the knots.
pub(super) fn features(bin: usize, t: f64, stretch: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    let (values, derivatives) = out.split_at_mut(stretch.len() + 1);
    hermite::pull_back_bin(&hermite::basis(t), bin, stretch[bin], 1.0, values, derivatives);
}

/// The form in values at nodes rather than in Bernstein coefficients.
pub(super) fn form(form: &TensorForm) -> Vec<f64> {
    let rule = Gauss::with_points(SQUARE);
    let at_nodes = Square::from_fn(|node, k| hermite::square_basis(rule.nodes[node])[k]);
    // Seven distinct nodes determine a polynomial of degree 6.
    let to_bernstein = at_nodes.try_inverse().unwrap_or_else(Square::zeros);
    let (sizes, entries) = form.raw();
    let mut entries = entries.to_vec();
    let mut inner: usize = entries.len();
    for size in sizes {
        inner /= size;
        // Entries are outer x bins x 7 x inner: the seven are replaced.
        for block in entries.chunks_mut(SQUARE * inner) {
            for at in 0..inner {
                let old: [f64; SQUARE] = std::array::from_fn(|k| block[k * inner + at]);
                for node in 0..SQUARE {
                    block[node * inner + at] = (0..SQUARE).map(|k| old[k] * to_bernstein[(k, node)]).sum();
                }
            }
        }
    }
    entries
}
