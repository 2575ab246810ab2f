//! One convex polytope from its half-spaces.
//!
//! A conjunction of half-spaces need not be cut out of a box, which has `2^n` vertices before the first cut. Two ways
//! lead from half-spaces to vertices, both exact:
//!
//! - vertices first, for polytopes with few vertices: the hull of the vertices known so far is kept as a cone of facets. A
//!   facet of it that is none of the half-spaces has a vertex beyond it, which is found by climbing. The work is that of
//!   the hulls, however many half-spaces meet in a vertex;
//! - half-spaces first: the cone over the polytope is cut by one half-space after the other, from a simplex on.
//!
//! The first way has a budget of facets: it is given up where the polytope turns out to have many vertices.

mod climb;
mod cone;
mod scalar;

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use self::climb::Climber;
use self::cone::{Cone, ConeError, simplicial_cone};
pub(super) use self::scalar::{ExactScalar, Overflow};
use super::bits::Bits;
use super::index::PlaneIndex;
use super::polytope::{Facet, Polytope, Side};
use super::space::{ExactPoint, Space, Vertex};
use crate::interrupt::checkpoint;
use crate::linear_algebra::{common_divisor, rank};
use crate::number::{Integer, bit_length, scaled_to_f64};
use crate::random::Stream;

/// What half-spaces have in common.
pub(crate) enum Intersection {
    /// A bounded polytope with volume.
    Polytope(Box<Polytope>),
    /// Nothing, or a set without volume.
    Nothing,
    /// A set that reaches to infinity.
    Unbounded,
}

/// Vertices in homogeneous coordinates, the first of which is positive, and for each the rows that are zero on it.
struct VertexList {
    points: Vec<Vec<Integer>>,
    zeros: Vec<Bits>,
}

enum Found {
    VertexList(VertexList),
    Nothing,
    Unbounded,
}

/// The intersection of half-spaces of a space, each given once.
pub(crate) fn intersection(space: &Arc<Space>, sides: &[Facet]) -> Intersection {
    let row = |facet: &Facet| {
        let plane = space.plane(facet.plane);
        let upwards = facet.side == Side::Above;
        let turn = |a: &Integer, keep: bool| if keep { a.clone() } else { -a };
        let normal = plane.normal.iter().map(|a| turn(a, upwards));
        [turn(&plane.offset, !upwards)].into_iter().chain(normal).collect()
    };
    let mut rows: Vec<Vec<Integer>> = sides.iter().map(row).collect();
    // Hyperplanes are in lowest terms already, except for those of boxes.
    for row in &mut rows {
        let divisor = Integer::from(common_divisor(&*row));
        row.iter_mut().for_each(|a| *a = &*a / &divisor);
    }
    let found = vertices_first(&rows).map_or_else(|| half_spaces_first(&rows), Found::VertexList);
    match found {
        Found::Nothing => Intersection::Nothing,
        Found::Unbounded => Intersection::Unbounded,
        Found::VertexList(corners) => Intersection::Polytope(Box::new(assemble(space, sides, corners))),
    }
}

/// The polytope with exactly its facets: rows whose sets of vertices are not contained in those of others.
fn assemble(space: &Arc<Space>, sides: &[Facet], corners: VertexList) -> Polytope {
    let mut on: Vec<(Bits, usize)> = (0..sides.len()).map(|k| (Bits::default(), k)).collect();
    for (v, zeros) in corners.zeros.iter().enumerate() {
        zeros.iter().for_each(|k| on[k].0.insert(v));
    }
    let n = space.dimension;
    on.retain(|(vertices, _)| vertices.len() >= n);
    let is_facet = |(vertices, k): &(Bits, usize)| {
        !on.iter().any(|(others, j)| j != k && others.len() > vertices.len() && vertices.is_subset(others))
    };
    let facets: Vec<usize> = on.iter().filter(|row| is_facet(row)).map(|(_, k)| *k).collect();
    let mut number = vec![None; sides.len()];
    facets.iter().enumerate().for_each(|(new, old)| number[*old] = Some(new));
    let incidence: Vec<Bits> =
        corners.zeros.iter().map(|zeros| zeros.iter().filter_map(|k| number[k]).collect()).collect();
    let vertices = corners.points.into_iter().zip(&incidence).map(|(mut point, on)| {
        let numerators = point.split_off(1);
        let denominator = point.pop().expect("the first coordinate is the denominator");
        let planes: SmallVec<[PlaneIndex; 6]> = on.iter().map(|facet| sides[facets[facet]].plane).collect();
        Arc::new(Vertex::from_exact(ExactPoint { numerators, denominator }, planes))
    });
    let vertices = vertices.collect();
    let facets = facets.iter().map(|k| sides[*k]).collect();
    Polytope { space: space.clone(), facets, vertices, incidence, flat: n }
}

/// Cuts the cone over the polytope by one row after the other, in machine words if they suffice.
fn half_spaces_first(rows: &[Vec<Integer>]) -> Found {
    let n = rows.first().map_or(0, |row| row.len() - 1);
    // The last row keeps the cone on the side of finite points.
    let infinity = [Integer::ONE].into_iter().chain((0..n).map(|_| Integer::ZERO)).collect();
    let mut all: Vec<Vec<Integer>> = rows.to_vec();
    all.push(infinity);
    // Without as many independent rows as coordinates there is a line in the cone.
    let Some((first, rays)) = simplicial_cone(&all) else { return Found::Unbounded };
    let cut = |result: Result<Found, ConeError>| match result {
        Ok(found) => Some(found),
        Err(ConeError::Flat) => Some(Found::Nothing),
        Err(ConeError::Overflow | ConeError::TooMany) => None,
    };
    cut(cut_cone::<i64>(&all, &first, &rays))
        .or_else(|| cut(cut_cone::<Integer>(&all, &first, &rays)))
        .expect("integers of any size do not overflow, and the number of rays has no limit")
}

