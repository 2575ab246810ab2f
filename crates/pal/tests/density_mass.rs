//! Densities integrate to one, are zero outside of their constraint, and give parts of it the right probability.
//!
//! The integrals come from the integrator in `common`, which uses nothing of a density but its values.

mod common;

use common::densities::{Case, catalogue, distance, given_knots, place, some_of_squares, spline, sum_of_squares};
use common::{Dice, ratio, variables};
use pal::density::{Basis, Settings};
use pal::formula::{Constraint, Formula};
use pal::number::{from_f64, to_f64};

/// The error that rounding of coordinates causes, besides the rounding of the sums.
fn tolerance(case: &Case, exact: f64) -> f64 {
    exact + 100.0 * case.resolution
}

#[test]
fn every_density_has_mass_one() {
    for case in catalogue() {
        let cubature = case.cubature(&Formula::yes(), 0);
        for seed in 0..2 {
            let mass = cubature.mass(&case.density(seed));
            assert!((mass - 1.0).abs() < tolerance(&case, 1e-10), "{case}: {mass}");
        }
    }
}

/// Compared with one random point in every square of a fine grid, which is independent of cells.
#[test]
fn masses_agree_with_stratified_sums() {
    for (region, settings) in
        [("star", spline(4, 2)), ("notched", sum_of_squares(3, 2, Basis::Orthonormal)), ("boxes", spline(3, 1))]
    {
        let case = Case::new(region, settings);
        let density = case.density(3);
        let ends: Vec<(f64, f64)> = case.ends().iter().map(common::densities::in_float64).collect();
        let (steps, mut dice) = (700, Dice::new(1));
        let mut at = |(low, length): (f64, f64), k: usize| low + length * (k as f64 + dice.unit()) / steps as f64;
        let points: Vec<f64> =
            (0..steps * steps).flat_map(|k| [at(ends[0], k % steps), at(ends[1], k / steps)]).collect();
        let cell: f64 = ends.iter().map(|(_, length)| length / steps as f64).product();
        let mass: f64 = density.log_prob(&points).iter().map(|log| cell * log.exp()).sum();
        // Some thousand squares along the boundary err by up to 1e-5 each, in both directions.
        assert!((mass - 1.0).abs() < 8e-4, "{case}: {mass}");
    }
}

#[test]
fn outside_there_is_nothing() {
    let mut found = [0; 2];
    for case in catalogue() {
        let density = case.density(1);
        let ends: Vec<(f64, f64)> = case.ends().iter().map(common::densities::in_float64).collect();
        let mut dice = Dice::new(11);
        for _ in 0..300 {
            // On a coarse lattice that meets boundaries, reaching out of the box.
            let point: Vec<f64> =
                ends.iter().map(|(low, length)| low + length * dice.int(-2, 10) as f64 / 8.0).collect();
            let exact: Vec<_> = point.iter().map(|x| from_f64(*x).unwrap()).collect();
            let inside = common::holds(&case.constraint, &exact, &[]);
            let log = density.log_prob(&point)[0];
            found[usize::from(inside)] += 1;
            assert!(!log.is_nan() && (inside || log == f64::NEG_INFINITY), "{case}: {point:?} {log}");
            assert!(!inside || log < f64::INFINITY, "{case}: {point:?} {log}");
        }
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            let point = vec![x; case.dimension()];
            assert_eq!(density.log_prob(&point), [f64::NEG_INFINITY], "{case}: {x}");
        }
    }
    assert!(found.iter().all(|count| *count > 1000), "{found:?}");
}

#[test]
fn strict_boundaries_are_outside() {
    let open = Case::new("box", spline(3, 2)).density(0);
    let at = |x: f64, y: f64| open.log_prob(&[x, y])[0];
    assert!(at(-1.0, 1.0).is_finite() && at(2.0, 1.0).is_finite());
    assert_eq!([at(0.0, 0.0), at(0.5, 0.0), at(0.5, 3.0)], [f64::NEG_INFINITY; 3]);
    assert!(at(0.5, f64::MIN_POSITIVE).is_finite() && at(0.5, 3.0f64.next_down()).is_finite());
    let union = Case::new("two intervals", sum_of_squares(2, 1, Basis::Orthonormal)).density(0);
    let logs = union.log_prob(&[0.0, 1e-300, 1.0f64.next_down(), 1.0, 1.5, 2.0, 2.5, 2.5f64.next_up()]);
    assert_eq!(
        logs.iter().map(|log| log.is_finite()).collect::<Vec<_>>(),
        [false, true, true, false, false, true, true, false]
    );
}

