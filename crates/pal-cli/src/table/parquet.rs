//! Parquet: columns of numbers and text, without nesting.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use anyhow::{Context, Result, anyhow, bail, ensure};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};

use xxhash_rust::xxh3::Xxh3;

use super::dataset::{Column, ColumnNames, Dataset, FoundColumns};
use crate::{limits, points};

/// Reads columns of a file.
///
/// The crate that reads Parquet panics on some damaged files. Such a panic is an error like any other here.
pub fn read(file: File, wanted: ColumnNames) -> Result<Dataset> {
    quietly(|| read_columns(file, wanted)).unwrap_or_else(|| bail!("a damaged Parquet file"))
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs work whose panics are not printed; `None` if it panics.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    done.ok()
}

fn read_columns(file: File, wanted: ColumnNames) -> Result<Dataset> {
    let reader = SerializedFileReader::new(file).map_err(|error| anyhow!("not a Parquet file: {}", plainly(&error)))?;
    let about = reader.metadata().file_metadata();
    let schema = about.schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let FoundColumns { numbers, discrete, text } = wanted.find(&names)?;
    let labelled: Vec<usize> = discrete.iter().map(|(at, _)| *at).collect();
    let chosen: Vec<usize> = numbers.iter().chain(&labelled).chain(&text).copied().collect();
    for column in &chosen {
        let of = schema.column(*column);
        ensure!(of.max_rep_level() == 0, "column `{}` has lists; give one value per row", names[*column]);
    }
    check_counts(&reader, &chosen)?;
    let width = wanted.width();
    let mut dataset = Dataset::new(width);
    let mut sums: Vec<Xxh3> = vec![Xxh3::new(); chosen.len()];
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| anyhow!(plainly(&error)))?;
        let rows = usize::try_from(group.metadata().num_rows()).context("a damaged Parquet file")?;
        // All columns are read before there is room for their rows: a damaged file may announce more than it has.
        let mut columns: Vec<Vec<Option<f64>>> = Vec::new();
        for (column, sum) in numbers.iter().zip(&mut sums) {
            let read = || -> Result<Vec<Option<f64>>> {
                let reader = group.get_column_reader(*column).map_err(|error| anyhow!(plainly(&error)))?;
                as_numbers(reader, &schema.column(*column), rows)
            };
            let values = read().with_context(|| format!("column `{}`", names[*column]))?;
            values.iter().flatten().for_each(|value| sum.update(&value.to_le_bytes()));
            columns.push(values);
        }
        let from = dataset.numbers.len();
        for ((at, column), sum) in discrete.iter().zip(&mut sums[numbers.len()..]) {
            let mut read = || -> Result<Vec<Option<String>>> {
                let reader = group.get_column_reader(*at).map_err(|error| anyhow!(plainly(&error)))?;
                as_entries(reader, &schema.column(*at), rows, sum)
            };
            let values = read().with_context(|| format!("column `{}`", names[*at]))?;
            let first = columns.len();
            columns.resize(first + points::width(std::slice::from_ref(column)), Vec::with_capacity(rows));
            for (row, value) in values.iter().enumerate() {
                let place = || format!("row {}, column `{}`", from / width.max(1) + row + 1, names[*at]);
                let parsed = column.parse(value.as_deref().unwrap_or_default()).with_context(place)?;
                columns[first..].iter_mut().zip(parsed).for_each(|(column, number)| column.push(Some(number)));
            }
        }
        if !columns.is_empty() {
            dataset.numbers.resize(from + rows * columns.len(), f64::NAN);
        }
        for (at, values) in columns.iter().enumerate() {
            for (row, value) in values.iter().enumerate() {
                dataset.numbers[from + row * columns.len() + at] = value.unwrap_or(f64::NAN);
            }
        }
        if let (Some(column), Some(sum)) = (text, sums.last_mut()) {
            let before = dataset.text.len();
            let read = || -> Result<Vec<Option<String>>> {
                let reader = group.get_column_reader(column).map_err(|error| anyhow!(plainly(&error)))?;
                as_text(reader, &schema.column(column), rows)
            };
            let values = read().with_context(|| format!("column `{}`", names[column]))?;
            for (row, value) in values.into_iter().enumerate() {
                let missing = || format!("row {}, column `{}`: text is missing", before + row + 1, names[column]);
                let value = value.with_context(missing)?;
                add_text(sum, &value);
                dataset.text.push(value);
            }
        }
    }
    // Files that were written here say what their columns hold.
    for (column, sum) in chosen.iter().zip(&sums) {
        let key = checksum_key(&names[*column]);
        let entry = about.key_value_metadata().into_iter().flatten().find(|entry| entry.key == key);
        if let Some(stored) = entry.and_then(|entry| entry.value.as_ref()) {
            ensure!(*stored == digits(sum), "column `{}` does not match its checksum: a damaged file", names[*column]);
        }
    }
    Ok(dataset)
}

