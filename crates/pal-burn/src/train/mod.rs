//! The loop that fits any [`Trainable`] density: shuffled batches, validation after every epoch, early stopping,
//! checkpoints.

mod checkpoint;
mod rows;

use std::time::{Duration, Instant};

use pal::density::DensityError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::optimiser::{Optimiser, OptimiserSettings};
use crate::predictor::{Batch, PredictorError, Trainable, to_f64, to_f64_vec};
use crate::weights::{self, Real};

pub use checkpoint::CheckpointError;
pub use rows::{RowRegions, Rows, Split, SplitError};

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSettings {
    /// The largest number of epochs (passes through the data).
    pub epochs: usize,
    /// The number of rows per step.
    pub batch: usize,
    /// Training stops after this many epochs without a better validation log-likelihood; `None` for never.
    pub patience: Option<usize>,
    /// The seed of the order of rows.
    pub seed: u64,
    /// How a step updates the parameters.
    pub optimiser: OptimiserSettings,
}

impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings { epochs: 200, batch: 256, patience: Some(20), seed: 0, optimiser: OptimiserSettings::default() }
    }
}

/// Why training stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All epochs are done.
    Epochs,
    /// The validation log-likelihood did not improve any more.
    Patience,
    /// The caller asked for it.
    Asked,
}

/// One pass through the data.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// The number of the epoch, counted from 1.
    pub number: usize,
    /// The mean negative loss over the rows, each taken at its step.
    pub train: f64,
    /// The mean log-density of the validation rows after the epoch.
    pub validation: f64,
    /// Whether the validation log-likelihood is the best so far.
    pub best: bool,
    /// The duration of the epoch, validation included.
    pub time: Duration,
}

/// What training has just completed, as told to the callback of [`Trainer::run`].
#[derive(Clone, Copy, Debug)]
pub enum Milestone<'e> {
    /// A step within an epoch.
    Step {
        /// The number of the epoch, counted from 1.
        epoch: usize,
        /// The number of the step within the epoch, counted from 1.
        step: usize,
        /// The number of steps per epoch.
        of: usize,
    },
    /// An epoch, with its validation.
    Epoch(&'e Epoch),
}

/// Why training failed.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The predictor cannot be evaluated on the data.
    #[error(transparent)]
    Predictor(#[from] PredictorError),
    /// The loss is infinite or not a number.
    #[error("the loss is {loss} at step {step} of epoch {epoch}; a smaller learning rate helps")]
    Diverged {
        /// The loss.
        loss: f64,
        /// The number of the step within the epoch, counted from 1.
        step: usize,
        /// The number of the epoch, counted from 1.
        epoch: usize,
    },
}

/// The number of rows that [`evaluate`] takes at a time, which limits its memory.
const CHUNK: usize = 8192;

/// A predictor in training, with weights of type `T`.
#[derive(Clone, Debug)]
pub struct Trainer<M, T> {
    predictor: M,
    settings: TrainSettings,
    optimiser: Optimiser<T>,
    epochs: usize,
    steps: u64,
    best: Option<Best<T>>,
}

#[derive(Clone, Debug)]
struct Best<T> {
    epoch: usize,
    validation: f64,
    weights: Vec<Vec<T>>,
}

impl<M: Trainable, T: Real> Trainer<M, T> {
    /// Prepares training; nothing is trained before [`Trainer::run`].
    pub fn new(predictor: M, settings: TrainSettings) -> Trainer<M, T> {
        let optimiser = Optimiser::new(settings.optimiser);
        Trainer { predictor, settings, optimiser, epochs: 0, steps: 0, best: None }
    }

    /// Returns the number of completed epochs.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// Returns the number of the best epoch so far and its validation log-likelihood.
    pub fn best(&self) -> Option<(usize, f64)> {
        self.best.as_ref().map(|best| (best.epoch, best.validation))
    }

    /// Trains until all epochs are done, patience is exhausted, or `callback` returns `false`.
    ///
    /// The callback is called after every step and after every epoch; the one after an epoch is the place to store a
    /// [`Trainer::checkpoint`]. An epoch that is interrupted is repeated when training resumes from there.
    pub fn run(
        &mut self,
        train: &Rows,
        validation: &Rows,
        mut callback: impl FnMut(&Trainer<M, T>, Milestone) -> bool,
    ) -> Result<Stop, TrainError> {
        loop {
            if self.epochs >= self.settings.epochs {
                return Ok(Stop::Epochs);
            }
            if let (Some(patience), Some(best)) = (self.settings.patience, &self.best)
                && self.epochs >= best.epoch + patience
            {
                return Ok(Stop::Patience);
            }
            let Some(epoch) = self.epoch(train, validation, &mut callback)? else { return Ok(Stop::Asked) };
            if !callback(self, Milestone::Epoch(&epoch)) {
                return Ok(Stop::Asked);
            }
        }
    }

