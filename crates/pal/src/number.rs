//! Exact numbers: every constant is a rational from the text onward.
//!
//! `0.1` is 1/10, not the nearest float64. A float64 that arrives through an API is the rational
//! that it exactly denotes. Rounding happens once, at the very end, in [`to_f64`].

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

/// An arbitrary-precision integer.
pub type Integer = IBig;
/// An arbitrary-precision fraction in lowest terms.
pub type Rational = RBig;

/// The largest power of ten that a number in scientific notation may carry.
///
/// `1e999999999` is a few bytes of text and a gigabyte of digits; nothing real needs it.
const MAX_EXPONENT: u64 = 10_000;

/// Why a piece of text or a float is not a rational number.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NumberError {
    /// The text has no reading as a number.
    #[error("`{0}` is not a number; write an integer, a decimal such as 0.25 or a fraction such as 1/3")]
    Syntax(String),
    /// A fraction with denominator zero.
    #[error("`{0}` divides by zero")]
    ZeroDenominator(String),
    /// An exponent beyond what is sensible to expand.
    #[error("the exponent of `{0}` is too large; at most 1e{MAX_EXPONENT} is accepted")]
    Exponent(String),
    /// NaN or an infinity.
    #[error("{0} is not a real number")]
    NotFinite(f64),
}

/// Reads an integer, a decimal, a fraction `p/q`, or scientific notation, exactly.
///
/// ```
/// use pal::number::{parse_rational, Rational};
/// let tenth = Rational::from_parts(1.into(), 10u8.into());
/// assert_eq!(parse_rational("0.1").unwrap(), tenth);
/// assert_eq!(parse_rational("-2/20").unwrap(), -&tenth);
/// assert_eq!(parse_rational("1e-1").unwrap(), tenth);
/// assert!(parse_rational("1/0").is_err());
/// ```
pub fn parse_rational(text: &str) -> Result<Rational, NumberError> {
    let syntax = || NumberError::Syntax(text.to_string());
    if let Some((p, q)) = text.split_once('/') {
        let (p, q) = (parse_decimal(p.trim()), parse_decimal(q.trim()));
        let (p, q) = (p.map_err(|_| syntax())?, q.map_err(|_| syntax())?);
        if q.is_zero() {
            return Err(NumberError::ZeroDenominator(text.to_string()));
        }
        return Ok(p / q);
    }
    parse_decimal(text)
}

fn parse_decimal(text: &str) -> Result<Rational, NumberError> {
    let syntax = || NumberError::Syntax(text.to_string());
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        None => (text, 0i64),
        Some(at) => (&text[..at], text[at + 1..].parse().map_err(|_| syntax())?),
    };
    let (negative, digits) = match mantissa.as_bytes().first() {
        Some(b'-') => (true, &mantissa[1..]),
        Some(b'+') => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return Err(syntax());
    }
    let magnitude = UBig::from_str_radix(&format!("{whole}{fraction}"), 10).map_err(|_| syntax())?;
    let power = exponent.saturating_sub(fraction.len() as i64);
    if exponent.unsigned_abs() > MAX_EXPONENT {
        return Err(NumberError::Exponent(text.to_string()));
    }
    let scale = UBig::from(10u8).pow(power.unsigned_abs() as usize);
    let signed = if negative { -IBig::from(magnitude) } else { IBig::from(magnitude) };
    Ok(if power >= 0 { Rational::from(signed * IBig::from(scale)) } else { Rational::from_parts(signed, scale) })
}

/// The rational that a finite float64 exactly denotes.
pub fn from_f64(value: f64) -> Result<Rational, NumberError> {
    Rational::try_from(value).map_err(|_| NumberError::NotFinite(value))
}

/// The float64 nearest to a rational.
pub fn to_f64(value: &Rational) -> f64 {
    value.to_f64().value()
}

/// The smallest positive float64, a subnormal number: what rounding may change where relative errors mean nothing.
pub(crate) const SMALLEST: f64 = f64::from_bits(1);

