//! A polynomial made ready for integration over many polytopes: in float64 with an error bound, or exactly.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::exact::ExactIntegrand;
use super::exponents::{Exponents, ExponentsError};
use super::faces::{self, Lanes, LocalPolytope};
use super::frame::{AffineFrame, Converter};
use super::simplex;
use super::wide::{WidePolynomial, wide};
use crate::formula::Var;
use crate::number::{self, Rational, factorial};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Lattice, Polytope};

/// Why an integral cannot be computed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IntegrandError {
    /// The polynomial uses a name that is not a variable of the region, or grows too large.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// The polynomial has too many monomials below it.
    #[error(transparent)]
    Exponents(#[from] ExponentsError),
    /// The moments of all monomials below the polynomial do not fit into memory.
    #[error(
        "the integral needs a table of {monomials} moments, exactly, of about {bytes} bytes each: {total} GB, and at most \
         {limit} GB are taken. Lower the degree, or use numbers with fewer digits",
        total = (*monomials as f64 * *bytes as f64 / 1e9).round(),
        limit = (MOST_BYTES as f64 / 1e9).round()
    )]
    Memory {
        /// How many moments.
        monomials: usize,
        /// An estimate of the size of one of them.
        bytes: usize,
    },
}

/// Tables of all faces in use may take this many bytes; otherwise simplices are swept one by one, in one table.
pub(super) const FACE_BYTES: usize = 1 << 30;

/// One table may take this many bytes.
pub(super) const MOST_BYTES: usize = 4 << 30;

/// An integral over one polytope in float64, with a bound on its error.
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
    frame: AffineFrame,
    local: FramedPolynomial,
    wide: OnceLock<Option<WidePolynomial>>,
    exact: OnceLock<Result<ExactIntegrand, ExponentsError>>,
}

/// A polynomial in the coordinates of a frame, in float64.
#[derive(Debug)]
struct FramedPolynomial {
    exponents: Exponents,
    /// Position and `c_alpha alpha! / (|alpha| + n)!` of each term, times the volume of the frame, rounded once.
    coefficients: Vec<(usize, f64)>,
}

impl Integrand {
    /// Prepares a polynomial over the given coordinates. The frame should be the box around what will be integrated
    /// over, centred: then few digits cancel.
    pub fn new(polynomial: &Polynomial, variables: &[Var], frame: &AffineFrame) -> Result<Integrand, IntegrandError> {
        let changes: BTreeMap<Var, (Rational, Rational)> = variables
            .iter()
            .zip(frame.scale.iter().zip(&frame.shift))
            .map(|(var, (scale, shift))| (var.clone(), (scale.clone(), shift.clone())))
            .collect();
        let terms = polynomial.aligned(variables)?;
        let moved = if frame.shift.iter().all(Rational::is_zero) {
            terms.iter().map(|(alpha, c)| (alpha.clone(), c * frame.power(alpha))).collect()
        } else {
            polynomial.affine(&changes)?.aligned(variables)?
        };
        let exponents = Exponents::closure(variables.len(), moved.iter().map(|(alpha, _)| alpha.clone()))?;
        let positions = exponents.positions();
        let volume = frame.volume();
        let coefficients = moved
            .iter()
            .map(|(alpha, c)| {
                let position = positions.get(&alpha[..]).expect("the closure contains the exponents of all terms");
                (*position, number::to_f64(&(c * moment_factor(alpha) * &volume)))
            })
            .collect();
        drop(positions);
        Ok(Integrand {
            dimension: variables.len(),
            terms,
            frame: frame.clone(),
            local: FramedPolynomial { exponents, coefficients },
            wide: OnceLock::new(),
            exact: OnceLock::new(),
        })
    }

    /// The integral over a polytope in float64, with an error bound.
    pub fn estimate(&self, polytope: &Polytope) -> Estimate {
        let exponents = &self.local.exponents;
        let converter = Converter::new(&self.frame);
        let (corners, coordinate) = converter.corners(polytope);
        let lattice = Lattice::new(polytope);
        let local = LocalPolytope { polytope, frame: &self.frame, lattice: &lattice, corners: &corners };
        let by_faces = if lattice_is_cheaper(&lattice, self.dimension, exponents.len() * size_of::<Lanes>()) {
            faces::generating_sums(&local, exponents)
        } else {
            None
        };
        let (sums, size_error, summands, simplices) = match by_faces {
            // A face adds up its facets: one chain of additions per dimension.
            Some(sums) => (sums, 0.0, lattice.longest_sum(), lattice.faces.len()),
            None => {
                let (simplices, error) = converter.simplices(polytope, &lattice.simplices(), &corners, coordinate);
                let sums = simplex::generating_sums(&simplices, exponents);
                let majorant = simplex::generating_sums(&simplices.absolute(), exponents);
                let both = sums.into_iter().zip(majorant).map(|(s, m)| [s, m, 0.0, 0.0]).collect();
                (both, error.size, simplex::longest_sum(simplices.len(), exponents.len()), simplices.len())
            }
        };
        let (mut value, mut lost, mut size, mut doubt) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
        for (position, c) in &self.local.coefficients {
            // Neumaier's summation: the length of the sum does not enter the error.
            let term = c * sums[*position][0];
            let sum = value + term;
            lost += if value.abs() >= term.abs() { (value - sum) + term } else { (term - sum) + value };
            value = sum;
            size += c.abs() * sums[*position][1];
            doubt += c.abs() * sums[*position][2];
            if lost_to_underflow(sums[*position][1], *c) {
                doubt = f64::INFINITY;
            }
        }
        let value = value + lost;
        // Relative to the sum of magnitudes: errors of the coordinates enter once per degree; each degree of the
        // recurrence rounds a product and at most 2n additions; then sizes, the sum over simplices or faces,
        // coefficients and their sum.
        let n = self.dimension as f64;
        let degree = exponents.degree() as f64;
        let roundings = (degree + 1.0) * (2.0 * n + 3.0) + summands as f64 + self.local.coefficients.len() as f64 + 8.0;
        let relative = degree * coordinate + size_error + roundings * f64::EPSILON;
        let error = 1.01 * (relative * size + doubt);
        // Not a number is no bound.
        let error = if error.is_nan() || value.is_nan() { f64::INFINITY } else { error };
        Estimate { value, error, simplices }
    }

