//! Batches of regions as safetensors files.
//!
//! The metadata holds the version. The tensors are:
//!
//! - `texts`: bytes of SMT-LIB scripts, each ended by a zero: the variables, then every distinct constraint;
//! - `checksum`: that of all other tensors, as text;
//! - `rows`: for each row its kind (0 a region, 1 a window, 2 half-spaces), and the number of its constraint or union;
//! - `windows`: for each window its centre, the two numbers of its heading times its scale, and its half widths;
//! - `parts`: for each part of a union the number of the union and how many half-spaces the part has;
//! - `half_spaces`: normal and offset of each half-space, part by part.
//!
//! The last four are float64. Metadata of several entries would come in any order, and equal batches make equal bytes.

use std::collections::HashMap;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::half_spaces::HalfSpaceUnion;
use super::map::MapData;
use super::window::Window;
use super::{BatchError, BatchRow, RegionBatch};
use crate::checksum::checksum;
use crate::formula::{Constraint, Formula, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use crate::region::{Region, RegionError};

/// The version that this code writes and reads.
const VERSION: &str = "pal-regions-1";

/// Why a file of regions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BatchFileError {
    /// Not a safetensors file.
    #[error("not a safetensors file, or a damaged one")]
    Format(#[from] safetensors::SafeTensorError),
    /// Another kind of file, or one that another version wrote.
    #[error("not a file of regions of this version: its version is `{0}`, expected `{VERSION}`")]
    Version(String),
    /// The content was changed after it was written.
    #[error("the checksum does not match: the file was changed or damaged")]
    Checksum,
    /// A tensor or entry is missing, or its numbers make no batch.
    #[error("{0}")]
    Content(String),
    /// A constraint in the file cannot be read.
    #[error("a constraint in the file: {0}")]
    Constraint(#[from] SmtError),
    /// A constraint cannot be written as SMT-LIB.
    #[error(transparent)]
    Write(#[from] SmtWriteError),
    /// A constraint in the file is no region.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The rows in the file make no batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// A name, the shape and the bytes of a tensor.
type Tensor = (&'static str, Vec<usize>, Vec<u8>);

fn tensor(name: &'static str, width: usize, values: &[f64]) -> Tensor {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    (name, vec![values.len() / width, width], bytes)
}

impl RegionBatch {
    /// The content of a file that [`RegionBatch::from_bytes`] reads back. A map that many windows share is written once.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BatchFileError> {
        let n = self.dimension();
        let mut constraints: Vec<String> = Vec::new();
        let mut maps: HashMap<*const MapData, usize> = HashMap::new();
        let mut unions: HashMap<*const HalfSpaceUnion, usize> = HashMap::new();
        let (mut rows, mut windows, mut parts, mut half_spaces) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for row in &self.rows {
            let (kind, number) = match row {
                BatchRow::Whole(map) | BatchRow::Window(map, _) => {
                    let number = match maps.get(&Arc::as_ptr(map)) {
                        Some(number) => *number,
                        None => {
                            constraints.push(write_smtlib(map.region.constraint())?);
                            maps.insert(Arc::as_ptr(map), maps.len());
                            maps.len() - 1
                        }
                    };
                    (if matches!(row, BatchRow::Whole(_)) { 0.0 } else { 1.0 }, number)
                }
                BatchRow::HalfSpaces(union) => {
                    let known = unions.len();
                    let number = *unions.entry(Arc::as_ptr(union)).or_insert(known);
                    if number == known {
                        for (normals, offsets) in &union.parts {
                            parts.extend([number as f64, offsets.len() as f64]);
                            for (normal, offset) in normals.chunks(n).zip(offsets) {
                                half_spaces.extend_from_slice(normal);
                                half_spaces.push(*offset);
                            }
                        }
                    }
                    (2.0, number)
                }
            };
            rows.extend([kind, number as f64]);
            if let BatchRow::Window(_, window) = row {
                windows.extend(window.centre.iter().chain(&window.turn).chain(&*window.half_width));
            }
        }
        let variables = Constraint { formula: Formula::yes(), reals: self.variables.clone(), booleans: Vec::new() };
        let mut texts = write_smtlib(&variables)?;
        for text in [String::new()].into_iter().chain(constraints) {
            // The empty one ends the variables.
            texts.push_str(&text);
            texts.push('\0');
        }
        let tensors = [
            tensor("half_spaces", n + 1, &half_spaces),
            tensor("parts", 2, &parts),
            tensor("rows", 2, &rows),
            tensor("windows", 2 * n + 2, &windows),
        ];
        let checksum = checksum_of(texts.as_bytes(), &tensors);
        let numbers = tensors.iter().map(|(name, shape, bytes)| (*name, Dtype::F64, shape.clone(), &bytes[..]));
        let bytes = [("texts", texts.as_bytes()), ("checksum", checksum.as_bytes())];
        let bytes = bytes.map(|(name, bytes)| (name, Dtype::U8, vec![bytes.len()], bytes));
        let views = numbers
            .chain(bytes)
            .map(|(name, dtype, shape, bytes)| Ok((name.to_string(), TensorView::new(dtype, shape, bytes)?)));
        let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        let metadata = HashMap::from([("version".to_string(), VERSION.to_string())]);
        Ok(safetensors::serialize(views, Some(metadata))?)
    }

    /// Reads what [`RegionBatch::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<RegionBatch, BatchFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let none = HashMap::new();
        let metadata = header.metadata().as_ref().unwrap_or(&none);
        match metadata.get("version").map(String::as_str) {
            Some(VERSION) => {}
            other => return Err(BatchFileError::Version(other.unwrap_or("none").to_string())),
        }
        let content = |message: String| BatchFileError::Content(message);
        let file = SafeTensors::deserialize(bytes)?;
        let bytes_of = |name: &str| -> Result<Vec<u8>, BatchFileError> {
            let view = file.tensor(name)?;
            match view.dtype() {
                Dtype::U8 => Ok(view.data().to_vec()),
                other => Err(content(format!("`{name}` has type {other:?}, expected U8"))),
            }
        };
        let (texts, checksum) = (bytes_of("texts")?, bytes_of("checksum")?);
        let scripts = std::str::from_utf8(&texts).map_err(|_| content("`texts` is not text".to_string()))?;
        let mut scripts = scripts.split_terminator('\0');
        let variables = parse_smtlib(scripts.next().unwrap_or_default())?.reals;
        let n = variables.len();
        if n == 0 {
            return Err(BatchError::NoVariables.into());
        }
        let read = |name: &'static str, width: usize| -> Result<Tensor, BatchFileError> {
            let view = file.tensor(name)?;
            if view.dtype() != Dtype::F64 || view.shape().len() != 2 || view.shape()[1] != width {
                return Err(content(format!("`{name}` should be float64 with {width} columns")));
            }
            Ok((name, view.shape().to_vec(), view.data().to_vec()))
        };
        let tensors = [read("half_spaces", n + 1)?, read("parts", 2)?, read("rows", 2)?, read("windows", 2 * n + 2)?];
        if checksum != checksum_of(&texts, &tensors).as_bytes() {
            return Err(BatchFileError::Checksum);
        }
        let numbers = |at: usize| -> Vec<f64> {
            let chunks = tensors[at].2.as_chunks::<8>().0;
            chunks.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
        };
        let [half_spaces, parts, rows, windows] = [0, 1, 2, 3].map(numbers);
        let mut maps = Vec::new();
        for constraint in scripts {
            let constraint = parse_smtlib(constraint)?;
            if constraint.reals != variables {
                return Err(content("a constraint has other variables than the batch".to_string()));
            }
            maps.push(Arc::new(MapData::new(&Region::new(&constraint)?)?));
        }
        let unions = unions(n, &half_spaces, &parts, &rows)?;
        let mut windows = windows.chunks(2 * n + 2);
        let mut made = Vec::new();
        for row in rows.chunks(2) {
            let missing = || content("a row names a part that the file does not have".to_string());
            let number = row[1] as usize;
            made.push(match row[0] {
                0.0 => BatchRow::Whole(maps.get(number).ok_or_else(missing)?.clone()),
                1.0 => {
                    let window = windows.next().ok_or_else(missing)?;
                    BatchRow::Window(maps.get(number).ok_or_else(missing)?.clone(), Window::restore(n, window)?)
                }
                _ => BatchRow::HalfSpaces(unions.get(number).ok_or_else(missing)?.clone()),
            });
        }
        Ok(RegionBatch { variables, rows: made })
    }
}

/// The unions of half-spaces of a file.
fn unions(
    n: usize,
    half_spaces: &[f64],
    parts: &[f64],
    rows: &[f64],
) -> Result<Vec<Arc<HalfSpaceUnion>>, BatchFileError> {
    let content = |message: &str| BatchFileError::Content(message.to_string());
    let count =
        rows.chunks(2).filter(|row| row[0] == 2.0).map(|row| (row[1] as usize).saturating_add(1)).max().unwrap_or(0);
    if count > rows.len() {
        return Err(content("a row names a union that the file does not have"));
    }
    if half_spaces.iter().any(|x| !x.is_finite()) {
        return Err(content("the tensor `half_spaces` holds a number that is not finite"));
    }
    let mut unions = vec![HalfSpaceUnion { dimension: n, parts: Vec::new() }; count];
    let mut rest = half_spaces.chunks(n + 1);
    for part in parts.chunks(2) {
        let own: Vec<&[f64]> = rest.by_ref().take(part[1] as usize).collect();
        let union = unions.get_mut(part[0] as usize).filter(|_| own.len() == part[1] as usize);
        let union = union.ok_or_else(|| content("the tensors `parts` and `half_spaces` do not go together"))?;
        let normals = own.iter().flat_map(|row| row[..n].to_vec()).collect();
        union.parts.push((normals, own.iter().map(|row| row[n]).collect()));
    }
    Ok(unions.into_iter().map(Arc::new).collect())
}

fn checksum_of(texts: &[u8], tensors: &[Tensor]) -> String {
    let shapes: Vec<String> = tensors.iter().map(|(name, shape, _)| format!("{name}{shape:?}")).collect();
    let parts = shapes.iter().map(|shape| shape.as_bytes()).chain(tensors.iter().map(|(_, _, bytes)| &bytes[..]));
    checksum([texts].into_iter().chain(parts))
}
