//! Stopping long work from another thread.
//!
//! Long work passes checkpoints: one for each node of a search, each element of a mesh, each block of points. Once a
//! [`Task`] has been stopped, the next checkpoint ends its work by unwinding, like a panic but silently, up to
//! [`Task::run`]. What the library returns is immutable, so that nothing is left half done.
//!
//! A checkpoint concerns the task that its thread belongs to, because rayon does not tell its threads for which task
//! they work. A program that wants to stop work on all cores therefore runs it in a thread pool of its own, whose
//! threads call [`Task::enter`] when they start. On threads that never entered a task, a checkpoint costs one read of a
//! variable.

use std::any::Any;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Work that can be stopped, and how far it got.
///
/// ```
/// use pal::interrupt::{Interrupted, Task};
/// use pal::{region::Region, shapes};
/// let region = Region::new(&shapes::cube(3))?;
/// let task = Task::default();
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         task.enter();
///         assert_eq!(task.run(|| region.cells().count()), Ok(1));
///         task.stop();
///         assert_eq!(task.run(|| region.cells().count()), Err(Interrupted));
///         task.resume();
///         assert_eq!(task.run(|| region.cells().count()), Ok(1));
///     });
/// });
/// # Ok::<(), pal::region::RegionError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Task(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stopped: AtomicBool,
    checkpoints: AtomicU64,
}

/// The work was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

thread_local! {
    static CURRENT: OnceCell<Task> = const { OnceCell::new() };
}

impl Task {
    /// Makes the current thread work for this task from now on. A thread belongs to one task for good: a second call
    /// changes nothing.
    pub fn enter(&self) {
        CURRENT.with(|current| {
            let _ = current.set(self.clone());
        });
    }

    /// Ends the work of the task at its next checkpoints. Can be called from any thread.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Makes a stopped task ready for other work and sets its counter to 0. Call it only when all work of the task has
    /// ended.
    pub fn resume(&self) {
        self.0.stopped.store(false, Ordering::Relaxed);
        self.0.checkpoints.store(0, Ordering::Relaxed);
    }

    /// How many checkpoints the work has passed: a measure of progress for work whose length is unknown.
    pub fn checkpoints(&self) -> u64 {
        self.0.checkpoints.load(Ordering::Relaxed)
    }

    /// Runs work on a thread of the task. A panic in the work is passed on.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, Interrupted> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|cause: Box<dyn Any + Send>| {
            match cause.downcast::<Interrupted>() {
                Ok(interrupted) => *interrupted,
                Err(panic) => resume_unwind(panic),
            }
        })
    }
}

/// A point at which work can be stopped.
pub(crate) fn checkpoint() {
    CURRENT.with(|current| {
        if let Some(task) = current.get() {
            task.0.checkpoints.fetch_add(1, Ordering::Relaxed);
            if task.0.stopped.load(Ordering::Relaxed) {
                resume_unwind(Box::new(Interrupted));
            }
        }
    });
}
