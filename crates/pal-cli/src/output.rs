//! Where results go: standard output and standard error, without a panic when they are closed, and files, which are
//! replaced atomically.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

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
        Ok(())
    };
    check().with_context(|| path.display().to_string())
}

/// Puts a complete file at `path`. It is written next to it and renamed, so that an existing file is replaced
/// completely or not at all.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes).context("cannot write"))
}

/// Like [`replace`], for a file that `fill` writes in parts. If it fails, the existing file stays as it was.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let attempt = || -> Result<()> {
        let name = path.file_name().context("this is not the name of a file")?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let write = || -> Result<()> {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(&temporary).context("cannot write")?);
            fill(&mut file)?;
            file.flush().context("cannot write")?;
            // Some systems insist that a file is closed before it is renamed.
            drop(file);
            fs::rename(&temporary, path).context("cannot write")
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    };
    attempt().with_context(|| path.display().to_string())
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
