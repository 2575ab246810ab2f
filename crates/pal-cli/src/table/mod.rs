//! Reading and writing tables of numbers: `.csv` for people and `.npy` for arrays.
//!
//! Values lie row by row in one vector. Errors of reading name the place in the file. Writing streams through a
//! temporary file, so that a table of any length is replaced completely or not at all, and is never copied in memory.

mod csv;
pub mod dataset;
mod npy;
mod parquet;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::points::{PointColumn, width};
use crate::{files, output};

/// A table of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The names of the columns, all different, if the file has them.
    pub names: Option<Vec<String>>,
    pub columns: usize,
    /// The values, row by row.
    pub values: Vec<f64>,
}

/// How a table is stored, which the extension of the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableFormat {
    Csv,
    Npy,
}

impl TableFormat {
    fn of(path: &Path) -> Option<TableFormat> {
        match path.extension()?.to_string_lossy().to_lowercase().as_str() {
            "csv" => Some(TableFormat::Csv),
            "npy" => Some(TableFormat::Npy),
            _ => None,
        }
    }
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A column is not there; the message says which ones are, and which of them was probably meant.
#[derive(Debug)]
pub struct NoColumn {
    /// The name that was looked for.
    pub name: String,
    message: String,
}

impl std::fmt::Display for NoColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NoColumn {}

fn no_column(name: &str, present: &[String]) -> NoColumn {
    let distance = |other: &&String| strsim::osa_distance(&name.to_lowercase(), &other.to_lowercase());
    let near = present.iter().min_by_key(distance).filter(|other| distance(other) <= name.chars().count() / 3);
    let meant = near.map_or(String::new(), |other| format!("; did you mean `{other}`?"));
    let message = format!("there is no column `{name}`; the columns are {}{meant}", present.join(", "));
    NoColumn { name: name.to_string(), message }
}

impl Table {
    /// Reads a file by its extension; `-` is CSV on standard input. NaN and infinities are allowed.
    pub fn read(path: &Path) -> Result<Table> {
        if is_standard(path) {
            return csv::read(io::stdin().lock()).context("standard input");
        }
        let attempt = || -> Result<Table> {
            let kind = TableFormat::of(path).context("tables are read from .csv or .npy files, or as CSV from `-`")?;
            files::reading(path)?;
            let file = match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("no such file"),
                opened => opened.context("cannot read")?,
            };
            // Pipes and devices have no length.
            let length = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            match kind {
                TableFormat::Csv => csv::read(file),
                TableFormat::Npy => npy::read(BufReader::with_capacity(BUFFER, file), length),
            }
        };
        attempt().with_context(|| path.display().to_string())
    }

    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Returns the columns of these names, in this order. A table without names must have exactly these columns.
    pub fn select(&self, names: &[&str]) -> Result<Table> {
        let owned = || Some(names.iter().map(|name| name.to_string()).collect());
        let Some(present) = &self.names else {
            ensure!(
                self.columns == names.len(),
                "the table has no column names and {}, but there are {}, in this order: {}",
                crate::numbers::counted(self.columns, "column"),
                crate::numbers::counted(names.len(), "variable"),
                names.join(", ")
            );
            return Ok(Table { names: owned(), columns: self.columns, values: self.values.clone() });
        };
        let at: HashMap<&str, usize> = present.iter().enumerate().map(|(k, name)| (name.as_str(), k)).collect();
        let position = |name: &&str| {
            let found = at.get(name).copied();
            found.ok_or_else(|| no_column(name, present))
        };
        let wanted: Vec<usize> = names.iter().map(position).collect::<Result<_, NoColumn>>()?;
        let in_place = wanted.len() == self.columns && wanted.iter().enumerate().all(|(k, column)| k == *column);
        let values = if in_place {
            self.values.clone()
        } else {
            let rows = self.values.chunks_exact(self.columns.max(1));
            rows.flat_map(|row| wanted.iter().map(|column| row[*column])).collect()
        };
        Ok(Table { names: owned(), columns: names.len(), values })
    }
}

