//! Compares polygons with slow independent definitions: crossing numbers for membership, all pairs for simplicity.

use super::*;
use crate::formula::{Membership, Var, reals};
use crate::number::{from_f64, parse_rational};

type Corner = [i64; 2];

fn ring(corners: &[Corner]) -> Result<Ring, PolygonError> {
    Ring::new(corners.iter().map(|p| p.map(Rational::from)).collect())
}

fn message<T>(result: Result<T, PolygonError>) -> String {
    result.err().map_or("no error".into(), |error| error.to_string())
}

fn members(polygon: &Polygon) -> Membership {
    let [x, y] = reals(["x", "y"]);
    Membership::new(&polygon.to_formula(&x, &y), &[Var::new("x"), Var::new("y")], &[]).unwrap()
}

/// A small linear congruential generator: the tests must not depend on a library's choice of numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn corner(&mut self, size: usize) -> Corner {
        [self.below(size) as i64, self.below(size) as i64]
    }
}

#[derive(PartialEq, Clone, Copy, Debug)]
enum Place {
    Inside,
    Boundary,
    Outside,
}

/// Where a point lies, by definition: on some edge, or inside if a ray to the right crosses an odd number of edges.
fn locate(corners: &[[Rational; 2]], p: &[Rational; 2]) -> Place {
    let mut odd = false;
    for k in 0..corners.len() {
        let (a, b) = (&corners[k], &corners[(k + 1) % corners.len()]);
        let cross = (&b[0] - &a[0]) * (&p[1] - &a[1]) - (&b[1] - &a[1]) * (&p[0] - &a[0]);
        let dot = (&a[0] - &p[0]) * (&b[0] - &p[0]) + (&a[1] - &p[1]) * (&b[1] - &p[1]);
        if cross.is_zero() && dot <= Rational::ZERO {
            return Place::Boundary;
        }
        if (a[1] > p[1]) != (b[1] > p[1]) {
            let at = &a[0] + (&p[1] - &a[1]) * (&b[0] - &a[0]) / (&b[1] - &a[1]);
            odd ^= at > p[0];
        }
    }
    if odd { Place::Inside } else { Place::Outside }
}

fn belongs(polygon: &Polygon, p: [f64; 2]) -> bool {
    let p = p.map(|c| from_f64(c).unwrap());
    locate(polygon.points(), &p) != Place::Outside
        && polygon.holes().iter().all(|hole| locate(hole.points(), &p) != Place::Inside)
}

/// Lattice points of half the spacing of the corners, so that corners, midpoints of edges and of lids are among them,
/// each with its neighbours one unit in the last place away.
fn agree_everywhere(polygon: &Polygon, size: usize) {
    let compiled = members(polygon);
    for i in 0..=2 * size {
        for j in 0..=2 * size {
            let (x, y) = (i as f64 / 2.0, j as f64 / 2.0);
            for p in [[x, y], [x.next_up(), y], [x.next_down(), y], [x, y.next_up()], [x, y.next_down()]] {
                assert_eq!(compiled.contains(&p), belongs(polygon, p), "{p:?} and {:?}", polygon.points());
            }
        }
    }
}

/// A random simple polygon: a triangle into which further corners are inserted as long as the ring stays simple.
fn random_corners(dice: &mut Dice, size: usize, bends: usize) -> Vec<Corner> {
    let mut corners = loop {
        let start = [dice.corner(size), dice.corner(size), dice.corner(size)];
        if ring(&start).is_ok() {
            break start.to_vec();
        }
    };
    for _ in 0..bends {
        let mut bent = corners.clone();
        bent.insert(dice.below(corners.len()) + 1, dice.corner(size));
        if ring(&bent).is_ok() {
            corners = bent;
        }
    }
    corners
}

#[test]
fn random_polygons_contain_exactly_their_points() {
    let mut dice = Dice(1);
    let (mut corners, mut nonconvex) = (0, 0);
    for round in 0..60 {
        let polygon = Polygon::from(ring(&random_corners(&mut dice, 9, 10 + 2 * round)).unwrap());
        corners = corners.max(polygon.points().len());
        nonconvex += usize::from(!polygon.is_convex());
        agree_everywhere(&polygon, 9);
    }
    assert!(corners > 15 && nonconvex > 50, "{corners} corners, {nonconvex} not convex");
}

