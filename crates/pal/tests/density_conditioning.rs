//! Bases of high degree are orthonormal, on stars and on real maps.
//!
//! The answer of `conditioning` is checked by densities with random coefficients, which integrate to one only if the
//! Gram matrix is the identity. High degrees:
//! `PAL_DATA=.. cargo test --release -p pal --test density_conditioning -- --ignored --nocapture`.

mod common;

use common::densities::{Case, place, scenes, star, sum_of_squares};
use pal::density::{Basis, Compile, Conditioning, Family, Settings, SumOfSquares};
use pal::formula::{Formula, Linear};
use pal::number::from_f64;
use pal::query::{ModeOptions, ModeStop};

/// Compiles a family, checks the mass of densities with random coefficients, and returns the conditioning that the
/// family reports.
fn check(case: &Case, seeds: u64) -> Conditioning {
    let Settings::SumOfSquares(settings) = &case.settings else { panic!("{case}: not a sum of squares") };
    let family = SumOfSquares::compile(&case.region(), settings).unwrap_or_else(|error| panic!("{case}: {error}"));
    let conditioning = family.conditioning();
    let family: Family = family.into();
    let rule = case.cubature(&Formula::yes(), 0);
    for seed in 0..seeds {
        let density = family.density(&family.random_params(1, seed)).unwrap();
        let mass = rule.mass(&density);
        assert!((mass - 1.0).abs() < 1e-10, "{case}: mass {mass}");
    }
    println!("{case}: {conditioning:?}");
    conditioning
}

fn check_orthonormal(case: &Case, seeds: u64) {
    let found = check(case, seeds);
    assert!(found.orthonormality < 1e-10, "{case}: {found:?}");
    assert!((found.basis - 1.0).abs() < 1e-8 && found.start > found.basis, "{case}: {found:?}");
}

fn on_star(corners: usize, degree: u16) -> Case {
    Case::on(&format!("{corners}-star"), star(corners, 10.0), sum_of_squares(degree, 2, Basis::Orthonormal))
}

#[test]
fn stars_at_degree_ten() {
    for corners in [3, 7] {
        check_orthonormal(&on_star(corners, 10), 3);
    }
}

/// Answers for many parameter vectors come from compiled forms, which are as accurate at high degrees as the basis.
#[test]
fn compiled_forms_of_high_degree() {
    for (corners, degree) in [(3, 6), (3, 10), (7, 10)] {
        let case = on_star(corners, degree);
        let family = case.compile();
        let params = family.random_params(2, 5);
        let densities = family.densities(&params).unwrap();
        for part in &case.partition(3)[..2] {
            let rule = case.cubature(part, 0);
            for (got, density) in family.event(part).unwrap().probability(&params).unwrap().iter().zip(&densities) {
                let want = rule.mass(density);
                assert!((got - want).abs() < 1e-11, "{case}: {part} {got} {want}");
            }
        }
        let rule = case.cubature(&Formula::yes(), 1);
        for (got, density) in family.mean(&params).unwrap().chunks(2).zip(&densities) {
            let want = rule.expectation(density, |point| [point[0], point[1]]);
            let off = (got[0] - want[0]).abs().max((got[1] - want[1]).abs());
            assert!(off < 1e-10, "{case}: {got:?} {want:?}");
        }
    }
}

/// Queries on one density of high degree.
#[test]
fn answers_of_high_degree() {
    let case = on_star(7, 12);
    let density = case.density(3);
    let x = Linear::from(case.constraint.reals[0].clone());
    let marginal = density.marginal("x1").unwrap();
    for y in [-7.3, -2.1, 0.3, 5.5] {
        let want = case.cubature(&x.le(from_f64(y).unwrap()), 0).mass(&density);
        assert!((marginal.cdf(y) - want).abs() < 1e-11, "{y}: {} {want}", marginal.cdf(y));
    }
    let samples = density.sample(10_000, 1).unwrap();
    let below = samples.iter().step_by(2).filter(|x| **x < marginal.quantile(0.5).unwrap()).count();
    // Four standard deviations.
    assert!(below.abs_diff(5000) < 200, "{below}");
    let mode = density.mode(&ModeOptions::default()).unwrap();
    assert_eq!(mode.stop, ModeStop::Certified, "{mode:?}");
    assert!(density.log_prob(&samples).iter().all(|log| *log <= mode.log_upper), "{mode:?}");
}

