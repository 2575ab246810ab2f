//! Bases of polynomials of bounded total degree on the box around a constraint.
//!
//! Every basis is a matrix whose rows are polynomials in products of Chebyshev polynomials on the box, where they can be evaluated stably.

use nalgebra::{Cholesky, DMatrix, SymmetricEigen};
use rayon::prelude::*;

use crate::density::chebyshev;
use crate::density::grid::Grid;
use crate::density::mesh::Mesh;
use crate::density::rules::Rules;
use crate::moments::Exponents;

/// Nodes evaluated together.
const NODES: usize = 256;
/// Groups of elements whose sums are formed independently; fixed, so that results do not depend on the number of threads.
const GROUPS: usize = 16;

/// Rows of Legendre polynomials normalised on the box, `prod_j sqrt(2 a_j + 1) P_aj`, for the chosen exponents.
pub(super) fn legendre(exponents: &Exponents, chosen: &[usize]) -> DMatrix<f64> {
    let top = exponents.degree() + 1;
    let mut table = vec![vec![0.0; top]; top];
    table[0][0] = 1.0;
    for k in 0..top - 1 {
        // (k + 1) P_(k+1) = (2 k + 1) x P_k - k P_(k-1)
        let shifted = times_x(&table[k]);
        for j in 0..top {
            let below = if k == 0 { 0.0 } else { table[k - 1][j] };
            table[k + 1][j] = ((2 * k + 1) as f64 * shifted[j] - k as f64 * below) / (k + 1) as f64;
        }
    }
    for (k, row) in table.iter_mut().enumerate() {
        row.iter_mut().for_each(|c| *c *= ((2 * k + 1) as f64).sqrt());
    }
    products(exponents, chosen, &vec![table; exponents.dimension()])
}

/// Rows of monomials in the user's own coordinates, each scaled by a constant.
pub(super) fn monomials(exponents: &Exponents, chosen: &[usize], grid: &Grid) -> DMatrix<f64> {
    let top = exponents.degree() + 1;
    let table = |axis: &crate::density::Axis| {
        let ends = axis.positions();
        let (low, high) = (ends[0], ends[ends.len() - 1]);
        let (centre, half) = (low / 2.0 + high / 2.0, axis.length() / 2.0);
        let size = centre.abs() + half;
        let mut table = vec![vec![0.0; top]; top];
        table[0][0] = 1.0;
        for k in 1..top {
            let shifted = times_x(&table[k - 1]);
            table[k] = table[k - 1].iter().zip(shifted).map(|(c, x)| (centre * c + half * x) / size).collect();
        }
        table
    };
    products(exponents, chosen, &grid.axes().iter().map(table).collect::<Vec<_>>())
}

/// `x` times a Chebyshev series, cut off at its length.
fn times_x(series: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; series.len()];
    for (j, c) in series.iter().enumerate() {
        let half = if j == 0 { *c } else { c / 2.0 };
        if j + 1 < out.len() {
            out[j + 1] += half;
        }
        if j > 0 {
            out[j - 1] += half;
        }
    }
    out
}

fn products(exponents: &Exponents, chosen: &[usize], tables: &[Vec<Vec<f64>>]) -> DMatrix<f64> {
    let mut rows = DMatrix::zeros(chosen.len(), exponents.len());
    for (i, row) in chosen.iter().enumerate() {
        let alpha = exponents.get(*row);
        for (k, beta) in exponents.iter().enumerate() {
            let factors = alpha.iter().zip(beta).zip(tables);
            rows[(i, k)] = factors.map(|((a, b), table)| table[usize::from(*a)][usize::from(*b)]).product();
        }
    }
    rows
}

/// Integrals of all products of Chebyshev polynomials over the elements, times a monomial in box coordinates.
fn chebyshev_moments(mesh: &Mesh, exponents: &Exponents, rules: &Rules, powers: &[u16]) -> Vec<f64> {
    let partial = groups(mesh).map(|elements| {
        let mut sums = vec![0.0; exponents.len()];
        let mut tables = Tables::new(exponents);
        for element in elements {
            rules.visit(element, |t, weight| {
                let weight = weight * mesh.grid.monomial(&element.bin, t, powers);
                tables.fill(t);
                sums.iter_mut().zip(exponents.iter()).for_each(|(s, alpha)| *s += weight * tables.product(alpha));
            });
        }
        sums
    });
    let partial: Vec<Vec<f64>> = partial.collect();
    let mut total = vec![0.0; exponents.len()];
    for sums in partial {
        total.iter_mut().zip(sums).for_each(|(t, s)| *t += s);
    }
    total
}

/// Chebyshev polynomials along every axis at a point.
pub(super) struct Tables {
    top: usize,
    values: Vec<f64>,
}

impl Tables {
    pub fn new(exponents: &Exponents) -> Tables {
        let top = exponents.degree() + 1;
        Tables { top, values: vec![0.0; top * exponents.dimension()] }
    }

