//! Values of polynomials at points: exact, and in float64 with a certified error.

use super::Polynomial;
use super::error::{PolynomialError, check_bits};
use super::monomial::Monomial;
use super::terms::{Terms, clear_denominators, coefficient_bits};
use crate::formula::Var;
use crate::number::{self, Integer, Rational, bit_length};

/// A float64 value with a bound for its distance to the exact value.
///
/// ```
/// use pal::polynomial::Polynomial;
/// let p = Polynomial::parse("x^2 - 1/3")?;
/// let near = p.eval_f64(p.variables(), &[0.5])?;
/// assert!((near.value - (-1.0 / 12.0)).abs() <= 2.0 * near.error && near.error < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approximation {
    /// the rounded value
    pub value: f64,
    /// a bound for `|exact - value|`; infinite if the exact value is outside the range of float64
    pub error: f64,
}

/// The unit roundoff of float64.
const ROUNDOFF: f64 = f64::EPSILON / 2.0;

impl Polynomial {
    /// Returns the exact value where `variables[j]` is `point[j]`. Coordinates of other variables are ignored.
    pub fn eval(&self, variables: &[Var], point: &[Rational]) -> Result<Rational, PolynomialError> {
        let places = self.coordinates(variables, point.len())?;
        let mut terms = self.terms.clone();
        for (v, place) in places.into_iter().enumerate() {
            let lines = terms.lines(v as u32).into_iter();
            let values = lines.map(|(rest, line)| Ok((rest, line_value(line, &point[place])?)));
            let values: Vec<(Monomial, Rational)> = values.collect::<Result<_, PolynomialError>>()?;
            terms = values.into_iter().filter(|(_, value)| !value.is_zero()).collect();
        }
        Ok(terms.as_constant().unwrap_or(Rational::ZERO))
    }

    /// Returns the value in float64 where `variables[j]` is `point[j]`, with a bound for its error.
    ///
    /// If an intermediate result overflows or underflows, the value is computed exactly and rounded once.
    pub fn eval_f64(&self, variables: &[Var], point: &[f64]) -> Result<Approximation, PolynomialError> {
        let places = self.coordinates(variables, point.len())?;
        let used: Vec<f64> = places.iter().map(|&place| point[place]).collect();
        let exact = |(variable, &x): (&Var, &f64)| {
            let named = |problem| PolynomialError::NotFinite { variable: variable.to_string(), problem };
            number::from_f64(x).map_err(named)
        };
        let coordinates = || self.variables.iter().zip(&used).map(exact).collect::<Result<Vec<_>, _>>();
        if used.iter().all(|x| x.is_finite())
            && let Some(rounded) = sum_in_float64(&self.terms, &used)
        {
            return Ok(rounded);
        }
        let value = number::to_f64(&self.eval(&self.variables, &coordinates()?)?);
        let error = if value.is_finite() { value.abs() * ROUNDOFF + f64::from_bits(1) } else { f64::INFINITY };
        Ok(Approximation { value, error })
    }

    /// Returns the position of each variable of the polynomial, after checking that there is one value per variable.
    fn coordinates(&self, variables: &[Var], values: usize) -> Result<Vec<usize>, PolynomialError> {
        if variables.len() != values {
            return Err(PolynomialError::Length { expected: variables.len(), found: values });
        }
        self.places(variables)
    }
}

/// Returns `sum_e c_e x^e` by Horner's rule. With `x = p/q`, `q^d` times the sum is a sum of integers, so that only the
/// last step has to reduce a fraction.
fn line_value(line: Vec<(u16, Rational)>, x: &Rational) -> Result<Rational, PolynomialError> {
    let degree = match line.as_slice() {
        [(0, constant)] => return Ok(constant.clone()),
        [.., (degree, _)] => usize::from(*degree),
        [] => return Ok(Rational::ZERO),
    };
    let cleared = clear_denominators(line.iter().map(|(e, c)| (*e, c)))?;
    let longest = cleared.numerators.iter().map(|(_, n)| bit_length(n)).max().unwrap_or(0);
    check_bits(degree * coefficient_bits(x) + longest + line.len().ilog2() as usize + 1)?;

    let (p, q) = (x.numerator(), Integer::from(x.denominator().clone()));
    let (mut sum, mut scale, mut at) = (Integer::ZERO, Integer::ONE, degree);
    for (exponent, numerator) in cleared.numerators.iter().rev() {
        let gap = at - usize::from(*exponent);
        sum *= p.pow(gap);
        scale *= q.pow(gap);
        sum += numerator * &scale;
        at = usize::from(*exponent);
    }
    sum *= p.pow(at);
    scale *= q.pow(at);
    Ok(Rational::from_parts_signed(sum, scale * Integer::from(cleared.denominator)))
}

/// Returns the value in float64 with an error bound from a running error analysis.
///
/// A term of degree k is off by at most k + 1 roundings (coefficient, powers, products), and every addition by one
/// rounding of the partial sum. The result is `None` if a number leaves the normal range, where this does not hold.
fn sum_in_float64(terms: &Terms, point: &[f64]) -> Option<Approximation> {
    let mut powers: Vec<Vec<f64>> = vec![vec![1.0]; point.len()];
    let (mut sum, mut roundings) = (0.0f64, 0.0f64);
    for (monomial, coefficient) in terms.iter() {
        if monomial.powers().iter().any(|&(v, _)| point[v as usize] == 0.0) {
            continue;
        }
        let mut term = number::to_f64(coefficient);
        for &(v, exponent) in monomial.powers() {
            let table = &mut powers[v as usize];
            while table.len() <= usize::from(exponent) {
                table.push(table[table.len() - 1] * point[v as usize]);
            }
            let factor = table[usize::from(exponent)];
            if !(factor.is_normal() && term.is_normal()) {
                return None;
            }
            term *= factor;
        }
        if !term.is_normal() {
            return None;
        }
        sum += term;
        roundings += f64::from(monomial.degree() + 1) * term.abs() + sum.abs();
    }
    // The factor 1 + 1e-8 covers the second-order terms of the roundings, and the roundings of this bound itself, for
    // up to 2 million terms of degree 10,000. The smallest normal number covers products with the roundoff that
    // underflow.
    let error = if roundings == 0.0 { 0.0 } else { roundings * ROUNDOFF * (1.0 + 1e-8) + f64::MIN_POSITIVE };
    (sum.is_finite() && error.is_finite()).then_some(Approximation { value: sum, error })
}
