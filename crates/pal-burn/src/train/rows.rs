//! Rows of data, and their division into three parts.

use std::collections::HashMap;

use burn::tensor::{DType, Device};
use pal::random::Stream;
use thiserror::Error;

use crate::model::{Batch, matrix};

/// Inputs and outputs, row by row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Scaled inputs.
    pub inputs: Vec<f64>,
    /// Inputs per row; 0 for an unconditional density.
    pub columns: usize,
    /// Points.
    pub points: Vec<f64>,
    /// Coordinates per point.
    pub dimension: usize,
    /// Where batches go.
    pub device: Device,
    /// The precision of inputs.
    pub dtype: DType,
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.points.len() / self.dimension.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Some rows as a batch.
    pub fn batch(&self, chosen: &[usize], step: u64) -> Batch {
        let inputs = (self.columns > 0).then(|| {
            let values = pick(&self.inputs, self.columns, chosen);
            matrix(&values, self.columns, &self.device, self.dtype)
        });
        Batch { inputs, points: pick(&self.points, self.dimension, chosen), dimension: self.dimension, step }
    }

    /// The order of rows in an epoch.
    pub(super) fn shuffled(&self, seed: u64, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        shuffle(&mut order, &mut Stream::new(seed, epoch));
        order
    }
}

fn pick(values: &[f64], columns: usize, chosen: &[usize]) -> Vec<f64> {
    chosen.iter().flat_map(|row| &values[row * columns..(row + 1) * columns]).copied().collect()
}

/// The method of Fisher and Yates.
fn shuffle<T>(items: &mut [T], stream: &mut Stream) {
    for last in (1..items.len()).rev() {
        items.swap(last, (stream.unit() * (last + 1) as f64) as usize);
    }
}

/// Which rows are for training, validation and testing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// 70 % of the groups.
    pub train: Vec<usize>,
    /// 15 %.
    pub validation: Vec<usize>,
    /// The rest.
    pub test: Vec<usize>,
}

/// Why rows cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{groups} groups cannot be split in three; at least 3 are needed")]
pub struct SplitError {
    /// How many there are.
    pub groups: usize,
}

impl Split {
    /// By groups: rows of the same group stay together. Without groups, every row is one.
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
