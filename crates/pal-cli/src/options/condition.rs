//! `--condition` and `--given`: what is known when a question is asked, and SMT-LIB terms as arguments.

use std::ops::Range;

use anyhow::{Context, Result, anyhow, ensure};
use pal::formula::{Constraint, Formula, parse_smtlib_term};
use serde_json::Value;

use crate::densities::{AnyDensity, AnyModel, KnownValues};
use crate::points::{ColumnKind, PointColumn, column_names, parse_boolean};

/// What is known to hold before a question is asked.
#[derive(clap::Args)]
pub struct ConditionOptions {
    /// A condition that is known to hold, an SMT-LIB term such as "(<= x 1)"; several must hold together
    #[arg(long = "condition", value_name = "TERM")]
    terms: Vec<String>,
    #[command(flatten)]
    given: GivenOptions,
}

/// Known values of variables.
#[derive(clap::Args)]
pub struct GivenOptions {
    /// The known value of a variable, such as x=1.5, wet=true or mode=walk; several with commas in between, or repeated.
    /// The answer is about the density of the others
    #[arg(long = "given", value_name = "VAR=VALUE", value_delimiter = ',', value_parser = parse_given)]
    values: Vec<(String, GivenValue)>,
}

/// A known value: a number, or a word whose variable says what it means.
#[derive(Clone, Debug, PartialEq)]
struct GivenValue {
    text: String,
    number: Option<f64>,
}

fn parse_given(text: &str) -> Result<(String, GivenValue)> {
    let (name, value) = text.rsplit_once('=').context("give a variable and its value, such as x=1.5")?;
    let value = value.trim();
    ensure!(!value.is_empty(), "give a variable and its value, such as x=1.5");
    let number: Option<f64> = value.parse().ok();
    ensure!(number.is_none_or(f64::is_finite), "`{value}` is not a finite number");
    Ok((name.trim().to_string(), GivenValue { text: value.to_string(), number }))
}

impl GivenValue {
    /// The value as JSON: a number, true or false, or a label.
    fn json(&self) -> Value {
        match (self.number, self.text.as_str()) {
            (Some(number), _) => Value::from(number),
            (None, "true") => Value::from(true),
            (None, "false") => Value::from(false),
            (None, text) => Value::from(text),
        }
    }
}

impl ConditionOptions {
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.given.is_empty()
    }

    pub fn given(&self) -> &GivenOptions {
        &self.given
    }

    /// Returns all terms as one SMT-LIB term, if there are any.
    pub fn text(&self) -> Option<String> {
        match &self.terms[..] {
            [] => None,
            [only] => Some(only.clone()),
            several => Some(format!("(and {})", several.join(" "))),
        }
    }

    /// Returns the conjunction of all terms, if there are any.
    pub fn formula(&self, scope: &Constraint) -> Result<Option<Formula>> {
        let terms: Vec<Formula> =
            self.terms.iter().map(|text| parse_term("--condition", text, scope)).collect::<Result<_>>()?;
        Ok((!terms.is_empty()).then(|| Formula::all(terms)))
    }

    /// Returns the densities of some rows of a model, conditioned. Terms come first, for they may be about variables
    /// whose values are given.
    pub fn densities(&self, model: &AnyModel, rows: Range<usize>) -> Result<Vec<AnyDensity>> {
        let conditioned = self.conditioned(model, rows)?;
        conditioned.into_iter().map(|density| self.given.fix(density)).collect()
    }

    /// Returns the densities of some rows of a model given the terms, without the known values.
    pub fn conditioned(&self, model: &AnyModel, rows: Range<usize>) -> Result<Vec<AnyDensity>> {
        model.densities(rows, self.formula(model.constraint())?.as_ref())
    }
}

