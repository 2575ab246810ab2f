//! Where results go: standard output and standard error, without a panic when they are closed, and files, which are
//! replaced atomically.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::files;

/// Standard output with a buffer; the caller flushes.
pub fn stdout() -> BufWriter<TerminalSafe<StdoutLock<'static>>> {
    let escapes = io::stdout().is_terminal();
    BufWriter::new(TerminalSafe { out: io::stdout().lock(), escapes })
}

/// Text on its way to a terminal, which would obey control characters in names of files and variables: they are shown
/// instead. What goes elsewhere stays as it is.
pub struct TerminalSafe<W> {
    out: W,
    escapes: bool,
}

impl<W: Write> Write for TerminalSafe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.escapes {
            return self.out.write(bytes);
        }
        for part in bytes.split_inclusive(|byte| is_control(*byte)) {
            match part.split_last() {
                Some((last, before)) if is_control(*last) => {
                    self.out.write_all(before)?;
                    write!(self.out, "\\x{last:02x}")?;
                }
                _ => self.out.write_all(part)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a terminal would obey a byte of UTF-8 instead of showing it. Ends of lines and tabulators are wanted.
fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\n' && byte != b'\t' || byte == 0x7f
}

/// A message for standard error, with control characters shown.
fn shown(text: &str) -> String {
    let mut safe = TerminalSafe { out: Vec::new(), escapes: true };
    let _ = safe.write_all(text.as_bytes());
    String::from_utf8_lossy(&safe.out).into_owned()
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
        pal_system::files::replace_with(path, |out| fill(out).map_err(WriteError::Own)).map_err(
            |error| match error {
                WriteError::Own(error) => error,
                WriteError::System(error) => anyhow::Error::new(error).context("cannot write"),
            },
        )?;
        files::written(path);
        Ok(())
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
    let _ = writeln!(io::stderr(), "pal: note: {}", shown(text));
}

/// Prints an error with its causes. If standard error is closed too, the message is lost.
pub fn complain(error: &anyhow::Error) {
    // All other input and output errors carry the name of their file.
    let bare = error.chain().len() == 1 && error.is::<io::Error>();
    let place = if bare { "standard output: cannot write: " } else { "" };
    let _ = writeln!(io::stderr(), "pal: {}", shown(&format!("{place}{error:#}")));
}

/// Whether an error means that the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &io::Error| cause.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(shown("a\u{1b}[31mb\u{7}\tc\nd\u{7f}é"), "a\\x1b[31mb\\x07\tc\nd\\x7fé");
        let mut raw = TerminalSafe { out: Vec::new(), escapes: false };
        raw.write_all(b"\x1b[31m").unwrap();
        assert_eq!(raw.out, b"\x1b[31m");
    }
}
