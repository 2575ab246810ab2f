//! Polynomials with exact rational coefficients over named variables: the weights and densities to integrate.
//!
//! ```text
//! p(x) = sum over alpha of  c_alpha x^alpha,     c_alpha rational
//! ```
//!
//! A polynomial is kept expanded, as its non-zero terms in graded order over exactly the variables that occur in it,
//! so equal polynomials are equal values. Operations that can grow without bound (products, powers, substitutions,
//! parsing) return an error when they pass a limit; sums cannot, and are operators.
//!
//! ```
//! use pal::polynomial::Polynomial;
//! let p = Polynomial::parse("(x + y)^2 - 0.5")?;
//! assert_eq!(p.to_string(), "x^2 + 2*x*y + y^2 - 1/2");
//! assert_eq!(p.mul(&p)?, p.pow(2)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod affine;
mod arithmetic;
mod error;
mod evaluate;
mod lexer;
mod monomial;
mod nearest;
mod packing;
mod parse;
mod print;
mod product;
mod substitute;
mod terms;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use error::{MAX_COEFFICIENT_BITS, MAX_DEGREE, MAX_NESTING, MAX_TERMS, ParseError, ParseProblem, PolynomialError};
pub use evaluate::Approximation;

use crate::formula::{Linear, Var};
use crate::number::Rational;
use error::check_degree;
use monomial::Monomial;
use product::check_memory;
use terms::Terms;

/// A polynomial with rational coefficients.
///
/// ```
/// use pal::formula::Var;
/// use pal::number::Rational;
/// use pal::polynomial::Polynomial;
/// let p = Polynomial::parse("3*x^2*y - 1/2")?;
/// let [x, y] = ["x", "y"].map(Var::new);
/// assert_eq!(p.degree(), Some(3));
/// assert_eq!(p.coefficient(&[(y.clone(), 1), (x.clone(), 2)]), Rational::from(3));
/// assert_eq!(p.derivative(&x).to_string(), "6*x*y");
/// assert_eq!(p.eval(&[x, y], &[2.into(), 1.into()])?, Rational::from_parts(23.into(), 2u8.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Polynomial {
    /// the variables that occur in a term, in name order
    variables: Vec<Var>,
    terms: Terms,
}

impl Polynomial {
    /// The polynomial 0.
    pub fn zero() -> Self {
        Polynomial::default()
    }

    /// The polynomial 1.
    pub fn one() -> Self {
        Polynomial::constant(Rational::ONE)
    }

    /// Returns a constant polynomial.
    pub fn constant(value: impl Into<Rational>) -> Self {
        Polynomial { variables: Vec::new(), terms: Terms::constant(value.into()) }
    }

    /// Returns the polynomial that is a single variable.
    pub fn var(variable: &Var) -> Self {
        Polynomial { variables: vec![variable.clone()], terms: Terms::single(Monomial::power(0, 1), Rational::ONE) }
    }

    /// Returns the sum of all `coefficient * prod_j variable_j^exponent_j`.
    ///
    /// The coefficients of equal monomials add up, and so do the exponents of a variable that is given twice.
    pub fn from_terms(
        variables: &[Var],
        terms: impl IntoIterator<Item = (Vec<u16>, Rational)>,
    ) -> Result<Self, PolynomialError> {
        let sorted = sorted_union([variables]);
        let places: Vec<u32> =
            variables.iter().map(|v| position(&sorted, v).expect("the union has every variable")).collect();
        let mut sum = Terms::default();
        for (exponents, coefficient) in terms {
            if exponents.len() != places.len() {
                return Err(PolynomialError::Length { expected: places.len(), found: exponents.len() });
            }
            check_degree(exponents.iter().map(|&e| u64::from(e)).sum())?;
            let powers = places.iter().zip(exponents).map(|(&place, e)| Monomial::power(place, e));
            sum.add(powers.fold(Monomial::one(), |product, power| product.times(&power)), coefficient);
            check_memory(sum.len(), 0)?;
        }
        Ok(Polynomial::trimmed(sorted, sum))
    }

    /// Returns the variables that occur, in name order.
    ///
    /// [`Polynomial::aligned`] gives the terms in another order of the variables.
    pub fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// Returns whether this is the polynomial 0.
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the value of a polynomial without variables, and `None` if a variable occurs.
    pub fn as_constant(&self) -> Option<Rational> {
        self.terms.as_constant()
    }

    /// Returns the total degree; the polynomial 0 has none.
    pub fn degree(&self) -> Option<u32> {
        (!self.is_zero()).then(|| self.terms.degree())
    }

    /// Returns the highest exponent of one variable; 0 if it does not occur.
    pub fn degree_in(&self, variable: &Var) -> u32 {
        position(&self.variables, variable)
            .and_then(|v| self.terms.iter().map(|(m, _)| u32::from(m.exponent(v))).max())
            .unwrap_or(0)
    }

    /// Returns the number of non-zero terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Returns whether there are no terms, which is the case for the polynomial 0 alone.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the terms, highest first: the variables with their positive exponents, and the non-zero coefficient.
    pub fn terms(&self) -> impl Iterator<Item = (Vec<(&Var, u16)>, &Rational)> {
        self.terms.iter().rev().map(|(monomial, coefficient)| {
            (monomial.powers().iter().map(|&(v, e)| (&self.variables[v as usize], e)).collect(), coefficient)
        })
    }