    /// The integral over a polytope with twice the digits of float64, with an error bound. `None` where exact arithmetic
    /// is cheaper, because there are few faces and many simplices, or where numbers leave the range of float64.
    pub(crate) fn estimate_wide(&self, polytope: &Polytope) -> Option<Estimate> {
        let exponents = &self.local.exponents;
        let prepared = self.wide.get_or_init(|| self.wide_polynomial());
        let lattice = Lattice::new(polytope);
        let sweeps = lattice.simplex_count() * (self.dimension + 1) as f64;
        if sweeps > WIDE_SWEEPS_PER_FACE * lattice.faces.len() as f64 {
            return None;
        }
        prepared.as_ref()?.estimate(polytope, &lattice.simplices(), exponents, &self.frame)
    }

    /// Only in frames without a shift: there the terms are those of the polynomial.
    fn wide_polynomial(&self) -> Option<WidePolynomial> {
        if self.frame.shift.iter().any(|shift| !shift.is_zero()) {
            return None;
        }
        let volume = self.frame.volume();
        let coefficients = self.terms.iter().zip(&self.local.coefficients).map(|((alpha, c), (position, _))| {
            Some((*position, wide(&(c * self.frame.power(alpha) * moment_factor(alpha) * &volume))?))
        });
        Some(WidePolynomial { coefficients: coefficients.collect::<Option<_>>()? })
    }

    /// The exact integral over a polytope, and the number of simplices it took.
    pub fn exact(&self, polytope: &Polytope) -> Result<(Rational, usize), IntegrandError> {
        let prepared = self.exact.get_or_init(|| {
            let exponents = Exponents::closure(self.dimension, self.terms.iter().map(|(alpha, _)| alpha.clone()))?;
            Ok(ExactIntegrand::new(exponents, &self.terms))
        });
        match prepared {
            Ok(integrand) => integrand.integrate(polytope),
            Err(error) => Err(error.clone().into()),
        }
    }
}

/// Numbers this small may have lost digits, or all of them, to underflow on the way; error bounds do not cover that.
pub(super) const UNDERFLOW: f64 = 1e-250;

/// Whether a term `factor * sum` cannot be trusted because of underflow, given the sum of magnitudes.
pub(super) fn lost_to_underflow(magnitude: f64, factor: f64) -> bool {
    // The product must be far enough from the end of the normal range for its error bound to be a normal number.
    let product = magnitude * factor.abs();
    magnitude < UNDERFLOW || factor.abs() < UNDERFLOW || product * f64::EPSILON < f64::MIN_POSITIVE
}

/// Sweeps with double-doubles that cost as much as one exact sweep.
const WIDE_SWEEPS_PER_FACE: f64 = 20.0;

/// Whether one sweep per face costs less than n + 1 sweeps per simplex, and the tables of the faces, of `bytes` bytes
/// each, fit into memory. Joining a facet to a face costs about as much as one axis of a sweep.
pub(super) fn lattice_is_cheaper(lattice: &Lattice, dimension: usize, bytes: usize) -> bool {
    let by_faces = lattice.faces.len() * dimension + lattice.pair_count();
    let by_simplices = lattice.simplex_count() * ((dimension + 1) * dimension) as f64;
    (by_faces as f64) < by_simplices && lattice.most_in_use().saturating_mul(bytes) <= FACE_BYTES
}

/// `alpha! / (|alpha| + n)!`
pub(crate) fn moment_factor(alpha: &[u16]) -> Rational {
    let total: usize = alpha.iter().map(|a| usize::from(*a)).sum();
    let top = alpha.iter().fold(Rational::ONE, |product, a| product * Rational::from(factorial(usize::from(*a))));
    top / Rational::from(factorial(total + alpha.len()))
}
