//! Segments and what can be seen from a point, against tests of segments and convex polygons in fractions.

use pal::formula::{Constraint, Formula, Linear, Var, reals};
use pal::number::{Rational, from_f64, to_f64};
use pal::random::Stream;
use pal::region::{BatchError, Region, RegionBatch, RegionMap};

/// A convex polygon, counterclockwise, that is an obstacle with its boundary or without it.
struct Pillar {
    corners: Vec<[f64; 2]>,
    closed: bool,
}

fn exact(x: f64) -> Rational {
    from_f64(x).unwrap()
}

/// Normal and offset of the edges: inside of all is `a x + b y >= c`.
fn half_planes(pillar: &Pillar) -> Vec<[Rational; 3]> {
    let count = pillar.corners.len();
    let edge = |k: usize| {
        let [p, q] = [pillar.corners[k], pillar.corners[(k + 1) % count]].map(|corner| corner.map(exact));
        let (a, b) = (&p[1] - &q[1], &q[0] - &p[0]);
        let c = &a * &p[0] + &b * &p[1];
        [a, b, c]
    };
    (0..count).map(edge).collect()
}

impl Pillar {
    fn formula(&self, [x, y]: &[Var; 2]) -> Formula {
        let side = |[a, b, c]: [Rational; 3]| {
            let term = Linear::new([(x.clone(), a), (y.clone(), b)], -c);
            if self.closed { term.ge(0) } else { term.gt(0) }
        };
        Formula::all(half_planes(self).into_iter().map(side).collect::<Vec<_>>())
    }

    /// Whether a segment meets the pillar, by cutting the segment at each edge, in fractions.
    fn meets(&self, p: [f64; 2], q: [f64; 2]) -> bool {
        let (p, q) = (p.map(exact), q.map(exact));
        let (mut low, mut high) = (Rational::ZERO, Rational::ONE);
        for [a, b, c] in half_planes(self) {
            let value = |at: &[Rational; 2]| &a * &at[0] + &b * &at[1] - &c;
            let (from, to) = (value(&p), value(&q));
            if from == to {
                let outside = if self.closed { from < Rational::ZERO } else { from <= Rational::ZERO };
                if outside {
                    return false;
                }
                continue;
            }
            let at = &from / (&from - &to);
            if to > from { low = low.max(at) } else { high = high.min(at) }
        }
        // An open pillar meets an open interval of the segment, or none of it; a segment is closed.
        if self.closed || p == q { low <= high } else { low < high }
    }
}

/// A convex polygon with corners on a lattice of quarters: turning left everywhere around random points.
fn pillar(stream: &mut Stream) -> Pillar {
    loop {
        let mut lattice = |most: f64| (stream.unit() * most).floor() / 4.0;
        let base = [lattice(36.0), lattice(36.0)];
        let points: Vec<[f64; 2]> = (0..5).map(|_| [base[0] + lattice(13.0), base[1] + lattice(13.0)]).collect();
        let corners = hull(points);
        if corners.len() >= 3 {
            return Pillar { corners, closed: stream.unit() < 0.5 };
        }
    }
}