fn cut_cone<S: ExactScalar>(all: &[Vec<Integer>], first: &[usize], rays: &[Vec<Integer>]) -> Result<Found, ConeError> {
    let start: Vec<Vec<Integer>> = first.iter().map(|k| all[*k].clone()).collect();
    let mut cone: Cone<S> = Cone::new(&start, rays)?;
    let mut order = first.to_vec();
    let mut left: Vec<usize> = (0..all.len()).filter(|k| !first.contains(k)).collect();
    let converted: Vec<Vec<S>> =
        all.iter().map(|row| row.iter().map(S::from_integer).collect()).collect::<Result<_, _>>()?;
    left.sort_by(|a, b| all[*a].cmp(&all[*b]));
    for k in left {
        cone.insert(converted[k].clone(), usize::MAX)?;
        order.push(k);
    }
    let points: Vec<Vec<Integer>> = cone.rays.iter().map(|ray| ray.iter().map(S::to_integer).collect()).collect();
    if points.iter().any(|point| point[0] <= Integer::ZERO) {
        return Ok(Found::Unbounded);
    }
    let infinity = all.len() - 1;
    let zeros = cone.zeros.iter().map(|zeros| zeros.iter().map(|k| order[k]).filter(|k| *k != infinity).collect());
    Ok(Found::VertexList(VertexList { zeros: zeros.collect(), points }))
}

/// Hulls of vertices may have this many facets for each half-space, and some more, before they are given up.
const FACETS_PER_ROW: usize = 3;
const MORE_FACETS: usize = 64;

/// The vertices, if there are few of them. Gives up where floating-point numbers do not find the way.
fn vertices_first(rows: &[Vec<Integer>]) -> Option<VertexList> {
    let n = rows.first()?.len() - 1;
    // A polytope with few facets has no fewer vertices.
    if n < 4 || rows.len() <= 2 * n {
        return None;
    }
    let most = FACETS_PER_ROW * rows.len() + MORE_FACETS;
    let climber = Climber::new(rows)?;
    let start = spanning_vertices(&climber, n)?;
    let (_, facets) = simplicial_cone(&start)?;
    let mut hull: Cone<Integer> = Cone::new(&start, &facets).ok()?;
    let mut points = start;
    let known: HashMap<&Vec<Integer>, usize> = rows.iter().enumerate().map(|(k, row)| (row, k)).collect();
    while let Some(open) = hull.rays.iter().find(|facet| !known.contains_key(facet)) {
        checkpoint();
        let outward: Vec<f64> = direction(open).iter().map(|a| -a).collect();
        let point = climber.vertex(&outward)?;
        // Beyond the facet, or the climb has failed.
        if Integer::dot(open, &point).ok()? >= Integer::ZERO || points.len() > most {
            return None;
        }
        hull.insert(point.clone(), most).ok()?;
        points.push(point);
    }
    let mut zeros = vec![Bits::default(); points.len()];
    for (facet, on) in hull.rays.iter().zip(&hull.zeros) {
        on.iter().for_each(|v| zeros[v].insert(known[facet]));
    }
    // Later vertices may have made earlier ones superfluous only if those were no vertices.
    Some(VertexList { points, zeros })
}

/// The normal of a row, to float64 and up to a factor.
fn direction(row: &[Integer]) -> Vec<f64> {
    let shift = row[1..].iter().map(bit_length).max().unwrap_or(0).saturating_sub(60);
    row[1..].iter().map(|a| scaled_to_f64(a, shift)).collect()
}

/// Vertices that span the space: each lies off the span of those before it.
fn spanning_vertices(climber: &Climber, n: usize) -> Option<Vec<Vec<Integer>>> {
    let mut stream = Stream::new(1, 0);
    let mut points: Vec<Vec<Integer>> = Vec::new();
    let mut across: Vec<Vec<f64>> = Vec::new();
    let mut origin = Vec::new();
    while points.len() <= n {
        let mut towards: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        for q in &across {
            let along: f64 = q.iter().zip(&towards).map(|(a, b)| a * b).sum();
            towards.iter_mut().zip(q).for_each(|(x, a)| *x -= along * a);
        }
        let backwards: Vec<f64> = towards.iter().map(|x| -x).collect();
        let off = |point: &Vec<Integer>| {
            let all: Vec<Vec<Integer>> = points.iter().cloned().chain([point.clone()]).collect();
            rank(all) == points.len() + 1
        };
        let point = climber.vertex(&towards).filter(off).or_else(|| climber.vertex(&backwards).filter(off))?;
        let place: Vec<f64> = {
            let shift = point.iter().map(bit_length).max()?.saturating_sub(60);
            let scaled: Vec<f64> = point.iter().map(|x| scaled_to_f64(x, shift)).collect();
            scaled[1..].iter().map(|x| x / scaled[0]).collect()
        };
        if points.is_empty() {
            origin = place;
        } else {
            let mut edge: Vec<f64> = place.iter().zip(&origin).map(|(a, b)| a - b).collect();
            for _ in 0..2 {
                for q in &across {
                    let along: f64 = q.iter().zip(&edge).map(|(a, b)| a * b).sum();
                    edge.iter_mut().zip(q).for_each(|(x, a)| *x -= along * a);
                }
            }
            let length = edge.iter().map(|x| x * x).sum::<f64>().sqrt();
            edge.iter_mut().for_each(|x| *x /= length);
            across.push(edge);
        }
        points.push(point);
    }
    Some(points)
}
