//! Requirements in the format of PiShield (Stoian et al., "PiShield: A PyTorch Package for Learning with Requirements",
//! 2024), which networks with a disjunctive refinement layer (DRL) use too:
//!
//! ```text
//! ordering y_1 y_0 y_2
//! y_0 - 2y_1 >= 0.5
//! y_2 > 1 or neg y_0 + y_1 >= 3
//! ```
//!
//! Every line after the first is a disjunction of inequalities, of which `neg` negates one; all lines must hold. `y_j`
//! is output j of the network, so that the coordinates are in the order of their numbers, whatever the `ordering`, in
//! which PiShield corrects them, says. Variables that only the ordering names count too. Numbers are taken digit by
//! digit. Besides what PiShield reads, `<=`, `<` and `=` are known, and terms on both sides.

use std::collections::BTreeMap;

use super::{Constraint, Formula, Linear, Relation, Var};
use crate::number::{Rational, parse_rational};

/// A problem in a file of requirements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct PiShieldError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what would work.
    pub message: String,
}

/// Reads requirements.
///
/// ```
/// use pal::formula::parse_pishield;
/// let text = "ordering y_0 y_1\ny_0 >= 0\n-y_0 >= -1\ny_1 - 2y_0 >= 0 or y_1 > 1.5\n-y_1 >= -3\ny_1 >= 0\n";
/// let constraint = parse_pishield(text).unwrap();
/// assert_eq!(constraint.reals[1].name(), "y_1");
/// assert_eq!(constraint.formula.to_string(), "y_0 >= 0 & y_0 <= 1 & (2*y_0 - y_1 <= 0 | 2*y_1 > 3) & y_1 <= 3 & y_1 >= 0");
/// ```
pub fn parse_pishield(text: &str) -> Result<Constraint, PiShieldError> {
    let mut numbers: BTreeMap<u64, ()> = BTreeMap::new();
    let mut lines = Vec::new();
    let mut ordered = false;
    for (index, line) in text.lines().enumerate() {
        let at = |message: String| PiShieldError { line: index + 1, message };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line == "constraints" {
            continue;
        }
        if let Some(names) = line.strip_prefix("ordering") {
            ordered = true;
            for name in names.split_whitespace() {
                numbers.insert(variable_number(name).map_err(at)?, ());
            }
            continue;
        }
        for part in words(line) {
            if let Word::Variable(number) = part.map_err(at)? {
                numbers.insert(number, ());
            }
        }
        lines.push((index + 1, line));
    }
    if !ordered {
        let message = "no line begins with `ordering`, as in `ordering y_0 y_1`; is this a file of PiShield?";
        return Err(PiShieldError { line: 1, message: message.to_string() });
    }
    let names: Vec<String> = numbers.keys().map(|number| format!("y_{number}")).collect();
    let variables = Var::declare_all(&names);
    let terms: BTreeMap<u64, Linear> =
        numbers.keys().copied().zip(variables.iter().cloned().map(Linear::from)).collect();
    let mut formulas = Vec::new();
    for (line, text) in lines {
        let read = disjunction(text, &terms);
        formulas.push(read.map_err(|message| PiShieldError { line, message })?);
    }
    Ok(Constraint { formula: Formula::all(formulas), reals: variables, booleans: Vec::new() })
}

fn variable_number(name: &str) -> Result<u64, String> {
    let digits = name.strip_prefix("y_").or_else(|| name.strip_prefix('y')).unwrap_or("");
    digits.parse().map_err(|_| format!("`{name}` is not a variable; they are y_0, y_1, and so on"))
}

enum Word {
    Variable(u64),
    Number(Rational),
    Sign(char),
    Relation(&'static str),
    Or,
    Neg,
}

/// The words of a line.
fn words(line: &str) -> impl Iterator<Item = Result<Word, String>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let (word, length) = match next_word(rest, first) {
            Ok(found) => found,
            Err(message) => {
                rest = "";
                return Some(Err(message));
            }
        };
        rest = &rest[length..];
        Some(Ok(word))
    })
}

fn next_word(rest: &str, first: char) -> Result<(Word, usize), String> {
    for relation in [">=", "<=", "==", ">", "<", "="] {
        if rest.starts_with(relation) {
            return Ok((Word::Relation(relation), relation.len()));
        }
    }
    let length = |belongs: fn(char) -> bool| rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    if matches!(first, '+' | '-' | '*') {
        return Ok((Word::Sign(first), 1));
    }
    if first.is_ascii_digit() || first == '.' {
        let mut end = length(|c| c.is_ascii_digit() || c == '.');
        // An exponent: `1e-3`.
        let after = rest[end..].strip_prefix(['e', 'E']).map(|tail| tail.strip_prefix(['-', '+']).unwrap_or(tail));
        if let Some(tail) = after.filter(|tail| tail.starts_with(|c: char| c.is_ascii_digit())) {
            end = rest.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        }
        let number = parse_rational(&rest[..end]).map_err(|error| error.to_string())?;
        return Ok((Word::Number(number), end));
    }
    let end = length(|c| c.is_alphanumeric() || c == '_').max(first.len_utf8());
    match &rest[..end] {
        "or" => Ok((Word::Or, end)),
        "neg" => Ok((Word::Neg, end)),
        name => Ok((Word::Variable(variable_number(name)?), end)),
    }
}