/// The convex hull of points of a lattice, on which float64 is exact.
fn hull(mut points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    points.dedup();
    let chain = |points: &mut dyn Iterator<Item = [f64; 2]>| {
        let mut chain: Vec<[f64; 2]> = Vec::new();
        for c in points {
            while let [.., a, b] = chain[..] {
                if (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0.0 {
                    break;
                }
                chain.pop();
            }
            chain.push(c);
        }
        chain.pop();
        chain
    };
    let lower = chain(&mut points.iter().copied());
    let upper = chain(&mut points.iter().rev().copied());
    [lower, upper].concat()
}

struct Place {
    pillars: Vec<Pillar>,
    map: RegionMap,
}

fn place(stream: &mut Stream, count: usize) -> Place {
    let pillars: Vec<Pillar> = (0..count).map(|_| pillar(stream)).collect();
    place_of(pillars)
}

fn place_of(pillars: Vec<Pillar>) -> Place {
    let [x, y] = reals(["x", "y"]);
    let variables = Var::declare(["x", "y"]);
    let obstacles = Formula::any(pillars.iter().map(|pillar| pillar.formula(&variables)).collect::<Vec<_>>());
    let free = x.between(0, 12) & y.between(0, 12) & !obstacles;
    let map = RegionMap::new(&Region::new(&Constraint::new(free)).unwrap()).unwrap();
    Place { pillars, map }
}

impl Place {
    fn is_free(&self, p: [f64; 2], q: [f64; 2]) -> bool {
        let inside = [p, q].iter().flatten().all(|x| (0.0..=12.0).contains(x));
        inside && !self.pillars.iter().any(|pillar| pillar.meets(p, q))
    }
}

/// A corner of a pillar, a point of one of its edges, a point on the lattice, or any point.
fn point(stream: &mut Stream, pillars: &[Pillar]) -> [f64; 2] {
    let kind = stream.unit();
    let mut below = |count: usize| (stream.unit() * count as f64) as usize;
    if kind < 0.4 {
        let corners = &pillars[below(pillars.len())].corners;
        let k = below(corners.len());
        let (a, b) = (corners[k], corners[(k + 1) % corners.len()]);
        // Float64 is exact here.
        return if kind < 0.2 { a } else { [0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])] };
    }
    if kind < 0.7 {
        [below(49) as f64 / 4.0, below(49) as f64 / 4.0]
    } else {
        [stream.unit() * 12.0, stream.unit() * 12.0]
    }
}

fn segments_against_brute_force(places: usize, each: usize) {
    let mut stream = Stream::new(41, 0);
    let (mut free, mut touching) = (0, 0);
    for number in 0..places {
        let place = place(&mut stream, 1 + number % 7);
        let ends: Vec<[[f64; 2]; 2]> = (0..each).map(|_| [0, 1].map(|_| point(&mut stream, &place.pillars))).collect();
        let from: Vec<f64> = ends.iter().flat_map(|[p, _]| *p).collect();
        let to: Vec<f64> = ends.iter().flat_map(|[_, q]| *q).collect();
        let got = place.map.contains_segments(&from, &to).unwrap();
        for ([p, q], got) in ends.iter().zip(got) {
            assert_eq!(got, place.is_free(*p, *q), "{number}: from {p:?} to {q:?}");
            free += usize::from(got);
            let other = |pillar: &Pillar| Pillar { corners: pillar.corners.clone(), closed: !pillar.closed };
            touching +=
                usize::from(place.pillars.iter().any(|pillar| pillar.meets(*p, *q) != other(pillar).meets(*p, *q)));
        }
    }
    let all = places * each;
    assert!(free > all / 10 && free < 9 * all / 10, "{free} of {all} are free");
    // Where it matters whether a pillar has its boundary.
    assert!(touching > all / 20, "{touching} of {all} touch a pillar");
}

#[test]
fn segments_are_decided_as_by_brute_force() {
    segments_against_brute_force(60, 100);
}

#[test]
#[ignore = "10^5 segments; `make test-scale`"]
fn a_hundred_thousand_segments_are_decided_as_by_brute_force() {
    segments_against_brute_force(1000, 100);
}

