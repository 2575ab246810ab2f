//! Checks that holes lie inside their outer ring and apart from each other.
//!
//! Two rings that neither cross nor run along each other have only single points in common, and these cut their
//! boundaries into pieces that stay on one side. One point of each piece that starts or ends in a common point decides.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::error::PolygonError;
use super::meeting::{Meeting, Segment, for_each_close_pair, meeting};
use super::points::{Points, turn};
use super::ring::Ring;
use crate::number::Rational;

/// For every pair of a ring (0 is the outer one) and another ring that it touches: the touched edges, each with the
/// points on it.
type Contacts = BTreeMap<[usize; 2], BTreeMap<usize, Vec<usize>>>;

pub(super) fn check(outer: &Ring, holes: &[Ring]) -> Result<(), PolygonError> {
    if holes.is_empty() {
        return Ok(());
    }
    let rings: Vec<&Ring> = std::iter::once(outer).chain(holes).collect();
    let points = Points::new(rings.iter().flat_map(|ring| ring.points()).collect());
    let mut edges: Vec<Segment> = Vec::new();
    // For each edge: its ring and its number in that ring.
    let mut owner: Vec<[usize; 2]> = Vec::new();
    for (number, ring) in rings.iter().enumerate() {
        let (start, count) = (edges.len(), ring.points().len());
        edges.extend((0..count).map(|k| [start + k, start + (k + 1) % count]));
        owner.extend((0..count).map(|k| [number, k]));
    }
    let mut contacts = Contacts::new();
    let conflict = for_each_close_pair(&points, &edges, |i, j| {
        let [first, second] = [owner[i][0], owner[j][0]];
        if first == second {
            return ControlFlow::Continue(());
        }
        match meeting(&points, edges[i], edges[j]) {
            Meeting::Apart => {}
            Meeting::Touch(point) => {
                contacts.entry([first, second]).or_default().entry(i).or_default().push(point);
                contacts.entry([second, first]).or_default().entry(j).or_default().push(point);
            }
            Meeting::Cross => return ControlFlow::Break((i, j, "crosses")),
            Meeting::Overlap => return ControlFlow::Break((i, j, "runs along")),
        }
        ControlFlow::Continue(())
    });
    if let ControlFlow::Break((i, j, how)) = conflict {
        return Err(conflict_error(&rings, owner[i], owner[j], how));
    }
    let starts: Vec<usize> =
        rings.iter().scan(0, |start, ring| Some(std::mem::replace(start, *start + ring.points().len()))).collect();
    let boxes: Vec<[[u32; 2]; 2]> =
        rings.iter().zip(&starts).map(|(ring, &start)| extent(&points, start, ring.points().len())).collect();
    let witness = |ring: usize, other: usize, wanted: bool| -> Option<Box<[Rational; 2]>> {
        let untouched = BTreeMap::from([(starts[ring], Vec::new())]);
        let touched = contacts.get(&[ring, other]).unwrap_or(&untouched);
        let pieces = touched.iter().flat_map(|(&edge, on_edge)| midpoints(&points, edges[edge], on_edge));
        pieces.into_iter().find(|p| encloses(rings[other].points(), p) != wanted).map(Box::new)
    };
    for ring in 1..rings.len() {
        if let Some(at) = witness(ring, 0, true) {
            return Err(PolygonError::HoleOutside { hole: ring - 1, at });
        }
        for other in (1..rings.len()).filter(|&other| other != ring && boxes_meet(&boxes[ring], &boxes[other])) {
            if let Some(at) = witness(ring, other, false) {
                return Err(PolygonError::HolesOverlap { hole: ring - 1, other: other - 1, at });
            }
        }
    }
    Ok(())
}

/// The error for two edges, given by ring and number, that cross or run along each other. Rings are numbered from the
/// outer one and edges in the order of rings, so `first` belongs to the outer ring if either of the two does.
fn conflict_error(rings: &[&Ring], first: [usize; 2], second: [usize; 2], how: &'static str) -> PolygonError {
    let edge = |[ring, k]: [usize; 2]| Box::new(rings[ring].edge(k));
    match first[0] {
        0 => PolygonError::HoleMeetsOuter { hole: second[0] - 1, edge: edge(second), outer: edge(first), how },
        ring => PolygonError::HolesMeet {
            hole: ring - 1,
            edge: edge(first),
            other: second[0] - 1,
            other_edge: edge(second),
            how,
        },
    }
}

fn extent(points: &Points, start: usize, count: usize) -> [[u32; 2]; 2] {
    (start..start + count).map(|i| points.rank(i)).fold([[u32::MAX; 2], [0; 2]], |[low, high], rank| {
        [[low[0].min(rank[0]), low[1].min(rank[1])], [high[0].max(rank[0]), high[1].max(rank[1])]]
    })
}

fn boxes_meet(a: &[[u32; 2]; 2], b: &[[u32; 2]; 2]) -> bool {
    (0..2).all(|axis| a[0][axis] <= b[1][axis] && b[0][axis] <= a[1][axis])
}

/// The middle of each piece into which points on an edge cut it.
fn midpoints(points: &Points, [a, b]: Segment, on_edge: &[usize]) -> Vec<[Rational; 2]> {
    let mut cuts: Vec<usize> = [a, b].iter().chain(on_edge).copied().collect();
    cuts.sort_by_key(|&i| points.rank(i));
    cuts.dedup_by_key(|i| points.rank(*i));
    let middle = |p: &[Rational; 2], q: &[Rational; 2]| [0, 1].map(|axis| (&p[axis] + &q[axis]) / Rational::from(2));
    cuts.windows(2).map(|pair| middle(points.point(pair[0]), points.point(pair[1]))).collect()
}

/// Whether a point that is not on the ring lies inside: a ray to the right leaves through an odd number of edges.
fn encloses(ring: &[[Rational; 2]], point: &[Rational; 2]) -> bool {
    let mut inside = false;
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let upward = a[1] <= point[1];
        if upward != (b[1] <= point[1]) && turn(a, b, point).is_gt() == upward {
            inside = !inside;
        }
    }
    inside
}
