//! The compiled integral: all moments of a region, computed once.
//!
//! With `eta_alpha` the integral of `y^alpha` over the region, the integral of a polynomial with coefficients lambda is
//! `I(lambda) = eta . lambda`, its gradient is eta, and a batch of polynomials costs one matrix product.

use std::collections::HashMap;

use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::exponents::{Exponents, ExponentsError};
use super::faces::{self, Lanes, LocalPolytope};
use super::frame::{Converter, Frame};
use super::integrand::{IntegrandError, lattice_is_cheaper, lost_to_underflow, moment_factor};
use super::integrate::{IntegrateError, Method, around, integrate};
use super::simplex::{self, Simplices};
use crate::checksum::checksum;
use crate::formula::{Constraint, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use crate::number::{self, Rational, factorial};
use crate::polynomial::Polynomial;
use crate::region::{Cell, Lattice, Region};

/// The version of the file format.
const VERSION: &str = "pal-moments-1";

/// Moments of a region in the user's coordinates.
///
/// ```
/// use pal::moments::{Exponents, Moments};
/// use pal::{region::Region, shapes};
/// let square = Region::new(&shapes::cube(2))?;
/// let eta = Moments::compile(&square, &Exponents::total_degree(2, 2)?)?;
/// // 1 + 2 x1 + 3 x1 x2, coefficients in the order of the exponents
/// let integral = eta.integrate(&[1.0, 2.0, 0.0, 0.0, 3.0, 0.0])?;
/// assert!((integral - 2.75).abs() < 1e-14);
/// let again = Moments::from_bytes(&eta.to_bytes()?)?;
/// assert_eq!(again.values(), eta.values());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Moments {
    constraint: Constraint,
    exponents: Exponents,
    values: Vec<f64>,
    errors: Vec<f64>,
    cells: usize,
    simplices: usize,
}

