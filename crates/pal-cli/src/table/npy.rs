//! `.npy`: the array file of NumPy.
//!
//! Six magic bytes, a version, the length of the header (two bytes in version 1, four in 2 and 3), the header, the
//! values. The header is a Python dictionary of three entries,
//!
//! ```text
//! {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }
//! ```
//!
//! padded with blanks so that the values start at a multiple of 64. We write more blanks than needed, so that the
//! number of rows can be filled in once it is known.

use std::io::{Read, Seek, SeekFrom, Write};

use anyhow::{Context, Result, bail, ensure};

use super::{BUFFER, Sink, Table, fill, whole_rows};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers of plain arrays have about 100 bytes; longer ones describe records, which are refused anyway.
const LONGEST_HEADER: usize = 1 << 16;
/// The length of the preamble and header that we write.
const START: usize = 128;

/// A number format and its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberFormat {
    kind: u8,
    size: usize,
    big_endian: bool,
}

impl NumberFormat {
    fn new(descr: &str) -> Result<NumberFormat> {
        let known = match descr.as_bytes() {
            [order, kind @ (b'f' | b'i'), size @ (b'4' | b'8')] => match order {
                b'<' | b'=' | b'|' => Some((*kind, *size, false)),
                b'>' => Some((*kind, *size, true)),
                _ => None,
            },
            _ => None,
        };
        let (kind, size, big_endian) = known
            .with_context(|| format!("values of type `{descr}` are not read; float64, float32, int64 and int32 are"))?;
        Ok(NumberFormat { kind, size: usize::from(size - b'0'), big_endian })
    }

    /// Turns bytes into float64. Integers beyond 2^53 are rounded.
    fn decode(self, bytes: &[u8], values: &mut Vec<f64>) {
        let mut each = |width: usize, convert: fn(u64) -> f64| {
            values.extend(bytes.chunks_exact(width).map(|chunk| {
                let gather = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
                let bits =
                    if self.big_endian { chunk.iter().fold(0, gather) } else { chunk.iter().rev().fold(0, gather) };
                convert(bits)
            }));
        };
        match (self.kind, self.size) {
            (b'f', 8) => each(8, f64::from_bits),
            (b'f', _) => each(4, |bits| f64::from(f32::from_bits(bits as u32))),
            (_, 8) => each(8, |bits| bits as i64 as f64),
            _ => each(4, |bits| f64::from(bits as u32 as i32)),
        }
    }
}

/// Reads an array of one dimension as a column, of two as a table. `length` is the length of the file, if it is known.
pub fn read(mut input: impl Read, length: Option<u64>) -> Result<Table> {
    let (header, start) = header(&mut input)?;
    let format = NumberFormat::new(entry(&header, "descr")?.trim_matches(['\'', '"']))?;
    let fortran = match entry(&header, "fortran_order")? {
        "True" => true,
        "False" => false,
        other => bail!("the header says fortran_order {other}, which should be True or False"),
    };
    let shape = shape(entry(&header, "shape")?)?;
    let (rows, columns) = match shape[..] {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => bail!("an array of shape {} is no table; one or two dimensions are", entry(&header, "shape")?),
    };
    ensure!(columns > 0, "the array has no columns");
    let count = rows.checked_mul(columns).filter(|count| count.checked_mul(format.size).is_some());
    let count = count.context("the header promises more values than memory can have")?;
    let short = |found: u64| format!("the file is cut short: {found} of {count} values are there");
    // Checked before memory is allocated.
    if let Some(length) = length {
        let present = length.saturating_sub(start) / format.size as u64;
        ensure!(present >= count as u64, short(present));
    }
    let mut values = Vec::new();
    values.try_reserve_exact(count).context("there is not enough memory for this array")?;
    let mut buffer = vec![0; BUFFER];
    while values.len() < count {
        let wanted = BUFFER.min((count - values.len()) * format.size);
        let found = fill(&mut input, &mut buffer[..wanted]).context("cannot read")?;
        format.decode(&buffer[..found], &mut values);
        ensure!(found == wanted, short(values.len() as u64));
    }
    if fortran && rows > 1 && columns > 1 {
        let by_columns = values;
        values = (0..count).map(|k| by_columns[k % columns * rows + k / columns]).collect();
    }
    Ok(Table { names: None, columns, values })
}

