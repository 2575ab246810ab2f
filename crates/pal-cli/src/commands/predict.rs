//! `pal predict`: the densities that a network gives for rows of inputs.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::model;
use crate::learn::{Data, Saved, parse_names};
use crate::model_file::check_output;
use crate::progress::Progress;
use crate::table::dataset::{ColumnNames, Dataset};
use crate::{Global, Outcome};

/// Turn rows of inputs into densities
///
/// Applies a network of `pal train` to every row of a table. The result is a model with one density for each row, which
/// all other commands take: sample from it, or ask for probabilities, modes and marginals with --row.
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
    /// The densities, a .safetensors file
    #[arg(long, short, value_name = "MODEL")]
    output: PathBuf,
}

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
    let dataset = Dataset::read(&args.data, ColumnNames { numbers: inputs, text: None })?;
    if let Some(at) = dataset.numbers.iter().position(|value| !value.is_finite()) {
        let place = dataset.place(at / given);
        bail!("{}: {place}, column `{}`: {}", args.data.display(), inputs[at % given], dataset.numbers[at]);
    }
    ensure!(dataset.rows() > 0, "{}: no rows", args.data.display());
    // Only the inputs are used; the points give the number of rows.
    let dimension = known.outputs.len();
    let data = Data { points: vec![0.0; dataset.rows() * dimension], dimension, inputs: dataset.numbers };
    let model = saved.densities(&data).with_context(|| name)?;
    model::conclude(&model, &args.output, global)
}
