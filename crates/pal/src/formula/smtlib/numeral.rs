//! Numbers in SMT-LIB text: numerals and decimals are read and written exactly.

use super::SmtError;
use super::sexpr::Sexpr;
use crate::number::{self, Rational};

/// Longer numbers are refused: bringing one to lowest terms takes time quadratic in its length.
const MAX_DIGITS: usize = 10_000;

/// The value of a token that starts like a number.
pub(super) fn read(token: Sexpr<'_>) -> Result<Rational, SmtError> {
    let text = token.text();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let well_formed = match unsigned.split_once('.') {
        None => all_digits(unsigned),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
    };
    if text.len() > MAX_DIGITS {
        return Err(
            token.error(format!("this number has more than {MAX_DIGITS} digits; round it or scale the problem"))
        );
    }
    if well_formed {
        return number::parse_rational(text).map_err(|error| token.error(error.to_string()));
    }
    Err(token.error(complaint(&token.excerpt(), text)))
}

fn complaint(shown: &str, text: &str) -> String {
    let meant = number::parse_rational(text).ok().map(|value| written(&value)).filter(|t| t.len() <= 40);
    if text.contains('/') {
        let instead = meant.unwrap_or_else(|| "(/ 1 3)".to_string());
        return format!("`{shown}` is not a number in SMT-LIB; write a quotient as {instead}");
    }
    if text.contains(['e', 'E']) {
        let instead = match meant {
            Some(exact) => format!("here {exact}"),
            None => "for instance 0.001 or (/ 1 1000) for 1e-3".to_string(),
        };
        return format!(
            "`{shown}` is in scientific notation, which SMT-LIB does not have; write a decimal or a quotient, {instead}"
        );
    }
    let instead = meant.map_or(String::new(), |exact| format!(", here {exact}"));
    format!(
        "`{shown}` is not a number; write an integer, a decimal such as 0.25 or a quotient such as (/ 1 3){instead}"
    )
}

/// A rational as an SMT-LIB term: `2`, `(/ 1 3)`, `(- (/ 1 3))`.
pub(super) fn written(value: &Rational) -> String {
    let negative = value < &Rational::ZERO;
    let size = if negative { -value } else { value.clone() };
    let (p, q) = (size.numerator(), size.denominator());
    let text = if q.is_one() { p.to_string() } else { format!("(/ {p} {q})") };
    if negative { format!("(- {text})") } else { text }
}
