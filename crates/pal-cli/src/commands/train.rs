//! `pal train`: a network whose outputs are densities on a constraint.

use anyhow::{Result, ensure};

use crate::learn::{self, Columns, Learning, parse_names};
use crate::{Global, Outcome};

/// Train a network that predicts densities on a constraint
///
/// A fully connected network with ReLU maps the inputs of a row to the parameters of a density of its outputs. It is
/// trained by exact maximum likelihood, and the model with the best mean log-density on validation rows is kept. Rows
/// are divided as by `pal fit`. The file holds the network, the constraint, the compiled family and the scales of the
/// inputs. `pal predict` makes densities of it, `pal eval` evaluates it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal train --constraint map.geojson --data windows.parquet --inputs x0,y0,x1,y1 --outputs x,y --group track \
    -o net.safetensors\n  \
    pal train --constraint star.smt2 --data star.csv --inputs x1,x2 --family sum-of-squares --degree 7 \
    --hidden 256,256 -o net.safetensors\n  \
    pal train --constraint map.geojson --data windows.csv --inputs x0,y0 --baseline mdn --components 50 \
    -o mdn.safetensors\n\n\
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
    learning: Learning,
}

/// The largest number of units of a hidden layer.
const MOST: usize = 1 << 16;

pub fn run(args: Args, global: Global) -> Result<Outcome> {
    let Args { inputs, outputs, hidden, mut learning } = args;
    ensure!(
        hidden.iter().all(|units| (1..=MOST).contains(units)),
        "--hidden: give between 1 and {MOST} units per layer"
    );
    let outputs = match outputs {
        Some(names) => names,
        None => learning.variables()?,
    };
    learning.conditional = true;
    learn::conclude(learn::run(&learning, &Columns { inputs, outputs }, &hidden, global)?, global)
}