/// `inequality or neg inequality or ..`
fn disjunction(line: &str, terms: &BTreeMap<u64, Linear>) -> Result<Formula, String> {
    let mut parts: Vec<Formula> = Vec::new();
    let (mut negated, mut sides, mut relation) = (false, [Linear::default(), Linear::default()], None);
    let (mut factor, mut pending) = (Rational::ONE, false);
    let finish = |parts: &mut Vec<Formula>, negated: bool, sides: &[Linear; 2], relation: Option<&str>| {
        let [left, right] = sides;
        let formula = match relation {
            Some("<=") => left.le(right),
            Some("<") => left.lt(right),
            Some(">=") => left.ge(right),
            Some(">") => left.gt(right),
            Some(_) => Formula::compare(&(left - right), Relation::Eq),
            None => return Err("every part of a line is an inequality, such as y_0 - 2y_1 >= 3".to_string()),
        };
        parts.push(if negated { !formula } else { formula });
        Ok(())
    };
    for word in words(line) {
        let side = usize::from(relation.is_some());
        match word? {
            Word::Sign('*') if pending => {}
            Word::Sign(sign) if !pending => {
                if sign == '*' {
                    return Err("`*` stands between a number and a variable, as in 2*y_0".to_string());
                }
                factor = if sign == '-' { -factor } else { factor };
            }
            Word::Variable(number) => {
                let term = terms.get(&number).ok_or("a variable is not known")?;
                sides[side] = &sides[side] + term.scaled(&factor);
                (factor, pending) = (Rational::ONE, false);
            }
            Word::Number(value) if !pending => {
                factor *= value;
                pending = true;
            }
            Word::Number(_) => return Err("two numbers stand next to each other".to_string()),
            next => {
                if pending {
                    sides[side] = &sides[side] + Linear::from(factor);
                    (factor, pending) = (Rational::ONE, false);
                }
                match next {
                    Word::Sign('-') => factor = Rational::from(-1),
                    Word::Relation(_) if relation.is_some() => {
                        return Err("an inequality has one of >=, >, <=, < and =; write two lines".to_string());
                    }
                    Word::Relation(found) => relation = Some(found),
                    Word::Or => {
                        finish(&mut parts, negated, &sides, relation)?;
                        (negated, sides, relation) = (false, [Linear::default(), Linear::default()], None);
                    }
                    Word::Neg => negated = true,
                    _ => {}
                }
            }
        }
    }
    if pending {
        let side = usize::from(relation.is_some());
        sides[side] = &sides[side] + Linear::from(factor);
    }
    finish(&mut parts, negated, &sides, relation)?;
    Ok(Formula::any(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_what_pishield_says() {
        // The requirements of the data set `faults` among PiShield's examples, shortened.
        let text = "ordering y_3 y_0 y_10 y_2\ny_0 >= 0\ny_10 - y_0 > 0\n -0.5y_2 + 1.25 y_3 - 1 >= -2e-1 + y_0\n\
            neg y_2 >= 4 or 2*y_3 = 3 or 1 > y_0\n";
        let constraint = parse_pishield(text).unwrap();
        let names: Vec<&str> = constraint.reals.iter().map(|var| var.name()).collect();
        assert_eq!(names, ["y_0", "y_2", "y_3", "y_10"]);
        let test = constraint.membership().unwrap();
        let mut inside = 0;
        for k in 0..4096u32 {
            let at = |shift: u32| f64::from(k >> shift & 7) * 0.75 - 0.5;
            let point = [at(0), at(3), at(6), at(9)];
            let [y0, y2, y3, y10] = point;
            // All numbers but 0.2 are exact, and no point lies on that border.
            let expected = y0 >= 0.0
                && y10 - y0 > 0.0
                && -0.5 * y2 + 1.25 * y3 - 1.0 >= -0.2 + y0
                && (y2 < 4.0 || 2.0 * y3 == 3.0 || 1.0 > y0);
            assert_eq!(test.contains(&point), expected, "{point:?}");
            inside += usize::from(expected);
        }
        assert!((100..4000).contains(&inside), "{inside}");
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| parse_pishield(text).unwrap_err().to_string();
        assert!(message("y_0 >= 1").contains("no line begins with `ordering`"));
        let after = |line: &str| message(&format!("ordering y_0 y_1\n\n{line}"));
        assert_eq!(after("y_0 + x >= 1"), "line 3: `x` is not a variable; they are y_0, y_1, and so on");
        assert_eq!(after("y_0 + 1"), "line 3: every part of a line is an inequality, such as y_0 - 2y_1 >= 3");
        assert!(after("1 >= y_0 >= 0").starts_with("line 3: an inequality has one of"));
        assert!(after("y_0 >= 1 or").starts_with("line 3: every part"));
        assert!(after("y_0 >= 1.2.3").starts_with("line 3: `1.2.3` is not a number"));
        assert!(after("y_0 >= 1 2").starts_with("line 3: two numbers"));
    }
}