/// Returns the text of the header, and the position at which the values start.
fn header(input: &mut impl Read) -> Result<(String, u64)> {
    let mut preamble = [0; 8];
    let found = fill(input, &mut preamble).context("cannot read")?;
    ensure!(found > 0, "the file is empty");
    ensure!(found == 8 && preamble.starts_with(MAGIC), "this is not an .npy file: its first bytes are others");
    let width = match preamble[6] {
        1 => 2,
        2 | 3 => 4,
        version => bail!(".npy version {version} is not known; versions 1 to 3 are"),
    };
    let mut bytes = [0; 4];
    ensure!(fill(input, &mut bytes[..width]).context("cannot read")? == width, "the header is cut short");
    let size = u32::from_le_bytes(bytes) as usize;
    ensure!(size <= LONGEST_HEADER, "the header is {size} bytes long; arrays of plain numbers have short ones");
    let mut text = vec![0; size];
    ensure!(fill(input, &mut text).context("cannot read")? == size, "the header is cut short");
    let text = String::from_utf8(text).ok().context("the header is not text")?;
    Ok((text, (8 + width + size) as u64))
}

/// Returns the value of a key, up to the next comma outside parentheses, brackets and quotes.
fn entry<'a>(header: &'a str, key: &str) -> Result<&'a str> {
    let after = |quote: char| {
        let quoted = format!("{quote}{key}{quote}");
        header.find(&quoted).map(|at| &header[at + quoted.len()..])
    };
    let rest = after('\'').or_else(|| after('"')).and_then(|rest| rest.trim_start().strip_prefix(':'));
    let rest = rest.with_context(|| format!("the header has no entry `{key}`"))?;
    let (mut depth, mut quote) = (0usize, None);
    let end = rest.find(|c: char| {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, ',' | '}') => return depth == 0,
            _ => {}
        }
        false
    });
    Ok(rest[..end.unwrap_or(rest.len())].trim())
}

/// Reads a shape: `(3,)`, `(3, 2)`, or `(3L, 2L)` as Python 2 wrote it.
fn shape(text: &str) -> Result<Vec<usize>> {
    let wrong = || format!("the header says shape {text}, which should be a tuple of sizes");
    let inside = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).with_context(wrong)?;
    let sizes = inside.split(',').map(|size| size.trim().trim_end_matches('L')).filter(|size| !size.is_empty());
    sizes.map(|size| size.parse().ok().with_context(wrong)).collect()
}

/// Writes float64 row by row, and fills in the number of rows at the end.
pub fn write<W: Write + Seek>(
    out: &mut W,
    columns: usize,
    produce: impl FnOnce(&mut Sink) -> Result<()>,
) -> Result<()> {
    let mut rows = 0;
    out.write_all(&start(0, columns))?;
    let mut bytes = Vec::with_capacity(BUFFER);
    produce(&mut |part| {
        rows += whole_rows(part, columns)?;
        for chunk in part.chunks(BUFFER / 8) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
            out.write_all(&bytes)?;
        }
        Ok(())
    })?;
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&start(rows, columns))?;
    Ok(())
}

