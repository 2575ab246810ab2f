//! Everything a training needs to go on later, to the identical result.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Best, TrainSettings, Trainer};
use crate::model::Model;
use crate::optimiser::Optimiser;
use crate::weights::{self, Real};

const VERSION: &str = "pal-checkpoint-1";

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// It is not one, or damaged.
    #[error("not a checkpoint: {0}")]
    Damaged(String),
    /// It belongs to another training.
    #[error("the checkpoint is of another training: {0}")]
    Other(String),
}

#[derive(Serialize, Deserialize)]
struct State {
    settings: TrainSettings,
    /// What else must be the same.
    about: String,
    epochs: usize,
    steps: u64,
    optimiser_steps: u64,
    optimiser_weight: f64,
    best: Option<(usize, f64)>,
}

/// Numbers as bytes.
pub trait Bytes: Real {
    /// The type in files.
    const DTYPE: Dtype;
    /// Little-endian bytes.
    fn to_bytes(values: &[Self]) -> Vec<u8>;
    /// And back.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! bytes {
    ($type:ty, $dtype:expr) => {
        impl Bytes for $type {
            const DTYPE: Dtype = $dtype;
            fn to_bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                let (chunks, _) = bytes.as_chunks();
                chunks.iter().map(|chunk| <$type>::from_le_bytes(*chunk)).collect()
            }
        }
    };
}
bytes!(f32, Dtype::F32);
bytes!(f64, Dtype::F64);

impl<M: Model, T: Bytes> Trainer<M, T> {
    /// The bytes of a checkpoint; `about` identifies data and model.
    pub fn checkpoint(&self, about: &str) -> Result<Vec<u8>, CheckpointError> {
        let (optimiser_steps, optimiser_weight, memory) = self.optimiser.state();
        let state = State {
            settings: self.settings.clone(),
            about: about.to_string(),
            epochs: self.epochs,
            steps: self.steps,
            optimiser_steps,
            optimiser_weight,
            best: self.best(),
        };
        let mut tensors: Vec<(String, Vec<u8>)> = Vec::new();
        let mut add = |name: &str, index: usize, values: &[T]| {
            tensors.push((format!("{name}.{index:05}"), T::to_bytes(values)));
        };
        for (index, values) in weights::read::<M, T>(&self.model).iter().enumerate() {
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
        let size = std::mem::size_of::<T>();
        let views = tensors
            .iter()
            .map(|(name, bytes)| Ok((name.clone(), TensorView::new(T::DTYPE, vec![bytes.len() / size], bytes)?)))
            .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(|error| damaged(&error))?;
        let text = serde_json::to_string(&state).map_err(|error| damaged(&error))?;
        let metadata = HashMap::from([("version".to_string(), VERSION.to_string()), ("state".to_string(), text)]);
        safetensors::serialize(views, Some(metadata)).map_err(|error| damaged(&error))
    }

    /// Goes on from a checkpoint. The model, the settings (epochs and patience aside) and `about` must be those of the checkpoint.
    pub fn resume(
        model: M,
        settings: TrainSettings,
        about: &str,
        bytes: &[u8],
    ) -> Result<Trainer<M, T>, CheckpointError> {
        let damaged = |error: String| CheckpointError::Damaged(error);
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(error.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        if metadata.get("version").map(String::as_str) != Some(VERSION) {
            return Err(damaged(format!("its version is not {VERSION}")));
        }
        let text = metadata.get("state").ok_or_else(|| damaged("it has no state".to_string()))?;
        let state: State = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let same = TrainSettings { epochs: settings.epochs, patience: settings.patience, ..state.settings.clone() };
        if same != settings {
            return Err(CheckpointError::Other("its settings differ".to_string()));
        }
        if state.about != about {
            return Err(CheckpointError::Other("its data or model differ".to_string()));
        }
        let sizes: Vec<usize> = weights::read::<M, T>(&model).iter().map(Vec::len).collect();
        let read = |name: &str| -> Result<Vec<Vec<T>>, CheckpointError> {
            let each = sizes.iter().enumerate().map(|(index, size)| {
                let view = file.tensor(&format!("{name}.{index:05}")).map_err(|error| damaged(error.to_string()))?;
                let values = T::from_bytes(view.data());
                if view.dtype() != T::DTYPE || values.len() != *size {
                    return Err(CheckpointError::Other("its network has another shape".to_string()));
                }
                Ok(values)
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
        Ok(Trainer {
            model: weights::write(model, &read("weights")?),
            optimiser: Optimiser::restore(settings.optimiser, state.optimiser_steps, state.optimiser_weight, memory),
            settings,
            epochs: state.epochs,
            steps: state.steps,
            best,
        })
    }
}
