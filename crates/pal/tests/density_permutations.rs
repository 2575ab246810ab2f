//! The order in which variables are declared is the order of coordinates and parameters, and of nothing else.

mod common;

use common::densities::{Case, given_bins, given_knots, histogram, in_float64, spline, sum_of_squares};
use common::{Dice, variables};
use pal::density::{Basis, HistogramSettings, Knots, Settings, SplineSettings};
use pal::formula::{Constraint, Linear};
use pal::moments::Exponents;
use pal::number::Rational;
use pal::number::from_f64;
use pal::polynomial::Polynomial;
use pal::query::{EntropyOptions, ModeOptions};

/// `order[k]` is the old place of the new variable k.
fn orders(n: usize) -> Vec<Vec<usize>> {
    match n {
        2 => vec![vec![1, 0]],
        _ => vec![vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]],
    }
}

fn permuted<T: Clone>(items: &[T], order: &[usize]) -> Vec<T> {
    order.iter().map(|k| items[*k].clone()).collect()
}

/// The same family with its variables declared in another order.
fn reorder(case: &Case, order: &[usize]) -> Case {
    let reals = permuted(&case.constraint.reals, order);
    let settings = match &case.settings {
        Settings::Spline(SplineSettings { knots: Knots::At(lists), components }) => {
            Settings::Spline(SplineSettings { knots: Knots::At(permuted(lists, order)), components: *components })
        }
        Settings::Histogram(HistogramSettings { knots: Knots::At(lists), components }) => {
            Settings::Histogram(HistogramSettings { knots: Knots::At(permuted(lists, order)), components: *components })
        }
        other => other.clone(),
    };
    let constraint = Constraint { reals, ..case.constraint.clone() };
    Case { name: format!("{case} {order:?}"), constraint, settings, resolution: case.resolution }
}

/// The values or coefficients of the same density in the new order.
fn reorder_theta(case: &Case, theta: &[f64], order: &[usize]) -> Vec<f64> {
    let components = match &case.settings {
        Settings::Spline(settings) => settings.components,
        Settings::SumOfSquares(settings) => settings.components,
        Settings::Histogram(settings) => settings.components,
    };
    let length = |axis: &Vec<Rational>| match &case.settings {
        Settings::Histogram(_) => axis.len() - 1,
        _ => 2 * axis.len(),
    };
    let lengths: Vec<usize> = case.knots().iter().map(length).collect();
    let component = |part: &[f64]| -> Vec<f64> {
        let rest = &part[1..];
        let moved: Vec<f64> = match &case.settings {
            Settings::Spline(_) | Settings::Histogram(_) => {
                let start = |axis: usize| lengths[..axis].iter().sum::<usize>();
                order.iter().flat_map(|axis| rest[start(*axis)..][..lengths[*axis]].to_vec()).collect()
            }
            Settings::SumOfSquares(settings) => {
                let set = Exponents::total_degree(order.len(), settings.degree.unwrap()).unwrap();
                let old: Vec<Vec<u16>> = set.iter().map(<[u16]>::to_vec).collect();
                // The new exponent alpha belongs to the old one with alpha[k] at place order[k].
                let place = |alpha: &[u16]| {
                    let mut before = vec![0; alpha.len()];
                    order.iter().zip(alpha).for_each(|(k, a)| before[*k] = *a);
                    old.iter().position(|beta| *beta == before).unwrap()
                };
                set.iter().map(|alpha| rest[place(alpha)]).collect()
            }
        };
        [&part[..1], &moved].concat()
    };
    theta.chunks(theta.len() / components).flat_map(component).collect()
}

fn cases() -> Vec<Case> {
    let axes: [&[(i64, i64)]; 2] = [&[(-1, 1), (0, 1), (1, 4), (1, 1)], &[(0, 1), (2, 5), (2, 1)]];
    [
        ("notched", spline(4, 2)),
        ("triangle", given_knots(&axes, 2)),
        ("star", sum_of_squares(3, 2, Basis::Legendre)),
        ("boxes", sum_of_squares(3, 2, Basis::Monomial)),
        ("sliver", spline(3, 1)),
        ("notched cube", spline(2, 2)),
        ("simplex 3", spline(3, 1)),
        ("notched cube", sum_of_squares(2, 2, Basis::Legendre)),
        ("triangle", given_bins(&axes, 2)),
        ("notched cube", histogram(2, 2)),
    ]
    .map(|(region, settings)| Case::new(region, settings))
    .into()
}

