//! Sums of integrals over many cells: exact, or in float64 with a bound that is good enough.

use std::sync::Arc;

use rayon::prelude::*;

use super::integrand::{Estimate, Integrand, IntegrandError};
use crate::number::{self, Rational, pairwise_sum};
use crate::region::Cell;

/// An integral over a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Integral {
    /// The value, rounded.
    pub value: f64,
    /// The value itself, if it was computed exactly.
    pub exact: Option<Rational>,
    /// A bound on the absolute error of `value`; the standard error for rejection sampling.
    pub error: f64,
    /// Convex cells integrated over.
    pub cells: usize,
    /// How many of them took exact arithmetic.
    pub exact_cells: usize,
    /// Simplices or faces swept.
    pub simplices: usize,
}

/// A sum in float64 is good enough when its error bound is below this fraction of the value.
const GOOD: f64 = 1e-10;

/// A cell with the polynomial to integrate over it.
pub(crate) type CellIntegrand<'p> = (&'p Cell, Arc<Integrand>);

/// The exact sum.
pub(crate) fn exact(parts: &[CellIntegrand]) -> Result<Integral, IntegrandError> {
    let integrals = in_order(parts, |(cell, integrand)| exact_part(cell, integrand))?;
    let simplices = integrals.iter().map(|(_, simplices)| simplices).sum();
    let sum = pairwise_sum(integrals.into_iter().map(|(part, _)| part).collect());
    let value = number::to_f64(&sum);
    let error = number::rounding_error(&sum, value);
    Ok(Integral { value, exact: Some(sum), error, cells: parts.len(), exact_cells: parts.len(), simplices })
}

/// The sum in float64. If the bound on its error is not good enough, cells that contribute much to the bound are tried
/// in another frame, and then the cells with the largest bounds are integrated exactly until it is.
pub(crate) fn certified<'p>(
    parts: &[CellIntegrand<'p>],
    reframed: impl FnOnce() -> Result<Vec<CellIntegrand<'p>>, IntegrandError>,
) -> Result<Integral, IntegrandError> {
    let mut estimates: Vec<Estimate> = in_order(parts, |part| Ok(estimate(part)))?;
    let simplices = estimates.iter().map(|e| e.simplices).sum();
    let (value, error) = sum_up(&estimates);
    let answer = Integral { value, exact: None, error, cells: parts.len(), exact_cells: 0, simplices };
    if good_enough(value, error) {
        return Ok(answer);
    }
    // First with more digits, then in other coordinates.
    let second = |at: &usize| Ok(parts[*at].1.estimate_wide(parts[*at].0.polytope()).map(|e| scaled(parts[*at].0, e)));
    let large = large_errors(&estimates);
    let again = in_order(&large, second)?;
    improve(&mut estimates, large.into_iter().zip(again).filter_map(|(at, other)| Some((at, other?))));
    let (value, error) = sum_up(&estimates);
    if good_enough(value, error) {
        return Ok(Integral { value, error, ..answer });
    }
    // A polynomial too large to be expanded in the other frame leaves the exact way.
    if let Ok(reframed) = reframed() {
        let large = large_errors(&estimates);
        let again = in_order(&large, |at| Ok(estimate(&reframed[*at])))?;
        improve(&mut estimates, large.into_iter().zip(again));
    }
    let (value, error) = sum_up(&estimates);
    if good_enough(value, error) {
        return Ok(Integral { value, error, ..answer });
    }
    let mut worst: Vec<usize> = (0..parts.len()).collect();
    worst.sort_by(|a, b| estimates[*b].error.total_cmp(&estimates[*a].error));
    let mut sum = Rational::ZERO;
    let mut exact_cells = 0;
    for batch in worst.chunks(4.max(worst.len() / 16)) {
        let integrals = in_order(batch, |at| exact_part(parts[*at].0, &parts[*at].1))?;
        sum += pairwise_sum(integrals.into_iter().map(|(part, _)| part).collect());
        exact_cells += batch.len();
        batch.iter().for_each(|at| estimates[*at] = Estimate::default());
        let (remainder, error) = sum_up(&estimates);
        let certain = number::to_f64(&sum);
        let value = certain + remainder;
        let error = error + number::rounding_error(&sum, certain) + value.abs() * f64::EPSILON;
        if good_enough(value, error) {
            return Ok(Integral { value, error, exact_cells, ..answer });
        }
    }
    let value = number::to_f64(&sum);
    let error = number::rounding_error(&sum, value);
    Ok(Integral { value, exact: Some(sum), error, exact_cells, ..answer })
}

/// The parts that contribute much to the error of the sum.
fn large_errors(estimates: &[Estimate]) -> Vec<usize> {
    let fraction = GOOD * sum_up(estimates).0.abs() / (2.0 * estimates.len() as f64);
    (0..estimates.len()).filter(|at| !(estimates[*at].error <= fraction)).collect()
}

/// Replaces estimates by better ones.
fn improve(estimates: &mut [Estimate], others: impl Iterator<Item = (usize, Estimate)>) {
    for (at, other) in others {
        if !(estimates[at].error <= other.error) {
            estimates[at] = other;
        }
    }
}

fn estimate((cell, integrand): &CellIntegrand) -> Estimate {
    scaled(cell, integrand.estimate(cell.polytope()))
}

/// An estimate for one assignment of the Boolean variables, times their number.
fn scaled(cell: &Cell, one: Estimate) -> Estimate {
    let times = number::to_f64(&Rational::from(cell.multiplicity()));
    let Estimate { value, error, simplices } = one;
    // A power of two: exact, unless it overflows.
    Estimate { value: value * times, error: error * times, simplices }
}

fn exact_part(cell: &Cell, integrand: &Integrand) -> Result<(Rational, usize), IntegrandError> {
    let (value, simplices) = integrand.exact(cell.polytope())?;
    Ok((value * Rational::from(cell.multiplicity()), simplices))
}

pub(crate) fn good_enough(value: f64, error: f64) -> bool {
    value.is_finite() && error.is_finite() && error <= GOOD * value.abs()
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
pub(crate) fn in_order<A: Sync, B: Send>(
    items: &[A],
    visit: impl Fn(&A) -> Result<B, IntegrandError> + Sync + Send,
) -> Result<Vec<B>, IntegrandError> {
    let all: Vec<Result<B, IntegrandError>> = items.par_iter().map(visit).collect();
    all.into_iter().collect()
}
