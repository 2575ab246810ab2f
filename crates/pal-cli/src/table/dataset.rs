//! Columns by name, numbers and text: the data that models are trained on, from CSV and Parquet files.
//!
//! Numbers that are missing are NaN here; the caller decides what to do with such rows.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use csv::ByteRecord;

use super::csv::{header, not_a_number, number, plainly, put_number, records};
use super::{BUFFER, NoColumn, is_standard, no_column, parquet};
use crate::points::{self, PointColumn};
use crate::{files, output};

/// Some columns of a file: any number with numbers, at most one with text.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Row by row, in the order in which the columns were asked for; NaN where a number is missing.
    pub numbers: Vec<f64>,
    /// The number of numbers per row.
    pub width: usize,
    /// One per row, if a column of text was asked for.
    pub text: Vec<String>,
    /// The line on which each row ends, for text files.
    lines: Option<Vec<u64>>,
}

/// The columns of a file that are to be read.
#[derive(Clone, Copy, Debug)]
pub struct ColumnNames<'a> {
    pub numbers: &'a [String],
    /// Columns of Booleans and categories, whose numbers come after the others.
    pub discrete: &'a [PointColumn],
    pub text: Option<&'a str>,
}

/// Where the columns that are to be read are in a file.
pub(super) struct FoundColumns {
    pub numbers: Vec<usize>,
    /// Columns to be read as Booleans or labels, and how.
    pub discrete: Vec<(usize, PointColumn)>,
    pub text: Option<usize>,
}

