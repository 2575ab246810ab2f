//! Mixed families and models as files: those of the family over the reals, with a constraint that has Boolean variables
//! and parameter vectors that are longer.

use super::density::MixedDensity;
use super::family::MixedFamily;
use crate::density::{DensityError, FileError, read_mixed_file, write_mixed_file};

/// A mixed family together with parameter vectors: what a file holds.
#[derive(Clone, Debug)]
pub struct MixedModel {
    family: MixedFamily,
    params: Vec<f64>,
}

impl MixedModel {
    /// Checks that there is at least one parameter vector and that each gives a density.
    pub fn new(family: MixedFamily, params: Vec<f64>) -> Result<MixedModel, DensityError> {
        family.densities(&params)?;
        Ok(MixedModel { family, params })
    }

    /// The family that the parameter vectors belong to.
    pub fn family(&self) -> &MixedFamily {
        &self.family
    }

    /// The parameter vectors, row by row.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// One density for each parameter vector.
    pub fn densities(&self) -> Result<Vec<MixedDensity>, DensityError> {
        self.family.densities(&self.params)
    }

    /// The content of a safetensors file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        write_mixed_file(self.family.base(), Some((&self.params, self.family.num_params())))
    }

    /// Reads what [`MixedModel::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<MixedModel, FileError> {
        let (family, params) = MixedFamily::read(bytes)?;
        Ok(MixedModel::new(family, params.ok_or(FileError::NoParams)?)?)
    }
}

impl MixedFamily {
    /// The content of a safetensors file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        write_mixed_file(self.base(), None)
    }

    /// Reads what [`MixedFamily::to_bytes`] or [`MixedModel::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<MixedFamily, FileError> {
        Ok(MixedFamily::read(bytes)?.0)
    }

    fn read(bytes: &[u8]) -> Result<(MixedFamily, Option<Vec<f64>>), FileError> {
        let (base, params) = read_mixed_file(bytes)?;
        let family = MixedFamily::on(base)?;
        let Some((shape, params)) = params else { return Ok((family, None)) };
        if shape.last() != Some(&family.num_params()) {
            let message =
                format!("`params` has shape {shape:?}, but the family has {} parameters", family.num_params());
            return Err(FileError::Content(message));
        }
        Ok((family, Some(params)))
    }
}
