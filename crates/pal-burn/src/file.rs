//! Trained predictors as safetensors files that carry everything: the plan, the constraint, the compiled family and all
//! weights.

use std::collections::HashMap;

use burn::tensor::Device;
use pal::checksum::checksum;
use pal::density::{Family, FileError};
use pal::formula::{Constraint, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::predictor::{Plan, Predictor, PredictorError, PredictorKind};
use crate::weights::{self, Real};

/// The version of the format, which is also the name of the only entry of the metadata: the order of several entries
/// would be random, and equal predictors would not make equal bytes.
const VERSION: &str = "pal-network-3";

/// Why a file of a trained predictor cannot be read or written.
#[derive(Debug, Error)]
pub enum NetworkFileError {
    /// Not a safetensors file.
    #[error("not a safetensors file, or a damaged one")]
    Format(#[from] safetensors::SafeTensorError),
    /// Something else, or written by another version of this library.
    #[error("not a trained network of this version: the metadata have no `{VERSION}`; train the network again")]
    Version,
    /// The content was changed after it was written.
    #[error("the checksum does not match: the file was changed or damaged")]
    Checksum,
    /// A tensor is missing or has the wrong shape.
    #[error("{0}")]
    Content(String),
    /// The description cannot be read.
    #[error("the description of the network: {0}")]
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
    /// The predictor cannot be built.
    #[error(transparent)]
    Predictor(#[from] PredictorError),
}

/// The entry of the metadata: everything that is not a tensor.
#[derive(Serialize, Deserialize)]
struct About {
    plan: Plan,
    constraint: String,
    checksum: String,
}

/// A trained predictor and what it was made of: the content of a file.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    /// Which predictor, and how its inputs and outputs are named and scaled.
    pub plan: Plan,
    /// The constraint that points should satisfy.
    pub constraint: Constraint,
    /// The family of densities, where the predictor has a layer.
    pub family: Option<Family>,
    /// The predictor with its weights.
    pub predictor: Predictor,
}

impl NetworkFile {
    /// Returns whether the bytes are a file of this kind, of any version, rather than another safetensors file.
    pub fn recognises(bytes: &[u8]) -> bool {
        let metadata = SafeTensors::read_metadata(bytes).ok().and_then(|(_, header)| header.metadata().clone());
        metadata.is_some_and(|metadata| metadata.keys().any(|key| key.starts_with("pal-network-")))
    }

    /// Writes the file. Equal predictors give equal bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NetworkFileError> {
        if self.plan.float64 { self.write::<f64>() } else { self.write::<f32>() }
    }

    fn write<T: Real>(&self) -> Result<Vec<u8>, NetworkFileError> {
        let mut tensors: Vec<(String, Dtype, Vec<u8>)> = Vec::new();
        for (index, values) in weights::read::<Predictor, T>(&self.predictor).iter().enumerate() {
            tensors.push((weights_name(index), T::DTYPE, bytemuck::cast_slice(values).to_vec()));
        }
        if let (PredictorKind::Pal { .. }, Some(family)) = (&self.plan.kind, &self.family) {
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

    /// Reads a file and puts the predictor on a device.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<NetworkFile, NetworkFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let file = SafeTensors::deserialize(bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let About { plan, constraint, checksum: sum } =
            serde_json::from_str(metadata.get(VERSION).ok_or(NetworkFileError::Version)?)?;
        let mut names = file.names();
        // The checksum is over the tensors in the order of writing: weights, then the family.
        names.sort_by_key(|name| (*name == "family", *name));
        let parts = names.iter().map(|name| Ok(file.tensor(name)?.data()));
        if checksum(parts.collect::<Result<Vec<_>, NetworkFileError>>()?) != sum {
            return Err(NetworkFileError::Checksum);
        }
        let constraint = parse_smtlib(&constraint)?;
        let family = match &plan.kind {
            PredictorKind::Pal { .. } => Some(Family::from_bytes(file.tensor("family")?.data())?),
            _ => None,
        };
        let untrained = plan.build(&constraint, family.as_ref(), device, 0)?;
        let predictor = if plan.float64 { filled::<f64>(untrained, &file)? } else { filled::<f32>(untrained, &file)? };
        Ok(NetworkFile { plan, constraint, family, predictor })
    }
}

fn weights_name(index: usize) -> String {
    format!("weights.{index:05}")
}

/// Replaces the weights of an untrained predictor by those of a file.
fn filled<T: Real>(untrained: Predictor, file: &SafeTensors) -> Result<Predictor, NetworkFileError> {
    let sizes = weights::read::<Predictor, T>(&untrained).into_iter().map(|values| values.len());
    let read = |(index, size): (usize, usize)| {
        let name = weights_name(index);
        let view = file.tensor(&name)?;
        let (found, wanted) = (view.data().len(), size * std::mem::size_of::<T>());
        if view.dtype() != T::DTYPE || found != wanted {
            let found = format!("{found} bytes of type {:?}", view.dtype());
            return Err(NetworkFileError::Content(format!(
                "{name} has {found}; the plan asks for {wanted} bytes of type {:?}",
                T::DTYPE
            )));
        }
        Ok(bytemuck::pod_collect_to_vec::<u8, T>(view.data()))
    };
    let values = sizes.enumerate().map(read).collect::<Result<Vec<_>, NetworkFileError>>()?;
    Ok(weights::write(untrained, &values))
}