/// Fails if the counts of rows in a file contradict each other, or if there is no memory for so many.
fn check_counts(reader: &SerializedFileReader<File>, columns: &[usize]) -> Result<()> {
    let damaged = "a damaged Parquet file: its counts of rows contradict each other";
    let mut total = 0i64;
    for group in reader.metadata().row_groups() {
        let rows = group.num_rows();
        ensure!(rows >= 0, damaged);
        total = total.checked_add(rows).context(damaged)?;
        for column in columns {
            let chunk = group.columns().get(*column).context(damaged)?;
            ensure!(chunk.num_values() == rows, damaged);
        }
    }
    ensure!(total == reader.metadata().file_metadata().num_rows(), damaged);
    // Each number is held as it was read, as an option and in the table.
    limits::check_memory(total as f64 * columns.len() as f64 * 32.0, &format!("{total} rows"))
}

/// The entry of the metadata with the checksum of a column.
fn checksum_key(column: &str) -> String {
    format!("pal:checksum:{column}")
}

fn digits(sum: &Xxh3) -> String {
    format!("{:016x}", sum.digest())
}

fn add_text(sum: &mut Xxh3, text: &str) {
    sum.update(text.as_bytes());
    sum.update(&(text.len() as u64).to_le_bytes());
}

/// The number of rows that are asked for at a time.
const PART: usize = 1 << 16;

/// Returns one entry per row, `None` where it is missing.
fn entries<T: DataType>(mut reader: ColumnReaderImpl<T>, present: i16, rows: usize) -> Result<Vec<Option<T::T>>> {
    // A value is present if everything optional on the way to it is: at the highest definition level.
    let optional = present > 0;
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < rows {
        let wanted = optional.then_some(&mut levels);
        let (records, _, _) = reader
            .read_records((rows - done).min(PART), wanted, None, &mut values)
            .map_err(|error| anyhow!(plainly(&error)))?;
        ensure!(records > 0, "the column ends after {done} of {rows} rows: a damaged file");
        done += records;
    }
    let present_values = if optional { levels.iter().filter(|level| **level == present).count() } else { rows };
    ensure!(
        values.len() == present_values,
        "the column has {} of {present_values} values: a damaged file",
        values.len()
    );
    let mut values = values.into_iter();
    if !optional {
        return Ok(values.map(Some).collect());
    }
    Ok(levels.into_iter().map(|level| if level == present { values.next() } else { None }).collect())
}

fn as_numbers(reader: ColumnReader, column: &ColumnDescriptor, rows: usize) -> Result<Vec<Option<f64>>> {
    let present = column.max_def_level();
    let signed = plain_integer(column);
    match reader {
        ColumnReader::DoubleColumnReader(reader) => entries(reader, present, rows),
        ColumnReader::FloatColumnReader(reader) => {
            Ok(entries(reader, present, rows)?.into_iter().map(|value| value.map(f64::from)).collect())
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let signed = signed?;
            let number = |value: i32| if signed { f64::from(value) } else { f64::from(value as u32) };
            Ok(entries(reader, present, rows)?.into_iter().map(|value| value.map(number)).collect())
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let signed = signed?;
            let number = |value: i64| if signed { value as f64 } else { value as u64 as f64 };
            Ok(entries(reader, present, rows)?.into_iter().map(|value| value.map(number)).collect())
        }
        _ => bail!("it has type {}; numbers should be float64, float32 or integers", column.physical_type()),
    }
}

