//! `pal query`: probabilities of conditions.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use pal::density::Model;
use pal::formula::Formula;
use serde::Serialize;

use crate::model_file::{Rows, Source, parse_rows, shortened, term};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compute probabilities of conditions
///
/// The probability of every --where under every density of the model, or given that another condition holds. Conditions are
/// SMT-LIB terms over the variables of the constraint: linear inequalities with and, or, not. Computed, not sampled.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal query model.safetensors --where \"(<= x 1)\"\n  \
    pal query model.safetensors --where \"(or (< x 0) (> y 0.5))\" --where \"(< x y)\" --json\n  \
    pal query model.safetensors --where \"(<= x 1)\" --given-that \"(<= (+ x y) 2)\"\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: Source,
    /// The condition, an SMT-LIB term; may be repeated
    #[arg(long = "where", value_name = "TERM", required = true)]
    terms: Vec<String>,
    /// Another condition that is known to hold
    #[arg(long, value_name = "TERM")]
    given_that: Option<String>,
    /// The row of the model, or `all`
    #[arg(long, value_name = "R", default_value = "all", value_parser = parse_rows)]
    row: Rows,
}

#[derive(Serialize)]
struct Line<'a> {
    row: usize,
    #[serde(rename = "where")]
    term: &'a str,
    given_that: Option<&'a str>,
    probability: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let model = args.model.load()?;
    let (first, answers) = answers(args, &model, global).with_context(|| args.model.name())?;
    let mut out = output::stdout();
    if !global.json {
        if let Some(condition) = &args.given_that {
            writeln!(out, "given that {}", shortened(condition))?;
        }
        writeln!(out, "row  {:<22}  where", "probability")?;
    }
    let rows = answers.first().map_or(0, Vec::len);
    for row in 0..rows {
        for (text, probabilities) in args.terms.iter().zip(&answers) {
            let (row, probability) = (first + row, probabilities[row]);
            if global.json {
                let given_that = args.given_that.as_deref();
                output::json_line(&mut out, &Line { row, term: text, given_that, probability })?;
            } else {
                writeln!(out, "{row:<3}  {:<22}  {}", format!("{probability}"), shortened(text))?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The number of the first row, and per condition its probabilities under all rows.
fn answers(args: &Args, model: &Model, global: Global) -> Result<(usize, Vec<Vec<f64>>)> {
    let _progress = Progress::waiting("integrating", !global.quiet);
    let family = model.family();
    let scope = family.support().constraint();
    let rows = args.row.of(model)?;
    let params = &model.params()[rows.start * family.num_params()..rows.end * family.num_params()];
    let terms: Vec<Formula> = args.terms.iter().map(|text| term("--where", text, scope)).collect::<Result<_>>()?;
    let known = match &args.given_that {
        None => None,
        Some(text) => {
            let condition = term("--given-that", text, scope)?;
            let masses = family.event(&condition).context("--given-that")?.probability(params)?;
            let zero = masses.iter().position(|mass| *mass <= 0.0);
            ensure!(
                zero.is_none(),
                "--given-that: the condition has probability 0 under row {}",
                rows.start + zero.unwrap_or(0)
            );
            Some((condition, masses))
        }
    };
    let probability = |term: &Formula| -> Result<Vec<f64>> {
        let Some((condition, masses)) = &known else {
            return Ok(family.event(term).context("--where")?.probability(params)?);
        };
        let both = family.event(&(term.clone() & condition.clone())).context("--where")?.probability(params)?;
        // Rounding may put the part above the whole.
        Ok(both.iter().zip(masses).map(|(both, mass)| (both / mass).min(1.0)).collect())
    };
    Ok((rows.start, terms.iter().map(probability).collect::<Result<_>>()?))
}
