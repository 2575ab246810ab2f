//! The laws of densities on random formulas, with strict inequalities and equalities, negations, and parts that are
//! empty, flat or unbounded.

mod common;

use common::densities::{Case, spline, sum_of_squares};
use common::{BoundingShape, Dice, random_case, try_volume};
use pal::density::{Basis, Family, Settings};
use pal::formula::Formula;
use pal::number::{Rational, from_f64, to_f64};
use pal::query::ModeOptions;

fn settings(dice: &mut Dice, n: usize) -> Settings {
    let components = dice.int(1, 3) as usize;
    match dice.int(0, 4) {
        0..=1 => spline(dice.int(2, [0, 6, 4, 3][n]) as usize, components),
        2 => sum_of_squares(dice.int(0, 4) as u16, components, Basis::Orthonormal),
        3 => sum_of_squares(dice.int(0, 3) as u16, components, Basis::Legendre),
        _ => sum_of_squares(dice.int(0, 3) as u16, components, Basis::Monomial),
    }
}

/// Regions with volume, with a family on each. Those without volume have densities of fewer coordinates at most.
fn cases(seeds: std::ops::Range<u64>) -> Vec<Case> {
    let (mut found, mut without_volume) = (Vec::new(), 0);
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let n = dice.int(1, 3) as usize;
        let random = random_case(seed, n, if n == 3 { 4 } else { 6 });
        if !random.constraint.booleans.is_empty() {
            continue;
        }
        let settings = settings(&mut dice, n);
        let region = common::region(&random.constraint.formula, &random.constraint.reals);
        let volume = try_volume(&random.constraint.formula, &random.constraint.reals);
        let compiled = Family::new(&region, &settings);
        assert!(volume.is_ok() || random.shape == BoundingShape::WholeSpace, "seed {seed}");
        if volume.is_ok_and(|volume| volume > Rational::ZERO) {
            assert!(compiled.is_ok(), "seed {seed}: {:?} {}", compiled.err(), random.constraint.formula);
            found.push(Case::on(&format!("seed {seed}: {}", random.constraint.formula), random.constraint, settings));
        } else {
            // Equalities leave a density in fewer coordinates, or nothing at all.
            let free = compiled.map_or(0, |family| family.dimension());
            assert!(free < n, "seed {seed}: {}", random.constraint.formula);
            without_volume += 1;
        }
    }
    assert!(found.len() > 20 && without_volume > 3, "{} {without_volume}", found.len());
    found
}

#[test]
fn mass_parts_and_moments() {
    for (k, case) in cases(1000..1150).iter().enumerate() {
        let n = case.dimension();
        let density = case.density(k as u64);
        let rule = case.cubature(&Formula::yes(), 2);
        let mass = rule.mass(&density);
        assert!((mass - 1.0).abs() < 1e-10, "{case}: {mass}");
        let mut sum = 0.0;
        for part in case.partition(k as u64) {
            let (got, want) = (density.probability(&part).unwrap(), case.cubature(&part, 0).mass(&density));
            assert!((got - want).abs() < 1e-11, "{case}: {part} {got} {want}");
            sum += got;
        }
        assert!((sum - 1.0).abs() < 1e-12, "{case}: {sum}");
        let masses = rule.masses(&density);
        for (j, got) in density.mean().iter().enumerate() {
            let want: f64 = rule.points.chunks(n).zip(&masses).map(|(point, mass)| point[j] * mass).sum();
            assert!((got - want).abs() < 1e-11, "{case}: mean {got} {want}");
            let marginal = density.marginal(case.constraint.reals[j].name()).unwrap();
            assert!((marginal.total() - 1.0).abs() < 1e-11, "{case}: {}", marginal.total());
            assert!((marginal.mean() - want).abs() < 1e-11, "{case}: mean of the marginal");
        }
    }
}

#[test]
fn samples_and_modes_are_inside() {
    for (k, case) in cases(2000..2150).iter().enumerate() {
        let density = case.density(k as u64);
        let samples = density.sample(300, k as u64).unwrap();
        let mode = density.mode(&ModeOptions { nodes: Some(20_000), ..ModeOptions::default() }).unwrap();
        for point in samples.chunks(case.dimension()).chain([&mode.point[..]]) {
            let exact: Vec<Rational> = point.iter().map(|x| from_f64(*x).unwrap()).collect();
            assert!(common::holds(&case.constraint, &exact, &[]), "{case}: {point:?}");
        }
        let highest = density.log_prob(&samples).into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(highest <= mode.log_upper + 1e-13, "{case}: {highest} {mode:?}");
    }
}

/// On a lattice of points, half of them on boundaries: inside means a number, outside means minus infinity.
#[test]
fn densities_see_exactly_their_constraint() {
    for (k, case) in cases(3000..3150).iter().enumerate() {
        let density = case.density(k as u64);
        let mut dice = Dice::new(k as u64);
        for _ in 0..100 {
            let point: Vec<Rational> = (0..case.dimension()).map(|_| common::ratio(dice.int(-10, 10), 4)).collect();
            let log = density.log_prob(&point.iter().map(to_f64).collect::<Vec<f64>>())[0];
            let inside = common::holds(&case.constraint, &point, &[]);
            assert!(!log.is_nan() && (inside || log == f64::NEG_INFINITY), "{case}: {point:?} {log}");
        }
    }
}
