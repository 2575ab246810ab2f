//! Where edges meet: the exact test of two segments, and a sweep that finds the pairs worth testing.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::points::Points;

/// An edge, as two positions in a set of points.
pub(super) type Segment = [usize; 2];

/// What two closed segments have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meeting {
    Apart,
    /// One point, which is an end of at least one of the segments.
    Touch(usize),
    /// One point, which is an inner point of both segments.
    Cross,
    /// A segment of positive length.
    Overlap,
}

pub(super) fn meeting(points: &Points, [a, b]: Segment, [c, d]: Segment) -> Meeting {
    let sides = [points.turn(a, b, c), points.turn(a, b, d), points.turn(c, d, a), points.turn(c, d, b)];
    if sides == [Ordering::Equal; 4] {
        return collinear_meeting(points, [a, b], [c, d]);
    }
    if sides[0] == sides[1].reverse() && sides[2] == sides[3].reverse() && !sides.contains(&Ordering::Equal) {
        return Meeting::Cross;
    }
    let ends = [(a, b, c), (a, b, d), (c, d, a), (c, d, b)];
    let mut touching = ends.iter().zip(sides).filter(|((a, b, c), side)| side.is_eq() && points.is_between(*a, *b, *c));
    touching.next().map_or(Meeting::Apart, |((_, _, end), _)| Meeting::Touch(*end))
}

fn collinear_meeting(points: &Points, first: Segment, second: Segment) -> Meeting {
    let sorted = |mut s: Segment| {
        s.sort_by_key(|&i| points.rank(i));
        s
    };
    let ([a, b], [c, d]) = (sorted(first), sorted(second));
    let low = if points.rank(a) < points.rank(c) { c } else { a };
    let high = if points.rank(b) < points.rank(d) { b } else { d };
    match points.rank(low).cmp(&points.rank(high)) {
        Ordering::Less => Meeting::Overlap,
        Ordering::Equal => Meeting::Touch(low),
        Ordering::Greater => Meeting::Apart,
    }
}

/// Visits every pair of segments whose bounding boxes meet, by position in the list, in a fixed order.
///
/// A vertical line sweeps from left to right over the boxes, which are kept as ranks: comparing them is exact and
/// costs no arithmetic. Only boxes that the line stands in are looked at.
pub(super) fn for_each_close_pair<B>(
    points: &Points,
    segments: &[Segment],
    mut visit: impl FnMut(usize, usize) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Extent {
        low: [u32; 2],
        high: [u32; 2],
        segment: usize,
    }
    let mut extents: Vec<Extent> = Vec::with_capacity(segments.len());
    for (segment, &[a, b]) in segments.iter().enumerate() {
        let (a, b) = (points.rank(a), points.rank(b));
        let low = [a[0].min(b[0]), a[1].min(b[1])];
        extents.push(Extent { low, high: [a[0].max(b[0]), a[1].max(b[1])], segment });
    }
    extents.sort_by_key(|e| (e.low, e.segment));
    let mut active: Vec<&Extent> = Vec::new();
    for extent in &extents {
        active.retain(|other| other.high[0] >= extent.low[0]);
        for other in &active {
            if other.low[1] <= extent.high[1] && extent.low[1] <= other.high[1] {
                visit(other.segment.min(extent.segment), other.segment.max(extent.segment))?;
            }
        }
        active.push(extent);
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Rational;

    #[test]
    fn segments_meet_in_every_possible_way() {
        let list =
            [[0, 0], [4, 4], [0, 4], [4, 0], [2, 2], [6, 6], [5, 0], [9, 9], [4, 6]].map(|p| p.map(Rational::from));
        let points = Points::new(list.iter().collect());
        for (first, second, want) in [
            ([0, 1], [2, 3], Meeting::Cross),
            ([0, 1], [2, 4], Meeting::Touch(4)),
            ([0, 1], [4, 5], Meeting::Overlap),
            ([0, 1], [1, 0], Meeting::Overlap),
            ([0, 4], [4, 5], Meeting::Touch(4)),
            ([0, 4], [1, 5], Meeting::Apart),
            ([0, 1], [3, 6], Meeting::Apart),
            ([0, 1], [5, 7], Meeting::Apart),
            ([0, 1], [1, 8], Meeting::Touch(1)),
        ] {
            assert_eq!(meeting(&points, first, second), want, "{first:?} {second:?}");
            assert_eq!(meeting(&points, second, first), want, "{second:?} {first:?}");
        }
    }
}
