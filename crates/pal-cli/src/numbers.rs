//! Printing exact numbers: sums of many fractions, and fractions short enough to read.

use pal::number::{Integer, Rational, to_f64};

/// Digits of a numerator or denominator beyond which text shows only the ends.
const READABLE: usize = 24;

/// `7/2 = 3.5`, `4`, or for long fractions `1234...5678 / 9876...4321 (40 / 41 digits) = 1.25`.
///
/// The decimal is the nearest float64; `~` instead of `=` says that it is rounded.
pub fn readable(value: &Rational) -> String {
    let (p, q) = (value.numerator().to_string(), value.denominator().to_string());
    let decimal = to_f64(value);
    let relation = if pal::number::from_f64(decimal).is_ok_and(|exact| exact == *value) { "=" } else { "~" };
    let digits = |s: &str| s.trim_start_matches('-').len();
    if digits(&p) <= READABLE && digits(&q) <= READABLE {
        return if q == "1" { p } else { format!("{p}/{q} {relation} {decimal:?}") };
    }
    format!("{} / {} ({} / {} digits) {relation} {decimal:?}", ends(&p), ends(&q), digits(&p), digits(&q))
}

/// A fraction, or its nearest decimal with `~` if it is long.
pub fn brief(value: &Rational) -> String {
    let text = value.to_string();
    if text.len() <= 12 { text } else { format!("~{:?}", to_f64(value)) }
}

/// `1 cell`, `2 cells`
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn ends(digits: &str) -> String {
    if digits.len() <= READABLE {
        digits.to_string()
    } else {
        format!("{}...{}", &digits[..8], &digits[digits.len() - 8..])
    }
}

/// An error bound with two digits.
pub fn bound(error: f64) -> String {
    if error == 0.0 { "0".to_string() } else { format!("{error:.1e}") }
}

/// A float64 for JSON, which has no infinities and no NaN: they become null.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// An integer as a JSON number if every reader keeps it exactly, else as a string.
pub fn json_integer(value: &Integer) -> serde_json::Value {
    const SAFE: i64 = 1 << 53;
    match i64::try_from(value) {
        Ok(small) if (-SAFE..=SAFE).contains(&small) => small.into(),
        _ => value.to_string().into(),
    }
}

/// A sum of fractions that adds pairs of similar size, so that denominators become long only towards the end; a running
/// sum would carry the longest one through every step. It holds at most as many fractions as the number of terms has
/// bits.
#[derive(Default)]
pub struct ExactSum {
    /// Sums of `2^level` terms, levels strictly decreasing.
    partial: Vec<(u32, Rational)>,
}

impl ExactSum {
    pub fn add(&mut self, mut value: Rational) {
        let mut level = 0;
        while let Some((_, other)) = self.partial.pop_if(|(l, _)| *l == level) {
            value += other;
            level += 1;
        }
        self.partial.push((level, value));
    }

    pub fn total(&self) -> Rational {
        self.partial.iter().rev().fold(Rational::ZERO, |sum, (_, part)| sum + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal::number::parse_rational;

    fn ratio(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    #[test]
    fn fractions_are_readable() {
        assert_eq!(readable(&ratio("7/2")), "7/2 = 3.5");
        assert_eq!(readable(&ratio("-4")), "-4");
        assert_eq!(readable(&ratio("1/3")), "1/3 ~ 0.3333333333333333");
        let long = readable(&ratio("1/1234567890123456789012345678901"));
        assert_eq!(long, "1 / 12345678...45678901 (1 / 31 digits) ~ 8.1000000729e-31");
    }

    #[test]
    fn errors_have_two_digits() {
        assert_eq!([0.0, 1.26e-9, f64::INFINITY].map(bound), ["0", "1.3e-9", "inf"]);
        assert_eq!([1.5, f64::NAN, f64::INFINITY].map(finite), [Some(1.5), None, None]);
    }

    #[test]
    fn sums_are_exact_for_any_count() {
        let mut sum = ExactSum::default();
        let mut plain = Rational::ZERO;
        assert_eq!(sum.total(), plain);
        for k in 1..=37u32 {
            let term = Rational::from_parts(1.into(), k.into());
            plain += &term;
            sum.add(term);
            assert_eq!(sum.total(), plain, "{k}");
        }
    }

    #[test]
    fn json_integers_keep_their_digits() {
        assert_eq!(json_integer(&Integer::from(-7)).to_string(), "-7");
        assert_eq!(json_integer(&(Integer::ONE << 60)).to_string(), "\"1152921504606846976\"");
    }
}
