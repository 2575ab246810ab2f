//! Linear terms: the left- and right-hand sides of atoms.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

use super::print::readable;
use super::{Formula, Relation, Var};
use crate::number::{self, NumberError, Rational};

/// A linear term `sum_j a_j x_j + c` with rational coefficients.
///
/// ```
/// use pal::formula::reals;
/// let [x, y] = reals(["x", "y"]);
/// let phi = (2 * &x - &y).le(3) & !x.lt(&y);
/// assert!(phi.contains(&[1.0, 0.5]));
/// assert!(!phi.contains(&[0.0, 0.5]));
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Linear {
    terms: BTreeMap<Var, Rational>,
    constant: Rational,
}

/// Declares one real variable and returns it as a term.
pub fn real(name: &str) -> Linear {
    Linear::from(Var::new(name))
}

/// Declares several real variables, in the order given, and returns them as terms.
///
/// The order of declaration is the order of coordinates, whatever the names are and however the formula is written.
///
/// ```
/// use pal::formula::{Constraint, reals};
/// let [speed, gap] = reals(["speed", "gap"]);
/// let safe = Constraint::new(gap.ge(2) & speed.between(0, 30));
/// assert_eq!(safe.reals[0].name(), "speed");
/// assert!(safe.membership().unwrap().contains(&[30.0, 2.0]));
/// assert!(!safe.membership().unwrap().contains(&[2.0, 1.0]));
/// ```
pub fn reals<const N: usize>(names: [&str; N]) -> [Linear; N] {
    Var::declare(names).map(Linear::from)
}

impl Linear {
    /// The term `sum_j coefficient_j * variable_j + constant`; zero coefficients vanish, and the coefficients of
    /// repeated variables add up.
    pub fn new(terms: impl IntoIterator<Item = (Var, Rational)>, constant: Rational) -> Self {
        let mut sum = Linear { terms: BTreeMap::new(), constant };
        for (var, coefficient) in terms {
            sum.add_term(var, coefficient);
        }
        sum
    }

    /// The variables that occur in the term, with their non-zero coefficients, in alphabetical order.
    pub fn terms(&self) -> impl Iterator<Item = (&Var, &Rational)> {
        self.terms.iter()
    }

    /// The constant `c` of the term.
    pub fn constant(&self) -> &Rational {
        &self.constant
    }

    /// The value of a term without variables, and nothing for other terms.
    pub fn as_constant(&self) -> Option<&Rational> {
        self.terms.is_empty().then_some(&self.constant)
    }

    /// The term `self * factor`.
    pub fn scaled(&self, factor: &Rational) -> Linear {
        if factor.is_zero() {
            return Linear::default();
        }
        Linear {
            terms: self.terms.iter().map(|(v, a)| (v.clone(), a * factor)).collect(),
            constant: &self.constant * factor,
        }
    }

    pub(crate) fn add_term(&mut self, var: Var, coefficient: Rational) {
        let (var, sum) = match self.terms.remove_entry(&var) {
            Some((earlier, old)) => (var.earliest(earlier), old + coefficient),
            None => (var, coefficient),
        };
        if !sum.is_zero() {
            self.terms.insert(var, sum);
        }
    }

    pub(crate) fn add_scaled(&mut self, other: &Linear, factor: &Rational) {
        for (var, a) in &other.terms {
            self.add_term(var.clone(), a * factor);
        }
        self.constant = &self.constant + &other.constant * factor;
    }

    /// The formula `self <= other`.
    pub fn le(&self, other: impl Into<Linear>) -> Formula {
        Formula::compare(&(self - &other.into()), Relation::Le)
    }

    /// The formula `self < other`.
    pub fn lt(&self, other: impl Into<Linear>) -> Formula {
        Formula::compare(&(self - &other.into()), Relation::Lt)
    }

    /// The formula `self >= other`.
    pub fn ge(&self, other: impl Into<Linear>) -> Formula {
        other.into().le(self)
    }

    /// The formula `self > other`.
    pub fn gt(&self, other: impl Into<Linear>) -> Formula {
        other.into().lt(self)
    }

    /// The formula `self = other`.
    pub fn equals(&self, other: impl Into<Linear>) -> Formula {
        Formula::compare(&(self - &other.into()), Relation::Eq)
    }

    /// The formula `self != other`.
    pub fn differs(&self, other: impl Into<Linear>) -> Formula {
        !self.equals(other)
    }

    /// The formula `low <= self <= high`.
    pub fn between(&self, low: impl Into<Linear>, high: impl Into<Linear>) -> Formula {
        self.ge(low) & self.le(high)
    }
}

impl From<Var> for Linear {
    fn from(var: Var) -> Self {
        Linear { terms: BTreeMap::from([(var, Rational::ONE)]), constant: Rational::ZERO }
    }
}

impl From<&Linear> for Linear {
    fn from(term: &Linear) -> Self {
        term.clone()
    }
}

