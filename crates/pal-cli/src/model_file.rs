//! Family families and models from files, and what most commands on them share: rows, conditions and terms.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use pal::density::Density;
use pal::density::{Family, FileError, Model};
use pal::formula::{Constraint, Formula, Var, parse_smtlib_term};

use crate::numbers::counted;
use crate::output;

/// Which model a question is about.
#[derive(clap::Args)]
pub struct Source {
    /// The model: a .safetensors file made by `pal model`
    #[arg(value_name = "MODEL")]
    file: PathBuf,
}

impl Source {
    /// How messages call the file.
    pub fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// Reads the model; errors name the file.
    pub fn load(&self) -> Result<Model> {
        load(&self.file)
    }
}

/// Reads a model; errors name the file.
pub fn load(file: &Path) -> Result<Model> {
    read(file, Model::from_bytes)
}

/// Reads a compiled family, or that of a model; errors name the file.
pub fn load_family(file: &Path) -> Result<Family> {
    read(file, Family::from_bytes)
}

/// Whether the name of a file is that of a model or a compiled family.
pub fn is_named(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"))
}

/// Complains about a name under which a family or a model is not to be written.
pub fn check_output(file: &Path) -> Result<()> {
    let name = file.display();
    ensure!(is_named(file), "{name}: families and models are written as .safetensors; choose such a name");
    output::check_place(file)
}

fn read<T>(file: &Path, from_bytes: impl Fn(&[u8]) -> Result<T, FileError>) -> Result<T> {
    let attempt = || -> Result<T> {
        ensure!(file != Path::new("-"), "families and models are read from files only");
        let bytes = fs::read(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!("no such file"),
            _ if file.is_dir() => anyhow!("this is a directory; give a .safetensors file"),
            _ => anyhow!(error).context("cannot read"),
        })?;
        from_bytes(&bytes).map_err(|error| match error {
            // The reader's own words for this are about lengths of headers, which help nobody.
            FileError::Format(_) => {
                let what = if is_named(file) { "not a safetensors file, or a damaged one" } else { "not a model" };
                anyhow!(
                    "{what}; `pal compile` makes a .safetensors file of a constraint, and `pal model` a model of that"
                )
            }
            // Its text has that of its cause.
            other => anyhow!("{other}"),
        })
    };
    attempt().with_context(|| file.display().to_string())
}

/// The rows of parameters that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    One(usize),
    All,
}

/// A row from text.
pub fn parse_rows(text: &str) -> Result<Rows> {
    match text {
        "all" => Ok(Rows::All),
        number => number.parse().map(Rows::One).map_err(|_| anyhow!("give the number of a row, from 0 on, or `all`")),
    }
}

impl Rows {
    /// The same as positions in a model.
    pub fn of(self, model: &Model) -> Result<Range<usize>> {
        match self {
            Rows::All => Ok(0..model.rows()),
            Rows::One(row) => {
                let count = model.rows();
                ensure!(row < count, "--row {row}: the model has {}, counted from 0", counted(count, "row"));
                Ok(row..row + 1)
            }
        }
    }
}

/// The parameters of one row.
pub fn params(model: &Model, row: usize) -> &[f64] {
    let width = model.family().num_params();
    &model.params()[row * width..(row + 1) * width]
}

/// The names of the variables of a constraint.
pub fn names(constraint: &Constraint) -> Vec<&str> {
    constraint.reals.iter().map(Var::name).collect()
}

/// Conditions that are put on a density before a question.
#[derive(clap::Args)]
pub struct Condition {
    /// Condition on an SMT-LIB term such as "(<= x 1)"; several must hold together
    #[arg(long = "where", value_name = "TERM")]
    terms: Vec<String>,
    #[command(flatten)]
    given: Given,
}

/// Fixed values of variables.
#[derive(clap::Args)]
pub struct Given {
    /// Fix a variable, such as x=1.5; may be repeated
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

impl Condition {
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.given.is_empty()
    }

    /// The densities of some rows under the conditions: terms first, for they may be about variables that are fixed then.
    pub fn densities(&self, model: &Model, rows: Range<usize>) -> Result<Vec<Density>> {
        let family = model.family();
        let scope = family.support().constraint();
        let terms: Vec<Formula> = self.terms.iter().map(|text| term("--where", text, scope)).collect::<Result<_>>()?;
        let event = match terms.is_empty() {
            true => None,
            false => Some(family.event(&Formula::all(terms)).context("--where")?),
        };
        let density = |row: usize| -> Result<Density> {
            let params = params(model, row);
            let density = match &event {
                None => family.density(params)?,
                Some(event) => {
                    let conditioned = event.condition(params).map(|mut all| all.pop());
                    conditioned.with_context(|| format!("--where, row {row}"))?.context("no parameters")?
                }
            };
            self.given.fix(density)
        };
        rows.map(density).collect()
    }
}

impl Given {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// `, given x = 1.5`, or nothing.
    pub fn text(&self) -> String {
        let each: Vec<String> = self.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if each.is_empty() { String::new() } else { format!(", given {}", each.join(", ")) }
    }

    /// The density of the other variables.
    pub fn fix(&self, density: Density) -> Result<Density> {
        if self.values.is_empty() {
            return Ok(density);
        }
        let values: Vec<(&str, f64)> = self.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        density.given(&values).context("--given")
    }
}

/// A condition from text; an error names the option, the term and the place in it.
pub fn term(option: &str, text: &str, scope: &Constraint) -> Result<Formula> {
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
    let rest = start[name..].trim_start();
    name > 0 && rest.starts_with(['<', '>', '=', '+', '-', '*', '/'])
}

/// Text for a message or a table, cut where it gets long.
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
    fn rows_and_values_from_text() {
        assert_eq!((parse_rows("all").unwrap(), parse_rows("7").unwrap()), (Rows::All, Rows::One(7)));
        assert!(parse_rows("-1").is_err() && parse_rows("").is_err());
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