/// Reads points with these columns from a file; errors name it. Arrays have the numbers of the points, as the library takes
/// them; tables of text have truth values and labels.
pub fn read_points(path: &Path, columns: &[PointColumn]) -> Result<Table> {
    let discrete: Vec<PointColumn> = columns.iter().filter(|column| !column.is_number()).cloned().collect();
    let table = match discrete.is_empty() || TableFormat::of(path) == Some(TableFormat::Npy) {
        true => {
            let variables = |column: &PointColumn| match column.is_number() {
                true => vec![column.name.clone()],
                false => column.variables(),
            };
            let names: Vec<String> = columns.iter().flat_map(variables).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Table::read(path)?.select(&names).with_context(|| crate::input::name(path))?
        }
        false => {
            let reals = columns.iter().filter(|column| column.is_number());
            let names: Vec<String> = reals.map(|column| column.name.clone()).collect();
            let wanted = dataset::ColumnNames { numbers: &names, discrete: &discrete, text: None };
            let read = dataset::Dataset::read(path, wanted)?;
            Table { names: None, columns: width(columns), values: read.numbers }
        }
    };
    if let Some(at) = table.values.iter().position(|value| value.is_nan()) {
        let (row, position) = (at / table.columns, at % table.columns);
        let name = columns.iter().find(|column| column.positions().contains(&position)).map(|column| &column.name);
        let name = name.map_or("", String::as_str);
        let way = "give a value in every row";
        let way = if discrete.is_empty() { "give numbers" } else { way };
        let trouble = format!("row {row} (counted from 0), `{name}`: NaN; {way}");
        return Err(anyhow::anyhow!(trouble).context(crate::input::name(path)));
    }
    Ok(table)
}

const BUFFER: usize = 1 << 16;

/// Fails early, before any work is done, if no table can be written under this name.
pub fn check_output(path: Option<&Path>) -> Result<()> {
    let Some(path) = path.filter(|path| !is_standard(path)) else { return Ok(()) };
    ensure!(TableFormat::of(path).is_some(), "{}: {UNKNOWN_NAME}", path.display());
    output::check_place(path)
}

const UNKNOWN_NAME: &str = "tables are written as .csv or .npy; choose one of these names";

/// Takes any number of complete rows, row by row.
pub type Sink<'a> = dyn FnMut(&[f64]) -> Result<()> + 'a;

/// Writes a table in the format that the extension of the file tells; `-` or no path is CSV on standard output. CSV has
/// labels and truth values where columns do, `.npy` numbers only.
/// `produce` hands rows to the sink, in any number of parts. If either fails, an existing file stays as it was.
pub fn stream(
    path: Option<&Path>,
    columns: &[PointColumn],
    produce: impl FnOnce(&mut Sink) -> Result<()>,
) -> Result<()> {
    let Some(path) = path.filter(|path| !is_standard(path)) else {
        let mut out = output::stdout();
        csv::write(&mut out, columns, produce)?;
        out.flush()?;
        return Ok(());
    };
    let kind = TableFormat::of(path);
    output::replace_with(path, |file: &mut BufWriter<File>| match kind {
        Some(TableFormat::Csv) => csv::write(file, columns, produce),
        Some(TableFormat::Npy) => npy::write(file, width(columns), produce),
        None => bail!(UNKNOWN_NAME),
    })
}

/// Returns the number of rows, which must be complete: a caller that hands over half a row has lost count.
fn whole_rows(rows: &[f64], columns: usize) -> Result<usize> {
    ensure!(columns > 0 && rows.len().is_multiple_of(columns), "{} values are no rows of {columns}", rows.len());
    Ok(rows.len() / columns)
}

