//! The loop that fits any [`Model`] by maximum likelihood.

mod checkpoint;
mod rows;

use std::time::{Duration, Instant};

use pal::formula::Membership;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Model, ModelError, doubles};
use crate::optimiser::{Optimiser, OptimiserSettings};
use crate::weights::{self, Real};

pub use checkpoint::{Bytes, CheckpointError};
pub use rows::{Rows, Split, SplitError};

/// How to train.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSettings {
    /// Passes through the data at most.
    pub epochs: usize,
    /// Rows per step.
    pub batch: usize,
    /// Epochs without a better validation after which training ends; `None` for never.
    pub patience: Option<usize>,
    /// Seed of the order of rows.
    pub seed: u64,
    /// How parameters are moved.
    pub optimiser: OptimiserSettings,
}

impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings { epochs: 100, batch: 128, patience: Some(20), seed: 0, optimiser: OptimiserSettings::default() }
    }
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// All epochs are done.
    Epochs,
    /// Validation did not improve any more.
    Patience,
    /// The caller asked for it.
    Asked,
}

/// One pass through the data.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// Counted from 1.
    pub number: usize,
    /// The mean of minus the loss over its steps.
    pub train: f64,
    /// The mean log-density of the validation rows afterwards.
    pub validation: f64,
    /// Whether this is the best so far.
    pub best: bool,
    /// How long it took.
    pub time: Duration,
}

/// What a training has just done.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'e> {
    /// A step within an epoch.
    Step {
        /// The epoch, from 1.
        epoch: usize,
        /// The step, from 1.
        step: usize,
        /// How many the epoch has.
        of: usize,
    },
    /// A whole epoch.
    Epoch(&'e Epoch),
}

/// What goes wrong in training.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The model refuses.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Numbers ran away.
    #[error("the loss is {loss} at step {step} of epoch {epoch}; a smaller learning rate helps")]
    Diverged {
        /// The loss.
        loss: f64,
        /// The step within the epoch, from 1.
        step: usize,
        /// The epoch, from 1.
        epoch: usize,
    },
}

/// Rows evaluated at a time.
const CHUNK: usize = 8192;

/// A model in training.
#[derive(Clone, Debug)]
pub struct Trainer<M, T> {
    model: M,
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

impl<M: Model, T: Real> Trainer<M, T> {
    /// Before the first step.
    pub fn new(model: M, settings: TrainSettings) -> Trainer<M, T> {
        let optimiser = Optimiser::new(settings.optimiser);
        Trainer { model, settings, optimiser, epochs: 0, steps: 0, best: None }
    }

    /// Epochs done.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// The number and the validation of the best epoch so far.
    pub fn best(&self) -> Option<(usize, f64)> {
        self.best.as_ref().map(|best| (best.epoch, best.validation))
    }

    /// Trains until a stop; `each` is told of every step and every epoch and may end it all by answering `false`. An epoch that is not over then is
    /// forgotten by checkpoints, which are those of the epoch before.
    pub fn run(
        &mut self,
        train: &Rows,
        validation: &Rows,
        mut each: impl FnMut(&Trainer<M, T>, Moment) -> bool,
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
            let Some(epoch) = self.epoch(train, validation, &mut each)? else { return Ok(Stop::Asked) };
            if !each(self, Moment::Epoch(&epoch)) {
                return Ok(Stop::Asked);
            }
        }
    }

    /// One pass through the data in random order, and a validation.
    fn epoch(
        &mut self,
        train: &Rows,
        validation: &Rows,
        each: &mut impl FnMut(&Trainer<M, T>, Moment) -> bool,
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
            if !each(self, Moment::Step { epoch: self.epochs + 1, step: step + 1, of }) {
                return Ok(None);
            }
        }
        self.epochs += 1;
        let model = self.averaged();
        let validation = evaluate(&model, validation)?;
        let best = self.best.as_ref().is_none_or(|best| validation > best.validation);
        if best {
            self.best = Some(Best { epoch: self.epochs, validation, weights: weights::read(&model) });
        }
        let train = sum / count.max(1) as f64;
        Ok(Some(Epoch { number: self.epochs, train, validation, best, time: start.elapsed() }))
    }

    fn step(&mut self, train: &Rows, chosen: &[usize]) -> Result<f64, TrainError> {
        let loss = self.model.loss(&train.batch(chosen, self.steps))?;
        let value = doubles(loss.clone()).first().copied().unwrap_or(f64::NAN);
        if value.is_finite() {
            self.model = self.optimiser.step(self.model.clone(), loss.backward());
            self.steps += 1;
        }
        Ok(value)
    }

    /// The model as it is now, without gradients.
    pub fn averaged(&self) -> M {
        self.optimiser.averaged(self.model.clone()).valid()
    }

    /// The model with the best validation.
    pub fn finish(self) -> M {
        match &self.best {
            Some(best) => weights::write(self.model.valid(), &best.weights),
            None => self.averaged(),
        }
    }
}

/// Points of a model that violate a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// How many were drawn.
    pub samples: usize,
    /// How many of them are outside, by exact membership.
    pub outside: usize,
}

impl Violation {
    /// The share outside.
    pub fn share(&self) -> f64 {
        self.outside as f64 / self.samples.max(1) as f64
    }
}

/// Draws at least so many points and tells how many are outside. With inputs, as many for each of some rows, which are taken evenly.
pub fn violation<M: Model>(
    model: &M,
    rows: &Rows,
    membership: &Membership,
    samples: usize,
    seed: u64,
) -> Result<Violation, ModelError> {
    let mut total = Violation { samples: 0, outside: 0 };
    let mut count = |points: Vec<f64>| {
        let inside = membership.contains_batch(&points);
        total.samples += inside.len();
        total.outside += inside.iter().filter(|inside| !**inside).count();
    };
    if rows.columns == 0 {
        for (part, from) in (0..samples).step_by(DRAWN).enumerate() {
            count(model.sample(None, DRAWN.min(samples - from), part_seed(seed, part))?);
        }
        return Ok(total);
    }
    let step = rows.len().div_ceil(ASKED).max(1);
    let asked: Vec<usize> = (0..rows.len()).step_by(step).collect();
    let each = samples.div_ceil(asked.len().max(1));
    for (part, chosen) in asked.chunks((DRAWN / each.max(1)).max(1)).enumerate() {
        count(model.sample(rows.batch(chosen, 0).inputs, each, part_seed(seed, part))?);
    }
    Ok(total)
}

/// Rows of inputs that points are drawn for: getting ready for a row costs more than a point.
const ASKED: usize = 1000;

/// Points drawn at a time.
const DRAWN: usize = 1 << 16;

fn part_seed(seed: u64, part: usize) -> u64 {
    seed ^ (part as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The mean log-density of rows.
pub fn evaluate<M: Model>(model: &M, rows: &Rows) -> Result<f64, ModelError> {
    let all: Vec<usize> = (0..rows.len()).collect();
    let mut sum = 0.0;
    for chosen in all.chunks(CHUNK) {
        sum += doubles(model.log_prob(&rows.batch(chosen, 0))?).iter().sum::<f64>();
    }
    Ok(sum / rows.len().max(1) as f64)
}
