//! `pal train`: a network whose outputs are densities on a constraint.

use anyhow::{Result, bail, ensure};

use crate::learn::{self, Columns, Learning, RegionOptions, parse_names};
use crate::{Global, Outcome};

/// Train a network that predicts densities on a constraint
///
/// A fully connected network with ReLU maps the inputs of a row to the parameters of a density of its outputs. It is
/// trained by exact maximum likelihood, and the model with the best mean log-density on validation rows is kept. Rows
/// are divided as by `pal fit`. The file holds the network, the constraint, the compiled family and the scales of the
/// inputs. `pal predict` makes densities of it, `pal eval` evaluates it.
///
/// Rows can have regions of their own: with --windows each of them is a window of the map around the row's own place,
/// with --constraint-column the map that the row names, and with both a window of that map.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal train --constraint map.geojson --data windows.parquet --inputs x0,y0,x1,y1 --outputs x,y --group track \
    -o net.safetensors\n  \
    pal train --constraint star.smt2 --data star.csv --inputs x1,x2 --family sum-of-squares --degree 7 \
    --hidden 256,256 -o net.safetensors\n  \
    pal train --constraint map.geojson --data windows.csv --inputs x0,y0 --baseline mdn --components 50 \
    -o mdn.safetensors\n  \
    pal train --constraint map.geojson --data walks.csv --windows 1.5 --centre x0,y0 --heading hx,hy \
    --places x1,y1 --inputs x1,y1 --outputs x,y --group track -o net.safetensors\n  \
    pal train --constraint maps/ --constraint-column map --data rows.csv --inputs a,b --outputs x,y --group map \
    -o net.safetensors\n\n\
    Exit codes: 0 done, 1 stopped by Ctrl-C with the best model so far, 2 error")]
pub struct Args {
    /// The columns of the inputs
    #[arg(long, value_name = "NAMES", value_parser = parse_names)]
    inputs: std::vec::Vec<String>,
    /// The columns of the point, in the order of the variables of the constraint. If they are the variables in another
    /// order, the model has that order [default: the names of the variables]
    #[arg(long, value_name = "NAMES", value_parser = parse_names)]
    outputs: Option<std::vec::Vec<String>>,
    /// Units of the hidden layers
    #[arg(long, value_name = "N,N,...", default_value = "256,256", value_delimiter = ',')]
    hidden: Vec<usize>,
    #[command(flatten)]
    regions: RegionOptions,
    #[command(flatten)]
    learning: Learning,
}

/// The largest number of units of a hidden layer.
const MOST: usize = 1 << 16;

pub fn run(args: Args, global: Global) -> Result<Outcome> {
    let Args { inputs, outputs, hidden, regions, mut learning } = args;
    ensure!(
        hidden.iter().all(|units| (1..=MOST).contains(units)),
        "--hidden: give between 1 and {MOST} units per layer"
    );
    let outputs = match outputs {
        Some(names) => names,
        None if regions.has_folder() => {
            bail!("--constraint-column: the maps are read row by row; name the columns of the point with --outputs")
        }
        None => learning.variables()?,
    };
    learning.conditional = true;
    let columns = Columns { inputs, outputs };
    learning.regions = regions.plan(&columns)?;
    learn::conclude(learn::run(&learning, &columns, &hidden, global)?, global)
}
