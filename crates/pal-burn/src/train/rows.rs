//! Rows of data, and their division into rows for training, validation and testing.

use std::collections::HashMap;

use burn::tensor::{DType, Device};
use pal::random::Stream;
use thiserror::Error;

use crate::predictor::{Batch, matrix};

/// The inputs and outputs of a data set, row by row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The scaled inputs.
    pub inputs: Vec<f64>,
    /// The number of inputs per row; 0 for an unconditional density.
    pub columns: usize,
    /// The outputs: one point per row.
    pub points: Vec<f64>,
    /// The number of coordinates per point.
    pub dimension: usize,
    /// The device that batches are put on.
    pub device: Device,
    /// The precision of the inputs of batches.
    pub dtype: DType,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Makes a batch of the chosen rows, for the given step of training.
    pub fn batch(&self, chosen: &[usize], step: u64) -> Batch {
        let inputs = (self.columns > 0).then(|| {
            let values = pick(&self.inputs, self.columns, chosen);
            matrix(&values, self.columns, &self.device, self.dtype)
        });
        Batch { inputs, points: pick(&self.points, self.dimension, chosen), dimension: self.dimension, step }
    }

    /// Returns the order of the rows in an epoch.
    pub(super) fn shuffled(&self, seed: u64, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        shuffle(&mut order, &mut Stream::new(seed, epoch));
        order
    }
}

fn pick(values: &[f64], columns: usize, chosen: &[usize]) -> Vec<f64> {
    chosen.iter().flat_map(|row| &values[row * columns..(row + 1) * columns]).copied().collect()
}

/// Shuffles items by the method of Fisher and Yates.
fn shuffle<T>(items: &mut [T], stream: &mut Stream) {
    for last in (1..items.len()).rev() {
        items.swap(last, (stream.unit() * (last + 1) as f64) as usize);
    }
}

/// Which rows are for training, validation and testing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The rows for training: those of about 70 % of the groups.
    pub train: Vec<usize>,
    /// The rows for validation: those of about 15 % of the groups.
    pub validation: Vec<usize>,
    /// The rows for testing: those of the remaining groups, about 15 %.
    pub test: Vec<usize>,
}

/// Why rows cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{groups} groups cannot be split in three; at least 3 are needed")]
pub struct SplitError {
    /// The number of different groups.
    pub groups: usize,
}

impl Split {
    /// Splits rows at random such that rows of the same group stay together; `groups` has one entry per row. Where
    /// there are no groups, give every row a different one.
    pub fn new<G: std::hash::Hash + Eq + Clone>(groups: &[G], seed: u64) -> Result<Split, SplitError> {
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<&G, usize> = HashMap::new();
        for (row, group) in groups.iter().enumerate() {
            let at = *known.entry(group).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[at].push(row);
        }
        let count = members.len();
        if count < 3 {
            return Err(SplitError { groups: count });
        }
        shuffle(&mut members, &mut Stream::new(seed, u64::MAX));
        let held = ((0.15 * count as f64).round() as usize).max(1);
        let mut parts = [count - 2 * held, held, held].map(|size| {
            let mut rows: Vec<usize> = members.drain(..size).flatten().collect();
            rows.sort_unstable();
            rows
        });
        let [train, validation, test] = &mut parts;
        let take = std::mem::take::<Vec<usize>>;
        Ok(Split { train: take(train), validation: take(validation), test: take(test) })
    }
}
