//! Trained models as safetensors files that carry everything: the plan, the constraint, the compiled family and all numbers.

use std::collections::HashMap;

use burn::tensor::Device;
use pal::checksum::checksum;
use pal::density::{Family, FileError};
use pal::formula::{Constraint, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Kind, ModelError, Plan, Predictor};
use crate::train::Bytes;
use crate::weights;

/// What this code writes and reads: the name of the only entry of the metadata. With one entry equal models make equal bytes.
const VERSION: &str = "pal-network-1";

/// Why a file cannot be read or written.
#[derive(Debug, Error)]
pub enum NetworkFileError {
    /// Not a safetensors file.
    #[error("not a safetensors file, or a damaged one")]
    Format(#[from] safetensors::SafeTensorError),
    /// Something else, or written by another version.
    #[error("not a trained network: it has no `{VERSION}`; `pal train` makes one")]
    Version,
    /// The content was changed after it was written.
    #[error("the checksum does not match: the file was changed or damaged")]
    Checksum,
    /// A part is missing or has the wrong shape.
    #[error("{0}")]
    Content(String),
    /// The description cannot be read.
    #[error("the description of the model: {0}")]
    About(#[from] serde_json::Error),
    /// The constraint cannot be read.
    #[error("the constraint in the file: {0}")]
    Constraint(#[from] SmtError),
    /// The constraint cannot be written.
    #[error(transparent)]
    Write(#[from] SmtWriteError),
    /// The family cannot be read or written.
    #[error("the family in the file: {0}")]
    Family(#[from] FileError),
    /// The model cannot be made.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// What is not numbers.
#[derive(Serialize, Deserialize)]
struct About {
    plan: Plan,
    constraint: String,
    checksum: String,
}

/// A trained model and what it was made of.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    /// What it looks like.
    pub plan: Plan,
    /// Where points ought to lie.
    pub constraint: Constraint,
    /// Of a model with a layer.
    pub family: Option<Family>,
    /// The model.
    pub model: Predictor,
}

impl NetworkFile {
    /// Whether bytes begin like such a file, rather than like another safetensors file.
    pub fn recognises(bytes: &[u8]) -> bool {
        let metadata = SafeTensors::read_metadata(bytes).ok().and_then(|(_, header)| header.metadata().clone());
        metadata.is_some_and(|metadata| metadata.contains_key(VERSION))
    }

    /// The file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NetworkFileError> {
        if self.plan.doubles { self.write::<f64>() } else { self.write::<f32>() }
    }

    fn write<T: Bytes>(&self) -> Result<Vec<u8>, NetworkFileError> {
        let mut tensors: Vec<(String, Dtype, Vec<u8>)> = Vec::new();
        for (index, values) in weights::read::<Predictor, T>(&self.model).iter().enumerate() {
            tensors.push((weights_name(index), T::DTYPE, T::to_bytes(values)));
        }
        if let (Kind::Pal { .. }, Some(family)) = (&self.plan.kind, &self.family) {
            tensors.push(("family".to_string(), Dtype::U8, family.to_bytes()?));
        }
        let views = tensors.iter().map(|(name, dtype, bytes)| {
            let size = if *dtype == Dtype::U8 { 1 } else { std::mem::size_of::<T>() };
            Ok((name.clone(), TensorView::new(*dtype, vec![bytes.len() / size], bytes)?))
        });
        let views = views.collect::<Result<Vec<_>, safetensors::SafeTensorError>>()?;
        let about = About {
            plan: self.plan.clone(),
            constraint: write_smtlib(&self.constraint)?,
            checksum: checksum(tensors.iter().map(|(_, _, bytes)| &bytes[..])),
        };
        let metadata = HashMap::from([(VERSION.to_string(), serde_json::to_string(&about)?)]);
        Ok(safetensors::serialize(views, Some(metadata))?)
    }

    /// Reads a file, with the model on a device.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<NetworkFile, NetworkFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let file = SafeTensors::deserialize(bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let About { plan, constraint, checksum: sum } =
            serde_json::from_str(metadata.get(VERSION).ok_or(NetworkFileError::Version)?)?;
        let mut names = file.names();
        // In the order of writing: numbers, then the family.
        names.sort_by_key(|name| (*name == "family", *name));
        let parts = names.iter().map(|name| Ok(file.tensor(name)?.data()));
        if checksum(parts.collect::<Result<Vec<_>, NetworkFileError>>()?) != sum {
            return Err(NetworkFileError::Checksum);
        }
        let constraint = parse_smtlib(&constraint)?;
        let family = match &plan.kind {
            Kind::Pal { .. } => Some(Family::from_bytes(file.tensor("family")?.data())?),
            _ => None,
        };
        let model = plan.build(&constraint, family.as_ref(), device, 0)?;
        let model = if plan.doubles { filled::<f64>(model, &file)? } else { filled::<f32>(model, &file)? };
        Ok(NetworkFile { plan, constraint, family, model })
    }
}

fn weights_name(index: usize) -> String {
    format!("weights.{index:05}")
}

fn filled<T: Bytes>(model: Predictor, file: &SafeTensors) -> Result<Predictor, NetworkFileError> {
    let sizes = weights::read::<Predictor, T>(&model).into_iter().map(|values| values.len());
    let read = |(index, size): (usize, usize)| {
        let name = weights_name(index);
        let view = file.tensor(&name)?;
        let values = T::from_bytes(view.data());
        if view.dtype() != T::DTYPE || values.len() != size {
            let found = view.data().len();
            return Err(NetworkFileError::Content(format!(
                "{name} has {found} bytes, which is not what the plan says"
            )));
        }
        Ok(values)
    };
    let values = sizes.enumerate().map(read).collect::<Result<Vec<_>, NetworkFileError>>()?;
    Ok(weights::write(model, &values))
}
