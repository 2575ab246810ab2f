//! Results that are tables: a file and a line about it, or rows on standard output, as CSV or as JSON objects.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::{Serialize, Serializer};

use crate::numbers::counted;
use crate::points::{PointColumn, column_names, joined, numbers, width};
use crate::table::{self, Sink};
use crate::{Global, output};

/// A table to write.
pub struct Listing<'a> {
    /// None, or `-`, is standard output.
    pub path: Option<&'a Path>,
    pub columns: Vec<PointColumn>,
    /// The word for a row in the line about the file, such as `sample`.
    pub noun: &'static str,
    pub start: Instant,
}

#[derive(Serialize)]
struct Report<'a> {
    output: String,
    rows: usize,
    columns: &'a [&'a str],
    seconds: f64,
}

impl Listing<'_> {
    /// Writes all rows that `produce` hands over. A file is replaced once they are complete.
    pub fn write(&self, global: Global, produce: impl FnOnce(&mut Sink) -> Result<()>) -> Result<()> {
        let columns = width(&self.columns);
        let path = self.path.filter(|path| path.as_os_str() != "-");
        if path.is_none() && global.json {
            let mut out = output::stdout();
            produce(&mut |rows| self.json_rows(&mut out, rows))?;
            return Ok(out.flush()?);
        }
        let mut count = 0;
        table::stream(path, &self.columns, |sink| {
            produce(&mut |rows| {
                count += rows.len() / columns.max(1);
                sink(rows)
            })
        })?;
        if let Some(path) = path {
            self.report(path, count, global)?;
        }
        Ok(())
    }

    fn json_rows(&self, out: &mut impl Write, rows: &[f64]) -> Result<()> {
        let columns = width(&self.columns);
        ensure!(columns > 0 && rows.len().is_multiple_of(columns), "{} values are no rows of {columns}", rows.len());
        for row in rows.chunks_exact(columns) {
            output::json_line(out, &Object(&self.columns, row))?;
        }
        Ok(())
    }

    fn report(&self, path: &Path, rows: usize, global: Global) -> Result<()> {
        let mut out = output::stdout();
        let output = path.display().to_string();
        if global.json {
            let seconds = self.start.elapsed().as_secs_f64();
            output::json_line(&mut out, &Report { output, rows, columns: &column_names(&self.columns), seconds })?;
        } else if !global.quiet {
            writeln!(out, "{output}: {}", counted(rows, self.noun))?;
        }
        Ok(out.flush()?)
    }
}

/// A row as a JSON object with the names of its columns, in their order.
struct Object<'a>(&'a [PointColumn], &'a [f64]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|column| (&column.name, column.field(self.1).json())))
    }
}

/// The columns, with `row` in front if several rows of a model are asked about.
pub fn with_row(many: bool, columns: Vec<PointColumn>) -> Vec<PointColumn> {
    if many { joined(&[&numbers(&["row"]), &columns]) } else { columns }
}

/// Values row by row, with the number of the row of the model in front of each, if there is one.
pub fn numbered(row: Option<usize>, values: Vec<f64>, columns: usize) -> Vec<f64> {
    let Some(row) = row else { return values };
    values.chunks_exact(columns.max(1)).flat_map(|part| [&[row as f64], part].concat()).collect()
}
