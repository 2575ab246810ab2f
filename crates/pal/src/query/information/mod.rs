//! Entropies and divergences of many parameter vectors at once, with derivatives with respect to the parameters.
//!
//! With r and s for two densities times the volumes of their boxes, S for the set that a condition leaves of the
//! support of the first and P for its probability,
//!
//! ```text
//! H          =  log(volume) + log P - F / P,                          F  =  integral over S of r log r
//! D(p || q)  =  G / P - log P - log(volume_p / volume_q),             G  =  integral over S of r (log r - log s)
//!
//! dH         =  - 1/P integral over S of (log r - F / P) dr
//! dD         =    1/P integral over S of (log r - log s - G / P) dr  -  1/P integral over S of (r / s) ds
//! ```
//!
//! Values and derivatives are sums over the same nodes. The constants F / P and G / P would not matter in exact
//! integrals, where the derivative of the total mass is known; in sums they keep its error out.
//!
//! The sums are adaptive for every row by itself (`quadrature`). Where a single density has to be known to many digits,
//! [`Density::entropy`](crate::density::Density::entropy) has more cautious estimates of its error.

mod at_nodes;
mod quadrature;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::entropy::EntropyOptions;
use super::error::QueryError;
use super::event::Event;
use crate::density::gradient::Cotangents;
use crate::density::mesh::Mesh;
use crate::density::{Family, Row};
use at_nodes::DensityAtNodes;
use quadrature::{RowCotangents, RowIntegrand, RowQuadrature};

/// The number of rows of one task, which share the nodes of an element.
const ROWS: usize = 8;

/// Entropies or divergences in nats, one for each parameter vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Information {
    /// The values. A divergence is infinite where the second density is 0 and the first is not.
    pub values: Vec<f64>,
    /// Estimates of the absolute errors.
    pub errors: Vec<f64>,
    /// For each row, whether the error is within the tolerance.
    pub converged: Vec<bool>,
    /// The derivatives with respect to the parameters, row by row, where they were asked for.
    pub gradient: Option<Vec<f64>>,
    /// The derivatives of divergences with respect to the parameters of the second density, row by row.
    pub other_gradient: Option<Vec<f64>>,
}

impl Family {
    /// The differential entropy under each parameter vector, with derivatives where they are asked for.
    ///
    /// ```
    /// use pal::density::{Family, SplineSettings};
    /// use pal::query::EntropyOptions;
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let family = Family::new(&Region::new(&x.between(0, 4).into())?, &SplineSettings::default().into())?;
    /// let mut params = family.random_params(1, 7);
    /// let options = EntropyOptions { tolerance: 1e-9, ..Default::default() };
    /// let entropy = family.information(&params, &options, true)?;
    /// let derivative = entropy.gradient.unwrap()[3];
    /// params[3] += 1e-4;
    /// let moved = family.information(&params, &options, false)?;
    /// assert!(((moved.values[0] - entropy.values[0]) / 1e-4 - derivative).abs() < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn information(
        &self,
        params: &[f64],
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> Result<Information, QueryError> {
        let question =
            InformationQuestion { family: self, mesh: self.support().mesh(), masses: None, other: None, options };
        question.answer(params, &[], with_gradient)
    }