/// Returns the entries of a column of Booleans or labels as text, and adds them to the checksum that columns have which
/// were written here.
fn as_entries(
    reader: ColumnReader,
    column: &ColumnDescriptor,
    rows: usize,
    sum: &mut Xxh3,
) -> Result<Vec<Option<String>>> {
    let present = column.max_def_level();
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            let values = entries(reader, present, rows)?;
            Ok(values.into_iter().map(|value| value.map(|value| value.to_string())).collect())
        }
        ColumnReader::ByteArrayColumnReader(_) => {
            let values = as_text(reader, column, rows)?;
            values.iter().flatten().for_each(|value| add_text(sum, value));
            Ok(values)
        }
        _ => {
            let values = as_numbers(reader, column, rows)?;
            values.iter().flatten().for_each(|value| sum.update(&value.to_le_bytes()));
            Ok(values.into_iter().map(|value| value.map(|value| value.to_string())).collect())
        }
    }
}

fn as_text(reader: ColumnReader, column: &ColumnDescriptor, rows: usize) -> Result<Vec<Option<String>>> {
    let present = column.max_def_level();
    match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            let text = |value: ByteArray| value.as_utf8().map(str::to_string).context("it has bytes that are not text");
            entries(reader, present, rows)?.into_iter().map(|value| value.map(text).transpose()).collect()
        }
        ColumnReader::Int32ColumnReader(reader) => {
            let values = entries(reader, present, rows)?;
            Ok(values.into_iter().map(|value| value.map(|value| value.to_string())).collect())
        }
        ColumnReader::Int64ColumnReader(reader) => {
            let values = entries(reader, present, rows)?;
            Ok(values.into_iter().map(|value| value.map(|value| value.to_string())).collect())
        }
        _ => bail!("it has type {}; groups should be text or integers", column.physical_type()),
    }
}

/// Returns whether integers are signed. Decimals, dates and times are stored as integers too, and are refused.
fn plain_integer(column: &ColumnDescriptor) -> Result<bool> {
    match column.logical_type_ref() {
        None => match column.converted_type() {
            parquet::basic::ConvertedType::DECIMAL => bail!("it holds decimals; store them as float64"),
            _ => Ok(true),
        },
        Some(LogicalType::Integer(kind)) => Ok(kind.is_signed),
        Some(other) => bail!("it holds {other:?}; store numbers as float64 or integers"),
    }
}

/// The number of rows per row group.
const GROUP: usize = 1 << 20;

fn checksum_of(column: &Column) -> String {
    let mut sum = Xxh3::new();
    match column {
        Column::Numbers(_, values) => values.iter().for_each(|value| sum.update(&value.to_le_bytes())),
        Column::Text(_, values) => values.iter().for_each(|value| add_text(&mut sum, value)),
    }
    digits(&sum)
}

/// Writes columns of equal length.
pub fn write(out: &mut (impl Write + Send), columns: &[Column]) -> Result<()> {
    let field = |column: &Column| -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match column {
            Column::Numbers(..) => (Physical::DOUBLE, None),
            Column::Text(..) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(column.name(), physical).with_logical_type(logical);
        Ok(Arc::new(builder.with_repetition(Repetition::REQUIRED).build()?))
    };
    let attempt = || -> Result<(), ParquetError> {
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?);
        let sums =
            columns.iter().map(|column| KeyValue::new(checksum_key(column.name()), checksum_of(column))).collect();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let properties = Arc::new(properties.set_key_value_metadata(Some(sums)).build());
        let mut writer = SerializedFileWriter::new(out, schema, properties)?;
        let rows = columns.first().map_or(0, |column| match column {
            Column::Numbers(_, values) => values.len(),
            Column::Text(_, values) => values.len(),
        });
        for from in (0..rows).step_by(GROUP) {
            let part = from..(from + GROUP).min(rows);
            let mut group = writer.next_row_group()?;
            for column in columns {
                let Some(mut writer) = group.next_column()? else { break };
                match column {
                    Column::Numbers(_, values) => {
                        writer.typed::<DoubleType>().write_batch(&values[part.clone()], None, None)?;
                    }
                    Column::Text(_, values) => {
                        let bytes: Vec<ByteArray> = values[part.clone()].iter().map(|v| v.as_str().into()).collect();
                        writer.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
                    }
                }
                writer.close()?;
            }
            group.close()?;
        }
        writer.close()?;
        Ok(())
    };
    attempt().map_err(|error| anyhow!(plainly(&error))).context("cannot write")
}

