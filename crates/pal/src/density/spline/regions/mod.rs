//! Spline mixtures where every row of a batch has a region of its own.
//!
//! All rows share the grid of one family. The region of a row decides which bins are full, which are empty, and which
//! ones a wall cuts, with a table for each of these:
//!
//! ```text
//! Z_b  =  sum over full bins (i, j) of b  a_i b_j   +   sum over cut bins (i, j) of b  S_1[i] . M_bij S_2[j]
//! ```
//!
//! In the plane forms come straight from convex pieces ([`planar_form`]), and so they do for half-spaces in three variables
//! ([`solid_form`]); otherwise a row is cut along the grid like any region. What a family computes with parameters does not change.

mod contract;
mod head;
mod kernel;
mod pack;
mod planar_form;
mod solid_form;
mod solid_tables;
mod tables;

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::SplineMixture;
use super::form::BinForm;
use super::nodes;
use crate::density::grid::{Axis, Grid};
use crate::density::lanes::Real;
use crate::density::mesh::Mesh;
use crate::density::row_kernel::{RowInput, RowLogProb};
use crate::density::support::Support;
use crate::density::{Density, DensityError, Family};
use crate::interrupt::checkpoint;
use crate::number::Rational;
use crate::region::{BatchError, RegionBatch};
use head::HeadRowMemory;
use kernel::{PassMemory, PlacedPoint, RegionKernel, RowForm};
use planar_form::{PlanarCompiler, PlanarMemory};
use solid_form::{SolidCompiler, SolidMemory};
pub use tables::TablePrecision;
use tables::TableRule;

/// Rows are divided between threads in blocks of this size.
const BLOCK: usize = 8;
/// A batch of at least this many components is divided between threads.
const PARALLEL: usize = 256;

/// The regions of a batch compiled on the grid of a family: one normaliser per row. Rows are shared, so that selecting
/// some of them costs nothing.
///
/// ```
/// use pal::density::{Family, Knots, SplineSettings};
/// use pal::{formula::reals, region::{Region, RegionBatch}};
/// let [x, y] = reals(["x", "y"]);
/// let square = x.between(0, 1) & y.between(0, 1);
/// let family = Family::new(
///     &Region::new(&square.clone().into())?,
///     &SplineSettings { knots: Knots::Uniform(5), components: 1 }.into(),
/// )?;
/// let triangle = Region::new(&(square & (&x + &y).le(1)).into())?;
/// let rows = family.on_regions(&RegionBatch::new(&[family.region()?, triangle])?)?;
/// // Parameters of zero are the uniform density of each row.
/// let zeros = vec![0f64; 2 * family.num_params()];
/// let log_prob = rows.log_prob(&zeros, &[0.25; 4], false)?.log_prob;
/// assert!(log_prob[0].abs() < 1e-14 && (log_prob[1] - 2f64.ln()).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegionForms {
    family: Family,
    regions: RegionBatch,
    forms: Vec<Arc<RowForm>>,
    precision: TablePrecision,
    kernels: Arc<RegionKernels>,
}

#[derive(Debug, Default)]
struct RegionKernels {
    f32: OnceLock<RegionKernel<f32>>,
    f64: OnceLock<RegionKernel<f64>>,
}

/// float32 or float64, as the precision of a pass over rows with regions of their own.
pub trait RegionPrecision: Real {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn region_kernel<'k>(kernels: &'k RegionKernels, family: &SplineMixture) -> &'k RegionKernel<Self>;
}

impl RegionPrecision for f32 {
    #[allow(private_interfaces)]
    fn region_kernel<'k>(kernels: &'k RegionKernels, family: &SplineMixture) -> &'k RegionKernel<f32> {
        kernels.f32.get_or_init(|| RegionKernel::new(family))
    }
}

impl RegionPrecision for f64 {
    #[allow(private_interfaces)]
    fn region_kernel<'k>(kernels: &'k RegionKernels, family: &SplineMixture) -> &'k RegionKernel<f64> {
        kernels.f64.get_or_init(|| RegionKernel::new(family))
    }
}

