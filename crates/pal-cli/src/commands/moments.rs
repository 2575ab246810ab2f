//! `pal moments`: means, covariances, expectations of polynomials, entropies.

use std::io::{IsTerminal, Write};
use std::ops::Range;

use anyhow::{Context, Result, bail};
use pal::density::{Family, Model};
use pal::formula::Var;
use pal::polynomial::Polynomial;
use pal::query::{Entropy, EntropyOptions};
use serde::Serialize;

use crate::densities::AnyDensity;
use crate::model_file::ModelArgument;
use crate::numbers::{bound, finite};
use crate::options::condition::shortened;
use crate::options::{ConditionOptions, RowOption};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compute means, covariances, expectations and entropies
///
/// For every row of the model: mean and standard deviation of all variables, their covariance matrix, the expectations
/// of given polynomials, and the differential entropy in nats with an estimate of its error. All of them are computed
/// as integrals, not estimated from samples. Rows and columns are in the order of the variables. Boolean variables and the
/// values of categories count as 0 and 1, so that their means are probabilities; polynomials are in real variables.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal moments model.safetensors\n  \
    pal moments model.safetensors --poly \"x^2*y\" --poly \"(x - y)^2\" --json\n  \
    pal moments model.safetensors --entropy --condition \"(<= x 1)\"\n\n\
    Exit codes: 0 done, 1 an entropy is less certain than asked for, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// Expectation of a polynomial, such as "x^2*y"; may be repeated
    #[arg(long = "poly", value_name = "P", allow_hyphen_values = true)]
    polynomials: Vec<String>,
    /// Compute the differential entropy too
    #[arg(long)]
    entropy: bool,
    /// The error of the entropy that is small enough
    #[arg(long, value_name = "E", default_value_t = 1e-6, requires = "entropy")]
    #[arg(value_parser = parse_tolerance, allow_hyphen_values = true)]
    tolerance: f64,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
}

fn parse_tolerance(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(error) if error >= 0.0 => Ok(error),
        _ => bail!("give a number of at least 0, such as 1e-6"),
    }
}

#[derive(Serialize)]
struct Line {
    row: usize,
    variables: Vec<String>,
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
        let _progress = Progress::waiting("preparing", !global.quiet);
        let rows = args.row.or_all().of(&model)?;
        let densities = args.condition.densities(&model, rows.clone())?;
        let together = args.condition.is_empty() && densities.len() >= MANY;
        let many = model.as_real().filter(|model| together && model.regions().is_none() && is_small(model.family()));
        let known = many.map(|model| args.batch(model, rows.clone())).transpose()?;
        Ok::<_, anyhow::Error>((rows, densities, known))
    };
    let (rows, densities, known) = prepare().with_context(|| args.model.name())?;
    // Rows that appear on the screen need no counter.
    let watched = std::io::stdout().is_terminal();
    let progress = Progress::of(densities.len(), "integrating", !global.quiet && !watched);
    let mut out = output::stdout();
    let mut outcome = Outcome::Done;
    for (k, (row, density)) in rows.clone().zip(&densities).enumerate() {
        let integrate = || {
            let _progress = Progress::waiting("integrating", !global.quiet && watched);
            args.line(row, density, known.as_ref().map(|known| &known[k]))
        };
        let line = integrate().with_context(|| args.model.name())?;
        progress.step();
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
    }
    Ok(outcome)
}

/// The number of rows from which on their integrals are compiled once for all. Compiling costs as much as several rows.
const MANY: usize = 16;
/// The largest number of float64 numbers that compiled integrals may take.
const ROOM: f64 = 3e7;

/// Whether the compiled forms of all first and second moments together are small.
fn is_small(family: &Family) -> bool {
    let n = family.dimension() as f64;
    family.kind().form_len() * n * (n + 3.0) / 2.0 <= ROOM
}

/// The integrals of one density.
struct Integrals {
    mean: Vec<f64>,
    standard_deviation: Vec<f64>,
    /// The covariance matrix, row by row.
    covariance: Vec<f64>,
    expectations: Vec<f64>,
}

impl Args {
    /// Reads the polynomials; errors name the polynomial and the place in it.
    fn parse(&self, variables: &[Var]) -> Result<Vec<Polynomial>> {
        let parse = |text: &String| {
            Polynomial::parse_in(text, variables).with_context(|| format!("--poly \"{}\"", shortened(text)))
        };
        self.polynomials.iter().map(parse).collect()
    }

    /// Computes the integrals of many rows of a model together.
    fn batch(&self, model: &Model, rows: Range<usize>) -> Result<Vec<Integrals>> {
        let family = model.family();
        let (width, n) = (family.num_params(), family.variables().len());
        let params = &model.params()[rows.start * width..rows.end * width];
        let (means, covariances) = (family.mean(params)?, family.covariance(params)?);
        let deviations = family.standard_deviation(params)?;
        let polynomials = self.parse(family.variables())?;
        let count = polynomials.len();
        let expectations = match count {
            0 => Vec::new(),
            _ => family.expectation(&polynomials).context("--poly")?.values(params)?,
        };
        let row = |k: usize| Integrals {
            mean: means[k * n..(k + 1) * n].to_vec(),
            standard_deviation: deviations[k * n..(k + 1) * n].to_vec(),
            covariance: covariances[k * n * n..(k + 1) * n * n].to_vec(),
            expectations: expectations[k * count..(k + 1) * count].to_vec(),
        };
        Ok((0..rows.len()).map(row).collect())
    }

    /// Computes the integrals of one density.
    fn integrals(density: &AnyDensity, polynomials: &[Polynomial]) -> Result<Integrals> {
        let expectation = |polynomial| density.expectation(polynomial).context("--poly");
        Ok(Integrals {
            mean: density.mean(),
            standard_deviation: density.standard_deviation(),
            covariance: density.covariance(),
            expectations: polynomials.iter().map(expectation).collect::<Result<_>>()?,
        })
    }

    fn line(&self, row: usize, density: &AnyDensity, known: Option<&Integrals>) -> Result<Line> {
        let variables = density.number_names();
        let n = variables.len();
        let polynomials = self.parse(&density.reals())?;
        let own;
        let Integrals { mean, standard_deviation, covariance, expectations } = match known {
            Some(known) => known,
            None => {
                own = Args::integrals(density, &polynomials)?;
                &own
            }
        };
        let expected = |(polynomial, value): (&Polynomial, &f64)| Expected {
            polynomial: polynomial.to_string(),
            value: finite(*value),
        };
        let covariance: Vec<Vec<f64>> = covariance.chunks(n).map(<[f64]>::to_vec).collect();
        let options = EntropyOptions { tolerance: self.tolerance, ..EntropyOptions::default() };
        let entropy = if self.entropy { Some(density.entropy(&options).context("--entropy")?) } else { None };
        Ok(Line {
            row,
            variables,
            mean: mean.clone(),
            standard_deviation: standard_deviation.clone(),
            covariance,
            expectations: polynomials.iter().zip(expectations).map(expected).collect(),
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
        let value = value.map_or("beyond float64".to_string(), number);
        writeln!(out, "expectation of {polynomial}\n{:<width$}  {value}", "")?;
    }
    if let Some(Uncertain { value, error, converged }) = &line.entropy {
        let (value, error) = (value.unwrap_or(f64::NAN), error.unwrap_or(f64::INFINITY));
        let doubt = if *converged { "" } else { ", more than asked for" };
        writeln!(out, "entropy\n{:<width$}  {} nats, error up to {}{doubt}", "", number(value), bound(error))?;
    }
    Ok(())
}
