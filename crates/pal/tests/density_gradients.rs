//! Gradients of log-densities and normalisers, compared with dual numbers through the documented formulas and with
//! finite differences.

mod common;

use common::densities::oracle::{Dual, Oracle};
use common::densities::{Case, catalogue, distance, given_knots, some_of_squares, spline, sum_of_squares};
use common::{Dice, ratio, variables};
use pal::density::{Basis, Family};
use pal::formula::{Constraint, Formula};

/// Regions of ordinary size, where oracle and library compute with the same coordinates to the last digits.
fn cases() -> Vec<Case> {
    let axes: [&[(i64, i64)]; 2] = [&[(-1, 1), (0, 1), (1, 4), (1, 1)], &[(0, 1), (2, 5), (2, 1)]];
    [
        ("interval", spline(5, 2)),
        ("two intervals", sum_of_squares(4, 3, Basis::Orthonormal)),
        ("notched", spline(4, 3)),
        ("triangle", given_knots(&axes, 2)),
        ("boxes", spline(2, 1)),
        ("touching", sum_of_squares(2, 2, Basis::Legendre)),
        ("star", sum_of_squares(4, 2, Basis::Orthonormal)),
        ("notched", sum_of_squares(3, 2, Basis::Monomial)),
        ("box", sum_of_squares(1, 1, Basis::Orthonormal)),
        ("simplex 3", spline(2, 2)),
        ("notched cube", sum_of_squares(2, 2, Basis::Orthonormal)),
        ("cut box 4", sum_of_squares(1, 2, Basis::Monomial)),
    ]
    .map(|(region, settings)| Case::new(region, settings))
    .into()
}

/// Random values and coefficients, which are parameters with the offset added; from the second row on some are zero.
fn theta(family: &Family, row: usize) -> Vec<f64> {
    let mut dice = Dice::new(900 + row as u64);
    let mut theta = family.random_params(row + 1, 17)[row * family.num_params()..].to_vec();
    theta.iter_mut().for_each(|p| *p = if row > 0 && dice.chance(25) { 0.0 } else { *p });
    theta
}

fn duals(theta: &[f64], direction: usize) -> Vec<Dual> {
    let dual = |(k, value): (usize, &f64)| Dual { value: *value, slope: f64::from(u8::from(k == direction)) };
    theta.iter().enumerate().map(dual).collect()
}

fn cotangent(count: usize) -> Vec<f64> {
    let mut dice = Dice::new(3);
    (0..count).map(|_| 2.0 * dice.unit() - 1.0).collect()
}

#[test]
fn values_are_those_of_the_formulas() {
    for case in cases() {
        let (family, oracle, points) = (case.compile(), Oracle::new(&case), case.inside(25));
        for row in 0..3 {
            let theta = theta(&family, row);
            let params = family.params_of(&theta);
            let values = |duals: Vec<Dual>| duals.iter().map(|dual| dual.value).collect::<Vec<f64>>();
            let want = values(oracle.log_prob(&duals(&theta, 0), &points));
            let got = family.log_prob(&params, &points).unwrap();
            // Near a zero of a square the logarithm enlarges rounding errors.
            let near = |(got, want): (&f64, &f64)| (got - want).abs() < 1e-10 || (got.exp() - want.exp()).abs() < 1e-11;
            assert!(got.iter().zip(&want).all(near), "{case} {row}: {got:?} {want:?}");
            let want: Vec<f64> = values(oracle.normalisers(&duals(&theta, 0))).iter().map(|z| z.ln()).collect();
            let got = family.log_normaliser(&params).unwrap();
            assert!(distance(&got, &want) < 1e-11, "{case} {row}: {got:?} {want:?}");
        }
    }
}

