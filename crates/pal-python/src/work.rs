//! Work without the interpreter, on all cores, that Ctrl-C stops.
//!
//! Every call borrows a pool of threads that nobody else uses at the time, so that stopping one call stops no other.
//! Pools are kept for the next call. After a fork the child has none of its parent's threads; it starts with new pools.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pal::interrupt::Task;
use pal_system::memory;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::Report;

/// How long a signal may go unnoticed.
const GLANCE: Duration = Duration::from_millis(50);
/// Work shorter than this shows no progress.
const PATIENCE: Duration = Duration::from_millis(1000);

/// Work is stopped when less memory than this is free, before the system ends the whole process.
const RESERVE: u64 = 256 << 20;

/// Fails if a result of so many numbers does not fit into the memory that is free.
pub fn check_room(numbers: f64, what: &str) -> PyResult<()> {
    let (bytes, free) = (8.0 * numbers, memory::free() as f64);
    if bytes <= free {
        return Ok(());
    }
    let (bytes, free) = (memory::amount(bytes), memory::amount(free));
    Err(PyMemoryError::new_err(format!("{what} would take about {bytes} of memory, and {free} are free")))
}

/// Threads that work for one task at a time.
struct Crew {
    task: Task,
    pool: ThreadPool,
}

/// Crews at rest, and the process that they belong to.
static AT_REST: Mutex<(u32, Vec<Crew>)> = Mutex::new((0, Vec::new()));

impl Crew {
    fn hire() -> PyResult<Crew> {
        let process = std::process::id();
        {
            let mut rest = AT_REST.lock().unwrap_or_else(PoisonError::into_inner);
            if rest.0 != process {
                // Threads of the parent: there is nothing to wait for.
                std::mem::forget(std::mem::take(&mut rest.1));
                rest.0 = process;
            }
            if let Some(crew) = rest.1.pop() {
                return Ok(crew);
            }
        }
        let task = Task::default();
        let entering = task.clone();
        let pool = ThreadPoolBuilder::new().start_handler(move |_| entering.enter()).build();
        let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
        Ok(Crew { task, pool })
    }

    fn rest(self) {
        self.task.resume();
        let mut rest = AT_REST.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.0 == std::process::id() {
            rest.1.push(self);
        }
    }
}

/// Runs work with the interpreter released. A signal handler that raises, as that of Ctrl-C does, ends it with that
/// exception.
pub fn run<T: Send, E: Report + Send>(
    py: Python<'_>,
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let crew = Crew::hire()?;
    let outcome = py.detach(|| wait(&crew, what, work));
    crew.rest();
    outcome
}

fn wait<T: Send, E: Report + Send>(
    crew: &Crew,
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let task = &crew.task;
    crew.pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            // A panic, which would be a mistake, unwinds through the scope; the channel then closes.
            let _ = sender.send(task.run(work));
        });
        let start = Instant::now();
        let mut bar: Option<Py<PyAny>> = None;
        let outcome = loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(Ok(result)) => break result.map_err(Report::report),
                Ok(Err(interrupted)) => break Err(PyRuntimeError::new_err(interrupted.to_string())),
                Err(RecvTimeoutError::Disconnected) => break Err(PyRuntimeError::new_err("a thread has panicked")),
                Err(RecvTimeoutError::Timeout) => {
                    let seen = Python::attach(|py| {
                        py.check_signals()?;
                        if memory::free() < RESERVE {
                            return Err(PyMemoryError::new_err(format!(
                                "{what} took so much memory that less than {} are free; ask for less at a time",
                                memory::amount(RESERVE as f64)
                            )));
                        }
                        if start.elapsed() >= PATIENCE {
                            show(py, what, task.checkpoints(), &mut bar)?;
                        }
                        Ok(())
                    });
                    if let Err(error) = seen {
                        task.stop();
                        // What is left of the work ends before anybody goes on.
                        let _ = receiver.recv();
                        break Err(error);
                    }
                }
            }
        };
        let closed = bar.map_or(Ok(()), |bar| Python::attach(|py| bar.call_method0(py, "close").map(|_| ())));
        let value = outcome?;
        closed.map(|()| value)
    })
}

/// Shows how far the work is, where somebody is watching.
fn show(py: Python<'_>, what: &str, done: u64, bar: &mut Option<Py<PyAny>>) -> PyResult<()> {
    let shown = match bar {
        Some(bar) => bar,
        None => bar.insert(py.import("pal._progress")?.call_method1("Bar", (what,))?.unbind()),
    };
    shown.call_method1(py, "show", (done,))?;
    Ok(())
}