#[test]
fn random_holes_are_accepted_exactly_when_they_fit_and_leave_their_boundary() {
    let mut dice = Dice(7);
    let mut accepted = 0;
    for _ in 0..400 {
        let outer = random_corners(&mut dice, 7, 6).iter().map(|p| p.map(|c| 3 * c)).collect::<Vec<_>>();
        let outer = ring(&outer).unwrap();
        let mut hole = || {
            let [x, y] = dice.corner(16);
            let corners = random_corners(&mut dice, 4, 2);
            ring(&corners.iter().map(|p| [p[0] + x, p[1] + y]).collect::<Vec<_>>()).unwrap()
        };
        let holes = [hole(), hole()];
        let fits = |holes: &[Ring; 2]| {
            let nowhere = |ring: &Ring, other: &Ring, place: Place| {
                samples(ring, other).iter().all(|p| locate(other.points(), p) != place)
            };
            let [first, second] = holes;
            holes.iter().all(|hole| nowhere(hole, &outer, Place::Outside))
                && nowhere(first, second, Place::Inside)
                && nowhere(second, first, Place::Inside)
        };
        match Polygon::new(outer.clone(), holes.to_vec()) {
            Ok(polygon) => {
                accepted += 1;
                assert!(fits(&holes));
                agree_everywhere(&polygon, 18);
            }
            Err(
                PolygonError::HoleMeetsOuter { how: "runs along", .. }
                | PolygonError::HolesMeet { how: "runs along", .. },
            ) => {}
            Err(error) => assert!(!fits(&holes), "{error}: {:?} {holes:?}", outer.points()),
        }
    }
    assert!(accepted > 10, "{accepted}");
}

/// A point of every piece into which the lines of one ring's edges cut the edges of another.
fn samples(ring: &Ring, by: &Ring) -> Vec<[Rational; 2]> {
    let edges = |ring: &Ring| -> Vec<[[Rational; 2]; 2]> {
        let points = ring.points().to_vec();
        (0..points.len()).map(|k| [points[k].clone(), points[(k + 1) % points.len()].clone()]).collect()
    };
    let minus = |p: &[Rational; 2], q: &[Rational; 2]| [&p[0] - &q[0], &p[1] - &q[1]];
    let cross = |p: &[Rational; 2], q: &[Rational; 2]| &p[0] * &q[1] - &p[1] * &q[0];
    let mut found = Vec::new();
    for [a, b] in edges(ring) {
        let u = minus(&b, &a);
        let mut cuts = vec![Rational::ZERO, Rational::ONE];
        for [c, d] in edges(by) {
            let v = minus(&d, &c);
            let det = cross(&u, &v);
            if !det.is_zero() {
                cuts.push(cross(&minus(&c, &a), &v) / det);
            }
        }
        cuts.retain(|t| *t >= Rational::ZERO && *t <= Rational::ONE);
        cuts.sort();
        cuts.dedup();
        for pair in cuts.windows(2) {
            let t = (&pair[0] + &pair[1]) / Rational::from(2);
            found.push([&a[0] + &t * &u[0], &a[1] + &t * &u[1]]);
        }
    }
    found
}

#[test]
fn a_ring_is_accepted_exactly_when_no_two_edges_meet() {
    let mut dice = Dice(3);
    let (mut simple, mut tangled) = (0, 0);
    for _ in 0..4000 {
        let count = 3 + dice.below(4);
        let corners: Vec<Corner> = (0..count).map(|_| dice.corner(5)).collect();
        if (0..count).any(|i| (0..i).any(|j| corners[i] == corners[j])) {
            continue;
        }
        let expected = (0..count).all(|i| (0..i).all(|j| !in_conflict(&corners, j, i)));
        assert_eq!(ring(&corners).is_ok(), expected, "{corners:?}");
        *(if expected { &mut simple } else { &mut tangled }) += 1;
    }
    assert!(simple > 300 && tangled > 300, "{simple} {tangled}");
}

/// Whether edges meet elsewhere than in a shared end, found by solving `a + s (b - a) = c + t (d - c)`.
fn in_conflict(corners: &[Corner], i: usize, j: usize) -> bool {
    let end = |k: usize| corners[k % corners.len()];
    let ([a, b], [c, d]) = ([end(i), end(i + 1)], [end(j), end(j + 1)]);
    let minus = |p: Corner, q: Corner| [p[0] - q[0], p[1] - q[1]];
    let cross = |p: Corner, q: Corner| p[0] * q[1] - p[1] * q[0];
    let dot = |p: Corner, q: Corner| p[0] * q[0] + p[1] * q[1];
    let (u, v, w) = (minus(b, a), minus(d, c), minus(c, a));
    let det = cross(u, v);
    let shared = [a, b].iter().filter(|p| [c, d].contains(p)).count();
    if det == 0 {
        if cross(u, w) != 0 {
            return false;
        }
        let (from, to) = (dot(u, w), dot(u, minus(d, a)));
        let (low, high) = (from.min(to).max(0), from.max(to).min(dot(u, u)));
        return low < high || (low == high && shared == 0);
    }
    let (s, t, scale) = (cross(w, v) * det.signum(), cross(w, u) * det.signum(), det.abs());
    (0..=scale).contains(&s) && (0..=scale).contains(&t) && shared == 0
}

