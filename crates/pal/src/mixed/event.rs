//! Probabilities of mixed conditions under many parameter vectors, with their gradients.

use std::sync::Arc;

use rayon::prelude::*;

use super::density::MixedDensity;
use super::family::{MixedFamily, MixedRow, compile_forms};
use super::support::MixedSupport;
use crate::density::Form;
use crate::formula::Formula;
use crate::query::QueryError;

/// A condition on real and Boolean variables compiled on a mixed family.
pub struct MixedEvent {
    family: MixedFamily,
    support: Arc<MixedSupport>,
    forms: Vec<Box<dyn Form>>,
}

impl MixedFamily {
    /// Compiles a condition on the variables of the constraint, to ask for its probability or to condition on it.
    pub fn event(&self, condition: &Formula) -> Result<MixedEvent, QueryError> {
        let support = Arc::new(self.support().within(condition)?);
        let forms = compile_forms(self.base(), &support)?;
        Ok(MixedEvent { family: self.clone(), support, forms })
    }
}

/// For every row and component the probabilities of the sets of assignments of an event.
type Sets = Vec<Vec<Vec<f64>>>;

impl MixedEvent {
    /// For every row the probabilities of the sets of assignments and the integrals over the parts.
    fn integrals(&self, rows: &[MixedRow]) -> (Sets, Vec<Vec<Vec<f64>>>) {
        let components = self.family.num_components();
        let expansions: Vec<_> = rows.iter().map(|row| row.row.expansion.clone()).collect();
        let by_part = self.family.integrals(&self.support, &self.forms, &expansions);
        let diagram = &self.support.diagram;
        let sets = rows.iter().map(|row| row.odds.iter().map(|odds| diagram.probabilities(odds, &[])).collect());
        let of_row =
            |at: usize| by_part.iter().map(|all| all[at * components..(at + 1) * components].to_vec()).collect();
        (sets.collect(), (0..rows.len()).map(of_row).collect())
    }

    /// What every component contributes to the probability, for one row.
    fn terms(&self, row: &MixedRow, sets: &[Vec<f64>], integrals: &[Vec<f64>]) -> Vec<f64> {
        let weights = row.row.weights();
        let mass = |m: usize| -> f64 {
            let parts = self.support.parts.iter().zip(integrals);
            parts.map(|(part, all)| sets[m][part.assignments.position()] * all[m]).sum()
        };
        let term = |(m, weight): (usize, &f64)| match mass(m) {
            0.0 => 0.0,
            mass => weight * mass,
        };
        weights.iter().enumerate().map(term).collect()
    }

    /// The probability of the condition under each parameter vector.
    pub fn probability(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let (sets, integrals) = self.integrals(&rows);
        let each = rows.iter().zip(sets.iter().zip(&integrals));
        Ok(each.map(|(row, (s, i))| self.terms(row, s, i).iter().sum::<f64>().clamp(0.0, 1.0)).collect())
    }

    /// The vector-Jacobian product of [`MixedEvent::probability`] with respect to the parameters.
    pub fn probability_vjp(&self, params: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        if cotangent.len() != rows.len() {
            let wanted = rows.len();
            return Err(QueryError::Length { what: "gradients of probabilities", given: cotangent.len(), wanted });
        }
        let (sets, integrals) = self.integrals(&rows);
        let per = self.family.num_params();
        let mut gradient = vec![0.0; params.len()];
        let tasks = gradient.par_chunks_mut(per).zip(params.par_chunks(per)).zip(rows.par_iter()).enumerate();
        tasks.for_each(|(at, ((gradient, params), row))| {
            let (sets, integrals, g) = (&sets[at], &integrals[at], cotangent[at]);
            let mut sums = self.family.cotangents(row);
            let terms = self.terms(row, sets, integrals);
            sums.reals.weights.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += g * term);
            let weights = row.row.weights();
            let on = (&*self.support, &self.forms[..]);
            self.family.add_integral_gradients(on, row, (sets, integrals), |m| g * weights[m], &mut sums);
            self.family.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }

    /// The density given that the condition holds, for each parameter vector.
    pub fn condition(&self, params: &[f64]) -> Result<Vec<MixedDensity>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let restrict = |row: &MixedRow| {
            let density = self.family.density_of(row).on(self.support.clone());
            density.normalised().ok_or(QueryError::Impossible)
        };
        rows.iter().map(restrict).collect()
    }
}
