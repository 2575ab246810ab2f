//! Many regions over the same variables, one for each example of a data set.
//!
//! A row of a batch is a region of its own, a window of a map that many rows share, what can be seen in such a window from
//! its centre, or a union of sets `A y <= b`. Rows
//! are immutable and shared: indexing and concatenation copy no geometry.

mod error;
mod file;
mod half_spaces;
mod map;
mod merge;
mod obstacles;
mod thin_wall;
mod visible;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

pub use error::BatchError;
pub use file::BatchFileError;
pub use map::RegionMap;
pub(crate) use map::{CellPolygons, CellScalar};

use super::planar::{BinPart, Corner, CutMemory, Doubt, PlanarGrid};
use super::{Region, Status};
use crate::double_double::DoubleDouble;
use crate::formula::{Constraint, Formula, Linear, Var};
use crate::interrupt::checkpoint;
use crate::number::Rational;
use half_spaces::HalfSpaceUnion;
use map::MapData;
use window::{Window, exact};

/// Regions over the same variables, one per row.
///
/// ```
/// use pal::{formula::reals, region::{Region, RegionBatch}};
/// let [x] = reals(["x"]);
/// let budgets = [1, 2, 0].map(|most| Region::new(&x.between(0, most).into()).unwrap());
/// let batch = RegionBatch::new(&budgets)?;
/// assert_eq!(batch.volumes(), [1.0, 2.0, 0.0]);
/// assert_eq!(batch.statuses().iter().map(|s| s.name()).collect::<Vec<_>>(), ["bounded", "bounded", "lower-dimensional"]);
/// assert_eq!(batch.contains(&[1.5, 1.5, 0.0])?, [false, true, true]);
/// # Ok::<(), pal::region::BatchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegionBatch {
    variables: Vec<Var>,
    rows: Vec<BatchRow>,
}

#[derive(Clone, Debug)]
enum BatchRow {
    Whole(Arc<MapData>),
    Window(Arc<MapData>, Window),
    /// What the centre of a window sees; the map has obstacles.
    Visible(Arc<MapData>, Window),
    HalfSpaces(Arc<HalfSpaceUnion>),
}

/// The relative error that areas may have.
const AREA_ERROR: f64 = 1e-13;
/// The least number of rows for which other threads are asked.
const PARALLEL: usize = 64;

impl RegionBatch {
    /// A batch of given regions, which have the same variables in the same order and no Boolean ones.
    pub fn new(regions: &[Region]) -> Result<RegionBatch, BatchError> {
        let first = regions.first().ok_or(BatchError::Empty)?;
        let variables = first.variables().to_vec();
        if variables.is_empty() {
            return Err(BatchError::NoVariables);
        }
        let row = |(row, region): (usize, &Region)| {
            if region.variables() != variables {
                let (given, wanted) = (listed(region.variables()), listed(&variables));
                return Err(BatchError::Variables { row, given, wanted });
            }
            Ok(BatchRow::Whole(Arc::new(MapData::new(region)?)))
        };
        let rows = regions.iter().enumerate().map(row).collect::<Result<_, _>>()?;
        Ok(RegionBatch { variables, rows })
    }

    /// One union of sets `A y <= b` for each row, from flat arrays: `normals` of rows x parts x half-spaces x variables,
    /// `offsets` of rows x parts x half-spaces, and `mask` of rows x parts, which says which parts there are. A float64
    /// is the exact rational that it denotes.
    ///
    /// ```
    /// use pal::{formula::Var, region::RegionBatch};
    /// let variables = Var::declare(["x", "y"]);
    /// // x <= 1, y <= 1 and x + y >= 1 in the first row, and 2 in the second one.
    /// let normals = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0].repeat(2);
    /// let offsets = [1.0, 1.0, -1.0, 2.0, 2.0, -1.0];
    /// let batch = RegionBatch::half_spaces(&variables, [2, 1, 3], &normals, &offsets, None)?;
    /// assert_eq!(batch.volumes(), [0.5, 4.5]);
    /// # Ok::<(), pal::region::BatchError>(())
    /// ```
    pub fn half_spaces(
        variables: &[Var],
        shape: [usize; 3],
        normals: &[f64],
        offsets: &[f64],
        mask: Option<&[bool]>,
    ) -> Result<RegionBatch, BatchError> {
        if variables.is_empty() {
            return Err(BatchError::NoVariables);
        }
        let unions = HalfSpaceUnion::all(variables.len(), shape, normals, offsets, mask)?;
        let rows = unions.into_iter().map(|union| BatchRow::HalfSpaces(Arc::new(union))).collect();
        Ok(RegionBatch { variables: variables.to_vec(), rows })
    }

