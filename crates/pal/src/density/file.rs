//! Families and models as safetensors files.
//!
//! A file is a [`Container`] of the compiled tensors (float64), the constraint (SMT-LIB) and the settings (JSON). A model
//! is a family with parameter vectors: one more tensor, `params`; where every row has a region of its own, these are another
//! one, `regions`, whose bytes are a file of [`RegionBatch`]. The file of a family on a flat names its free variables. Loading checks all of it and cuts the constraint into elements
//! anew.

use std::collections::HashMap;

use safetensors::tensor::Dtype;

use super::{Density, DensityError, Family, RegionForms, Settings};
use crate::container::{self, ContainedTensor, Container, ContainerError};
use crate::formula::{SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use crate::region::{BatchError, BatchFileError, Region, RegionBatch};

/// The version that this code writes and reads.
const VERSION: &str = "pal-density-4";

/// Why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not a safetensors file.
    #[error(transparent)]
    Format(ContainerError),
    /// Another kind of file, or one that another version wrote.
    #[error("not a density file of this version: its version is `{0}`, expected `{VERSION}`; compile it anew")]
    Version(String),
    /// The content was changed after it was written.
    #[error("the checksum does not match: the file was changed or damaged")]
    Checksum,
    /// A tensor or entry is missing or has the wrong shape.
    #[error("{0}")]
    Content(String),
    /// A family without parameters, where a model was expected.
    #[error("the file holds a compiled family without parameters")]
    NoParams,
    /// The constraint in the file cannot be read.
    #[error("the constraint in the file")]
    Constraint(#[from] SmtError),
    /// The constraint cannot be written as SMT-LIB.
    #[error(transparent)]
    Write(#[from] SmtWriteError),
    /// The settings in the file cannot be read.
    #[error("the settings in the file")]
    Settings(#[from] serde_json::Error),
    /// The regions of the rows cannot be read or written.
    #[error("the regions in the file: {0}")]
    Regions(#[from] BatchFileError),
    /// The family does not fit its constraint or parameters.
    #[error(transparent)]
    Density(#[from] DensityError),
}

impl From<ContainerError> for FileError {
    fn from(error: ContainerError) -> FileError {
        match error {
            ContainerError::Version { found, .. } => FileError::Version(found),
            ContainerError::Checksum => FileError::Checksum,
            ContainerError::Missing(_) => FileError::Content(error.to_string()),
            other => FileError::Format(other),
        }
    }
}

/// A tensor on its way to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// The name in the file.
    pub name: &'static str,
    /// The length of every axis.
    pub shape: Vec<usize>,
    /// All entries, the last axis running fastest.
    pub values: Vec<f64>,
}

/// The tensors of a file by name.
#[derive(Clone, Debug, Default)]
pub struct FileTensors {
    tensors: HashMap<String, (Vec<usize>, Vec<f64>)>,
}

impl FileTensors {
    /// Takes out a tensor, with its shape.
    pub fn take(&mut self, name: &str) -> Result<(Vec<usize>, Vec<f64>), FileError> {
        self.take_optional(name).ok_or_else(|| FileError::Content(format!("the tensor `{name}` is missing")))
    }

    /// Takes out a tensor that need not be there.
    pub fn take_optional(&mut self, name: &str) -> Option<(Vec<usize>, Vec<f64>)> {
        self.tensors.remove(name)
    }
}

/// A family together with parameter vectors: densities ready for queries, all on the constraint of the family or each on
/// a region of its own.
#[derive(Clone, Debug)]
pub struct Model {
    family: Family,
    params: Vec<f64>,
    regions: Option<RegionForms>,
}

impl Model {
    /// Checks that there is at least one parameter vector and that each gives a density.
    pub fn new(family: Family, params: Vec<f64>) -> Result<Model, DensityError> {
        family.densities(&params)?;
        Ok(Model { family, params, regions: None })
    }

    /// A model whose rows have regions of their own, on the grid of the family.
    pub fn on_regions(family: Family, params: Vec<f64>, regions: &RegionBatch) -> Result<Model, DensityError> {
        let model = Model::new(family, params)?;
        if regions.len() != model.rows() {
            let (given, wanted) = (regions.len(), model.rows());
            return Err(BatchError::Length { what: "regions", given, wanted }.into());
        }
        Ok(Model { regions: Some(model.family.on_regions(regions)?), ..model })
    }

    /// The family that the parameter vectors belong to.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The parameter vectors, row by row.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// The number of parameter vectors.
    pub fn rows(&self) -> usize {
        self.params.len() / self.family.num_params()
    }

    /// The regions of the rows, if each has its own.
    pub fn regions(&self) -> Option<&RegionForms> {
        self.regions.as_ref()
    }

    /// One density for each parameter vector.
    pub fn densities(&self) -> Result<Vec<Density>, DensityError> {
        match &self.regions {
            None => self.family.densities(&self.params),
            Some(regions) => regions.densities(&self.params),
        }
    }

    /// The density of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn density(&self, row: usize) -> Result<Density, DensityError> {
        let width = self.family.num_params();
        let params = &self.params[row * width..(row + 1) * width];
        match &self.regions {
            None => self.family.density(params),
            Some(regions) => regions.density(row, params),
        }
    }

    /// The content of a safetensors file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        write(&self.family, Some(&self.params), self.regions.as_ref().map(RegionForms::regions))
    }

    /// Reads what [`Model::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Model, FileError> {
        let FileContent { family, params, regions } = read(bytes)?;
        let params = params.ok_or(FileError::NoParams)?;
        Ok(match regions {
            None => Model::new(family, params)?,
            Some(regions) => Model::on_regions(family, params, &regions)?,
        })
    }
}

impl Family {
    /// The content of a safetensors file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        write(self, None, None)
    }

    /// Reads what [`Family::to_bytes`] or [`Model::to_bytes`] wrote. For a model whose rows have regions of their own it
    /// is the family whose grid they share.
    pub fn from_bytes(bytes: &[u8]) -> Result<Family, FileError> {
        Ok(read(bytes)?.family)
    }
}

