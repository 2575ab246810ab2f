//! Numbers with twice the digits of float64: unevaluated sums of two of them.
//!
//! Differences of nearby coordinates keep their digits in this arithmetic, so that a sliver of a billionth of a bin still
//! has an area with thirteen correct digits. Algorithms and bounds are those of Joldes, Muller and Popescu, "Tight and
//! rigorous error bounds for basic building blocks of double-word arithmetic" (2017).

use std::cmp::Ordering;

use crate::number::{self, Rational};

/// The sum of two float64 numbers, the second of which is at most half a unit in the last place of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DoubleDouble {
    pub high: f64,
    pub low: f64,
}

/// A bound on the relative error of every operation: 2^-100, although 2^-102 would be enough for all of them. Where
/// numbers overflow the result is NaN.
pub(crate) const RELATIVE_ERROR: f64 = 1.0 / ((1u128 << 100) as f64);

/// The sum and its rounding error.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// The sum and its rounding error, if the first number is not the smaller one in size.
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> DoubleDouble {
    let high = a + b;
    DoubleDouble { high, low: b - (high - a) }
}

/// The product and its rounding error, by splitting both factors in halves.
#[inline(always)]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0;
    let halves = |x: f64| {
        let scaled = SPLIT * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    (product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)
}

impl DoubleDouble {
    /// A float64 number.
    #[inline(always)]
    pub fn new(high: f64) -> DoubleDouble {
        DoubleDouble { high, low: 0.0 }
    }

    /// The nearest number to a fraction, and a bound on what is left of the fraction: zero where nothing is.
    pub fn nearest(value: &Rational) -> (DoubleDouble, f64) {
        let high = number::to_f64(value);
        let Ok(exact) = number::from_f64(high) else {
            return (DoubleDouble::new(f64::NAN), f64::NAN);
        };
        let rest = value - exact;
        let low = number::to_f64(&rest);
        let exact = number::from_f64(low).is_ok_and(|low| low == rest);
        let error = if exact { 0.0 } else { high.abs() * RELATIVE_ERROR + f64::MIN_POSITIVE };
        (DoubleDouble { high, low }, error)
    }

    #[inline(always)]
    pub fn plus(self, other: DoubleDouble) -> DoubleDouble {
        let (s_high, s_low) = two_sum(self.high, other.high);
        let (t_high, t_low) = two_sum(self.low, other.low);
        let v = fast_two_sum(s_high, s_low + t_high);
        fast_two_sum(v.high, t_low + v.low)
    }

    #[inline(always)]
    pub fn negative(self) -> DoubleDouble {
        DoubleDouble { high: -self.high, low: -self.low }
    }

    #[inline(always)]
    pub fn minus(self, other: DoubleDouble) -> DoubleDouble {
        self.plus(other.negative())
    }

    #[inline(always)]
    pub fn times(self, other: DoubleDouble) -> DoubleDouble {
        let (high, low) = two_product(self.high, other.high);
        fast_two_sum(high, low + (self.high * other.low + self.low * other.high))
    }

    #[inline(always)]
    pub fn over(self, other: DoubleDouble) -> DoubleDouble {
        let quotient = self.high / other.high;
        let product = DoubleDouble::new(quotient).times(other);
        let rest = (self.high - product.high) + (self.low - product.low);
        fast_two_sum(quotient, rest / other.high)
    }

    /// How two numbers compare; NaN is in no order.
    #[inline(always)]
    pub fn order(self, other: DoubleDouble) -> Option<Ordering> {
        match self.high.partial_cmp(&other.high)? {
            Ordering::Equal => self.low.partial_cmp(&other.low),
            different => Some(different),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn exact(x: DoubleDouble) -> Rational {
        number::from_f64(x.high).unwrap() + number::from_f64(x.low).unwrap()
    }

    #[test]
    fn operations_keep_their_bound() {
        let mut stream = Stream::new(3, 0);
        let mut random = || {
            let size = (40.0 * (stream.unit() - 0.5)).exp2();
            let (value, _) = DoubleDouble::nearest(&Rational::from_parts(
                ((stream.unit() - 0.5) * 1e15).round().to_string().parse::<i64>().unwrap().into(),
                ((stream.unit() * 1e15).round() as u64 + 1).into(),
            ));
            value.times(DoubleDouble::new(size))
        };
        let bound = number::from_f64(RELATIVE_ERROR).unwrap();
        for _ in 0..2000 {
            let (a, b) = (random(), random());
            let (x, y) = (exact(a), exact(b));
            for (got, want) in [
                (a.plus(b), &x + &y),
                (a.minus(b), &x - &y),
                (a.times(b), &x * &y),
                (a.over(b), &x / &y),
                (a.minus(DoubleDouble::new(a.high)), &x - number::from_f64(a.high).unwrap()),
            ] {
                let error = exact(got) - &want;
                assert!(&error * &error <= &want * &want * &bound * &bound, "{a:?} {b:?} {got:?}");
            }
            assert_eq!(a.order(b), Some(x.cmp(&y)));
        }
    }

    #[test]
    fn the_nearest_number_knows_what_is_left() {
        let third = Rational::ONE / Rational::from(3);
        let (near, error) = DoubleDouble::nearest(&third);
        assert!(error > 0.0 && exact(near) - &third < number::from_f64(error).unwrap());
        assert_eq!(DoubleDouble::nearest(&(Rational::ONE / Rational::from(4))), (DoubleDouble::new(0.25), 0.0));
    }
}
