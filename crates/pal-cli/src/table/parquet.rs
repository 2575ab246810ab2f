//! Parquet: columns of numbers and text, without nesting.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};

use super::dataset::{Column, ColumnNames, Dataset};

/// Reads columns of a file.
pub fn read(file: File, wanted: ColumnNames) -> Result<Dataset> {
    let reader = SerializedFileReader::new(file).map_err(|error| anyhow!("not a Parquet file: {}", plainly(&error)))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    let (numbers, text) = wanted.find(&names)?;
    for column in numbers.iter().chain(&text) {
        let of = schema.column(*column);
        ensure!(of.max_rep_level() == 0, "column `{}` has lists; give one value per row", names[*column]);
    }
    let mut dataset = Dataset::new(wanted.numbers.len());
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| anyhow!(plainly(&error)))?;
        let rows = usize::try_from(group.metadata().num_rows()).context("a damaged Parquet file")?;
        let from = dataset.numbers.len();
        dataset.numbers.resize(from + rows * wanted.numbers.len(), f64::NAN);
        for (at, column) in numbers.iter().enumerate() {
            let read = || -> Result<Vec<Option<f64>>> {
                let reader = group.get_column_reader(*column).map_err(|error| anyhow!(plainly(&error)))?;
                as_numbers(reader, &schema.column(*column), rows)
            };
            let values = read().with_context(|| format!("column `{}`", names[*column]))?;
            for (row, value) in values.into_iter().enumerate() {
                dataset.numbers[from + row * wanted.numbers.len() + at] = value.unwrap_or(f64::NAN);
            }
        }
        if let Some(column) = text {
            let before = dataset.text.len();
            let read = || -> Result<Vec<Option<String>>> {
                let reader = group.get_column_reader(column).map_err(|error| anyhow!(plainly(&error)))?;
                as_text(reader, &schema.column(column), rows)
            };
            let values = read().with_context(|| format!("column `{}`", names[column]))?;
            for (row, value) in values.into_iter().enumerate() {
                let missing = || format!("row {}, column `{}`: text is missing", before + row + 1, names[column]);
                dataset.text.push(value.with_context(missing)?);
            }
        }
    }
    Ok(dataset)
}

/// Returns one entry per row, `None` where it is missing.
fn entries<T: DataType>(mut reader: ColumnReaderImpl<T>, present: i16, rows: usize) -> Result<Vec<Option<T::T>>> {
    // A value is present if everything optional on the way to it is: at the highest definition level.
    let optional = present > 0;
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < rows {
        let wanted = optional.then_some(&mut levels);
        let (records, _, _) =
            reader.read_records(rows - done, wanted, None, &mut values).map_err(|error| anyhow!(plainly(&error)))?;
        ensure!(records > 0, "the column ends after {done} of {rows} rows: a damaged file");
        done += records;
    }
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
        let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
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
