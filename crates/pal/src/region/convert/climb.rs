//! Vertices far along a direction, proposed in float64 and computed exactly.
//!
//! The simplex method on half-spaces in float64 names rows that meet in a vertex. Nothing rests on its arithmetic: the
//! point where the rows meet is computed exactly and checked against all rows. What fails the check is no proposal.

use crate::linear_algebra::{common_divisor, first_dependency};
use crate::number::{Integer, bit_length, scaled_to_f64};
use crate::random::Stream;

use super::scalar::ExactScalar;

/// Half-spaces `b + a . x >= 0`, exactly and in float64 with normals of length one.
pub(super) struct Climber<'r> {
    rows: &'r [Vec<Integer>],
    /// Offset and normal of each row. Offsets are increased by tiny random amounts: no vertex then lies on more rows
    /// than necessary, and the method cannot cycle.
    planes: Vec<(f64, Vec<f64>)>,
    interior: Vec<f64>,
}

/// Fractions below this are taken for rounding errors.
const NOTHING: f64 = 1e-9;
/// The size of the random amounts.
const PERTURBATION: f64 = 1e-7;
/// How much farther out than any row's distance from the origin the search for an interior point may go.
const FAR: f64 = 1e4;

impl<'r> Climber<'r> {
    /// `None` if no interior point was found.
    pub fn new(rows: &'r [Vec<Integer>]) -> Option<Self> {
        let dimension = rows.first()?.len() - 1;
        let mut stream = Stream::new(0, 0);
        let mut planes = Vec::with_capacity(rows.len());
        for row in rows {
            let largest = row[1..].iter().map(bit_length).max()?;
            let shift = largest.saturating_sub(60);
            let entries: Vec<f64> = row.iter().map(|a| scaled_to_f64(a, shift)).collect();
            let length = entries[1..].iter().map(|a| a * a).sum::<f64>().sqrt();
            if !(length > 0.0 && entries.iter().all(|a| a.is_finite())) {
                return None;
            }
            planes.push((entries[0] / length, entries[1..].iter().map(|a| a / length).collect::<Vec<f64>>()));
        }
        let size = planes.iter().map(|(b, _)| b.abs()).fold(0.0, f64::max).max(1e-300);
        for (b, _) in &mut planes {
            *b += PERTURBATION * size * (1.0 + stream.unit());
        }
        let interior = interior_point(&planes, dimension, FAR * size, size)?;
        Some(Climber { rows, planes, interior })
    }