/// Single members of the basis have mass one too, and so has the sum of two: they are orthogonal.
#[test]
fn members_of_the_basis_are_orthonormal() {
    let case = on_star(7, 6);
    let family = case.compile();
    let rule = case.cubature(&Formula::yes(), 0);
    let size = family.num_params() / 2 - 1;
    for (i, j) in [(0, 0), (0, size - 1), (size / 2, size / 2 + 1), (size - 1, size - 1), (3, size - 2)] {
        let mut theta = vec![0.0; family.num_params()];
        theta[1 + i] = 1.0;
        theta[1 + j] += 1.0;
        let params = family.params_of(&theta);
        let log_normaliser = family.log_normaliser(&params).unwrap()[0];
        // q itself, before normalisation: |u|^2 times the volume of the box.
        let want = case.ends().iter().map(|ends| common::densities::in_float64(ends).1.ln()).sum::<f64>();
        let square: f64 = theta.iter().map(|u| u * u).sum();
        assert!((log_normaliser - want - square.ln()).abs() < 1e-12, "{i} {j}: {log_normaliser}");
        let mass = rule.mass(&family.density(&params).unwrap());
        assert!((mass - 1.0).abs() < 1e-11, "{i} {j}: {mass}");
    }
}

/// Legendre polynomials are orthonormal on a box and nowhere else; monomials nowhere.
#[test]
fn other_bases_know_their_condition() {
    let on_box = check(&Case::new("box", sum_of_squares(8, 1, Basis::Legendre)), 1);
    assert!(on_box.orthonormality < 1e-12 && (on_box.basis - 1.0).abs() < 1e-12, "{on_box:?}");
    let on_triangle = check(&Case::new("triangle", sum_of_squares(6, 1, Basis::Legendre)), 1);
    assert!(on_triangle.orthonormality > 0.1 && on_triangle.basis > 100.0, "{on_triangle:?}");
    let monomials = check(&Case::new("triangle", sum_of_squares(6, 1, Basis::Monomial)), 1);
    assert!(monomials.basis > 10.0 * on_triangle.basis && monomials.start == monomials.basis, "{monomials:?}");
    // The condition number grows with the degree, and is hopeless far from the origin.
    let lower = check(&Case::new("triangle", sum_of_squares(3, 1, Basis::Monomial)), 1);
    assert!(lower.basis < monomials.basis / 100.0, "{lower:?}");
}

/// The shape and position of the box make no difference to an orthonormal basis.
#[test]
fn shift_and_scale_do_not_matter() {
    for region in ["far", "tiny", "two intervals", "simplex 3"] {
        let settings = match sum_of_squares(5, 1, Basis::Orthonormal) {
            Settings::SumOfSquares(settings) => settings,
            other => panic!("{other:?}"),
        };
        let region = pal::region::Region::new(&place(region)).unwrap();
        let found = SumOfSquares::compile(&region, &settings).unwrap().conditioning();
        assert!(found.orthonormality < 1e-11, "{found:?}");
    }
}

#[test]
#[ignore = "minutes without optimisation"]
fn stars_at_degree_eighteen() {
    for corners in [3, 7, 11, 19] {
        check_orthonormal(&on_star(corners, 18), 3);
    }
}

#[test]
#[ignore = "minutes without optimisation"]
fn maps_at_degree_twenty_four() {
    for (name, constraint) in scenes() {
        check_orthonormal(&Case::on(&name, constraint, sum_of_squares(24, 2, Basis::Orthonormal)), 2);
    }
}
