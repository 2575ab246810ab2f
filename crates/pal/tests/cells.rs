//! Checks the decomposition of random formulas: volumes computed in three ways, the shape of every cell, and that the
//! cells tile the region.

mod common;

use common::algebra::{absolute, determinant, differences, dot, factorial, lasserre, rank};
use common::{BoundingShape, Case, Dice, REACH, assignments, holds, on_some_plane, random_case, ratio};
use pal::formula::{Formula, Linear};
use pal::number::{Rational, from_f64, to_f64};
use pal::region::{Cell, Enumeration, Polytope, Region};

/// The number of cases and the largest number of atoms for each dimension, limited by the cost of total enumeration.
const PLAN: [(usize, u64, i64); 5] = [(1, 130, 12), (2, 170, 12), (3, 130, 11), (4, 70, 8), (5, 40, 6)];

fn cases(n: usize) -> impl Iterator<Item = Case> {
    let (_, count, most) = PLAN[n - 1];
    (0..count).map(move |k| random_case(1000 * n as u64 + k, n, most))
}

fn rational_half_spaces(polytope: &Polytope) -> Vec<(Vec<Rational>, Rational)> {
    let exact = |(a, b): (Vec<_>, _)| (a.into_iter().map(Rational::from).collect(), Rational::from(b));
    polytope.half_spaces().into_iter().map(exact).collect()
}

/// Checks that vertices, facets, incidence, triangulation and volume of one cell are consistent.
fn check_shape(cell: &Cell, label: &str) {
    let polytope = cell.polytope();
    let n = polytope.dimension();
    let vertices = polytope.exact_vertices();
    let walls = rational_half_spaces(polytope);
    assert_eq!(polytope.flat(), n, "{label}: a cell has full dimension");
    for (k, vertex) in polytope.vertices().iter().enumerate() {
        for ((x, e), exact) in vertex.coordinates().iter().zip(vertex.error()).zip(&vertices[k]) {
            let off = absolute(from_f64(*x).unwrap() - exact);
            assert!(off <= from_f64(*e).unwrap(), "{label}: vertex {k} is off by more than its error bound");
        }
        assert!(!vertices[..k].contains(&vertices[k]), "{label}: vertex {k} occurs twice");
    }
    for (f, (normal, offset)) in walls.iter().enumerate() {
        let on = polytope.facet_vertices(f);
        for (k, vertex) in vertices.iter().enumerate() {
            let value = dot(normal, vertex);
            assert!(value <= *offset, "{label}: vertex {k} violates half-space {f}");
            assert_eq!(value == *offset, on.contains(&k), "{label}: incidence of vertex {k} and facet {f}");
        }
        assert_eq!(rank(differences(on.iter().map(|k| &vertices[*k]))), n - 1, "{label}: facet {f} is no facet");
        assert!(!walls[..f].contains(&walls[f]), "{label}: facet {f} occurs twice");
    }
    let mut sum = Rational::ZERO;
    for simplex in polytope.triangulate() {
        assert_eq!(simplex.len(), n + 1, "{label}");
        let size = absolute(determinant(differences(simplex.iter().map(|k| &vertices[*k]))));
        assert!(!size.is_zero(), "{label}: a simplex without volume");
        sum += size;
    }
    let volume = polytope.exact_volume();
    assert_eq!(sum / factorial(n), volume, "{label}: triangulation");
    let close = (polytope.volume() / to_f64(&volume) - 1.0).abs();
    assert!(close < 1e-9, "{label}: volume in float64 is off by {close:e}");
}

/// Checks that half-spaces alone give the same volume, so that the vertices and the triangulation are complete.
fn check_volume_of_half_spaces(cell: &Cell, label: &str) {
    let polytope = cell.polytope();
    let volume = lasserre(&rational_half_spaces(polytope), polytope.dimension());
    assert_eq!(volume, polytope.exact_volume(), "{label}: volume from half-spaces");
}

/// Checks that the number of uniform points (and Boolean values) that satisfy the formula matches the exact volume
/// within 4.5 standard deviations. Three more points allow for the skewness of rare events.
fn check_monte_carlo(case: &Case, volume: &Rational) {
    const POINTS: usize = 3000;
    let constraint = &case.constraint;
    let (n, b) = (constraint.reals.len(), constraint.booleans.len());
    let members = constraint.membership().unwrap();
    let mut dice = Dice::new(case.seed ^ 0xabcdef);
    let side = (2 * REACH) as f64;
    let hits = (0..POINTS).filter(|_| {
        let point: Vec<f64> = (0..n).map(|_| side * (dice.unit() - 0.5)).collect();
        let truth: Vec<bool> = (0..b).map(|_| dice.chance(50)).collect();
        members.contains_with(&point, &truth)
    });
    let hits = hits.count() as f64;
    let p = to_f64(volume) / side.powi(n as i32) / 2f64.powi(b as i32);
    let mean = p * POINTS as f64;
    let sigma = (mean * (1.0 - p)).max(0.0).sqrt();
    let allowed = if volume.is_zero() || p >= 1.0 { 0.0 } else { 4.5 * sigma + 3.0 };
    assert!((hits - mean).abs() <= allowed + 1e-6, "seed {}: {hits} hits, {mean} +- {sigma}", case.seed);
}

