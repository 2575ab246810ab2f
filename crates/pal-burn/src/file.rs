//! Trained predictors as safetensors files that carry everything: the plan, the constraint, the compiled family and all
//! weights.

use burn::tensor::Device;
use pal::container::{self, ContainedTensor, Container, ContainerError, NETWORK_VERSION as VERSION};
use pal::density::{Family, FileError};
use pal::formula::{Constraint, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use pal::mixed::MixedFamily;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use thiserror::Error;

use crate::predictor::{AnyFamily, Plan, Predictor, PredictorError, PredictorKind};
use crate::weights::{self, Real};

/// What the versions of this format begin with.
const VERSIONS: &str = "pal-network-";

/// Why a file of a trained predictor cannot be read or written.
#[derive(Debug, Error)]
pub enum NetworkFileError {
    /// Not a safetensors file.
    #[error(transparent)]
    Format(ContainerError),
    /// Something else, or written by another version of this library.
    #[error("not a trained network of this version: its version is `{0}`, expected `{VERSION}`; train it again")]
    Version(String),
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

impl From<ContainerError> for NetworkFileError {
    fn from(error: ContainerError) -> NetworkFileError {
        match error {
            ContainerError::Version { found, .. } => NetworkFileError::Version(found),
            ContainerError::Checksum => NetworkFileError::Checksum,
            ContainerError::Missing(_) => NetworkFileError::Content(error.to_string()),
            other => NetworkFileError::Format(other),
        }
    }
}

/// A trained predictor and what it was made of: the content of a file.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    /// Which predictor, and how its inputs and outputs are named and scaled.
    pub plan: Plan,
    /// The constraint that points should satisfy. Where rows have regions of their own, it is the box around all of them,
    /// in the coordinates of the points.
    pub constraint: Constraint,
    /// The map whose windows are the regions of the rows, if all rows have the same one.
    pub map: Option<Constraint>,
    /// The family of densities, where the predictor has a layer.
    pub family: Option<AnyFamily>,
    /// The predictor with its weights.
    pub predictor: Predictor,
}

impl NetworkFile {
    /// Returns whether the bytes are a file of this kind, of any version, rather than another safetensors file.
    pub fn recognises(bytes: &[u8]) -> bool {
        container::version(bytes).is_some_and(|version| version.starts_with(VERSIONS))
    }

    /// Writes the file. Equal predictors give equal bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NetworkFileError> {
        if self.plan.float64 { self.write::<f64>() } else { self.write::<f32>() }
    }

    fn write<T: Real>(&self) -> Result<Vec<u8>, NetworkFileError> {
        let mut tensors: Vec<ContainedTensor> = Vec::new();
        for (index, values) in weights::read::<Predictor, T>(&self.predictor).iter().enumerate() {
            let bytes = bytemuck::cast_slice(values).to_vec();
            tensors.push((weights_name(index), T::DTYPE, vec![values.len()], bytes));
        }
        let layer = matches!(self.plan.kind, PredictorKind::Pal { .. } | PredictorKind::Mixed { .. });
        if let Some(family) = self.family.as_ref().filter(|_| layer) {
            let bytes = family.to_bytes()?;
            tensors.push(("family".to_string(), Dtype::U8, vec![bytes.len()], bytes));
        }
        let mut texts = vec![("plan", serde_json::to_string(&self.plan)?)];
        texts.push(("constraint", write_smtlib(&self.constraint)?));
        if let Some(map) = &self.map {
            texts.push(("map", write_smtlib(map)?));
        }
        Ok(container::pack(VERSION, texts, &tensors)?)
    }

    /// Reads a file and puts the predictor on a device.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<NetworkFile, NetworkFileError> {
        let container = Container::read(bytes, VERSION)?;
        let plan: Plan = serde_json::from_str(container.text("plan")?)?;
        let file = container.tensors();
        let constraint = container.text("constraint")?;
        // A plan is believed only as far as the file has weights for it.
        let stored: usize = file.tensors().iter().map(|(_, view)| view.data().len()).sum();
        let size = if plan.float64 { 8.0 } else { 4.0 };
        if plan.least_weights() * size > stored as f64 {
            let message = format!("the plan asks for {:.0} weights or more, the file has fewer", plan.least_weights());
            return Err(NetworkFileError::Content(message));
        }
        let constraint = parse_smtlib(constraint)?;
        let map = match container.text("map") {
            Ok(map) => Some(parse_smtlib(map)?),
            Err(_) => None,
        };
        let family = match &plan.kind {
            PredictorKind::Pal { .. } => Some(Family::from_bytes(tensor(file, "family")?.data())?.into()),
            PredictorKind::Mixed { .. } => Some(MixedFamily::from_bytes(tensor(file, "family")?.data())?.into()),
            _ => None,
        };
        let untrained = plan.build(&constraint, family.as_ref(), device, 0)?;
        let predictor = if plan.float64 { filled::<f64>(untrained, file)? } else { filled::<f32>(untrained, file)? };
        Ok(NetworkFile { plan, constraint, map, family, predictor })
    }
}

fn weights_name(index: usize) -> String {
    format!("weights.{index:05}")
}

fn tensor<'f>(file: &SafeTensors<'f>, name: &str) -> Result<TensorView<'f>, NetworkFileError> {
    file.tensor(name).map_err(|_| NetworkFileError::Content(format!("the tensor `{name}` is missing")))
}

/// Replaces the weights of an untrained predictor by those of a file.
fn filled<T: Real>(untrained: Predictor, file: &SafeTensors) -> Result<Predictor, NetworkFileError> {
    let sizes = weights::read::<Predictor, T>(&untrained).into_iter().map(|values| values.len());
    let read = |(index, size): (usize, usize)| {
        let name = weights_name(index);
        let view = tensor(file, &name)?;
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
