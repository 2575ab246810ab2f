//! Solves a problem by summing integrals over cells on each of which the weight is a single polynomial.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::factors::FactorSearch;
use super::problem::Problem;
use super::weight::{CompiledWeight, SymbolicWeight, Weight};
use crate::formula::{Constraint, Formula, Membership, Substitution};
use crate::moments::certify::{self, CellIntegrand};
use crate::moments::gasp::{self, GaspError};
use crate::moments::rejection::{self, RejectionError};
use crate::moments::{AffineFrame, Integral, Integrand, IntegrandError, Method, around};
use crate::number::Rational;
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Cell, Region, RegionError, Unbounded};

/// Why a problem has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WmiError {
    /// The support cannot be made into a region.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The weight does not vanish on an unbounded part of the support.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The weight on some cell is a polynomial that the integrators refuse.
    #[error(transparent)]
    Integrand(#[from] IntegrandError),
    /// The weight on some cell, written out as one polynomial, passes a limit.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// GASP! cubature cannot integrate the weight.
    #[error(transparent)]
    Gasp(#[from] GaspError),
    /// Rejection sampling cannot integrate the weight.
    #[error(transparent)]
    Rejection(#[from] RejectionError),
    /// The problem neither falls apart nor fits into memory.
    #[error(
        "the problem is too entangled: {parts} parts of it were solved, and keeping more of them would take too much \
         memory. Problems fall apart where few variables connect the rest; fix some variables, or state fewer conditions \
         that tie many of them together"
    )]
    TooEntangled {
        /// the parts that were solved
        parts: usize,
    },
    /// The problem has too many Boolean variables for rejection sampling.
    #[error("{0} Boolean variables are too many for rejection sampling; at most {MAX_SAMPLED_BOOLEANS} are possible")]
    TooManyBooleans(usize),
}

/// A weighted volume: the integral of the weight, with its error.
pub type Answer = Integral;

/// The answers to a weighted-model-integration problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Solution {
    /// The weighted volume of the support.
    pub total: Answer,
    /// For each query, the weighted volume of the set of points that are in the support and satisfy the query.
    pub queries: Vec<Answer>,
}

/// Rejection sampling goes through all assignments of at most this many Boolean variables.
const MAX_SAMPLED_BOOLEANS: usize = 16;

impl Problem {
    /// Computes the weighted volume of the support, and of its intersection with each query.
    ///
    /// Independent parts of the problem are integrated one by one, so that many variables are possible where few of them
    /// interact.
    pub fn solve(&self, method: Method) -> Result<Solution, WmiError> {
        let mut search = match method {
            Method::Recurrence | Method::Exact => FactorSearch::new(&self.support, &self.weight, method),
            Method::Gasp | Method::Rejection { .. } => None,
        };
        let mut integrate = |query: Option<&Formula>| {
            let mut constraint: Constraint = self.support.clone();
            if let Some(query) = query {
                constraint.formula = constraint.formula & query.clone();
            }
            match (search.as_mut().and_then(|search| search.integrate(&constraint.formula)), method) {
                (Some(answer), Method::Recurrence) => answer.and_then(|answer| self.assured(answer, &constraint)),
                (Some(answer), _) => answer,
                (None, Method::Rejection { samples, seed }) => self.sample(&constraint, samples, seed),
                (None, _) => integrate_cells(&constraint, &self.weight, method),
            }
        };
        let total = integrate(None)?;
        let queries = self.queries.iter().map(|query| integrate(Some(query)));
        Ok(Solution { total, queries: queries.collect::<Result<_, _>>()? })
    }

    /// An answer in float64 whose bound is good enough: if parts cancelled, they are computed again in fractions.
    fn assured(&self, answer: Answer, constraint: &Constraint) -> Result<Answer, WmiError> {
        if answer.exact.is_some() || certify::good_enough(answer.value, answer.error) {
            return Ok(answer);
        }
        let search = FactorSearch::new(&self.support, &self.weight, Method::Exact);
        match search.and_then(|mut search| search.integrate(&constraint.formula)) {
            Some(exact) => exact,
            None => Ok(answer),
        }
    }

