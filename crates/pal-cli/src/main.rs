//! `pal`: regions under linear constraints, from the command line.
//!
//! This file is glue: it parses arguments, runs one command and maps what became of it to an exit code. Everything that
//! computes lives in the `pal` library.

mod commands;
mod family;
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

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use commands::{
    cells, check, compile, completions, data, demo, eval, fit, integrate, logprob, marginal, mode, model, moments,
    plot, predict, query, sample, train, volume, wmi,
};

/// How a run ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was asked for: exit code 0.
    Done,
    /// Stopped by a limit or by Ctrl-C, or some problems left unsolved: exit code 1, with what there was.
    Stopped,
}

/// The exit codes, shown at the end of every help text.
pub const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 stopped by a limit or Ctrl-C, or some problems left unsolved, with what there was, 2 error";

#[derive(Parser)]
#[command(name = "pal", version, about, long_about = LONG_ABOUT, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const LONG_ABOUT: &str = "Exact regions, integrals and densities under linear constraints.\n\n\
    Reads a constraint (SMT-LIB 2 formulas, GeoJSON maps), tells what kind of region it describes, cuts it into disjoint \
    convex cells with exact rational vertices, integrates polynomials over it, and draws it. Compiles families of \
    densities on it, which give no mass to anything else, and answers questions about them: probabilities, samples, marginals, \
    modes, moments. Trains such densities, given by data alone or by a network, by exact maximum likelihood. Solves weighted model integration problems.";

/// Options of all commands.
#[derive(clap::Args, Clone, Copy)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub threads: u16,
    /// No progress and no notes on standard error
    #[arg(long, short, global = true)]
    pub quiet: bool,
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
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cli.global.threads.into());
    pool.build_global().context("cannot start the threads; try a smaller --threads")?;
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
        // Whoever reads our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(2)
        }
    }
}
