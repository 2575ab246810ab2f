//! The nearest point of a region.
//!
//! A point outside has a nearest point in each closed cell, and the nearest of these is its projection. In one cell it
//! is found by Wolfe's algorithm for the point of smallest norm in the convex hull of the vertices ("Finding the nearest
//! point in a polytope", 1976), in float64. Rounding, and walls that do not belong to the region, may leave that point
//! just outside: it then moves towards the middle of the cell, in steps that double from one rounding error, until exact
//! evaluation says that it is inside.

use rayon::prelude::*;

use super::{Cell, Region, Unbounded};
use crate::formula::{Membership, MembershipError};
use crate::interrupt::checkpoint;

/// Why points cannot be projected on a region.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProjectionError {
    /// The region is unbounded.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// Whether a point is inside cannot be decided.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Whether a point is inside depends on Boolean variables.
    #[error("whether a point is inside depends on Boolean variables; substitute values for them first")]
    Booleans,
    /// The region has no volume.
    #[error("the region has no volume, so that no point in float64 need be inside; give it a small width")]
    NoVolume,
    /// A point with a NaN or an infinity.
    #[error("row {0} of the points is not finite, so that no point of the region is nearest to it")]
    NotFinite(usize),
    /// All cells are thinner than the distance of neighbouring float64 numbers.
    #[error("row {0}: near the region no point with coordinates in float64 is inside; scale the coordinates")]
    TooThin(usize),
}

/// A bounded region made ready for projections of many points.
///
/// ```
/// use pal::{formula::reals, region::{Projection, Region}};
/// let [x, y] = reals(["x", "y"]);
/// let corner = x.between(0, 2) & y.between(0, 2) & !(x.gt(1) & y.gt(1));
/// let projection = Projection::new(&Region::new(&corner.into())?)?;
/// let points = [1.75, 1.5, 3.0, -1.0, 0.5, 0.5];
/// assert_eq!(projection.nearest(&points)?, [1.75, 1.0, 2.0, 0.0, 0.5, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Projection {
    membership: Membership,
    cells: Vec<ProjectionCell>,
}

/// The vertices of a cell in float64, row by row, the box around them, and their mean.
#[derive(Debug)]
struct ProjectionCell {
    vertices: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    middle: Vec<f64>,
}

impl Projection {
    /// Cuts a region into cells for projections.
    pub fn new(region: &Region) -> Result<Projection, ProjectionError> {
        if region.boolean_count() > 0 {
            return Err(ProjectionError::Booleans);
        }
        let membership = region.membership()?;
        let cells: Vec<_> = region.decompose()?.iter().map(ProjectionCell::new).collect();
        if cells.is_empty() || region.dimension() == 0 {
            return Err(ProjectionError::NoVolume);
        }
        Ok(Projection { membership, cells })
    }