/// The parts of a file.
struct FileContent {
    family: Family,
    params: Option<Vec<f64>>,
    regions: Option<RegionBatch>,
}

/// The name of the tensor that holds the regions of rows.
const REGIONS: &str = "regions";
/// The entry that names the free variables of a flat, as a list in JSON.
const FREE: &str = "free";

fn write(family: &Family, params: Option<&[f64]>, regions: Option<&RegionBatch>) -> Result<Vec<u8>, FileError> {
    write_with(family, params.map(|params| (params, family.num_params())), regions)
}

/// The file of a family over the projection of a mixed constraint, with rows of parameters of a given width.
pub(crate) fn write_mixed_file(family: &Family, params: Option<(&[f64], usize)>) -> Result<Vec<u8>, FileError> {
    write_with(family, params, None)
}

fn write_with(
    family: &Family,
    params: Option<(&[f64], usize)>,
    regions: Option<&RegionBatch>,
) -> Result<Vec<u8>, FileError> {
    let constraint = write_smtlib(family.constraint())?;
    let settings = serde_json::to_string(&family.kind().settings())?;
    let tensor = |name: &str, shape, values: &[f64]| (name.to_string(), Dtype::F64, shape, to_bytes(values));
    let mut tensors: Vec<ContainedTensor> = Vec::new();
    for NamedTensor { name, shape, values } in family.kind().tensors() {
        tensors.push(tensor(name, shape, &values));
    }
    if let Some((params, width)) = params {
        tensors.push(tensor("params", vec![params.len() / width, width], params));
    }
    if let Some(regions) = regions {
        let bytes = regions.to_bytes()?;
        tensors.push((REGIONS.to_string(), Dtype::U8, vec![bytes.len()], bytes));
    }
    let free = family.flat().map(|flat| flat.chart().free_variables());
    let names = free.map(|free| free.iter().map(|var| var.name().to_string()).collect::<Vec<_>>());
    let free = names.map(|names| serde_json::to_string(&names)).transpose()?;
    pack(constraint, settings, free, &tensors)
}

/// Packs a file; one of a family on a flat also names the free variables.
fn pack(
    constraint: String,
    settings: String,
    free: Option<String>,
    tensors: &[ContainedTensor],
) -> Result<Vec<u8>, FileError> {
    let texts = [("constraint", constraint), ("settings", settings)];
    Ok(container::pack(VERSION, texts.into_iter().chain(free.map(|free| (FREE, free))), tensors)?)
}

/// A tensor as it was read: its shape and its numbers.
type ReadTensor = (Vec<usize>, Vec<f64>);

/// The family over the projection of a mixed constraint, and parameters as they were written.
pub(crate) fn read_mixed_file(bytes: &[u8]) -> Result<(Family, Option<ReadTensor>), FileError> {
    let (family, params, regions) = read_with(bytes, true)?;
    match regions {
        None => Ok((family, params)),
        Some(_) => Err(FileError::Content("rows with regions of their own have no Boolean variables".to_string())),
    }
}

fn read(bytes: &[u8]) -> Result<FileContent, FileError> {
    let (family, params, regions) = read_with(bytes, false)?;
    if let Some((shape, _)) = &params
        && shape.last() != Some(&family.num_params())
    {
        let message = format!("`params` has shape {shape:?}, but the family has {} parameters", family.num_params());
        return Err(FileError::Content(message));
    }
    Ok(FileContent { family, params: params.map(|(_, values)| values), regions })
}

