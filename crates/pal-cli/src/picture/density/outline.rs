//! The true boundary of a region: the edges of its cells without what two cells share.
//!
//! Cells may meet in parts of edges, so shared parts are cut out of every edge, in page units and with a tolerance far
//! below what can be seen.

use std::collections::HashMap;

use super::super::layout::Layout;
use super::super::{CellShape, Point};

/// The distance, in page units, within which two edges count as lying on the same line.
const SAME: f64 = 0.02;
/// The side of the squares by which edges near one another are found.
const SQUARE: f64 = 24.0;

/// The boundary as segments on the page.
pub fn boundary(cells: &[CellShape], layout: &Layout) -> Vec<[Point; 2]> {
    let mut edges = Vec::new();
    for cell in cells {
        let outline: Vec<Point> = cell.outline.iter().map(|point| layout.place(*point)).collect();
        let next = |k: usize| outline[(k + 1) % outline.len()];
        let area: f64 = (0..outline.len()).map(|k| outline[k][0] * next(k)[1] - outline[k][1] * next(k)[0]).sum();
        // All outlines have the same orientation, so that a shared edge occurs in both directions.
        edges
            .extend((0..outline.len()).map(|k| if area < 0.0 { [next(k), outline[k]] } else { [outline[k], next(k)] }));
    }
    let mut squares: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (k, edge) in edges.iter().enumerate() {
        for square in along(*edge) {
            squares.entry(square).or_default().push(k);
        }
    }
    let mut found = Vec::new();
    let mut near = Vec::new();
    for (k, edge) in edges.iter().enumerate() {
        near.clear();
        near.extend(
            along(*edge).filter_map(|square| squares.get(&square)).flatten().copied().filter(|other| *other != k),
        );
        near.sort_unstable();
        near.dedup();
        let shared = near.iter().filter_map(|other| overlap(*edge, edges[*other])).collect();
        found.extend(without(*edge, shared));
    }
    found
}

/// Returns the parts of segments that run along none of the others, in either direction.
pub fn apart(segments: &[[Point; 2]], others: &[[Point; 2]]) -> Vec<[Point; 2]> {
    let along = |segment: [Point; 2]| {
        let both = others.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]);
        both.filter_map(|other| overlap(segment, other)).collect()
    };
    segments.iter().flat_map(|segment| without(*segment, along(*segment))).collect()
}

/// What is left of a segment without some ranges, which are lengths from its start.
fn without([a, b]: [Point; 2], mut ranges: Vec<(f64, f64)>) -> Vec<[Point; 2]> {
    ranges.sort_by(|a, b| a.0.total_cmp(&b.0));
    let length = (b[0] - a[0]).hypot(b[1] - a[1]);
    let at = |t: f64| [a[0] + t / length * (b[0] - a[0]), a[1] + t / length * (b[1] - a[1])];
    let (mut done, mut left) = (0.0, Vec::new());
    for (from, to) in ranges.into_iter().chain([(length, length)]) {
        if from - done > SAME {
            left.push([at(done), at(from)]);
        }
        done = to.max(done);
    }
    left
}

/// Puts segments into chains in which each begins where the one before ends, so that dashes go on around corners.
pub fn chained(mut segments: Vec<[Point; 2]>) -> Vec<Vec<[Point; 2]>> {
    let mut chains = Vec::new();
    while let Some(first) = segments.pop() {
        let mut chain = vec![first];
        let mut end = first[1];
        let far = |from: Point, to: Point| (from[0] - to[0]).hypot(from[1] - to[1]);
        while let Some(next) = segments.iter().position(|segment| far(segment[0], end) < 3.0 * SAME) {
            let segment = segments.swap_remove(next);
            end = segment[1];
            chain.push(segment);
        }
        // The segment that was taken first may lie in the middle of its chain.
        let mut start = first[0];
        while let Some(before) = segments.iter().position(|segment| far(segment[1], start) < 3.0 * SAME) {
            let segment = segments.swap_remove(before);
            start = segment[0];
            chain.insert(0, segment);
        }
        chains.push(chain);
    }
    chains
}

/// Returns the squares that an edge passes through, and some beside them.
fn along([a, b]: [Point; 2]) -> impl Iterator<Item = (i64, i64)> {
    let steps = ((b[0] - a[0]).hypot(b[1] - a[1]) / (SQUARE / 2.0)).ceil().clamp(1.0, 1e4) as usize;
    let mut last = None;
    (0..=steps)
        .flat_map(move |k| {
            let t = k as f64 / steps as f64;
            let at = [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
            // Points close to the side of a square count for both.
            [-0.5, 0.5].into_iter().flat_map(move |dx| {
                [-0.5, 0.5].map(|dy| (((at[0] + dx) / SQUARE).floor() as i64, ((at[1] + dy) / SQUARE).floor() as i64))
            })
        })
        .filter(move |square| last.replace(*square) != Some(*square))
}

/// The part of an edge, by lengths from its start, along which another one runs the other way.
fn overlap([a, b]: [Point; 2], other: [Point; 2]) -> Option<(f64, f64)> {
    let length = (b[0] - a[0]).hypot(b[1] - a[1]);
    let way = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
    let [to, from] = other.map(|p| {
        let (x, y) = (p[0] - a[0], p[1] - a[1]);
        (x * way[0] + y * way[1], x * way[1] - y * way[0])
    });
    let (low, high) = (from.0.max(0.0), to.0.min(length));
    // Also false for an edge without length.
    let sideways = |t: f64| from.1 + (t - from.0) / (to.0 - from.0) * (to.1 - from.1);
    (low < high && sideways(low).abs() < SAME && sideways(high).abs() < SAME).then_some((low, high))
}

/// The part of a segment that lies in a frame.
pub fn clip([a, b]: [Point; 2], frame: [f64; 4]) -> Option<[Point; 2]> {
    let (mut from, mut to) = (0.0f64, 1.0f64);
    for axis in 0..2 {
        let (low, high, way) = (frame[axis] - a[axis], frame[axis + 2] - a[axis], b[axis] - a[axis]);
        if way == 0.0 {
            if low > 0.0 || high < 0.0 {
                return None;
            }
            continue;
        }
        let (enter, leave) = if way > 0.0 { (low / way, high / way) } else { (high / way, low / way) };
        (from, to) = (from.max(enter), to.min(leave));
    }
    let at = |t: f64| [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
    (from < to).then(|| [at(from), at(to)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_along_others_is_left_out() {
        let line = |a: f64, b: f64| [[a, 0.0], [b, 0.0]];
        let other = [[0.0, 5.0], [10.0, 5.0]];
        assert_eq!(
            apart(&[line(0.0, 10.0)], &[line(2.0, 4.0), line(7.0, 6.0), other]),
            [line(0.0, 2.0), line(4.0, 6.0), line(7.0, 10.0)]
        );
        assert_eq!(apart(&[line(3.0, 1.0)], &[line(0.0, 4.0)]), [[[0.0; 2]; 2]; 0]);
        assert_eq!(apart(&[other, line(0.0, 1.0)], &[line(0.0, 1.0)]), [other]);
    }
}
