//! The forbidden part of a map as convex pieces in a spatial index, and exact predicates on its corners.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};

use super::window::exact;
use crate::double_double::DoubleDouble;
use crate::formula::{Constraint, Formula, Linear};
use crate::number::{self, Rational};
use crate::region::Region;

/// The forbidden part of the box around a map in the plane.
///
/// Pieces are convex, have disjoint interiors and lie inside the box, so that edges meet but never cross each other.
#[derive(Debug)]
pub(super) struct Obstacles {
    pub corners: Vec<ObstacleCorner>,
    /// The corners of each piece, counterclockwise, without straight ones.
    pub pieces: Vec<Vec<u32>>,
    /// The corners of the box, counterclockwise; none for a map without volume.
    pub frame: Vec<u32>,
    /// The ends of the box, rounded inwards.
    inner: [[f64; 2]; 2],
    tree: RTree<GeomWithData<Rectangle<[f64; 2]>, u32>>,
}

/// A corner, exactly and rounded.
#[derive(Clone, Debug)]
pub(crate) struct ObstacleCorner {
    pub exact: [Rational; 2],
    /// The coordinates in double-doubles, with bounds on their errors.
    pub double: [(DoubleDouble, f64); 2],
    pub near: [f64; 2],
    /// Bounds on the errors of the rounded coordinates.
    pub error: [f64; 2],
}

impl ObstacleCorner {
    fn new(exact: [Rational; 2]) -> ObstacleCorner {
        let double = [0, 1].map(|j| DoubleDouble::nearest(&exact[j]));
        let near = double.map(|(x, _)| x.high);
        // A low part that is not zero is the error, to some digits.
        let error = double.map(|(x, error)| 1.01 * x.low.abs() + error);
        ObstacleCorner { exact, double, near, error }
    }

    /// A point with finite float64 coordinates, which are exact.
    pub fn at(point: [f64; 2]) -> ObstacleCorner {
        let double = point.map(|x| (DoubleDouble::new(x), 0.0));
        ObstacleCorner { exact: point.map(exact), double, near: point, error: [0.0; 2] }
    }
}

impl Obstacles {
    /// Cuts what a map forbids inside its box; `None` for an unbounded map.
    pub fn new(map: &Region) -> Option<Obstacles> {
        let ends = map.bounding_box().ok()?;
        let mut corners = Corners::default();
        let (mut frame, mut pieces) = (Vec::new(), Vec::new());
        let mut inner = [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]];
        if let Some(ends) = ends {
            let at = |x: &Rational, y: &Rational| [x.clone(), y.clone()];
            let [(left, right), (low, high)] = [&ends[0], &ends[1]];
            let around = [at(left, low), at(right, low), at(right, high), at(left, high)];
            frame = around.into_iter().map(|corner| corners.number(corner)).collect();
            inner = [0, 1].map(|side| [0, 1].map(|j| inwards(if side == 0 { &ends[j].0 } else { &ends[j].1 }, side)));
            let constraint = map.constraint();
            let sides = constraint
                .reals
                .iter()
                .zip(&ends)
                .map(|(var, (low, high))| Linear::from(var.clone()).between(low.clone(), high.clone()));
            let formula = Formula::all(sides.chain([!constraint.formula.clone()]).collect::<Vec<_>>());
            let forbidden = Region::new(&Constraint { formula, ..constraint.clone() });
            let forbidden =
                forbidden.unwrap_or_else(|error| unreachable!("the map is a region, so this is one: {error}"));
            let polygons = forbidden.polygons().unwrap_or_else(|_| unreachable!("the box of a map is bounded"));
            for polygon in polygons {
                pieces.push(polygon.into_iter().map(|corner| corners.number(corner)).collect());
            }
        }
        let corners = corners.list;
        let rectangle = |(k, piece): (usize, &Vec<u32>)| {
            let end = |axis: usize, sign: f64| {
                let reach = piece.iter().map(|corner| {
                    let corner = &corners[*corner as usize];
                    sign * corner.near[axis] + corner.error[axis]
                });
                let most = reach.fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
                sign * if most.is_nan() { f64::INFINITY } else { most + f64::EPSILON * most.abs() }
            };
            let rectangle = Rectangle::from_corners([end(0, -1.0), end(1, -1.0)], [end(0, 1.0), end(1, 1.0)]);
            GeomWithData::new(rectangle, k as u32)
        };
        let tree = RTree::bulk_load(pieces.iter().enumerate().map(rectangle).collect());
        Some(Obstacles { corners, pieces, frame, inner, tree })
    }

    /// Which pieces may meet a box, in increasing order.
    pub fn near(&self, low: [f64; 2], high: [f64; 2]) -> Vec<u32> {
        let found = self.tree.locate_in_envelope_intersecting(&AABB::from_corners(low, high));
        let mut found: Vec<u32> = found.map(|entry| entry.data).collect();
        found.sort_unstable();
        found
    }

    /// Whether the box around the map certainly contains another one.
    pub fn frame_contains(&self, low: [f64; 2], high: [f64; 2]) -> bool {
        (0..2).all(|j| low[j] >= self.inner[0][j] && high[j] <= self.inner[1][j])
    }
}