#[test]
fn gradients_are_those_of_dual_numbers() {
    for case in cases() {
        let (family, oracle, points) = (case.compile(), Oracle::new(&case), case.inside(12));
        for row in 0..2 {
            let theta = theta(&family, row);
            let params = family.params_of(&theta);
            let weights = cotangent(points.len() / case.dimension());
            let got = family.log_prob_vjp(&params, &points, &weights).unwrap();
            let slope = |k: usize| {
                let logs = oracle.log_prob(&duals(&theta, k), &points);
                logs.iter().zip(&weights).map(|(log, w)| log.slope * w).sum::<f64>()
            };
            let want: Vec<f64> = (0..params.len()).map(slope).collect();
            assert!(distance(&got, &want) < 1e-9, "{case} {row}: {got:?} {want:?}");
            let weights = cotangent(family.num_components());
            let got = family.log_normaliser_vjp(&params, &weights).unwrap();
            let slope = |k: usize| {
                let integrals = oracle.normalisers(&duals(&theta, k));
                integrals.iter().zip(&weights).map(|(z, w)| z.ln().slope * w).sum::<f64>()
            };
            let want: Vec<f64> = (0..params.len()).map(slope).collect();
            assert!(distance(&got, &want) < 1e-10, "{case} {row}: {got:?} {want:?}");
        }
    }
}

/// The central difference of order four of a function of the parameters.
fn differences(params: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let h = 1e-3;
    let moved = |k: usize, by: f64| {
        let mut params = params.to_vec();
        params[k] += by;
        f(&params)
    };
    let slope = |k| (8.0 * (moved(k, h) - moved(k, -h)) - (moved(k, 2.0 * h) - moved(k, -2.0 * h))) / (12.0 * h);
    (0..params.len()).map(slope).collect()
}

#[test]
fn gradients_are_limits_of_differences() {
    let mut subsets = vec![Case::new("star", some_of_squares(4, 2, Basis::Orthonormal, 6))];
    subsets.push(Case::new("triangle", some_of_squares(3, 1, Basis::Monomial, 4)));
    // The regions of extreme size are included: gradients are as accurate there as anywhere.
    for case in catalogue().into_iter().chain(subsets) {
        let family = case.compile();
        if family.num_params() > 60 {
            continue;
        }
        let theta: Vec<f64> = theta(&family, 0).iter().map(|p| p + 0.2 * p.signum()).collect();
        let params = family.params_of(&theta);
        // Away from zeros of the squares, where differences of logarithms approximate no derivatives.
        let (n, all) = (case.dimension(), case.inside(20));
        let logs = family.log_prob(&params, &all).unwrap();
        let highest = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let good = all.chunks(n).zip(&logs).filter(|(_, log)| **log > highest - 3.0);
        let points: Vec<f64> = good.flat_map(|(point, _)| point).copied().collect();
        let weights = cotangent(points.len() / n);
        let sum = |values: Vec<f64>, weights: &[f64]| values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>();
        let got = family.log_prob_vjp(&params, &points, &weights).unwrap();
        let want = differences(&params, |params| sum(family.log_prob(params, &points).unwrap(), &weights));
        let size = want.iter().fold(1.0f64, |a, b| a.max(b.abs()));
        assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6 * size), "{case}: {got:?} {want:?}");
        let weights = cotangent(family.num_components());
        let got = family.log_normaliser_vjp(&params, &weights).unwrap();
        let want = differences(&params, |params| sum(family.log_normaliser(params).unwrap(), &weights));
        let size = want.iter().fold(1.0f64, |a, b| a.max(b.abs()));
        assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6 * size), "{case}: {got:?} {want:?}");
    }
}

