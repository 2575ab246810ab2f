//! A counter on standard error for work that takes long, where a person is watching.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Counts cells; removes itself from the screen when dropped.
pub struct Progress {
    bar: ProgressBar,
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows itself after a while if `wanted` and standard error is a terminal.
    pub fn new(task: &'static str, wanted: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { bar, waiting: None };
        }
        let style = ProgressStyle::with_template("{spinner} {msg}: {human_pos} cells, {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
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

    /// One cell more; from any thread.
    pub fn cell(&self) {
        self.bar.inc(1);
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
