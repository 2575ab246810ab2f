//! Compares the status of a region with brute force. On a line and in the plane a finite set of exact points meets
//! every face, of every dimension, of the arrangement of all hyperplanes, and a formula is constant on each face.

mod common;

use std::collections::BTreeSet;

use common::algebra::{absolute, dot};
use common::{
    BoundingShape, Dice, assignments, bounding_formula, holds, random_formula, random_literal, random_terms,
    random_tree,
};
use common::{ratio, variables};
use pal::formula::{Constraint, Formula, Linear, Var};
use pal::number::Rational;
use pal::region::{Region, Status};

/// A face of the arrangement, represented by a point in its relative interior.
struct Face {
    point: Vec<Rational>,
    dimension: usize,
    bounded: bool,
}

/// Returns the distinct hyperplanes `normal . x = offset` of a formula.
fn planes(constraint: &Constraint) -> Vec<(Vec<Rational>, Rational)> {
    let rows: BTreeSet<(Vec<Rational>, Rational)> = constraint
        .formula
        .atoms()
        .iter()
        .map(|atom| {
            let plane = atom.plane();
            let entry = |var: &Var| plane.normal().iter().find(|(v, _)| v == var).map(|(_, a)| a.clone());
            let normal = constraint.reals.iter().map(|var| entry(var).map_or(Rational::ZERO, Rational::from)).collect();
            (normal, Rational::from(plane.offset().clone()))
        })
        .collect();
    rows.into_iter().collect()
}

/// Subdivides a line at the given positions. Returns the positions, the gaps between them and the two rays outside,
/// each with a position in it, as `(position, is_gap, bounded)`.
fn subdivide(positions: BTreeSet<Rational>) -> Vec<(Rational, bool, bool)> {
    let list: Vec<Rational> = positions.into_iter().collect();
    let (Some(first), Some(last)) = (list.first(), list.last()) else { return vec![(Rational::ZERO, true, false)] };
    let mut pieces = vec![(first - Rational::ONE, true, false), (last + Rational::ONE, true, false)];
    pieces.extend(list.windows(2).map(|pair| ((&pair[0] + &pair[1]) / Rational::from(2), true, true)));
    pieces.extend(list.into_iter().map(|position| (position, false, true)));
    pieces
}

fn faces_on_a_line(constraint: &Constraint) -> Vec<Face> {
    let positions = planes(constraint).iter().map(|(a, b)| b / &a[0]).collect();
    let face = |(x, gap, bounded)| Face { point: vec![x], dimension: usize::from(gap), bounded };
    subdivide(positions).into_iter().map(face).collect()
}

/// Returns the faces of an arrangement of lines. Vertices and edges lie on the lines. Every cell has an edge, and is
/// unbounded iff one of its edges is. Cells are reached from their edges by a step to either side that is too small to
/// meet another line.
fn faces_in_the_plane(constraint: &Constraint) -> Vec<Face> {
    let lines = planes(constraint);
    if lines.is_empty() {
        return vec![Face { point: vec![Rational::ZERO, Rational::ZERO], dimension: 2, bounded: false }];
    }
    let mut faces = Vec::new();
    for (normal, offset) in &lines {
        let along = [-&normal[1], normal[0].clone()];
        let scale = offset / dot(normal, normal);
        let base: Vec<Rational> = normal.iter().map(|a| a * &scale).collect();
        let at = |t: &Rational| -> Vec<Rational> { base.iter().zip(&along).map(|(p, d)| p + d * t).collect() };
        let crossings = lines.iter().filter_map(|(a, b)| {
            let speed = dot(a, &along);
            (!speed.is_zero()).then(|| (b - dot(a, &base)) / speed)
        });
        for (t, gap, bounded) in subdivide(crossings.collect()) {
            let point = at(&t);
            if gap {
                let room = lines.iter().filter_map(|(a, b)| {
                    let (distance, speed) = (absolute(dot(a, &point) - b), absolute(dot(a, normal)));
                    (!distance.is_zero() && !speed.is_zero()).then(|| distance / speed)
                });
                let step = room.min().unwrap_or(Rational::ONE) / Rational::from(2);
                for step in [step.clone(), -step] {
                    let point = point.iter().zip(normal).map(|(p, a)| p + a * &step).collect();
                    faces.push(Face { point, dimension: 2, bounded });
                }
            }
            faces.push(Face { point, dimension: usize::from(gap), bounded });
        }
    }
    // A bounded edge may belong to an unbounded cell; the other edges of the cell show which.
    let sides = |p: &[Rational]| lines.iter().map(|(a, b)| dot(a, p) > *b).collect::<Vec<_>>();
    let open: BTreeSet<Vec<bool>> =
        faces.iter().filter(|f| f.dimension == 2 && !f.bounded).map(|f| sides(&f.point)).collect();
    for face in faces.iter_mut().filter(|f| f.dimension == 2) {
        face.bounded = !open.contains(&sides(&face.point));
    }
    faces
}

fn satisfiable(constraint: &Constraint, point: &[Rational]) -> bool {
    assignments(constraint.booleans.len()).any(|truth| holds(constraint, point, &truth))
}

