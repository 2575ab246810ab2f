//! Kernel mixtures: densities whose components have a place, scales and a direction of their own.
//!
//! Splines and histograms live on a grid: no component is narrower than a bin, or slanted. A kernel mixture has no grid.
//! In the plane, with `u = L^-1 (y - c)` and the triweight `k(u) = 35/32 (1 - u^2)^3` on [-1, 1],
//!
//! ```text
//! q(y) = sum_m w_m k(u_1) k(u_2) / det L_m  +  w_0 / vol(region)
//! p(y) = q(y) 1[y in region] / I,        I = sum_m w_m Z_m + w_0
//! ```
//!
//! where `Z_m` is the integral of kernel m over the region, computed exactly from its boundary (`integral`). There is one
//! normalising constant for the whole mixture: a kernel that is buried in an obstacle does no harm. The uniform part keeps
//! every point of the region possible. Each component has copies of several widths, a narrow bell with wide tails (`head`).
//!
//! A condition is a smaller region: given it, the same parameters stand for the density `q 1[region and condition]`,
//! normalised there ([`KernelFamily::within`]).
//!
//! ```
//! use pal::kernel::{KernelFamily, KernelSettings};
//! use pal::{formula::reals, region::Region};
//! let [x, y] = reals(["x", "y"]);
//! let wall = x.between(4, 5) & y.ge(2);
//! let room = Region::new(&(x.between(0, 9) & y.between(0, 6) & !wall).into())?;
//! let family = KernelFamily::new(&room, &KernelSettings { components: 4 })?;
//! let params = vec![0.0; family.num_params()];
//! let left = family.within(&x.le(4))?;
//! let right = family.within(&x.ge(4))?;
//! let sum = family.probability(&left, &params)?[0] + family.probability(&right, &params)?[0];
//! assert!((sum - 1.0).abs() < 1e-12);
//! assert!(left.sample(&params, 100, 1)?.chunks(2).all(|point| point[0] <= 4.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boundary;
mod entropy;
mod general;
mod head;
mod integral;
mod marginal;
mod mode;
mod model;
mod moments;
mod pieces;
mod regions;
mod rows;
mod sample;
#[cfg(test)]
mod tests;
mod triangles;
mod triweight;

use std::sync::Arc;

pub use general::{GeneralKernelFamily, general_log_prob_each};
pub use model::KernelModel;
pub use moments::MeanAndCovariance;
pub use rows::{KernelLogProb, log_prob_each, log_prob_where};
pub use sample::sample_each;

use crate::density::{BinIndex, DensityError, Grid, Support};
use crate::formula::{Constraint, Formula, Membership, Var};
use crate::number::{self, Rational};
use crate::query::QueryError;
use crate::region::{Region, RegionBatch};
use boundary::Boundary;
use head::KernelRow;
use pieces::ConvexPiece;

/// What there is to choose about a kernel mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSettings {
    /// The number of components.
    pub components: usize,
}

impl Default for KernelSettings {
    fn default() -> KernelSettings {
        KernelSettings { components: 8 }
    }
}

/// The largest number of components.
const MAX_COMPONENTS: usize = 4096;

/// The kernel mixtures on one region in the plane, for all parameter vectors.
#[derive(Clone, Debug)]
pub struct KernelFamily(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    settings: KernelSettings,
    offset: Vec<f64>,
    place: Place,
    variables: Vec<Var>,
    /// The box around the region that the family was made on, as a grid of one bin.
    grid: Arc<Grid>,
    ends: Vec<(Rational, Rational)>,
    boundary: Boundary,
    pieces: Vec<ConvexPiece>,
    /// The volume of the region in coordinates of the box, whose own volume is 4.
    volume: f64,
    /// The volume of the region that the family was made on, on which the uniform part is 1 / volume.
    whole_volume: f64,
}

/// Where the densities live.
#[derive(Clone, Debug)]
enum Place {
    Whole(Arc<(Constraint, Membership)>),
    /// A row of a batch of regions, inside the box of the family.
    Row(Arc<RegionBatch>, usize),
}

impl KernelFamily {
    /// Compiles a bounded region in the plane.
    pub fn new(region: &Region, settings: &KernelSettings) -> Result<KernelFamily, DensityError> {
        if !(1..=MAX_COMPONENTS).contains(&settings.components) {
            let given = settings.components;
            return Err(DensityError::Settings(format!(
                "a kernel mixture has 1 to {MAX_COMPONENTS} components; {given} were asked for"
            )));
        }
        let ends = Support::ends(region)?;
        if ends.len() != 2 {
            return Err(DensityError::Settings(format!(
                "a KernelFamily has two variables, and the constraint has {}; use a GeneralKernelFamily for one or three, \
                 and a spline mixture or a sum of squares for more",
                ends.len()
            )));
        }
        let edges = ends.iter().map(|(low, high)| vec![low.clone(), high.clone()]).collect();
        let grid = Support::make_grid(region.constraint(), edges)?;
        let mut compiled = Compiled {
            settings: settings.clone(),
            offset: head::offset(settings.components),
            place: Place::whole(region.constraint().clone())?,
            variables: region.variables().to_vec(),
            grid,
            ends,
            boundary: Boundary::default(),
            pieces: Vec::new(),
            volume: 0.0,
            whole_volume: 0.0,
        };
        compiled.cut(region)?;
        compiled.whole_volume = compiled.volume;
        Ok(KernelFamily(Arc::new(compiled)))
    }

