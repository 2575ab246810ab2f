//! Simple closed rings.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::error::{Edge, PolygonError};
use super::meeting::{Meeting, Segment, for_each_close_pair, meeting};
use super::points::Points;
use crate::number::Rational;

/// A simple closed ring: its corners in counterclockwise order, the first not repeated at the end.
///
/// ```
/// use pal::formula::Ring;
/// use pal::number::Rational;
/// let corners = [[0, 0], [0, 2], [1, 2], [2, 2], [2, 0], [0, 0]];
/// let square = Ring::new(corners.map(|p| p.map(Rational::from)).to_vec()).unwrap();
/// assert_eq!(square.points().len(), 4);
/// assert_eq!(square.area(), Rational::from(4));
/// assert!(square.is_convex());
/// ```
#[derive(Clone, Debug)]
pub struct Ring {
    points: Vec<[Rational; 2]>,
    /// For each edge of `points`, the position in the given list at which it starts.
    origin: Vec<usize>,
    clockwise: bool,
}

impl Ring {
    /// Checks that the points, joined in order and back to the first, bound a simple polygon.
    ///
    /// Either winding is fine, and so are a repeated last point, repeated consecutive points and points in the
    /// middle of a straight side; these are dropped. A ring that touches itself, even in one point, is refused.
    pub fn new(points: Vec<[Rational; 2]>) -> Result<Ring, PolygonError> {
        let set = Points::new(points.iter().collect());
        let distinct = (0..points.len()).map(|i| set.rank(i)).collect::<BTreeSet<_>>().len();
        if distinct < 3 {
            return Err(PolygonError::TooFewPoints { distinct });
        }
        // The last of several equal neighbours stays: the edge that leaves it is the one with that position.
        let next = |i: usize| (i + 1) % points.len();
        let corners: Vec<usize> = (0..points.len()).filter(|&i| set.rank(i) != set.rank(next(i))).collect();
        if (2..corners.len()).all(|k| set.turn(corners[0], corners[1], corners[k]).is_eq()) {
            return Err(PolygonError::ZeroArea { distinct });
        }
        check_simple(&set, &corners)?;
        // In a simple ring three collinear neighbours are in order along their line: the middle one says nothing.
        let count = corners.len();
        let bends = |k: usize| set.turn(corners[(k + count - 1) % count], corners[k], corners[(k + 1) % count]).is_ne();
        let mut corners: Vec<usize> = (0..count).filter(|&k| bends(k)).map(|k| corners[k]).collect();
        let clockwise = winding(&set, &corners).is_lt();
        let mut origin = corners.clone();
        if clockwise {
            corners.reverse();
            // Edge k now runs between what were corners m-1-k and m-2-k; it was given as the edge leaving the latter.
            origin.reverse();
            origin.rotate_left(1);
        }
        let points = corners.iter().map(|&i| set.point(i).clone()).collect();
        Ok(Ring { points, origin, clockwise })
    }

    /// The corners in counterclockwise order. Consecutive ones differ and no three in a row are collinear.
    pub fn points(&self) -> &[[Rational; 2]] {
        &self.points
    }

    /// The exact area that the ring encloses.
    pub fn area(&self) -> Rational {
        let following = self.points.iter().cycle().skip(1);
        let doubled = self.points.iter().zip(following).map(|(a, b)| &a[0] * &b[1] - &a[1] * &b[0]);
        doubled.fold(Rational::ZERO, |sum, part| sum + part) / Rational::from(2)
    }

    /// The exact area, negative if the points were given in clockwise order.
    pub fn signed_area(&self) -> Rational {
        if self.clockwise { -self.area() } else { self.area() }
    }

    /// Whether the ring bounds a convex set.
    pub fn is_convex(&self) -> bool {
        let set = Points::new(self.points.iter().collect());
        let count = self.points.len();
        (0..count).all(|k| set.turn(k, (k + 1) % count, (k + 2) % count).is_gt())
    }

    /// Edge `k` of the ring, as it stands in the list that was given.
    pub(super) fn edge(&self, k: usize) -> Edge {
        let (from, to) = (&self.points[k], &self.points[(k + 1) % self.points.len()]);
        let (from, to) = if self.clockwise { (to, from) } else { (from, to) };
        Edge { index: self.origin[k], from: from.clone(), to: to.clone() }
    }
}

fn check_simple(set: &Points, corners: &[usize]) -> Result<(), PolygonError> {
    let count = corners.len();
    let edges: Vec<Segment> = (0..count).map(|k| [corners[k], corners[(k + 1) % count]]).collect();
    let conflict = for_each_close_pair(set, &edges, |i, j| {
        let adjacent = j == i + 1 || (i == 0 && j + 1 == count);
        match meeting(set, edges[i], edges[j]) {
            Meeting::Apart => ControlFlow::Continue(()),
            Meeting::Touch(_) if adjacent => ControlFlow::Continue(()),
            _ => ControlFlow::Break((i, j)),
        }
    });
    let ControlFlow::Break((i, j)) = conflict else { return Ok(()) };
    let edge = |[a, b]: Segment| Box::new(Edge { index: a, from: set.point(a).clone(), to: set.point(b).clone() });
    Err(PolygonError::SelfIntersection { first: edge(edges[i]), second: edge(edges[j]) })
}

/// The winding of a ring: `Greater` for counterclockwise, `Less` for clockwise. The lowest of the leftmost corners is
/// convex, so the ring winds as the path turns there.
fn winding(set: &Points, corners: &[usize]) -> Ordering {
    let count = corners.len();
    let leftmost = (0..count).min_by_key(|&k| set.rank(corners[k])).unwrap_or(0);
    set.turn(corners[(leftmost + count - 1) % count], corners[leftmost], corners[(leftmost + 1) % count])
}
