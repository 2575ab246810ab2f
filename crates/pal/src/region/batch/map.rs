//! A region whose convex cells are kept in a spatial index.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};

use super::error::BatchError;
use super::merge::merged;
use super::obstacles::{ObstacleCorner, Obstacles};
use super::thin_wall::thin_wall;
use super::window::Window;
use super::{BatchRow, RegionBatch};
use crate::double_double::{DoubleDouble, two_sum};
use crate::formula::{Membership, Plane};
use crate::number::Rational;
use crate::region::planar::{Corner, Scalar};
use crate::region::{Cell, Polytope, Region, Unbounded};

/// A region to look at from many places: it is cut into cells once, and a window of it costs what is near the window.
///
/// ```
/// use pal::{formula::reals, region::{Region, RegionMap}};
/// let [x, y] = reals(["x", "y"]);
/// let pillar = x.between(2, 3) & y.between(2, 3);
/// let map = RegionMap::new(&Region::new(&(x.between(0, 9) & y.between(0, 9) & !pillar).into())?)?;
/// // Two windows of half width 1, the second one turned to the north and at the wall.
/// let windows = map.windows(&[2.0, 2.0, 9.0, 5.0], &[1.0], Some(&[1.0, 0.0, 0.0, 1.0]), None)?;
/// assert_eq!(windows.volumes(), [3.0, 2.0]);
/// // Local coordinates: ahead is the first one, to the left the second one.
/// assert_eq!(windows.contains(&[0.5, 0.5, 0.5, 0.5])?, [false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegionMap(pub(super) Arc<MapData>);

/// The least number of segments for a thread of its own.
const SEGMENTS: usize = 64;

#[derive(Debug)]
pub(super) struct MapData {
    pub region: Region,
    pub membership: Membership,
    /// The cells in the plane, found when they are first needed.
    cells: OnceLock<Result<CellIndex, Unbounded>>,
    /// What the map forbids in its box in the plane, found when it is first needed; `None` for an unbounded map.
    obstacles: OnceLock<Option<Obstacles>>,
    /// A wall of no thickness of a map in the plane, looked for when views are first asked for.
    thin_wall: OnceLock<Option<Plane>>,
}

/// The cells of a region in the plane, and where they are.
#[derive(Debug)]
pub(super) struct CellIndex {
    polygons: CellPolygons,
    tree: RTree<GeomWithData<Rectangle<[f64; 2]>, u32>>,
}

/// Cells in the plane as polygons, in double-doubles and exactly.
#[derive(Debug, Default)]
pub(crate) struct CellPolygons {
    near: Vec<Vec<Corner<DoubleDouble>>>,
    exact: Vec<Vec<Corner<Rational>>>,
}

/// A number that polygons of cells are cut in.
pub(crate) trait CellScalar: Scalar {
    /// The numbers that polygons are kept in.
    type Kept: Scalar;
    /// The polygons of cells as they are kept.
    fn kept(cells: &CellPolygons) -> &[Vec<Corner<Self::Kept>>];
    /// A corner in coordinates that are 0 at a centre.
    fn seen_from(corner: &Corner<Self::Kept>, centre: [f64; 2]) -> Corner<Self>;
    /// The polygons of cells in these numbers.
    fn polygons(cells: &CellPolygons) -> Vec<Vec<Corner<Self>>> {
        let corner = |corner: &Corner<Self::Kept>| Self::seen_from(corner, [0.0; 2]);
        Self::kept(cells).iter().map(|polygon| polygon.iter().map(corner).collect()).collect()
    }
    /// The coordinates of a corner of an obstacle, with bounds on their errors.
    fn coordinates(corner: &ObstacleCorner) -> [(Self, f64); 2];
}

/// float64 numbers are rounded once, after the centre has been subtracted: close to it they keep all of their digits.
impl CellScalar for f64 {
    type Kept = DoubleDouble;

