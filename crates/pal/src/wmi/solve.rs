//! Solving a problem: sum of integrals over cells on which the weight is one polynomial.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::problem::Problem;
use super::weight::{CompiledWeight, Weight};
use crate::formula::{Constraint, Formula};
use crate::moments::{Estimate, Frame, Integrand, IntegrandError};
use crate::number::{self, Rational};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Cell, Region, RegionError, Unbounded, pairwise_sum};

/// Why a problem has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WmiError {
    /// The support cannot be made into a region.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The weight does not vanish on an unbounded part of the support.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The weight is too large a polynomial somewhere.
    #[error(transparent)]
    Integrand(#[from] IntegrandError),
    /// The weight is too large a polynomial somewhere.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}

/// How to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// Doubles with error bounds; cells whose bound is not good enough are done again exactly.
    #[default]
    Certified,
    /// Rationals throughout.
    Exact,
}

/// A weighted volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The value, rounded.
    pub value: f64,
    /// The value itself, if it was computed exactly.
    pub exact: Option<Rational>,
    /// A bound on the absolute error of `value`.
    pub error: f64,
    /// Convex cells integrated over.
    pub cells: usize,
    /// Simplices integrated over.
    pub simplices: usize,
}

/// Answers to a problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Solution {
    /// The weighted volume of the support.
    pub total: Answer,
    /// The weighted volume of the support with each query.
    pub queries: Vec<Answer>,
}

/// Doubles are good enough when their error bound is below this fraction of the value.
const GOOD: f64 = 1e-10;

impl Problem {
    /// The weighted volumes of the support and of the support with each query.
    pub fn solve(&self, arithmetic: Arithmetic) -> Result<Solution, WmiError> {
        let total = self.integrate(None, arithmetic)?;
        let queries = self.queries.iter().map(|query| self.integrate(Some(query), arithmetic));
        Ok(Solution { total, queries: queries.collect::<Result<_, _>>()? })
    }

    fn integrate(&self, query: Option<&Formula>, arithmetic: Arithmetic) -> Result<Answer, WmiError> {
        let mut constraint: Constraint = self.support.clone();
        if let Some(query) = query {
            constraint.formula = constraint.formula & query.clone();
        }
        let (region, compiled) = Region::with_conditions(&constraint, &self.weight.conditions())?;
        let weight: CompiledWeight = self.weight.compile(&mut compiled.into_iter());
        let pieces = region.map_loaded(region.root(weight), |cell, weight| (cell, weight))?;
        let Some(ends) = surrounding_box(&pieces) else {
            return Ok(Answer { exact: Some(Rational::ZERO), ..Answer::default() });
        };
        let in_frame = |frame| Integrands { constraint: &constraint, frame, known: Mutex::default() };
        match arithmetic {
            Arithmetic::Exact => exact(&in_frame(Frame::origin(&ends)).prepare(&pieces)?),
            // Unshifted first: weights are often sparse as they are written, and a shift would fill them up. The centre next: there
            // fewer digits cancel.
            Arithmetic::Certified => {
                let plain = in_frame(Frame::origin(&ends)).prepare(&pieces)?;
                certified(&plain, || in_frame(Frame::centred(&ends)).prepare(&pieces))
            }
        }
    }
}

/// The box around all pieces. Rounding is of no concern: any box near it makes a good frame.
fn surrounding_box(pieces: &[(Cell, CompiledWeight)]) -> Option<Vec<(Rational, Rational)>> {
    let dimension = pieces.first()?.0.polytope().dimension();
    let ends = (0..dimension).map(|axis| {
        let extents = pieces.iter().map(|(cell, _)| cell.polytope().extent(axis));
        let (low, high) = extents.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (c, d)| (a.min(c), b.max(d)));
        let exact = |x: f64, otherwise: i32| number::from_f64(x).unwrap_or(Rational::from(otherwise));
        (exact(low, -1), exact(high, 1))
    });
    Some(ends.collect())
}

/// Integrands by polynomial: cells often share their weight.
struct Integrands<'c> {
    constraint: &'c Constraint,
    frame: Frame,
    known: Mutex<HashMap<Polynomial, Arc<Integrand>>>,
}

impl Integrands<'_> {
    fn of(&self, weight: &CompiledWeight) -> Result<Arc<Integrand>, WmiError> {
        let polynomial = match &**weight {
            Weight::Polynomial(polynomial) => polynomial,
            Weight::Failed(error) => return Err(error.clone().into()),
            // The search ends only where the weight is settled.
            _ => return Ok(Arc::new(Integrand::new(&Polynomial::zero(), &self.constraint.reals, &self.frame)?)),
        };
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(integrand) = known.get(polynomial) {
            return Ok(integrand.clone());
        }
        let integrand = Arc::new(Integrand::new(polynomial, &self.constraint.reals, &self.frame)?);
        known.insert(polynomial.clone(), integrand.clone());
        Ok(integrand)
    }

    fn prepare<'p>(&self, pieces: &'p [(Cell, CompiledWeight)]) -> Result<Vec<(&'p Cell, Arc<Integrand>)>, WmiError> {
        pieces.iter().map(|(cell, weight)| Ok((cell, self.of(weight)?))).collect()
    }
}