impl Family {
    /// The region that the family was compiled on.
    pub fn region(&self) -> Result<crate::region::Region, DensityError> {
        Ok(match self.flat() {
            None => crate::region::Region::new(self.support().constraint())?,
            Some(flat) => flat.whole()?,
        })
    }

    /// Compiles the regions of a batch on the grid of this family, in parallel. The box of the grid bounds all rows: what
    /// a region has outside of it does not count. Rows without volume in the box are an error that names them.
    pub fn on_regions(&self, regions: &RegionBatch) -> Result<RegionForms, DensityError> {
        self.on_regions_with(regions, TablePrecision::default())
    }

    /// Like [`Family::on_regions`], with tables of a precision.
    pub fn on_regions_with(
        &self,
        regions: &RegionBatch,
        precision: TablePrecision,
    ) -> Result<RegionForms, DensityError> {
        if self.flat().is_some() {
            let message = "regions for each row are not possible where the constraint has equalities";
            return Err(DensityError::Settings(message.to_string()));
        }
        let kind = self.downcast::<SplineMixture>().ok_or_else(|| {
            DensityError::Settings("only spline mixtures can have a region for each row of a batch".to_string())
        })?;
        let own = &self.support().constraint().reals;
        if regions.variables() != own {
            let names = |vars: &[crate::formula::Var]| vars.iter().map(|var| var.name()).collect::<Vec<_>>().join(", ");
            let error = BatchError::Variables { row: 0, given: names(regions.variables()), wanted: names(own) };
            return Err(DensityError::Batch(error));
        }
        regions.prepare();
        let compiler = RowCompiler::new(kind, precision)?;
        // Equal rows share a form: data often have several rows with the same window.
        let (rows, places) = regions.distinct();
        let forms = rows.par_chunks(BLOCK).map_init(CompileMemory::default, |memory, rows| {
            rows.iter().map(|row| compiler.compile(regions, *row, memory)).collect::<Result<Vec<_>, DensityError>>()
        });
        let forms: Vec<Option<RowForm>> = forms.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        let without: Vec<usize> = (0..regions.len()).filter(|row| forms[places[*row]].is_none()).collect();
        if !without.is_empty() {
            return Err(DensityError::RowsWithoutVolume(without));
        }
        let forms: Vec<Arc<RowForm>> = forms.into_iter().flatten().map(Arc::new).collect();
        let forms = places.iter().map(|place| forms[*place].clone()).collect();
        Ok(RegionForms { family: self.clone(), regions: regions.clone(), forms, precision, kernels: Arc::default() })
    }
}

/// What compiling rows needs.
struct RowCompiler<'f> {
    grid: &'f Arc<Grid>,
    ends: Vec<[Rational; 2]>,
    planar: Option<PlanarCompiler>,
    solid: Option<SolidCompiler>,
}

/// Memory that is used for one row after the other.
#[derive(Default)]
struct CompileMemory {
    planar: PlanarMemory,
    solid: SolidMemory,
}

