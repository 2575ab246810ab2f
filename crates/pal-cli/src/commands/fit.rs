//! `pal fit`: one density, by maximum likelihood.

use anyhow::Result;

use crate::learn::{self, Columns, Learning, Summary, parse_names};
use crate::{Global, Outcome};

/// Fit a density on a constraint to points
///
/// Finds the parameters that make the points of a table most likely, and keeps those with the best mean log-density on
/// validation rows. Without --val-data the table is divided 70 : 15 : 15 into training, validation and test; rows of
/// one --group stay together. The file is a model like those of `pal model`: all other commands answer questions about
/// it. With --baseline a model without guarantees is trained by the same loop, and the fraction of its mass outside the
/// constraint is measured.
///
/// While it runs, its state is kept in MODEL.checkpoint: after a crash or Ctrl-C, --resume continues to the very same
/// model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal fit --constraint map.geojson --data tracks.csv --outputs x,y --group trajectory_id -o density.safetensors\n  \
    pal fit --constraint map.geojson --data tracks.csv --knots 20 --components 16 --json -o density.safetensors\n  \
    pal fit --constraint map.geojson --data tracks.csv --baseline gmm --components 100 -o gmm.safetensors\n\n\
    Exit codes: 0 done, 1 stopped by Ctrl-C with the best model so far, 2 error")]
pub struct Args {
    /// The columns of the point, in the order of the variables of the constraint. If they are the variables in another
    /// order, the model has that order [default: the names of the variables]
    #[arg(long, alias = "columns", value_name = "NAMES", value_parser = parse_names)]
    outputs: Option<std::vec::Vec<String>>,
    #[command(flatten)]
    learning: Learning,
}

pub fn run(args: Args, global: Global) -> Result<Outcome> {
    learn::conclude(summary(args, global)?, global)
}

/// Fits and returns the summary, without printing it.
pub fn summary(args: Args, global: Global) -> Result<Option<Summary>> {
    let Args { outputs, learning } = args;
    let outputs = match outputs {
        Some(names) => names,
        None => learning.variables()?,
    };
    learn::run(&learning, &Columns { inputs: Vec::new(), outputs }, &[], global)
}