    fn kept(cells: &CellPolygons) -> &[Vec<Corner<DoubleDouble>>] {
        &cells.near
    }

    #[inline(always)]
    fn seen_from(corner: &Corner<DoubleDouble>, centre: [f64; 2]) -> Corner<f64> {
        let coordinate = |j: usize| {
            let (high, rest) = two_sum(corner.at[j].high, -centre[j]);
            // The sum of the small parts may itself be rounded.
            let low = rest + corner.at[j].low;
            let (sum, left) = two_sum(high, low);
            (sum, corner.error[j] + left.abs() + f64::EPSILON * low.abs())
        };
        let [(x, x_error), (y, y_error)] = [coordinate(0), coordinate(1)];
        Corner::new([x, y], [x_error, y_error])
    }

    fn coordinates(corner: &ObstacleCorner) -> [(f64, f64); 2] {
        [0, 1].map(|j| (corner.near[j], corner.error[j]))
    }
}

impl CellScalar for DoubleDouble {
    type Kept = DoubleDouble;

    fn kept(cells: &CellPolygons) -> &[Vec<Corner<DoubleDouble>>] {
        &cells.near
    }

    fn seen_from(corner: &Corner<DoubleDouble>, centre: [f64; 2]) -> Corner<DoubleDouble> {
        moved(corner, centre)
    }

    fn coordinates(corner: &ObstacleCorner) -> [(DoubleDouble, f64); 2] {
        corner.double
    }
}

impl CellScalar for Rational {
    type Kept = Rational;

    fn kept(cells: &CellPolygons) -> &[Vec<Corner<Rational>>] {
        &cells.exact
    }

    fn seen_from(corner: &Corner<Rational>, centre: [f64; 2]) -> Corner<Rational> {
        moved(corner, centre)
    }

    fn coordinates(corner: &ObstacleCorner) -> [(Rational, f64); 2] {
        corner.exact.clone().map(|x| (x, 0.0))
    }
}

/// A corner in coordinates that are 0 at a centre.
fn moved<N: Scalar>(corner: &Corner<N>, centre: [f64; 2]) -> Corner<N> {
    let [(x, x_error), (y, y_error)] = [0, 1].map(|j| corner.at[j].minus_float(centre[j]));
    Corner::new([x, y], [corner.error[0] + x_error, corner.error[1] + y_error])
}

impl CellPolygons {
    /// The exact polygons.
    pub fn exact(&self) -> &[Vec<Corner<Rational>>] {
        &self.exact
    }

    /// The polygons of cells in the plane, joined where they are convex together.
    pub fn new(cells: &[Cell]) -> CellPolygons {
        let mut polygons = CellPolygons::default();
        for corners in merged(cells.iter().map(|cell| in_order(cell.polytope())).collect()) {
            let corner = |[x, y]: &[Rational; 2]| {
                let [(x, x_error), (y, y_error)] = [x, y].map(DoubleDouble::nearest);
                Corner::new([x, y], [x_error, y_error])
            };
            polygons.near.push(corners.iter().map(corner).collect());
            polygons.exact.push(corners.into_iter().map(|at| Corner::new(at, [0.0; 2])).collect());
        }
        polygons
    }
}

/// The vertices of a polygon along its boundary, which its incidence tells.
fn in_order(polytope: &Polytope) -> Vec<[Rational; 2]> {
    let vertices = polytope.exact_vertices();
    let mut neighbours = vec![Vec::with_capacity(2); vertices.len()];
    for facet in 0..polytope.half_spaces().len() {
        let ends = polytope.facet_vertices(facet);
        assert_eq!(ends.len(), 2, "a facet of a polygon is an edge");
        neighbours[ends[0]].push(ends[1]);
        neighbours[ends[1]].push(ends[0]);
    }
    let (mut before, mut at, mut order) = (usize::MAX, 0, Vec::with_capacity(vertices.len()));
    for _ in 0..vertices.len() {
        order.push([vertices[at][0].clone(), vertices[at][1].clone()]);
        let next = neighbours[at].iter().copied().find(|next| *next != before);
        (before, at) = (at, next.expect("two edges meet in a corner of a polygon"));
    }
    order
}

