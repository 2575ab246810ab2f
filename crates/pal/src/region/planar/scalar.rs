//! The numbers that coordinates are made of.

use std::cmp::Ordering;

use crate::double_double::{DoubleDouble, RELATIVE_ERROR, two_sum};
use crate::number::{self, Rational};

/// float64, double-doubles or fractions.
pub(crate) trait Scalar: Clone + Send + Sync {
    /// Whether operations are exact.
    const EXACT: bool;
    /// A bound on the relative error of every operation.
    const ROUNDING: f64;
    /// The nearest number to a fraction, and a bound on the difference.
    fn nearest(value: &Rational) -> (Self, f64);
    /// The difference to a float64, and a bound on its rounding error.
    fn minus_float(&self, other: f64) -> (Self, f64);
    /// A float64, which must be finite.
    fn from_float(x: f64) -> Self;
    fn plus(&self, other: &Self) -> Self;
    fn minus(&self, other: &Self) -> Self;
    fn times(&self, other: &Self) -> Self;
    fn over(&self, other: &Self) -> Self;
    /// How two numbers compare as they stand; `None` for NaN.
    fn order(&self, other: &Self) -> Option<Ordering>;
    /// The nearest float64.
    fn rounded(&self) -> f64;
}

impl Scalar for f64 {
    const EXACT: bool = false;
    const ROUNDING: f64 = f64::EPSILON / 2.0;

    fn nearest(value: &Rational) -> (f64, f64) {
        let near = number::to_f64(value);
        let exact = number::from_f64(near).is_ok_and(|near| near == *value);
        (near, if exact { 0.0 } else { near.abs() * f64::EPSILON + f64::MIN_POSITIVE })
    }

    #[inline(always)]
    fn minus_float(&self, other: f64) -> (f64, f64) {
        let (difference, rest) = two_sum(*self, -other);
        (difference, rest.abs())
    }

    #[inline(always)]
    fn from_float(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn plus(&self, other: &f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn minus(&self, other: &f64) -> f64 {
        self - other
    }

    #[inline(always)]
    fn times(&self, other: &f64) -> f64 {
        self * other
    }

    #[inline(always)]
    fn over(&self, other: &f64) -> f64 {
        self / other
    }

    #[inline(always)]
    fn order(&self, other: &f64) -> Option<Ordering> {
        self.partial_cmp(other)
    }

    #[inline(always)]
    fn rounded(&self) -> f64 {
        *self
    }
}

impl Scalar for DoubleDouble {
    const EXACT: bool = false;
    const ROUNDING: f64 = RELATIVE_ERROR;

    fn nearest(value: &Rational) -> (DoubleDouble, f64) {
        DoubleDouble::nearest(value)
    }

    fn minus_float(&self, other: f64) -> (DoubleDouble, f64) {
        if self.low == 0.0 {
            // The rounding error of a sum of two float64 numbers is one, too.
            let (high, low) = two_sum(self.high, -other);
            return (DoubleDouble { high, low }, 0.0);
        }
        let difference = DoubleDouble::minus(*self, DoubleDouble::new(other));
        (difference, RELATIVE_ERROR * difference.high.abs())
    }

    fn from_float(x: f64) -> DoubleDouble {
        DoubleDouble::new(x)
    }

    #[inline(always)]
    fn plus(&self, other: &DoubleDouble) -> DoubleDouble {
        DoubleDouble::plus(*self, *other)
    }

    #[inline(always)]
    fn minus(&self, other: &DoubleDouble) -> DoubleDouble {
        DoubleDouble::minus(*self, *other)
    }

    #[inline(always)]
    fn times(&self, other: &DoubleDouble) -> DoubleDouble {
        DoubleDouble::times(*self, *other)
    }

    #[inline(always)]
    fn over(&self, other: &DoubleDouble) -> DoubleDouble {
        DoubleDouble::over(*self, *other)
    }

    #[inline(always)]
    fn order(&self, other: &DoubleDouble) -> Option<Ordering> {
        DoubleDouble::order(*self, *other)
    }

    #[inline(always)]
    fn rounded(&self) -> f64 {
        self.high
    }
}

impl Scalar for Rational {
    const EXACT: bool = true;
    const ROUNDING: f64 = 0.0;

    fn nearest(value: &Rational) -> (Rational, f64) {
        (value.clone(), 0.0)
    }

    fn minus_float(&self, other: f64) -> (Rational, f64) {
        (self - <Rational as Scalar>::from_float(other), 0.0)
    }

    fn from_float(x: f64) -> Rational {
        number::from_f64(x).expect("coordinates are checked to be finite")
    }

    fn plus(&self, other: &Rational) -> Rational {
        self + other
    }

    fn minus(&self, other: &Rational) -> Rational {
        self - other
    }

    fn times(&self, other: &Rational) -> Rational {
        self * other
    }

    fn over(&self, other: &Rational) -> Rational {
        self / other
    }

    fn order(&self, other: &Rational) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    fn rounded(&self) -> f64 {
        number::to_f64(self)
    }
}