    /// The Kullback-Leibler divergence `D(p || q)` of the densities of this family from those of another one, row by
    /// row, with derivatives with respect to the parameters of both where they are asked for. Both constraints have the
    /// same variables in the same order. The second one must hold wherever the first does; use [`Event`] otherwise.
    pub fn divergence(
        &self,
        params: &[f64],
        other: &Family,
        other_params: &[f64],
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> Result<Information, QueryError> {
        let (mesh, other) = (self.support().mesh(), Some(other));
        let question = InformationQuestion { family: self, mesh, masses: None, other, options };
        question.answer(params, other_params, with_gradient)
    }
}

impl Event {
    /// The differential entropy given that the formula holds, under each parameter vector: see [`Family::information`].
    pub fn information(
        &self,
        params: &[f64],
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> Result<Information, QueryError> {
        let (mesh, masses) = (self.support().mesh(), Some(self.probability(params)?));
        InformationQuestion { family: self.family(), mesh, masses, other: None, options }.answer(
            params,
            &[],
            with_gradient,
        )
    }

    /// The Kullback-Leibler divergence of the densities given that the formula holds from those of another family, to
    /// which nothing is given: see [`Family::divergence`].
    pub fn divergence(
        &self,
        params: &[f64],
        other: &Family,
        other_params: &[f64],
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> Result<Information, QueryError> {
        let (mesh, masses) = (self.support().mesh(), Some(self.probability(params)?));
        let question = InformationQuestion { family: self.family(), mesh, masses, other: Some(other), options };
        question.answer(params, other_params, with_gradient)
    }
}

/// What is asked of many rows.
struct InformationQuestion<'q> {
    family: &'q Family,
    /// The elements that are integrated over.
    mesh: &'q Mesh,
    /// The probability of the elements under every row; 1 where there are none.
    masses: Option<Vec<f64>>,
    other: Option<&'q Family>,
    options: &'q EntropyOptions,
}

/// The answer for one row, and its derivatives.
struct RowAnswer {
    value: f64,
    error: f64,
    gradient: Vec<f64>,
    other_gradient: Vec<f64>,
}

impl InformationQuestion<'_> {
    fn answer(&self, params: &[f64], other_params: &[f64], with_gradient: bool) -> Result<Information, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let others = match self.other {
            Some(other) => Some((other, self.check_other(other, other_params, rows.len())?)),
            None => None,
        };
        if self.masses.iter().flatten().any(|mass| !(*mass > 0.0)) {
            return Err(QueryError::Impossible);
        }
        let rules = RowQuadrature::new(self.mesh, self.family.kind().degree(), self.options)?;
        let tasks: Vec<usize> = (0..rows.len()).step_by(ROWS).collect();
        let parts = tasks.into_par_iter().map(|start| {
            let end = rows.len().min(start + ROWS);
            let sides = |row: usize| DensityAtNodes::new(self.family, &rows[row], None);
            let of_other = |row: usize| {
                let (other, rows) = others.as_ref()?;
                Some(DensityAtNodes::new(other, &rows[row], Some(self.mesh)))
            };
            let integrands: Vec<RowIntegrand<'_>> = (start..end)
                .map(|row| RowIntegrand { side: sides(row), other: of_other(row), mass: self.mass(row) })
                .collect();
            let results = rules.integrate(&integrands, with_gradient);
            let mut answers: Vec<RowAnswer> = (start..end).zip(&results).map(|(row, r)| self.value(row, r)).collect();
            if with_gradient {
                let mut sums: Vec<RowCotangents> = integrands.iter().map(RowIntegrand::sums).collect();
                rules.differentiate(&integrands, &results, &mut sums);
                for ((row, answer), (sums, of_other)) in (start..end).zip(&mut answers).zip(sums) {
                    answer.gradient = finish(self.family, &rows[row], params, row, sums);
                    if let (Some((other, rows)), Some(sums)) = (&others, of_other) {
                        answer.other_gradient = finish(other, &rows[row], other_params, row, sums);
                    }
                }
            }
            answers
        });
        let answers: Vec<RowAnswer> = parts.flatten_iter().collect();
        let finished = |answer: &RowAnswer| answer.error <= self.options.tolerance;
        Ok(Information {
            values: answers.iter().map(|answer| answer.value).collect(),
            errors: answers.iter().map(|answer| answer.error).collect(),
            converged: answers.iter().map(finished).collect(),
            other_gradient: (with_gradient && self.other.is_some())
                .then(|| answers.iter().flat_map(|answer| &answer.other_gradient).copied().collect()),
            gradient: with_gradient.then(|| answers.into_iter().flat_map(|answer| answer.gradient).collect()),
        })
    }

    fn check_other(&self, other: &Family, params: &[f64], count: usize) -> Result<Vec<Row>, QueryError> {
        let names = |family: &Family| -> Vec<String> { family.variables().iter().map(|var| var.to_string()).collect() };
        if names(self.family) != names(other) {
            return Err(QueryError::Variables(format!(
                "the densities have different variables: {} and {}",
                names(self.family).join(", "),
                names(other).join(", ")
            )));
        }
        let chart = |family: &Family| family.flat().map(|flat| flat.chart().clone());
        if chart(self.family) != chart(other) {
            return Err(QueryError::Variables(
                "the densities live on different flats, or have different free variables".to_string(),
            ));
        }
        let rows = other.proper_rows(params)?;
        if rows.len() != count {
            let (what, given) = ("parameters of the second densities", params.len());
            return Err(QueryError::Length { what, given, wanted: count * other.num_params() });
        }
        Ok(rows)
    }

    fn mass(&self, row: usize) -> f64 {
        self.masses.as_ref().map_or(1.0, |masses| masses[row])
    }

    fn value(&self, row: usize, result: &quadrature::RowSum<'_>) -> RowAnswer {
        let mass = self.mass(row);
        let log_volume = self.family.log_box_measure();
        let mean = result.value / mass;
        let value = match self.other {
            None => log_volume + mass.ln() - mean,
            Some(other) => mean - mass.ln() - (log_volume - other.log_box_measure()),
        };
        // The rounding errors of logarithms, of values of polynomials, of weights and of this sum.
        let rounding = 32.0 * f64::EPSILON * (1.0 + result.size / mass + log_volume.abs());
        let error = if value == f64::INFINITY { 0.0 } else { result.error / mass + rounding };
        RowAnswer { value, error, gradient: Vec::new(), other_gradient: Vec::new() }
    }
}

fn finish(family: &Family, row: &Row, params: &[f64], at: usize, sums: Cotangents) -> Vec<f64> {
    let per = family.num_params();
    let mut gradient = vec![0.0; per];
    family.finish(row, &params[at * per..(at + 1) * per], sums, &mut gradient);
    gradient
}