impl ColumnNames<'_> {
    /// The number of numbers per row.
    pub(super) fn width(&self) -> usize {
        self.numbers.len() + points::width(self.discrete)
    }

    /// Returns the positions of the columns among those of a file. A category may have a column of labels, or one for
    /// each of its values, named `category=value`.
    pub(super) fn find(&self, present: &[String]) -> Result<FoundColumns> {
        let position = |name: &str| {
            let found = present.iter().position(|other| other == name);
            found.ok_or_else(|| no_column(name, present))
        };
        let numbers = self.numbers.iter().map(|name| position(name)).collect::<Result<_, NoColumn>>()?;
        let mut discrete = Vec::new();
        for column in self.discrete {
            let single: Vec<usize> = column.variables().iter().filter_map(|name| position(name).ok()).collect();
            match position(&column.name) {
                Ok(at) => discrete.push((at, column.clone())),
                Err(_) if single.len() == column.positions().len() => {
                    discrete.extend(single.into_iter().map(|at| (at, PointColumn::boolean(&present[at]))));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(FoundColumns { numbers, discrete, text: self.text.map(position).transpose()? })
    }
}

impl Dataset {
    pub(super) fn new(width: usize) -> Dataset {
        Dataset { numbers: Vec::new(), width, text: Vec::new(), lines: None }
    }

    /// Reads columns of a file by its extension; `-` is CSV on standard input.
    pub fn read(path: &Path, wanted: ColumnNames) -> Result<Dataset> {
        if is_standard(path) {
            return read_csv(io::stdin().lock(), wanted).context("standard input");
        }
        let attempt = || -> Result<Dataset> {
            let kind =
                DatasetFormat::of(path).context("data are read from .csv or .parquet files, or as CSV from `-`")?;
            files::reading(path)?;
            let file = match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("no such file"),
                opened => opened.context("cannot read")?,
            };
            match kind {
                DatasetFormat::Csv => read_csv(file, wanted),
                DatasetFormat::Parquet => parquet::read(file, wanted),
            }
        };
        attempt().with_context(|| path.display().to_string())
    }

    pub fn rows(&self) -> usize {
        self.numbers.len().checked_div(self.width).unwrap_or(self.text.len())
    }

    /// The place of a row in messages: its line in a text file, else its number, counted from 1.
    pub fn place(&self, row: usize) -> String {
        match &self.lines {
            Some(lines) => format!("line {}", lines[row]),
            None => format!("row {}", row + 1),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DatasetFormat {
    Csv,
    Parquet,
}

impl DatasetFormat {
    fn of(path: &Path) -> Option<DatasetFormat> {
        match path.extension()?.to_string_lossy().to_lowercase().as_str() {
            "csv" => Some(DatasetFormat::Csv),
            "parquet" | "pq" => Some(DatasetFormat::Parquet),
            _ => None,
        }
    }
}

/// Reads columns of a CSV table with a header line.
fn read_csv(input: impl Read, wanted: ColumnNames) -> Result<Dataset> {
    let mut reader = records(input);
    let mut record = ByteRecord::new();
    let mut dataset = Dataset::new(wanted.width());
    let mut lines = Vec::new();
    let mut head: Option<(Vec<String>, FoundColumns)> = None;
    while reader.read_byte_record(&mut record).map_err(plainly)? {
        let line = reader.position().line().saturating_sub(1);
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        let Some((names, FoundColumns { numbers, discrete, text })) = &head else {
            let names = header(&record).with_context(|| format!("line {line}"))?;
            let named = record.iter().any(|field| number(field).is_none());
            ensure!(named, "line {line}: the first line must name the columns");
            let found = wanted.find(&names)?;
            head = Some((names, found));
            continue;
        };
        if record.len() != names.len() {
            let found = crate::numbers::counted(record.len(), "field");
            bail!("line {line}: {found}, but the first line has {}", names.len());
        }
        for column in numbers {
            let field = record[*column].trim_ascii();
            let value = if field.is_empty() { Some(f64::NAN) } else { number(field) };
            let Some(value) = value else {
                bail!("line {line}, column `{}`: {}", names[*column], not_a_number(field));
            };
            dataset.numbers.push(value);
        }
        for (at, column) in discrete {
            let field = String::from_utf8_lossy(&record[*at]);
            let values = column.parse(&field).with_context(|| format!("line {line}, column `{}`", names[*at]))?;
            dataset.numbers.extend(values);
        }
        if let Some(column) = text {
            let field = std::str::from_utf8(record[*column].trim_ascii()).ok().filter(|field| !field.is_empty());
            let name = &names[*column];
            dataset
                .text
                .push(field.with_context(|| format!("line {line}, column `{name}`: text is missing"))?.to_string());
        }
        lines.push(line);
    }
    ensure!(head.is_some(), "the file is empty; it should have a line of names and rows of data");
    dataset.lines = Some(lines);
    Ok(dataset)
}

/// A column to write.
pub enum Column<'a> {
    Numbers(&'a str, Vec<f64>),
    Text(&'a str, Vec<String>),
}

impl Column<'_> {
    pub fn name(&self) -> &str {
        match self {
            Column::Numbers(name, _) | Column::Text(name, _) => name,
        }
    }
}

/// Fails early, before any work is done, if no data can be written under this name.
pub fn check_output(path: &Path) -> Result<()> {
    ensure!(
        is_standard(path) || DatasetFormat::of(path).is_some(),
        "{}: data are written as .csv or .parquet; choose one of these names",
        path.display()
    );
    if is_standard(path) { Ok(()) } else { output::check_place(path) }
}

/// Writes columns of equal length by the extension of the file; `-` is CSV on standard output.
pub fn write(path: &Path, columns: &[Column]) -> Result<()> {
    if is_standard(path) {
        let mut out = output::stdout();
        write_csv(&mut out, columns)?;
        return Ok(out.flush()?);
    }
    output::replace_with(path, |file| match DatasetFormat::of(path) {
        Some(DatasetFormat::Parquet) => parquet::write(file, columns),
        _ => write_csv(file, columns),
    })
}

fn write_csv(out: &mut impl Write, columns: &[Column]) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(BUFFER).from_writer(out);
    writer.write_record(columns.iter().map(Column::name)).map_err(plainly)?;
    let rows = columns.first().map_or(0, |column| match column {
        Column::Numbers(_, values) => values.len(),
        Column::Text(_, values) => values.len(),
    });
    let mut field = Vec::new();
    for row in 0..rows {
        for column in columns {
            match column {
                Column::Numbers(_, values) => {
                    field.clear();
                    put_number(&mut field, values[row]);
                    writer.write_field(&field).map_err(plainly)?;
                }
                Column::Text(_, values) => writer.write_field(&values[row]).map_err(plainly)?,
            }
        }
        writer.write_record(None::<&[u8]>).map_err(plainly)?;
    }
    writer.flush().context("cannot write")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(numbers: &'a [String], text: Option<&'a str>) -> ColumnNames<'a> {
        ColumnNames { numbers, discrete: &[], text }
    }

    #[test]
    fn columns_lines_and_gaps() {
        let text = "id,x,note,y\na,1,first,2\n\n\"b\nc\",nan,\"a, b\",-inf\nd,,,0.5\n";
        let names = ["y".to_string(), "x".to_string()];
        let dataset = read_csv(text.as_bytes(), wanted(&names, Some("id"))).unwrap();
        assert_eq!((dataset.rows(), dataset.width), (3, 2));
        assert_eq!(dataset.numbers[..2], [2.0, 1.0]);
        assert!(dataset.numbers[2] == f64::NEG_INFINITY && dataset.numbers[3].is_nan());
        assert!(dataset.numbers[4] == 0.5 && dataset.numbers[5].is_nan());
        assert_eq!(dataset.text, ["a", "b\nc", "d"]);
        assert_eq!([dataset.place(0), dataset.place(2)], ["line 2", "line 6"]);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let names = ["x".to_string()];
        let error = |text: &str, group: Option<&str>| {
            format!("{:#}", read_csv(text.as_bytes(), wanted(&names, group)).unwrap_err())
        };
        assert_eq!(error("a,b\n1,2\n", None), "there is no column `x`; the columns are a, b");
        assert_eq!(error("x\n1\nfoo\n", None), "line 3, column `x`: `foo` is not a number");
        assert_eq!(error("x,y\n1\n", None), "line 2: 1 field, but the first line has 2");
        assert_eq!(error("1,2\n3,4\n", None), "line 1: the first line must name the columns");
        assert_eq!(error("x,id\n1,\n", Some("id")), "line 2, column `id`: text is missing");
        assert!(error(" \n", None).contains("the file is empty"));
    }

    #[test]
    fn both_formats_keep_every_bit() {
        let folder = std::env::temp_dir().join(format!("pal-dataset-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let values: Vec<f64> = (0..5000).map(|k| f64::from(k) / 7.0 - 1e-300 * f64::from(k)).collect();
        let labels: Vec<String> = (0..5000).map(|k| format!("track \"{}\", é", k / 10)).collect();
        let names = ["x".to_string()];
        for name in ["f.csv", "f.parquet"] {
            let path = folder.join(name);
            write(&path, &[Column::Text("id", labels.clone()), Column::Numbers("x", values.clone())]).unwrap();
            let dataset = Dataset::read(&path, wanted(&names, Some("id"))).unwrap();
            assert_eq!((&dataset.numbers, &dataset.text), (&values, &labels), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