impl CellIndex {
    fn new(region: &Region) -> Result<CellIndex, Unbounded> {
        let polygons = CellPolygons::new(&region.decompose()?);
        let rectangle = |(k, corners): (usize, &Vec<Corner<DoubleDouble>>)| {
            // A coordinate that is not finite, or whose error is not, is beyond every window.
            let end = |axis: usize, sign: f64| {
                let reach = corners.iter().map(|corner| sign * corner.at[axis].high + 2.0 * corner.error[axis]);
                let most = reach.fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
                let most = if most.is_nan() { f64::INFINITY } else { most + f64::EPSILON * most.abs() };
                sign * most
            };
            let rectangle = Rectangle::from_corners([end(0, -1.0), end(1, -1.0)], [end(0, 1.0), end(1, 1.0)]);
            GeomWithData::new(rectangle, k as u32)
        };
        let rectangles = polygons.near.iter().enumerate().map(rectangle).collect();
        Ok(CellIndex { tree: RTree::bulk_load(rectangles), polygons })
    }

    /// All polygons.
    pub fn polygons(&self) -> &CellPolygons {
        &self.polygons
    }

    /// Which polygons may meet a box, in increasing order.
    pub fn near(&self, low: [f64; 2], high: [f64; 2]) -> Vec<u32> {
        let found = self.tree.locate_in_envelope_intersecting(&AABB::from_corners(low, high));
        let mut found: Vec<u32> = found.map(|entry| entry.data).collect();
        found.sort_unstable();
        found
    }
}

impl MapData {
    pub fn new(region: &Region) -> Result<MapData, BatchError> {
        if let Some(var) = region.constraint().booleans.first() {
            return Err(BatchError::Boolean(var.clone()));
        }
        Ok(MapData {
            membership: region.membership()?,
            region: region.clone(),
            cells: OnceLock::new(),
            obstacles: OnceLock::new(),
            thin_wall: OnceLock::new(),
        })
    }

    /// The cells of a region in the plane.
    pub fn cells(&self) -> Result<&CellIndex, &Unbounded> {
        self.cells.get_or_init(|| CellIndex::new(&self.region)).as_ref()
    }

    /// What a bounded region in the plane leaves of its box.
    pub fn obstacles(&self) -> Option<&Obstacles> {
        self.obstacles.get_or_init(|| Obstacles::new(&self.region)).as_ref()
    }

    /// Refuses maps that nothing can be seen on.
    pub fn check_visible(&self) -> Result<(), BatchError> {
        let dimension = self.region.dimension();
        if dimension != 2 {
            return Err(BatchError::NotInThePlane(dimension));
        }
        if let Some(wall) = self.thin_wall.get_or_init(|| thin_wall(self.region.constraint())) {
            return Err(BatchError::ThinWall(format!("{} = 0", wall.to_linear())));
        }
        if self.obstacles().is_none() { Err(BatchError::UnboundedMap) } else { Ok(()) }
    }
}

impl RegionMap {
    /// Prepares a region, which must not have Boolean variables. In the plane it is cut into cells at once.
    pub fn new(region: &Region) -> Result<RegionMap, BatchError> {
        let map = MapData::new(region)?;
        if region.dimension() == 2 {
            // Not while a window is looked at: a thread that waits for the cells might wait for itself.
            let _ = map.cells();
        }
        Ok(RegionMap(Arc::new(map)))
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.0.region
    }

