//! Batches of regions as safetensors files.
//!
//! A file is a [`Container`], whose checksum covers every byte. Its tensors are:
//!
//! - `texts`: bytes of SMT-LIB scripts, each ended by a zero: the variables, then every distinct constraint;
//! - `rows`: for each row its kind (0 a region, 1 a window, 2 half-spaces, 3 what can be seen in a window), and the number of its constraint or union;
//! - `windows`: for each window its centre, the two numbers of its heading times its scale, and its half widths;
//! - `parts`: for each part of a union the number of the union and how many half-spaces the part has;
//! - `half_spaces`: normal and offset of each half-space, part by part.
//!
//! The last four are float64.

use std::collections::HashMap;
use std::sync::Arc;

use safetensors::tensor::Dtype;

use super::half_spaces::HalfSpaceUnion;
use super::map::MapData;
use super::window::Window;
use super::{BatchError, BatchRow, RegionBatch};
use crate::container::{self, ContainedTensor, Container, ContainerError};
use crate::formula::{Constraint, Formula, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use crate::region::{Region, RegionError};

/// The version that this code writes and reads.
const VERSION: &str = "pal-regions-3";

/// Why a file of regions cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BatchFileError {
    /// Not a safetensors file.
    #[error(transparent)]
    Format(ContainerError),
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

impl From<ContainerError> for BatchFileError {
    fn from(error: ContainerError) -> BatchFileError {
        match error {
            ContainerError::Version { found, .. } => BatchFileError::Version(found),
            ContainerError::Checksum => BatchFileError::Checksum,
            ContainerError::Missing(_) => BatchFileError::Content(error.to_string()),
            other => BatchFileError::Format(other),
        }
    }
}

fn tensor(name: &str, width: usize, values: &[f64]) -> ContainedTensor {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    (name.to_string(), Dtype::F64, vec![values.len() / width, width], bytes)
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
                BatchRow::Whole(map) | BatchRow::Window(map, _) | BatchRow::Visible(map, _) => {
                    let number = match maps.get(&Arc::as_ptr(map)) {
                        Some(number) => *number,
                        None => {
                            constraints.push(write_smtlib(map.region.constraint())?);
                            maps.insert(Arc::as_ptr(map), maps.len());
                            maps.len() - 1
                        }
                    };
                    let kind = match row {
                        BatchRow::Whole(_) => 0.0,
                        BatchRow::Visible(..) => 3.0,
                        _ => 1.0,
                    };
                    (kind, number)
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
            if let BatchRow::Window(_, window) | BatchRow::Visible(_, window) = row {
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
            ("texts".to_string(), Dtype::U8, vec![texts.len()], texts.into_bytes()),
        ];
        Ok(container::pack(VERSION, [], &tensors)?)
    }

    /// Reads what [`RegionBatch::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<RegionBatch, BatchFileError> {
        let content = |message: String| BatchFileError::Content(message);
        let container = Container::read(bytes, VERSION)?;
        let view = |name: &str| {
            container.tensors().tensor(name).map_err(|_| content(format!("the tensor `{name}` is missing")))
        };
        let texts = view("texts")?;
        if texts.dtype() != Dtype::U8 {
            return Err(content(format!("`texts` has type {:?}, expected U8", texts.dtype())));
        }
        let scripts = std::str::from_utf8(texts.data()).map_err(|_| content("`texts` is not text".to_string()))?;
        let mut scripts = scripts.split_terminator('\0');
        let variables = parse_smtlib(scripts.next().unwrap_or_default())?.reals;
        let n = variables.len();
        if n == 0 {
            return Err(BatchError::NoVariables.into());
        }
        let numbers = |name: &str, width: usize| -> Result<Vec<f64>, BatchFileError> {
            let view = view(name)?;
            if view.dtype() != Dtype::F64 || view.shape().len() != 2 || view.shape()[1] != width {
                return Err(content(format!("`{name}` should be float64 with {width} columns")));
            }
            Ok(view.data().as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
        };
        let (half_spaces, parts) = (numbers("half_spaces", n + 1)?, numbers("parts", 2)?);
        let (rows, windows) = (numbers("rows", 2)?, numbers("windows", 2 * n + 2)?);
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
                kind @ (1.0 | 3.0) => {
                    let window = Window::restore(n, windows.next().ok_or_else(missing)?)?;
                    let map = maps.get(number).ok_or_else(missing)?.clone();
                    if kind == 3.0 {
                        map.check_visible()?;
                        BatchRow::Visible(map, window)
                    } else {
                        BatchRow::Window(map, window)
                    }
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