/// Checks the status of a region and returns its name.
fn check(constraint: &Constraint, label: &str) -> &'static str {
    let n = constraint.reals.len();
    let faces = if n == 1 { faces_on_a_line(constraint) } else { faces_in_the_plane(constraint) };
    let members: Vec<&Face> = faces.iter().filter(|face| satisfiable(constraint, &face.point)).collect();
    let want = if members.iter().any(|f| f.dimension == n && !f.bounded) {
        "unbounded"
    } else if members.iter().any(|f| f.dimension == n) {
        "bounded"
    } else if members.is_empty() {
        "empty"
    } else {
        "lower-dimensional"
    };
    let region = Region::new(constraint).unwrap();
    let status = region.status();
    assert_eq!(status.name(), want, "{label}: {}", constraint.formula);
    match &status {
        Status::LowerDimensional(point) => {
            assert!(satisfiable(constraint, point), "{label}: {point:?} is no solution of {}", constraint.formula);
        }
        Status::Unbounded(ray) => {
            assert!(ray.direction.iter().any(|d| !d.is_zero()), "{label}");
            // Some cell of the arrangement satisfies the formula and contains a ray in this direction.
            let lines = planes(constraint);
            let recedes = |p: &[Rational]| {
                lines.iter().all(|(a, b)| {
                    let (side, speed) = (dot(a, p) - b, dot(a, &ray.direction));
                    side * speed >= Rational::ZERO
                })
            };
            let kept = members.iter().any(|f| f.dimension == n && recedes(&f.point));
            assert!(kept, "{label}: direction {:?} leaves {}", ray.direction, constraint.formula);
        }
        _ => {}
    }
    if !matches!(status, Status::Unbounded(_)) {
        assert_eq!(region.exact_volume().unwrap().is_zero(), want != "bounded", "{label}");
    }
    want
}

/// Returns a formula whose solutions often have volume zero: it has equalities, and pairs of non-strict inequalities
/// that only meet on a hyperplane.
fn thin_formula(dice: &mut Dice, x: &[Linear], booleans: &[Var]) -> Formula {
    let count = dice.int(2, 6) as usize;
    let terms = random_terms(dice, x, count);
    let thin = terms.iter().map(|t| match dice.int(0, 5) {
        0 => t.le(0) & t.ge(0),
        1 => t.equals(0),
        2 => t.lt(0) & t.ge(0),
        3 => !(t.lt(0) | t.gt(0)),
        4 => t.le(0).iff(t.ge(0)),
        _ => random_literal(dice, t),
    });
    let mut parts: Vec<Formula> = thin.collect();
    let last = parts.pop().unwrap_or_else(Formula::yes);
    parts.extend(booleans.iter().map(|b| Formula::boolean(b.name())));
    random_tree(dice, parts) & last
}

fn check_many(n: usize, count: u64) {
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..count {
        let mut dice = Dice::new(500_000 + 100_000 * n as u64 + seed);
        let (reals, x) = variables(n);
        let booleans: Vec<Var> = if dice.chance(25) { vec![Var::new("b1")] } else { Vec::new() };
        let inner = if dice.chance(70) {
            thin_formula(&mut dice, &x, &booleans)
        } else {
            random_formula(&mut dice, &x, 6, &booleans)
        };
        let shape =
            [BoundingShape::WholeSpace, BoundingShape::Cube, BoundingShape::CrossPolytope][dice.int(0, 2) as usize];
        let constraint = Constraint { formula: bounding_formula(shape, &x) & inner, reals, booleans };
        *seen.entry(check(&constraint, &format!("seed {seed}"))).or_insert(0) += 1;
    }
    for name in ["unbounded", "bounded", "lower-dimensional", "empty"] {
        assert!(seen.get(name).is_some_and(|n| n * 20 >= count), "too few regions are {name}: {seen:?}");
    }
}

#[test]
fn random_regions_on_a_line() {
    check_many(1, 600);
}

#[test]
fn random_regions_in_the_plane() {
    check_many(2, 400);
}

/// On a line the volume is a sum over the gaps between the hyperplanes.
#[test]
fn lengths_by_brute_force() {
    for seed in 0..300 {
        let constraint = common::random_case(800_000 + seed, 1, 12).constraint;
        let Ok(volume) = Region::new(&constraint).unwrap().exact_volume() else { continue };
        let ends: BTreeSet<Rational> = planes(&constraint).iter().map(|(a, b)| b / &a[0]).collect();
        let ends: Vec<Rational> = ends.into_iter().collect();
        let mut length = Rational::ZERO;
        for pair in ends.windows(2) {
            let middle = [(&pair[0] + &pair[1]) * ratio(1, 2)];
            let truths = assignments(constraint.booleans.len());
            let count = truths.filter(|truth| holds(&constraint, &middle, truth)).count();
            length += (&pair[1] - &pair[0]) * Rational::from(count);
        }
        assert_eq!(volume, length, "seed {seed}: {}", constraint.formula);
    }
}

/// The solutions are a single point, an edge, on the boundary of the bounds, or corners of a cube that strict
/// inequalities remove.
#[test]
fn single_points() {
    for n in 1..=5 {
        let (reals, x) = variables(n);
        let status = |formula: Formula| {
            Region::new(&Constraint { formula, reals: reals.clone(), booleans: Vec::new() }).unwrap().status()
        };
        let cube = bounding_formula(BoundingShape::Cube, &x);
        let sum = x.iter().fold(Linear::default(), |sum, x| sum + x);
        let corner = vec![Rational::from(2); n];
        let most = 2 * n as i64;
        assert_eq!(status(cube.clone() & sum.ge(most)), Status::LowerDimensional(corner.clone()), "n = {n}");
        assert_eq!(status(cube.clone() & sum.equals(most)), Status::LowerDimensional(corner), "n = {n}");
        assert_eq!(status(cube.clone() & sum.gt(most)), Status::Empty, "n = {n}");
        assert_eq!(status(cube & sum.ge(most) & x[0].lt(2)), Status::Empty, "n = {n}");
    }
}