#[test]
fn no_parameters_make_a_nan() {
    for case in catalogue() {
        let family = case.compile();
        let per = family.num_params();
        let points = case.inside(8);
        let count = points.len() / case.dimension();
        let mut dice = Dice::new(5);
        let mut random = |size: f64| (0..per).map(|_| (2.0 * dice.unit() - 1.0) * size).collect::<Vec<f64>>();
        let mut kinds = vec![vec![0.0; per], vec![1.0; per], random(1e150), random(1e-150), random(1e-300)];
        // Huge next to tiny, and single entries that are not zero.
        kinds.push(random(1.0).iter().enumerate().map(|(k, x)| x * [1e150, 1e-150, 0.0][k % 3]).collect());
        kinds.extend([1, per / 2, per - 1].map(|at| (0..per).map(|k| f64::from(u8::from(k == at))).collect()));
        // As parameters, and as what they are with the offset added.
        let shifted: Vec<Vec<f64>> = kinds.iter().map(|theta| family.params_of(theta)).collect();
        for params in kinds.into_iter().chain(shifted) {
            let fine = |x: &f64| !x.is_nan() && *x < f64::INFINITY;
            let logs = family.log_prob(&params, &points).unwrap();
            assert!(logs.iter().all(fine), "{case}: {params:?} {logs:?}");
            assert!(family.log_normaliser(&params).unwrap().iter().all(fine), "{case}: {params:?}");
            let gradient = family.log_prob_vjp(&params, &points, &vec![1.0; count]).unwrap();
            assert!(gradient.iter().all(|g| !g.is_nan()), "{case}: {params:?} {gradient:?}");
            let gradient = family.log_normaliser_vjp(&params, &vec![1.0; family.num_components()]).unwrap();
            assert!(gradient.iter().all(|g| !g.is_nan()), "{case}: {params:?} {gradient:?}");
        }
        let nothing = family.params_of(&vec![0.0; per]);
        let logs = family.log_prob(&nothing, &points).unwrap();
        if let Settings::Histogram(_) = case.settings {
            // Logarithms of weights: zeros are the uniform density.
            let want = -to_f64(&case.region().exact_volume().unwrap()).ln();
            assert!(logs.iter().all(|log| (log - want).abs() < 1e-9 * want.abs().max(1.0)), "{case}");
        } else {
            // Splines and polynomials that vanish everywhere.
            assert!(logs.iter().all(|log| *log == f64::NEG_INFINITY), "{case}");
            assert!(family.density(&nothing).is_err(), "{case}");
        }
        assert!(family.log_prob(&vec![f64::NAN; per], &points).is_err(), "{case}");
    }
}

/// Scaling all values of a component changes nothing, from 1e-150 to 1e150.
#[test]
fn the_scale_of_a_component_does_not_matter() {
    let spline = (Case::new("notched", spline(4, 1)), 2.0);
    let squares = (Case::new("star", sum_of_squares(4, 1, Basis::Orthonormal)), 1.0);
    for (case, factors) in [spline, squares] {
        let family = case.compile();
        let theta = family.random_params(1, 9);
        let points = case.inside(50);
        let want = family.log_prob(&family.params_of(&theta), &points).unwrap();
        let log_integral = |theta: &[f64]| {
            let expansion = family.kind().expand(theta);
            family.kind().normaliser().integrals(std::slice::from_ref(&expansion))[0].ln() + expansion.log_scales[0]
        };
        for scale in [1e-150, 3e-7, 1e-2, 1e150] {
            let scaled: Vec<f64> = [&theta[..1], &theta[1..].iter().map(|x| x * scale).collect::<Vec<_>>()].concat();
            let growth = log_integral(&scaled) - log_integral(&theta);
            assert!((growth / (2.0 * factors * scale.ln()) - 1.0).abs() < 1e-12, "{case}: {scale}");
            // Next to the offset, smaller numbers would lose their digits.
            if scale >= 1e-2 {
                let got = family.log_prob(&family.params_of(&scaled), &points).unwrap();
                assert!(distance(&got, &want) < 1e-11, "{case}: {scale}");
            }
        }
    }
}