fn read_with(bytes: &[u8], mixed: bool) -> Result<(Family, Option<ReadTensor>, Option<RegionBatch>), FileError> {
    let container = Container::read(bytes, VERSION)?;
    let (constraint, settings) = (container.text("constraint")?, container.text("settings")?);
    let mut tensors = FileTensors::default();
    let mut regions = None;
    for (name, view) in container.tensors().tensors() {
        if name == REGIONS && view.dtype() == Dtype::U8 {
            regions = Some(RegionBatch::from_bytes(view.data())?);
            continue;
        }
        if view.dtype() != Dtype::F64 {
            return Err(FileError::Content(format!("`{name}` has type {:?}, expected F64", view.dtype())));
        }
        let values = from_bytes(view.data());
        if name != "params" && values.iter().any(|value| !value.is_finite()) {
            return Err(FileError::Content(format!("the tensor `{name}` holds a value that is not finite")));
        }
        tensors.tensors.insert(name, (view.shape().to_vec(), values));
    }
    let region = Region::new(&parse_smtlib(constraint)?).map_err(DensityError::from)?;
    let region = if mixed { region.onto_reals() } else { region };
    let settings: Settings = serde_json::from_str(settings)?;
    let family = match container.text(FREE) {
        Err(_) => settings.restore(&region, &mut tensors)?,
        Ok(free) => {
            let names: Vec<String> = serde_json::from_str(free)?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let flat = region.with_free(&names).map_err(DensityError::from)?;
            Family::on_flat(&flat, |region| {
                let region = if mixed { region.onto_reals() } else { region.clone() };
                settings.restore(&region, &mut tensors)
            })?
        }
    };
    if !family.normaliser_fits() {
        return Err(FileError::Content("the compiled normaliser does not belong to the constraint".to_string()));
    }
    let params = tensors.take_optional("params");
    Ok((family, params, regions))
}

/// The bytes of numbers in a file: little-endian, as safetensors demands.
fn to_bytes(values: &[f64]) -> Vec<u8> {
    let bits: Vec<u64> = values.iter().map(|value| value.to_bits().to_le()).collect();
    bytemuck::cast_slice(&bits).to_vec()
}

/// The numbers of which [`to_bytes`] made bytes.
fn from_bytes(data: &[u8]) -> Vec<f64> {
    let bits: Vec<u64> = bytemuck::pod_collect_to_vec(data);
    bits.into_iter().map(|bits| f64::from_bits(u64::from_le(bits))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::{Basis, Knots, SplineSettings, SumOfSquaresSettings};
    use crate::formula::reals;

    /// The file of a family with its tensors changed and a checksum that fits the change.
    fn forged(compiled: &Family, constraint: &str, change: impl Fn(&str, &mut Vec<f64>)) -> Vec<u8> {
        let settings = serde_json::to_string(&compiled.kind().settings()).unwrap();
        let tensors = compiled.kind().tensors().into_iter().map(|mut tensor| {
            change(tensor.name, &mut tensor.values);
            (tensor.name.to_string(), Dtype::F64, tensor.shape, to_bytes(&tensor.values))
        });
        pack(constraint.to_string(), settings, None, &tensors.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn tensors_that_do_not_go_with_the_constraint_are_refused() {
        let [x, y] = reals(["x", "y"]);
        let phi = x.ge(0) & y.ge(0) & (&x + &y).le(1);
        let region = Region::new(&phi.into()).unwrap();
        let text = write_smtlib(region.constraint()).unwrap();
        let other = "(declare-const x Real) (declare-const y Real) (assert (and (<= 0 x 1) (<= 0 y 1)))";
        let sum_of_squares = |basis| {
            Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(2), components: 1, basis, subset: None })
        };
        let spline = Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 2 });
        for settings in [
            spline,
            sum_of_squares(Basis::Orthonormal),
            sum_of_squares(Basis::Legendre),
            sum_of_squares(Basis::Monomial),
        ] {
            let compiled = Family::new(&region, &settings).unwrap();
            assert!(Family::from_bytes(&forged(&compiled, &text, |_, _| {})).is_ok());
            assert!(Family::from_bytes(&forged(&compiled, other, |_, _| {})).is_err(), "{settings:?}");
            let not_finite = forged(&compiled, &text, |_, values| values[0] = f64::NAN);
            assert!(matches!(Family::from_bytes(&not_finite), Err(FileError::Content(_))), "{settings:?}");
        }
    }

    #[test]
    fn a_file_cannot_ask_for_bins_without_number() {
        let variables: Vec<String> = (0..10).map(|j| format!("x{j}")).collect();
        let declare = |name: &String| format!("(declare-const {name} Real) (assert (<= 0 {name} 1))");
        let text: String = variables.iter().map(declare).collect();
        let settings = r#"{"family":"sum-of-squares","degree":1,"components":1}"#.to_string();
        let tensors = vec![
            ("basis".to_string(), Dtype::F64, vec![1, 11, 11], vec![0; 8 * 121]),
            ("bins".to_string(), Dtype::F64, vec![1], 16f64.to_le_bytes().to_vec()),
        ];
        assert!(Family::from_bytes(&pack(text, settings, None, &tensors).unwrap()).is_err());
    }
}
