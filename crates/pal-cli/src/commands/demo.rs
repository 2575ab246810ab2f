//! `pal demo`
use crate::{Global, Outcome};
use anyhow::Result;
use std::path::PathBuf;
/// Decompose
#[derive(clap::Args)]
pub struct Args {
    #[arg(long, short, default_value = "out")]
    output: PathBuf,
}
pub fn run(_args: &Args, _global: Global) -> Result<Outcome> {
    Ok(Outcome::Done)
}