/// A cell with the polynomial to integrate over it.
type Part<'p> = (&'p Cell, Arc<Integrand>);

fn exact(parts: &[Part]) -> Result<Answer, WmiError> {
    let integrals = in_order(parts, |(cell, integrand)| exact_part(cell, integrand))?;
    let simplices = integrals.iter().map(|(_, simplices)| simplices).sum();
    let sum = pairwise_sum(integrals.into_iter().map(|(part, _)| part).collect());
    let value = number::to_f64(&sum);
    Ok(Answer { value, exact: Some(sum), error: rounding(value), cells: parts.len(), simplices })
}

/// Doubles first. If the bound on the total is not good enough, cells with a large share in it are tried in another frame, and then the
/// cells with the largest bounds are done exactly until it is.
fn certified<'p>(
    parts: &[Part<'p>],
    reframed: impl FnOnce() -> Result<Vec<Part<'p>>, WmiError>,
) -> Result<Answer, WmiError> {
    let mut estimates: Vec<Estimate> = in_order(parts, |part| Ok(estimate(part)))?;
    let simplices = estimates.iter().map(|e| e.simplices).sum();
    let (value, error) = sum_up(&estimates);
    let answer = Answer { value, exact: None, error, cells: parts.len(), simplices };
    if error <= GOOD * value.abs() {
        return Ok(answer);
    }
    let share = GOOD * value.abs() / (2.0 * parts.len() as f64);
    let large: Vec<usize> = (0..parts.len()).filter(|at| !(estimates[*at].error <= share)).collect();
    let reframed = reframed()?;
    let second = in_order(&large, |at| Ok(estimate(&reframed[*at])))?;
    for (at, other) in large.into_iter().zip(second) {
        if !(estimates[at].error <= other.error) {
            estimates[at] = other;
        }
    }
    let (value, error) = sum_up(&estimates);
    if error <= GOOD * value.abs() {
        return Ok(Answer { value, error, ..answer });
    }
    let mut worst: Vec<usize> = (0..parts.len()).collect();
    worst.sort_by(|a, b| estimates[*b].error.total_cmp(&estimates[*a].error));
    let mut sum = Rational::ZERO;
    for batch in worst.chunks(4.max(worst.len() / 16)) {
        let integrals = in_order(batch, |at| exact_part(parts[*at].0, &parts[*at].1))?;
        sum += pairwise_sum(integrals.into_iter().map(|(part, _)| part).collect());
        batch.iter().for_each(|at| estimates[*at] = Estimate::default());
        let (remainder, error) = sum_up(&estimates);
        let certain = number::to_f64(&sum);
        let value = certain + remainder;
        let error = error + rounding(certain) + rounding(value);
        if error <= GOOD * value.abs() {
            return Ok(Answer { value, error, ..answer });
        }
    }
    let value = number::to_f64(&sum);
    Ok(Answer { value, exact: Some(sum), error: rounding(value), ..answer })
}

fn estimate((cell, integrand): &Part) -> Estimate {
    let times = number::to_f64(&Rational::from(cell.multiplicity()));
    let Estimate { value, error, simplices } = integrand.estimate(cell.polytope());
    // A power of two: exact, unless it overflows.
    Estimate { value: value * times, error: error * times, simplices }
}

fn exact_part(cell: &Cell, integrand: &Integrand) -> Result<(Rational, usize), WmiError> {
    let (value, simplices) = integrand.exact(cell.polytope())?;
    Ok((value * Rational::from(cell.multiplicity()), simplices))
}

fn rounding(value: f64) -> f64 {
    value.abs() * f64::EPSILON
}

fn sum_up(parts: &[Estimate]) -> (f64, f64) {
    let (mut value, mut error, mut magnitude) = (0.0, 0.0, 0.0);
    for part in parts {
        value += part.value;
        error += part.error;
        magnitude += part.value.abs();
    }
    (value, error + magnitude * parts.len() as f64 * f64::EPSILON)
}

/// Maps in parallel, keeps the order, and reports the first error of that order.
fn in_order<A: Sync, B: Send>(
    items: &[A],
    visit: impl Fn(&A) -> Result<B, WmiError> + Sync + Send,
) -> Result<Vec<B>, WmiError> {
    use rayon::prelude::*;
    let all: Vec<Result<B, WmiError>> = items.par_iter().map(visit).collect();
    all.into_iter().collect()
}
