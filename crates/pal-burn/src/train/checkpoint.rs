//! Checkpoints: everything that training needs to continue later with a bitwise identical result.

use pal::container::{self, ContainedTensor, Container};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Best, TrainSettings, Trainer};
use crate::optimiser::{Optimiser, OptimiserState};
use crate::predictor::Trainable;
use crate::weights::{self, Real};

const VERSION: &str = "pal-checkpoint-4";

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The bytes are not a checkpoint of this version, or damaged.
    #[error("not a checkpoint: {0}")]
    Damaged(String),
    /// The checkpoint belongs to other settings, other data or another network.
    #[error("the checkpoint belongs to another training: {0}")]
    Other(String),
}

#[derive(Serialize, Deserialize)]
struct State {
    settings: TrainSettings,
    /// Identifies the data and the predictor, which must be the same when training continues.
    about: String,
    epochs: usize,
    steps: u64,
    optimiser_steps: u64,
    average_weight: f64,
    best: Option<(usize, f64)>,
}

impl<M: Trainable, T: Real> Trainer<M, T> {
    /// Writes a checkpoint; `about` is a text of the caller that identifies the data and the predictor.
    pub fn checkpoint(&self, about: &str) -> Result<Vec<u8>, CheckpointError> {
        let OptimiserState { steps: optimiser_steps, average_weight, memory } = self.optimiser.state();
        let state = State {
            settings: self.settings.clone(),
            about: about.to_string(),
            epochs: self.epochs,
            steps: self.steps,
            optimiser_steps: *optimiser_steps,
            average_weight: *average_weight,
            best: self.best(),
        };
        let mut tensors: Vec<ContainedTensor> = Vec::new();
        let mut add = |name: &str, index: usize, values: &[T]| {
            let bytes = bytemuck::cast_slice(values).to_vec();
            tensors.push((format!("{name}.{index:05}"), T::DTYPE, vec![values.len()], bytes));
        };
        for (index, values) in weights::read::<M, T>(&self.predictor).iter().enumerate() {
            add("weights", index, values);
        }
        for (index, [first, second]) in memory.iter().enumerate() {
            add("first", index, first);
            add("second", index, second);
        }
        for (index, values) in self.best.iter().flat_map(|best| &best.weights).enumerate() {
            add("best", index, values);
        }
        let damaged = |error: &dyn std::fmt::Display| CheckpointError::Damaged(error.to_string());
        let text = serde_json::to_string(&state).map_err(|error| damaged(&error))?;
        container::pack(VERSION, [("state", text)], &tensors).map_err(|error| damaged(&error))
    }

    /// Continues from a checkpoint. The predictor, the settings (except epochs and patience) and `about` must be those
    /// of the checkpoint.
    pub fn resume(
        predictor: M,
        settings: TrainSettings,
        about: &str,
        bytes: &[u8],
    ) -> Result<Trainer<M, T>, CheckpointError> {
        let damaged = |error: String| CheckpointError::Damaged(error);
        let container = Container::read(bytes, VERSION).map_err(|error| damaged(error.to_string()))?;
        let (text, file) = (container.text("state").map_err(|error| damaged(error.to_string()))?, container.tensors());
        let state: State = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let same = TrainSettings { epochs: settings.epochs, patience: settings.patience, ..state.settings.clone() };
        if same != settings {
            return Err(CheckpointError::Other("its settings differ".to_string()));
        }
        if state.about != about {
            return Err(CheckpointError::Other("its data or its predictor differ".to_string()));
        }
        let sizes: Vec<usize> = weights::read::<M, T>(&predictor).iter().map(Vec::len).collect();
        let read = |name: &str| -> Result<Vec<Vec<T>>, CheckpointError> {
            let each = sizes.iter().enumerate().map(|(index, size)| {
                let view = file.tensor(&format!("{name}.{index:05}")).map_err(|error| damaged(error.to_string()))?;
                if view.dtype() != T::DTYPE || view.data().len() != size * std::mem::size_of::<T>() {
                    return Err(CheckpointError::Other("its network has another shape".to_string()));
                }
                Ok(bytemuck::pod_collect_to_vec::<u8, T>(view.data()))
            });
            each.collect()
        };
        let memory = if state.optimiser_steps == 0 {
            Vec::new()
        } else {
            read("first")?.into_iter().zip(read("second")?).map(|(first, second)| [first, second]).collect()
        };
        let best = match state.best {
            Some((epoch, validation)) => Some(Best { epoch, validation, weights: read("best")? }),
            None => None,
        };
        let optimiser = OptimiserState { steps: state.optimiser_steps, average_weight: state.average_weight, memory };
        Ok(Trainer {
            predictor: weights::write(predictor, &read("weights")?),
            optimiser: Optimiser::restore(settings.optimiser, optimiser),
            settings,
            epochs: state.epochs,
            steps: state.steps,
            best,
        })
    }
}
