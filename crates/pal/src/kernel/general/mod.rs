//! Kernel mixtures in one and in three variables.
//!
//! They are those of the plane, `p(y) = q(y) 1[y in region] / I`, with kernels that are products of as many triweights as
//! there are variables. Normalising constants and their gradients are exact sums over the walls of the region
//! (`integral`); the plane has more: a tree of walls, marginals, modes and entropies.

mod head;
mod integral;
mod moments;
mod rows;
mod sample;
mod simplices;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rayon::prelude::*;

pub use rows::general_log_prob_each;

use super::{KernelSettings, MAX_COMPONENTS, Place};
use crate::density::mesh::Mesh;
use crate::density::{BinIndex, DensityError, Grid, Support};
use crate::formula::{Constraint, Formula, Var};
use crate::interrupt::checkpoint;
use crate::number::Rational;
use crate::query::QueryError;
use crate::region::{BatchError, Region, RegionBatch};
use head::GeneralRow;
use integral::GeneralWall;
use simplices::RegionSimplex;

/// The largest number of variables.
const MOST: usize = 3;

/// A point in coordinates of the box or of a kernel; coordinates beyond the number of variables are 0.
type Point = [f64; 3];

/// The kernel mixtures on one region in one or three variables, for all parameter vectors.
///
/// ```
/// use pal::kernel::{GeneralKernelFamily, KernelSettings};
/// use pal::{formula::reals, region::Region};
/// let [x, y, z] = reals(["x", "y", "z"]);
/// let sides = x.ge(0) & y.ge(0) & z.ge(0);
/// let budget = Region::new(&(sides & (&x + &y + &z).le(1)).into())?;
/// let family = GeneralKernelFamily::new(&budget, &KernelSettings { components: 4 })?;
/// let params = vec![0.0; family.num_params()];
/// let cheap = family.within(&(&x + &y).le(&z))?;
/// let dear = family.within(&(&x + &y).ge(&z))?;
/// let sum = family.probability(&cheap, &params)?[0] + family.probability(&dear, &params)?[0];
/// assert!((sum - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GeneralKernelFamily(Arc<GeneralCompiled>);

#[derive(Clone, Debug)]
struct GeneralCompiled {
    settings: KernelSettings,
    offset: Vec<f64>,
    place: Place,
    variables: Vec<Var>,
    /// The box around the region that the family was made on, as a grid of one bin.
    grid: Arc<Grid>,
    simplices: Vec<RegionSimplex>,
    walls: Vec<GeneralWall>,
    /// The volume of the region in coordinates of the box, which run from -1 to 1.
    volume: f64,
    /// The volume of the region that the family was made on, on which the uniform part is 1 / volume.
    whole_volume: f64,
}

impl GeneralKernelFamily {
    /// Compiles a bounded region in one or three variables.
    pub fn new(region: &Region, settings: &KernelSettings) -> Result<GeneralKernelFamily, DensityError> {
        if !(1..=MAX_COMPONENTS).contains(&settings.components) {
            let given = settings.components;
            return Err(DensityError::Settings(format!(
                "a kernel mixture has 1 to {MAX_COMPONENTS} components; {given} were asked for"
            )));
        }
        let ends = Support::ends(region)?;
        let n = ends.len();
        if n == 2 {
            return Err(DensityError::Settings("kernel mixtures in the plane are made by KernelFamily".to_string()));
        }
        if n != 1 && n != MOST {
            return Err(DensityError::Settings(format!(
                "kernel mixtures are densities of one to three variables, and the constraint has {n}; use a spline \
                 mixture or a sum of squares"
            )));
        }
        let edges = ends.into_iter().map(|(low, high)| vec![low, high]).collect();
        let mut compiled = GeneralCompiled {
            settings: settings.clone(),
            offset: head::offset(n, settings.components),
            place: Place::whole(region.constraint().clone())?,
            variables: region.variables().to_vec(),
            grid: Support::make_grid(region.constraint(), edges)?,
            simplices: Vec::new(),
            walls: Vec::new(),
            volume: 0.0,
            whole_volume: 0.0,
        };
        compiled.cut(region)?;
        compiled.whole_volume = compiled.volume;
        Ok(GeneralKernelFamily(Arc::new(compiled)))
    }

    /// The same family given that a condition holds: its densities are those of this family with the same parameters,
    /// restricted to the condition and normalised there. The condition may be impossible; then questions are errors.
    pub fn within(&self, condition: &Formula) -> Result<GeneralKernelFamily, QueryError> {
        if let Some(var) = condition.boolean_variables().into_iter().next() {
            return Err(QueryError::Variables(format!(
                "the condition uses the Boolean variable `{var}`; densities are over reals"
            )));
        }
        let constraint = self.constraint()?;
        let constraint = Constraint { formula: constraint.formula.clone() & condition.clone(), ..constraint };
        let region = Region::new(&constraint).map_err(DensityError::from)?;
        let mut compiled = GeneralCompiled { place: Place::whole(constraint)?, ..(*self.0).clone() };
        compiled.cut(&region)?;
        Ok(GeneralKernelFamily(Arc::new(compiled)))
    }

