//! Where results go: standard output and standard error, without a panic when they are closed, and files, which are
//! replaced atomically.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::files;

/// Standard output with a buffer; the caller flushes.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes one line of JSON.
pub fn json_line(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Fails early, before any work is done, if no file can be written at `path`.
pub fn check_place(path: &Path) -> Result<()> {
    let check = || -> Result<()> {
        path.file_name().context("this is not the name of a file")?;
        ensure!(!path.is_dir(), "cannot write: this is a directory; add the name of a file");
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            bail!("cannot write: there is no folder `{}`; make it first", folder.display());
        }
        files::writing(path)
    };
    check().with_context(|| path.display().to_string())
}

/// Puts a complete file at `path`. An existing file is replaced completely or not at all.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes).context("cannot write"))
}

/// Like [`replace`], for a file that `fill` writes in parts. If it fails, the existing file stays as it was.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let attempt = || -> Result<()> {
        path.file_name().context("this is not the name of a file")?;
        files::writing(path)?;
        pal_files::replace_with(path, |out| fill(out).map_err(WriteError::Own)).map_err(|error| match error {
            WriteError::Own(error) => error,
            WriteError::System(error) => anyhow::Error::new(error).context("cannot write"),
        })
    };
    attempt().with_context(|| path.display().to_string())
}

/// Why a file was not written: for a reason of its own, or of the system.
enum WriteError {
    Own(anyhow::Error),
    System(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::System(error)
    }
}

/// Prints a note on standard error: something worth knowing that is not an error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "pal: note: {text}");
}

/// Prints an error with its causes. If standard error is closed too, the message is lost.
pub fn complain(error: &anyhow::Error) {
    // All other input and output errors carry the name of their file.
    let bare = error.chain().len() == 1 && error.is::<io::Error>();
    let place = if bare { "standard output: cannot write: " } else { "" };
    let _ = writeln!(io::stderr(), "pal: {place}{error:#}");
}

/// Whether an error means that the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &io::Error| cause.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(broken))
}
