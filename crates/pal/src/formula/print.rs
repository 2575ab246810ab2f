//! Prints formulas in the notation that people read: `x <= 1 & !(y < 2 | b)`.

use std::fmt;
use std::sync::Arc;

use super::{Connective, Formula, Node, Relation};
use crate::number::{Integer, Rational, from_f64, to_f64};

/// Beyond this many characters a subformula is abbreviated: sharing can make the written-out text astronomically long.
const LIMIT: usize = 4000;

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.fold(|formula, children: &[Arc<str>]| Arc::from(write_node(formula.node(), children)));
        f.write_str(&text)
    }
}

fn write_node(node: &Node, children: &[Arc<str>]) -> String {
    let text = match node {
        Node::Constant(value) => value.to_string(),
        Node::Bool(var) => var.to_string(),
        Node::Atom(atom) => atom.to_string(),
        Node::Connective(connective, parts) => {
            let child = |k: usize| bracketed(&parts[k], &children[k]);
            let joined = |with: &str| (0..parts.len()).map(child).collect::<Vec<_>>().join(with);
            match connective {
                Connective::Not => negation(&parts[0], &children[0]),
                Connective::And => joined(" & "),
                Connective::Or => joined(" | "),
                Connective::Iff => joined(" <-> "),
                Connective::Ite => format!("ite({})", children.join(", ")),
            }
        }
    };
    if text.len() > LIMIT { "(...)".to_string() } else { text }
}

/// The text of a negation. `!(t <= b)` is written as `t > b`, which reads better.
fn negation(inner: &Formula, text: &str) -> String {
    match inner.node() {
        Node::Atom(atom) => {
            let (from, to) = match atom.relation() {
                Relation::Lt => (" < ", " >= "),
                Relation::Le => (" <= ", " > "),
                Relation::Eq => (" = ", " != "),
            };
            text.replacen(from, to, 1)
        }
        Node::Bool(_) => format!("!{text}"),
        _ => format!("!({text})"),
    }
}

fn bracketed(child: &Formula, text: &str) -> String {
    match child.node() {
        Node::Connective(inner, _) if *inner != Connective::Not && *inner != Connective::Ite => {
            format!("({text})")
        }
        _ => text.to_string(),
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Integers and fractions are written out up to this many digits.
const DIGITS: usize = 9;

/// A number as people read it: an integer, a short fraction, or the shortest decimal that denotes its float64. Any other
/// number is rounded to six digits and marked with `~`; the text is for reading, and exact ones are those of SMT-LIB.
pub(super) fn readable(value: &Rational) -> String {
    exactly(value).unwrap_or_else(|| format!("~{}", rounded(to_f64(value))))
}

fn is_short(value: &Integer) -> bool {
    value.to_string().trim_start_matches('-').len() <= DIGITS
}

/// The text of a number that has a short one.
fn exactly(value: &Rational) -> Option<String> {
    if is_short(value.numerator()) && is_short(&value.denominator().clone().into()) {
        return Some(value.to_string());
    }
    let float = to_f64(value);
    (from_f64(float).as_ref() == Ok(value)).then(|| decimal(float))
}

fn decimal(value: f64) -> String {
    if (1e-5..1e16).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}

fn rounded(value: f64) -> String {
    let six = format!("{value:.5e}").parse().unwrap_or(value);
    decimal(six)
}

/// The coefficients and the right-hand side of an atom, times one positive number that makes them readable.
///
/// Integers in lowest terms are shown as they are, unless they are long. Constants that were float64 numbers have become
/// integers with 16 digits and more: a power of two brings them back. Where none does, the largest coefficient becomes 1.
pub(super) fn readable_sides(numbers: &[Integer]) -> Vec<Rational> {
    let exact: Vec<Rational> = numbers.iter().map(|number| Rational::from(number.clone())).collect();
    if numbers.iter().all(is_short) {
        return exact;
    }
    let floats: Vec<f64> = exact.iter().map(to_f64).collect();
    if floats.iter().zip(&exact).all(|(float, exact)| from_f64(*float).as_ref() == Ok(exact)) {
        // Factors of 1 are not written.
        let digits = |value: f64| if value.abs() == 1.0 { 0 } else { decimal(value.abs()).len() };
        let length = |power: i32| -> usize { floats.iter().map(|float| digits(float * 2f64.powi(-power))).sum() };
        let powers = (0..=130).rev().min_by_key(|power| length(*power));
        // More digits than this would not be those that anybody wrote.
        if let Some(power) = powers.filter(|power| length(*power) <= 8 * numbers.len()) {
            let factor = Rational::from_parts(Integer::ONE, dashu_int::UBig::ONE << power as usize);
            return exact.iter().map(|number| number * &factor).collect();
        }
    }
    let coefficients = exact.iter().take(exact.len().saturating_sub(1));
    let size = |a: &Rational| if a < &Rational::ZERO { -a } else { a.clone() };
    let Some(largest) = coefficients.map(size).max().filter(|largest| !largest.is_zero()) else { return exact };
    exact.iter().map(|number| number / &largest).collect()
}

#[cfg(test)]
mod tests {
    use crate::formula::{Formula, Linear, reals};

    #[test]
    fn numbers_of_sixteen_digits_become_readable() {
        let float = |value: f64| Linear::try_from(value).unwrap();
        let scaled = |value: f64, term: &Linear| term.scaled(float(value).constant());
        let [x, y] = reals(["x", "y"]);
        // What was written in float64 is read in float64.
        assert_eq!(x.le(float(0.1)).to_string(), "x <= 0.1");
        assert_eq!((scaled(0.1, &x) + scaled(0.3, &y)).le(float(0.7)).to_string(), "0.1*x + 0.3*y <= 0.7");
        assert_eq!((scaled(0.1, &x) + scaled(-2.5, &y) + float(1e-7)).to_string(), "0.1*x - 5/2*y + 1e-7");
        let quotient = float(0.13).constant() / float(0.6).constant();
        assert_eq!((x.scaled(&quotient) - &y).le(float(-0.25)).to_string(), "0.26*x - 1.2*y <= -0.3");
        // A product of float64 numbers is none: the largest coefficient becomes 1, and the others are rounded.
        let product = |a: f64, b: f64| float(a).constant() * float(b).constant();
        let edge = (x.scaled(&product(0.13, 0.7)) - y.scaled(&product(0.6, 0.9))).le(float(-0.25));
        assert_eq!(edge.to_string(), "~0.168519*x - y <= ~-0.462963");
        let third = Linear::try_from("12345678901/37037036705").unwrap();
        assert_eq!(x.le(&third).to_string(), "x <= ~0.333333");
        assert_eq!(x.le(Linear::try_from("1/3").unwrap()).to_string(), "3*x <= 1");
    }

    #[test]
    fn reads_like_mathematics() {
        let [x, y] = reals(["x", "y"]);
        let b = Formula::boolean("b");
        let f = (x.le(1) | !y.lt(2)) & !b.clone() & x.differs(0);
        assert_eq!(f.to_string(), "(x <= 1 | y >= 2) & !b & x != 0");
        assert_eq!(b.clone().iff(x.le(1)).to_string(), "b <-> x <= 1");
        assert_eq!((!(b & x.le(1))).to_string(), "!(b & x <= 1)");
    }
}