/// The float64 next to an end of the box, on its inner side.
fn inwards(end: &Rational, side: usize) -> f64 {
    let near = number::to_f64(end);
    match (number::from_f64(near), side) {
        (Ok(rounded), 0) if rounded < *end => near.next_up(),
        (Ok(rounded), 1) if rounded > *end => near.next_down(),
        _ => near,
    }
}

/// Corners with their numbers.
#[derive(Default)]
struct Corners {
    numbers: BTreeMap<[Rational; 2], u32>,
    list: Vec<ObstacleCorner>,
}

impl Corners {
    fn number(&mut self, corner: [Rational; 2]) -> u32 {
        *self.numbers.entry(corner).or_insert_with_key(|corner| {
            self.list.push(ObstacleCorner::new(corner.clone()));
            self.list.len() as u32 - 1
        })
    }
}

/// Which way the path from `a` through `b` to `c` turns: `Greater` to the left, `Less` to the right, `Equal` straight on.
/// Float64 decides where its error bound leaves no doubt, and fractions else.
pub(super) fn turn(a: &ObstacleCorner, b: &ObstacleCorner, c: &ObstacleCorner) -> Ordering {
    let difference = |to: &ObstacleCorner, j: usize| {
        let value = to.near[j] - a.near[j];
        (value, f64::EPSILON * value.abs() + to.error[j] + a.error[j])
    };
    let ([x1, y1], [x2, y2]) = ([0, 1].map(|j| difference(b, j)), [0, 1].map(|j| difference(c, j)));
    let product = |p: (f64, f64), q: (f64, f64)| {
        let value = p.0 * q.0;
        (value, p.0.abs() * q.1 + p.1 * (q.0.abs() + q.1) + f64::EPSILON * value.abs() + f64::MIN_POSITIVE)
    };
    let (left, right) = (product(x1, y2), product(y1, x2));
    let value = left.0 - right.0;
    let error = 1.01 * (left.1 + right.1 + f64::EPSILON * value.abs());
    if value > error {
        return Ordering::Greater;
    }
    if value < -error {
        return Ordering::Less;
    }
    let d = |to: &ObstacleCorner, j: usize| &to.exact[j] - &a.exact[j];
    (d(b, 0) * d(c, 1)).cmp(&(d(b, 1) * d(c, 0)))
}

/// How a coordinate of one corner compares with that of another one.
pub(super) fn compare(a: &ObstacleCorner, b: &ObstacleCorner, axis: usize) -> Ordering {
    let apart = a.near[axis] - b.near[axis];
    // Two roundings, and what the rounding of the difference adds.
    if apart.abs() > 1.01 * (a.error[axis] + b.error[axis]) + f64::EPSILON * apart.abs() + f64::MIN_POSITIVE {
        return apart.total_cmp(&0.0);
    }
    a.exact[axis].cmp(&b.exact[axis])
}
