//! `pal wmi`: weighted model integration problems, one after the other.
//!
//! A problem is solved on a pool of threads of its own while this thread waits, so that limits and Ctrl-C take effect.
//! Work that passes a limit is stopped; if it takes long to stop, its pool is abandoned, and the next problem gets a new
//! one.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pal::interrupt::Task;
use pal::moments::Method;
use pal::number::{Rational, to_f64};
use pal::wmi::{Answer, Problem, Solution};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;

use super::wmi_file::{Entry, entries};
use crate::input::{self, ExpectedText};
use crate::limits::{self, GLANCE, MemoryWatch};
use crate::numbers::{bound, finite, readable};
use crate::options::method::MethodOptions;
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Solve weighted model integration problems
///
/// FILE holds one problem in JSON per line, or one density file of pywmi or wmi-pa. Answers are printed in the order of
/// the file: the weighted volume of the support with a bound on its error, and that of the support and each query
/// together. If a problem has no answer, its line says why, and the next problem follows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal wmi problems.jsonl\n  \
    pal wmi problems.jsonl --exact --json > answers.jsonl\n  \
    pal wmi density.json --integrator rejection --samples 100000 --seed 7\n  \
    pal wmi problems.jsonl --time-limit 10\n\n\
    Exit codes: 0 done, 1 some problems have no answer, or Ctrl-C, 2 error")]
pub struct Args {
    /// The problems: JSON lines, or one density file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    method: MethodOptions,
}

const WANTED: ExpectedText =
    ExpectedText { file: "a file of problems in JSON", content: "problems in JSON, one per line, or a density file" };

/// How long work that was told to stop may take to do so.
const PATIENCE: Duration = Duration::from_millis(500);

/// Columns are aligned for names up to this length.
const WIDEST: usize = 40;

/// How the work on a problem ended.
enum Ending {
    Solved(Solution),
    /// There is no answer, for this reason.
    Failed(String),
    Interrupted,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    value: Option<f64>,
    exact: Option<String>,
    error_bound: Option<f64>,
    queries: Vec<QueryAnswer>,
    cells: Option<usize>,
    simplices: Option<usize>,
    seconds: f64,
    status: &'a str,
}

#[derive(Serialize)]
struct QueryAnswer {
    value: Option<f64>,
    exact: Option<String>,
    probability: Option<f64>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let method = args.method.method()?;
    let text = input::read(&args.file, &WANTED).with_context(|| input::name(&args.file))?;
    let entries = entries(&text);
    drop(text);
    limits::keep_time();
    let interrupted = limits::listen();
    let mut solver = Solver { method, limit: global.time_limit, threads: global.threads.into(), pool: None };
    let watched = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let progress = Progress::of(entries.len(), "solving", !global.quiet && !watched);
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0).clamp(4, WIDEST);
    let mut out = output::stdout();
    if !global.json {
        writeln!(
            out,
            "{:width$}  {:<24} {:>11} {:>8} {:>9}  status",
            "name", "value", "error bound", "cells", "seconds"
        )?;
    }
    let mut outcome = Outcome::Done;
    for entry in entries {
        out.flush()?;
        let name = entry.name.clone();
        let (ending, seconds) = solver.solve(entry, interrupted)?;
        let ending = check_range(ending, args.method.exact);
        if !matches!(ending, Ending::Solved(_)) {
            outcome = Outcome::Stopped;
        }
        let line = line(&name, &ending, seconds, args.method.exact);
        if global.json {
            output::json_line(&mut out, &line)?;
        } else {
            print(&mut out, width, &line, &ending, args.method.exact)?;
        }
        progress.step();
        if matches!(ending, Ending::Interrupted) {
            break;
        }
    }
    drop(progress);
    out.flush()?;
    Ok(outcome)
}

/// Solves problems one at a time.
struct Solver {
    method: Method,
    limit: Option<Duration>,
    threads: usize,
    /// Idle threads; none while they work, or if they were abandoned.
    pool: Option<Crew>,
}

/// Threads, and the task that they work for.
struct Crew {
    pool: ThreadPool,
    task: Task,
}

impl Solver {
    /// Solves a problem, and returns how long that took, in seconds.
    fn solve(&mut self, entry: Entry, interrupted: &AtomicBool) -> Result<(Ending, f64)> {
        let memory = MemoryWatch::begin();
        let crew = match self.pool.take() {
            Some(crew) => crew,
            None => self.new_pool()?,
        };
        let start = Instant::now();
        // A limit beyond the range of the clock is no limit.
        let deadline = self.limit.and_then(|limit| start.checked_add(limit));
        let (sender, receiver) = mpsc::channel();
        let method = self.method;
        let task = crew.task.clone();
        crew.pool.spawn(move || {
            // The receiver is gone if a limit was reached.
            if let Ok(answer) = task.run(|| attempt(&entry, method)) {
                let _ = sender.send(answer);
            }
        });
        loop {
            let spent = || start.elapsed().as_secs_f64();
            if interrupted.load(Ordering::SeqCst) {
                return Ok((Ending::Interrupted, spent()));
            }
            let now = Instant::now();
            let late = deadline.is_some_and(|deadline| now >= deadline);
            if late || memory.is_beyond() {
                let why = match late {
                    true => format!("time limit of {} s reached", self.limit.unwrap_or_default().as_secs_f64()),
                    false => "memory limit reached".to_string(),
                };
                let spent = spent();
                self.stop(crew, &receiver);
                return Ok((Ending::Failed(why), spent));
            }
            match receiver.recv_timeout(deadline.map_or(GLANCE, |deadline| GLANCE.min(deadline - now))) {
                Ok(answer) => {
                    self.pool = Some(crew);
                    return Ok(answer);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let broken = "the computation failed unexpectedly; this is a mistake in pal, please report it";
                    return Ok((Ending::Failed(broken.to_string()), spent()));
                }
            }
        }
    }

