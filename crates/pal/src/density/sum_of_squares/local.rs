//! Polynomials on a constraint, bin by bin in products of Chebyshev polynomials.
//!
//! A polynomial of high degree that is of size one on a constraint can be of size 1e8 in the corners of the box around
//! it. Written in one basis on the whole box its coefficients are that large, and 8 digits are lost whenever it is
//! evaluated. On bins that stay close to the constraint, coefficients are as small as the polynomial.

use nalgebra::{DMatrix, SymmetricEigen};
use rayon::prelude::*;

use crate::density::chebyshev;
use crate::density::cubature::MeshCubature;
use crate::density::mesh::{Element, Mesh};
use crate::density::occupied::OccupiedBins;
use crate::interrupt::checkpoint;
use crate::moments::Exponents;

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

    /// Fills the tables with derivatives of given orders with respect to t.
    pub fn fill_derivatives(&mut self, t: &[f64], orders: &[u16]) {
        for ((row, t), order) in self.values.chunks_mut(self.top).zip(t).zip(orders) {
            chebyshev::derivatives(2.0 * t - 1.0, *order, row);
            row.iter_mut().for_each(|value| *value *= 2f64.powi(i32::from(*order)));
        }
    }

    pub fn product(&self, alpha: &[u16]) -> f64 {
        alpha.iter().enumerate().map(|(j, a)| self.values[j * self.top + usize::from(*a)]).product()
    }
}

/// Integrals over a mesh: the mesh, the cubature, and a monomial that multiplies every integrand.
pub(super) struct Measure<'m> {
    pub mesh: &'m Mesh,
    pub bins: &'m OccupiedBins,
    pub rules: &'m MeshCubature,
    /// The exponents of the monomial, in coordinates that run from 0 to 1 over the box.
    pub powers: &'m [u16],
}