/// A square with coefficients 0 takes no part, however large its logit.
#[test]
fn a_vanishing_component_is_not_a_nan() {
    for basis in [Basis::Orthonormal, Basis::Legendre, Basis::Monomial] {
        let family = Case::new("triangle", sum_of_squares(0, 2, basis)).compile();
        let params = family.params_of(&[800.0, 0.0, 0.0, 1.0]);
        let log = family.log_prob(&params, &[0.25, 0.25]).unwrap()[0];
        // A logit of 800 has an ulp of 1e-13.
        assert!((log - 2f64.ln()).abs() < 1e-12, "{log}");
        let density = family.density(&params).unwrap();
        let left = density.probability(&variables(2).1[0].le(ratio(1, 2))).unwrap();
        assert!((left - 0.75).abs() < 1e-12, "{left}");
    }
}

#[test]
fn a_zero_of_the_density_is_minus_infinity() {
    // (x - 1/2)^2 on the interval from 0 to 1, as a spline with derivative 1 and as a Legendre polynomial.
    let (reals, x) = variables(1);
    let unit = Constraint { formula: x[0].between(0, 1), reals, booleans: Vec::new() };
    let theta =
        [(spline(2, 1), vec![0.0, -0.5, 0.5, 1.0, 1.0]), (sum_of_squares(1, 1, Basis::Legendre), vec![0.0, 0.0, 1.0])];
    for (settings, theta) in theta {
        let case = Case { constraint: unit.clone(), ..Case::new("interval", settings) };
        let family = case.compile();
        let logs = family.log_prob(&family.params_of(&theta), &[0.5, 0.25, 1.0]).unwrap();
        assert_eq!(logs[0], f64::NEG_INFINITY, "{case}");
        // The integral is 1/12.
        assert!((logs[1] - 0.75f64.ln()).abs() < 1e-14 && (logs[2] - 3f64.ln()).abs() < 1e-14, "{case}: {logs:?}");
    }
}

#[test]
fn probabilities_of_a_partition_add_up() {
    for (k, case) in catalogue().iter().enumerate() {
        let family = case.compile();
        let params = family.random_params(3, 2);
        let densities = family.densities(&params).unwrap();
        let mut sums = vec![0.0; densities.len()];
        for part in case.partition(20 + k as u64) {
            let cubature = case.cubature(&part, 0);
            let event = family.event(&part).unwrap().probability(&params).unwrap();
            for ((density, together), sum) in densities.iter().zip(event).zip(&mut sums) {
                let alone = density.probability(&part).unwrap();
                let agree = if case.dimension() < 4 { 1e-12 } else { 1e-11 };
                assert!((alone - together).abs() < agree, "{case}: {part} {alone} {together}");
                let want = cubature.mass(density);
                assert!((alone - want).abs() < tolerance(case, 1e-11), "{case}: {part} {alone} {want}");
                *sum += alone;
            }
        }
        // In four dimensions the rules on simplices have weights of both signs and lose a digit or two.
        let exact = if case.dimension() < 4 { 1e-12 } else { 2e-11 };
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < exact), "{case}: {sums:?}");
    }
}

#[test]
fn conditioning_divides_by_the_probability() {
    let mut cuts = 0;
    for (k, case) in catalogue().iter().enumerate() {
        let density = case.density(6);
        let points = case.inside(60);
        for part in &case.partition(70 + k as u64)[..2] {
            let probability = density.probability(part).unwrap();
            if probability < 1e-9 {
                continue;
            }
            let conditioned = density.condition(part).unwrap();
            let holds = Constraint { formula: part.clone(), ..case.constraint.clone() }.membership().unwrap();
            let logs = density.log_prob(&points).into_iter().zip(conditioned.log_prob(&points));
            for (point, (before, after)) in points.chunks(case.dimension()).zip(logs) {
                let want = if holds.contains(point) { before - probability.ln() } else { f64::NEG_INFINITY };
                assert!(after == want || (after - want).abs() < 1e-12 * (1.0 + want.abs()), "{case}: {part} {point:?}");
                cuts += usize::from(want.is_finite());
            }
        }
    }
    assert!(cuts > 300, "{cuts}");
}

