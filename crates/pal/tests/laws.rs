//! Laws of volume that hold for every formula, exactly.

mod common;

use common::algebra::{absolute, determinant};
use common::{BoundingShape, Dice, bounding_formula, random_formula, random_terms, ratio, region, variables, volume};
use pal::formula::{Constraint, Formula, Linear, Substitution, Var};
use pal::number::Rational;
use pal::region::Region;

/// Returns random formulas within bounded shapes, with their variables. Dimension 4 is rare because it is slow.
fn samples(seed: u64, count: u64, most: i64) -> impl Iterator<Item = (Dice, Vec<Var>, Vec<Linear>, Formula)> {
    (0..count).map(move |k| {
        let mut dice = Dice::new(seed * 10_000 + k);
        let n = [1, 2, 2, 2, 3, 3, 3, 4][dice.int(0, 7) as usize];
        let (reals, x) = variables(n);
        let shape = if n <= 3 && dice.chance(20) { BoundingShape::CrossPolytope } else { BoundingShape::Cube };
        let most = if n == 4 { most.min(5) } else { most };
        let booleans: Vec<Var> = if dice.chance(15) { vec![Var::new("b1")] } else { Vec::new() };
        let phi = bounding_formula(shape, &x) & random_formula(&mut dice, &x, most, &booleans);
        (dice, reals, x, phi)
    })
}

/// Adds a vacuous mention of a Boolean, so that all formulas of one law count the same assignments.
fn with_boolean(formula: &Formula) -> Formula {
    let b = Formula::boolean("b1");
    formula.clone() & (b.clone() | !b)
}

#[test]
fn a_cut_divides_the_volume() {
    for (mut dice, reals, x, phi) in samples(1, 80, 8) {
        let phi = with_boolean(&phi);
        let h = random_terms(&mut dice, &x, 1)[0].le(0);
        let parts = volume(&(phi.clone() & h.clone()), &reals) + volume(&(phi.clone() & !h.clone()), &reals);
        assert_eq!(parts, volume(&phi, &reals), "{phi} cut by {h}");
    }
}

#[test]
fn inclusion_and_exclusion() {
    for (mut dice, reals, x, phi) in samples(2, 70, 6) {
        let phi = with_boolean(&phi);
        let psi = with_boolean(&(bounding_formula(BoundingShape::Cube, &x) & random_formula(&mut dice, &x, 5, &[])));
        let of = |f: Formula| volume(&with_boolean(&f), &reals);
        let both = of(phi.clone() & psi.clone());
        let (left, right) = (volume(&phi, &reals), volume(&psi, &reals));
        assert_eq!(of(phi.clone() | psi.clone()) + &both, &left + &right, "{phi} and {psi}");
        assert_eq!(of(phi.clone() ^ psi.clone()), &left + &right - &both - &both, "{phi} xor {psi}");
    }
}

#[test]
fn a_set_and_its_complement_fill_the_box() {
    for (_, reals, x, phi) in samples(3, 80, 8) {
        let square = with_boolean(&bounding_formula(BoundingShape::Cube, &x));
        let inside = volume(&(square.clone() & phi.clone()), &reals);
        let outside = volume(&(square.clone() & !phi.clone()), &reals);
        let volume_of_box = Rational::from(2 * 4i64.pow(reals.len() as u32));
        assert_eq!(inside + outside, volume_of_box, "{phi}");
    }
}

#[test]
fn the_order_of_variables_does_not_matter() {
    for (mut dice, reals, _, phi) in samples(4, 80, 8) {
        let mut permuted = reals.clone();
        dice.shuffle(&mut permuted);
        assert_eq!(volume(&phi, &permuted), volume(&phi, &reals), "{phi} over {permuted:?}");
    }
}

#[test]
fn writing_a_formula_differently_does_not_change_its_volume() {
    for (_, reals, _, phi) in samples(5, 80, 7) {
        let nnf = with_boolean(&phi.to_nnf());
        let phi = with_boolean(&phi);
        assert_eq!(volume(&nnf, &reals), volume(&phi, &reals), "{phi}");
        assert_eq!(volume(&(phi.clone() & phi.clone()), &reals), volume(&phi, &reals), "{phi}");
    }
}