#[test]
fn points_that_say_nothing_are_dropped() {
    let clean = ring(&[[0, 0], [4, 0], [4, 4], [0, 4]]).unwrap();
    for corners in [
        &[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]][..],
        &[[2, 0], [4, 0], [4, 0], [4, 2], [4, 3], [4, 4], [0, 4], [0, 0], [0, 0], [2, 0]],
        &[[0, 0], [0, 4], [4, 4], [4, 0]],
        &[[0, 0], [0, 0], [0, 4], [4, 4], [4, 0], [1, 0], [0, 0], [0, 0]],
    ] {
        let ring = ring(corners).unwrap();
        assert_eq!(ring.area(), Rational::from(16));
        assert!(ring.is_convex());
        let mut points = ring.points().to_vec();
        points.sort();
        let mut wanted = clean.points().to_vec();
        wanted.sort();
        assert_eq!(points, wanted);
    }
    assert_eq!(ring(&[[0, 0], [0, 4], [4, 4]]).unwrap().signed_area(), Rational::from(-8));
    assert_eq!(ring(&[[0, 0], [4, 4], [0, 4]]).unwrap().signed_area(), Rational::from(8));
}

#[test]
fn bad_rings_say_what_is_wrong() {
    for (corners, wanted) in [
        (&[][..], "at least 3 distinct points, this one has 0"),
        (&[[1, 1], [2, 2], [1, 1], [2, 2]], "at least 3 distinct points, this one has 2"),
        (&[[0, 0], [1, 1], [3, 3], [2, 2]], "all 4 points of the ring lie on one line"),
        (&[[0, 0], [2, 2], [2, 0], [0, 2]], "edge 0 from (0, 0) to (2, 2) meets edge 2 from (2, 0) to (0, 2)"),
        // The index counts the points as given, duplicates included.
        (
            &[[0, 0], [0, 0], [2, 2], [2, 2], [2, 0], [0, 2], [0, 0]],
            "edge 1 from (0, 0) to (2, 2) meets edge 4 from (2, 0)",
        ),
        (&[[0, 0], [4, 0], [4, 4], [2, 0], [0, 4]], "edge 0 from (0, 0) to (4, 0) meets edge 3 from (2, 0) to (0, 4)"),
        (&[[0, 0], [6, 0], [4, 0], [4, 4]], "edge 0 from (0, 0) to (6, 0) meets edge 1 from (6, 0) to (4, 0)"),
        (
            &[[0, 0], [2, 2], [4, 0], [4, 4], [2, 2], [0, 4]],
            "edge 0 from (0, 0) to (2, 2) meets edge 4 from (2, 2) to (0, 4)",
        ),
    ] {
        let text = message(ring(corners));
        assert!(text.contains(wanted), "{text}");
    }
    let text = message(ring(&[[0, 0], [2, 2], [2, 0], [0, 2]]));
    assert!(text.ends_with("must not cross, touch or overlap itself: split it into simple polygons"), "{text}");
}

