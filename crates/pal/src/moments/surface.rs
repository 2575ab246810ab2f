//! Integrals over flats, by surface measure.

use std::collections::BTreeMap;

use super::certify::Integral;
use super::integrand::IntegrandError;
use super::integrate::{IntegrateError, Method, integrate};
use crate::number::{self, Rational};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Chart, Flat};

/// An integral over a flat: `free * sqrt(square_factor)`, which is irrational in general.
#[derive(Clone, Debug)]
pub struct SurfaceIntegral {
    /// The integral over the free coordinates.
    pub free: Integral,
    /// The exact square of the factor between volumes of free coordinates and surface measure.
    pub square_factor: Rational,
}

impl SurfaceIntegral {
    /// The integral by surface measure.
    pub fn value(&self) -> f64 {
        self.free.value * self.factor()
    }

    /// A bound on the error of [`SurfaceIntegral::value`].
    pub fn error(&self) -> f64 {
        self.free.error * self.factor() + 4.0 * f64::EPSILON * self.value().abs()
    }

    fn factor(&self) -> f64 {
        number::to_f64(&self.square_factor).sqrt()
    }
}

/// The integral of a polynomial over a flat, by surface measure; over a point, its value there.
///
/// ```
/// use pal::moments::{Method, surface_integral};
/// use pal::{formula::reals, polynomial::Polynomial, region::Region};
/// let [a, b, c] = reals(["a", "b", "c"]);
/// let shares = (&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0);
/// let flat = Region::new(&shares.into())?.flat()?.unwrap();
/// let integral = surface_integral(&flat, &Polynomial::parse("c^2")?, Method::Exact)?;
/// assert_eq!(integral.free.exact.as_ref().unwrap().to_string(), "1/12");
/// assert!((integral.value() - 3f64.sqrt() / 12.0).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn surface_integral(
    flat: &Flat,
    polynomial: &Polynomial,
    method: Method,
) -> Result<SurfaceIntegral, IntegrateError> {
    let square_factor = flat.chart().square_factor().clone();
    let polynomial = in_free_variables(flat.chart(), polynomial).map_err(IntegrandError::from)?;
    let free = match (flat.dimension(), polynomial.as_constant()) {
        (0, Some(value)) => Integral { value: number::to_f64(&value), exact: Some(value), ..Integral::default() },
        _ => integrate(flat.region(), &polynomial, method).map_err(|error| match error {
            IntegrateError::Unbounded(ray) => IntegrateError::Unbounded(flat.lifted(ray)),
            other => other,
        })?,
    };
    Ok(SurfaceIntegral { free, square_factor })
}

/// A polynomial in all variables as one in the free variables.
pub(crate) fn in_free_variables(chart: &Chart, polynomial: &Polynomial) -> Result<Polynomial, PolynomialError> {
    let free = chart.free_variables();
    let mut images = BTreeMap::new();
    for dependent in chart.dependents() {
        let power = |at: Option<usize>| (0..free.len()).map(|j| u16::from(at == Some(j))).collect::<Vec<u16>>();
        let linear = dependent.coefficients.iter().enumerate().map(|(j, a)| (power(Some(j)), a.clone()));
        let terms = linear.chain([(power(None), dependent.constant.clone())]);
        let variable = chart.variables()[dependent.position].clone();
        images.insert(variable, Polynomial::from_terms(&free, terms)?);
    }
    polynomial.substitute(&images)
}