/// Checks random exact points: for every assignment of the Booleans, one cell contains the point iff it satisfies the
/// formula.
fn check_tiling(case: &Case, cells: &[Cell], points: usize) {
    let constraint = &case.constraint;
    let n = constraint.reals.len();
    let walls: Vec<_> = cells.iter().map(|cell| rational_half_spaces(cell.polytope())).collect();
    let mut dice = Dice::new(case.seed ^ 0x717171);
    for k in 0..points {
        // Every other point is on a coarse lattice and so often on a hyperplane; a few lie outside the bounding shape.
        let q = if k % 2 == 0 { 2 } else { 10_007 };
        let point: Vec<Rational> = (0..n).map(|_| ratio(dice.int(-9 * q / 4, 9 * q / 4), q)).collect();
        let generic = !on_some_plane(&constraint.formula, constraint, &point);
        for truth in assignments(constraint.booleans.len()) {
            let matching = (0..cells.len()).filter(|c| {
                let values = cells[*c].booleans().iter().zip(&truth);
                values.into_iter().all(|(cell, value)| cell.is_none_or(|cell| cell == *value))
            });
            let around = matching.filter(|c| walls[*c].iter().all(|(a, b)| dot(a, &point) < *b)).count();
            let label = format!("seed {} point {point:?} {truth:?}", case.seed);
            assert!(around <= 1, "{label}: {around} cells overlap");
            if generic {
                assert_eq!(around == 1, holds(constraint, &point, &truth), "{label}: {}", constraint.formula);
            }
        }
    }
}

fn check_dimension(n: usize) {
    let (mut bounded, mut full) = (0, 0);
    for case in cases(n) {
        let label = format!("seed {}", case.seed);
        let region = Region::new(&case.constraint).unwrap();
        let total = region.clone().with_enumeration(Enumeration::Total);
        let cells = match region.decompose() {
            Ok(cells) => cells,
            Err(ray) => {
                assert_eq!(case.shape, BoundingShape::WholeSpace, "{label}: {ray}");
                assert!(total.exact_volume().is_err(), "{label}: bounded under total enumeration");
                continue;
            }
        };
        bounded += 1;
        let volume = cells.iter().fold(Rational::ZERO, |sum, cell| sum + cell.exact_volume());
        full += u64::from(!volume.is_zero());
        assert_eq!(region.exact_volume().unwrap(), volume, "{label}");
        assert_eq!(total.exact_volume().unwrap(), volume, "{label}: partial and total: {}", case.constraint.formula);
        if case.shape != BoundingShape::WholeSpace {
            check_monte_carlo(&case, &volume);
        }
        cells.iter().for_each(|cell| check_shape(cell, &label));
        // The cost of the recursion over half-spaces is exponential in the dimension.
        let sampled = [0, usize::MAX, usize::MAX, 12, 4, 1][n];
        cells.iter().take(sampled).for_each(|cell| check_volume_of_half_spaces(cell, &label));
        check_tiling(&case, &cells, 24);
    }
    let (_, count, _) = PLAN[n - 1];
    assert!(bounded * 10 >= count * 7 && full * 2 >= bounded, "{bounded} bounded, {full} with volume of {count}");
}

#[test]
fn random_formulas_on_a_line() {
    check_dimension(1);
}

#[test]
fn random_formulas_in_the_plane() {
    check_dimension(2);
}

#[test]
fn random_formulas_in_space() {
    check_dimension(3);
}

#[test]
fn random_formulas_in_four_dimensions() {
    check_dimension(4);
}

#[test]
fn random_formulas_in_five_dimensions() {
    check_dimension(5);
}

/// A cone over a polygon times a square, from five dimensions on the simplest shape in which two vertices share `n - 1`
/// facets and yet span no edge: the diagonals of `apex x square`. Cuts must tell these from edges.
#[test]
fn faces_on_more_facets_than_their_codimension() {
    for n in 5..=6 {
        let (reals, x) = common::variables(n);
        let pyramid = Formula::all(x[..2].iter().map(|side| side.between(&x[2] - 1, 1 - &x[2]))) & x[2].ge(0);
        let product = pyramid & Formula::all(x[3..].iter().map(|side| side.between(0, 1)));
        for seed in 0..12 {
            let mut dice = Dice::new(seed);
            // Through the diagonal, through the apex, or anywhere; always between opposite corners of the square.
            let tilt = x[..3].iter().fold(Linear::default(), |sum, x| sum + dice.int(-2, 2) * x);
            let cut = (&x[3] + &x[4]).le(tilt + ratio(dice.int(1, 7), 4));
            let mut sum = Rational::ZERO;
            for h in [cut.clone(), !cut] {
                let region = common::region(&(product.clone() & h), &reals);
                for cell in region.decompose().unwrap() {
                    check_shape(&cell, &format!("n = {n}, seed {seed}"));
                    sum += cell.exact_volume();
                }
            }
            assert_eq!(sum, ratio(4, 3), "n = {n}, seed {seed}");
        }
    }
}

/// A plane whose coefficients are further apart than the whole range of float64, in a box just as extreme:
/// `2^1600 x + y <= 0` on `[0, 2^-1000] x [-2^1000, 0]` leaves out a triangle of area `2^-1000 2^600 / 2`.
#[test]
fn coefficients_further_apart_than_the_range_of_float64() {
    let [x, y] = pal::formula::reals(["x", "y"]);
    let power = |k: usize| Rational::from(pal::number::Integer::ONE << k);
    let square = x.between(0, Rational::ONE / power(1000)) & y.between(-power(1000), 0);
    let region = Region::new(&(square & (x.scaled(&power(1600)) + &y).le(0)).into()).unwrap();
    assert_eq!(region.exact_volume().unwrap(), Rational::ONE - Rational::ONE / power(401));
}
