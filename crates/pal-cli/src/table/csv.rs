//! CSV: commas, an optional header line, one row per line.

use std::collections::HashSet;
use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};
use csv::{ByteRecord, ErrorKind, ReaderBuilder, Terminator};

use super::{BUFFER, Sink, Table, whole_rows};
use crate::points::{Field, PointColumn, width};

/// Reads a table. The first line is a header if any of its fields is not a number.
pub fn read(input: impl Read) -> Result<Table> {
    let mut reader = records(input);
    let mut record = ByteRecord::new();
    let mut table = Table { names: None, columns: 0, values: Vec::new() };
    while reader.read_byte_record(&mut record).map_err(plainly)? {
        let line = || reader.position().line().saturating_sub(1);
        if record.len() == 1 && record[0].trim_ascii().is_empty() {
            continue;
        }
        if table.columns == 0 {
            table.columns = record.len();
            if record.iter().any(|field| number(field).is_none()) {
                table.names = Some(header(&record).with_context(|| format!("line {}", line()))?);
                continue;
            }
        }
        if record.len() != table.columns {
            let found = crate::numbers::counted(record.len(), "field");
            bail!("line {}: {found}, but the first line has {}", line(), table.columns);
        }
        for (column, field) in record.iter().enumerate() {
            let Some(value) = number(field) else {
                let name = match &table.names {
                    Some(names) => format!("`{}`", names[column]),
                    None => (column + 1).to_string(),
                };
                // A table of one column may have been meant to have several.
                let way = if table.columns > 1 && table.names.is_some() && !field.trim_ascii().is_empty() {
                    "; tables of points and parameters hold numbers alone: leave this column out"
                } else {
                    ""
                };
                bail!("line {}, column {name}: {}{way}", line(), not_a_number(field));
            };
            table.values.push(value);
        }
    }
    ensure!(table.columns > 0, "the file is empty; a table has at least one line of numbers or names");
    Ok(table)
}

/// Returns a reader of records that, after each record, stands at the line after it: a line feed is appended, so that
/// the last record ends with one too. Rows of different lengths are let through, so that errors can name their lines.
/// Carriage returns are trimmed with blanks.
pub(super) fn records(input: impl Read) -> csv::Reader<impl Read> {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).terminator(Terminator::Any(b'\n')).buffer_capacity(BUFFER);
    builder.from_reader(input.chain(&b"\n"[..]))
}

pub(super) fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}

pub(super) fn not_a_number(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field.trim_ascii());
    if text.is_empty() {
        return "a number is missing".to_string();
    }
    // A file that is no table can have very long fields.
    let shown: String = text.chars().take(40).collect();
    let dots = if shown.len() < text.len() { "..." } else { "" };
    let hint = if text.contains([';', '\t']) { "; fields are separated by commas" } else { "" };
    format!("`{shown}{dots}` is not a number{hint}")
}

pub(super) fn header(record: &ByteRecord) -> Result<Vec<String>> {
    let mut seen = HashSet::new();
    let mut names = Vec::with_capacity(record.len());
    for (column, field) in record.iter().enumerate() {
        let name = std::str::from_utf8(field.trim_ascii()).ok();
        let name = name.with_context(|| format!("the name of column {} is not UTF-8", column + 1))?;
        ensure!(!name.is_empty(), "column {} has no name", column + 1);
        ensure!(seen.insert(name), "two columns are named `{name}`");
        names.push(name.to_string());
    }
    Ok(names)
}

/// The cause of an error of `csv` without what the crate says around it.
pub(super) fn plainly(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => anyhow::Error::new(error).context("cannot read"),
        other => anyhow::anyhow!("{other:?}"),
    }
}