    /// Windows of the map: boxes around centres, in local coordinates that are 0 there.
    ///
    /// A point `u` of a window with |u_j| <= half_width_j stands for the point `centre + scale u` of the map; in the
    /// plane, with a heading h of any length, for
    ///
    /// ```text
    /// y_1 = centre_1 + a u_1 - b u_2,        (a, b) = scale h / |h|
    /// y_2 = centre_2 + b u_1 + a u_2,
    /// ```
    ///
    /// so that the first local coordinate points along the heading and the second one to its left. `a` and `b` are
    /// computed once in float64; from then on they, the centres and the half widths are the exact numbers that they
    /// denote, so that every window is an exactly defined constraint.
    ///
    /// `centres` and `headings` come row by row; `half_width` is one number for all axes, or one per axis; `scales` are
    /// one number per window. What lies outside of the map's own constraint is outside of every window.
    pub fn windows(
        &self,
        centres: &[f64],
        half_width: &[f64],
        headings: Option<&[f64]>,
        scales: Option<&[f64]>,
    ) -> Result<RegionBatch, BatchError> {
        let windows = Window::all(self.region().dimension(), centres, half_width, headings, scales)?;
        let rows = windows.into_iter().map(|window| BatchRow::Window(self.0.clone(), window));
        Ok(RegionBatch { variables: self.region().variables().to_vec(), rows: rows.collect() })
    }

    /// Windows like those of [`RegionMap::windows`] in the plane, of which only what can be seen from their centres counts:
    /// the points whose whole segment from the centre satisfies the constraint of the map.
    ///
    /// A float64 point in local coordinates stands for the point of the map that [`RegionBatch::to_map`] returns for it,
    /// rounded to float64. Whether a row contains it is decided for the segment from the centre to that rounded point, so
    /// that steps from point to point stay on the map whatever rounding does. What a centre outside of the map sees is
    /// empty. The map is bounded and has no wall of no thickness, such as that of `x != 1`.
    ///
    /// ```
    /// use pal::{formula::reals, region::{Region, RegionMap}};
    /// let [x, y] = reals(["x", "y"]);
    /// let pillar = x.between(4, 5) & y.between(3, 6);
    /// let map = RegionMap::new(&Region::new(&(x.between(0, 9) & y.between(0, 9) & !pillar).into())?)?;
    /// let view = map.visible_windows(&[2.0, 4.5], &[6.0], None, None)?;
    /// // Behind the pillar, and beside it.
    /// assert_eq!(view.select(&[0, 0])?.contains(&[5.0, 0.0, 5.0, 4.0])?, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn visible_windows(
        &self,
        centres: &[f64],
        half_width: &[f64],
        headings: Option<&[f64]>,
        scales: Option<&[f64]>,
    ) -> Result<RegionBatch, BatchError> {
        self.0.check_visible()?;
        let windows = Window::all(2, centres, half_width, headings, scales)?;
        let rows = windows.into_iter().map(|window| BatchRow::Visible(self.0.clone(), window));
        Ok(RegionBatch { variables: self.region().variables().to_vec(), rows: rows.collect() })
    }

    /// Whether each of some segments is inside of the region as a whole, exactly: see
    /// [`Membership::contains_segment`](crate::formula::Membership::contains_segment). Ends come row by row.
    pub fn contains_segments(&self, from: &[f64], to: &[f64]) -> Result<Vec<bool>, BatchError> {
        let n = self.region().dimension().max(1);
        if from.len() != to.len() || !from.len().is_multiple_of(n) {
            let wanted = from.len().div_ceil(n) * n;
            return Err(BatchError::Length { what: "coordinates of second ends", given: to.len(), wanted });
        }
        let decide = |(from, to): (&[f64], &[f64])| self.0.membership.contains_segment(from, to);
        Ok(from.par_chunks(n).with_min_len(SEGMENTS).zip(to.par_chunks(n)).map(decide).collect())
    }

    /// The whole region as the region of each of `count` rows.
    pub fn repeat(&self, count: usize) -> RegionBatch {
        let rows = vec![BatchRow::Whole(self.0.clone()); count];
        RegionBatch { variables: self.region().variables().to_vec(), rows }
    }
}