impl GivenOptions {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the names with their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.json()))
    }

    /// Returns `x = 1.5` for each known value.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.values.iter().map(|(name, value)| match value.number {
            Some(number) => format!("{name} = {number}"),
            None => format!("{name} = {}", value.text),
        })
    }

    /// `, given x = 1.5`, or nothing.
    pub fn text(&self) -> String {
        let each: Vec<String> = self.texts().collect();
        if each.is_empty() { String::new() } else { format!(", given {}", each.join(", ")) }
    }

    /// Returns the known values in the terms of the library. A name that is no column is left to the library, whose error
    /// lists the variables.
    pub fn known(&self, columns: &[PointColumn]) -> Result<KnownValues> {
        let mut known = KnownValues::default();
        for (name, value) in &self.values {
            let column = columns.iter().find(|column| column.name == *name);
            let Some(column) = column.filter(|column| column.kind != ColumnKind::Number) else {
                let not_a_number = || match column {
                    Some(_) => anyhow!("--given: `{}` is not a number; write a decimal such as 1.5", value.text),
                    None => {
                        anyhow!("--given: there is no variable `{name}`; there is {}", column_names(columns).join(", "))
                    }
                };
                known.reals.push((name.clone(), value.number.ok_or_else(not_a_number)?));
                continue;
            };
            ensure!(
                !known.booleans.iter().any(|(other, _)| column.variables().contains(other)),
                "--given: `{name}` is given twice"
            );
            let numbers = match column.kind {
                ColumnKind::Boolean => parse_boolean(&value.text).map(|value| vec![f64::from(u8::from(value))]),
                _ => column.parse(&value.text),
            };
            let numbers = numbers.with_context(|| format!("--given {name}"))?;
            known.booleans.extend(column.variables().into_iter().zip(numbers.iter().map(|number| *number == 1.0)));
        }
        Ok(known)
    }

    /// Returns the density of the other variables.
    pub fn fix(&self, density: AnyDensity) -> Result<AnyDensity> {
        if self.values.is_empty() {
            return Ok(density);
        }
        let known = self.known(&density.columns())?;
        density.given(&known).context("--given")
    }
}

/// Reads a term over the variables of a constraint; an error names the option, the term and the place in it.
pub fn parse_term(option: &str, text: &str, scope: &Constraint) -> Result<Formula> {
    parse_smtlib_term(text, scope).map_err(|error| {
        // Terms are written on one line, as a rule.
        let line = if error.line > 1 { format!("line {}, ", error.line) } else { String::new() };
        // The hint of scripts is of no use here: there is nothing to declare in a term.
        let message = match error.message.split_once("; declare it first") {
            Some((what, _)) => {
                format!("{what}; the variables are {}", column_names(&PointColumn::of(scope)).join(", "))
            }
            None => error.message,
        };
        let message = if is_infix(text) { format!("{message}; operators come first, as in (<= x 1)") } else { message };
        anyhow!("{option} \"{}\": {line}column {}: {message}", shortened(text), error.column)
    })
}

/// Whether a term looks like `x <= 1`, `x<=1` or `(x <= 1)`.
fn is_infix(text: &str) -> bool {
    let start = text.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let name: usize = start.chars().take_while(|c| c.is_alphanumeric() || "_.|".contains(*c)).map(char::len_utf8).sum();
    let after = start[name..].trim_start();
    name > 0 && after.starts_with(['<', '>', '=', '+', '-', '*', '/'])
}

/// Text on one line for a message or a table, cut where it gets long.
pub fn shortened(text: &str) -> String {
    const READABLE: usize = 60;
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(READABLE) {
        Some((at, _)) => format!("{}...", &one_line[..at]),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_text() {
        let (name, value) = parse_given("a=b=-1.5").unwrap();
        assert_eq!((name.as_str(), value.number), ("a=b", Some(-1.5)));
        assert_eq!(parse_given("mode = walk").unwrap().1.json(), Value::from("walk"));
        assert_eq!(parse_given("wet=true").unwrap().1.json(), Value::from(true));
        assert!(parse_given("x").is_err() && parse_given("x=").is_err() && parse_given("x=inf").is_err());
    }

    #[test]
    fn terms_with_the_operator_in_the_middle() {
        assert!(["x <= 1", "x<=1", " ( x >= 1)", "(wind_speed*2 < 1)", "é = 1"].into_iter().all(is_infix));
        assert!(["(<= x 1)", "(and (<= x 1) b)", "true", "", "(not b)", "- x", "5"].into_iter().all(|t| !is_infix(t)));
    }

    #[test]
    fn long_terms_are_cut() {
        assert_eq!(shortened(" (<= x\n 1) "), "(<= x 1)");
        assert_eq!(shortened(&"é".repeat(99)), format!("{}...", "é".repeat(60)));
    }
}
