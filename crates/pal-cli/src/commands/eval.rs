//! `pal eval`: the mean log-density of data under a trained model.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::learn::{DataReader, OtherMaps, PointMembership, RowConstraint, Saved, mean, parse_names};
use crate::numbers::finite;
use crate::points::{PointColumn, column_names};
use crate::progress::Progress;
use crate::table::dataset::{self, Column};
use crate::{Global, Outcome, output};

/// Evaluate a trained model on data
///
/// Prints the mean log-density of the rows, and how many samples of the model violate the constraint. It takes models
/// of `pal fit` and `pal train`, with or without --baseline, and models of `pal model` with one density. Columns are
/// found by their names.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal eval density.safetensors --data more.csv\n  \
    pal eval net.safetensors --data test.parquet --json\n  \
    pal eval net.safetensors --data test.parquet -o log-densities.csv\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The trained model
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The data, .csv or .parquet
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// The columns of the inputs [default: those of the training]
    #[arg(long, value_name = "NAMES", value_parser = parse_names)]
    inputs: Option<std::vec::Vec<String>>,
    /// The columns of the point, in the order of the variables; in any order if they have the names of the variables or of
    /// the columns of the training [default: those of the training]
    #[arg(long, alias = "columns", value_name = "NAMES", value_parser = parse_names)]
    outputs: Option<std::vec::Vec<String>>,
    #[command(flatten)]
    maps: OtherMaps,
    /// Leave out rows that are incomplete, not finite or outside the constraint, and say how many
    #[arg(long)]
    drop_invalid: bool,
    /// How many samples are drawn to measure the fraction outside the constraint
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    violation_samples: usize,
    /// The seed of these samples
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write the log-density of each row to a .csv or .parquet file
    #[arg(long, short, value_name = "TABLE")]
    output: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    model: String,
    data: String,
    rows: usize,
    dropped: usize,
    /// The mean log-density; null for minus infinity.
    ll: Option<f64>,
    violation: f64,
    outside: usize,
    samples: usize,
    seconds: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    if let Some(path) = &args.output {
        dataset::check_output(path)?;
    }
    let name = args.model.display().to_string();
    let _progress = Progress::waiting("evaluating", !global.quiet);
    let saved = Saved::load(&args.model)?;
    let mut columns = saved.columns();
    let variables = PointColumn::of(saved.constraint());
    if let Some(inputs) = &args.inputs {
        let (given, wanted) = (inputs.len(), columns.inputs.len());
        ensure!(given == wanted, "--inputs: {given} columns, but the model has {wanted} inputs");
        columns.inputs.clone_from(inputs);
    }
    if let Some(outputs) = &args.outputs {
        columns.replace_outputs(outputs, &column_names(&variables));
    }
    columns.check(&column_names(&variables))?;
    let membership = PointMembership::new(saved.constraint())?;
    let (plan, map) = saved.regions();
    let reader = args.maps.reader(plan, map, &saved.columns(), &args.model)?;
    let constraint = reader.as_ref().map_or(RowConstraint::Same(&membership), RowConstraint::Own);
    let points = columns.points(saved.constraint());
    let source =
        DataReader { columns: &columns, points: &points, group: None, constraint, drop_invalid: args.drop_invalid };
    let (data, _, dropped) = source.read(&args.data)?;
    ensure!(data.rows() > 0, "{}: no rows to evaluate", args.data.display());
    let logs = saved.log_prob(&data).with_context(|| name.clone())?;
    let violation = saved.violation(&data, args.violation_samples, args.seed).with_context(|| name.clone())?;
    let report = Report {
        model: name,
        data: args.data.display().to_string(),
        rows: logs.len(),
        dropped,
        ll: finite(mean(&logs)),
        violation: violation.fraction(),
        outside: violation.outside,
        samples: violation.samples,
        seconds: start.elapsed().as_secs_f64(),
    };
    if let Some(path) = &args.output {
        dataset::write(path, &[Column::Numbers("log_density", logs)])?;
    }
    let mut out = output::stdout();
    if global.json {
        output::json_line(&mut out, &report)?;
    } else {
        writeln!(out, "rows         {}, {} left out", report.rows, report.dropped)?;
        let shown = report.ll.map_or("-inf".to_string(), |ll| format!("{ll:.4}"));
        writeln!(out, "log-density  {shown} in the mean")?;
        writeln!(out, "violation    {} of {} samples outside", report.outside, report.samples)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
