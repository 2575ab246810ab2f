//! A form bin by bin as the tensors of a file.
//!
//! - `intervals`: for each side of a box its axis, its bin and seven means;
//! - `boxes`: for each box one interval per axis, counted along that axis, and the volume;
//! - `cut_bins`: for each cut bin its place along every axis, its table, and the volume integrated by recurrence;
//! - `tables`: 7^n entries for each table, the last axis running fastest.

use super::form::{BinForm, BoxPart, BoxSide, CutBin};
use super::hermite::SQUARE;
use crate::density::file::{FileError, FileTensors, NamedTensor};
use crate::density::grid::{BinIndex, Grid};

pub(super) fn tensors(form: &BinForm<f64>) -> Vec<NamedTensor> {
    let n = form.dimension();
    let mut intervals = Vec::new();
    for (axis, list) in form.intervals.iter().enumerate() {
        for interval in list {
            intervals.extend([axis as f64, interval.bin.get() as f64]);
            intervals.extend(interval.means);
        }
    }
    let boxes = form.boxes.iter().flat_map(|part| part.sides.iter().map(|side| f64::from(*side)).chain([part.volume]));
    let cut = form.cut.iter().flat_map(|cut| {
        cut.bin.iter().map(|bin| bin.get() as f64).chain([f64::from(cut.table), cut.swept]).collect::<Vec<f64>>()
    });
    let tensor = |name: &'static str, width: usize, values: Vec<f64>| NamedTensor {
        name,
        shape: vec![values.len() / width, width],
        values,
    };
    vec![
        tensor("intervals", 2 + SQUARE, intervals),
        tensor("boxes", n + 1, boxes.collect()),
        tensor("cut_bins", n + 2, cut.collect()),
        tensor("tables", form.table_len(), form.tables.clone()),
    ]
}

pub(super) fn read(grid: &Grid, tensors: &mut FileTensors) -> Result<BinForm<f64>, FileError> {
    let bins: Vec<usize> = grid.axes().iter().map(|axis| axis.bins()).collect();
    let n = bins.len();
    let mut take = |name: &'static str, width: usize| -> Result<Vec<f64>, FileError> {
        let (shape, values) = tensors.take(name)?;
        if shape.len() != 2 || shape[1] != width {
            let message = format!("the tensor `{name}` has shape {shape:?}, but its rows should have length {width}");
            return Err(FileError::Content(message));
        }
        if values.iter().any(|x| !x.is_finite()) {
            return Err(FileError::Content(format!("the tensor `{name}` holds a number that is not finite")));
        }
        Ok(values)
    };
    let mut intervals: Vec<Vec<BoxSide<f64>>> = vec![Vec::new(); n];
    for row in take("intervals", 2 + SQUARE)?.chunks(2 + SQUARE) {
        let axis = index(row[0], n, "intervals")?;
        let bin = BinIndex::new(index(row[1], bins[axis], "intervals")?);
        let means = row[2..].try_into().expect("a row has seven means");
        intervals[axis].push(BoxSide { bin, means });
    }
    let mut boxes = Vec::new();
    for row in take("boxes", n + 1)?.chunks(n + 1) {
        let sides = row[..n].iter().zip(&intervals);
        let sides = sides.map(|(x, axis)| index(*x, axis.len(), "boxes").map(|side| side as u32));
        boxes.push(BoxPart { sides: sides.collect::<Result<_, _>>()?, volume: row[n] });
    }
    let cut_rows = take("cut_bins", n + 2)?;
    let length = SQUARE.pow(n as u32);
    let tables = take("tables", length)?;
    let mut cut = Vec::new();
    for row in cut_rows.chunks(n + 2) {
        let bin = row[..n].iter().zip(&bins).map(|(x, bins)| index(*x, *bins, "cut_bins").map(BinIndex::new));
        let bin = bin.collect::<Result<_, _>>()?;
        cut.push(CutBin { bin, table: index(row[n], tables.len() / length, "cut_bins")? as u32, swept: row[n + 1] });
    }
    Ok(BinForm::new(bins, SQUARE, intervals, boxes, cut, tables))
}

/// A number of a file as an index below `end`.
fn index(x: f64, end: usize, tensor: &str) -> Result<usize, FileError> {
    if x >= 0.0 && x < end as f64 && x.fract() == 0.0 {
        return Ok(x as usize);
    }
    Err(FileError::Content(format!("the tensor `{tensor}` holds {x} where an index from 0 to below {end} should be")))
}