    pub fn fill(&mut self, t: &[f64]) {
        for (row, t) in self.values.chunks_mut(self.top).zip(t) {
            chebyshev::values(2.0 * t - 1.0, row);
        }
    }

    pub fn product(&self, alpha: &[u16]) -> f64 {
        alpha.iter().enumerate().map(|(j, a)| self.values[j * self.top + usize::from(*a)]).product()
    }
}

fn groups(mesh: &Mesh) -> impl IndexedParallelIterator<Item = &[crate::density::mesh::Element]> {
    mesh.elements.par_chunks(mesh.elements.len().div_ceil(GROUPS).max(1))
}

/// The Gram matrix of basis rows from moments: `T_a T_b` is the mean of 2^n Chebyshev products. Cheap; its error is of the order of eps times the
/// squared size of the rows.
pub(super) fn gram_from_moments(
    mesh: &Mesh,
    exponents: &Exponents,
    rows: &DMatrix<f64>,
    rules: &Rules,
    powers: &[u16],
) -> Option<DMatrix<f64>> {
    let n = exponents.dimension();
    let double = Exponents::total_degree(n, 2 * exponents.degree() as u16).ok()?;
    let moments = chebyshev_moments(mesh, &double, rules, powers);
    let positions = double.positions();
    let mut sum = vec![0u16; n];
    let mut pairs = DMatrix::zeros(exponents.len(), exponents.len());
    for (i, a) in exponents.iter().enumerate() {
        for (k, b) in exponents.iter().enumerate().take(i + 1) {
            let mut total = 0.0;
            for signs in 0..1usize << n {
                for j in 0..n {
                    sum[j] = if signs >> j & 1 == 0 { a[j] + b[j] } else { a[j].abs_diff(b[j]) };
                }
                total += positions.get(&sum[..]).map_or(0.0, |at| moments[*at]);
            }
            let mean = total / (1usize << n) as f64;
            (pairs[(i, k)], pairs[(k, i)]) = (mean, mean);
        }
    }
    Some(rows * pairs * rows.transpose())
}

/// The Gram matrix of basis rows from their values at cubature nodes: a sum of squares with positive weights, accurate even where
/// coefficients cancel.
pub(super) fn gram_from_values(
    mesh: &Mesh,
    exponents: &Exponents,
    rows: &DMatrix<f64>,
    rules: &Rules,
    powers: &[u16],
) -> DMatrix<f64> {
    let count = rows.nrows();
    let partial = groups(mesh).map(|elements| {
        let mut gram = DMatrix::zeros(count, count);
        let mut tables = Tables::new(exponents);
        let (mut columns, mut weights) = (Vec::new(), Vec::new());
        let mut flush = |columns: &mut Vec<f64>, weights: &mut Vec<f64>| {
            let products = DMatrix::from_vec(exponents.len(), weights.len(), std::mem::take(columns));
            let values = rows * products;
            let mut weighted = values.clone();
            weighted.column_iter_mut().zip(weights.iter()).for_each(|(mut column, weight)| column *= *weight);
            gram.gemm(1.0, &weighted, &values.transpose(), 1.0);
            weights.clear();
        };
        for element in elements {
            rules.visit(element, |t, weight| {
                tables.fill(t);
                columns.extend(exponents.iter().map(|alpha| tables.product(alpha)));
                weights.push(weight * mesh.grid.monomial(&element.bin, t, powers));
                if weights.len() == NODES {
                    flush(&mut columns, &mut weights);
                }
            });
        }
        if !weights.is_empty() {
            flush(&mut columns, &mut weights);
        }
        gram
    });
    let partial: Vec<DMatrix<f64>> = partial.collect();
    let sum = partial.into_iter().fold(DMatrix::zeros(count, count), |sum, part| sum + part);
    // The two halves differ by rounding.
    (&sum + sum.transpose()) / 2.0
}

/// Replaces rows by combinations of them that the given Gram matrix makes orthonormal, in the same order of degrees. `false` if the matrix is
/// too ill-conditioned for that; then it is shifted and the rows are merely better than before.
pub(super) fn whiten(rows: &mut DMatrix<f64>, gram: DMatrix<f64>) -> bool {
    let size = gram.nrows();
    let trace = gram.trace();
    let mut shift = 0.0;
    for attempt in 0..40 {
        let shifted = &gram + DMatrix::identity(size, size) * shift;
        if let Some(factor) = Cholesky::new(shifted) {
            factor.l_dirty().solve_lower_triangular_mut(rows);
            return attempt == 0;
        }
        shift = if shift == 0.0 { trace * f64::EPSILON } else { shift * 4.0 };
    }
    false
}

/// The largest deviation of a Gram matrix from the identity.
pub(super) fn deviation(gram: &DMatrix<f64>) -> f64 {
    (gram - DMatrix::identity(gram.nrows(), gram.ncols())).amax()
}

/// The quotient of the largest and smallest eigenvalue.
pub(super) fn condition(gram: DMatrix<f64>) -> f64 {
    let values = SymmetricEigen::new(gram).eigenvalues;
    values.max() / values.min().max(0.0)
}