/// Why moments cannot be used, written or read.
#[derive(Debug, thiserror::Error)]
pub enum MomentsError {
    /// A polynomial has the wrong number of coefficients.
    #[error("{given} coefficients do not make rows of {wanted}, one for each exponent")]
    Coefficients {
        /// coefficients given
        given: usize,
        /// coefficients per polynomial
        wanted: usize,
    },
    /// The bytes are not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The file is of another kind or version.
    #[error("expected a file of version {VERSION}, found {0}; compute the moments again with `pal integrate --degree`")]
    Version(String),
    /// Something that belongs into the file is missing or has the wrong shape.
    #[error("{0}")]
    Content(String),
    /// The file was changed after it was written.
    #[error("the content does not match its checksum: the file is damaged or was edited")]
    Checksum,
    /// The constraint in the file cannot be read.
    #[error("the constraint in the file: {0}")]
    Constraint(#[from] SmtError),
    /// The constraint cannot be written as SMT-LIB.
    #[error(transparent)]
    Write(#[from] SmtWriteError),
    /// The exponents in the file do not form a set.
    #[error(transparent)]
    Exponents(#[from] ExponentsError),
}

impl Moments {
    /// Computes all moments of a region, summed over the assignments of its Boolean variables.
    pub fn compile(region: &Region, exponents: &Exponents) -> Result<Moments, IntegrateError> {
        let cells = region.decompose()?;
        if exponents.dimension() != region.dimension() {
            let (given, wanted) = (exponents.dimension(), region.dimension());
            return Err(ExponentsError::Length { given, wanted }.into());
        }
        let frame = Frame::origin(&around(cells.iter()));
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
        Ok(Moments {
            constraint: region.constraint().clone(),
            exponents: exponents.clone(),
            values,
            errors,
            cells: cells.len(),
            simplices: sums.simplices,
        })
    }

    /// The same by the paper's cubature, one monomial after the other: slow, for comparison.
    pub fn by_cubature(region: &Region, exponents: &Exponents) -> Result<Moments, IntegrateError> {
        let variables = &region.constraint().reals;
        let mut moments = Moments {
            constraint: region.constraint().clone(),
            exponents: exponents.clone(),
            values: Vec::new(),
            errors: Vec::new(),
            cells: 0,
            simplices: 0,
        };
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

    /// The constraint they were computed for.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
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
    pub fn integrate(&self, coefficients: &[f64]) -> Result<f64, MomentsError> {
        match self.integrate_batch(coefficients)?[..] {
            [value] => Ok(value),
            _ => Err(self.wrong_length(coefficients)),
        }
    }

    /// The integrals of many polynomials, their coefficients row by row in one slice.
    pub fn integrate_batch(&self, coefficients: &[f64]) -> Result<Vec<f64>, MomentsError> {
        if coefficients.is_empty() || !coefficients.len().is_multiple_of(self.values.len()) {
            return Err(self.wrong_length(coefficients));
        }
        let rows = coefficients.par_chunks(self.values.len()).with_min_len(64);
        Ok(rows.map(|row| row.iter().zip(&self.values).map(|(c, m)| c * m).sum()).collect())
    }

    fn wrong_length(&self, coefficients: &[f64]) -> MomentsError {
        MomentsError::Coefficients { given: coefficients.len(), wanted: self.values.len() }
    }

    /// A safetensors file: `moments` and `errors` (f64), `exponents` (u16), and the constraint, a version and a checksum in its metadata.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MomentsError> {
        let constraint = write_smtlib(&self.constraint)?;
        let doubles = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let (moments, errors) = (doubles(&self.values), doubles(&self.errors));
        let exponents: Vec<u8> = self.exponents.flat().iter().flat_map(|a| a.to_le_bytes()).collect();
        let (m, n) = (self.exponents.len(), self.exponents.dimension());
        let tensors = [
            ("errors", TensorView::new(Dtype::F64, vec![m], &errors)?),
            ("exponents", TensorView::new(Dtype::U16, vec![m, n], &exponents)?),
            ("moments", TensorView::new(Dtype::F64, vec![m], &moments)?),
        ];
        let checksum = checksum([constraint.as_bytes(), &errors[..], &exponents[..], &moments[..]]);
        let metadata = HashMap::from([
            ("version".to_string(), VERSION.to_string()),
            ("constraint".to_string(), constraint),
            ("checksum".to_string(), checksum),
        ]);
        Ok(safetensors::serialize(tensors, Some(metadata))?)
    }

    /// Reads what [`Moments::to_bytes`] wrote; anything else is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Moments, MomentsError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let none = HashMap::new();
        let metadata = header.metadata().as_ref().unwrap_or(&none);
        match metadata.get("version").map(String::as_str) {
            Some(VERSION) => {}
            other => return Err(MomentsError::Version(other.unwrap_or("none").to_string())),
        }
        let text = metadata.get("constraint").ok_or_else(|| missing("constraint"))?;
        let file = SafeTensors::deserialize(bytes)?;
        let tensor = |name: &str, dtype: Dtype, rank: usize| {
            let view = file.tensor(name).map_err(|_| missing(name))?;
            if view.dtype() != dtype || view.shape().len() != rank {
                let found = format!("{:?} {:?}", view.dtype(), view.shape());
                return Err(MomentsError::Content(format!(
                    "`{name}` should be {dtype:?} with {rank} axes, found {found}"
                )));
            }
            Ok(view)
        };
        let (errors, exponents, moments) =
            (tensor("errors", Dtype::F64, 1)?, tensor("exponents", Dtype::U16, 2)?, tensor("moments", Dtype::F64, 1)?);
        let sum = checksum([text.as_bytes(), errors.data(), exponents.data(), moments.data()]);
        if metadata.get("checksum") != Some(&sum) {
            return Err(MomentsError::Checksum);
        }
        let constraint = parse_smtlib(text)?;
        let (m, n) = (exponents.shape()[0], exponents.shape()[1]);
        if n != constraint.reals.len() || moments.shape() != [m] || errors.shape() != [m] {
            let message = format!(
                "{} variables, {m} exponents in {n} variables, {:?} moments and {:?} errors do not fit together",
                constraint.reals.len(),
                moments.shape(),
                errors.shape()
            );
            return Err(MomentsError::Content(message));
        }
        let flat: Vec<u16> = exponents.data().chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        let list: Vec<Vec<u16>> =
            if n == 0 { vec![Vec::new(); m] } else { flat.chunks(n).map(<[u16]>::to_vec).collect() };
        let set = Exponents::closure(n, list)?;
        if set.len() != m || set.flat() != flat {
            return Err(MomentsError::Content("`exponents` is not a downward-closed set in graded order".to_string()));
        }
        let doubles = |data: &[u8]| -> Vec<f64> {
            let word = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
            data.chunks_exact(8).map(word).collect()
        };
        let (values, errors) = (doubles(moments.data()), doubles(errors.data()));
        Ok(Moments { constraint, exponents: set, values, errors, cells: 0, simplices: 0 })
    }
}

fn missing(name: &str) -> MomentsError {
    MomentsError::Content(format!("`{name}` is missing"))
}

/// One cell on its way to moments.
enum Prepared {
    Swept { lanes: Vec<Lanes>, coordinate: f64, longest_sum: usize, faces: usize },
    Cut { simplices: Simplices, coordinate: f64, size: f64 },
}

fn prepare(cell: &Cell, converter: &Converter, frame: &Frame, exponents: &Exponents) -> Prepared {
    let polytope = cell.polytope();
    let (corners, coordinate) = converter.corners(polytope);
    let lattice = Lattice::new(polytope);
    let times = number::to_f64(&Rational::from(cell.multiplicity()));
    if lattice_is_cheaper(&lattice, polytope.dimension()) {
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

    /// Moments and their error bounds in the user's coordinates: `y^alpha = scale^alpha u^alpha`, and scales are powers of two.
    fn finish(&self, exponents: &Exponents, frame: &Frame) -> (Vec<f64>, Vec<f64>) {
        let n = exponents.dimension();
        // Exponents of the scales, which are powers of two; they are applied last, so that nothing overflows on the way.
        let logs: Vec<i64> = frame.scale.iter().map(|s| number::to_f64(s).log2().round() as i64).collect();
        let volume: i64 = logs.iter().sum();
        let factors = Factors::new(exponents.degree() + n);
        let nothing = self.lanes.iter().all(|lanes| lanes[1] == 0.0);
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
            (times_power_of_two(lanes[0] * factor, power), times_power_of_two(error, power))
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

/// `alpha! / (|alpha| + n)!` in doubles, to n + 2 roundings: products of correctly rounded factorials, or exactly where those overflow.
struct Factors {
    factorials: Vec<f64>,
}

/// The largest number whose factorial is a double.
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