/// `vol {x : A x + b in S} = vol S / |det A|`. Afterwards no atom bounds a single variable.
#[test]
fn affine_maps_scale_by_their_determinant() {
    let mut sheared = 0;
    for (mut dice, reals, x, phi) in samples(6, 70, 6) {
        let n = reals.len();
        let matrix: Vec<Vec<Rational>> =
            (0..n).map(|_| (0..n).map(|_| ratio(dice.int(-2, 2), dice.int(1, 2))).collect()).collect();
        let det = absolute(determinant(matrix.clone()));
        if det.is_zero() {
            continue;
        }
        sheared += 1;
        let map = reals.iter().zip(&matrix).fold(Substitution::new(), |map, (var, row)| {
            let term = x.iter().zip(row).fold(Linear::from(dice.rational()), |sum, (x, a)| sum + x.scaled(a));
            map.real(var.name(), term)
        });
        let image = with_boolean(&phi.substitute(&map));
        let phi = with_boolean(&phi);
        assert_eq!(volume(&image, &reals) * &det, volume(&phi, &reals), "{phi} under {map:?}");
    }
    assert!(sheared >= 50, "{sheared} regular matrices");
}

/// A Boolean variable is a case distinction: the volume is the sum over its two values.
#[test]
fn a_boolean_sums_over_its_values() {
    let b = Var::new("b1");
    for k in 0..60 {
        let mut dice = Dice::new(70_000 + k);
        let (reals, x) = variables(1 + (k as usize) % 3);
        let phi =
            bounding_formula(BoundingShape::Cube, &x) & random_formula(&mut dice, &x, 6, std::slice::from_ref(&b));
        let at = |value| volume(&phi.substitute(&Substitution::new().boolean("b1", Formula::constant(value))), &reals);
        let constraint = Constraint { formula: phi.clone(), reals: reals.clone(), booleans: vec![b.clone()] };
        assert_eq!(Region::new(&constraint).unwrap().exact_volume().unwrap(), at(false) + at(true), "{phi}");
    }
}

/// Every cell lies in its bin, and the refined cells have the same volume.
#[test]
fn knots_refine() {
    for (mut dice, reals, _, phi) in samples(8, 50, 6) {
        let coarse = region(&phi, &reals);
        let knots: Vec<Vec<Rational>> = reals
            .iter()
            .map(|_| {
                // Some knots lie on the boundary of the bounding shape or beyond it, some on atoms.
                let mut list: Vec<_> = (0..dice.int(0, 4)).map(|_| ratio(dice.int(-5, 5), dice.int(1, 2))).collect();
                list.sort();
                list.dedup();
                list
            })
            .collect();
        let fine = coarse.with_knots(&knots).unwrap();
        check_bins(&coarse, &fine, &knots, &phi);
    }
}

fn check_bins(coarse: &Region, fine: &Region, knots: &[Vec<Rational>], phi: &Formula) {
    let mut sum = Rational::ZERO;
    for cell in fine.decompose().unwrap() {
        sum += cell.exact_volume();
        assert_eq!(cell.bin().len(), knots.len());
        let vertices = cell.polytope().exact_vertices();
        for (axis, list) in knots.iter().enumerate() {
            let bin = cell.bin()[axis] as usize;
            let (low, high) = (bin.checked_sub(1).map(|k| &list[k]), list.get(bin));
            for vertex in &vertices {
                let inside =
                    low.is_none_or(|low| *low <= vertex[axis]) && high.is_none_or(|high| vertex[axis] <= *high);
                assert!(inside, "{phi}: {vertex:?} is outside bin {bin} of {list:?} along axis {axis}");
            }
        }
    }
    assert_eq!(sum, coarse.exact_volume().unwrap(), "{phi} with knots {knots:?}");
}

#[test]
fn uniform_knots_divide_the_bounding_box() {
    for (mut dice, reals, _, phi) in samples(9, 50, 6) {
        let coarse = region(&phi, &reals);
        let count = dice.int(2, 5) as usize;
        let fine = coarse.with_uniform_knots(count).unwrap();
        let Some(ends) = coarse.bounding_box().unwrap() else {
            assert!(coarse.exact_volume().unwrap().is_zero(), "{phi}");
            continue;
        };
        // The box is tight: some vertex of a cell attains each of its ends, none exceeds them.
        let cells = coarse.decompose().unwrap();
        for (axis, (low, high)) in ends.iter().enumerate() {
            let values = || cells.iter().flat_map(|cell| cell.polytope().exact_vertices()).map(|v| v[axis].clone());
            assert_eq!((values().min().as_ref(), values().max().as_ref()), (Some(low), Some(high)), "{phi}");
        }
        let knots: Vec<Vec<Rational>> = ends
            .iter()
            .map(|(low, high)| (1..count - 1).map(|k| low + (high - low) * ratio(k as i64, count as i64 - 1)).collect())
            .collect();
        check_bins(&coarse, &fine, &knots, &phi);
    }
}