impl<'f> RowCompiler<'f> {
    fn new(family: &'f SplineMixture, precision: TablePrecision) -> Result<RowCompiler<'f>, DensityError> {
        let grid = family.support.grid();
        let planar = || PlanarCompiler::new(grid, TableRule::new(&nodes::bernstein()), precision);
        let planar = (grid.dimension() == 2).then(planar);
        let solid = (grid.dimension() == 3).then(|| SolidCompiler::new(grid, TableRule::new(&nodes::bernstein())));
        Ok(RowCompiler { grid, ends: grid.axes().iter().map(ends).collect(), planar, solid: solid.transpose()? })
    }

    /// The form of a row; `None` for one without volume.
    fn compile(
        &self,
        regions: &RegionBatch,
        row: usize,
        memory: &mut CompileMemory,
    ) -> Result<Option<RowForm>, DensityError> {
        checkpoint();
        if let Some(planar) = &self.planar
            && let Some(form) = planar.compile(regions, row, &mut memory.planar)
        {
            return Ok((form.area > 0.0).then_some(RowForm::Planar(form)));
        }
        if let Some(solid) = &self.solid
            && let Some(half_spaces) = regions.single_half_spaces(row)
        {
            let form = solid.compile(regions, row, half_spaces, &mut memory.solid)?;
            return Ok(form.map(|form| RowForm::General(Box::new(form))));
        }
        let region = regions.region_within(row, &self.ends)?;
        let mesh = Mesh::new(&region, self.grid)?;
        if mesh.elements.is_empty() {
            return Ok(None);
        }
        Ok(Some(RowForm::General(Box::new(nodes::form(&BinForm::compile(&mesh, &[])?)))))
    }
}

/// Both ends of an axis.
fn ends(axis: &Axis) -> [Rational; 2] {
    [axis.edges()[0].clone(), axis.edges()[axis.bins()].clone()]
}

impl RegionForms {
    /// The family whose grid and settings all rows share.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The regions of the rows.
    pub fn regions(&self) -> &RegionBatch {
        &self.regions
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Some rows, in any order and any number of times, without compiling them again.
    pub fn select(&self, indices: &[usize]) -> Result<RegionForms, BatchError> {
        let regions = self.regions.select(indices)?;
        let forms = indices.iter().map(|index| self.forms[*index].clone()).collect();
        Ok(RegionForms { regions, forms, ..self.clone() })
    }

    /// The memory that the normalisers of all rows take, in bytes. Rows that share one are counted each.
    pub fn bytes(&self) -> usize {
        let form = |form: &Arc<RowForm>| match &**form {
            RowForm::Planar(form) => form.bytes(),
            RowForm::General(form) => form.len() * size_of::<f64>(),
        };
        self.forms.iter().map(form).sum()
    }

    /// The volume of each row inside the box of the grid.
    pub fn volumes(&self) -> Vec<f64> {
        let volume = self.family.support().grid().log_volume().exp();
        let part = |form: &Arc<RowForm>| match &**form {
            RowForm::Planar(form) => form.area,
            RowForm::General(form) => form.volume(),
        };
        self.forms.iter().map(|form| part(form) * volume).collect()
    }

    /// Whether each point, one per row, may have a positive density: whether it is in the box and in the region of its
    /// own row, exactly.
    pub fn contains(&self, points: &[f64]) -> Result<Vec<bool>, DensityError> {
        self.check_points(points)?;
        let n = self.family.dimension();
        let rows: Vec<usize> = (0..self.len()).collect();
        let inside = |row: &usize| self.is_inside(*row, &points[row * n..(row + 1) * n]);
        Ok(rows.par_iter().with_min_len(PARALLEL).map(inside).collect())
    }

    fn check_points(&self, points: &[f64]) -> Result<(), DensityError> {
        let (n, count) = (self.family.dimension(), self.len());
        self.family.check_points(points)?;
        if points.len() != count * n {
            return Err(DensityError::Pairing { params: count, points: points.len() / n });
        }
        Ok(())
    }

    fn is_inside(&self, row: usize, point: &[f64]) -> bool {
        let axes = self.family.support().grid().axes();
        axes.iter().zip(point).all(|(axis, y)| axis.contains(*y)) && self.regions.row_contains(row, point)
    }

    /// The log-density of each point under its own row of parameters, on the region of that row, with its gradient with
    /// respect to the parameters in the same pass where it is asked for. Points outside get minus infinity and a
    /// gradient of zero. Where a density vanishes inside its region, its logarithm is that of the smallest number at hand.
    pub fn log_prob<T: RegionPrecision>(
        &self,
        params: &[T],
        points: &[f64],
        with_gradient: bool,
    ) -> Result<RowLogProb<T>, DensityError> {
        self.log_prob_rows(RowInput::Parameters, params, points, with_gradient)
    }

    /// Like [`RegionForms::log_prob`], for rows that are parameters or outputs of a network that go through a head.
    pub fn log_prob_rows<T: RegionPrecision>(
        &self,
        input: RowInput,
        params: &[T],
        points: &[f64],
        with_gradient: bool,
    ) -> Result<RowLogProb<T>, DensityError> {
        let kind = self.family.downcast::<SplineMixture>().expect("forms are made for spline mixtures");
        let kernel = T::region_kernel(&self.kernels, kind);
        let n = self.family.dimension();
        let per = match input {
            RowInput::Parameters => self.family.num_params(),
            RowInput::StudentT => kernel.components * kernel.head.per_component(),
        };
        if self.precision == TablePrecision::Float32 && size_of::<T>() > size_of::<f32>() {
            let message = "the regions were compiled for float32; compile them in float64 for log-densities in float64";
            return Err(DensityError::Settings(message.to_string()));
        }
        self.check_points(points)?;
        if params.len() != self.len() * per {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted: per });
        }
        if let Some(at) = params.iter().position(|x| !x.to_f64().is_finite()) {
            return Err(DensityError::Parameter { row: at / per, column: at % per, value: params[at].to_f64() });
        }
        let grid = self.family.support().grid();
        let mut log_prob = vec![T::from_f64(f64::NEG_INFINITY); self.len()];
        let mut gradient = with_gradient.then(|| vec![T::default(); params.len()]);
        let blocks = self.len().div_ceil(BLOCK);
        let gradients: Vec<Option<&mut [T]>> = match &mut gradient {
            Some(gradient) => gradient.chunks_mut(per * BLOCK).map(Some).collect(),
            None => (0..blocks).map(|_| None).collect(),
        };
        let memory = || {
            let head = HeadRowMemory::new(&kernel.head, kernel.components, kernel.per_component);
            (kernel.memory(), head)
        };
        type Task<'t, T> = (usize, (&'t mut [T], Option<&'t mut [T]>));
        let block = |memory: &mut (PassMemory<T>, HeadRowMemory<T>), (block, (log_prob, mut gradient)): Task<'_, T>| {
            for (k, log_prob) in log_prob.iter_mut().enumerate() {
                let row = block * BLOCK + k;
                let point = &points[row * n..(row + 1) * n];
                if !self.is_inside(row, point) {
                    continue;
                }
                let own = gradient.as_deref_mut().map(|gradient| &mut gradient[k * per..(k + 1) * per]);
                let (form, params) = (&self.forms[row], &params[row * per..(row + 1) * per]);
                let placed = PlacedPoint::new(grid, point);
                let (pass, head) = (&mut memory.0, &mut memory.1);
                *log_prob = T::from_f64(match input {
                    RowInput::Parameters => kernel.row(form, params, true, &placed, own, pass),
                    RowInput::StudentT => kernel.head_row(form, params, &placed, own, (pass, head)),
                });
            }
        };
        if blocks > 1 && self.len() * self.family.num_components() >= PARALLEL {
            let parts = log_prob.par_chunks_mut(BLOCK).zip(gradients).enumerate();
            parts.for_each_init(memory, block);
        } else {
            let mut memory = memory();
            log_prob.chunks_mut(BLOCK).zip(gradients).enumerate().for_each(|part| block(&mut memory, part));
        }
        Ok(RowLogProb { log_prob, gradient })
    }

    /// The density of one row, for all further questions.
    pub fn density(&self, row: usize, params: &[f64]) -> Result<Density, DensityError> {
        self.row_family(row)?.density(params)
    }

    /// One density for each row and its parameter vector.
    pub fn densities(&self, params: &[f64]) -> Result<Vec<Density>, DensityError> {
        let per = self.family.num_params();
        if params.len() != self.len() * per {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted: per });
        }
        let density = |(row, params): (usize, &[f64])| {
            self.density(row, params).map_err(|error| match error {
                DensityError::Zero(_) => DensityError::Zero(row),
                DensityError::Parameter { column, value, .. } => DensityError::Parameter { row, column, value },
                other => other,
            })
        };
        params.par_chunks(per).enumerate().map(density).collect()
    }

    /// The family of a row: the same settings and grid, on the region of the row.
    pub(crate) fn row_family(&self, row: usize) -> Result<Family, DensityError> {
        let kind = self.family.downcast::<SplineMixture>().expect("forms are made for spline mixtures");
        let grid = kind.support.grid();
        let ends: Vec<[Rational; 2]> = grid.axes().iter().map(ends).collect();
        let support = Arc::new(Support::new(&self.regions.region_within(row, &ends)?, grid)?);
        let form = BinForm::compile(support.mesh(), &[])?;
        Ok(SplineMixture::assemble(kind.settings.clone(), support, form)?.into())
    }
}

#[cfg(test)]
mod solid_tests;
#[cfg(test)]
mod tests;