    /// The real variables of all rows, in the order of coordinates.
    pub fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.variables.len()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Some rows, in any order and any number of times.
    pub fn select(&self, indices: &[usize]) -> Result<RegionBatch, BatchError> {
        let row = |index: &usize| self.row(*index).cloned();
        Ok(RegionBatch { rows: indices.iter().map(row).collect::<Result<_, _>>()?, variables: self.variables.clone() })
    }

    /// The rows of this batch and then those of others, which have the same variables.
    pub fn concatenate(&self, others: &[RegionBatch]) -> Result<RegionBatch, BatchError> {
        let mut all = self.clone();
        for other in others {
            if other.variables != self.variables {
                let (given, wanted) = (listed(&other.variables), listed(&self.variables));
                return Err(BatchError::Variables { row: all.len(), given, wanted });
            }
            all.rows.extend(other.rows.iter().cloned());
        }
        Ok(all)
    }

    /// The first row of each kind of equal rows, and for each row which of these it is equal to.
    pub(crate) fn distinct(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut first, mut known) = (Vec::new(), HashMap::with_capacity(self.len()));
        let mut place = |(row, key)| {
            *known.entry(key).or_insert_with(|| {
                first.push(row);
                first.len() - 1
            })
        };
        let places = self.rows.iter().map(BatchRow::key).enumerate().map(&mut place).collect();
        (first, places)
    }

    fn row(&self, row: usize) -> Result<&BatchRow, BatchError> {
        self.rows.get(row).ok_or(BatchError::Row { row, rows: self.rows.len() })
    }

    /// The constraint of a row.
    pub fn constraint(&self, row: usize) -> Result<Constraint, BatchError> {
        Ok(match self.row(row)? {
            BatchRow::Whole(map) => map.region.constraint().clone(),
            BatchRow::Window(map, window) => window.constraint(map.region.constraint()),
            BatchRow::Visible(map, window) => {
                let constraint = map.region.constraint();
                let mut formula = Formula::no();
                if let (true, Some(obstacles)) = (map.membership.contains(&window.centre), map.obstacles()) {
                    formula = constraint.formula.clone() & window.visible_formula(obstacles, &constraint.reals);
                }
                window.constraint(&Constraint { formula, ..constraint.clone() })
            }
            BatchRow::HalfSpaces(union) => union.constraint(&self.variables),
        })
    }

    /// The region of a row.
    pub fn region(&self, row: usize) -> Result<Region, BatchError> {
        match self.row(row)? {
            BatchRow::Whole(map) => Ok(map.region.clone()),
            _ => Region::new(&self.constraint(row)?).map_err(|error| BatchError::Region { row, error }),
        }
    }

    /// The regions of all rows, one after the other.
    pub fn regions(&self) -> impl Iterator<Item = Result<Region, BatchError>> {
        (0..self.len()).map(|row| self.region(row))
    }

    /// Whether each point, one per row, is in the region of its own row, exactly and with strictness. Points come row by
    /// row in one slice; NaN and infinities are in no region.
    pub fn contains(&self, points: &[f64]) -> Result<Vec<bool>, BatchError> {
        self.check_points(points)?;
        let n = self.dimension();
        let decide = |(row, point): (&BatchRow, &[f64])| row.contains(point);
        if self.len() < PARALLEL {
            return Ok(self.rows.iter().zip(points.chunks(n)).map(decide).collect());
        }
        Ok(self.rows.par_iter().with_min_len(PARALLEL).zip(points.par_chunks(n)).map(decide).collect())
    }

    /// Whether one point is in the region of a row, exactly.
    pub(crate) fn row_contains(&self, row: usize, point: &[f64]) -> bool {
        self.rows[row].contains(point)
    }

    /// Points of the map, one per row, in the local coordinates of their windows, rounded to float64. The coordinates
    /// of rows that are not windows are those of the map already.
    pub fn to_local(&self, points: &[f64]) -> Result<Vec<f64>, BatchError> {
        self.each_point(points, Window::local)
    }

    /// Points in local coordinates, one per row, as points of the map, rounded to float64: the opposite of
    /// [`RegionBatch::to_local`].
    pub fn to_map(&self, points: &[f64]) -> Result<Vec<f64>, BatchError> {
        self.each_point(points, Window::image)
    }

    fn each_point(&self, points: &[f64], change: fn(&Window, &[f64]) -> Vec<f64>) -> Result<Vec<f64>, BatchError> {
        self.check_points(points)?;
        let changed = |(row, point): (&BatchRow, &[f64])| match row {
            BatchRow::Window(_, window) | BatchRow::Visible(_, window) => change(window, point),
            _ => point.to_vec(),
        };
        Ok(self.rows.iter().zip(points.chunks(self.dimension())).flat_map(changed).collect())
    }

    fn check_points(&self, points: &[f64]) -> Result<(), BatchError> {
        let (given, wanted) = (points.len(), self.len() * self.dimension());
        if given != wanted {
            return Err(BatchError::Length { what: "coordinates of points", given, wanted });
        }
        Ok(())
    }

    /// Cuts the maps of all rows in the plane into cells, each map once. This comes before rows are looked at in
    /// parallel: cutting is divided between threads too, and a thread that waits for the cells of a map could take up
    /// another row of the same map, and so wait for itself.
    pub(crate) fn prepare(&self) {
        if self.dimension() != 2 {
            return;
        }
        let (mut maps, mut viewed) = (HashMap::new(), HashMap::new());
        for row in &self.rows {
            match row {
                BatchRow::Whole(map) | BatchRow::Window(map, _) => maps.insert(Arc::as_ptr(map), &**map),
                BatchRow::Visible(map, _) => viewed.insert(Arc::as_ptr(map), &**map),
                BatchRow::HalfSpaces(_) => None,
            };
        }
        maps.into_values().collect::<Vec<_>>().into_par_iter().for_each(|map| {
            let _ = map.cells();
        });
        viewed.into_values().collect::<Vec<_>>().into_par_iter().for_each(|map| {
            let _ = map.obstacles();
        });
    }

    /// The kind of every row: bounded, unbounded, lower-dimensional or empty.
    pub fn statuses(&self) -> Vec<Status> {
        self.prepare();
        (0..self.len()).into_par_iter().map(|row| self.status(row)).collect()
    }

    /// The kind of a row.
    fn status(&self, row: usize) -> Status {
        checkpoint();
        if self.window_area(row).is_some_and(|area| area > 0.0) {
            return Status::Bounded;
        }
        match self.region(row) {
            Ok(region) => region.status(),
            Err(error) => unreachable!("a row of a batch makes a region: {error}"),
        }
    }

    /// The volume of every row; infinite for unbounded ones.
    pub fn volumes(&self) -> Vec<f64> {
        self.prepare();
        (0..self.len()).into_par_iter().map(|row| self.volume(row)).collect()
    }

    fn volume(&self, row: usize) -> f64 {
        checkpoint();
        if let Some(area) = self.window_area(row) {
            return area;
        }
        match self.region(row) {
            Ok(region) => region.volume().unwrap_or(f64::INFINITY),
            Err(error) => unreachable!("a row of a batch makes a region: {error}"),
        }
    }

    /// The area of a window in the plane, from the cells of its map; `None` for other rows.
    fn window_area(&self, row: usize) -> Option<f64> {
        let (BatchRow::Window(_, window) | BatchRow::Visible(_, window)) = &self.rows[row] else { return None };
        if self.dimension() != 2 {
            return None;
        }
        let ends = [0, 1].map(|j| {
            let width = exact(window.half_width[j]);
            [-&width, width]
        });
        let near = self.area::<DoubleDouble>(row, &ends);
        let exact = |_: Doubt| self.area::<Rational>(row, &ends);
        let area = near.or_else(exact).unwrap_or_else(|_| unreachable!("fractions leave no doubt"));
        area.map(|fraction| fraction * 4.0 * window.half_width[0] * window.half_width[1])
    }

    /// The part of a box that a row takes, from 0 to 1; `None` if it is not known by its pieces.
    fn area<N: CellScalar>(&self, row: usize, ends: &[[Rational; 2]; 2]) -> Result<Option<f64>, Doubt> {
        let grid = PlanarGrid::<N>::new([&ends[0], &ends[1]]);
        let Some(pieces) = self.pieces(row, &grid, ends) else { return Ok(None) };
        let (mut memory, mut trapezoids, mut area) = (CutMemory::default(), Vec::new(), 0.0);
        for piece in pieces? {
            grid.cut(&piece, &mut memory, &mut |i, j, part| {
                area += match part {
                    BinPart::Full => 1.0,
                    BinPart::Polygon(corners) => grid.trapezoids([i, j], corners, AREA_ERROR, &mut trapezoids)?,
                };
                Ok(())
            })?;
        }
        Ok(Some(area))
    }

    /// The convex pieces of a row in the plane that may meet the box of a grid, with disjoint interiors; `None` for a
    /// window of an unbounded map, which has no cells to look at.
    pub(crate) fn pieces<N: CellScalar>(
        &self,
        row: usize,
        grid: &PlanarGrid<N>,
        ends: &[[Rational; 2]; 2],
    ) -> Option<Result<Vec<Vec<Corner<N>>>, Doubt>> {
        let mut pieces = Vec::new();
        match &self.rows[row] {
            BatchRow::Window(map, window) => return Some(window.pieces(map.cells().ok()?, ends)),
            BatchRow::Visible(map, window) => {
                return Some(window.visible_pieces(map.obstacles()?, &map.membership, ends));
            }
            BatchRow::Whole(map) => match map.cells() {
                Ok(cells) => pieces = N::polygons(cells.polygons()),
                Err(_) => pieces = self.pieces_within(row, ends)?,
            },
            BatchRow::HalfSpaces(union) => match union.clip(grid.box_corners()) {
                Some(Ok(polygon)) => pieces.push(polygon),
                Some(Err(doubt)) => return Some(Err(doubt)),
                None => pieces = self.pieces_within(row, ends)?,
            },
        }
        Some(Ok(pieces))
    }

    /// The normals, one after the other, and offsets of a row that is one set `A y <= b`; `None` for other rows.
    pub(crate) fn single_half_spaces(&self, row: usize) -> Option<(&[f64], &[f64])> {
        match &self.rows[row] {
            BatchRow::HalfSpaces(union) => match &union.parts[..] {
                [(normals, offsets)] => Some((normals, offsets)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The pieces of a row in a box, by the search that works for all constraints.
    fn pieces_within<N: CellScalar>(&self, row: usize, ends: &[[Rational; 2]; 2]) -> Option<Vec<Vec<Corner<N>>>> {
        let region = self.region_within(row, ends).ok()?;
        let polygons = CellPolygons::new(&region.decompose().ok()?);
        Some(N::polygons(&polygons))
    }

    /// The part of a row in a box, as a region.
    pub(crate) fn region_within(&self, row: usize, ends: &[[Rational; 2]]) -> Result<Region, BatchError> {
        let constraint = self.constraint(row)?;
        let side =
            |(var, [low, high]): (&Var, &[Rational; 2])| Linear::from(var.clone()).between(low.clone(), high.clone());
        let sides = constraint.reals.iter().zip(ends).map(side);
        let formula = Formula::all(sides.chain([constraint.formula.clone()]).collect::<Vec<_>>());
        let constraint = Constraint { formula, ..constraint };
        Region::new(&constraint).map_err(|error| BatchError::Region { row, error })
    }
}

impl BatchRow {
    /// Rows with the same key are the same region.
    fn key(&self) -> (usize, Vec<u64>) {
        match self {
            BatchRow::Whole(map) => (Arc::as_ptr(map) as usize, Vec::new()),
            BatchRow::Window(map, window) | BatchRow::Visible(map, window) => {
                let numbers = window.centre.iter().chain(&window.turn).chain(&*window.half_width);
                let kind = u64::from(matches!(self, BatchRow::Visible(..)));
                (Arc::as_ptr(map) as usize, numbers.map(|x| x.to_bits()).chain([kind]).collect())
            }
            BatchRow::HalfSpaces(union) => (Arc::as_ptr(union) as usize, Vec::new()),
        }
    }

    fn contains(&self, point: &[f64]) -> bool {
        match self {
            BatchRow::Whole(map) => map.membership.contains(point),
            BatchRow::Window(map, window) => window.contains(&map.membership, point),
            BatchRow::Visible(map, window) => {
                window.box_contains(point) && map.membership.contains_segment(&window.centre, &window.image(point))
            }
            BatchRow::HalfSpaces(union) => union.contains(point),
        }
    }
}

/// Names of variables as they stand in messages.
fn listed(variables: &[Var]) -> String {
    variables.iter().map(Var::name).collect::<Vec<_>>().join(", ")
}