    /// A vertex that is farthest along the direction, in homogeneous coordinates without a common divisor, the first of
    /// them positive.
    pub fn vertex(&self, direction: &[f64]) -> Option<Vec<Integer>> {
        let basis = shoot(&self.planes, &self.interior, direction)?;
        let basis = climb(&self.planes, basis, direction)?;
        let system = basis.iter().map(|k| {
            let row = &self.rows[*k];
            row[1..].iter().cloned().chain([-&row[0]]).collect()
        });
        let solution = first_dependency(system.collect(), direction.len() + 1)?;
        if solution.numerators.len() != direction.len() {
            return None;
        }
        let mut point: Vec<Integer> = [solution.denominator].into_iter().chain(solution.numerators).collect();
        let divisor = Integer::from(common_divisor(&point));
        point.iter_mut().for_each(|x| *x = &*x / &divisor);
        let feasible = |row: &Vec<Integer>| Integer::dot(row, &point).is_ok_and(|value| value >= Integer::ZERO);
        self.rows.iter().all(feasible).then_some(point)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The first plane met from a point along a direction, and how far away it is.
fn first_met(planes: &[(f64, Vec<f64>)], at: &[f64], direction: &[f64], without: &[usize]) -> Option<(usize, f64)> {
    let length = dot(direction, direction).sqrt();
    let mut first: Option<(usize, f64)> = None;
    for (k, (b, a)) in planes.iter().enumerate() {
        let speed = dot(a, direction);
        if speed < -NOTHING * length && !without.contains(&k) {
            let step = (b + dot(a, at)).max(0.0) / -speed;
            if first.is_none_or(|(_, best)| step < best) {
                first = Some((k, step));
            }
        }
    }
    first
}

/// From an interior point to a vertex: along the direction to a plane, in it to the next one, and so on.
fn shoot(planes: &[(f64, Vec<f64>)], interior: &[f64], direction: &[f64]) -> Option<Vec<usize>> {
    let n = interior.len();
    let mut at = interior.to_vec();
    let (mut basis, mut orthonormal): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    while basis.len() < n {
        let project = |v: &[f64]| {
            let mut v = v.to_vec();
            for _ in 0..2 {
                for q in &orthonormal {
                    let along = dot(q, &v);
                    v.iter_mut().zip(q).for_each(|(x, y)| *x -= along * y);
                }
            }
            let left = dot(&v, &v).sqrt();
            (v, left)
        };
        let unit = |j: usize| (0..n).map(|i| if i == j { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
        let size = dot(direction, direction).sqrt();
        let mut candidates = [(project(direction), size)].into_iter().chain((0..n).map(|j| (project(&unit(j)), 1.0)));
        let ((towards, _), _) = candidates.find(|((_, left), whole)| *left > 1e-3 * whole)?;
        let (plane, step) = first_met(planes, &at, &towards, &basis)?;
        at.iter_mut().zip(&towards).for_each(|(x, d)| *x += step * d);
        let (mut normal, left) = project(&planes[plane].1);
        if left < NOTHING {
            return None;
        }
        normal.iter_mut().for_each(|x| *x /= left);
        basis.push(plane);
        orthonormal.push(normal);
    }
    Some(basis)
}

/// From the vertex of a basis along edges to one that is farthest along the direction.
fn climb(planes: &[(f64, Vec<f64>)], mut basis: Vec<usize>, direction: &[f64]) -> Option<Vec<usize>> {
    let n = basis.len();
    let size = dot(direction, direction).sqrt();
    for _ in 0..50 * (n + planes.len()) {
        let (edges, at) = corner(planes, &basis)?;
        let gain = |d: &Vec<f64>| dot(direction, d) / (size * dot(d, d).sqrt());
        let (leaving, best) = edges.iter().map(gain).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if best <= NOTHING {
            return Some(basis);
        }
        basis[leaving] = first_met(planes, &at, &edges[leaving], &basis)?.0;
    }
    None
}

/// The edges at the vertex of a basis (edge k leaves plane k and stays on the others), and the vertex.
fn corner(planes: &[(f64, Vec<f64>)], basis: &[usize]) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
    let n = basis.len();
    // The inverse of the normals by elimination with row pivoting.
    let mut rows: Vec<Vec<f64>> = basis.iter().map(|k| planes[*k].1.clone()).collect();
    for (i, row) in rows.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { 1.0 } else { 0.0 }));
    }
    for k in 0..n {
        let best = (k..n).max_by(|a, b| rows[*a][k].abs().total_cmp(&rows[*b][k].abs()))?;
        rows.swap(k, best);
        let pivot = rows[k][k];
        if pivot.abs() < 1e-13 {
            return None;
        }
        rows[k].iter_mut().for_each(|x| *x /= pivot);
        let pivot_row = rows[k].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[k];
            if i != k && factor != 0.0 {
                row.iter_mut().zip(&pivot_row).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    let edges: Vec<Vec<f64>> = (0..n).map(|k| (0..n).map(|i| rows[i][n + k]).collect()).collect();
    let at = (0..n).map(|i| -basis.iter().enumerate().map(|(k, plane)| rows[i][n + k] * planes[*plane].0).sum::<f64>());
    let at = at.collect();
    Some((edges, at))
}

/// A point that is inside all planes, as deep as can be: the lowest `t` with `b + a . x + t >= 0`, from a corner of a
/// large box.
fn interior_point(planes: &[(f64, Vec<f64>)], n: usize, far: f64, size: f64) -> Option<Vec<f64>> {
    let lift = |(b, a): &(f64, Vec<f64>)| (*b, a.iter().copied().chain([1.0]).collect::<Vec<f64>>());
    let mut lifted: Vec<(f64, Vec<f64>)> = planes.iter().map(lift).collect();
    let worst = |(b, a): &(f64, Vec<f64>)| b - far * a.iter().sum::<f64>();
    let (lowest, _) = planes.iter().map(worst).enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let axis = |j: usize, sign: f64| (0..=n).map(|i| if i == j { sign } else { 0.0 }).collect::<Vec<f64>>();
    let first = lifted.len();
    lifted.extend((0..n).map(|j| (far, axis(j, 1.0))));
    lifted.extend((0..n).map(|j| (far, axis(j, -1.0))));
    lifted.push((2.0 * far, axis(n, 1.0)));
    let basis = (first..first + n).chain([lowest]).collect();
    let basis = climb(&lifted, basis, &axis(n, -1.0))?;
    let (_, at) = corner(&lifted, &basis)?;
    // Deeper than the random amounts.
    (at[n] < -4.0 * PERTURBATION * size).then(|| at[..n].to_vec())
}
