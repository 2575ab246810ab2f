//! What ends a run early: a number of seconds, or Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

/// How long Ctrl-C may go unnoticed.
pub const GLANCE: Duration = Duration::from_millis(50);

/// A number of seconds from text.
pub fn parse_seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().map_err(|_| anyhow!("not a number of seconds"))?;
    if seconds.is_nan() || seconds < 0.0 {
        bail!("give a number of seconds of at least 0, such as 2.5");
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Listens for Ctrl-C: the first sets what is returned, the second ends the process.
pub fn listen() -> Result<&'static AtomicBool> {
    // A process listens once.
    if !LISTENING.swap(true, Ordering::SeqCst) {
        ctrlc::set_handler(|| {
            // The second Ctrl-C means now.
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        })
        .context("cannot listen for Ctrl-C")?;
    }
    Ok(&INTERRUPTED)
}