    /// Integrates by rejection sampling, separately for each assignment of the Boolean variables.
    fn sample(&self, constraint: &Constraint, samples: u64, seed: u64) -> Result<Answer, WmiError> {
        let count = constraint.booleans.len();
        if count > MAX_SAMPLED_BOOLEANS {
            return Err(WmiError::TooManyBooleans(count));
        }
        let conditions = self.weight.conditions();
        let assignments = 1u64 << count;
        let mut answer = Answer::default();
        let mut variance = 0.0;
        for assignment in 0..assignments {
            let values: Vec<bool> = (0..count).map(|k| assignment >> k & 1 == 1).collect();
            let substitution = constraint
                .booleans
                .iter()
                .zip(&values)
                .fold(Substitution::new(), |s, (var, value)| s.boolean(var.name(), Formula::constant(*value)));
            let formula = constraint.formula.substitute(&substitution);
            let region = Region::new(&Constraint { formula, reals: constraint.reals.clone(), booleans: Vec::new() })?;
            let tests: Vec<Membership> = conditions
                .iter()
                .map(|c| Membership::new(&c.substitute(&substitution), &constraint.reals, &[]))
                .collect::<Result<_, _>>()
                .map_err(RejectionError::from)?;
            let weight = |point: &[f64]| self.weight.at(&constraint.reals, point, &mut tests.iter());
            let samples_each = samples.div_ceil(assignments);
            let part = rejection::integrate_fn(&region, weight, samples_each, seed.wrapping_add(assignment))?;
            answer.value += part.value;
            variance += part.standard_error * part.standard_error;
        }
        answer.error = variance.sqrt();
        Ok(answer)
    }
}

/// Cuts the support into cells on each of which the weight is one polynomial, and integrates over them.
pub(super) fn integrate_cells(
    constraint: &Constraint,
    weight: &SymbolicWeight,
    method: Method,
) -> Result<Answer, WmiError> {
    let (region, compiled) = Region::with_conditions(constraint, &weight.conditions())?;
    let weight: CompiledWeight = weight.compile(&mut compiled.into_iter());
    let pieces = region.map_loaded(region.root(weight), |cell, weight| (cell, weight))?;
    if pieces.is_empty() {
        return Ok(Answer { exact: Some(Rational::ZERO), ..Answer::default() });
    }
    let ends = around(pieces.iter().map(|(cell, _)| cell));
    let in_frame = |frame| Integrands { constraint, frame, known: Mutex::default() };
    Ok(match method {
        Method::Exact => certify::exact(&in_frame(AffineFrame::origin(&ends)).prepare(&pieces)?)?,
        Method::Gasp => cubature(constraint, &pieces)?,
        // The coordinates as given are tried first: weights are often sparse as they are written, and a shift would
        // fill them up. Coordinates around the centre come next, because fewer digits cancel there.
        Method::Recurrence | Method::Rejection { .. } => {
            let plain = in_frame(AffineFrame::origin(&ends)).prepare(&pieces)?;
            certify::certified(&plain, || in_frame(AffineFrame::centred(&ends)).prepare(&pieces))?
        }
    })
}

/// Integrates by GASP! cubature, cell by cell.
fn cubature(constraint: &Constraint, pieces: &[(Cell, CompiledWeight)]) -> Result<Answer, WmiError> {
    let mut answer = Answer { cells: pieces.len(), ..Answer::default() };
    for (cell, weight) in pieces {
        let polynomial = settled(weight)?;
        let part = gasp::integrate_cell(cell, &constraint.reals, polynomial)?;
        answer.value += part.value;
        answer.error += part.rounding_error + answer.value.abs() * f64::EPSILON;
        answer.simplices += part.simplices as usize;
    }
    Ok(answer)
}

/// Returns the polynomial that a weight has become at the end of the search.
fn settled(weight: &CompiledWeight) -> Result<&Polynomial, PolynomialError> {
    match &**weight {
        Weight::Polynomial(polynomial) => Ok(polynomial),
        Weight::Failed(error) => Err(error.clone()),
        _ => unreachable!("the search ends only where the weight has become a polynomial or has failed"),
    }
}

/// Integrands by polynomial. They are kept because many cells often have the same weight.
struct Integrands<'c> {
    constraint: &'c Constraint,
    frame: AffineFrame,
    known: Mutex<HashMap<Polynomial, Arc<Integrand>>>,
}

impl Integrands<'_> {
    fn of(&self, weight: &CompiledWeight) -> Result<Arc<Integrand>, IntegrandError> {
        let polynomial = settled(weight)?;
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(integrand) = known.get(polynomial) {
            return Ok(integrand.clone());
        }
        let integrand = Arc::new(Integrand::new(polynomial, &self.constraint.reals, &self.frame)?);
        known.insert(polynomial.clone(), integrand.clone());
        Ok(integrand)
    }

    fn prepare<'p>(&self, pieces: &'p [(Cell, CompiledWeight)]) -> Result<Vec<CellIntegrand<'p>>, IntegrandError> {
        pieces.iter().map(|(cell, weight)| Ok((cell, self.of(weight)?))).collect()
    }
}