    /// The same family given that a condition holds: its densities are those of this family with the same parameters,
    /// restricted to the condition and normalised there. The condition may be impossible; then questions are errors.
    pub fn within(&self, condition: &Formula) -> Result<KernelFamily, QueryError> {
        if let Some(var) = condition.boolean_variables().into_iter().next() {
            return Err(QueryError::Variables(format!(
                "the condition uses the Boolean variable `{var}`; densities are over reals"
            )));
        }
        let constraint = self.constraint()?;
        let constraint = Constraint { formula: constraint.formula.clone() & condition.clone(), ..constraint };
        let region = Region::new(&constraint).map_err(DensityError::from)?;
        let mut compiled = self.0.without_place(Place::whole(constraint)?);
        compiled.cut(&region)?;
        Ok(KernelFamily(Arc::new(compiled)))
    }

    /// The constraint that all densities satisfy.
    pub fn constraint(&self) -> Result<Constraint, DensityError> {
        match &self.0.place {
            Place::Whole(whole) => Ok(whole.0.clone()),
            Place::Row(batch, row) => {
                let ends: Vec<[Rational; 2]> =
                    self.0.ends.iter().map(|(low, high)| [low.clone(), high.clone()]).collect();
                Ok(batch.region_within(*row, &ends)?.constraint().clone())
            }
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

    /// Whether the constraint contains each of some points, given row by row.
    fn contains_batch(&self, points: &[f64]) -> Vec<bool> {
        match &self.0.place {
            Place::Whole(whole) => whole.1.contains_batch(points),
            Place::Row(..) => points.chunks_exact(2).map(|point| self.contains(point)).collect(),
        }
    }

    fn check_points(&self, points: &[f64]) -> Result<(), DensityError> {
        if points.len().is_multiple_of(2) {
            return Ok(());
        }
        let names: Vec<&str> = self.0.variables.iter().map(Var::name).collect();
        Err(DensityError::Points { given: points.len(), variables: names.join(", ") })
    }

    /// What was chosen.
    pub fn settings(&self) -> &KernelSettings {
        &self.0.settings
    }

    /// The number of variables: two.
    pub fn dimension(&self) -> usize {
        2
    }

    /// The number of parameters of one density.
    pub fn num_params(&self) -> usize {
        self.0.offset.len()
    }

    /// The volume of the region.
    pub fn volume(&self) -> f64 {
        self.0.volume * self.half_widths().iter().product::<f64>()
    }

    /// Half of the sides of the box.
    fn half_widths(&self) -> [f64; 2] {
        let axes = self.0.grid.axes();
        [0.5 * axes[0].length(), 0.5 * axes[1].length()]
    }

    /// A point in coordinates of the box, which run from -1 to 1.
    fn to_box(&self, point: &[f64]) -> [f64; 2] {
        let axes = self.0.grid.axes();
        [0, 1].map(|j| 2.0 * axes[j].local(BinIndex::default(), point[j]) - 1.0)
    }

    /// A point in the coordinates of the user.
    fn to_user(&self, v: [f64; 2]) -> [f64; 2] {
        let axes = self.0.grid.axes();
        [0, 1].map(|j| axes[j].global(BinIndex::default(), 0.5 * (v[j] + 1.0)))
    }

    /// The mixtures of rows of parameters.
    fn rows(&self, params: &[f64]) -> Result<Vec<KernelRow>, DensityError> {
        let wanted = self.num_params();
        if !params.len().is_multiple_of(wanted) {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted });
        }
        if let Some(at) = params.iter().position(|x| !x.is_finite()) {
            return Err(DensityError::Parameter { row: at / wanted, column: at % wanted, value: params[at] });
        }
        Ok(params.chunks(wanted).map(|row| KernelRow::new(row, &self.0.offset)).collect())
    }
}

impl Place {
    fn whole(constraint: Constraint) -> Result<Place, DensityError> {
        let membership = constraint.membership()?;
        Ok(Place::Whole(Arc::new((constraint, membership))))
    }
}

impl Compiled {
    /// The same family at another place, which is still to be cut.
    fn without_place(&self, place: Place) -> Compiled {
        Compiled {
            settings: self.settings.clone(),
            offset: self.offset.clone(),
            place,
            variables: self.variables.clone(),
            grid: self.grid.clone(),
            ends: self.ends.clone(),
            boundary: Boundary::default(),
            pieces: Vec::new(),
            volume: 0.0,
            whole_volume: self.whole_volume,
        }
    }

    /// Cuts a region into convex pieces and finds its boundary.
    fn cut(&mut self, region: &Region) -> Result<(), DensityError> {
        let polygons = region.polygons()?;
        self.boundary = Boundary::new(&polygons, &self.ends);
        let (two, four) = (Rational::from(2), Rational::from(4));
        let sides: Vec<Rational> = self.ends.iter().map(|(low, high)| high - low).collect();
        let box_volume = &sides[0] * &sides[1];
        for polygon in &polygons {
            let corner = |point: &[Rational; 2]| {
                let coordinate = |j: usize| {
                    let (low, high) = &self.ends[j];
                    number::to_f64(&((&point[j] * &two - low - high) / &sides[j]))
                };
                [coordinate(0), coordinate(1)]
            };
            let next = polygon.iter().cycle().skip(1);
            let twice = polygon.iter().zip(next).map(|(p, q)| &p[0] * &q[1] - &p[1] * &q[0]);
            let area = twice.fold(Rational::ZERO, |sum, term| sum + term) / &two;
            let area = number::to_f64(&(area * &four / &box_volume));
            self.pieces.push(ConvexPiece::new(polygon.iter().map(corner).collect(), area));
        }
        self.volume = self.pieces.iter().map(|piece| piece.area).sum();
        Ok(())
    }
}