/// Windows from viewers on lattice points, so on edges and corners of pillars, too: points by brute force, the constraint
/// of shadows and the pieces that densities are integrated on are the same set.
fn views_against_brute_force(places: usize, each: usize) {
    let mut stream = Stream::new(43, 0);
    let (mut seen, mut hidden, mut at_walls) = (0, 0, 0);
    for number in 0..places {
        let place = place(&mut stream, 1 + number % 6);
        let viewer = loop {
            let viewer = point(&mut stream, &place.pillars);
            if place.is_free(viewer, viewer) {
                break viewer;
            }
        };
        let with_walls = |pillar: &Pillar| Pillar { corners: pillar.corners.clone(), closed: true };
        at_walls += usize::from(place.pillars.iter().any(|pillar| with_walls(pillar).meets(viewer, viewer)));
        let heading = [stream.normal(), stream.normal()];
        let scale = 0.5 + stream.unit();
        let view = place.map.visible_windows(&viewer, &[3.0, 4.0], Some(&heading), Some(&[scale])).unwrap();
        let constraint = view.constraint(0).unwrap().membership().unwrap();
        for _ in 0..each {
            let local = [6.0 * (stream.unit() - 0.5), 8.0 * (stream.unit() - 0.5)];
            let at = view.to_map(&local).unwrap();
            let want = place.is_free(viewer, [at[0], at[1]]);
            assert_eq!(view.contains(&local).unwrap(), [want], "{number}: from {viewer:?} to {at:?}");
            assert_eq!(constraint.contains(&local), want, "{number}: from {viewer:?} to {at:?}");
            if want { seen += 1 } else { hidden += 1 }
        }
        // Pieces from a sweep around the viewer, and cells of the constraint with its shadows: two ways to one area.
        let (swept, cells) = (view.volumes()[0], view.region(0).unwrap().volume().unwrap());
        assert!((swept - cells).abs() <= 1e-12 * cells.max(1.0), "{number}: from {viewer:?}: {swept} and {cells}");
        assert!(swept > 0.0);
        let read = RegionBatch::from_bytes(&view.to_bytes().unwrap()).unwrap();
        assert_eq!(read.volumes(), view.volumes());
    }
    let all = places * each;
    assert!(seen > all / 5 && hidden > all / 5, "{seen} seen, {hidden} hidden");
    assert!(at_walls > places / 20, "{at_walls} viewers are at a wall");
}

#[test]
fn views_are_those_of_brute_force() {
    views_against_brute_force(150, 20);
}

#[test]
#[ignore = "10^5 points in 2000 views; `make test-scale`"]
fn a_hundred_thousand_points_are_seen_as_by_brute_force() {
    views_against_brute_force(2000, 50);
}

fn block(low: [f64; 2], high: [f64; 2], closed: bool) -> Pillar {
    Pillar { corners: vec![low, [high[0], low[1]], high, [low[0], high[1]]], closed }
}

#[test]
fn a_corridor_of_one_ulp_lets_through_what_fits() {
    let wall = 1f64.next_up();
    let place = place_of(vec![block([0.0, 2.0], [1.0, 3.0], false), block([wall, 2.0], [12.0, 3.0], false)]);
    let free = |p: [f64; 2], q: [f64; 2]| {
        assert_eq!(place.map.contains_segments(&p, &q).unwrap(), [place.is_free(p, q)]);
        place.is_free(p, q)
    };
    // Along either wall, and from one to the other.
    assert!(free([1.0, 0.0], [1.0, 5.0]) && free([wall, 0.0], [wall, 5.0]) && free([1.0, 1.0], [wall, 4.0]));
    assert!(!free([1.0, 1.0], [wall.next_up(), 3.0]) && !free([1f64.next_down(), 0.0], [1.0, 5.0]));
    // With their walls, the blocks leave no float64 between them.
    let closed = place_of(vec![block([0.0, 2.0], [1.0, 3.0], true), block([wall, 2.0], [12.0, 3.0], true)]);
    assert_eq!(closed.map.contains_segments(&[1.0, 0.0], &[1.0, 5.0]).unwrap(), [false]);
    // The view through the corridor has the area of its two parts: all in front, and a sliver behind.
    let view = place.map.visible_windows(&[1.0, 1.0], &[20.0], None, None).unwrap();
    let area = view.region(0).unwrap().exact_volume().unwrap();
    let front = Rational::from(24);
    assert!(area > front && to_f64(&(area - front)) < 1e-13);
    assert!((view.volumes()[0] - 24.0).abs() < 1e-12);
    // And inside of it, from one of its walls.
    let inside = place.map.visible_windows(&[wall, 2.5], &[20.0], None, None).unwrap();
    let cells = inside.region(0).unwrap().volume().unwrap();
    assert!((inside.volumes()[0] / cells - 1.0).abs() < 1e-9, "{} and {cells}", inside.volumes()[0]);
}

