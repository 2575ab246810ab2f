//! The compiled integral: all moments of a region, computed once.
//!
//! With `eta_alpha` the integral of `y^alpha` over the region, the integral of a polynomial with coefficients lambda is
//! `I(lambda) = eta . lambda`, its gradient is eta, and a batch of polynomials costs one matrix product (PAL paper,
//! Section 4, where `I_phi(lambda)` is written as a sum of monomial integrals).

use rayon::prelude::*;

use super::exponents::{Exponents, ExponentsError};
use super::faces::{self, Lanes, LocalPolytope};
use super::frame::{AffineFrame, Converter};
use super::integrand::{IntegrandError, lattice_is_cheaper, lost_to_underflow, moment_factor};
use super::integrate::{IntegrateError, Method, around, integrate};
use super::simplex::{self, Simplices};
use crate::number::{self, Rational, factorial};
use crate::polynomial::Polynomial;
use crate::region::{Cell, Lattice, Region};

/// Moments of a region in the user's coordinates. [`MomentsFile`](crate::wmi::MomentsFile) keeps them in a file,
/// together with their constraint.
///
/// ```
/// use pal::moments::{Exponents, Moments};
/// use pal::{region::Region, shapes};
/// let square = Region::new(&shapes::cube(2))?;
/// let eta = Moments::compile(&square, &Exponents::total_degree(2, 2)?)?;
/// // 1 + 2 x1 + 3 x1 x2, coefficients in the order of the exponents
/// let integral = eta.integrate(&[1.0, 2.0, 0.0, 0.0, 3.0, 0.0])?;
/// assert!((integral - 2.75).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Moments {
    exponents: Exponents,
    values: Vec<f64>,
    errors: Vec<f64>,
    cells: usize,
    simplices: usize,
}

/// Coefficients that are not one for each exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given} coefficients do not make rows of {wanted}, one for each exponent")]
pub struct CoefficientCountError {
    /// How many coefficients were given.
    pub given: usize,
    /// How many coefficients a polynomial has.
    pub wanted: usize,
}

impl Moments {
    /// Computes all moments of a region, summed over the assignments of its Boolean variables.
    pub fn compile(region: &Region, exponents: &Exponents) -> Result<Moments, IntegrateError> {
        let cells = region.decompose()?;
        if exponents.dimension() != region.dimension() {
            let (given, wanted) = (exponents.dimension(), region.dimension());
            return Err(ExponentsError::Length { given, wanted }.into());
        }
        let frame = AffineFrame::origin(&around(cells.iter()));
        let converter = Converter::new(&frame);
        let mut sums = Accumulated::new(exponents.len());
        // Cells cut into simplices are swept together; cells done by faces one by one.
        let mut together = Simplices { dimension: region.dimension(), ..Simplices::default() };
        let prepared: Vec<Prepared> =
            cells.par_iter().map(|cell| prepare(cell, &converter, &frame, exponents)).collect();
        for part in prepared {
            sums.absorb(part, &mut together);
        }
        sums.simplices += together.len();
        if together.len() > 0 {
            let signed = simplex::generating_sums(&together, exponents);
            let positive = together.vertices.iter().all(|x| *x >= 0.0);
            let majorant =
                if positive { signed.clone() } else { simplex::generating_sums(&together.absolute(), exponents) };
            for (total, (s, m)) in sums.lanes.iter_mut().zip(signed.iter().zip(&majorant)) {
                total[0] += s;
                total[1] += m;
            }
            sums.longest_sum += simplex::longest_sum(together.len(), exponents.len());
        }
        let (values, errors) = sums.finish(exponents, &frame);
        Ok(Moments { exponents: exponents.clone(), values, errors, cells: cells.len(), simplices: sums.simplices })
    }

