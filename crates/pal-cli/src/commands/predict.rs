//! `pal predict`: the densities that a network gives for rows of inputs.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail, ensure};
use pal::density::DensityError;

use super::model;
use crate::learn::{Data, MapNames, OtherMaps, Saved, parse_names};
use crate::model_file::check_output;
use crate::points::{self, PointColumn};
use crate::progress::Progress;
use crate::table::dataset::{ColumnNames, Dataset};
use crate::{Global, Outcome};

/// Turn rows of inputs into densities
///
/// Applies a network of `pal train` to every row of a table. The result is a model with one density for each row, which
/// all other commands take: sample from it, or ask for probabilities, modes and marginals with --row. Where the rows of
/// the network are windows, all coordinates are local ones, and `pal sample --map-coordinates` gives places of the map.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal predict net.safetensors --data now.csv -o densities.safetensors\n  \
    pal sample densities.safetensors --row 3 -n 1000 -o future.csv\n  \
    pal mode densities.safetensors --row all\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The trained network
    #[arg(value_name = "NETWORK")]
    network: PathBuf,
    /// The inputs, .csv or .parquet
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// The columns of the inputs, in the order of the training [default: those of the training]
    #[arg(long, value_name = "NAMES", value_parser = parse_names)]
    inputs: Option<std::vec::Vec<String>>,
    #[command(flatten)]
    maps: OtherMaps,
    /// The densities, a .safetensors file
    #[arg(long, short, value_name = "MODEL")]
    output: PathBuf,
}

/// The largest number of rows that an error names.
const NAMED: usize = 5;

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    check_output(&args.output)?;
    let name = args.network.display().to_string();
    let _progress = Progress::waiting("predicting", !global.quiet);
    let saved = Saved::load(&args.network)?;
    let known = saved.columns();
    ensure!(!known.inputs.is_empty(), "{name}: this model has no inputs: it is one density already");
    let inputs = args.inputs.as_ref().unwrap_or(&known.inputs);
    let (given, wanted) = (inputs.len(), known.inputs.len());
    ensure!(given == wanted, "--inputs: {given} columns, but the network has {wanted} inputs");
    let (plan, map) = saved.regions();
    let reader = args.maps.reader(plan, map, &known, &args.network)?;
    let mut columns = inputs.clone();
    columns.extend(reader.as_ref().map_or_else(Vec::new, |reader| reader.columns()));
    let text = reader.as_ref().and_then(|reader| reader.plan().map.as_deref());
    let dataset = Dataset::read(&args.data, ColumnNames { numbers: &columns, discrete: &[], text })?;
    let width = columns.len();
    let place = |row: usize| format!("{}: {}", args.data.display(), dataset.place(row));
    if let Some(at) = dataset.numbers.iter().position(|value| !value.is_finite()) {
        bail!("{}, column `{}`: {}", place(at / width), columns[at % width], dataset.numbers[at]);
    }
    ensure!(dataset.rows() > 0, "{}: no rows", args.data.display());
    let part = |from: usize, to: usize| -> Vec<f64> {
        dataset.numbers.chunks(width).flat_map(|row| &row[from..to]).copied().collect()
    };
    let mut values = part(0, given);
    let mut regions = None;
    if let Some(reader) = &reader {
        let numbers = part(given, width);
        for (row, own) in numbers.chunks((width - given).max(1)).enumerate() {
            if let Some(trouble) = reader.trouble(own) {
                bail!("{}: {trouble}", place(row));
            }
        }
        let own = reader.regions(dataset.rows(), &numbers, &MapNames { names: &dataset.text, place: &place })?;
        reader.localise(&own, &known.inputs, &mut values)?;
        regions = Some(own);
    }
    // Only the inputs are used; the points give the number of rows.
    let dimension = points::width(&PointColumn::of(saved.constraint()));
    let data = Data { points: vec![0.0; dataset.rows() * dimension], dimension, inputs: values, regions };
    let model = saved.densities(&data).map_err(|error| match error.downcast_ref() {
        Some(DensityError::RowsWithoutVolume(rows)) => {
            let some: Vec<String> = rows.iter().take(NAMED).map(|row| dataset.place(*row)).collect();
            let more = if rows.len() > NAMED { format!(" and {} more", rows.len() - NAMED) } else { String::new() };
            anyhow!(
                "{}: {}{more}: the region of the row has no volume, so that there is no density on it",
                args.data.display(),
                some.join(", ")
            )
        }
        _ => error.context(name),
    })?;
    model::conclude(&model, &args.output, global)
}