impl From<Rational> for Linear {
    fn from(constant: Rational) -> Self {
        Linear { terms: BTreeMap::new(), constant }
    }
}

impl From<i32> for Linear {
    fn from(constant: i32) -> Self {
        Rational::from(constant).into()
    }
}

impl From<i64> for Linear {
    fn from(constant: i64) -> Self {
        Rational::from(constant).into()
    }
}

/// The rational constant that the float64 denotes exactly; NaN and infinities are refused.
impl TryFrom<f64> for Linear {
    type Error = NumberError;

    fn try_from(constant: f64) -> Result<Self, NumberError> {
        number::from_f64(constant).map(Linear::from)
    }
}

/// An exact constant from text: `"0.1"` is 1/10, `"1/3"` is a third.
impl TryFrom<&str> for Linear {
    type Error = NumberError;

    fn try_from(constant: &str) -> Result<Self, NumberError> {
        number::parse_rational(constant).map(Linear::from)
    }
}

macro_rules! linear_sum {
    ($trait:ident, $method:ident, $sign:expr) => {
        linear_sum!(@impl $trait, $method, $sign, &Linear, Linear);
        linear_sum!(@impl $trait, $method, $sign, &Linear, &Linear);
        linear_sum!(@impl $trait, $method, $sign, Linear, Linear);
        linear_sum!(@impl $trait, $method, $sign, Linear, &Linear);
        linear_sum!(@impl $trait, $method, $sign, Linear, i64);
        linear_sum!(@impl $trait, $method, $sign, &Linear, i64);
        linear_sum!(@impl $trait, $method, $sign, Linear, Rational);
        linear_sum!(@impl $trait, $method, $sign, &Linear, Rational);
        linear_sum!(@impl $trait, $method, $sign, i64, Linear);
        linear_sum!(@impl $trait, $method, $sign, i64, &Linear);
        linear_sum!(@impl $trait, $method, $sign, Rational, Linear);
        linear_sum!(@impl $trait, $method, $sign, Rational, &Linear);
    };
    (@impl $trait:ident, $method:ident, $sign:expr, $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Linear;

            fn $method(self, other: $right) -> Linear {
                let mut sum = Linear::from(self);
                sum.add_scaled(&Linear::from(other), &Rational::from($sign));
                sum
            }
        }
    };
}
linear_sum!(Add, add, 1);
linear_sum!(Sub, sub, -1);

macro_rules! linear_scale {
    ($($term:ty),*) => {$(
        impl Mul<$term> for i64 {
            type Output = Linear;

            fn mul(self, term: $term) -> Linear {
                term.scaled(&Rational::from(self))
            }
        }
        impl Mul<$term> for Rational {
            type Output = Linear;

            fn mul(self, term: $term) -> Linear {
                term.scaled(&self)
            }
        }
        impl Neg for $term {
            type Output = Linear;

            fn neg(self) -> Linear {
                self.scaled(&Rational::from(-1))
            }
        }
    )*};
}
linear_scale!(Linear, &Linear);

/// Writes the term in ordinary mathematical notation: `2*x - 1/3*y + 4`.
impl fmt::Display for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let parts = self.terms.iter().map(|(v, a)| (Some(v), a)).chain([(None, &self.constant)]);
        for (var, coefficient) in parts {
            if var.is_none() && coefficient.is_zero() && !first {
                continue;
            }
            let negative = coefficient < &Rational::ZERO;
            let size = if negative { -coefficient } else { coefficient.clone() };
            match (first, negative) {
                (true, true) => f.write_str("-")?,
                (true, false) => {}
                (false, true) => f.write_str(" - ")?,
                (false, false) => f.write_str(" + ")?,
            }
            match var {
                Some(v) if size.is_one() => write!(f, "{v}")?,
                Some(v) => write!(f, "{}*{v}", readable(&size))?,
                None => f.write_str(&readable(&size))?,
            }
            first = false;
        }
        Ok(())
    }
}

impl fmt::Debug for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_linear() {
        let [x, y] = reals(["x", "y"]);
        let t = 2 * &x - (&y + 3) + Rational::from_parts(1.into(), 2u8.into());
        assert_eq!(t.to_string(), "2*x - y - 5/2");
        assert_eq!((&t - &t).as_constant(), Some(&Rational::ZERO));
        assert_eq!((-&x + (&y - &y)).to_string(), "-x");
        assert_eq!(Linear::default().to_string(), "0");
        assert_eq!((Rational::from_parts(1.into(), 4u8.into()) * x).to_string(), "1/4*x");
    }

    #[test]
    fn floats_denote_themselves_and_nan_is_refused() {
        assert_eq!(Linear::try_from(0.5).unwrap(), Linear::try_from("1/2").unwrap());
        assert_ne!(Linear::try_from(0.1).unwrap(), Linear::try_from("0.1").unwrap());
        assert!(Linear::try_from(f64::NAN).is_err());
    }
}
