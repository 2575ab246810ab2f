//! Prints polynomials in a canonical form that the parser reads: expanded, highest terms first.

use std::fmt;

use super::Polynomial;
use super::lexer::is_plain_name;
use crate::formula::Var;
use crate::number::Rational;

/// Prints ordinary notation, such as `3*x^2*y - 1/2`, that parses back to the same polynomial.
///
/// Names that are not plain identifiers are quoted, `|wind speed|`; a `|` in a name is doubled.
impl fmt::Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        for (index, (powers, coefficient)) in self.terms().enumerate() {
            let negative = coefficient < &Rational::ZERO;
            let size = if negative { -coefficient } else { coefficient.clone() };
            f.write_str(match (index, negative) {
                (0, true) => "-",
                (0, false) => "",
                (_, true) => " - ",
                (_, false) => " + ",
            })?;
            if powers.is_empty() || !size.is_one() {
                write!(f, "{size}")?;
            }
            for (factor, (variable, exponent)) in powers.into_iter().enumerate() {
                if factor > 0 || !size.is_one() {
                    f.write_str("*")?;
                }
                f.write_str(&quoted(variable))?;
                if exponent > 1 {
                    write!(f, "^{exponent}")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns a name as it has to be written in a polynomial.
pub(super) fn quoted(variable: &Var) -> String {
    match is_plain_name(variable.name()) {
        true => variable.name().to_string(),
        false => format!("|{}|", variable.name().replace('|', "||")),
    }
}

/// Lists the first few variables for a message.
pub(super) fn list(variables: &[Var]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = variables.iter().take(SHOWN).map(quoted).collect();
    match variables.len() {
        0 => return "there are none".to_string(),
        n if n > SHOWN => names.push(format!("{} more", n - SHOWN)),
        _ => {}
    }
    names.join(", ")
}
