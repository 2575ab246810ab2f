//! Progress on standard error for long work, if that is a terminal.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pal_burn::Epoch;

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
        Progress::with_template("{spinner} {msg}: {human_pos} cells, {elapsed}", None, task, wanted)
    }

    /// Counts up to a total.
    pub fn of(total: usize, task: &'static str, wanted: bool) -> Progress {
        Progress::with_template("{spinner} {msg}: {human_pos} of {human_len}, {elapsed}", Some(total), task, wanted)
    }

    /// Shows the elapsed time only.
    pub fn waiting(task: &'static str, wanted: bool) -> Progress {
        Progress::with_template("{spinner} {msg}: {elapsed}", None, task, wanted)
    }

    fn with_template(template: &str, total: Option<usize>, task: &'static str, wanted: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(total.map(|total| total as u64), ProgressDrawTarget::hidden());
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { bar, waiting: None };
        }
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()));
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

/// The state of a training: the epoch, and the log-densities of the last and of the best epoch.
pub struct TrainingBar {
    bar: ProgressBar,
}

impl TrainingBar {
    /// Makes a bar that is shown if `wanted` and standard error is a terminal.
    pub fn new(epochs: usize, wanted: bool) -> TrainingBar {
        let shown = wanted && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(epochs as u64), target);
        let style = ProgressStyle::with_template("{spinner} epoch {pos}/{len} {msg}, {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        TrainingBar { bar }
    }

    /// Updates the bar after a step of an epoch. `last` is the epoch before it, `best` the best epoch and its mean
    /// log-density on validation rows.
    pub fn show(&self, epoch: usize, step: usize, of: usize, last: Option<&Epoch>, best: Option<(usize, f64)>) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(epoch as u64);
        let done = 100 * step / of.max(1);
        let known =
            last.map_or(String::new(), |last| format!(", train {:.4}, validation {:.4}", last.train, last.validation));
        let best = best.map_or(String::new(), |(epoch, value)| format!(", best {value:.4} (epoch {epoch})"));
        self.bar.set_message(format!("{done:>3} %{known}{best}"));
    }
}

impl Drop for TrainingBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