    /// Computes all moments by the paper's cubature, one monomial after the other: slow, for comparison.
    pub fn by_cubature(region: &Region, exponents: &Exponents) -> Result<Moments, IntegrateError> {
        let variables = region.variables();
        let mut moments =
            Moments { exponents: exponents.clone(), values: Vec::new(), errors: Vec::new(), cells: 0, simplices: 0 };
        for alpha in exponents.iter() {
            let monomial =
                Polynomial::from_terms(variables, [(alpha.to_vec(), Rational::ONE)]).map_err(IntegrandError::from)?;
            let integral = integrate(region, &monomial, Method::Gasp)?;
            moments.values.push(integral.value);
            moments.errors.push(integral.error);
            (moments.cells, moments.simplices) = (integral.cells, integral.simplices);
        }
        Ok(moments)
    }

    /// Moments that were computed earlier, one value and one error bound for each exponent.
    pub(crate) fn restore(exponents: Exponents, values: Vec<f64>, errors: Vec<f64>) -> Moments {
        assert!(values.len() == exponents.len() && errors.len() == exponents.len(), "one moment for each exponent");
        Moments { exponents, values, errors, cells: 0, simplices: 0 }
    }

    /// The exponents, in the order of the moments.
    pub fn exponents(&self) -> &Exponents {
        &self.exponents
    }

    /// The moments: also the gradient of the integral with respect to the coefficients.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Bounds on the absolute errors of the moments.
    pub fn errors(&self) -> &[f64] {
        &self.errors
    }

    /// Convex cells integrated over; 0 if read from a file.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Simplices or faces swept; 0 if read from a file.
    pub fn simplices(&self) -> usize {
        self.simplices
    }

    /// The integral of one polynomial, given by its coefficients in the order of the exponents.
    pub fn integrate(&self, coefficients: &[f64]) -> Result<f64, CoefficientCountError> {
        match self.integrate_batch(coefficients)?[..] {
            [value] => Ok(value),
            _ => Err(self.wrong_length(coefficients)),
        }
    }

    /// The integrals of many polynomials, their coefficients row by row in one slice.
    pub fn integrate_batch(&self, coefficients: &[f64]) -> Result<Vec<f64>, CoefficientCountError> {
        if coefficients.is_empty() || !coefficients.len().is_multiple_of(self.values.len()) {
            return Err(self.wrong_length(coefficients));
        }
        let rows = coefficients.par_chunks(self.values.len()).with_min_len(64);
        Ok(rows.map(|row| row.iter().zip(&self.values).map(|(c, m)| c * m).sum()).collect())
    }

    fn wrong_length(&self, coefficients: &[f64]) -> CoefficientCountError {
        CoefficientCountError { given: coefficients.len(), wanted: self.values.len() }
    }
}

/// One cell on its way to moments.
enum Prepared {
    Swept { lanes: Vec<Lanes>, coordinate: f64, longest_sum: usize, faces: usize },
    Cut { simplices: Simplices, coordinate: f64, size: f64 },
}

fn prepare(cell: &Cell, converter: &Converter, frame: &AffineFrame, exponents: &Exponents) -> Prepared {
    let polytope = cell.polytope();
    let (corners, coordinate) = converter.corners(polytope);
    let lattice = Lattice::new(polytope);
    let times = number::to_f64(&Rational::from(cell.multiplicity()));
    if lattice_is_cheaper(&lattice, polytope.dimension(), exponents.len() * size_of::<Lanes>()) {
        let local = LocalPolytope { polytope, frame, lattice: &lattice, corners: &corners };
        if let Some(mut lanes) = faces::generating_sums(&local, exponents) {
            lanes.iter_mut().flatten().for_each(|x| *x *= times);
            let (longest_sum, faces) = (lattice.longest_sum(), lattice.faces.len());
            return Prepared::Swept { lanes, coordinate, longest_sum, faces };
        }
    }
    let (mut simplices, error) = converter.simplices(polytope, &lattice.simplices(), &corners, coordinate);
    simplices.sizes.iter_mut().for_each(|size| *size *= times);
    Prepared::Cut { simplices, coordinate, size: error.size }
}

/// Sums over cells, with what is needed for their error bounds.
struct Accumulated {
    lanes: Vec<Lanes>,
    coordinate: f64,
    size: f64,
    longest_sum: usize,
    simplices: usize,
}

impl Accumulated {
    fn new(len: usize) -> Self {
        Accumulated { lanes: vec![[0.0; 4]; len], coordinate: 0.0, size: 0.0, longest_sum: 0, simplices: 0 }
    }

