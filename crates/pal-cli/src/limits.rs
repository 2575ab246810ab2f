//! Ends of a run before its work is done: limits on time and memory, and Ctrl-C.
//!
//! All work of the library belongs to one task, which a thread of its own stops when a limit is passed. Commands that
//! can do better, because they have results to show by then, say so and look at the limits themselves. A run that does
//! not stop in spite of all is ended, so that no input takes more than its limits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use pal::interrupt::{Interrupted, Task};
use pal_system::{files, memory};

use crate::output;

/// The longest time for which Ctrl-C goes unnoticed.
pub const GLANCE: Duration = Duration::from_millis(50);

/// How long a run may take to stop before it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// A run that takes this many times the memory it may, and at least [`MARGIN`] bytes more, is ended at once.
const FAR_BEYOND: f64 = 1.2;
const MARGIN: f64 = 5e8;

/// The fraction of the memory that is free when a run begins which it may take by default.
const DEFAULT_FRACTION: f64 = 0.75;

/// Reads a number of seconds.
pub fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().map_err(|_| anyhow!("not a number of seconds"))?;
    if seconds.is_nan() || seconds < 0.0 {
        bail!("give a number of seconds of at least 0, such as 2.5");
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Reads an amount of memory: bytes, or a number with K, M, G or T for powers of 1024.
pub fn parse_memory(text: &str) -> Result<u64> {
    let (number, unit) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 1u64 << 10),
        Some('M') => (&text[..text.len() - 1], 1 << 20),
        Some('G') => (&text[..text.len() - 1], 1 << 30),
        Some('T') => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * unit as f64) as u64),
        _ => bail!("give an amount of memory, such as 500M or 8G"),
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether the command looks for Ctrl-C itself.
static LISTENING: AtomicBool = AtomicBool::new(false);
/// Whether the command looks at the limit on time itself.
static KEEPING_TIME: AtomicBool = AtomicBool::new(false);
/// Whether the command looks at the limit on memory itself.
static KEEPING_MEMORY: AtomicBool = AtomicBool::new(false);
static LATE: AtomicBool = AtomicBool::new(false);
static MEMORY_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// Why the task was stopped: an index of [`REASONS`], 0 if it was not.
static REASON: AtomicU8 = AtomicU8::new(0);
static TASK: OnceLock<Task> = OnceLock::new();
/// When the limit on time is reached, if there is one.
static DEADLINE: OnceLock<Instant> = OnceLock::new();

const REASONS: [&str; 4] = ["", "interrupted", "the time limit was reached", "the memory limit was reached"];

/// The memory that the run may take, in bytes.
pub fn memory() -> f64 {
    MEMORY_LIMIT.load(Ordering::SeqCst) as f64
}

/// The task that all work of the library belongs to.
pub fn task() -> &'static Task {
    TASK.get_or_init(Task::default)
}

/// When the limit on time is reached, if there is one.
pub fn deadline() -> Option<Instant> {
    DEADLINE.get().copied()
}

/// Begins to watch over the run.
pub fn begin(time: Option<Duration>, most_memory: Option<u64>) -> Result<()> {
    let start = Instant::now();
    let limit = most_memory.unwrap_or_else(|| (memory::free() as f64 * DEFAULT_FRACTION) as u64);
    MEMORY_LIMIT.store(limit.max(1), Ordering::SeqCst);
    ctrlc::set_handler(|| {
        // The second signal ends the process at once.
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            end(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    let deadline = time.and_then(|time| start.checked_add(time));
    if let Some(deadline) = deadline {
        DEADLINE.get_or_init(|| deadline);
    }
    let watch = std::thread::Builder::new().name("limits".to_string());
    watch.spawn(move || watch_over(deadline)).context("cannot start a thread")?;
    Ok(())
}

fn watch_over(deadline: Option<Instant>) {
    let mut stopped_at: Option<Instant> = None;
    loop {
        std::thread::sleep(GLANCE);
        let (used, limit) = (memory::used() as f64, MEMORY_LIMIT.load(Ordering::SeqCst) as f64);
        let beyond = used > limit;
        let far_beyond = used > (FAR_BEYOND * limit).max(limit + MARGIN);
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        LATE.store(late, Ordering::SeqCst);
        let reason = match () {
            () if beyond && (far_beyond || !KEEPING_MEMORY.load(Ordering::SeqCst)) => 3,
            () if late && !KEEPING_TIME.load(Ordering::SeqCst) => 2,
            () if INTERRUPTED.load(Ordering::SeqCst) && !LISTENING.load(Ordering::SeqCst) => 1,
            () => 0,
        };
        if reason > 0 && stopped_at.is_none() {
            REASON.store(reason, Ordering::SeqCst);
            task().stop();
            stopped_at = Some(Instant::now());
        }
        let overdue = stopped_at.is_some_and(|at| at.elapsed() > GRACE);
        if overdue || far_beyond && stopped_at.is_some_and(|at| at.elapsed() > GLANCE) {
            output::note(why());
            end(1);
        }
    }
}

/// Ends the process without leaving temporary files behind.
fn end(code: i32) -> ! {
    files::remove_temporaries();
    std::process::exit(code)
}

/// Runs work on a thread of the task. `None` if it was stopped, after a note that says why.
pub fn run<T>(work: impl FnOnce() -> T) -> Option<T> {
    task().enter();
    match task().run(work) {
        Ok(done) => Some(done),
        Err(Interrupted) => {
            output::note(why());
            None
        }
    }
}

fn why() -> &'static str {
    REASONS[usize::from(REASON.load(Ordering::SeqCst)).min(REASONS.len() - 1)]
}

/// Leaves Ctrl-C to the command: the first one sets the flag that is returned, the second one ends the process.
pub fn listen() -> &'static AtomicBool {
    LISTENING.store(true, Ordering::SeqCst);
    &INTERRUPTED
}

/// Leaves the limit on time to the command: the flag that is returned tells whether it is passed.
pub fn keep_time() -> &'static AtomicBool {
    KEEPING_TIME.store(true, Ordering::SeqCst);
    &LATE
}

/// The limit on memory, for a command that looks at it itself. Far beyond the limit the run is stopped all the same.
pub struct MemoryWatch {
    /// What was taken when the watch began. Memory that is free again is not always given back to the system.
    retained: u64,
}

impl MemoryWatch {
    /// Leaves the limit to the command, from now on.
    pub fn begin() -> MemoryWatch {
        KEEPING_MEMORY.store(true, Ordering::SeqCst);
        MemoryWatch { retained: memory::used() }
    }

    /// Whether the run takes more than it may, and not only because of what it took before.
    pub fn is_beyond(&self) -> bool {
        memory::used() > MEMORY_LIMIT.load(Ordering::SeqCst).max(self.retained + self.retained / 10)
    }
}

/// Fails if something would take more memory than the run may take.
pub fn check_memory(bytes: f64, what: &str) -> Result<()> {
    let limit = MEMORY_LIMIT.load(Ordering::SeqCst) as f64;
    if bytes <= limit {
        return Ok(());
    }
    bail!(
        "{what} would take about {} of memory; the limit is {}, and --memory-limit sets another one",
        memory::amount(bytes),
        memory::amount(limit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read() {
        assert_eq!(parse_memory("1024").unwrap(), 1024);
        assert_eq!(parse_memory("1.5G").unwrap(), 3 << 29);
        assert_eq!(parse_memory("2k").unwrap(), 2048);
        for text in ["", "G", "-1", "0", "nan", "inf", "1X", "é"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }
}
