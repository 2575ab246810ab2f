//! Ends of a run before its work is done: a time limit, or Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

/// The longest time for which Ctrl-C goes unnoticed.
pub const GLANCE: Duration = Duration::from_millis(50);

/// Reads a number of seconds.
pub fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().map_err(|_| anyhow!("not a number of seconds"))?;
    if seconds.is_nan() || seconds < 0.0 {
        bail!("give a number of seconds of at least 0, such as 2.5");
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C. The first one sets the flag that is returned, the second one ends the process.
pub fn listen() -> Result<&'static AtomicBool> {
    // The handler can be set only once per process.
    if !LISTENING.swap(true, Ordering::SeqCst) {
        ctrlc::set_handler(|| {
            // The second Ctrl-C ends the process at once.
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        })
        .context("cannot listen for Ctrl-C")?;
    }
    Ok(&INTERRUPTED)
}
