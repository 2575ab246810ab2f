//! `pal`: regions under linear constraints, from the command line.
//!
//! This file is glue: it parses arguments, runs one command and maps its outcome to an exit code. Everything that
//! computes lives in the `pal` library.

mod commands;
mod family;
mod files;
mod input;
mod learn;
mod limits;
mod listing;
mod model_file;
mod numbers;
mod options;
mod output;
mod picture;
mod progress;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use commands::{
    cells, check, compile, completions, data, demo, eval, fit, integrate, logprob, marginal, mode, model, moments,
    plot, predict, query, sample, train, volume, wmi,
};

/// How a run that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run gave everything that was asked for: exit code 0.
    Done,
    /// A limit or Ctrl-C stopped the run, or some problems were left unsolved: exit code 1, with the results so far.
    Stopped,
}

/// The exit codes, shown at the end of every help text.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 stopped by a limit or Ctrl-C, or some problems unsolved (results \
    so far are printed), 2 error";

#[derive(Parser)]
#[command(name = "pal", version, about, long_about = LONG_ABOUT, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "Exact regions, integrals and densities under linear constraints.\n\n\
    Reads a constraint (SMT-LIB 2 formulas, GeoJSON maps), tells what kind of region it describes, cuts it into \
    disjoint convex cells with exact rational vertices, integrates polynomials over it, and draws it. Compiles \
    families of densities that have no mass outside the constraint, and answers questions about them: probabilities, samples, \
    marginals, modes, moments. Fits such densities to data, or trains networks that predict them, by exact maximum \
    likelihood. Solves weighted model integration problems.\n\n\
    Variables are in the order in which the constraint declares them; in maps x comes before y.";

/// Options of all commands.
#[derive(clap::Args, Clone, Copy)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=1024))]
    pub threads: u16,
    /// Print no progress and no notes on standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Stop after S seconds; `wmi` and `mode` give each problem or row so long
    #[arg(long, global = true, value_name = "S", allow_hyphen_values = true, value_parser = limits::parse_seconds)]
    pub time_limit: Option<Duration>,
    /// Stop beyond this much memory, such as 500M or 8G [default: three quarters of what is free]
    #[arg(long, global = true, value_name = "SIZE", allow_hyphen_values = true, value_parser = limits::parse_memory)]
    pub memory_limit: Option<u64>,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Cells(cells::Args),
    Volume(volume::Args),
    Integrate(integrate::Args),
    Wmi(wmi::Args),
    Compile(compile::Args),
    Model(model::Args),
    Sample(sample::Args),
    Query(query::Args),
    Marginal(marginal::Args),
    Mode(mode::Args),
    Moments(moments::Args),
    Logprob(logprob::Args),
    Fit(fit::Args),
    Train(train::Args),
    Eval(eval::Args),
    Predict(predict::Args),
    Data(data::Args),
    Plot(plot::Args),
    Demo(demo::Args),
    Completions(completions::Args),
}

fn run(cli: Cli) -> Result<Outcome> {
    limits::begin(cli.global.time_limit, cli.global.memory_limit)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cli.global.threads.into());
    let pool = pool.start_handler(|_| limits::task().enter());
    pool.build_global().context("cannot start the threads; try a smaller --threads")?;
    limits::run(|| command(cli)).unwrap_or(Ok(Outcome::Stopped))
}

fn command(cli: Cli) -> Result<Outcome> {
    match cli.command {
        Command::Check(args) => check::run(&args, cli.global),
        Command::Cells(args) => cells::run(&args, cli.global),
        Command::Volume(args) => volume::run(&args, cli.global),
        Command::Integrate(args) => integrate::run(&args, cli.global),
        Command::Wmi(args) => wmi::run(&args, cli.global),
        Command::Compile(args) => compile::run(&args, cli.global),
        Command::Model(args) => model::run(&args, cli.global),
        Command::Sample(args) => sample::run(&args, cli.global),
        Command::Query(args) => query::run(&args, cli.global),
        Command::Marginal(args) => marginal::run(&args, cli.global),
        Command::Mode(args) => mode::run(&args, cli.global),
        Command::Moments(args) => moments::run(&args, cli.global),
        Command::Logprob(args) => logprob::run(&args, cli.global),
        Command::Fit(args) => fit::run(args, cli.global),
        Command::Train(args) => train::run(args, cli.global),
        Command::Eval(args) => eval::run(&args, cli.global),
        Command::Predict(args) => predict::run(&args, cli.global),
        Command::Data(args) => data::run(&args, cli.global),
        Command::Plot(args) => plot::run(&args, cli.global),
        Command::Demo(args) => demo::run(&args, cli.global),
        Command::Completions(args) => completions::run::<Cli>(&args),
    }
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Stopped) => ExitCode::from(1),
        // The reader of our output has closed it; that is no error.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}