impl Measure<'_> {
    /// For every bin the integrals of all products of two Chebyshev products, from moments: along each axis `T_a T_b`
    /// is the mean of `T_(a+b)` and `T_|a-b|`.
    pub fn pairs(&self, exponents: &Exponents, double: &Exponents) -> Vec<DMatrix<f64>> {
        let n = exponents.dimension();
        let positions = double.positions();
        let place = |a: &[u16], b: &[u16]| -> Vec<u32> {
            let mut sum = vec![0u16; n];
            let at = (0..1usize << n).map(|signs| {
                for j in 0..n {
                    sum[j] = if signs >> j & 1 == 0 { a[j] + b[j] } else { a[j].abs_diff(b[j]) };
                }
                positions[&sum[..]] as u32
            });
            at.collect()
        };
        let size = exponents.len();
        // Row by row, the positions of the 2^n terms of every entry of the lower triangle.
        let rows: Vec<Vec<u32>> = (0..size)
            .into_par_iter()
            .map(|i| {
                checkpoint();
                (0..=i).flat_map(|k| place(exponents.get(i), exponents.get(k))).collect()
            })
            .collect();
        let terms = 1usize << n;
        let lists = self.bins.elements(self.mesh);
        let pairs = lists.par_iter().map(|elements| {
            let moments = self.moments(elements, double);
            let mut pairs = DMatrix::zeros(size, size);
            for (i, row) in rows.iter().enumerate() {
                for (k, at) in row.chunks(terms).enumerate() {
                    let total: f64 = at.iter().map(|at| moments[*at as usize]).sum();
                    let mean = total / terms as f64;
                    (pairs[(i, k)], pairs[(k, i)]) = (mean, mean);
                }
            }
            pairs
        });
        pairs.collect()
    }

    /// Integrals of all Chebyshev products over elements of one bin.
    fn moments(&self, elements: &[&Element], exponents: &Exponents) -> Vec<f64> {
        let mut sums = vec![0.0; exponents.len()];
        let mut tables = Tables::new(exponents);
        for element in elements {
            self.rules.visit(element, |t, weight| {
                let weight = weight * self.mesh.grid.monomial(&element.bin, t, self.powers);
                tables.fill(t);
                sums.iter_mut().zip(exponents.iter()).for_each(|(s, alpha)| *s += weight * tables.product(alpha));
            });
        }
        sums
    }

    /// The Gram matrix of functions, from their coefficients.
    pub fn gram(&self, functions: &[DMatrix<f64>], exponents: &Exponents, double: &Exponents) -> DMatrix<f64> {
        inner(&self.pairs(exponents, double), functions, functions)
    }

    /// The Gram matrix of functions from their values at cubature nodes: independent of [`Measure::gram`], and more
    /// accurate where coefficients are large.
    pub fn gram_of_values(&self, functions: &[DMatrix<f64>], exponents: &Exponents) -> DMatrix<f64> {
        self.gram_of_some_values(functions, exponents, |_| None)
    }

    /// The Gram matrix from pairs on bins where coefficients are small, and from values elsewhere.
    pub fn careful_gram(
        &self,
        functions: &[DMatrix<f64>],
        exponents: &Exponents,
        pairs: &[DMatrix<f64>],
    ) -> DMatrix<f64> {
        self.gram_of_some_values(functions, exponents, |slot| (growth(&functions[slot]) < SMALL).then(|| &pairs[slot]))
    }

    fn gram_of_some_values<'p>(
        &self,
        functions: &[DMatrix<f64>],
        exponents: &Exponents,
        pairs: impl Fn(usize) -> Option<&'p DMatrix<f64>> + Sync,
    ) -> DMatrix<f64> {
        let size = functions.first().map_or(0, |f| f.ncols());
        let parts = self.grams_of_some_values(functions, exponents, pairs);
        parts.into_iter().fold(DMatrix::zeros(size, size), |sum, part| sum + part)
    }

    /// The Gram matrices of the bins: from integrals of products of two Chebyshev products where these are given, from
    /// values elsewhere.
    pub fn grams_of_some_values<'p>(
        &self,
        functions: &[DMatrix<f64>],
        exponents: &Exponents,
        pairs: impl Fn(usize) -> Option<&'p DMatrix<f64>> + Sync,
    ) -> Vec<DMatrix<f64>> {
        let size = functions.first().map_or(0, |f| f.ncols());
        let lists = self.bins.elements(self.mesh);
        let parts = lists.par_iter().zip(functions).enumerate().map(|(slot, (elements, functions))| {
            if let Some(pairs) = pairs(slot) {
                return functions.transpose() * (pairs * functions);
            }
            // A plain product is several times as fast as one with a transposed matrix.
            let rows = functions.transpose();
            let mut gram = DMatrix::zeros(size, size);
            let mut tables = Tables::new(exponents);
            let (mut products, mut weights) = (Vec::new(), Vec::new());
            for element in elements {
                self.rules.visit(element, |t, weight| {
                    tables.fill(t);
                    products.extend(exponents.iter().map(|alpha| tables.product(alpha)));
                    weights.push(weight * self.mesh.grid.monomial(&element.bin, t, self.powers));
                });
                let columns = DMatrix::from_vec(exponents.len(), weights.len(), std::mem::take(&mut products));
                let values = &rows * columns;
                let mut weighted = values.clone();
                weighted.column_iter_mut().zip(&weights).for_each(|(mut column, weight)| column *= *weight);
                gram.gemm(1.0, &weighted, &values.transpose(), 1.0);
                weights.clear();
            }
            gram
        });
        parts.collect()
    }
}

/// Inner products of two lists of functions, given by coefficients per bin, one function per column.
pub(super) fn inner(pairs: &[DMatrix<f64>], left: &[DMatrix<f64>], right: &[DMatrix<f64>]) -> DMatrix<f64> {
    let parts = pairs.par_iter().zip(left).zip(right).map(|((pairs, left), right)| {
        checkpoint();
        left.transpose() * (pairs * right)
    });
    let parts: Vec<DMatrix<f64>> = parts.collect();
    let mut parts = parts.into_iter();
    let first = parts.next().unwrap_or_else(|| DMatrix::zeros(0, 0));
    parts.fold(first, |sum, part| sum + part)
}

/// The coefficients of a bin count as small if the sum of their squares is below this.
pub(super) const SMALL: f64 = 1e4;

/// The largest sum of squared coefficients of a function on a bin: what rounding errors are multiplied by.
pub(super) fn growth(functions: &DMatrix<f64>) -> f64 {
    functions.column_iter().map(|column| column.norm_squared()).fold(0.0, f64::max)
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