    /// Trains on all rows in random order and validates; returns `None` if the callback stops it on the way.
    fn epoch(
        &mut self,
        train: &Rows,
        validation: &Rows,
        callback: &mut impl FnMut(&Trainer<M, T>, Milestone) -> bool,
    ) -> Result<Option<Epoch>, TrainError> {
        let start = Instant::now();
        let order = train.shuffled(self.settings.seed, self.epochs as u64);
        let (mut sum, mut count) = (0.0, 0);
        let batches = order.chunks(self.settings.batch.max(1));
        let of = batches.len();
        for (step, chosen) in batches.enumerate() {
            let loss = self.step(train, chosen)?;
            if !loss.is_finite() {
                return Err(TrainError::Diverged { loss, step: step + 1, epoch: self.epochs + 1 });
            }
            sum -= loss * chosen.len() as f64;
            count += chosen.len();
            if !callback(self, Milestone::Step { epoch: self.epochs + 1, step: step + 1, of }) {
                return Ok(None);
            }
        }
        self.epochs += 1;
        let predictor = self.averaged();
        let validation = evaluate(&predictor, validation)?;
        let best = self.best.as_ref().is_none_or(|best| validation > best.validation);
        if best {
            self.best = Some(Best { epoch: self.epochs, validation, weights: weights::read(&predictor) });
        }
        let train = sum / count.max(1) as f64;
        Ok(Some(Epoch { number: self.epochs, train, validation, best, time: start.elapsed() }))
    }

    fn step(&mut self, train: &Rows, chosen: &[usize]) -> Result<f64, TrainError> {
        let batch = train.batch(chosen, self.steps).map_err(PredictorError::from)?;
        let loss = self.predictor.loss(&batch)?;
        let value = to_f64(loss.clone());
        if value.is_finite() {
            self.predictor = self.optimiser.step(self.predictor.clone(), loss.backward());
            self.steps += 1;
        }
        Ok(value)
    }

    /// Returns the predictor in its present state, without gradients: for schedule-free AdamW the average of its
    /// iterates.
    pub fn averaged(&self) -> M {
        self.optimiser.averaged(self.predictor.clone()).valid()
    }

    /// Returns the predictor of the epoch with the best validation log-likelihood.
    pub fn finish(self) -> M {
        match &self.best {
            Some(best) => weights::write(self.predictor.valid(), &best.weights),
            None => self.averaged(),
        }
    }
}

/// How many samples of a predictor violate a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The number of samples drawn.
    pub samples: usize,
    /// The number of samples outside the constraint, by exact membership.
    pub outside: usize,
}

impl Violation {
    /// Returns the fraction of the samples that is outside the constraint.
    pub fn fraction(&self) -> f64 {
        self.outside as f64 / self.samples.max(1) as f64
    }
}

/// Draws at least `samples` points and counts those outside the constraint, or outside the region of their own row where
/// rows have regions. `inside` tells of points, row by row, whether they satisfy the constraint.
///
/// With inputs or regions, the same number of points is drawn for each of at most [`MAX_INPUT_ROWS`] rows, evenly spaced
/// in `rows`.
pub fn violation<M: Trainable>(
    predictor: &M,
    rows: &Rows,
    inside: impl Fn(&[f64]) -> Vec<bool>,
    samples: usize,
    seed: u64,
) -> Result<Violation, PredictorError> {
    let mut total = Violation { samples: 0, outside: 0 };
    let mut count = |inside: Vec<bool>| {
        total.samples += inside.len();
        total.outside += inside.iter().filter(|inside| !**inside).count();
    };
    if rows.columns == 0 && rows.regions.is_none() {
        for (block, from) in (0..samples).step_by(BLOCK).enumerate() {
            let points = predictor.sample(None, BLOCK.min(samples - from), block_seed(seed, block))?;
            count(inside(&points));
        }
        return Ok(total);
    }
    let step = rows.len().div_ceil(MAX_INPUT_ROWS).max(1);
    let chosen: Vec<usize> = (0..rows.len()).step_by(step).collect();
    let per_row = samples.div_ceil(chosen.len().max(1));
    for (block, chosen) in chosen.chunks((BLOCK / per_row.max(1)).max(1)).enumerate() {
        let Batch { inputs, regions, .. } = rows.batch(chosen, 0)?;
        let points = predictor.sample_on(inputs, regions.as_ref(), per_row, block_seed(seed, block))?;
        count(match &rows.regions {
            None => inside(&points),
            Some(all) => {
                let of_samples: Vec<usize> = chosen.iter().flat_map(|row| vec![*row; per_row]).collect();
                let regions = all.regions().select(&of_samples).map_err(DensityError::from)?;
                regions.contains(&points).map_err(DensityError::from)?
            }
        });
    }
    Ok(total)
}

/// The largest number of rows of inputs that [`violation`] draws samples for: preparing a density for a row costs more
/// than a sample of it.
pub const MAX_INPUT_ROWS: usize = 1000;

/// The number of samples that [`violation`] draws at a time, which limits its memory.
const BLOCK: usize = 1 << 16;

fn block_seed(seed: u64, block: usize) -> u64 {
    seed ^ (block as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the mean log-density of the rows.
pub fn evaluate<M: Trainable>(predictor: &M, rows: &Rows) -> Result<f64, PredictorError> {
    let all: Vec<usize> = (0..rows.len()).collect();
    let mut sum = 0.0;
    for chosen in all.chunks(CHUNK) {
        sum += to_f64_vec(predictor.log_prob(&rows.batch(chosen, 0)?)?).iter().sum::<f64>();
    }
    Ok(sum / rows.len().max(1) as f64)
}
