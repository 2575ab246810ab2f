//! Integrands evaluated at many points at once.

use super::sum::two_sum;
use crate::formula::Var;
use crate::number;
use crate::polynomial::{Polynomial, PolynomialError};

/// Points evaluated together: enough to fill vector units, few enough that the powers of 14 variables stay in the
/// cache.
pub(crate) const BATCH: usize = 128;

/// What one underflow can change, with room for the weights that the bound will be multiplied with.
const UNDERFLOW_STEP: f64 = f64::from_bits(1 << 30);

/// Unit roundoff of float64.
pub(crate) const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Up to [`BATCH`] points and what an integrand makes of them. All arrays are dense, one row of `BATCH` per axis or
/// power.
#[derive(Debug)]
pub(crate) struct PointBatch {
    pub count: usize,
    /// Coordinates, axis by axis.
    pub points: Vec<f64>,
    /// Bounds on the sizes of the sums that gave the coordinates; `points` is off by at most `slack` of them.
    pub magnitudes: Vec<f64>,
    /// The relative error of coordinates, in terms of `magnitudes`.
    pub slack: f64,
    /// Whether `magnitudes` is just the absolute value of `points`.
    pub uniform: bool,
    pub values: Vec<f64>,
    /// Bounds on the errors of `values`.
    pub errors: Vec<f64>,
    powers: Vec<f64>,
}

impl PointBatch {
    pub fn new(dimension: usize) -> Self {
        PointBatch {
            count: 0,
            points: vec![0.0; dimension * BATCH],
            magnitudes: vec![0.0; dimension * BATCH],
            slack: 0.0,
            uniform: true,
            values: vec![0.0; BATCH],
            errors: vec![0.0; BATCH],
            powers: Vec::new(),
        }
    }
}

/// A function that can be integrated by evaluating it. An error is a point where it has no finite value.
pub(crate) trait BatchFunction: Sync {
    /// Fills `values` and `errors`, the latter with the error of evaluation as far as it is known.
    fn evaluate(&self, batch: &mut PointBatch) -> Result<(), Vec<f64>>;
}

/// A function given as code.
pub(crate) struct Closure<F> {
    pub dimension: usize,
    pub function: F,
}

impl<F: Fn(&[f64]) -> f64 + Sync> BatchFunction for Closure<F> {
    fn evaluate(&self, batch: &mut PointBatch) -> Result<(), Vec<f64>> {
        let mut point = vec![0.0; self.dimension];
        for p in 0..batch.count {
            point.iter_mut().enumerate().for_each(|(axis, x)| *x = batch.points[axis * BATCH + p]);
            let value = (self.function)(&point);
            if !value.is_finite() {
                return Err(point);
            }
            batch.values[p] = value;
        }
        batch.errors[..batch.count].fill(0.0);
        Ok(())
    }
}

/// A polynomial laid out for evaluation in float64.
#[derive(Clone, Debug)]
pub(crate) struct BatchPolynomial {
    /// Per term, rounded once.
    coefficients: Vec<f64>,
    degrees: Vec<f64>,
    /// Rows of the table of powers that each term multiplies, `starts[t]..starts[t + 1]` for term t.
    factors: Vec<u32>,
    starts: Vec<u32>,
    /// Per axis, the row of its first power, and how many powers there are.
    tables: Vec<(usize, usize)>,
    rows: usize,
}

impl BatchPolynomial {
    /// The terms over the given coordinates.
    pub fn new(polynomial: &Polynomial, variables: &[Var]) -> Result<Self, PolynomialError> {
        let aligned = polynomial.aligned(variables)?;
        let highest = |axis: usize| aligned.iter().map(|(alpha, _)| usize::from(alpha[axis])).max().unwrap_or(0);
        let mut tables = Vec::new();
        let mut rows = 0;
        for axis in 0..variables.len() {
            tables.push((rows, highest(axis)));
            rows += highest(axis);
        }
        let mut terms =
            BatchPolynomial { coefficients: vec![], degrees: vec![], factors: vec![], starts: vec![0], tables, rows };
        for (alpha, c) in &aligned {
            let used = alpha.iter().zip(&terms.tables).filter(|(a, _)| **a > 0);
            terms.factors.extend(used.map(|(a, (first, _))| (first + usize::from(*a) - 1) as u32));
            terms.starts.push(terms.factors.len() as u32);
            terms.coefficients.push(number::to_f64(c));
            terms.degrees.push(alpha.iter().map(|a| f64::from(*a)).sum());
        }
        Ok(terms)
    }

