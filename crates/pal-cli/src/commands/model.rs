//! `pal model`: adds parameters to a compiled family.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pal::density::DensityError;
use pal_burn::AnyFamily;
use serde::Serialize;

use crate::densities::AnyModel;
use crate::input;
use crate::model_file::{check_output, load_family};
use crate::numbers::counted;
use crate::progress::Progress;
use crate::table::Table;
use crate::{Global, Outcome, output};

/// Add parameters to a compiled family
///
/// Each row of parameters is one density, and the other commands answer questions about them. Parameters come from a
/// table with one row per density, or are drawn at random: independent standard normal numbers.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal model map.safetensors --random 1 -o model.safetensors\n  \
    pal model map.safetensors --random 1 --rows 16 -o models.safetensors\n  \
    pal model map.safetensors --params params.npy -o model.safetensors\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The compiled family, made by `pal compile`; a model works too, of which only the family is used
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    params: ParamsOptions,
    /// How many densities are drawn
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "params")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// The model, a .safetensors file
    #[arg(long, short, value_name = "MODEL")]
    output: PathBuf,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct ParamsOptions {
    /// Draw parameters at random; the same seed gives the same parameters
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// A table of parameters, .csv or .npy: one row per density
    #[arg(long, value_name = "TABLE")]
    params: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    output: String,
    rows: usize,
    parameters: usize,
}

/// The largest number of parameters of all rows together.
const MOST: usize = 1 << 28;

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    check_output(&args.output)?;
    let _progress = Progress::waiting("making the model", !global.quiet);
    let family = load_family(&args.file)?;
    let model = match (&args.params.params, args.params.random) {
        (Some(table), _) => from_table(family, table)?,
        (None, seed) => {
            let rows = args.rows as usize;
            let size = rows.checked_mul(family.num_params());
            ensure!(size.is_some_and(|size| size <= MOST), "--rows {rows}: too many parameters; make several models");
            let params = family.random_params(rows, seed.unwrap_or(0));
            AnyModel::new(family, params).with_context(|| args.file.display().to_string())?
        }
    };
    conclude(&model, &args.output, global)
}

/// Writes a model and reports what was written.
pub fn conclude(model: &AnyModel, path: &Path, global: Global) -> Result<Outcome> {
    output::replace(path, &model.to_bytes()?)?;
    let (rows, parameters) = (model.rows(), model.num_params());
    let output = path.display().to_string();
    let mut out = output::stdout();
    if global.json {
        output::json_line(&mut out, &Report { output, rows, parameters })?;
    } else if !global.quiet {
        let densities = if rows == 1 { "1 density".to_string() } else { format!("{rows} densities") };
        writeln!(out, "{output}: {densities}, {} each", counted(parameters, "parameter"))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Makes a model with the parameters of a table. Errors name the table, the row, counted from 0 as `--row` does, and
/// the column by its name or counted from 1.
fn from_table(family: AnyFamily, path: &Path) -> Result<AnyModel> {
    let table = Table::read(path)?;
    let make = || -> Result<AnyModel> {
        let wanted = family.num_params();
        ensure!(
            table.columns == wanted,
            "{} per row, but the family has {}",
            counted(table.columns, "column"),
            counted(wanted, "parameter")
        );
        ensure!(table.rows() > 0, "no rows; give one row of parameters per density");
        match AnyModel::new(family, table.values.clone()) {
            Ok(model) => Ok(model),
            Err(DensityError::Parameter { row, column, value }) => {
                let name = match &table.names {
                    Some(names) => format!("`{}`", names[column]),
                    None => (column + 1).to_string(),
                };
                bail!("row {row} (counted from 0), column {name}: {value}; parameters must be finite")
            }
            Err(other) => Err(other.into()),
        }
    };
    make().with_context(|| input::name(path))
}
