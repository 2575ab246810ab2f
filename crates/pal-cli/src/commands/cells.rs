//! `pal cells`: the disjoint convex cells of a region, one after the other.
//!
//! The search runs on a thread of its own and hands cells over through a short queue. Memory stays small however many
//! cells there are, a slow reader slows the search down, and limits and Ctrl-C take effect even while a single cell
//! takes long.

use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::number::{Rational, to_f64};
use pal::region::{Cell, Region, RegionError};

use super::cell_text::{CellSummary, Simplex, Style};
use crate::input::Input;
use crate::limits::{self, GLANCE, MemoryWatch};
use crate::numbers::ExactSum;
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// List the disjoint convex cells of a region
///
/// Cells are printed as they are found, with coordinates in the order of the variables (`pal check` prints it). With
/// --json every line is one object whose `type` is `cell`, `simplex` or, last, `summary`. Ctrl-C stops the search; the
/// cells found so far and a summary are printed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal cells region.smt2\n  \
    pal cells map.geojson --knots 14 --triangulate --json > cells.jsonl\n  \
    pal cells large.smt2 --limit 1000 --time-limit 10\n\n\
    Exit codes: 0 done, 1 stopped by a limit or Ctrl-C, with the cells found so far, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// Split the bounding box by K equally spaced knots per axis, ends included
    #[arg(long, value_name = "K")]
    knots: Option<usize>,
    /// Cut every cell into simplices
    #[arg(long)]
    triangulate: bool,
    /// Print vertices as exact fractions too
    #[arg(long)]
    exact: bool,
    /// Stop after N cells
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
}

/// The largest number of cells that wait to be printed.
const QUEUE: usize = 64;

/// A cell with its volume and simplices, which take long to compute.
struct Found {
    cell: Cell,
    volume: Rational,
    /// Empty unless asked for.
    simplices: Vec<Vec<usize>>,
}

type Cells = Receiver<Result<Found, RegionError>>;

/// What ended the waiting for the next cell.
enum NextCell {
    Found(Result<Found, RegionError>),
    Stop(&'static str),
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    let region = args.input.region()?;
    let variables = region.constraint().clone();
    let (cells, searcher) = search(region, args.knots, args.triangulate);
    limits::keep_time();
    let (interrupted, memory) = (limits::listen(), MemoryWatch::begin());
    let watched = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let progress = Progress::new("searching", !global.quiet && !watched);

    let mut out = output::stdout();
    let style = Style { json: global.json, exact: args.exact, constraint: &variables };
    let (mut count, mut simplices, mut sum) = (0, 0, ExactSum::default());
    let stop = loop {
        // A limit beyond the range of the clock is no limit.
        let deadline = global.time_limit.and_then(|limit| start.checked_add(limit));
        let Found { cell, volume, simplices: corners } = match next(&cells, &mut out, deadline, interrupted, &memory)? {
            NextCell::Stop(reason) => break reason,
            NextCell::Found(Err(error)) => return Err(error).with_context(|| args.input.name()),
            NextCell::Found(Ok(_)) if args.limit.is_some_and(|limit| count >= limit.get()) => break "cell-limit",
            NextCell::Found(Ok(found)) => found,
        };
        style.cell(&mut out, count, &cell, &volume)?;
        for corners in &corners {
            style.simplex(&mut out, &Simplex { index: simplices, cell: count, corners }, &cell)?;
            simplices += 1;
        }
        sum.add(volume);
        count += 1;
        progress.step();
    };
    drop(progress);
    // A search that panicked must not look complete.
    if stop == "complete" && searcher.join().is_err() {
        bail!("{}: the search failed unexpectedly; this is a mistake in pal, please report it", args.input.name());
    }
    let total = sum.total();
    let summary = CellSummary {
        kind: "summary",
        cells: count,
        simplices: args.triangulate.then_some(simplices),
        volume: to_f64(&total),
        volume_exact: total.to_string(),
        stop,
        seconds: start.elapsed().as_secs_f64(),
    };
    style.summary(&mut out, &summary, &total)?;
    out.flush()?;
    Ok(if stop == "complete" { Outcome::Done } else { Outcome::Stopped })
}

/// Starts the search on a thread of its own, which ends when the search does or when the receiver is dropped.
fn search(region: Region, knots: Option<usize>, triangulate: bool) -> (Cells, JoinHandle<()>) {
    let (sender, receiver) = mpsc::sync_channel(QUEUE);
    let searcher = thread::spawn(move || {
        let region = match knots.map(|count| region.with_uniform_knots(count)).unwrap_or(Ok(region)) {
            Ok(region) => region,
            Err(error) => return drop(sender.send(Err(error))),
        };
        for cell in region.cells() {
            let found = cell.map_err(RegionError::from).map(|cell| Found {
                volume: cell.exact_volume(),
                simplices: if triangulate { cell.polytope().triangulate() } else { Vec::new() },
                cell,
            });
            if sender.send(found).is_err() {
                return;
            }
        }
    });
    (receiver, searcher)
}

/// Waits for a cell, the end, the deadline or Ctrl-C. Standard output is flushed before waiting.
fn next(
    cells: &Cells,
    out: &mut impl Write,
    deadline: Option<Instant>,
    interrupted: &AtomicBool,
    memory: &MemoryWatch,
) -> Result<NextCell> {
    loop {
        if interrupted.load(Ordering::SeqCst) {
            return Ok(NextCell::Stop("interrupted"));
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(NextCell::Stop("time-limit"));
        }
        let found = match cells.try_recv() {
            Ok(found) => Ok(found),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {
                out.flush()?;
                cells.recv_timeout(deadline.map_or(GLANCE, |deadline| GLANCE.min(deadline - now)))
            }
        };
        match found {
            Ok(found) => return Ok(NextCell::Found(found)),
            Err(RecvTimeoutError::Disconnected) => return Ok(NextCell::Stop("complete")),
            Err(RecvTimeoutError::Timeout) if memory.is_beyond() => return Ok(NextCell::Stop("memory-limit")),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