#[test]
fn holes_must_lie_inside_and_apart() {
    let outer = || ring(&[[0, 0], [10, 0], [10, 10], [5, 5], [0, 10]]).unwrap();
    let square = |x: i64, y: i64, w: i64| ring(&[[x, y], [x + w, y], [x + w, y + w], [x, y + w]]).unwrap();
    for (holes, wanted) in [
        (vec![square(20, 0, 1)], "hole 0 leaves the outer ring at (20.5, 0)"),
        (vec![square(1, 1, 1), square(8, 1, 5)], "of hole 1 crosses edge 1 from (10, 0) to (10, 10) of the outer ring"),
        (vec![square(0, 1, 2)], "edge 3 from (0, 3) to (0, 1) of hole 0 runs along edge 4 from (0, 10) to (0, 0)"),
        (vec![square(1, 1, 2), square(2, 2, 2)], "of hole 0 crosses edge"),
        (vec![square(1, 1, 3), square(2, 2, 1)], "hole 1 lies inside hole 0 at (2.5, 2)"),
        (vec![square(1, 1, 1), square(1, 1, 1)], "runs along"),
        // These holes touch the boundary, with their vertices or with those of the ring, from outside and from inside.
        (vec![ring(&[[0, 10], [5, 5], [10, 10]]).unwrap()], "runs along"),
        (vec![ring(&[[5, 5], [6, 8], [4, 8]]).unwrap()], "hole 0 leaves the outer ring at (5.5, 6.5)"),
        (vec![ring(&[[2, 5], [8, 5], [5, 1]]).unwrap()], "no error"),
        (vec![ring(&[[5, 5], [6, 3], [4, 3]]).unwrap(), square(3, 2, 1)], "no error"),
    ] {
        let text = message(Polygon::new(outer(), holes));
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn an_edge_passing_through_two_corners_of_the_ring_may_leave_between_them() {
    // A W-shaped roof: the hole's upper edge runs through both inner corners, which are single points of contact.
    let outer = ring(&[[0, 0], [12, 0], [12, 9], [8, 4], [6, 9], [4, 4], [0, 9]]).unwrap();
    let inside = ring(&[[2, 4], [4, 1], [8, 1], [10, 4]]).unwrap();
    assert!(Polygon::new(outer, vec![inside]).is_ok());
    let dented = ring(&[[0, 0], [12, 0], [12, 9], [8, 9], [8, 4], [6, 2], [4, 4], [4, 9], [0, 9]]).unwrap();
    let bridge = ring(&[[2, 4], [2, 3], [10, 3], [10, 4]]).unwrap();
    assert!(message(Polygon::new(dented, vec![bridge])).contains("crosses"));
}

#[test]
fn atoms_are_the_edges_and_one_lid_per_pocket() {
    let [x, y] = reals(["x", "y"]);
    let count = |corners: &[Corner]| Polygon::from(ring(corners).unwrap()).to_formula(&x, &y).atoms().len();
    assert_eq!(count(&[[0, 0], [4, 0], [4, 4], [0, 4]]), 4);
    assert_eq!(count(&[[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]), 7);
    // The teeth of this comb end on one line, so the five lids and tips give one literal.
    assert_eq!(
        count(&[[0, 0], [5, 0], [5, 3], [4, 3], [4, 1], [3, 1], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]]),
        4 + 5
    );
    let l = Polygon::from(ring(&[[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]).unwrap()).to_formula(&x, &y);
    assert_eq!(l.to_string(), "y >= 0 & x <= 2 & x + y <= 3 & y <= 2 & x >= 0 & (x <= 1 | y <= 1)");
}

#[test]
fn coordinates_may_be_any_linear_terms() {
    let [u, v] = reals(["u", "v"]);
    let triangle = Polygon::from(ring(&[[0, 0], [1, 0], [0, 1]]).unwrap());
    let phi = triangle.to_formula(&(&u + &v), &(&u - &v));
    assert!(phi.contains(&[0.5, 0.0]) && phi.contains(&[0.25, 0.25]) && !phi.contains(&[0.0, 0.25]));
    assert!(triangle.to_formula(&Linear::from(0), &Linear::from(1)).is_true());
}

/// A square spiral of one corridor, as deep as it has turns.
fn spiral(turns: i64) -> Vec<Corner> {
    let (mut out, mut back) = (vec![[0, 0]], vec![[0, 1]]);
    let [mut x, mut y] = [0, 0];
    for k in 0..turns {
        let length = 4 * (turns - k) + 4;
        let [dx, dy] = [[1, 0], [0, 1], [-1, 0], [0, -1]][k as usize % 4];
        [x, y] = [x + dx * length, y + dy * length];
        out.push([x, y]);
        back.push([x - dx - dy, y + dx - dy]);
    }
    back.pop();
    out.extend(back.into_iter().rev());
    out
}

#[test]
fn deep_pockets_and_long_rings_are_fast_and_exact() {
    let start = std::time::Instant::now();
    let polygon = Polygon::from(ring(&spiral(600)).unwrap());
    let compiled = members(&polygon);
    for p in polygon.points().iter().step_by(50) {
        let [x, y] = [0, 1].map(|axis| crate::number::to_f64(&p[axis]));
        for q in [[x, y], [x + 0.5, y + 0.5], [x - 0.5, y + 0.5], [x.next_up(), y], [x, y.next_down()]] {
            assert_eq!(compiled.contains(&q), belongs(&polygon, q), "{q:?}");
        }
    }
    // A comb of 5,000 corners with long teeth: every vertical line meets them all.
    let teeth = 1250;
    let mut comb: Vec<Corner> = (0..teeth)
        .flat_map(|k| [[9, 4 * k], [90000 - k % 7, 4 * k], [90000 + k % 5, 4 * k + 1], [9, 4 * k + 2]])
        .collect();
    comb.extend([[0, 4 * teeth], [0, -1]]);
    println!("spiral: {:?}", start.elapsed());
    assert_eq!(ring(&comb).unwrap().points().len(), comb.len());
    println!("comb on the grid: {:?}", start.elapsed());
    // The same comb with coordinates that do not fit in a 64-bit grid.
    let fine: Vec<[Rational; 2]> = comb
        .iter()
        .map(|p| p.map(|c| Rational::from(c) + parse_rational("0.1234567890123456789012345").unwrap()))
        .collect();
    let fine = Polygon::from(Ring::new(fine).unwrap());
    println!("comb in rationals: {:?}", start.elapsed());
    let [x, y] = reals(["x", "y"]);
    assert!(fine.to_formula(&x, &y).atoms().len() > 3750);
    // The limit is generous: an optimised build takes a second.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