/// Reads until the buffer is full or the input ends, and returns the number of bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a table in one part.
    fn write(path: Option<&Path>, names: &[&str], values: &[f64]) -> Result<()> {
        stream(path, &crate::points::numbers(names), |sink| sink(values))
    }

    /// A place for files that goes away with the test.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("pal-table-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|v| v.to_bits()).collect()
    }

    /// Float64 numbers of all magnitudes, from random bits.
    fn wild(count: usize) -> Vec<f64> {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            f64::from_bits(state ^ (state >> 29))
        };
        let mut values =
            vec![0.0, -0.0, 1.0, 0.1, f64::MIN_POSITIVE, f64::MAX, 5e-324, f64::INFINITY, -1e16, 123456789.0];
        values.extend(std::iter::repeat_with(&mut next).filter(|v| !v.is_nan()).take(count - values.len()));
        values
    }

    #[test]
    fn round_trips_keep_every_bit() {
        let folder = Folder::new("round");
        let values = wild(3000);
        for (name, names) in [("t.csv", Some(vec!["x".to_string(), "a \"b\", c".into(), "y".into()])), ("t.npy", None)]
        {
            let path = folder.0.join(name);
            std::fs::write(&path, "old").unwrap();
            write(Some(&path), &["x", "a \"b\", c", "y"], &values).unwrap();
            let back = Table::read(&path).unwrap();
            assert_eq!((back.rows(), back.columns, &back.names), (1000, 3, &names));
            assert_eq!(bits(&back.values), bits(&values));
        }
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2, "a temporary file was left behind");
    }

    #[test]
    fn rows_may_come_in_parts() {
        let folder = Folder::new("parts");
        for name in ["t.csv", "t.npy"] {
            let path = folder.0.join(name);
            let parts = |sink: &mut Sink| (0..2500).try_for_each(|k| sink(&[f64::from(k), 1.0, f64::from(-k), 2.0]));
            stream(Some(&path), &crate::points::numbers(&["a", "b"]), parts).unwrap();
            let table = Table::read(&path).unwrap();
            assert_eq!((table.rows(), table.values[9998]), (5000, -2499.0));
        }
    }

    #[test]
    fn failure_leaves_the_old_file() {
        let folder = Folder::new("failure");
        for name in ["t.csv", "t.npy"] {
            let path = folder.0.join(name);
            std::fs::write(&path, "old").unwrap();
            let text = format!(
                "{:#}",
                stream(Some(&path), &crate::points::numbers(&["a"]), |_| bail!("no more")).unwrap_err()
            );
            assert!(text.ends_with(&format!("{name}: no more")), "{text}");
            assert!(write(Some(&path), &["a", "b"], &[1.0]).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
        }
        let text = format!("{:#}", write(Some(&folder.0.join("t.xlsx")), &["a"], &[1.0]).unwrap_err());
        assert!(text.contains("t.xlsx: tables are written as .csv or .npy"), "{text}");
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn files_that_are_not_there_or_not_tables() {
        let text = |name: &str| format!("{:#}", Table::read(Path::new(name)).unwrap_err());
        assert_eq!(text("nowhere.csv"), "nowhere.csv: no such file");
        assert_eq!(text("s.txt"), "s.txt: tables are read from .csv or .npy files, or as CSV from `-`");
        assert!(text("/").contains("tables are read"));
    }

    #[test]
    fn columns_by_name_or_position() {
        let names = Some(vec!["x".to_string(), "y".into(), "t".into()]);
        let table = Table { names, columns: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };
        let some = table.select(&["t", "x"]).unwrap();
        assert_eq!((some.columns, some.values), (2, vec![3.0, 1.0, 6.0, 4.0]));
        assert_eq!(some.names.unwrap(), ["t", "x"]);
        let text = table.select(&["x", "z"]).unwrap_err().to_string();
        assert_eq!(text, "there is no column `z`; the columns are x, y, t");
        let bare = Table { names: None, ..table };
        assert_eq!(bare.select(&["a", "b", "c"]).unwrap().values, bare.values);
        let text = bare.select(&["a", "b"]).unwrap_err().to_string();
        assert_eq!(text, "the table has no column names and 3 columns, but there are 2 variables, in this order: a, b");
    }
}
