//! Which files a run reads and writes, so that none is both.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

/// The files that were read so far, and those that are to be written.
static FILES: Mutex<(Vec<PathBuf>, Vec<PathBuf>)> = Mutex::new((Vec::new(), Vec::new()));

/// Notes that a file is read. Fails if it is to be written too, which would destroy it.
pub fn reading(path: &Path) -> Result<()> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.0.push(path.to_path_buf());
    check(&files.1, path)
}

/// Notes that a file is to be written. Fails if it has been read, which would destroy it.
pub fn writing(path: &Path) -> Result<()> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.1.push(path.to_path_buf());
    check(&files.0, path)
}

fn check(others: &[PathBuf], path: &Path) -> Result<()> {
    match others.iter().any(|other| pal_system::files::is_same_file(other, path)) && path.is_file() {
        true => bail!("this file would be read and written; choose another name for what is written"),
        false => Ok(()),
    }
}