    /// Returns for each point, given row by row, the nearest point of the region; points inside stay where they are.
    ///
    /// Every point that is returned is inside, exactly. It is the nearest one up to rounding: its distance is at most
    /// about 1e-12 of the size of the region larger than the smallest one, more only in cells that are very thin.
    pub fn nearest(&self, points: &[f64]) -> Result<Vec<f64>, ProjectionError> {
        let n = self.membership.dimension();
        let inside = self.membership.contains_batch(points);
        let project = |(row, point): (usize, &[f64])| {
            if inside[row] {
                return Ok(point.to_vec());
            }
            checkpoint();
            if !point.iter().all(|x| x.is_finite()) {
                return Err(ProjectionError::NotFinite(row));
            }
            self.project(point).ok_or(ProjectionError::TooThin(row))
        };
        let rows: Vec<_> = points.par_chunks_exact(n).enumerate().map(project).collect();
        // The first row that fails is named, whatever the order in which threads get there.
        Ok(rows.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The projection of one point outside; `None` if no cell near it has a point in float64.
    fn project(&self, point: &[f64]) -> Option<Vec<f64>> {
        let mut order: Vec<(f64, usize)> =
            self.cells.iter().enumerate().map(|(index, cell)| (cell.distance_of_box(point), index)).collect();
        let first = order.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let (reach, _) = self.cells[first.1].nearest(point);
        // Cells whose box is farther than a point that is known need no further look. One rounding error of doubt is
        // left, and all cells are tried where the near ones are too thin.
        let near = |bound: f64| bound <= reach * (1.0 + 1e-12);
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let split = order.partition_point(|(bound, _)| near(*bound));
        for part in [&order[..split], &order[split..]] {
            let mut found: Vec<(f64, Vec<f64>, usize)> = Vec::with_capacity(part.len());
            for (_, index) in part {
                let (distance, nearest) = self.cells[*index].nearest(point);
                found.push((distance, nearest, *index));
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
            let hit = found.iter().find_map(|(_, nearest, index)| self.pulled_inside(nearest, &self.cells[*index]));
            if hit.is_some() {
                return hit;
            }
        }
        None
    }

    /// A point at the wall of a cell, moved towards the middle of the cell until it is inside.
    ///
    /// A hyperplane that does not belong to the region, as of `x != 1/2`, may hold the point and the middle. Then places
    /// between the middle and a vertex serve instead, of which not all are on it.
    fn pulled_inside(&self, nearest: &[f64], cell: &ProjectionCell) -> Option<Vec<f64>> {
        let steps = || [0.0].into_iter().chain((0..=53).map(|k| 2f64.powi(k - 53)));
        let toward = |target: &[f64], t: f64| -> Vec<f64> {
            nearest.iter().zip(target).map(|(y, target)| y + t * (target - y)).collect()
        };
        let between = cell.vertices.chunks_exact(nearest.len()).map(|vertex| {
            vertex.iter().zip(&cell.middle).map(|(vertex, middle)| 0.75 * middle + 0.25 * vertex).collect()
        });
        let mut targets = [cell.middle.clone()].into_iter().chain(between);
        targets.find_map(|target| {
            steps().map(|t| toward(&target, t)).find(|candidate| self.membership.contains(candidate))
        })
    }
}

impl ProjectionCell {
    fn new(cell: &Cell) -> ProjectionCell {
        let polytope = cell.polytope();
        let n = polytope.dimension();
        let vertices: Vec<f64> = polytope.vertices().iter().flat_map(|v| v.coordinates().to_vec()).collect();
        let (low, high) = (0..n).map(|axis| polytope.extent(axis)).unzip();
        let count = polytope.vertices().len() as f64;
        let middle = (0..n).map(|j| vertices.iter().skip(j).step_by(n).map(|x| x / count).sum()).collect();
        ProjectionCell { vertices, low, high, middle }
    }

    /// The distance of a point from the box around the cell.
    fn distance_of_box(&self, point: &[f64]) -> f64 {
        let ends = self.low.iter().zip(&self.high);
        norm(&point.iter().zip(ends).map(|(x, (low, high))| (low - x).max(x - high).max(0.0)).collect::<Vec<_>>())
    }

    /// The distance of a point from the cell, and the point of the cell that has it.
    fn nearest(&self, point: &[f64]) -> (f64, Vec<f64>) {
        let n = point.len();
        let around: Vec<Vec<f64>> =
            self.vertices.chunks_exact(n).map(|v| v.iter().zip(point).map(|(v, x)| v - x).collect()).collect();
        let (weights, shortest) = smallest_norm(&around);
        // Sums of vertices keep coordinates that all of them share exactly, such as those of a wall along an axis.
        let place = |j: usize| {
            let terms = weights.iter().map(|(vertex, weight)| weight * self.vertices[vertex * n + j]);
            let sum: f64 = terms.sum();
            sum.clamp(self.low[j], self.high[j])
        };
        (norm(&shortest), (0..n).map(place).collect())
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    // Scaled, so that squares neither overflow nor vanish.
    let largest = a.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * a.iter().map(|x| (x / largest) * (x / largest)).sum::<f64>().sqrt()
}

/// The point of smallest norm in the convex hull of points: the points with their weights, and the point.
fn smallest_norm(points: &[Vec<f64>]) -> (Vec<(usize, f64)>, Vec<f64>) {
    let largest = points.iter().map(|p| norm(p)).fold(0.0, f64::max);
    if largest == 0.0 {
        return (vec![(0, 1.0)], points[0].clone());
    }
    let scaled: Vec<Vec<f64>> = points.iter().map(|p| p.iter().map(|x| x / largest).collect()).collect();
    let first = (0..points.len()).min_by(|a, b| norm(&scaled[*a]).total_cmp(&norm(&scaled[*b]))).unwrap_or(0);
    let mut active = vec![(first, 1.0)];
    let mut at = scaled[first].clone();
    // Every step makes the norm smaller, so that no set of points comes twice; rounding ends it earlier.
    for _ in 0..64 * (points.len() + 1) {
        let square = dot(&at, &at);
        let next = (0..points.len()).min_by(|a, b| dot(&at, &scaled[*a]).total_cmp(&dot(&at, &scaled[*b])));
        let Some(next) = next.filter(|next| dot(&at, &scaled[*next]) < square - 8.0 * f64::EPSILON * square.sqrt())
        else {
            break;
        };
        if active.iter().any(|(index, _)| *index == next) {
            break;
        }
        let before = (active.clone(), at.clone());
        active.push((next, 0.0));
        shrink(&mut active, &scaled);
        at = combination(&active, &scaled);
        if norm(&at) >= norm(&before.1) {
            (active, at) = before;
            break;
        }
    }
    at.iter_mut().for_each(|x| *x *= largest);
    (active, at)
}

/// Moves the weights to the point of smallest norm in the hull of a subset of the active points, which stays.
fn shrink(active: &mut Vec<(usize, f64)>, points: &[Vec<f64>]) {
    while active.len() > 1 {
        let best = affine_weights(active, points);
        if best.iter().all(|weight| *weight > 1e-14) {
            active.iter_mut().zip(best).for_each(|((_, weight), best)| *weight = best);
            return;
        }
        // As far towards the best point of the affine hull as weights stay non-negative.
        let step = active
            .iter()
            .zip(&best)
            .filter(|(_, best)| **best <= 1e-14)
            .map(|((_, weight), best)| if weight > best { weight / (weight - best) } else { 0.0 })
            .fold(1.0, f64::min);
        let mut smallest = (f64::INFINITY, 0);
        for (index, ((_, weight), best)) in active.iter_mut().zip(&best).enumerate() {
            *weight += step * (best - *weight);
            if *best <= 1e-14 && *weight < smallest.0 {
                smallest = (*weight, index);
            }
        }
        active.remove(smallest.1);
    }
    if let [(_, weight)] = active.as_mut_slice() {
        *weight = 1.0;
    }
}

fn combination(active: &[(usize, f64)], points: &[Vec<f64>]) -> Vec<f64> {
    let mut sum = vec![0.0; points[0].len()];
    for (index, weight) in active {
        sum.iter_mut().zip(&points[*index]).for_each(|(sum, x)| *sum += weight * x);
    }
    sum
}

/// The weights, which add up to 1, of the point of smallest norm in the affine hull of the active points: least squares
/// by Gram-Schmidt orthogonalisation of the differences from the first one, done twice for its accuracy.
fn affine_weights(active: &[(usize, f64)], points: &[Vec<f64>]) -> Vec<f64> {
    let origin = &points[active[0].0];
    let m = active.len() - 1;
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(m);
    let mut triangle = vec![vec![0.0; m]; m];
    for (column, (index, _)) in active[1..].iter().enumerate() {
        let mut vector: Vec<f64> = points[*index].iter().zip(origin).map(|(x, o)| x - o).collect();
        for _ in 0..2 {
            for (row, direction) in basis.iter().enumerate() {
                let along = dot(direction, &vector);
                triangle[row][column] += along;
                vector.iter_mut().zip(direction).for_each(|(x, d)| *x -= along * d);
            }
        }
        let length = norm(&vector);
        triangle[column][column] = length;
        vector.iter_mut().for_each(|x| *x /= if length > 0.0 { length } else { 1.0 });
        basis.push(vector);
    }
    let mut weights = vec![0.0; m + 1];
    for row in (0..m).rev() {
        let rest: f64 = (row + 1..m).map(|column| triangle[row][column] * weights[column + 1]).sum();
        let pivot = triangle[row][row];
        weights[row + 1] = if pivot > 0.0 { (-dot(&basis[row], origin) - rest) / pivot } else { 0.0 };
    }
    weights[0] = 1.0 - weights[1..].iter().sum::<f64>();
    weights
}
