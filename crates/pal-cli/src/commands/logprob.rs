//! `pal logprob`: log-densities of given points.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::listing::{Listing, numbered, with_row};
use crate::model_file::ModelArgument;
use crate::options::{ConditionOptions, RowChoice, RowOption};
use crate::points::{joined, numbers, width};
use crate::progress::Progress;
use crate::table::read_points;
use crate::{Global, Outcome, table};

/// Compute log-densities of points
///
/// Points come from a table with a column for each variable. A table with column names may have them in any order, and
/// other columns are ignored; a table without names must have the columns of the variables in the order of their
/// declaration, which `pal check` prints. Boolean variables are true or false, or 1 or 0; a category is a column of labels.
/// Outside the constraint the answer is minus infinity: `-inf` in tables, null in JSON.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal logprob model.safetensors --points points.csv\n  \
    pal logprob model.safetensors --points points.npy --row all -o answers.npy\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// The points, a .csv or .npy file, with Booleans and categories also .parquet; `-` reads CSV from standard input
    #[arg(long, value_name = "TABLE")]
    points: PathBuf,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
    /// The .csv or .npy file to write; without it the table is printed as CSV
    #[arg(long, short, value_name = "TABLE")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    table::check_output(args.output.as_deref())?;
    let model = args.model.load()?;
    let prepare = || {
        let _progress = Progress::waiting("preparing", !global.quiet);
        let rows = args.row.or_first().of(&model)?;
        Ok::<_, anyhow::Error>((rows.clone(), args.condition.densities(&model, rows)?))
    };
    let (rows, densities) = prepare().with_context(|| args.model.name())?;
    let Some(first) = densities.first() else { return Ok(Outcome::Done) };
    let columns = first.columns();
    let width = width(&columns);
    let points = read_points(&args.points, &columns)?;
    let many = args.row.or_first() == RowChoice::All;
    let columns = with_row(many, joined(&[&columns, &numbers(&["log_density"])]));
    let listing = Listing { path: args.output.as_deref(), columns, noun: "point", start };
    let progress = Progress::of(points.rows() * rows.len(), "evaluating", !global.quiet);
    listing.write(global, |sink| {
        for (row, density) in rows.zip(&densities) {
            for part in points.values.chunks(PART * width) {
                let answers = density.log_prob(part)?;
                let lines = part.chunks_exact(width).zip(&answers);
                let values = lines.flat_map(|(point, answer)| [point, &[*answer]].concat()).collect();
                sink(&numbered(many.then_some(row), values, width + 1))?;
                progress.advance(answers.len());
            }
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}

/// The number of points that are evaluated at a time.
const PART: usize = 1 << 17;