/// Returns preamble and header, which have the same length for any number of rows.
fn start(rows: usize, columns: usize) -> Vec<u8> {
    let size = START - MAGIC.len() - 4;
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let header = format!("{header:<0$}\n", size - 1);
    [MAGIC, &[1, 0], &(size as u16).to_le_bytes(), header.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A file as NumPy writes it.
    fn file(version: u8, header: &str, values: &[u8]) -> Vec<u8> {
        let width = if version == 1 { 2 } else { 4 };
        let blank = (64 - (8 + width + header.len() + 1) % 64) % 64;
        let header = format!("{header}{}\n", " ".repeat(blank));
        let length = (header.len() as u32).to_le_bytes();
        [MAGIC, &[version, 0], &length[..width], header.as_bytes(), values].concat()
    }

    fn table(bytes: &[u8]) -> Table {
        read(bytes, Some(bytes.len() as u64)).unwrap()
    }

    fn error(bytes: &[u8]) -> String {
        let known = format!("{:#}", read(bytes, Some(bytes.len() as u64)).unwrap_err());
        assert_eq!(known, format!("{:#}", read(bytes, None).unwrap_err()));
        known
    }

    fn bytes<const N: usize, T: Copy>(values: &[T], turn: fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|v| turn(*v)).collect()
    }

    const ROWS: &str = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }";

    #[test]
    fn versions_types_and_orders() {
        let six = [1.5, -2.0, 3.25, 4.0, 5.0, 6.0];
        let floats = bytes(&six, f64::to_le_bytes);
        for version in [1, 2, 3] {
            assert_eq!(table(&file(version, ROWS, &floats)), Table { names: None, columns: 2, values: six.to_vec() });
        }
        let by_columns = ROWS.replace("False", "True");
        assert_eq!(table(&file(1, &by_columns, &floats)).values, [1.5, 4.0, -2.0, 5.0, 3.25, 6.0]);
        let of = |descr: &str| ROWS.replace("<f8", descr);
        assert_eq!(table(&file(1, &of(">f8"), &bytes(&six, f64::to_be_bytes))).values, six);
        let singles = six.map(|v| v as f32);
        assert_eq!(table(&file(2, &of("<f4"), &bytes(&singles, f32::to_le_bytes))).values, six);
        assert_eq!(table(&file(1, &of(">f4"), &bytes(&singles, f32::to_be_bytes))).values, six);
        let integers = [-1i64, 2, 3, i64::MIN, 5, 1 << 52];
        let rounded = integers.map(|v| v as f64);
        assert_eq!(table(&file(1, &of("<i8"), &bytes(&integers, i64::to_le_bytes))).values, rounded);
        assert_eq!(table(&file(1, &of(">i8"), &bytes(&integers, i64::to_be_bytes))).values, rounded);
        let small = [-1i32, 2, 3, i32::MIN, 5, 6];
        assert_eq!(table(&file(1, &of("<i4"), &bytes(&small, i32::to_le_bytes))).values, small.map(f64::from));
    }

    #[test]
    fn headers_as_others_write_them() {
        let floats = bytes(&[1.0, 2.0, 3.0], f64::to_le_bytes);
        for header in [
            "{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }",
            "{\"shape\":(3L,),\"fortran_order\":False,\"descr\":\"<f8\"}",
            "{'shape': (3, 1), 'descr': '<f8', 'fortran_order': True}",
        ] {
            let found = table(&file(1, header, &floats));
            assert_eq!((found.rows(), found.columns, found.values), (3, 1, vec![1.0, 2.0, 3.0]));
        }
        assert_eq!(table(&file(1, &ROWS.replace("(3", "(0"), &[])).rows(), 0);
    }

    #[test]
    fn what_cannot_be_read_says_what_could() {
        let with = |from: &str, to: &str| error(&file(1, &ROWS.replace(from, to), &[0; 48]));
        assert_eq!(with("<f8", "|b1"), "values of type `|b1` are not read; float64, float32, int64 and int32 are");
        assert!(with("'<f8'", "[('x', '<f8'), ('y', '<f8')]").contains("are not read; float64"));
        assert_eq!(with("(3, 2)", "(1, 3, 2)"), "an array of shape (1, 3, 2) is no table; one or two dimensions are");
        assert!(with("(3, 2)", "()").contains("is no table"));
        assert_eq!(with("(3, 2)", "(4, 2)"), "the file is cut short: 6 of 8 values are there");
        assert!(with("(3, 2)", "(99999999999, 99999999999)").contains("more values than memory"));
        assert!(with("(3, 2)", "(-3, 2)").contains("should be a tuple"));
        assert!(with("'shape'", "'form'").contains("no entry `shape`"));
        assert!(with("False", "maybe").contains("True or False"));
        assert_eq!(error(b""), "the file is empty");
        assert!(error(b"x,y\n1,2\n").contains("not an .npy file"));
        assert!(error(b"\x93NUMPY\x09\0\0\0").contains("version 9"));
        assert!(error(b"\x93NUMPY\x02\0\xff\xff\xff\xff").contains("short ones"));
        assert!(error(b"\x93NUMPY\x01\0\x10\0{").contains("cut short"));
        // The size in the header is not trusted where the length of the file is unknown.
        let huge = file(1, &ROWS.replace("(3, 2)", "(100000000000000, 1)"), &[0; 48]);
        assert!(read(&huge[..], None).is_err());
    }

    #[test]
    fn the_written_header_is_the_standard_one() {
        let mut out = Cursor::new(Vec::new());
        write(&mut out, 2, |sink| (0..2).try_for_each(|k| sink(&[f64::from(k), 0.5]))).unwrap();
        let out = out.into_inner();
        assert_eq!((out.len(), &out[..10], out[127]), (128 + 32, &b"\x93NUMPY\x01\0\x76\0"[..], b'\n'));
        assert!(out[10..].starts_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), } "));
        assert!(start(usize::MAX, usize::MAX).len() == START);
        assert_eq!(table(&out).values, [0.0, 0.5, 1.0, 0.5]);
    }
}
