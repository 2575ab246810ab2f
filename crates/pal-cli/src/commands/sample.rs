//! `pal sample`: independent samples of a density.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pal::query::{QueryError, Sampler};

use crate::densities::AnyDensity;
use crate::listing::{Listing, numbered, with_row};
use crate::model_file::ModelArgument;
use crate::numbers::counted;
use crate::options::{ConditionOptions, RowChoice, RowOption};
use crate::points::{column_names, width};
use crate::progress::Progress;
use crate::table::{self, Sink, Table};
use crate::{Global, Outcome, input, limits, output};

/// Draw independent samples
///
/// Samples are exact draws, without rejection and without burn-in, and satisfy the constraint. Columns are in the order
/// of the variables and have their names: reals first, then Boolean variables, as true or false, and categories, as
/// labels. Arrays (.npy) have a column of 0 and 1 for each Boolean variable and each value of a category. The same seed gives the same samples for any number of threads, and a longer
/// run begins with the samples of a shorter one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal sample model.safetensors -n 1000000 --seed 1 -o samples.npy\n  \
    pal sample model.safetensors -n 10 --condition \"(<= (+ x y) 1)\"\n  \
    pal sample model.safetensors -n 100 --given x=1.5 --row all -o samples.csv\n  \
    pal sample model.safetensors --uniforms sobol.npy -o samples.csv\n\n\
    Exit codes: 0 done, 1 stopped by Ctrl-C, 2 error")]
pub struct Args {
    #[command(flatten)]
    model: ModelArgument,
    /// The number of samples for each row of the model; 1e6 is a million
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = parse_count, allow_negative_numbers = true)]
    count: u64,
    #[arg(long, value_name = "S", default_value_t = 0, help = "The seed of the samples")]
    seed: u64,
    /// A table of numbers between 0 and 1 to use instead of random ones: per sample one more than there are variables
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["count", "seed"])]
    uniforms: Option<PathBuf>,
    #[command(flatten)]
    condition: ConditionOptions,
    #[command(flatten)]
    row: RowOption,
    /// For models whose rows are windows: write places of the map instead of local coordinates. They are rounded, so that
    /// a sample at a wall can come out beyond it by as much
    #[arg(long)]
    map_coordinates: bool,
    /// The .csv or .npy file to write; without it samples are printed as CSV
    #[arg(long, short, value_name = "TABLE")]
    output: Option<PathBuf>,
}

fn parse_count(text: &str) -> Result<u64> {
    // Float64 represents all integers up to here.
    let integer = |value: &f64| value.fract() == 0.0 && *value <= 9e15;
    let count = text.parse().ok().or_else(|| text.parse().ok().filter(integer).map(|value| value as u64));
    count.filter(|count| *count > 0).context("give a whole number of at least 1, such as 1000 or 1e6")
}

/// Samples drawn at a time: enough to keep all threads busy, and few enough that Ctrl-C is noticed soon.
const PART: u64 = 1 << 17;

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    table::check_output(args.output.as_deref())?;
    let model = args.model.load()?;
    if args.map_coordinates {
        ensure!(
            model.regions().is_some(),
            "--map-coordinates: {} has no windows; its coordinates are those of the constraint",
            args.model.name()
        );
        ensure!(
            args.condition.given().is_empty(),
            "--map-coordinates needs all local coordinates, and --given takes one away"
        );
    }
    let prepare = || {
        let _progress = Progress::waiting("preparing", !global.quiet);
        let rows = args.row.or_first().of(&model)?;
        let densities = args.condition.densities(&model, rows.clone())?;
        let samplers = densities.iter().map(AnyDensity::sampler).collect::<Result<Vec<_>>>()?;
        Ok::<_, anyhow::Error>((rows.collect::<Vec<usize>>(), densities, samplers))
    };
    let (rows, densities, samplers) = prepare().with_context(|| args.model.name())?;
    let (Some(density), Some(sampler)) = (densities.first(), samplers.first()) else { return Ok(Outcome::Done) };
    let columns = density.columns();
    let uniforms = match (&args.uniforms, sampler) {
        (None, _) => None,
        (Some(path), Some(sampler)) => Some(read_uniforms(path, sampler, &column_names(&columns))?),
        (Some(_), None) => bail!("--uniforms is for densities over real variables on a grid, which this one is not"),
    };
    let count = match &uniforms {
        Some(table) => table.rows() as u64,
        None => args.count,
    };
    let many = args.row.or_first() == RowChoice::All;
    let (width, uniform) = (width(&columns), sampler.as_ref().map_or(0, Sampler::uniforms));
    let listing = Listing { path: args.output.as_deref(), columns: with_row(many, columns), noun: "sample", start };
    let local = if args.map_coordinates { model.regions() } else { None };
    let interrupted = limits::listen();
    let watched = args.output.is_none() && std::io::IsTerminal::is_terminal(&std::io::stdout());
    let total = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(rows.len());
    let progress = Progress::of(total, "sampling", !global.quiet && !watched);
    let written = listing.write(global, |sink: &mut Sink| {
        for ((row, density), sampler) in rows.iter().zip(&densities).zip(&samplers) {
            // Without a sampler all samples of a row are drawn at once.
            let part = if sampler.is_some() { PART } else { count };
            for first in (0..count).step_by(usize::try_from(part).unwrap_or(usize::MAX)) {
                if interrupted.load(Ordering::SeqCst) {
                    bail!("interrupted");
                }
                let size = part.min(count - first) as usize;
                let samples = match (sampler, &uniforms) {
                    (None, _) => density.sample(size, args.seed)?,
                    (Some(sampler), None) => sampler.sample_from(first, size, args.seed),
                    (Some(sampler), Some(table)) => {
                        sampler.transform(&table.values[first as usize * uniform..][..size * uniform])?
                    }
                };
                let samples = match local {
                    None => samples,
                    Some(regions) => regions.select(&vec![*row; size])?.to_map(&samples)?,
                };
                sink(&numbered(many.then_some(*row), samples, width))?;
                progress.advance(size);
            }
        }
        Ok(())
    });
    drop(progress);
    if written.is_err() && interrupted.load(Ordering::SeqCst) {
        if let Some(path) = args.output.as_ref().filter(|_| !global.quiet) {
            output::note(&format!("interrupted; {} is as it was", path.display()));
        }
        return Ok(Outcome::Stopped);
    }
    written?;
    Ok(Outcome::Done)
}

fn read_uniforms(path: &Path, sampler: &Sampler, variables: &[&str]) -> Result<Table> {
    let table = Table::read(path)?;
    let check = || -> Result<()> {
        let wanted = sampler.uniforms();
        ensure!(
            table.columns == wanted,
            "{}, but a sample of {} takes {wanted} numbers",
            counted(table.columns, "column"),
            variables.join(", ")
        );
        if let Some(at) = table.values.iter().position(|u| !(0.0..=1.0).contains(u)) {
            return Err(QueryError::Uniform { row: at / wanted, column: at % wanted, value: table.values[at] }.into());
        }
        Ok(())
    };
    check().with_context(|| input::name(path))?;
    Ok(table)
}
