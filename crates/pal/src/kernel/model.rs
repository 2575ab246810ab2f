//! Kernel mixtures with their parameters, as files.

use safetensors::tensor::Dtype;

use super::{KernelFamily, KernelSettings};
use crate::container::{self, ContainedTensor, Container};
use crate::density::{DensityError, FileError};
use crate::formula::{Constraint, parse_smtlib, write_smtlib};
use crate::region::{BatchError, Region, RegionBatch};

/// The version of files of kernel mixtures.
const VERSION: &str = "pal-kernels-1";

/// Kernel mixtures on a region in the plane: a family with rows of parameters, each of which is one density, all on the same
/// region or each on its own.
///
/// ```
/// use pal::kernel::{KernelFamily, KernelModel, KernelSettings};
/// use pal::{formula::reals, region::Region};
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let family = KernelFamily::new(&triangle, &KernelSettings { components: 2 })?;
/// let model = KernelModel::new(&family, vec![0.0; 3 * family.num_params()])?;
/// let again = KernelModel::from_bytes(&model.to_bytes()?)?;
/// assert_eq!((again.rows(), again.params()), (3, model.params()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct KernelModel {
    family: KernelFamily,
    constraint: Constraint,
    params: Vec<f64>,
    regions: Option<(RegionBatch, Vec<KernelFamily>)>,
}

impl KernelModel {
    /// Checks that there is at least one row of parameters, and that all of them are finite.
    pub fn new(family: &KernelFamily, params: Vec<f64>) -> Result<KernelModel, DensityError> {
        if family.rows(&params)?.is_empty() {
            return Err(DensityError::Length { what: "parameters", given: 0, wanted: family.num_params() });
        }
        Ok(KernelModel { family: family.clone(), constraint: family.constraint()?, params, regions: None })
    }

    /// A model whose rows have regions of their own, in the box of the family.
    pub fn on_regions(
        family: &KernelFamily,
        params: Vec<f64>,
        regions: &RegionBatch,
    ) -> Result<KernelModel, DensityError> {
        let model = KernelModel::new(family, params)?;
        if regions.len() != model.rows() {
            let (given, wanted) = (regions.len(), model.rows());
            return Err(BatchError::Length { what: "regions", given, wanted }.into());
        }
        Ok(KernelModel { regions: Some((regions.clone(), family.on_regions(regions)?)), ..model })
    }

    /// The family on the region that all rows share, or in whose box all of them are.
    pub fn family(&self) -> &KernelFamily {
        &self.family
    }

    /// The constraint of that region.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The rows of parameters.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.params.len() / self.family.num_params()
    }

    /// The regions of the rows, if each has its own.
    pub fn regions(&self) -> Option<&RegionBatch> {
        self.regions.as_ref().map(|(regions, _)| regions)
    }

    /// The family on the region of a row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row_family(&self, row: usize) -> &KernelFamily {
        assert!(row < self.rows(), "there are {} rows", self.rows());
        self.regions.as_ref().map_or(&self.family, |(_, families)| &families[row])
    }

    /// Whether bytes are a file of kernel mixtures, of any version.
    pub fn recognises(bytes: &[u8]) -> bool {
        container::version(bytes).is_some_and(|version| version.starts_with("pal-kernels-"))
    }

    /// The content of a safetensors file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        let shape = vec![self.rows(), self.family.num_params()];
        let numbers = self.params.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut tensors: Vec<ContainedTensor> = vec![("params".to_string(), Dtype::F64, shape, numbers)];
        if let Some(regions) = self.regions() {
            let bytes = regions.to_bytes()?;
            tensors.push(("regions".to_string(), Dtype::U8, vec![bytes.len()], bytes));
        }
        let components = self.family.settings().components.to_string();
        let texts = [("constraint", write_smtlib(&self.constraint)?), ("components", components)];
        Ok(container::pack(VERSION, texts, &tensors)?)
    }

    /// Reads what [`KernelModel::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<KernelModel, FileError> {
        let container = Container::read(bytes, VERSION)?;
        let content = |message: &str| FileError::Content(message.to_string());
        let components = container.text("components")?.parse().map_err(|_| content("`components` is no number"))?;
        let region = Region::new(&parse_smtlib(container.text("constraint")?)?).map_err(DensityError::from)?;
        let family = KernelFamily::new(&region, &KernelSettings { components })?;
        let tensors = container.tensors();
        let params = tensors.tensor("params").map_err(|_| FileError::NoParams)?;
        if params.dtype() != Dtype::F64 || params.shape().last() != Some(&family.num_params()) {
            return Err(content(
                "`params` does not have the type and the shape that the number of components asks for",
            ));
        }
        let number = |bytes: &[u8]| bytes.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN);
        let params = params.data().chunks_exact(size_of::<f64>()).map(number).collect();
        match tensors.tensor("regions") {
            Err(_) => Ok(KernelModel::new(&family, params)?),
            Ok(regions) => Ok(KernelModel::on_regions(&family, params, &RegionBatch::from_bytes(regions.data())?)?),
        }
    }
}