    /// Stops the work on a problem and keeps its threads, or abandons them if they do not stop soon.
    fn stop(&mut self, crew: Crew, receiver: &Receiver<(Ending, f64)>) {
        crew.task.stop();
        if !matches!(receiver.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
            crew.task.resume();
            self.pool = Some(crew);
        }
    }

    fn new_pool(&self) -> Result<Crew> {
        let task = Task::default();
        let entering = task.clone();
        // A panic has printed its message already; it drops the sender, which the waiting thread notices.
        let builder = ThreadPoolBuilder::new().num_threads(self.threads).panic_handler(|_| {});
        let pool = builder.start_handler(move |_| entering.enter()).build();
        Ok(Crew { pool: pool.context("cannot start the threads; try a smaller --threads")?, task })
    }
}

/// Reads and solves a problem. The time, in seconds, does not include the reading.
fn attempt(entry: &Entry, method: Method) -> (Ending, f64) {
    let problem = match Problem::parse(&entry.text) {
        Ok(problem) => problem,
        Err(error) => return (Ending::Failed(entry.explain(&error)), 0.0),
    };
    let start = Instant::now();
    let solution = problem.solve(method);
    let seconds = start.elapsed().as_secs_f64();
    (solution.map_or_else(|error| Ending::Failed(error.to_string()), Ending::Solved), seconds)
}

/// Turns a value beyond float64 into a failure, unless fractions were asked for.
fn check_range(ending: Ending, exact: bool) -> Ending {
    match ending {
        Ending::Solved(solution)
            if !exact && std::iter::once(&solution.total).chain(&solution.queries).any(|a| !a.value.is_finite()) =>
        {
            Ending::Failed("the value is beyond the range of float64; --exact gives it as a fraction".to_string())
        }
        other => other,
    }
}

fn line<'a>(name: &'a str, ending: &'a Ending, seconds: f64, exact: bool) -> Line<'a> {
    let (solution, status) = match ending {
        Ending::Solved(solution) => (Some(solution), "ok"),
        Ending::Failed(why) => (None, why.as_str()),
        Ending::Interrupted => (None, "interrupted"),
    };
    // A value that happened to be computed exactly is only reported as exact if that was asked for.
    let fraction = |answer: &Answer| answer.exact.as_ref().filter(|_| exact).map(Rational::to_string);
    let queries = solution.into_iter().flat_map(|solution| {
        solution.queries.iter().map(|query| QueryAnswer {
            value: finite(query.value),
            exact: fraction(query),
            probability: probability(query, &solution.total),
        })
    });
    let total = solution.map(|solution| &solution.total);
    Line {
        name,
        value: total.and_then(|total| finite(total.value)),
        exact: total.and_then(fraction),
        error_bound: total.and_then(|total| finite(total.error)),
        queries: queries.collect(),
        cells: total.map(|total| total.cells),
        simplices: total.map(|total| total.simplices),
        seconds,
        status,
    }
}

/// The probability of a query, if the weighted volume of the support is not 0.
fn probability(query: &Answer, total: &Answer) -> Option<f64> {
    match (&query.exact, &total.exact) {
        (_, Some(total)) if total.is_zero() => None,
        (Some(query), Some(total)) => finite(to_f64(&(query / total))),
        _ => finite(query.value / total.value),
    }
}

fn print(out: &mut impl Write, width: usize, line: &Line, ending: &Ending, exact: bool) -> Result<()> {
    let Ending::Solved(solution) = ending else {
        writeln!(
            out,
            "{:width$}  {:<24} {:>11} {:>8} {:>9.4}  {}",
            line.name, "-", "-", "-", line.seconds, line.status
        )?;
        return Ok(());
    };
    let total = &solution.total;
    let (value, error) = (format!("{:?}", total.value), bound(total.error));
    let (cells, seconds) = (total.cells, line.seconds);
    writeln!(out, "{:width$}  {value:<24} {error:>11} {cells:>8} {seconds:>9.4}  {}", line.name, line.status)?;
    let fraction = |answer: &Answer| answer.exact.as_ref().filter(|_| exact).map(readable);
    if let Some(fraction) = fraction(total) {
        writeln!(out, "  exact {fraction}")?;
    }
    for (at, (answer, query)) in solution.queries.iter().zip(&line.queries).enumerate() {
        let value = fraction(answer).unwrap_or_else(|| format!("{:?}", answer.value));
        let probability = query.probability.map_or("undefined".to_string(), |p| format!("{p:?}"));
        writeln!(out, "  query {}: {value}, probability {probability}", at + 1)?;
    }
    Ok(())
}
