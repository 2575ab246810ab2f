//! Probabilities of mixed conditions under many parameter vectors, with their gradients.

use std::sync::Arc;

use rayon::prelude::*;

use super::density::MixedDensity;
use super::family::{MixedCotangents, MixedFamily, MixedRow, PartForms, compile_forms};
use super::support::MixedSupport;
use crate::formula::Formula;
use crate::query::QueryError;

/// A condition on real and Boolean variables compiled on a mixed family.
pub struct MixedEvent {
    family: MixedFamily,
    term: EventTerm,
}

/// The integral of a monomial in coordinates of the box over the part of a support where a condition holds.
#[derive(Clone)]
pub(super) struct EventTerm {
    pub support: Arc<MixedSupport>,
    /// `None` for those of the family, whose integrals every row has: where the condition is one on Boolean variables
    /// alone, and the monomial is 1.
    pub forms: Option<Arc<PartForms>>,
}

/// What a term is for one row.
pub(super) struct TermValue {
    /// For each component the probabilities of the sets of assignments.
    sets: Vec<Vec<f64>>,
    /// For each part the integrals of all components.
    integrals: Vec<Vec<f64>>,
    /// What every component contributes to the expectation.
    pub terms: Vec<f64>,
}

impl TermValue {
    /// The expectation.
    pub fn total(&self) -> f64 {
        self.terms.iter().sum()
    }
}

impl MixedFamily {
    /// Compiles a condition on the variables of the constraint, to ask for its probability or to condition on it.
    pub fn event(&self, condition: &Formula) -> Result<MixedEvent, QueryError> {
        Ok(MixedEvent { family: self.clone(), term: self.term(condition)? })
    }

    /// The probability of a condition as a term.
    pub(super) fn term(&self, condition: &Formula) -> Result<EventTerm, QueryError> {
        if let Some(support) = self.support().within_assignments(condition)? {
            return Ok(EventTerm { support: Arc::new(support), forms: None });
        }
        let support = Arc::new(self.support().within(condition)?);
        let forms = Some(Arc::new(compile_forms(self.base(), &support, &[])?));
        Ok(EventTerm { support, forms })
    }
}

impl EventTerm {
    /// The values for all rows.
    pub fn values(&self, family: &MixedFamily, rows: &[MixedRow]) -> Vec<TermValue> {
        let components = family.num_components();
        let by_part = self.forms.as_ref().map(|forms| {
            let expansions: Vec<_> = rows.iter().map(|row| row.row.expansion.clone()).collect();
            family.integrals(&self.support, forms, &expansions)
        });
        let value = |(at, row): (usize, &MixedRow)| {
            let sets: Vec<Vec<f64>> =
                row.odds.iter().map(|odds| self.support.diagram.probabilities(odds, &[])).collect();
            let integrals: Vec<Vec<f64>> = match &by_part {
                None => row.integrals.clone(),
                Some(all) => all.iter().map(|all| all[at * components..(at + 1) * components].to_vec()).collect(),
            };
            let mass = |m: usize| -> f64 {
                let parts = self.support.parts.iter().zip(&integrals);
                parts.map(|(part, all)| sets[m][part.assignments.position()] * all[m]).sum()
            };
            let term = |(m, weight): (usize, f64)| match mass(m) {
                0.0 => 0.0,
                mass => weight * mass,
            };
            let terms = row.row.weights().into_iter().enumerate().map(term).collect();
            TermValue { sets, integrals, terms }
        };
        rows.par_iter().enumerate().map(value).collect()
    }

    /// Adds the gradient of `g` times the expectation at fixed integrals over the support of the family.
    pub fn add_gradient(
        &self,
        family: &MixedFamily,
        row: &MixedRow,
        value: &TermValue,
        g: f64,
        sums: &mut MixedCotangents,
    ) {
        sums.reals.weights.iter_mut().zip(&value.terms).for_each(|(sum, term)| *sum += g * term);
        let weights = row.row.weights();
        let on = (&*self.support, self.forms.as_deref().unwrap_or(family.forms()));
        family.add_integral_gradients(on, row, (&value.sets, &value.integrals), |m| g * weights[m], sums);
    }
}

impl MixedEvent {
    /// The part of the support of the family in which the condition holds.
    pub fn support(&self) -> &Arc<MixedSupport> {
        &self.term.support
    }

    /// The probability of the condition under each parameter vector.
    pub fn probability(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let values = self.term.values(&self.family, &rows);
        Ok(values.iter().map(|value| value.total().clamp(0.0, 1.0)).collect())
    }

    /// The vector-Jacobian product of [`MixedEvent::probability`] with respect to the parameters.
    pub fn probability_vjp(&self, params: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, QueryError> {
        self.family.terms_vjp(std::slice::from_ref(&self.term), params, cotangent)
    }

    /// The density given that the condition holds, for each parameter vector.
    pub fn condition(&self, params: &[f64]) -> Result<Vec<MixedDensity>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let restrict = |row: &MixedRow| {
            let density = self.family.density_of(row).on(self.term.support.clone());
            density.normalised().ok_or(QueryError::Impossible)
        };
        rows.iter().map(restrict).collect()
    }
}
