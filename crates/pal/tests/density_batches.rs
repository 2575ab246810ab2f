//! Queries for many parameter vectors at once give the same answers as queries one by one.

mod common;

use common::densities::{Case, distance, given_knots, in_float64, spline, sum_of_squares};
use pal::density::Density;
use pal::density::{Basis, Family};
use pal::polynomial::Polynomial;
use pal::query::EntropyOptions;

const ROWS: usize = 4;

fn cases() -> [(Case, Family, Vec<f64>, Vec<Density>); 5] {
    [
        ("notched", spline(4, 2)),
        ("star", sum_of_squares(4, 3, Basis::Orthonormal)),
        ("triangle", given_knots(&[&[(0, 1), (1, 3), (1, 1)], &[(-1, 1), (3, 1)]], 1)),
        ("boxes", sum_of_squares(2, 2, Basis::Monomial)),
        ("notched cube", spline(2, 2)),
    ]
    .map(|(region, settings)| {
        let case = Case::new(region, settings);
        let family = case.compile();
        let params = family.random_params(ROWS, 5);
        let densities = family.densities(&params).unwrap();
        (case, family, params, densities)
    })
}

/// A value of the first variable at which its density is positive.
fn value(case: &Case) -> f64 {
    let (low, length) = in_float64(&case.ends()[0]);
    low + 0.28 * length
}

#[test]
fn moments() {
    for (case, family, params, densities) in cases() {
        let each = |f: &dyn Fn(&Density) -> Vec<f64>| densities.iter().flat_map(f).collect::<Vec<f64>>();
        assert!(distance(&family.mean(&params).unwrap(), &each(&Density::mean)) < 1e-11, "{case}");
        assert!(distance(&family.covariance(&params).unwrap(), &each(&Density::covariance)) < 1e-11, "{case}");
        let polynomials = ["x1^3 - x2", "2*x1*x2 + 1"].map(|text| Polynomial::parse(text).unwrap());
        let alone = each(&|density| polynomials.iter().map(|p| density.expectation(p).unwrap()).collect());
        let together = family.expectation(&polynomials).unwrap().values(&params).unwrap();
        assert!(distance(&together, &alone) < 1e-11, "{case}");
    }
}

#[test]
fn marginals_and_conditionals() {
    for (case, family, params, densities) in cases() {
        let at = value(&case);
        let points: Vec<f64> = case.inside(6);
        let pairs: Vec<f64> = points.chunks(case.dimension()).flat_map(|point| [point[1], point[0]]).collect();
        let marginals = family.marginals("x1", &params).unwrap();
        let joint = family.marginal_density(&["x2", "x1"], &params, &pairs).unwrap();
        let given = family.given(&[("x1", at)], &params).unwrap();
        let rest: Vec<f64> = points.chunks(case.dimension()).flat_map(|point| point[1..].to_vec()).collect();
        assert_eq!((marginals.len(), given.len()), (ROWS, ROWS), "{case}");
        for (row, density) in densities.iter().enumerate() {
            let alone = density.marginal("x1").unwrap();
            assert_eq!(alone.density(at), marginals[row].density(at), "{case}");
            assert_eq!(alone.quantile(0.3), marginals[row].quantile(0.3), "{case}");
            let count = pairs.len() / 2;
            assert_eq!(
                density.marginal_density(&["x2", "x1"], &pairs).unwrap(),
                joint[row * count..][..count],
                "{case}"
            );
            assert_eq!(density.given(&[("x1", at)]).unwrap().log_prob(&rest), given[row].log_prob(&rest), "{case}");
        }
        // One parameter vector for each point, or one for all.
        let n = case.dimension();
        let logs = family.log_prob(&params, &points[..ROWS * n]).unwrap();
        let alone: Vec<f64> =
            densities.iter().zip(points.chunks(n)).map(|(density, y)| density.log_prob(y)[0]).collect();
        assert!(distance(&logs, &alone) < 1e-14, "{case}: {logs:?} {alone:?}");
    }
}

#[test]
fn events() {
    for (case, family, params, densities) in cases() {
        for condition in &case.partition(9)[..2] {
            let event = family.event(condition).unwrap();
            let together = event.probability(&params).unwrap();
            let points = case.inside(30);
            let Ok(conditioned) = event.condition(&params) else {
                assert!(together.contains(&0.0), "{case}: {condition}");
                continue;
            };
            for ((density, p), after) in densities.iter().zip(together).zip(conditioned) {
                assert!((density.probability(condition).unwrap() - p).abs() < 1e-12, "{case}: {condition}");
                let alone = density.condition(condition).unwrap().log_prob(&points);
                for (a, b) in after.log_prob(&points).iter().zip(alone) {
                    assert!(*a == b || (a - b).abs() < 1e-12, "{case}: {condition} {a} {b}");
                }
            }
        }
    }
}

#[test]
fn entropies() {
    for (case, family, params, densities) in cases() {
        let options = EntropyOptions { tolerance: 1e-3, ..EntropyOptions::default() };
        let together = family.entropies(&params, &options).unwrap();
        let alone: Vec<_> = densities.iter().map(|density| density.entropy(&options)).collect();
        assert_eq!(together, alone, "{case}");
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    for (case, family, params, _) in cases() {
        let (n, points) = (case.dimension(), case.inside(3));
        assert!(family.log_prob(&params[1..], &points).is_err() && family.log_prob(&[], &points).is_err(), "{case}");
        assert!(
            family.log_prob(&params, &points[..n]).is_err() && family.log_prob(&params, &points[1..]).is_err(),
            "{case}"
        );
        assert!(family.density(&params).is_err(), "{case}");
        let one = &params[..family.num_params()];
        assert!(family.log_prob_vjp(one, &points[..n], &[1.0, 1.0]).is_err(), "{case}");
        assert!(family.log_normaliser_vjp(one, &[]).is_err(), "{case}");
        assert!(
            family.marginals("x9", &params).is_err() && family.marginal_density(&[], &params, &[]).is_err(),
            "{case}"
        );
        assert!(family.marginal_density(&["x1", "x1"], &params, &[0.1, 0.1]).is_err(), "{case}");
        assert_eq!(family.log_prob(one, &[]).unwrap(), [0.0; 0], "{case}");
        assert_eq!(family.sample(&params, 0, 1).unwrap(), [0.0; 0], "{case}");
    }
}