    fn absorb(&mut self, part: Prepared, together: &mut Simplices) {
        match part {
            Prepared::Swept { lanes, coordinate, longest_sum, faces } => {
                for (total, part) in self.lanes.iter_mut().zip(&lanes) {
                    (0..3).for_each(|lane| total[lane] += part[lane]);
                }
                self.coordinate = self.coordinate.max(coordinate);
                self.longest_sum = self.longest_sum.max(longest_sum) + 1;
                self.simplices += faces;
            }
            Prepared::Cut { simplices, coordinate, size } => {
                together.vertices.extend(&simplices.vertices);
                together.sizes.extend(&simplices.sizes);
                self.coordinate = self.coordinate.max(coordinate);
                self.size = self.size.max(size);
            }
        }
    }

    /// Moments and their error bounds in the user's coordinates: `y^alpha = scale^alpha u^alpha`, and scales are powers
    /// of two.
    fn finish(&self, exponents: &Exponents, frame: &AffineFrame) -> (Vec<f64>, Vec<f64>) {
        let n = exponents.dimension();
        // Exponents of the scales, which are powers of two; they are applied last, so that nothing overflows on the
        // way.
        let logs: Vec<i64> = frame.scale.iter().map(|s| number::to_f64(s).log2().round() as i64).collect();
        let volume: i64 = logs.iter().sum();
        let factors = Factors::new(exponents.degree() + n);
        let nothing = self.simplices == 0;
        let parts = self.lanes.par_iter().enumerate().with_min_len(1024).map(|(at, lanes)| {
            if nothing {
                return (0.0, 0.0);
            }
            let alpha = exponents.get(at);
            let degree: usize = alpha.iter().map(|a| usize::from(*a)).sum();
            let power = alpha.iter().zip(&logs).fold(volume, |sum, (a, log)| sum + i64::from(*a) * log);
            let factor = factors.of(alpha);
            let k = degree as f64;
            let roundings = k * (2.0 * n as f64 + 2.0) + self.longest_sum as f64 + n as f64 + 12.0;
            let relative = k * self.coordinate + self.size + roundings * f64::EPSILON;
            let error = 1.01 * factor * (relative * lanes[1] + lanes[2]);
            let error = if lost_to_underflow(lanes[1], factor) { f64::INFINITY } else { error };
            // Zero times an infinite error of the coordinates is no bound.
            let error = if error.is_nan() { f64::INFINITY } else { error };
            let (value, error) = (times_power_of_two(lanes[0] * factor, power), times_power_of_two(error, power));
            // Below the normal range the value and its bound have each been rounded by up to half the smallest number
            // in every step.
            let below = value.abs() < f64::MIN_POSITIVE || error < f64::MIN_POSITIVE;
            (value, if below { error + 2.0 * number::SMALLEST } else { error })
        });
        parts.unzip()
    }
}

/// `x * 2^power` without an overflow or underflow on the way.
fn times_power_of_two(mut x: f64, mut power: i64) -> f64 {
    while power != 0 && x != 0.0 && x.is_finite() {
        let step = power.clamp(-1000, 1000);
        x *= (step as f64).exp2();
        power -= step;
    }
    x
}

/// `alpha! / (|alpha| + n)!` in float64, to n + 2 roundings: products of correctly rounded factorials, or exactly where
/// those overflow.
struct Factors {
    factorials: Vec<f64>,
}

/// The largest number whose factorial is within the range of float64.
const LARGEST_FACTORIAL: usize = 170;

impl Factors {
    fn new(top: usize) -> Self {
        let factorials = (0..=top.min(LARGEST_FACTORIAL)).map(|k| factorial(k).to_f64().value());
        Factors { factorials: factorials.collect() }
    }

    fn of(&self, alpha: &[u16]) -> f64 {
        let total: usize = alpha.iter().map(|a| usize::from(*a)).sum::<usize>() + alpha.len();
        if total > LARGEST_FACTORIAL {
            return number::to_f64(&moment_factor(alpha));
        }
        alpha.iter().map(|a| self.factorials[usize::from(*a)]).product::<f64>() / self.factorials[total]
    }
}
