//! Where results go: standard output and standard error, without a panic when nobody reads, and files, replaced as a whole.

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

/// Complains about a place where nothing can be written, before the work for it is done.
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

/// Puts a complete file at `path`: writes next to it and renames, so that what is there is replaced as a whole or not at all.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes).context("cannot write"))
}

/// The same for a file that is written in parts: a failure of `fill` leaves what was there.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let attempt = || -> Result<()> {
        let name = path.file_name().context("this is not the name of a file")?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let write = || -> Result<()> {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(&temporary).context("cannot write")?);
            fill(&mut file)?;
            file.flush().context("cannot write")?;
            // Closed before it is renamed: some systems insist.
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

/// Tells something worth knowing that is no error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "pal: note: {text}");
}

/// Prints an error with its causes. Standard error may be closed as well: then there is nobody to tell.
pub fn complain(error: &anyhow::Error) {
    // Every other trouble with files carries the name of the file.
    let bare = error.chain().len() == 1 && error.is::<io::Error>();
    let place = if bare { "standard output: cannot write: " } else { "" };
    let _ = writeln!(io::stderr(), "pal: {place}{error:#}");
}

/// Whether an error means that the reader of our output went away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &io::Error| cause.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(broken))
}