    /// The same family on the region of every row of a batch, cut to the box of this family: the same parameters are then
    /// densities on these regions. Rows without volume in the box are an error that names them.
    pub fn on_regions(&self, regions: &RegionBatch) -> Result<Vec<GeneralKernelFamily>, DensityError> {
        if regions.variables() != self.variables() {
            let names = |vars: &[Var]| vars.iter().map(|var| var.name()).collect::<Vec<_>>().join(", ");
            let (given, wanted) = (names(regions.variables()), names(self.variables()));
            return Err(DensityError::Batch(BatchError::Variables { row: 0, given, wanted }));
        }
        let (shared, ends) = (Arc::new(regions.clone()), self.ends());
        let compile = |row: usize| {
            checkpoint();
            let mut compiled = GeneralCompiled { place: Place::Row(shared.clone(), row), ..(*self.0).clone() };
            compiled.cut(&regions.region_within(row, &ends)?)?;
            compiled.whole_volume = compiled.volume;
            Ok(GeneralKernelFamily(Arc::new(compiled)))
        };
        let rows: Vec<GeneralKernelFamily> =
            (0..regions.len()).into_par_iter().map(compile).collect::<Result<_, DensityError>>()?;
        let empty: Vec<usize> = (0..rows.len()).filter(|row| !(rows[*row].0.volume > 0.0)).collect();
        if empty.is_empty() { Ok(rows) } else { Err(DensityError::RowsWithoutVolume(empty)) }
    }

    /// Both ends of every axis of the box.
    fn ends(&self) -> Vec<[Rational; 2]> {
        self.0.grid.axes().iter().map(|axis| [axis.edges()[0].clone(), axis.edges()[1].clone()]).collect()
    }

    /// The constraint that all densities satisfy.
    pub fn constraint(&self) -> Result<Constraint, DensityError> {
        match &self.0.place {
            Place::Whole(whole) => Ok(whole.0.clone()),
            Place::Row(batch, row) => Ok(batch.region_within(*row, &self.ends())?.constraint().clone()),
        }
    }

    /// The variables, in the order of coordinates.
    pub fn variables(&self) -> &[Var] {
        &self.0.variables
    }

    /// Whether the constraint contains a point, exactly.
    pub fn contains(&self, point: &[f64]) -> bool {
        match &self.0.place {
            Place::Whole(whole) => whole.1.contains(point),
            Place::Row(batch, row) => self.0.grid.box_contains(point) && batch.row_contains(*row, point),
        }
    }

    fn check_points(&self, points: &[f64]) -> Result<(), DensityError> {
        if points.len().is_multiple_of(self.dimension()) {
            return Ok(());
        }
        let names: Vec<&str> = self.0.variables.iter().map(Var::name).collect();
        Err(DensityError::Points { given: points.len(), variables: names.join(", ") })
    }

    /// What was chosen.
    pub fn settings(&self) -> &KernelSettings {
        &self.0.settings
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.0.grid.dimension()
    }

    /// The number of parameters of one density.
    pub fn num_params(&self) -> usize {
        self.0.offset.len()
    }

    /// The volume of the region.
    pub fn volume(&self) -> f64 {
        (0..self.dimension()).fold(self.0.volume, |volume, j| volume * self.half_width(j))
    }

    /// Half of a side of the box.
    fn half_width(&self, axis: usize) -> f64 {
        0.5 * self.0.grid.axes()[axis].length()
    }

    /// A point in coordinates of the box, which run from -1 to 1.
    fn to_box(&self, point: &[f64]) -> Point {
        let mut v = Point::default();
        for ((v, axis), y) in v.iter_mut().zip(self.0.grid.axes()).zip(point) {
            *v = 2.0 * axis.local(BinIndex::default(), *y) - 1.0;
        }
        v
    }

    /// A point in the coordinates of the user.
    fn to_user(&self, v: &Point) -> Vec<f64> {
        let axes = self.0.grid.axes().iter().zip(v);
        axes.map(|(axis, v)| axis.global(BinIndex::default(), 0.5 * (v + 1.0))).collect()
    }

    /// The mixtures of rows of parameters.
    fn rows(&self, params: &[f64]) -> Result<Vec<GeneralRow>, DensityError> {
        let wanted = self.num_params();
        if !params.len().is_multiple_of(wanted) {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted });
        }
        if let Some(at) = params.iter().position(|x| !x.is_finite()) {
            return Err(DensityError::Parameter { row: at / wanted, column: at % wanted, value: params[at] });
        }
        Ok(params.chunks(wanted).map(|row| GeneralRow::new(self.dimension(), row, &self.0.offset)).collect())
    }
}

impl GeneralCompiled {
    /// Cuts a region into simplices and finds its walls.
    fn cut(&mut self, region: &Region) -> Result<(), DensityError> {
        self.simplices = simplices::of_mesh(&Mesh::new(region, &self.grid)?);
        self.walls = integral::walls(self.grid.dimension(), &self.simplices);
        self.volume = self.simplices.iter().map(|simplex| simplex.volume).sum();
        Ok(())
    }
}
