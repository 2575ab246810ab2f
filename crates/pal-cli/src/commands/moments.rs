//! `pal moments`: means, covariances, expectations of polynomials, entropies.

use std::io::Write;

use anyhow::{Context, Result};
use pal::polynomial::Polynomial;
use pal::query::{Distribution, Entropy, EntropyOptions};
use serde::Serialize;

use crate::model::{Condition, Rows, Source, names, parse_rows};
use crate::numbers::{bound, finite};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compute means, covariances, expectations and entropies
///
/// For every row of the model: mean and standard deviation of all variables, their covariance matrix, the expectations of given
/// polynomials, and the differential entropy in nats with an estimate of its error. All are integrals, computed and not sampled.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal moments model.safetensors\n  \
    pal moments model.safetensors --poly \"x^2*y\" --poly \"(x - y)^2\" --json\n  \
    pal moments model.safetensors --entropy --where \"(<= x 1)\"\n\n\
    Exit codes: 0 done, 1 an entropy is less certain than asked for, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: Source,
    /// Expectation of a polynomial, such as "x^2*y"; may be repeated
    #[arg(long = "poly", value_name = "P", allow_hyphen_values = true)]
    polynomials: Vec<String>,
    /// The differential entropy too
    #[arg(long)]
    entropy: bool,
    /// The error of the entropy that is good enough
    #[arg(long, value_name = "E", default_value_t = 1e-6, requires = "entropy")]
    tolerance: f64,
    #[command(flatten)]
    condition: Condition,
    /// The row of the model, or `all`
    #[arg(long, value_name = "R", default_value = "all", value_parser = parse_rows)]
    row: Rows,
}

#[derive(Serialize)]
struct Line<'a> {
    row: usize,
    variables: Vec<&'a str>,
    mean: Vec<f64>,
    standard_deviation: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    expectations: Vec<Expected>,
    entropy: Option<Uncertain>,
}

#[derive(Serialize)]
struct Expected {
    polynomial: String,
    value: Option<f64>,
}

#[derive(Serialize)]
struct Uncertain {
    value: Option<f64>,
    error: Option<f64>,
    converged: bool,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let model = args.model.load()?;
    let prepare = || {
        let rows = args.row.of(&model)?;
        Ok::<_, anyhow::Error>((rows.clone(), args.condition.densities(&model, rows)?))
    };
    let (rows, densities) = prepare().with_context(|| args.model.name())?;
    let progress = Progress::of(densities.len(), "integrating", !global.quiet);
    let mut out = output::stdout();
    let mut outcome = Outcome::Done;
    for (row, density) in rows.clone().zip(&densities) {
        let line = args.line(row, density)?;
        if line.entropy.as_ref().is_some_and(|entropy| !entropy.converged) {
            outcome = Outcome::Stopped;
        }
        if global.json {
            output::json_line(&mut out, &line)?;
        } else {
            if row > rows.start {
                writeln!(out)?;
            }
            print(&mut out, &line)?;
        }
        out.flush()?;
        progress.step();
    }
    Ok(outcome)
}

impl Args {
    fn line<'a>(&self, row: usize, density: &'a Distribution) -> Result<Line<'a>> {
        let constraint = density.domain().constraint();
        let n = density.dimension();
        let mut expectations = Vec::new();
        for text in &self.polynomials {
            let polynomial = Polynomial::parse_in(text, &constraint.reals).with_context(|| format!("--poly {text}"))?;
            let value = density.expectation(&polynomial).with_context(|| format!("--poly {text}"))?;
            expectations.push(Expected { polynomial: polynomial.to_string(), value: finite(value) });
        }
        let covariance: Vec<Vec<f64>> = density.covariance().chunks(n).map(<[f64]>::to_vec).collect();
        let options = EntropyOptions { tolerance: self.tolerance, ..EntropyOptions::default() };
        let entropy = self.entropy.then(|| density.entropy(&options));
        Ok(Line {
            row,
            variables: names(constraint),
            mean: density.mean(),
            standard_deviation: (0..n).map(|k| covariance[k][k].sqrt()).collect(),
            covariance,
            expectations,
            entropy: entropy.map(|Entropy { value, error, converged, .. }| Uncertain {
                value: finite(value),
                error: finite(error),
                converged,
            }),
        })
    }
}

fn print(out: &mut impl Write, line: &Line) -> Result<()> {
    let number = |value: f64| format!("{value:?}");
    let width = line.variables.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(8);
    writeln!(out, "row {}", line.row)?;
    writeln!(out, "{:<width$}  {:<23} standard deviation", "variable", "mean")?;
    for ((name, mean), deviation) in line.variables.iter().zip(&line.mean).zip(&line.standard_deviation) {
        writeln!(out, "{name:<width$}  {:<23} {}", number(*mean), number(*deviation))?;
    }
    writeln!(out, "covariance")?;
    for (name, entries) in line.variables.iter().zip(&line.covariance) {
        let entries: Vec<String> = entries.iter().map(|value| format!("{:<23}", number(*value))).collect();
        writeln!(out, "{name:<width$}  {}", entries.join(" ").trim_end())?;
    }
    for Expected { polynomial, value } in &line.expectations {
        let value = value.map_or("beyond doubles".to_string(), number);
        writeln!(out, "expectation of {polynomial}\n{:<width$}  {value}", "")?;
    }
    if let Some(Uncertain { value, error, converged }) = &line.entropy {
        let (value, error) = (value.unwrap_or(f64::NAN), error.unwrap_or(f64::INFINITY));
        let doubt = if *converged { "" } else { ", more than asked for" };
        writeln!(out, "entropy\n{:<width$}  {} nats, error up to {}{doubt}", "", number(value), bound(error))?;
    }
    Ok(())
}
