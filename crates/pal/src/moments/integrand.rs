//! A polynomial made ready for integration over many polytopes: in doubles with an error bound, or exactly.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::exact::ExactIntegrand;
use super::exponents::{Exponents, ExponentsError};
use super::frame::{Converter, Frame};
use super::simplex::{self, Simplices};
use crate::formula::Var;
use crate::number::{self, Rational};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Polytope, factorial};

/// Why an integral cannot be computed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntegrandError {
    /// The polynomial uses a name that is not a variable of the region, or grows too large.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// The polynomial has too many monomials below it.
    #[error(transparent)]
    Exponents(#[from] ExponentsError),
}

/// An integral over one polytope in doubles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// A bound on its absolute error.
    pub error: f64,
    /// Simplices it took.
    pub simplices: usize,
}

/// A polynomial ready for integration over polytopes in the coordinates `variables`.
#[derive(Debug)]
pub struct Integrand {
    dimension: usize,
    terms: Vec<(Vec<u16>, Rational)>,
    frame: Frame,
    local: Local,
    exact: OnceLock<Result<ExactIntegrand, ExponentsError>>,
}

/// The polynomial in the coordinates of the frame, in doubles.
#[derive(Debug)]
struct Local {
    exponents: Exponents,
    /// Position and `c_alpha alpha! / (|alpha| + n)!` of each term, correctly rounded up to an ulp.
    coefficients: Vec<(usize, f64)>,
    /// Product of the scales.
    volume: f64,
}

impl Integrand {
    /// Prepares a polynomial over the given coordinates. The frame should be the box around what will be integrated over, centred:
    /// then few digits cancel.
    pub fn new(polynomial: &Polynomial, variables: &[Var], frame: &Frame) -> Result<Integrand, IntegrandError> {
        let changes: BTreeMap<Var, (Rational, Rational)> = variables
            .iter()
            .zip(frame.scale.iter().zip(&frame.shift))
            .map(|(var, (scale, shift))| (var.clone(), (scale.clone(), shift.clone())))
            .collect();
        let terms = polynomial.aligned(variables)?;
        let moved = polynomial.affine(&changes)?.aligned(variables)?;
        let exponents = Exponents::closure(variables.len(), moved.iter().map(|(alpha, _)| alpha.clone()))?;
        let positions = exponents.positions();
        let coefficients = moved
            .iter()
            .filter_map(|(alpha, c)| {
                let weight = c * moment_factor(alpha);
                Some((*positions.get(&alpha[..])?, number::to_f64(&weight)))
            })
            .collect();
        drop(positions);
        let volume = number::to_f64(&frame.volume());
        Ok(Integrand {
            dimension: variables.len(),
            terms,
            frame: frame.clone(),
            local: Local { exponents, coefficients, volume },
            exact: OnceLock::new(),
        })
    }

    /// The integral over a polytope in doubles, with an error bound.
    pub fn estimate(&self, polytope: &Polytope) -> Estimate {
        let converter = Converter::new(&self.frame);
        let (simplices, conversion) = converter.simplices(polytope);
        let sums = simplex::generating_sums(&simplices, &self.local.exponents);
        let majorant = simplex::generating_sums(&absolute(&simplices), &self.local.exponents);
        let (mut value, mut size) = (0.0, 0.0);
        for (position, c) in &self.local.coefficients {
            value += c * sums[*position];
            size += c.abs() * majorant[*position];
        }
        // Relative to the sum of magnitudes: errors of the coordinates enter once per degree; each step of the recurrence rounds at
        // most 2n + 3 times; then sizes, the sum over simplices, coefficients and their sum.
        let n = self.dimension as f64;
        let degree = self.local.exponents.degree() as f64;
        let roundings =
            (degree + 1.0) * (2.0 * n + 3.0) + simplices.len() as f64 + self.local.coefficients.len() as f64 + 8.0;
        let relative = degree * conversion.coordinate + conversion.size + roundings * f64::EPSILON;
        Estimate {
            value: value * self.local.volume,
            error: 1.01 * relative * size * self.local.volume,
            simplices: simplices.len(),
        }
    }

    /// The exact integral over a polytope, and the number of simplices it took.
    pub fn exact(&self, polytope: &Polytope) -> Result<(Rational, usize), IntegrandError> {
        let prepared = self.exact.get_or_init(|| {
            let exponents = Exponents::closure(self.dimension, self.terms.iter().map(|(alpha, _)| alpha.clone()))?;
            Ok(ExactIntegrand::new(exponents, &self.terms))
        });
        match prepared {
            Ok(integrand) => Ok(integrand.integrate(polytope)),
            Err(error) => Err(error.clone().into()),
        }
    }
}

/// `alpha! / (|alpha| + n)!`
pub(crate) fn moment_factor(alpha: &[u16]) -> Rational {
    let total: usize = alpha.iter().map(|a| usize::from(*a)).sum();
    let top = alpha.iter().fold(Rational::ONE, |product, a| product * Rational::from(factorial(usize::from(*a))));
    top / Rational::from(factorial(total + alpha.len()))
}

fn absolute(simplices: &Simplices) -> Simplices {
    Simplices { vertices: simplices.vertices.iter().map(|x| x.abs()).collect(), ..simplices.clone() }
}
