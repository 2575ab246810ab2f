//! One entry for all integrators.

use std::sync::Arc;

use super::AffineFrame;
use super::certify::{self, Integral};
use super::exponents::ExponentsError;
use super::gasp::{self, GaspError};
use super::integrand::{Integrand, IntegrandError};
use super::rejection::{self, RejectionError};
use crate::number::{self, Rational};
use crate::polynomial::Polynomial;
use crate::region::{Cell, Region, Unbounded};

/// How to integrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// The generating-function recurrence in float64, with a certified error bound. Cells whose bound is not good
    /// enough are integrated again in other coordinates, and if need be exactly.
    #[default]
    Recurrence,
    /// The recurrence in rationals.
    Exact,
    /// Grundmann-Moeller cubature, as in Section 4 of the PAL paper.
    Gasp,
    /// Monte Carlo by rejection.
    Rejection {
        /// Points drawn from the bounding box.
        samples: u64,
        /// The seed of the random numbers: the same seed gives the same result.
        seed: u64,
    },
}

/// Why an integral cannot be computed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntegrateError {
    /// The region is unbounded.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The polynomial does not fit the region, or grows too large.
    #[error(transparent)]
    Integrand(#[from] IntegrandError),
    /// Too many monomials.
    #[error(transparent)]
    Exponents(#[from] ExponentsError),
    /// The integral cannot be computed by cubature.
    #[error(transparent)]
    Gasp(#[from] GaspError),
    /// The integral cannot be estimated by rejection.
    #[error(transparent)]
    Rejection(#[from] RejectionError),
}

/// The integral of a polynomial over a region, summed over the assignments of the Boolean variables.
///
/// ```
/// use pal::moments::{integrate, Method};
/// use pal::{formula::reals, polynomial::Polynomial, region::Region};
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let p = Polynomial::parse("x^2*y")?;
/// assert_eq!(integrate(&triangle, &p, Method::Exact)?.exact.unwrap().to_string(), "1/60");
/// let result = integrate(&triangle, &p, Method::Recurrence)?;
/// assert!((result.value - 1.0 / 60.0).abs() <= result.error);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn integrate(region: &Region, polynomial: &Polynomial, method: Method) -> Result<Integral, IntegrateError> {
    match method {
        Method::Gasp => {
            let result = gasp::integrate(region, polynomial)?;
            Ok(Integral {
                value: result.value,
                exact: None,
                error: result.rounding_error,
                cells: result.cells,
                exact_cells: 0,
                simplices: result.simplices as usize,
            })
        }
        Method::Rejection { samples, seed } => {
            let result = rejection::integrate(region, polynomial, samples, seed)?;
            Ok(Integral { value: result.value, error: result.standard_error, ..Integral::default() })
        }
        Method::Exact | Method::Recurrence => {
            let cells = region.decompose()?;
            let ends = around(cells.iter());
            let variables = region.variables();
            let over_cells = |frame: AffineFrame| -> Result<Vec<(&Cell, Arc<Integrand>)>, IntegrandError> {
                let integrand = Arc::new(Integrand::new(polynomial, variables, &frame)?);
                Ok(cells.iter().map(|cell| (cell, integrand.clone())).collect())
            };
            let parts = over_cells(AffineFrame::origin(&ends))?;
            Ok(match method {
                Method::Exact => certify::exact(&parts)?,
                _ => certify::certified(&parts, || over_cells(AffineFrame::centred(&ends)))?,
            })
        }
    }
}

/// A box around cells, up to rounding: any box near it makes a good frame. Without cells there are no axes.
pub(crate) fn around<'c>(cells: impl Iterator<Item = &'c Cell> + Clone) -> Vec<(Rational, Rational)> {
    let dimension = cells.clone().next().map_or(0, |cell| cell.polytope().dimension());
    let end = |x: f64, otherwise: i32| number::from_f64(x).unwrap_or(otherwise.into());
    (0..dimension)
        .map(|axis| {
            let extents = cells.clone().map(|cell| cell.polytope().extent(axis));
            let (low, high) = extents.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (c, d)| (a.min(c), b.max(d)));
            (end(low, -1), end(high, 1))
        })
        .collect()
}
