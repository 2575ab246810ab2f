//! Which files a run reads and writes, so that none is both.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use pal_system::files::{is_same_file, is_same_place};

/// What is known of the files of a run.
struct Known {
    read: Vec<PathBuf>,
    /// To be written, but not yet.
    planned: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { read: Vec::new(), planned: Vec::new(), written: Vec::new() });

/// Notes that a file is read. Fails if it is to be written later, which would destroy it.
pub fn reading(path: &Path) -> Result<()> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // A run may read what it has written, as the demo does.
    if known.written.iter().any(|other| is_same_file(other, path)) {
        return Ok(());
    }
    check(&known.planned, path)?;
    known.read.push(path.to_path_buf());
    Ok(())
}

/// Notes that a file is to be written. Fails if it has been read, which would destroy it.
pub fn writing(path: &Path) -> Result<()> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    check(&known.read, path)?;
    known.planned.push(path.to_path_buf());
    Ok(())
}

/// Notes that a file has been written.
pub fn written(path: &Path) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.planned.retain(|other| !is_same_place(other, path));
    if !known.written.iter().any(|other| other == path) {
        known.written.push(path.to_path_buf());
    }
}

fn check(others: &[PathBuf], path: &Path) -> Result<()> {
    match path.is_file() && others.iter().any(|other| is_same_file(other, path)) {
        true => bail!("this file would be read and written; choose another name for what is written"),
        false => Ok(()),
    }
}