    /// Per term a bound on what underflow can have changed at the points of a batch: every product can be off by half
    /// the smallest number, which the other factors may magnify.
    fn underflow(&self, batch: &PointBatch) -> f64 {
        let coordinates = if batch.uniform { &batch.points } else { &batch.magnitudes };
        let largest =
            |axis: usize| coordinates[axis * BATCH..][..batch.count].iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let mut powers = Vec::with_capacity(self.rows);
        for (axis, (_, highest)) in self.tables.iter().enumerate() {
            let base = largest(axis);
            powers.extend((0..*highest).scan(1.0, |power, _| {
                *power *= base;
                Some(*power)
            }));
        }
        let terms = self.starts.windows(2).zip(self.coefficients.iter().zip(&self.degrees));
        let growth = terms.map(|(range, (c, degree))| {
            let factors = &self.factors[range[0] as usize..range[1] as usize];
            let monomial: f64 = factors.iter().map(|factor| powers[*factor as usize]).product();
            // A coefficient below the normal range is off by the same.
            ((degree + 1.0) * c.abs() + 1.0) * monomial
        });
        growth.sum::<f64>() * UNDERFLOW_STEP
    }

    /// The powers `x^1 .. x^highest` of every coordinate, by repeated multiplication: `e - 1` roundings for `x^e`.
    fn fill_powers(&self, coordinates: &[f64], count: usize, powers: &mut Vec<f64>) {
        powers.resize(self.rows * BATCH, 0.0);
        for (axis, (first, highest)) in self.tables.iter().enumerate() {
            let x = &coordinates[axis * BATCH..][..count];
            for e in 0..*highest {
                let (before, rest) = powers.split_at_mut((first + e) * BATCH);
                match e {
                    0 => rest[..count].copy_from_slice(x),
                    _ => {
                        let previous = &before[(first + e - 1) * BATCH..][..count];
                        rest[..count].iter_mut().zip(previous).zip(x).for_each(|((power, p), x)| *power = p * x);
                    }
                }
            }
        }
    }

    /// Hands every term and its monomial at all points to `each`.
    fn monomials(&self, powers: &[f64], count: usize, mut each: impl FnMut(usize, &[f64])) {
        let mut monomial = [1.0; BATCH];
        let row = |factor: u32| &powers[factor as usize * BATCH..][..count];
        for t in 0..self.coefficients.len() {
            let monomial = &mut monomial[..count];
            match &self.factors[self.starts[t] as usize..self.starts[t + 1] as usize] {
                [] => monomial.fill(1.0),
                [first, others @ ..] => {
                    monomial.copy_from_slice(row(*first));
                    for other in others {
                        monomial.iter_mut().zip(row(*other)).for_each(|(m, power)| *m *= power);
                    }
                }
            }
            each(t, monomial);
        }
    }
}

impl BatchFunction for BatchPolynomial {
    /// A term of degree k is off by k roundings of products, one each of the coefficient, its product and the
    /// compensated sum, and by k times the error of a coordinate, all relative to the monomial at `magnitudes`.
    fn evaluate(&self, batch: &mut PointBatch) -> Result<(), Vec<f64>> {
        let count = batch.count;
        let mut powers = std::mem::take(&mut batch.powers);
        let mut lost = [0.0; BATCH];
        batch.values[..count].fill(0.0);
        let underflow = self.underflow(batch);
        batch.errors[..count].fill(underflow);
        let (values, errors) = (&mut batch.values[..count], &mut batch.errors[..count]);
        // The factor 1.01 is for what the first order leaves out: degrees are at most 161 and slacks about 1e-14.
        let doubt = |t: usize| {
            let k = self.degrees[t];
            self.coefficients[t].abs() * ((k + 3.0) * ROUNDOFF + k * batch.slack) * 1.01
        };
        let uniform = batch.uniform;
        self.fill_powers(&batch.points, count, &mut powers);
        self.monomials(&powers, count, |t, monomial| {
            let c = self.coefficients[t];
            for ((value, lost), m) in values.iter_mut().zip(&mut lost).zip(monomial) {
                let (sum, rounding) = two_sum(*value, c * m);
                *value = sum;
                *lost += rounding;
            }
            if uniform {
                let doubt = doubt(t);
                errors.iter_mut().zip(monomial).for_each(|(error, m)| *error += doubt * m.abs());
            }
        });
        if !uniform {
            self.fill_powers(&batch.magnitudes, count, &mut powers);
            self.monomials(&powers, count, |t, monomial| {
                let doubt = doubt(t);
                errors.iter_mut().zip(monomial).for_each(|(error, m)| *error += doubt * m);
            });
        }
        values.iter_mut().zip(&lost).for_each(|(value, lost)| *value += lost);
        batch.powers = powers;
        Ok(())
    }
}
