//! Results that are tables: a file and a line about it, or rows on standard output, as CSV or as JSON objects.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::numbers::counted;
use crate::table::{self, Sink};
use crate::{Global, output};

/// A table to write.
pub struct Listing<'a> {
    /// None, or `-`, is standard output.
    pub path: Option<&'a Path>,
    pub columns: Vec<&'a str>,
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
        let columns = self.columns.len();
        let path = self.path.filter(|path| path.as_os_str() != "-");
        if path.is_none() && global.json {
            let mut out = output::stdout();
            produce(&mut |rows| self.json_rows(&mut out, rows))?;
            return Ok(out.flush()?);
        }
        let mut count = 0;
        table::stream(path, &self.columns, columns, |sink| {
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
        let columns = self.columns.len();
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
            output::json_line(&mut out, &Report { output, rows, columns: &self.columns, seconds })?;
        } else if !global.quiet {
            writeln!(out, "{output}: {}", counted(rows, self.noun))?;
        }
        Ok(out.flush()?)
    }
}

/// A row as a JSON object with the names of its columns, in their order. Infinities and NaN become null.
struct Object<'a>(&'a [&'a str], &'a [f64]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1).map(|(name, value)| (name, json_number(*value))))
    }
}

/// A JSON number; integers are written without a decimal point, so that numbers of rows look like integers.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 && (value != 0.0 || value.is_sign_positive()) {
        return Value::from(value as i64);
    }
    Value::from(value)
}

/// The names of columns, with `row` in front if several rows of a model are asked about.
pub fn with_row(many: bool, names: Vec<&str>) -> Vec<&str> {
    if many { [vec!["row"], names].concat() } else { names }
}

/// Values row by row, with the number of the row of the model in front of each, if there is one.
pub fn numbered(row: Option<usize>, values: Vec<f64>, columns: usize) -> Vec<f64> {
    let Some(row) = row else { return values };
    values.chunks_exact(columns.max(1)).flat_map(|part| [&[row as f64], part].concat()).collect()
}