/// t^2 (1 - t)^2 on the two ends of [0, 1] only, where it is a millionth of what it is in the middle: compiled
/// integrals are differences of much larger numbers there. The integral over [0, e] is e^3/3 - e^4/2 + e^5/5.
#[test]
fn where_digits_cancel() {
    let e = 1e-3f64;
    let integral = 2.0 * (e.powi(3) / 3.0 - e.powi(4) / 2.0 + e.powi(5) / 5.0);
    for n in [1, 2] {
        let (reals, x) = variables(n);
        let ends = x.iter().map(|x| x.between(0, ratio(1, 1000)) | x.between(ratio(999, 1000), 1));
        let constraint = Constraint { formula: Formula::all(ends), reals, booleans: Vec::new() };
        let mut families = vec![(spline(2, 1), [vec![0.0], [0.0, 0.0, 1.0, -1.0].repeat(n)].concat())];
        if n == 1 {
            // t (1 - t) = 1/6 - P_2(2 t - 1) / 6
            families
                .push((sum_of_squares(2, 1, Basis::Legendre), vec![0.0, 1.0 / 6.0, 0.0, -1.0 / (6.0 * 5f64.sqrt())]));
        }
        for (settings, theta) in families {
            let case = Case::on("ends", constraint.clone(), settings);
            let family = case.compile();
            let params = family.params_of(&theta);
            let got = family.log_normaliser(&params).unwrap()[0];
            // The Legendre series itself cancels to a thousandth.
            let exact = if n == 1 { 1e-11 } else { 1e-12 };
            assert!((got - n as f64 * integral.ln()).abs() < exact, "{case}: {got}");
            let log = family.log_prob(&params, &vec![5e-4; n]).unwrap()[0];
            let want = n as f64 * ((5e-4f64 * (1.0 - 5e-4)).powi(2) / integral).ln();
            assert!((log - want).abs() < 2.0 * exact, "{case}: {log} {want}");
            let oracle = Oracle::new(&case);
            let got = family.log_normaliser_vjp(&params, &[1.0]).unwrap();
            let want: Vec<f64> =
                (0..theta.len()).map(|k| oracle.normalisers(&duals(&theta, k))[0].ln().slope).collect();
            assert!(distance(&got, &want) < 1e-9, "{case}: {got:?} {want:?}");
        }
    }
}

/// One parameter vector for all points, or one for each: the same gradients, added up.
#[test]
fn batches_add_up() {
    for case in [Case::new("star", spline(3, 2)), Case::new("notched", sum_of_squares(3, 2, Basis::Orthonormal))] {
        let (family, points) = (case.compile(), case.inside(9));
        let count = points.len() / 2;
        let params = family.random_params(1, 5);
        let weights = cotangent(count);
        let together = family.log_prob_vjp(&params, &points, &weights).unwrap();
        let apart = family.log_prob_vjp(&params.repeat(count), &points, &weights).unwrap();
        let sum: Vec<f64> = (0..params.len()).map(|k| apart.iter().skip(k).step_by(params.len()).sum()).collect();
        assert!(distance(&sum, &together) < 1e-12, "{case}");
        let logs = family.log_prob(&params.repeat(count), &points).unwrap();
        assert!(distance(&logs, &family.log_prob(&params, &points).unwrap()) < 1e-14, "{case}");
    }
}

#[test]
fn points_outside_contribute_nothing() {
    let case = Case::new("notched", spline(3, 2));
    let family = case.compile();
    let params = family.random_params(1, 5);
    let (inside, outside) = ([0.2, 0.1], [0.7, 0.9]);
    let want = family.log_prob_vjp(&params, &inside, &[2.0]).unwrap();
    let got = family.log_prob_vjp(&params, &[inside, outside].concat(), &[2.0, 5.0]).unwrap();
    assert!(distance(&got, &want) < 1e-14 && want.iter().any(|g| g.abs() > 1e-3));
    assert!(family.log_prob_vjp(&params, &outside, &[5.0]).unwrap().iter().all(|g| *g == 0.0));
    // The gradient along a common factor of all values of an axis is 0: it does not change the density.
    let along: f64 = (1..7).map(|k| (family.offset()[k] + params[k]) * want[k]).sum();
    assert!(along.abs() < 1e-12, "{along}");
}
