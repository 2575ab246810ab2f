//! Expectations of polynomials on conditions under many parameter vectors, with their gradients: tables, means and
//! covariances of batches.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::event::{EventTerm, TermValue};
use super::family::{MixedFamily, PartForms, compile_forms};
use crate::formula::Formula;
use crate::polynomial::Polynomial;
use crate::query::{QueryError, box_terms};

/// Expectations of polynomials in the real variables, each times the indicator of a condition, compiled on a family.
pub struct MixedExpectation {
    family: MixedFamily,
    terms: Vec<EventTerm>,
    /// For each expectation its terms with their factors.
    sums: Vec<Vec<(usize, f64)>>,
}

impl MixedFamily {
    /// Compiles expectations of polynomials in the real variables, each times the indicator of a condition on real and
    /// Boolean variables.
    ///
    /// ```
    /// # use pal::density::HistogramSettings;
    /// # use pal::formula::{Formula, reals};
    /// # use pal::polynomial::Polynomial;
    /// # use pal::{mixed::MixedFamily, region::Region};
    /// let [x] = reals(["x"]);
    /// let wet = Formula::boolean("wet");
    /// let phi = x.between(0, 4) & (!wet.clone() | x.le(1));
    /// let family = MixedFamily::new(&Region::new(&phi.into())?, &HistogramSettings::default().into())?;
    /// let params = family.random_params(1, 3);
    /// let wanted = [(Polynomial::from(x), wet.clone()), (Polynomial::one(), wet.clone())];
    /// let [of_x, of_wet] = family.expectation(&wanted)?.values(&params)?[..] else { unreachable!() };
    /// let density = family.density(&params)?;
    /// assert!((of_wet - density.probability(&wet)?).abs() < 1e-14 && of_x < of_wet);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expectation(&self, wanted: &[(Polynomial, Formula)]) -> Result<MixedExpectation, QueryError> {
        let (mut terms, mut sums): (Vec<EventTerm>, Vec<Vec<(usize, f64)>>) = (Vec::new(), Vec::new());
        // The forms of monomials over the parts of the family, which conditions on Boolean variables share.
        let mut shared: HashMap<Vec<u16>, Arc<PartForms>> = HashMap::new();
        for (polynomial, condition) in wanted {
            let (base, chart) = (self.support().base(), self.support().chart());
            let event = self.term(condition)?;
            let mut sum = Vec::new();
            for (powers, factor) in box_terms(base, chart.map(|chart| &**chart), polynomial)? {
                let forms = if powers.iter().all(|power| *power == 0) {
                    event.forms.clone()
                } else if event.forms.is_some() {
                    Some(Arc::new(compile_forms(self.base(), &event.support, &powers)?))
                } else if let Some(forms) = shared.get(&powers) {
                    Some(forms.clone())
                } else {
                    let forms = Arc::new(compile_forms(self.base(), self.support(), &powers)?);
                    Some(shared.entry(powers).or_insert(forms).clone())
                };
                sum.push((terms.len(), factor));
                terms.push(EventTerm { forms, ..event.clone() });
            }
            sums.push(sum);
        }
        Ok(MixedExpectation { family: self.clone(), terms, sums })
    }

    /// The vector-Jacobian product of the values of terms with respect to the parameters; `cotangent` has one number
    /// per term for each row.
    pub(super) fn terms_vjp(
        &self,
        terms: &[EventTerm],
        params: &[f64],
        cotangent: &[f64],
    ) -> Result<Vec<f64>, QueryError> {
        let rows = self.proper_rows(params)?;
        if cotangent.len() != rows.len() * terms.len() {
            let wanted = rows.len() * terms.len();
            return Err(QueryError::Length { what: "gradients of expectations", given: cotangent.len(), wanted });
        }
        let values: Vec<Vec<TermValue>> = terms.iter().map(|term| term.values(self, &rows)).collect();
        let per = self.num_params();
        let mut gradient = vec![0.0; params.len()];
        let tasks = gradient.par_chunks_mut(per).zip(params.par_chunks(per)).zip(rows.par_iter()).enumerate();
        tasks.for_each(|(at, ((gradient, params), row))| {
            let mut sums = self.cotangents(row);
            for (k, (term, values)) in terms.iter().zip(&values).enumerate() {
                let g = cotangent[at * terms.len() + k];
                if g != 0.0 {
                    term.add_gradient(self, row, &values[at], g, &mut sums);
                }
            }
            self.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }
}

impl MixedExpectation {
    /// The expectations under each parameter vector, row by row.
    pub fn values(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let values: Vec<Vec<TermValue>> = self.terms.iter().map(|term| term.values(&self.family, &rows)).collect();
        let of = |row: usize| {
            let sum = |sum: &Vec<(usize, f64)>| sum.iter().map(|(k, c)| c * values[*k][row].total()).sum::<f64>();
            self.sums.iter().map(sum).collect::<Vec<f64>>()
        };
        Ok((0..rows.len()).flat_map(of).collect())
    }

    /// The vector-Jacobian product of [`MixedExpectation::values`] with respect to the parameters.
    pub fn values_vjp(&self, params: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = params.len() / self.family.num_params();
        if cotangent.len() != rows * self.sums.len() {
            let wanted = rows * self.sums.len();
            return Err(QueryError::Length { what: "gradients of expectations", given: cotangent.len(), wanted });
        }
        let mut by_term = vec![0.0; rows * self.terms.len()];
        for (row, cotangent) in cotangent.chunks(self.sums.len().max(1)).enumerate() {
            for (sum, g) in self.sums.iter().zip(cotangent) {
                sum.iter().for_each(|(k, c)| by_term[row * self.terms.len() + k] += c * g);
            }
        }
        self.family.terms_vjp(&self.terms, params, &by_term)
    }
}