/// A bound on the error of `rounded`, the float64 nearest to `exact`. Below the normal range it is absolute.
pub(crate) fn rounding_error(exact: &Rational, rounded: f64) -> f64 {
    let below = rounded.abs() < f64::MIN_POSITIVE && !exact.is_zero();
    rounded.abs() * f64::EPSILON + if below { SMALLEST } else { 0.0 }
}

/// Bits in the magnitude of an integer.
pub(crate) fn bit_length(p: &Integer) -> usize {
    use dashu_int::ops::BitTest;
    p.bit_len()
}

/// The float64 nearest to `p / 2^shift`, for integers far outside the range of float64.
pub(crate) fn scaled_to_f64(p: &Integer, shift: usize) -> f64 {
    if shift == 0 {
        return p.to_f64().value();
    }
    Rational::from_parts(p.clone(), UBig::ONE << shift).to_f64().value()
}

/// Like [`scaled_to_f64`] for a coefficient of an inequality: NaN where it underflows. A filter multiplies coefficients
/// by coordinates of any size, so a lost one must make its answer doubtful rather than small.
pub(crate) fn scaled_coefficient(p: &Integer, shift: usize) -> f64 {
    let a = scaled_to_f64(p, shift);
    if a.abs() < f64::MIN_POSITIVE && !p.is_zero() { f64::NAN } else { a }
}

/// The sum of many fractions, by halves: sums of neighbours keep small denominators for long.
pub(crate) fn pairwise_sum(mut terms: Vec<Rational>) -> Rational {
    while terms.len() > 1 {
        let pairs = terms.chunks(2).map(|pair| match pair {
            [a, b] => a + b,
            rest => rest.iter().fold(Rational::ZERO, |sum, a| sum + a),
        });
        terms = pairs.collect();
    }
    terms.pop().unwrap_or(Rational::ZERO)
}

/// `n!` as an integer.
pub(crate) fn factorial(n: usize) -> Integer {
    (1..=n).fold(Integer::ONE, |product, k| product * Integer::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(p: i64, q: u64) -> Rational {
        Rational::from_parts(p.into(), q.into())
    }

    #[test]
    fn text_is_read_exactly() {
        for (text, want) in [
            ("3", ratio(3, 1)),
            ("-0.125", ratio(-1, 8)),
            (".5", ratio(1, 2)),
            ("5.", ratio(5, 1)),
            ("1/3", ratio(1, 3)),
            ("-1 / 3", ratio(-1, 3)),
            ("0.5/1.5", ratio(1, 3)),
            ("2.5E3", ratio(2500, 1)),
            ("+7", ratio(7, 1)),
        ] {
            assert_eq!(parse_rational(text).as_ref(), Ok(&want), "{text}");
        }
    }

    #[test]
    fn bad_text_is_refused() {
        for text in ["", ".", "-", "1/0", "nan", "inf", "1e", "0x10", "1_000", "1e99999999999", "--1", "1/2/3", "é"] {
            assert!(parse_rational(text).is_err(), "{text:?} was accepted");
        }
        // The exponents at the ends of 64 bits: the smaller one has no absolute value there.
        for text in ["1e-9223372036854775808", "1e9223372036854775807", "0.1e-9223372036854775808", "1e-10001"] {
            assert!(matches!(parse_rational(text), Err(NumberError::Exponent(_))), "{text}");
        }
    }

    #[test]
    fn floats_denote_themselves() {
        assert_eq!(from_f64(0.1).unwrap(), ratio(3602879701896397, 36028797018963968));
        assert_eq!(to_f64(&ratio(1, 10)), 0.1);
        assert_eq!(from_f64(f64::MIN_POSITIVE / 4.0).map(|r| to_f64(&r)), Ok(f64::MIN_POSITIVE / 4.0));
        assert!(from_f64(f64::NAN).is_err() && from_f64(f64::INFINITY).is_err());
    }

    #[test]
    fn huge_integers_scale_into_range() {
        let huge = Integer::from(3) << 5000;
        assert_eq!(scaled_to_f64(&huge, 5000), 3.0);
        assert_eq!(scaled_to_f64(&huge, 0), f64::INFINITY);
    }
}
