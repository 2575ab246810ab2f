//! Volumes of polytopes in general position in up to eight dimensions.

mod common;

use common::algebra::{absolute, determinant, differences, factorial};
use common::{BoundingShape, Dice, bounding_formula, ratio, region, variables, volume};
use pal::formula::{Formula, Linear};
use pal::number::Rational;
use pal::region::Enumeration;

/// Returns a random half-space whose boundary cuts the cube near its centre.
fn random_half_space(dice: &mut Dice, x: &[Linear]) -> Formula {
    let sum = x.iter().fold(Linear::default(), |sum, x| sum + dice.int(-9, 9) * x);
    sum.le(ratio(dice.int(-30, 30), 7))
}

/// Returns a simplex as half-spaces. The plane through all vertices but one is computed by cofactors.
fn simplex(vertices: &[Vec<Rational>], x: &[Linear]) -> Formula {
    let n = x.len();
    Formula::all((0..=n).map(|omitted| {
        // det [1 p; 1 v_1; ..; 1 v_n] is linear in p and vanishes on the facet. Points inside have the sign that it has
        // at the omitted vertex.
        let rows: Vec<Vec<Rational>> = (0..=n)
            .filter(|k| *k != omitted)
            .map(|k| [Rational::ONE].into_iter().chain(vertices[k].iter().cloned()).collect())
            .collect();
        let cofactor = |column: usize| {
            let minor = rows.iter().map(|r| (0..=n).filter(|j| *j != column).map(|j| r[j].clone()).collect());
            let size = determinant(minor.collect());
            if column.is_multiple_of(2) { size } else { -size }
        };
        let normal: Vec<Rational> = (1..=n).map(cofactor).collect();
        let form = |p: &[Rational]| p.iter().zip(&normal).fold(cofactor(0), |sum, (p, a)| sum + p * a);
        let term = x.iter().zip(&normal).fold(Linear::from(cofactor(0)), |sum, (x, a)| sum + x.scaled(a));
        if form(&vertices[omitted]) > Rational::ZERO { term.ge(0) } else { term.le(0) }
    }))
}

#[test]
fn random_simplices_have_the_volume_of_their_determinant() {
    for n in 2..=8 {
        let (reals, x) = variables(n);
        for k in 0..6 {
            let mut dice = Dice::new(100 * n as u64 + k);
            let vertices: Vec<Vec<Rational>> =
                (0..=n).map(|_| (0..n).map(|_| ratio(dice.int(-20, 20), dice.int(1, 3))).collect()).collect();
            let size = absolute(determinant(differences(&vertices)));
            assert!(!size.is_zero(), "the seeds give proper simplices");
            assert_eq!(volume(&simplex(&vertices, &x), &reals), size / factorial(n), "n = {n}, k = {k}");
        }
    }
}

/// Returns a cube with some corners cut off or some slabs taken out.
fn random_polytope(dice: &mut Dice, x: &[Linear], cuts: usize) -> Formula {
    let halves: Vec<Formula> = (0..cuts).map(|_| random_half_space(dice, x)).collect();
    let joined = if dice.chance(50) { Formula::all(halves) } else { Formula::any(halves) };
    bounding_formula(BoundingShape::Cube, x) & joined
}

#[test]
fn partial_and_total_enumeration_agree() {
    for (n, cuts, count) in [(6, 3, 2), (7, 2, 2), (8, 1, 1)] {
        let (reals, x) = variables(n);
        for k in 0..count {
            let phi = random_polytope(&mut Dice::new(300 * n as u64 + k), &x, cuts);
            let partial = region(&phi, &reals);
            let total = partial.clone().with_enumeration(Enumeration::Total);
            assert_eq!(partial.exact_volume(), total.exact_volume(), "n = {n}: {phi}");
        }
    }
}

#[test]
fn a_cut_divides_the_volume() {
    for (n, cuts, count) in [(6, 2, 3), (7, 1, 2)] {
        let (reals, x) = variables(n);
        for k in 0..count {
            let mut dice = Dice::new(500 * n as u64 + k);
            let phi = random_polytope(&mut dice, &x, cuts);
            let h = random_half_space(&mut dice, &x);
            let parts = volume(&(phi.clone() & h.clone()), &reals) + volume(&(phi.clone() & !h.clone()), &reals);
            assert_eq!(parts, volume(&phi, &reals), "n = {n}: {phi} cut by {h}");
        }
    }
}

/// A plane through the centre halves the cube by symmetry; the two sides of any other plane add up to the cube.
#[test]
fn planes_divide_a_box() {
    for n in 6..=8 {
        let (reals, x) = variables(n);
        let mut dice = Dice::new(700 + n as u64);
        let sum = x.iter().fold(Linear::default(), |sum, x| sum + dice.int(1, 9) * x);
        let half = Rational::from(4i64.pow(n as u32) / 2);
        assert_eq!(volume(&(bounding_formula(BoundingShape::Cube, &x) & sum.le(0)), &reals), half, "n = {n}");
        let off_centre = random_half_space(&mut dice, &x);
        let parts =
            [off_centre.clone(), !off_centre].map(|h| volume(&(bounding_formula(BoundingShape::Cube, &x) & h), &reals));
        assert_eq!(&parts[0] + &parts[1], &half + &half, "n = {n}");
        assert_ne!(parts[0], parts[1], "n = {n}");
    }
}
