//! `pal query`: probabilities of events.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result, bail};
use pal::formula::Formula;
use serde::Serialize;
use serde_json::Value;

use crate::densities::{AnyDensity, AnyModel};
use crate::model_file::ModelArgument;
use crate::options::condition::{parse_term, shortened};
use crate::options::{ConditionOptions, RowOption};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compute probabilities of events
///
/// The probability of every --event under every density of the model, or given that a condition holds. Events and
/// conditions are SMT-LIB terms over the variables of the constraint: linear inequalities, Boolean variables and
/// comparisons of categories, such as (= mode walk), with and, or, not.
/// Probabilities are integrals: they are computed, not estimated from samples.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal query model.safetensors --event \"(<= x 1)\"\n  \
    pal query model.safetensors --event \"(or (< x 0) (> y 0.5))\" --event \"(< x y)\" --json\n  \
    pal query model.safetensors --event \"(<= x 1)\" --condition \"(<= (+ x y) 2)\"\n  \
    pal query model.safetensors --event \"(<= x 1)\" --given y=0.5\n  \
    pal query trips.safetensors --event \"(and (= mode walk) (<= x 1))\" --given wet=true\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// The event, an SMT-LIB term; may be repeated, and each is a question of its own
    #[arg(long = "event", value_name = "TERM", required = true)]
    events: Vec<String>,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
}

#[derive(Serialize)]
struct Line<'a> {
    row: usize,
    event: &'a str,
    condition: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    given: BTreeMap<&'a str, Value>,
    probability: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let model = args.model.load()?;
    let (first, answers) = answers(args, &model, global).with_context(|| args.model.name())?;
    let condition = args.condition.text();
    let given: BTreeMap<&str, Value> = args.condition.given().values().collect();
    let mut out = output::stdout();
    if !global.json {
        if let Some(condition) = &condition {
            writeln!(out, "condition {}", shortened(condition))?;
        }
        for text in args.condition.given().texts() {
            writeln!(out, "given {text}")?;
        }
        writeln!(out, "row  {:<22}  event", "probability")?;
    }
    let rows = answers.first().map_or(0, Vec::len);
    for row in 0..rows {
        for (event, probabilities) in args.events.iter().zip(&answers) {
            let (row, probability) = (first + row, probabilities[row]);
            if global.json {
                let (condition, given) = (condition.as_deref(), given.clone());
                output::json_line(&mut out, &Line { row, event, condition, given, probability })?;
            } else {
                writeln!(out, "{row:<3}  {:<22}  {}", format!("{probability}"), shortened(event))?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Returns the number of the first row and, for each event, its probabilities under all rows.
fn answers(args: &Args, model: &AnyModel, global: Global) -> Result<(usize, Vec<Vec<f64>>)> {
    let _progress = Progress::waiting("integrating", !global.quiet);
    let rows = args.row.or_all().of(model)?;
    // Without given values the integrals of all rows are computed together, where they share a region and a grid.
    let shared = model.family().filter(|_| args.condition.given().is_empty() && model.regions().is_none());
    let Some(family) = shared else {
        let densities = args.condition.densities(model, rows.clone())?;
        let probability = |text: &String| -> Result<Vec<f64>> {
            let of = |density: &AnyDensity| -> Result<f64> {
                let event = parse_term("--event", text, &density.constraint())?;
                density.probability(&event).context("--event")
            };
            densities.iter().map(of).collect()
        };
        return Ok((rows.start, args.events.iter().map(probability).collect::<Result<_>>()?));
    };
    let (scope, params) = (model.constraint(), model.params(rows.clone()));
    let events: Vec<Formula> =
        args.events.iter().map(|text| parse_term("--event", text, scope)).collect::<Result<_>>()?;
    let known = match args.condition.formula(scope)? {
        None => None,
        Some(condition) => {
            let masses = family.probability(&condition, params).context("--condition")?;
            if let Some(zero) = masses.iter().position(|mass| *mass <= 0.0) {
                bail!("--condition, row {}: the condition has probability 0 under this density", rows.start + zero);
            }
            Some((condition, masses))
        }
    };
    let probability = |event: &Formula| -> Result<Vec<f64>> {
        let Some((condition, masses)) = &known else {
            return family.probability(event, params).context("--event");
        };
        let both = family.probability(&(event.clone() & condition.clone()), params).context("--event")?;
        // Rounding may make the smaller mass the larger one.
        Ok(both.iter().zip(masses).map(|(both, mass)| (both / mass).min(1.0)).collect())
    };
    Ok((rows.start, events.iter().map(probability).collect::<Result<_>>()?))
}