/// The cause of an error of `parquet` without what the crate says around it.
fn plainly(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write as _};

    use super::*;
    use crate::points::PointColumn;

    fn written(columns: &[Column]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, columns).unwrap();
        bytes
    }

    /// What is read from the bytes of a file: numbers as bits, and text.
    fn read_bytes(bytes: &[u8], names: &[String], text: Option<&str>) -> Result<(Vec<u64>, Vec<String>)> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        let dataset = read(file, ColumnNames { numbers: names, discrete: &[], text })?;
        Ok((dataset.numbers.iter().map(|x| x.to_bits()).collect(), dataset.text))
    }

    /// A file with a column of truth values, as other programs write them; one is missing.
    fn booleans(name: &str, values: &[Option<bool>]) -> Vec<u8> {
        let field = Type::primitive_type_builder(name, Physical::BOOLEAN).with_repetition(Repetition::OPTIONAL);
        let fields = vec![Arc::new(field.build().unwrap())];
        let schema = Arc::new(Type::group_type_builder("rows").with_fields(fields).build().unwrap());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let present: Vec<bool> = values.iter().flatten().copied().collect();
        column.typed::<parquet::data_type::BoolType>().write_batch(&present, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        bytes
    }

    fn read_discrete(bytes: &[u8], discrete: &[PointColumn]) -> Result<Vec<f64>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        Ok(read(file, ColumnNames { numbers: &[], discrete, text: None })?.numbers)
    }

    #[test]
    fn truth_values_and_labels() {
        let found = read_discrete(&booleans("wet", &[Some(true), None, Some(false)]), &[PointColumn::boolean("wet")]);
        let found = found.unwrap();
        assert!(found[0] == 1.0 && found[1].is_nan() && found[2] == 0.0, "{found:?}");
        let script = "(declare-datatype Mode ((walk) (bike))) (declare-const m Mode) (declare-const wet Bool)
            (declare-const n Int) (assert (<= 3 n 4))";
        let columns = PointColumn::of(&pal::formula::parse_smtlib(script).unwrap());
        let text = |words: [&str; 2]| words.map(str::to_string).to_vec();
        let file = |modes: [&str; 2]| {
            written(&[
                Column::Numbers("n", vec![4.0, 3.0]),
                Column::Numbers("wet", vec![0.0, 1.0]),
                Column::Text("m", text(modes)),
            ])
        };
        let found = read_discrete(&file(["bike", "walk"]), &columns).unwrap();
        assert_eq!(found, [0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]);
        let error = format!("{:#}", read_discrete(&file(["bike", "run"]), &columns).unwrap_err());
        assert_eq!(error, "row 2, column `m`: `run` is not a value of `m`; it has walk, bike");
    }

    /// Every single flipped bit is an error or changes nothing, and none is a panic.
    #[test]
    fn flipped_bits_are_noticed() {
        let numbers: Vec<f64> = (0..40).map(|k| (1.7 * f64::from(k)).sin()).collect();
        let other: Vec<f64> = (0..40).map(f64::from).collect();
        let text: Vec<String> = (0..40).map(|k| format!("t{}", k / 7)).collect();
        let columns = [Column::Numbers("x", numbers), Column::Text("track", text), Column::Numbers("y", other)];
        let bytes = written(&columns);
        let names = ["y".to_string(), "x".to_string()];
        let truth = read_bytes(&bytes, &names, Some("track")).unwrap();
        assert_eq!((truth.0.len(), truth.1.len()), (80, 40));
        let mut refused = 0;
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read_bytes(&damaged, &names, Some("track")) {
                Ok(read) => assert!(read == truth, "bit {bit} of byte {} changes the data", bit / 8),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > bytes.len(), "{refused} of {} bits", 8 * bytes.len());
    }
}
