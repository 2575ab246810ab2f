//! `pal mode`: the most likely point, with a certificate.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::query::{Mode, ModeOptions, ModeStop};
use serde::Serialize;
use serde_json::Value;

use crate::model_file::ModelArgument;
use crate::numbers::{bound, finite};
use crate::options::{ConditionOptions, RowOption};
use crate::points::{PointColumn, column_names};
use crate::progress::Progress;
use crate::{Global, Outcome, limits, output};

/// Find the most likely point, with a certificate
///
/// Searches for the point of largest density under every row of the model, until no point can be better by more than
/// the gap. The upper bound holds however the search ended. Coordinates are in the order of the variables: reals first,
/// then Boolean variables and categories.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal mode model.safetensors\n  \
    pal mode model.safetensors --gap 1e-3 --time-limit 10 --json\n  \
    pal mode model.safetensors --condition \"(<= x 1)\" --row 0\n\n\
    Exit codes: 0 done, 1 stopped by a limit before the gap was reached, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// Stop when the upper bound exceeds the density at the best point by at most this fraction
    #[arg(long, value_name = "G", default_value_t = 1e-6, value_parser = parse_gap, allow_hyphen_values = true)]
    gap: f64,
    /// Stop after at most this many nodes of the search, for every row
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    nodes: usize,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
}

fn parse_gap(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(gap) if gap >= 0.0 => Ok(gap),
        _ => bail!("give a number of at least 0, such as 1e-6"),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    row: usize,
    variables: &'a [&'a str],
    point: Vec<Value>,
    log_density: Option<f64>,
    log_upper: Option<f64>,
    gap: Option<f64>,
    nodes: usize,
    stop: &'static str,
    seconds: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let model = args.model.load()?;
    let prepare = || {
        let _progress = Progress::waiting("preparing", !global.quiet);
        let rows = args.row.or_all().of(&model)?;
        Ok::<_, anyhow::Error>((rows.clone(), args.condition.densities(&model, rows)?))
    };
    let (rows, densities) = prepare().with_context(|| args.model.name())?;
    limits::keep_time();
    let options = ModeOptions { gap: args.gap, nodes: Some(args.nodes), time: global.time_limit };
    // Rows that appear on the screen need no counter.
    let watched = std::io::stdout().is_terminal();
    let progress = Progress::of(densities.len(), "searching", !global.quiet && !watched);
    let mut out = output::stdout();
    let mut outcome = Outcome::Done;
    for (row, density) in rows.clone().zip(&densities) {
        let start = Instant::now();
        let search = || {
            let _progress = Progress::waiting("searching", !global.quiet && watched);
            density.mode(&options).with_context(|| format!("{}: row {row}", args.model.name()))
        };
        let mode = search()?;
        progress.step();
        let seconds = start.elapsed().as_secs_f64();
        let (stop, limited) = match mode.stop {
            ModeStop::Certified => ("certified", false),
            ModeStop::NodeLimit => ("node-limit", true),
            ModeStop::TimeLimit => ("time-limit", true),
            ModeStop::Precision => ("precision", false),
        };
        if limited {
            outcome = Outcome::Stopped;
        }
        let columns = density.columns();
        if global.json {
            let line = Line {
                row,
                variables: &column_names(&columns),
                point: columns.iter().map(|column| column.field(&mode.point).coordinate()).collect(),
                log_density: finite(mode.log_density),
                log_upper: finite(mode.log_upper),
                gap: finite(mode.gap),
                nodes: mode.nodes,
                stop,
                seconds,
            };
            output::json_line(&mut out, &line)?;
        } else {
            if row > rows.start {
                writeln!(out)?;
            }
            print(&mut out, row, &columns, &mode, stop)?;
        }
        out.flush()?;
    }
    Ok(outcome)
}

fn print(out: &mut impl Write, row: usize, columns: &[PointColumn], mode: &Mode, stop: &str) -> Result<()> {
    writeln!(out, "row          {row}")?;
    for (k, column) in columns.iter().enumerate() {
        let head = if k == 0 { "point" } else { "" };
        writeln!(out, "{head:<12} {} = {}", column.name, column.field(&mode.point))?;
    }
    writeln!(out, "log-density  {}", mode.log_density)?;
    writeln!(out, "upper bound  {}", mode.log_upper)?;
    writeln!(out, "gap          {}", bound(mode.gap))?;
    writeln!(out, "nodes        {}", mode.nodes)?;
    writeln!(out, "stop         {stop}")?;
    Ok(())
}
