//! `pal`: regions under linear constraints, from the command line.
//!
//! This file is glue: it parses arguments, runs one command and maps its outcome to an exit code. Everything that
//! computes lives in the `pal` library.

mod commands;
mod densities;
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
mod points;
mod progress;
mod table;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use commands::{
    cells, check, compile, completions, data, demo, eval, fit, integrate, logprob, man, marginal, mode, model, moments,
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
#[command(name = "pal", version, about, long_about = LONG_ABOUT, after_help = EXIT_CODES, help_template = TEMPLATE)]
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

/// The commands by task, with an example each: clap lists them one below the other.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Look at a constraint:
  check       what kind of region it is       pal check map.geojson
  cells       its convex cells                pal cells room.smt2 --json
  volume      its exact volume                pal volume room.smt2
  plot        a picture of it or of a density pal plot map.geojson -o map.svg

Integrate over it:
  integrate   polynomials                     pal integrate room.smt2 --poly 'x^2*y'
  wmi         weighted model integration      pal wmi problem.json

Learn densities on it:
  fit         one density, from points        pal fit --constraint m.geojson --data w.csv -o w.safetensors
  train       a network                       pal train --constraint m.geojson --data w.csv --inputs v -o n.safetensors
  eval        how good a trained model is     pal eval net.safetensors --data test.csv
  predict     rows of inputs to densities     pal predict net.safetensors --data test.csv -o w.safetensors
  data        data to train on                pal data campus --people 60 -o w.csv

Ask densities:
  query       probabilities of events         pal query w.safetensors --event '(<= x 1)'
  logprob     log-densities of points         pal logprob w.safetensors --points w.csv
  sample      independent samples             pal sample w.safetensors -n 1000
  marginal    exact marginals                 pal marginal w.safetensors --variable x
  moments     means, covariances, entropies   pal moments w.safetensors --entropy
  mode        the most likely point           pal mode w.safetensors

Make densities by hand:
  compile     a family on a constraint        pal compile map.geojson -o family.safetensors
  model       a family with parameters        pal model family.safetensors --random 1 -o w.safetensors

And:
  demo        pictures of built-in examples   pal demo -o pictures
  completions completion in a shell           pal completions bash
  man         manual pages                    pal man train
  help        this text, or that of a command pal help train

Options:
{options}{after-help}";

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
    Man(man::Args),
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
        Command::Man(args) => man::run::<Cli>(&args),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_help_lists_every_command_once() {
        let listed =
            |name: &str| super::TEMPLATE.lines().filter(|line| line.split_whitespace().next() == Some(name)).count();
        for command in super::Cli::command().get_subcommands() {
            assert_eq!(listed(command.get_name()), 1, "{}", command.get_name());
        }
    }

    #[test]
    fn the_examples_in_the_help_are_command_lines() {
        let examples = super::TEMPLATE.lines().filter_map(|line| line.split_once(" pal ")).map(|(_, example)| example);
        let examples: Vec<&str> = examples.filter(|example| !example.starts_with("help")).collect();
        assert!(examples.len() > 20, "{examples:?}");
        for example in examples {
            let words = example.replace("'(<= x 1)'", "x").replace('\'', "");
            let parsed = super::Cli::command().try_get_matches_from(["pal"].into_iter().chain(words.split(' ')));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }
}
