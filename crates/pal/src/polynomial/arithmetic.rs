//! The ring operations. Sums are operators; products and powers can pass a limit and therefore return a `Result`.

use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use super::error::{PolynomialError, WorkLimit};
use super::product::{power, product};
use super::{Polynomial, sorted_union};
use crate::number::Rational;

impl Polynomial {
    /// Returns `self * factor`.
    pub fn scaled(&self, factor: &Rational) -> Polynomial {
        if factor.is_zero() {
            return Polynomial::zero();
        }
        let mut scaled = self.clone();
        scaled.terms.scale(factor);
        scaled
    }

    /// Returns `self * other`.
    pub fn mul(&self, other: &Polynomial) -> Result<Polynomial, PolynomialError> {
        let variables = sorted_union([self.variables.as_slice(), &other.variables]);
        let (a, b) = (self.terms_over(&variables), other.terms_over(&variables));
        let terms = product(&a, &b, &mut WorkLimit::new())?;
        Ok(Polynomial::trimmed(variables, terms))
    }

    /// Returns `self^exponent`; `0^0` is 1.
    pub fn pow(&self, exponent: u32) -> Result<Polynomial, PolynomialError> {
        let terms = power(&self.terms, u64::from(exponent), &mut WorkLimit::new())?;
        Ok(Polynomial::trimmed(self.variables.clone(), terms))
    }
}

impl AddAssign<&Polynomial> for Polynomial {
    fn add_assign(&mut self, other: &Polynomial) {
        let variables = sorted_union([self.variables.as_slice(), &other.variables]);
        if self.variables != variables {
            self.terms = self.terms_over(&variables);
        }
        let mut terms = std::mem::take(&mut self.terms);
        terms.absorb(other.terms_over(&variables));
        *self = Polynomial::trimmed(variables, terms);
    }
}

impl SubAssign<&Polynomial> for Polynomial {
    fn sub_assign(&mut self, other: &Polynomial) {
        *self += &-other;
    }
}

impl Neg for Polynomial {
    type Output = Polynomial;

    fn neg(mut self) -> Polynomial {
        self.terms.negate();
        self
    }
}

impl Neg for &Polynomial {
    type Output = Polynomial;

    fn neg(self) -> Polynomial {
        -self.clone()
    }
}

macro_rules! sum {
    ($trait:ident, $method:ident, $assign:tt) => {
        impl $trait for Polynomial {
            type Output = Polynomial;

            fn $method(mut self, other: Polynomial) -> Polynomial {
                self $assign &other;
                self
            }
        }

        impl $trait for &Polynomial {
            type Output = Polynomial;

            fn $method(self, other: &Polynomial) -> Polynomial {
                let mut sum = self.clone();
                sum $assign other;
                sum
            }
        }
    };
}
sum!(Add, add, +=);
sum!(Sub, sub, -=);