/// Writes a header line and all rows, with numbers in the shortest form that is read back to the same bits.
pub fn write<W: Write>(
    out: &mut W,
    columns: &[PointColumn],
    produce: impl FnOnce(&mut Sink) -> Result<()>,
) -> Result<()> {
    let header: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    writeln!(out, "{}", header.join(","))?;
    let mut line = Vec::new();
    let width = width(columns);
    produce(&mut |rows| {
        whole_rows(rows, width)?;
        for row in rows.chunks_exact(width) {
            line.clear();
            for column in columns {
                match column.field(row) {
                    Field::Number(value) => put_number(&mut line, value),
                    Field::Boolean(value) => line.extend_from_slice(if value { b"true" } else { b"false" }),
                    Field::Label(label) => line.extend_from_slice(quoted(label).as_bytes()),
                }
                line.push(b',');
            }
            if let Some(last) = line.last_mut() {
                *last = b'\n';
            }
            out.write_all(&line)?;
        }
        Ok(())
    })
}

/// Text as a field, in quotes where it needs them.
fn quoted(text: &str) -> String {
    let plain = !text.contains(['"', ',', '\n', '\r']);
    if plain { text.to_string() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

/// Appends the shortest decimal that is read back to the same bits.
pub(super) fn put_number(line: &mut Vec<u8>, value: f64) {
    let mut digits = ryu::Buffer::new();
    let text = digits.format(value);
    line.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        read(text.as_bytes()).unwrap()
    }

    fn error(text: &[u8]) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    #[test]
    fn a_header_is_a_line_with_something_else_than_numbers() {
        let with = table("x, y\n1,2\n3 ,4e1");
        assert_eq!((with.names.unwrap(), with.values), (vec!["x".to_string(), "y".into()], vec![1.0, 2.0, 3.0, 40.0]));
        let without = table("1,2\n3,4\n");
        assert_eq!((without.names, without.values.len(), without.columns), (None, 4, 2));
        assert_eq!(table("1,b\n3,4\n").names.unwrap(), ["1", "b"]);
        assert_eq!(table("x\n").values, [0.0; 0]);
        // As spreadsheets write it: a byte order mark, quotes, carriage returns, blank lines.
        let foreign = table("\u{feff}\"a, b\",\"c\"\r\n1,\"2\"\r\n\r\n3,4\r\n");
        assert_eq!(
            (foreign.names.unwrap(), foreign.values),
            (vec!["a, b".to_string(), "c".into()], vec![1.0, 2.0, 3.0, 4.0])
        );
    }

    #[test]
    fn nan_and_infinities_are_values() {
        let values = table("x,y\nnan,-inf\nNaN,Infinity\n").values;
        assert!(values[0].is_nan() && values[2].is_nan());
        assert_eq!((values[1], values[3]), (f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn errors_name_line_and_column() {
        let numbers = "tables of points and parameters hold numbers alone: leave this column out";
        let wrong = |line: usize| format!("line {line}, column `y`: `abc` is not a number; {numbers}");
        assert_eq!(error(b"x,y\n1,2\n\n\n1,abc\n"), wrong(5));
        assert_eq!(error(b"x,y\r\n1,2\r\n\r\n1,abc"), wrong(4));
        assert_eq!(error(b"1,2\n1,\n"), "line 2, column 2: a number is missing");
        assert_eq!(error(b"x;y\n1;2"), "line 2, column `x;y`: `1;2` is not a number; fields are separated by commas");
        assert_eq!(error(b"x,y\n1,2\n1,2,3\n"), "line 3: 3 fields, but the first line has 2");
        assert_eq!(error(b"x,y,x\n"), "line 1: two columns are named `x`");
        assert_eq!(error(b"x,,y\n"), "line 1: column 2 has no name");
        assert_eq!(error(b"x,\xff\n"), "line 1: the name of column 2 is not UTF-8");
        assert!(error(b"x\n\xff\n").starts_with("line 2, column `x`: `"));
        for empty in [&b""[..], b"\n\n", b" \r\n"] {
            assert!(error(empty).starts_with("the file is empty"));
        }
        let long = error(format!("x\n{}", "ab".repeat(1000)).as_bytes());
        assert!(long.len() < 100 && long.contains("...` is not a number"));
    }

    #[test]
    fn numbers_are_short() {
        let mut out = Vec::new();
        write(&mut out, &crate::points::numbers(&["x", "y"]), |sink| sink(&[1.0, 0.1, -0.0, 1e300, 1.5e-7, f64::NAN]))
            .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "x,y\n1,0.1\n-0,1e300\n1.5e-7,NaN\n");
    }
}
