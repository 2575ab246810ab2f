//! Standard output and standard error: buffered, and without a panic when nobody reads.

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use anyhow::Result;
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