    /// Returns the coefficient of `prod_j variable_j^exponent_j`, which is 0 if there is no such term.
    pub fn coefficient(&self, powers: &[(Var, u16)]) -> Rational {
        let mut exponents: BTreeMap<u32, u32> = BTreeMap::new();
        for (variable, exponent) in powers.iter().filter(|(_, exponent)| *exponent > 0) {
            match position(&self.variables, variable) {
                Some(v) => *exponents.entry(v).or_insert(0) += u32::from(*exponent),
                None => return Rational::ZERO,
            }
        }
        let mut monomial = Monomial::one();
        for (v, exponent) in exponents {
            match u16::try_from(exponent) {
                Ok(exponent) => monomial.push(v, exponent),
                Err(_) => return Rational::ZERO,
            }
        }
        self.terms.get(&monomial).cloned().unwrap_or(Rational::ZERO)
    }

    /// Returns the terms, lowest first, with their exponents in the order of the given variables.
    ///
    /// This is the form that the integrators work on.
    pub fn aligned(&self, variables: &[Var]) -> Result<Vec<(Vec<u16>, Rational)>, PolynomialError> {
        let places = self.places(variables)?;
        // Four exponents fit into one machine word.
        check_memory(self.len().saturating_mul(variables.len() / 4 + 1), 0)?;
        let align = |(monomial, coefficient): (&Monomial, &Rational)| {
            let mut exponents = vec![0; variables.len()];
            monomial.powers().iter().for_each(|&(v, e)| exponents[places[v as usize]] = e);
            (exponents, coefficient.clone())
        };
        Ok(self.terms.iter().map(align).collect())
    }

    /// Returns the position of each variable of the polynomial in a list of variables.
    fn places(&self, variables: &[Var]) -> Result<Vec<usize>, PolynomialError> {
        let given: BTreeMap<&Var, usize> = variables.iter().enumerate().rev().map(|(at, v)| (v, at)).collect();
        let place = |variable: &Var| {
            given.get(variable).copied().ok_or_else(|| PolynomialError::MissingVariable {
                variable: variable.to_string(),
                given: print::list(variables),
            })
        };
        self.variables.iter().map(place).collect()
    }

    /// Returns the sum of the terms of one total degree.
    pub fn homogeneous_part(&self, degree: u32) -> Polynomial {
        let part = self.terms.iter().filter(|(m, _)| m.degree() == degree);
        Polynomial::trimmed(self.variables.clone(), part.map(|(m, c)| (m.clone(), c.clone())).collect())
    }

    /// Returns the non-zero homogeneous parts by their degrees; their sum is the polynomial.
    pub fn homogeneous_parts(&self) -> BTreeMap<u32, Polynomial> {
        let mut parts: BTreeMap<u32, Terms> = BTreeMap::new();
        for (monomial, coefficient) in self.terms.iter() {
            parts.entry(monomial.degree()).or_default().add(monomial.clone(), coefficient.clone());
        }
        parts.into_iter().map(|(k, part)| (k, Polynomial::trimmed(self.variables.clone(), part))).collect()
    }

    /// Returns the polynomial with these terms, without the variables that occur in no term.
    fn trimmed(variables: Vec<Var>, terms: Terms) -> Polynomial {
        let mut occurs = vec![false; variables.len()];
        for (monomial, _) in terms.iter() {
            monomial.powers().iter().for_each(|&(v, _)| occurs[v as usize] = true);
        }
        if occurs.iter().all(|&o| o) {
            return Polynomial { variables, terms };
        }
        let positions: Vec<u32> = occurs
            .iter()
            .scan(0, |next, &o| {
                let position = *next;
                *next += u32::from(o);
                Some(position)
            })
            .collect();
        let kept = variables.into_iter().zip(occurs).filter(|(_, o)| *o).map(|(v, _)| v).collect();
        Polynomial { variables: kept, terms: terms.moved(&positions) }
    }

    /// Returns the terms renumbered for a sorted list that contains all variables of the polynomial.
    fn terms_over(&self, variables: &[Var]) -> Terms {
        if self.variables == variables {
            return self.terms.clone();
        }
        let places: Vec<u32> = self.variables.iter().map(|v| position(variables, v).unwrap_or_default()).collect();
        self.terms.moved(&places)
    }
}

/// Returns the position of a variable in a list sorted by name.
fn position(sorted: &[Var], variable: &Var) -> Option<u32> {
    sorted.binary_search(variable).ok().map(|at| at as u32)
}

/// Returns all variables of the lists in name order, each with its earliest declaration.
fn sorted_union<'a>(lists: impl IntoIterator<Item = &'a [Var]>) -> Vec<Var> {
    let mut union: Vec<&Var> = lists.into_iter().flatten().collect();
    union.sort_by(|a, b| a.cmp(b).then_with(|| a.by_declaration(b)));
    union.dedup();
    union.into_iter().cloned().collect()
}

impl From<&Linear> for Polynomial {
    fn from(linear: &Linear) -> Self {
        let (variables, coefficients): (Vec<&Var>, Vec<&Rational>) = linear.terms().unzip();
        let mut terms = Terms::constant(linear.constant().clone());
        for (v, coefficient) in coefficients.into_iter().enumerate() {
            terms.add(Monomial::power(v as u32, 1), coefficient.clone());
        }
        Polynomial { variables: variables.into_iter().cloned().collect(), terms }
    }
}

impl From<Linear> for Polynomial {
    fn from(linear: Linear) -> Self {
        Polynomial::from(&linear)
    }
}

impl From<Rational> for Polynomial {
    fn from(constant: Rational) -> Self {
        Polynomial::constant(constant)
    }
}