#[test]
fn what_cannot_happen_has_probability_zero() {
    let case = Case::new("triangle", given_knots(&[&[(0, 1), (1, 2), (1, 1)], &[(-1, 1), (3, 1)]], 2));
    let (_, x) = variables(2);
    let density = case.density(4);
    for never in [x[0].gt(1), x[0].equals(&x[1]), Formula::no(), x[0].le(0), (&x[0] + &x[1]).ge(1)] {
        assert_eq!(density.probability(&never).unwrap(), 0.0, "{never}");
        assert!(density.condition(&never).is_err(), "{never}");
    }
    for always in [x[0].ge(0), Formula::yes(), x[0].differs(&x[1]), x[0].lt(1)] {
        assert!((density.probability(&always).unwrap() - 1.0).abs() < 1e-14, "{always}");
    }
    assert!(density.probability(&Formula::boolean("b")).is_err());
}

/// In units of a power of two nothing changes but the logarithm of the volume, up to the ends of the range of float64.
#[test]
fn units_do_not_matter() {
    let triangle = |unit: f64| {
        let (reals, x) = variables(2);
        let formula = x[0].ge(0) & x[1].gt(0) & (&x[0] + 3 * &x[1]).lt(from_f64(unit).unwrap());
        Constraint { formula, reals, booleans: Vec::new() }
    };
    for settings in [spline(4, 2), sum_of_squares(3, 2, Basis::Orthonormal), sum_of_squares(3, 1, Basis::Monomial)] {
        let plain = Case::on("unit 1", triangle(1.0), settings.clone());
        let (density, points) = (plain.density(8), plain.inside(30));
        let (logs, samples) = (density.log_prob(&points), density.sample(50, 2).unwrap());
        let share = density.probability(&variables(2).1[0].lt(ratio(1, 4))).unwrap();
        for power in [-900, -40, 40, 900] {
            let unit = 2f64.powi(power);
            let case = Case::on(&format!("unit 2^{power}"), triangle(unit), settings.clone());
            let scaled = |points: &[f64]| points.iter().map(|x| x * unit).collect::<Vec<f64>>();
            let density = case.density(8);
            for (log, plain) in density.log_prob(&scaled(&points)).iter().zip(&logs) {
                let want = plain - 2.0 * f64::from(power) * 2f64.ln();
                assert!((log - want).abs() < 1e-11, "{case}: {log} {want}");
            }
            assert!(distance(&density.sample(50, 2).unwrap(), &scaled(&samples)) < 1e-9, "{case}");
            let part = variables(2).1[0].lt(from_f64(unit / 4.0).unwrap());
            assert!((density.probability(&part).unwrap() - share).abs() < 1e-12, "{case}");
        }
    }
}

/// On a sliver a millionth wide a family of polynomials may be refused as ill-conditioned, but must not be wrong.
#[test]
fn slivers_are_right_or_refused() {
    let mut right = 0;
    for basis in [Basis::Orthonormal, Basis::Legendre, Basis::Monomial] {
        for settings in [sum_of_squares(1, 2, basis), sum_of_squares(3, 1, basis), some_of_squares(4, 1, basis, 3)] {
            let case = Case::new("sliver", settings);
            if let Ok(family) = pal::density::Family::new(&case.region(), &case.settings) {
                let density = family.density(&family.random_params(1, 3)).unwrap();
                let mass = case.cubature(&Formula::yes(), 0).mass(&density);
                // Values change by their own size over the width, which is 1e10 roundings.
                assert!((mass - 1.0).abs() < 1e-7, "{case}: {mass}");
                right += 1;
            }
        }
    }
    assert!(right >= 3, "{right}");
    assert_eq!(place("sliver").reals.len(), 2);
    assert_eq!(Case::new("sliver", spline(2, 1)).region().exact_volume().unwrap(), ratio(1, 1_000_000));
}
