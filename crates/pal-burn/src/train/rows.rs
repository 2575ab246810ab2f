//! Rows of data, and their division into rows for training, validation and testing.

use std::collections::HashMap;

use burn::tensor::{DType, Device};
use pal::density::{DensityError, Family, RegionForms};
use pal::kernel::KernelFamily;
use pal::random::Stream;
use pal::region::RegionBatch;
use thiserror::Error;

use crate::predictor::{Batch, BatchRegions, matrix};

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
    /// The regions of the rows, where each has its own.
    pub regions: Option<RowRegions>,
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

    /// Makes a batch of the chosen rows, for the given step of training. Fails if the regions of the rows have to be
    /// compiled and cannot be.
    pub fn batch(&self, chosen: &[usize], step: u64) -> Result<Batch, DensityError> {
        let inputs = (self.columns > 0).then(|| {
            let values = pick(&self.inputs, self.columns, chosen);
            matrix(&values, self.columns, &self.device, self.dtype)
        });
        let regions = match &self.regions {
            Some(regions) => regions.select(chosen)?,
            None => None,
        };
        let points = pick(&self.points, self.dimension, chosen);
        Ok(Batch { inputs, points, dimension: self.dimension, regions, step })
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

/// The regions of rows, one each.
///
/// ```
/// use pal::density::{Family, Knots, Settings, SplineSettings};
/// use pal::{formula::reals, region::{Region, RegionMap}};
/// use pal_burn::RowRegions;
///
/// let [x, y] = reals(["x", "y"]);
/// let map = RegionMap::new(&Region::new(&(x.between(0, 9) & y.between(0, 9) & (&x + &y).ge(3)).into())?)?;
/// let windows = map.windows(&[2.0, 2.0, 5.0, 5.0], &[1.0], None, None)?;
/// let square = Region::new(&(x.between(-1, 1) & y.between(-1, 1)).into())?;
/// let family = Family::new(&square, &Settings::Spline(SplineSettings { knots: Knots::Uniform(4), components: 2 }))?;
/// let regions = RowRegions::Compiled(family.on_regions(&windows)?);
/// assert_eq!(regions.regions().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum RowRegions {
    /// Compiled beforehand: no work in a step, memory for every row.
    Compiled(RegionForms),
    /// Compiled for every batch anew on the grid of the family, for data whose forms would take too much memory.
    InSteps(Family, RegionBatch),
    /// Compiled beforehand for kernels, one family for each row.
    Kernels(Vec<KernelFamily>, RegionBatch),
    /// Not compiled, for predictors without guarantees: samples are compared with the regions, and nothing else.
    ForSamples(RegionBatch),
}

impl RowRegions {
    /// Returns the regions of all rows.
    pub fn regions(&self) -> &RegionBatch {
        match self {
            RowRegions::Compiled(forms) => forms.regions(),
            RowRegions::InSteps(_, regions) | RowRegions::Kernels(_, regions) | RowRegions::ForSamples(regions) => {
                regions
            }
        }
    }

    /// Returns the compiled regions of the chosen rows, if they are compiled at all.
    fn select(&self, chosen: &[usize]) -> Result<Option<BatchRegions>, DensityError> {
        Ok(match self {
            RowRegions::Compiled(forms) => Some(BatchRegions::Forms(forms.select(chosen)?)),
            RowRegions::InSteps(family, regions) => {
                Some(BatchRegions::Forms(family.on_regions(&regions.select(chosen)?)?))
            }
            RowRegions::Kernels(families, _) => {
                Some(BatchRegions::Kernels(chosen.iter().map(|row| families[*row].clone()).collect()))
            }
            RowRegions::ForSamples(_) => None,
        })
    }
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