#[test]
fn answers_are_permuted_with_the_variables() {
    for case in cases() {
        let n = case.dimension();
        let family = case.compile();
        let theta = family.random_params(1, 71);
        let density = family.density(&family.params_of(&theta)).unwrap();
        let points = case.inside(30);
        let logs = density.log_prob(&points);
        let condition = case.half_space(&mut Dice::new(3)).le(0);
        for order in orders(n) {
            let other = reorder(&case, &order);
            let family = other.compile();
            let moved = family.density(&family.params_of(&reorder_theta(&case, &theta, &order))).unwrap();
            let moved_points: Vec<f64> = points.chunks(n).flat_map(|point| permuted(point, &order)).collect();
            for (a, b) in moved.log_prob(&moved_points).iter().zip(&logs) {
                assert!(a == b || (a.exp() - b.exp()).abs() < 1e-10 * (1.0 + b.exp()), "{other}: {a} {b}");
            }
            let scale: Vec<f64> = case.ends().iter().map(|ends| in_float64(ends).1).collect();
            let (mean, covariance) = (density.mean(), density.covariance());
            let (moved_mean, moved_covariance) = (moved.mean(), moved.covariance());
            for (k, from) in order.iter().enumerate() {
                assert!((moved_mean[k] - mean[*from]).abs() < 1e-12 * scale[*from], "{other}: {moved_mean:?} {mean:?}");
                for (l, to) in order.iter().enumerate() {
                    let off = moved_covariance[k * n + l] - covariance[from * n + to];
                    assert!(off.abs() < 1e-12 * scale[*from] * scale[*to], "{other}: {off}");
                }
            }
            let (p, q) = (density.probability(&condition).unwrap(), moved.probability(&condition).unwrap());
            assert!((p - q).abs() < 1e-12, "{other}: {p} {q}");
            let polynomial = Polynomial::parse("x1^2 - 3*x1*x2 + 1").unwrap();
            let (p, q) = (density.expectation(&polynomial).unwrap(), moved.expectation(&polynomial).unwrap());
            assert!((p - q).abs() < 1e-12 * (1.0 + p.abs()), "{other}: {p} {q}");
        }
    }
}

#[test]
fn names_mean_the_same_in_any_order() {
    for case in cases() {
        let family = case.compile();
        let theta = family.random_params(1, 72);
        let density = family.density(&family.params_of(&theta)).unwrap();
        for order in orders(case.dimension()).into_iter().take(2) {
            let other = reorder(&case, &order);
            let family = other.compile();
            let moved = family.density(&family.params_of(&reorder_theta(&case, &theta, &order))).unwrap();
            for (axis, var) in case.constraint.reals.iter().enumerate() {
                let (low, length) = in_float64(&case.ends()[axis]);
                let [a, b] = [&density, &moved].map(|density| density.marginal(var.name()).unwrap());
                for part in [0.13, 0.37, 0.71] {
                    let y = low + part * length;
                    assert!((a.density(y) - b.density(y)).abs() * length < 1e-10, "{other}: density of {var}");
                    assert!((a.cdf(y) - b.cdf(y)).abs() < 1e-12, "{other}: distribution function of {var}");
                    // Where there is next to no density a quantile may move.
                    let (u, v) = (a.quantile(part).unwrap(), b.quantile(part).unwrap());
                    assert!((a.cdf(u) - a.cdf(v)).abs() < 1e-11, "{other}: quantile of {var} {u} {v}");
                }
                let joint =
                    [&density, &moved].map(|density| density.marginal_density(&[var.name()], &[low + 0.37 * length]));
                let [a, b] = joint.map(|joint| joint.unwrap()[0]);
                assert!((a - b).abs() * length < 1e-10, "{other}: {a} {b}");
            }
            let [a, b] = [&density, &moved].map(|density| density.mode(&ModeOptions::default()).unwrap());
            assert!((a.log_density - b.log_density).abs() < 2.1e-6, "{other}: {a:?} {b:?}");
            let [a, b] = [&density, &moved]
                .map(|density| density.entropy(&EntropyOptions { tolerance: 1e-4, ..EntropyOptions::default() }));
            assert!((a.value - b.value).abs() < a.error + b.error, "{other}: {a:?} {b:?}");
            let (low, length) = in_float64(&case.ends()[0]);
            let at = low + 0.29 * length;
            let rest = Linear::from(case.constraint.reals[1].clone()).le(from_f64(density.mean()[1]).unwrap());
            let shares =
                [&density, &moved].map(|density| density.given(&[("x1", at)]).unwrap().probability(&rest).unwrap());
            assert!((shares[0] - shares[1]).abs() < 1e-10, "{other}: {shares:?}");
        }
    }
}

/// Samples come in the declared order: first coordinates are those of the first variable.
#[test]
fn samples_come_in_the_declared_order() {
    let (reals, x) = variables(2);
    let formula = x[0].between(0, 1) & x[1].between(10, 11);
    let case =
        Case { constraint: Constraint { formula, reals, booleans: Vec::new() }, ..Case::new("box", spline(2, 1)) };
    for (order, first) in [(vec![0, 1], 0.0), (vec![1, 0], 10.0)] {
        let samples = reorder(&case, &order).density(1).sample(100, 1).unwrap();
        assert!(samples.chunks(2).all(|point| point[0] >= first && point[0] <= first + 1.0), "{order:?}");
    }
}
