//! `--condition` and `--given`: what is known when a question is asked, and SMT-LIB terms as arguments.

use std::ops::Range;

use anyhow::{Context, Result, anyhow, ensure};
use pal::density::{Density, Model};
use pal::formula::{Constraint, Formula, parse_smtlib_term};
use rayon::prelude::*;

use crate::model_file::{names, params};

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
    /// The known value of a variable, such as x=1.5; may be repeated. The answer is about the density of the others
    #[arg(long = "given", value_name = "VAR=VALUE", value_parser = parse_given)]
    values: Vec<(String, f64)>,
}

fn parse_given(text: &str) -> Result<(String, f64)> {
    let (name, value) = text.rsplit_once('=').context("give a variable and its value, such as x=1.5")?;
    let number: f64 =
        value.trim().parse().map_err(|_| anyhow!("`{value}` is not a number; write a decimal such as 1.5"))?;
    ensure!(number.is_finite(), "`{value}` is not a finite number");
    Ok((name.trim().to_string(), number))
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
    pub fn densities(&self, model: &Model, rows: Range<usize>) -> Result<Vec<Density>> {
        let family = model.family();
        let formula = self.formula(family.constraint())?;
        if model.regions().is_some() {
            // Every row has its own mesh, so that there is nothing to prepare for all of them.
            let density = |row: usize| -> Result<Density> {
                let density = model.density(row).with_context(|| format!("row {row}"))?;
                let known = match &formula {
                    None => density,
                    Some(formula) => density.condition(formula).with_context(|| format!("--condition, row {row}"))?,
                };
                self.given.fix(known)
            };
            return rows.into_par_iter().map(density).collect();
        }
        let event = formula.map(|formula| family.event(&formula).context("--condition")).transpose()?;
        let density = |row: usize| -> Result<Density> {
            let params = params(model, row);
            let density = match &event {
                None => family.density(params)?,
                Some(event) => {
                    let conditioned = event.condition(params).with_context(|| format!("--condition, row {row}"))?;
                    conditioned.into_iter().next().expect("one row of parameters makes one density")
                }
            };
            self.given.fix(density)
        };
        rows.map(density).collect()
    }
}

impl GivenOptions {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the names with their values.
    pub fn values(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// `, given x = 1.5`, or nothing.
    pub fn text(&self) -> String {
        let each: Vec<String> = self.values().map(|(name, value)| format!("{name} = {value}")).collect();
        if each.is_empty() { String::new() } else { format!(", given {}", each.join(", ")) }
    }

    /// Returns the density of the other variables.
    pub fn fix(&self, density: Density) -> Result<Density> {
        if self.values.is_empty() {
            return Ok(density);
        }
        density.given(&self.values().collect::<Vec<_>>()).context("--given")
    }
}

/// Reads a term over the variables of a constraint; an error names the option, the term and the place in it.
pub fn parse_term(option: &str, text: &str, scope: &Constraint) -> Result<Formula> {
    parse_smtlib_term(text, scope).map_err(|error| {
        // Terms are written on one line, as a rule.
        let line = if error.line > 1 { format!("line {}, ", error.line) } else { String::new() };
        // The hint of scripts is of no use here: there is nothing to declare in a term.
        let message = match error.message.split_once("; declare it first") {
            Some((what, _)) => format!("{what}; the variables are {}", names(scope).join(", ")),
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
        assert_eq!(parse_given("a=b=-1.5").unwrap(), ("a=b".to_string(), -1.5));
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
