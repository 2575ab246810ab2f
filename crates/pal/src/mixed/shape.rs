//! Marginals of reals, means, covariances, expectations and entropies of mixed densities.

use super::density::MixedDensity;
use crate::density::Density;
use crate::formula::Formula;
use crate::polynomial::Polynomial;
use crate::query::{Entropy, EntropyOptions, Marginal, QueryError};

/// The largest number of assignments whose entropies are added up one by one.
const MAX_ENTROPIES: usize = 4096;

impl MixedDensity {
    /// The exact marginal density of one real variable. Marginals of Boolean variables are tables.
    pub fn marginal(&self, variable: &str) -> Result<Marginal, QueryError> {
        if self.support.boolean(variable).is_some() {
            return Err(QueryError::Variables(format!("`{variable}` is a Boolean variable; ask for its table")));
        }
        let parts = self.part_densities(&[]);
        let marginal = |(mass, _, density): &(f64, usize, Density)| Ok((*mass, density.marginal(variable)?));
        let all = parts.iter().map(marginal).collect::<Result<Vec<_>, QueryError>>()?;
        Marginal::sum(&all).ok_or(QueryError::Impossible)
    }

    /// The joint marginal density of some real variables at points, which are given row by row in the order of the
    /// variables; the Boolean ones are summed out.
    pub fn marginal_density(&self, variables: &[&str], points: &[f64]) -> Result<Vec<f64>, QueryError> {
        if variables.len() == self.support.dimension() {
            let message = "all real variables are named; sum the density over assignments instead, or leave one out";
            return Err(QueryError::Variables(message.to_string()));
        }
        let mut total = Vec::new();
        for (mass, _, density) in self.part_densities(&[]) {
            let values = density.marginal_density(variables, points)?;
            total.resize(values.len(), 0.0);
            total.iter_mut().zip(&values).for_each(|(sum, value)| *sum += mass * value);
        }
        Ok(total)
    }

    /// The mean of every column of a point: the mean of every real variable, then the probability of every Boolean one.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = self.first_moments(&[]);
        mean.extend((0..self.support.booleans().len()).map(|at| self.mass_of(&[(at, true)])));
        mean
    }

    /// The covariance matrix of all columns of a point, row by row.
    pub fn covariance(&self) -> Vec<f64> {
        let (n, columns) = (self.support.dimension(), self.support.columns());
        let mean = self.mean();
        let mut matrix = vec![0.0; columns * columns];
        // E[cov within a part] + cov of the means of the parts.
        for (mass, _, density) in self.part_densities(&[]) {
            let (inner, centre) = (density.covariance(), density.mean());
            for i in 0..n {
                for j in 0..n {
                    let between = (centre[i] - mean[i]) * (centre[j] - mean[j]);
                    matrix[i * columns + j] += mass * (inner[i * n + j] + between);
                }
            }
        }
        for b in 0..columns - n {
            let mut fixed = vec![None; columns - n];
            fixed[b] = Some(true);
            let (probability, given) = (mean[n + b], self.first_moments(&fixed));
            for i in 0..n {
                // Cov(y, b) = P(b) (E[y | b] - E[y]); the moments of an impossible value are 0 and so is P(b).
                let value = if probability > 0.0 { given[i] - probability * mean[i] } else { 0.0 };
                (matrix[i * columns + n + b], matrix[(n + b) * columns + i]) = (value, value);
            }
            for other in 0..=b {
                let both = if other == b { probability } else { self.mass_of(&[(b, true), (other, true)]) };
                let value = both - probability * mean[n + other];
                matrix[(n + b) * columns + n + other] = value;
                matrix[(n + other) * columns + n + b] = value;
            }
        }
        matrix
    }

    /// The integrals of all real variables over the part of the support where Boolean variables have given values.
    fn first_moments(&self, fixed: &[Option<bool>]) -> Vec<f64> {
        let mut sums = vec![0.0; self.support.dimension()];
        for (mass, _, density) in self.part_densities(fixed) {
            sums.iter_mut().zip(density.mean()).for_each(|(sum, mean)| *sum += mass * mean);
        }
        sums
    }

    /// The probability that some Boolean variables have given values.
    fn mass_of(&self, values: &[(usize, bool)]) -> f64 {
        let mut fixed = vec![None; self.support.booleans().len()];
        values.iter().for_each(|(at, value)| fixed[*at] = Some(*value));
        self.masses(&fixed).iter().flatten().sum()
    }

    /// The expectation of a polynomial in the real variables times the indicator of a condition.
    pub fn expectation(&self, polynomial: &Polynomial, condition: &Formula) -> Result<f64, QueryError> {
        let restricted = if condition.is_true() { self.clone() } else { self.restricted(condition)? };
        let parts = restricted.part_densities(&[]);
        let terms = parts.iter().map(|(mass, _, density)| Ok(mass * density.expectation(polynomial)?));
        terms.sum()
    }

    /// The entropy in nats, of assignments and reals together: `- sum over b of integral of p(y, b) log p(y, b)`. More
    /// than 4096 assignments are an error.
    pub fn entropy(&self, options: &EntropyOptions) -> Result<Entropy, QueryError> {
        let mut tasks = Vec::new();
        for (at, part) in self.support.parts.iter().enumerate() {
            let most = MAX_ENTROPIES - tasks.len().min(MAX_ENTROPIES);
            let all = self.support.diagram.list(part.assignments, most).ok_or_else(|| {
                QueryError::Variables(format!(
                    "the entropy is a sum over assignments of the Boolean variables, of which there are more than \
                     {MAX_ENTROPIES}; estimate it from samples instead"
                ))
            })?;
            tasks.extend(all.into_iter().map(|assignment| (at, assignment)));
        }
        let mut total = Entropy { value: 0.0, error: 0.0, evaluations: 0, converged: true };
        for (at, assignment) in tasks {
            let fixed: Vec<Option<bool>> = assignment.iter().map(|value| Some(*value)).collect();
            let parts = self.part_densities(&fixed);
            let Some((mass, _, density)) = parts.iter().find(|(_, part, _)| *part == at) else { continue };
            let inner = density.entropy(options);
            total.value += mass * (inner.value - mass.ln());
            total.error += mass * inner.error;
            total.evaluations += inner.evaluations;
            total.converged &= inner.converged;
        }
        Ok(total)
    }
}
