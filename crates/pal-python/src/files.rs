//! Files that Python writes.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Puts a complete file at `path`: an existing one is replaced completely or stays as it was.
#[pyfunction]
pub fn write_file(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    py.detach(|| pal_system::files::replace(&path, content)).map_err(|error| {
        // With the name of the file, as Python's own functions have it.
        match error.raw_os_error() {
            Some(code) => pyo3::exceptions::PyOSError::new_err((code, error.to_string(), path)),
            None => error.into(),
        }
    })
}
