//! Means, covariances and expectations of other polynomials.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::KernelFamily;
use super::head::KernelRow;
use super::pieces::trapezoids;
use super::triweight;
use crate::density::gauss::Gauss;
use crate::formula::Var;
use crate::interrupt::checkpoint;
use crate::number::{self, Rational};
use crate::polynomial::Polynomial;
use crate::query::QueryError;

/// A polynomial in coordinates of the box: exponents and coefficients.
type BoxTerms = Vec<([i32; 2], f64)>;

/// A mean, and a covariance matrix row by row.
pub type MeanAndCovariance = ([f64; 2], [f64; 4]);

impl KernelFamily {
    /// The mean and the covariance matrix (row by row) of each row of parameters.
    pub fn mean_and_covariance(&self, params: &[f64]) -> Result<Vec<MeanAndCovariance>, QueryError> {
        let rows = self.rows(params)?;
        let half = self.half_widths();
        let answer = |row: &KernelRow| {
            let terms = [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]].map(|powers| vec![(powers, 1.0)]);
            let sums = self.integrals(row, 2, &terms);
            if !(sums[0] >= f64::MIN_POSITIVE) {
                return Err(QueryError::Impossible);
            }
            let [x, y] = [sums[1] / sums[0], sums[2] / sums[0]];
            let second = [sums[3] / sums[0] - x * x, sums[4] / sums[0] - x * y, sums[5] / sums[0] - y * y];
            let cross = second[1] * half[0] * half[1];
            let covariance = [second[0] * half[0] * half[0], cross, cross, second[2] * half[1] * half[1]];
            Ok((self.to_user([x, y]), covariance))
        };
        rows.par_iter().map(answer).collect()
    }

    /// The expectations of polynomials in the variables of the constraint, for each row of parameters: all polynomials
    /// of the first row, then those of the second one, and so on.
    pub fn expectation(&self, params: &[f64], polynomials: &[Polynomial]) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        let mut terms: Vec<BoxTerms> = vec![vec![([0, 0], 1.0)]];
        for polynomial in polynomials {
            terms.push(self.in_box(polynomial)?);
        }
        let degree = terms.iter().flatten().map(|([a, b], _)| a + b).max().unwrap_or(0);
        let answer = |row: &KernelRow| {
            let sums = self.integrals(row, degree as usize, &terms);
            if !(sums[0] >= f64::MIN_POSITIVE) {
                return Err(QueryError::Impossible);
            }
            Ok(sums[1..].iter().map(|sum| sum / sums[0]).collect::<Vec<f64>>())
        };
        let parts: Vec<Vec<f64>> = rows.par_iter().map(answer).collect::<Result<_, QueryError>>()?;
        Ok(parts.concat())
    }

    /// Rewrites a polynomial in coordinates of the box, which run from -1 to 1.
    fn in_box(&self, polynomial: &Polynomial) -> Result<BoxTerms, QueryError> {
        let two = Rational::from(2);
        let changes: BTreeMap<Var, (Rational, Rational)> = (self.0.variables.iter())
            .zip(&self.0.ends)
            .map(|(var, (low, high))| (var.clone(), ((high - low) / &two, (high + low) / &two)))
            .collect();
        let terms = polynomial.affine(&changes)?.aligned(&self.0.variables)?;
        let term = |(powers, c): (Vec<u16>, Rational)| ([0, 1].map(|j| i32::from(powers[j])), number::to_f64(&c));
        Ok(terms.into_iter().map(term).collect())
    }

    /// The integrals of polynomials times the density of a row before it is normalised.
    fn integrals(&self, row: &KernelRow, degree: usize, polynomials: &[BoxTerms]) -> Vec<f64> {
        checkpoint();
        let mut sums = vec![0.0; polynomials.len()];
        let mut add = |v: [f64; 2], weight: f64| {
            for (sum, terms) in sums.iter_mut().zip(polynomials) {
                let value: f64 = terms.iter().map(|([a, b], c)| c * v[0].powi(*a) * v[1].powi(*b)).sum();
                *sum += weight * value;
            }
        };
        let bell = |u: [f64; 2]| triweight::value(u[0]) * triweight::value(u[1]);
        // Inside a trapezoid the integral over the second coordinate is of degree 7 more in the first one.
        let (outer, inner) = (Gauss::for_degree(13 + 2 * degree), Gauss::for_degree(6 + degree));
        for (kernel, weight) in row.kernels.iter().zip(&row.weights).filter(|(_, weight)| **weight > 0.0) {
            for trapezoid in trapezoids(&self.0.pieces, kernel) {
                trapezoid.visit([&outer, &inner], |u, node| add(kernel.to_box(u), weight * node * bell(u)));
            }
        }
        let (outer, inner) = (Gauss::for_degree(1 + 2 * degree), Gauss::for_degree(degree));
        let height = row.uniform / self.0.whole_volume;
        for trapezoid in self.0.pieces.iter().flat_map(|piece| piece.trapezoids()) {
            trapezoid.visit([&outer, &inner], |v, node| add(v, node * height));
        }
        sums
    }
}
