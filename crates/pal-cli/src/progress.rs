//! Progress on standard error for long work, if that is a terminal.
//!
//! Where it is known how much there is to do, the time left is shown; where it is not, what was done and when a limit
//! on time will end it.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pal_burn::Epoch;

use crate::limits;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A counter of work done, which removes itself from the screen when dropped.
pub struct Progress {
    bar: ProgressBar,
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Counts cells. It appears after half a second if `wanted` and standard error is a terminal.
    pub fn new(task: &'static str, wanted: bool) -> Progress {
        Progress::with_template("{spinner} {msg}: {human_pos} cells, {elapsed}{end}", None, task, wanted)
    }

    /// Counts up to a total, and shows the time left.
    pub fn of(total: usize, task: &'static str, wanted: bool) -> Progress {
        Progress::with_template(
            "{spinner} {msg}: {human_pos} of {human_len}, {elapsed}{left}{end}",
            Some(total),
            task,
            wanted,
        )
    }

    /// Shows the elapsed time and the steps of the library, of which it is not known how many there will be.
    pub fn waiting(task: &'static str, wanted: bool) -> Progress {
        Progress::with_template("{spinner} {msg}: {steps}{elapsed}{end}", None, task, wanted)
    }

    fn with_template(template: &str, total: Option<usize>, task: &'static str, wanted: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(total.map(|total| total as u64), ProgressDrawTarget::hidden());
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { bar, waiting: None };
        }
        bar.set_style(style(template, None));
        bar.set_message(task);
        let (sender, receiver) = mpsc::channel();
        let shown = bar.clone();
        let watcher = thread::spawn(move || {
            if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Progress { bar, waiting: Some((sender, watcher)) }
    }

    /// Counts one more; may be called from any thread.
    pub fn step(&self) {
        self.advance(1);
    }

    /// Counts `count` more.
    pub fn advance(&self, count: usize) {
        self.bar.inc(count as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, watcher)) = self.waiting.take() {
            drop(sender);
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
    }
}

/// The state of a training: the epoch, the log-densities of the last and of the best epoch, and the longest time that
/// it can still take.
pub struct TrainingBar {
    bar: ProgressBar,
    epochs: usize,
    begun: bool,
}

impl TrainingBar {
    /// Makes a bar that is shown if `wanted` and standard error is a terminal.
    pub fn new(epochs: usize, wanted: bool) -> TrainingBar {
        let shown = wanted && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        TrainingBar { bar: ProgressBar::with_draw_target(None, target), epochs, begun: false }
    }

    /// Updates the bar after a step of an epoch. `last` is the epoch before it, `best` the best epoch and its mean
    /// log-density on validation rows.
    pub fn show(&mut self, epoch: usize, step: usize, of: usize, last: Option<&Epoch>, best: Option<(usize, f64)>) {
        if self.bar.is_hidden() {
            return;
        }
        let done = (epoch.saturating_sub(1) * of + step) as u64;
        if !self.begun {
            // A training that is resumed has done a part before.
            self.bar.set_style(style("{spinner} {msg}, {elapsed}{left}{end}", Some(done.saturating_sub(1))));
        }
        let known =
            last.map_or(String::new(), |last| format!(", train {:.4}, validation {:.4}", last.train, last.validation));
        let best = best.map_or(String::new(), |(epoch, value)| format!(", best {value:.4} (epoch {epoch})"));
        let part = 100 * step / of.max(1);
        // The message comes first: every change is drawn.
        self.bar.set_message(format!("epoch {epoch}/{} {part:>3} %{known}{best}", self.epochs));
        if !self.begun {
            self.begun = true;
            self.bar.set_length((self.epochs * of) as u64);
        }
        self.bar.set_position(done);
    }
}

impl Drop for TrainingBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A style whose templates may have `left`, the time left; `end`, when a limit on time ends the run; and `steps`, how
/// many steps the library has taken. `before` is what was done before the bar began, if training was resumed; training
/// may end before all its epochs are done.
fn style(template: &str, before: Option<u64>) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bound = if before.is_some() { "at most " } else { "" };
    let left = move |state: &ProgressState, out: &mut dyn Write| {
        let done = (before.unwrap_or(0), state.pos());
        if let Some(left) = time_left(state.elapsed(), done, state.len().unwrap_or(0)) {
            let _ = write!(out, ", {bound}{} left", HumanDuration(left));
        }
    };
    let end = |_: &ProgressState, out: &mut dyn Write| {
        if let Some(rest) = limits::deadline().map(|end| end.saturating_duration_since(Instant::now())) {
            let _ = write!(out, ", time limit in {}", HumanDuration(rest));
        }
    };
    let from = limits::task().checkpoints();
    let steps = move |_: &ProgressState, out: &mut dyn Write| {
        let steps = limits::task().checkpoints().saturating_sub(from);
        if steps > 0 {
            let _ = write!(out, "{} steps, ", HumanCount(steps));
        }
    };
    style.with_key("left", left).with_key("end", end).with_key("steps", steps)
}

/// The time that work still takes if it goes on as it did: `done` are the counts at its beginning and now. Unknown as
/// long as nothing is done.
fn time_left(elapsed: Duration, (before, now): (u64, u64), total: u64) -> Option<Duration> {
    let done = now.checked_sub(before).filter(|done| *done > 0)?;
    let ratio = total.saturating_sub(now) as f64 / done as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * ratio).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_rest_at_the_same_speed() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(10), (0, 25), 100), Some(seconds(30)));
        assert_eq!(time_left(seconds(10), (50, 75), 100), Some(seconds(10)));
        assert_eq!(time_left(seconds(10), (0, 100), 100), Some(seconds(0)));
        assert_eq!(time_left(seconds(10), (0, 0), 100), None);
        assert_eq!(time_left(seconds(10), (7, 7), 100), None);
    }
}