#[test]
fn touching_obstacles_leave_no_gap() {
    // Two blocks that meet in a corner, and two that share a part of an edge.
    let corner = place_of(vec![block([0.0, 4.0], [6.0, 8.0], true), block([6.0, 8.0], [12.0, 9.0], true)]);
    assert_eq!(corner.map.contains_segments(&[4.0, 10.0], &[8.0, 6.0]).unwrap(), [false]);
    let view = corner.map.visible_windows(&[9.0, 2.0], &[20.0], None, None).unwrap();
    assert!(!view.contains(&[-6.0, 7.5]).unwrap()[0]);
    // Without their boundaries exactly the corner is open.
    let corner = place_of(vec![block([0.0, 4.0], [6.0, 8.0], false), block([6.0, 8.0], [12.0, 9.0], false)]);
    assert_eq!(corner.map.contains_segments(&[4.0, 10.0], &[8.0, 6.0]).unwrap(), [true]);
    assert_eq!(corner.map.contains_segments(&[4.0, 10.5], &[8.0, 6.0]).unwrap(), [false]);
}

#[test]
fn what_cannot_be_seen_is_an_error_or_empty() {
    let [x, y] = reals(["x", "y"]);
    let map = |formula: Formula| RegionMap::new(&Region::new(&Constraint::new(formula)).unwrap()).unwrap();
    let square = x.between(0, 1) & y.between(0, 1);
    let unbounded = map(x.ge(0) & y.ge(0)).visible_windows(&[1.0, 1.0], &[1.0], None, None);
    assert!(matches!(unbounded, Err(BatchError::UnboundedMap)));
    let thin = map(square.clone() & x.differs(exact(0.5)));
    let wall = thin.visible_windows(&[0.25, 0.25], &[1.0], None, None);
    assert!(matches!(&wall, Err(BatchError::ThinWall(_))), "{wall:?}");
    // The same wall, and half of it, written by strict inequalities.
    for wall in [x.lt(exact(0.5)) | x.gt(exact(0.5)), x.lt(exact(0.5)) | x.gt(exact(0.5)) | y.lt(exact(0.25))] {
        let views = map(square.clone() & wall).visible_windows(&[0.25, 0.25], &[1.0], None, None);
        assert!(matches!(&views, Err(BatchError::ThinWall(_))), "{views:?}");
    }
    // Touching obstacles and atoms of both kinds on one line are no such wall, and a line that is free is none either.
    let open = [
        !(x.between(0, exact(0.5)) & y.ge(exact(0.5))) & !(x.between(exact(0.5), 1) & y.ge(exact(0.5))),
        x.le(exact(0.5)) | x.gt(exact(0.5)),
        (x.lt(exact(0.5)) & y.le(exact(0.75))) | x.ge(exact(0.5)),
        x.lt(exact(0.5)) | x.gt(exact(0.5)) | x.equals(exact(0.5)),
    ];
    for formula in open {
        let views = map(square.clone() & formula).visible_windows(&[0.25, 0.25], &[1.0], None, None);
        assert!(views.is_ok(), "{views:?}");
    }
    // Segments are right there, too.
    assert_eq!(thin.contains_segments(&[0.0, 0.0], &[1.0, 0.0]).unwrap(), [false]);
    assert_eq!(thin.contains_segments(&[0.0, 0.0], &[0.25, 0.0]).unwrap(), [true]);
    let line = map(x.between(0, 1)).visible_windows(&[0.5], &[1.0], None, None);
    assert!(matches!(line, Err(BatchError::NotInThePlane(1))));
    // From outside of the map nothing is seen.
    let outside = map(square).visible_windows(&[2.0, 0.5, 0.5, 0.5], &[3.0], None, None).unwrap();
    assert_eq!(outside.volumes(), [0.0, 1.0]);
    assert_eq!(outside.contains(&[-1.5, 0.0, 0.25, 0.0]).unwrap(), [false, true]);
    assert_eq!(outside.contains(&[f64::NAN, 0.0, f64::INFINITY, 0.0]).unwrap(), [false, false]);
}
