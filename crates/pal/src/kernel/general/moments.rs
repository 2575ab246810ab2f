//! Means, covariances and expectations of other polynomials.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::head::GeneralRow;
use super::simplices::{self, seen_by, visit_nodes};
use super::{GeneralKernelFamily, Point};
use crate::density::gauss::Gauss;
use crate::formula::Var;
use crate::interrupt::checkpoint;
use crate::number::{self, Rational};
use crate::polynomial::Polynomial;
use crate::query::QueryError;

/// A polynomial in coordinates of the box: exponents and coefficients.
type SpaceTerms = Vec<(Vec<u16>, f64)>;

/// A mean, and a covariance matrix row by row.
type MeanWithCovariance = (Vec<f64>, Vec<f64>);

impl GeneralKernelFamily {
    /// The mean and the covariance matrix (row by row) of each row of parameters.
    pub fn mean_and_covariance(&self, params: &[f64]) -> Result<Vec<MeanWithCovariance>, QueryError> {
        let (rows, n) = (self.rows(params)?, self.dimension());
        let power = |axes: &[usize]| -> SpaceTerms {
            let mut powers = vec![0; n];
            axes.iter().for_each(|j| powers[*j] += 1);
            vec![(powers, 1.0)]
        };
        let pairs = (0..n).flat_map(|i| (0..n).map(move |j| [i, j]));
        let terms: Vec<SpaceTerms> =
            [power(&[])].into_iter().chain((0..n).map(|j| power(&[j]))).chain(pairs.map(|pair| power(&pair))).collect();
        let answer = |row: &GeneralRow| {
            let sums = self.integrals(row, 2, &terms);
            if !(sums[0] >= f64::MIN_POSITIVE) {
                return Err(QueryError::Impossible);
            }
            let first: Vec<f64> = (0..n).map(|j| sums[1 + j] / sums[0]).collect();
            let second = |i: usize, j: usize| sums[1 + n + i * n + j] / sums[0] - first[i] * first[j];
            let scale = |i: usize, j: usize| self.half_width(i) * self.half_width(j);
            let covariance = (0..n * n).map(|k| second(k / n, k % n) * scale(k / n, k % n)).collect();
            let mean: Point = std::array::from_fn(|j| first.get(j).copied().unwrap_or(0.0));
            Ok((self.to_user(&mean), covariance))
        };
        rows.par_iter().map(answer).collect()
    }

    /// The expectations of polynomials in the variables of the constraint, for each row of parameters: all polynomials
    /// of the first row, then those of the second one, and so on.
    pub fn expectation(&self, params: &[f64], polynomials: &[Polynomial]) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        let two = Rational::from(2);
        let changes: BTreeMap<Var, (Rational, Rational)> = (self.0.variables.iter().cloned())
            .zip(self.ends())
            .map(|(var, [low, high])| (var, ((&high - &low) / &two, (high + low) / &two)))
            .collect();
        let mut terms: Vec<SpaceTerms> = vec![vec![(vec![0; self.dimension()], 1.0)]];
        for polynomial in polynomials {
            let exact = polynomial.affine(&changes)?.aligned(&self.0.variables)?;
            terms.push(exact.into_iter().map(|(powers, c)| (powers, number::to_f64(&c))).collect());
        }
        let degree = terms.iter().flatten().map(|(powers, _)| powers.iter().map(|p| usize::from(*p)).sum()).max();
        let answer = |row: &GeneralRow| {
            let sums = self.integrals(row, degree.unwrap_or(0), &terms);
            if !(sums[0] >= f64::MIN_POSITIVE) {
                return Err(QueryError::Impossible);
            }
            Ok(sums[1..].iter().map(|sum| sum / sums[0]).collect::<Vec<f64>>())
        };
        let parts: Vec<Vec<f64>> = rows.par_iter().map(answer).collect::<Result<_, QueryError>>()?;
        Ok(parts.concat())
    }

    /// The integrals of polynomials times the density of a row before it is normalised.
    fn integrals(&self, row: &GeneralRow, degree: usize, polynomials: &[SpaceTerms]) -> Vec<f64> {
        let n = self.dimension();
        let mut sums = vec![0.0; polynomials.len()];
        let mut add = |v: Point, weight: f64| {
            for (sum, terms) in sums.iter_mut().zip(polynomials) {
                let term = |(powers, c): &(Vec<u16>, f64)| {
                    powers.iter().zip(v).fold(*c, |product, (power, v)| product * v.powi(i32::from(*power)))
                };
                *sum += weight * terms.iter().map(term).sum::<f64>();
            }
        };
        let rule = simplices::rule(n, degree);
        for (kernel, weight) in row.kernels.iter().zip(&row.weights).filter(|(_, weight)| **weight > 0.0) {
            checkpoint();
            for part in seen_by(kernel, &self.0.simplices) {
                part.visit(&rule, &mut |u, node| add(kernel.to_box(&u), weight * node * kernel.bell(&u)));
            }
        }
        let rule = Gauss::for_degree(degree + n - 1);
        let factorial: f64 = (1..=n).map(|k| k as f64).product();
        let height = row.uniform / self.0.whole_volume;
        for simplex in &self.0.simplices {
            visit_nodes(&simplex.corners, &rule, &mut |v, node| add(v, node * simplex.volume * factorial * height));
        }
        sums
    }
}
