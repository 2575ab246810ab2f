//! Parameters of zero are the uniform density of the support, or close to it, and training can begin there.

mod common;

use std::f64::consts::PI;

use common::densities::{Case, given_bins, given_knots, histogram, spline, sum_of_squares};
use common::{Dice, ratio, variables};
use pal::density::{Basis, Family, HistogramSettings, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Constraint, Formula};
use pal::number::to_f64;
use pal::region::Region;

/// Every kind of family with so many components, for a region with this many variables.
fn kinds(components: usize, n: usize) -> Vec<Settings> {
    let (knots, degree) = if n < 3 { (9, 4) } else { (4, 2) };
    let mut kinds = vec![histogram(knots, components), histogram(2, components)];
    kinds.extend([Basis::Orthonormal, Basis::Legendre, Basis::Monomial].map(|b| sum_of_squares(degree, components, b)));
    kinds.push(sum_of_squares(0, components, Basis::Orthonormal));
    kinds.push(sum_of_squares(1, components, Basis::Orthonormal));
    if n < 4 {
        kinds.extend([spline(knots, components), spline(2, components), spline(3, components)]);
    }
    kinds
}

/// A thin band around the diagonal of the unit cube, where the tilts of all axes add up.
fn diagonal(n: usize) -> Constraint {
    let (reals, x) = variables(n);
    let near = x.iter().skip(1).map(|y| (y - &x[0]).between(ratio(-1, 20), ratio(1, 20)));
    let formula = Formula::all(x.iter().map(|x| x.between(0, 1)).chain(near));
    Constraint { formula, reals, booleans: Vec::new() }
}

fn regions() -> Vec<(String, Constraint)> {
    let names = ["interval", "two intervals", "notched", "star", "boxes", "touching", "notched cube", "cut box 4"];
    let named = names.into_iter().map(|name| (name.to_string(), common::densities::place(name)));
    named.chain([2, 3].map(|n| (format!("diagonal {n}"), diagonal(n)))).collect()
}

/// The log-density of the uniform density.
fn uniform(case: &Case) -> f64 {
    -to_f64(&case.region().exact_volume().unwrap()).ln()
}

/// Points that are uniform on the region of a case.
fn points(case: &Case, count: usize) -> Vec<f64> {
    let flat = SumOfSquaresSettings { degree: Some(0), components: 1, ..Default::default() };
    let family = Family::new(&case.region(), &Settings::SumOfSquares(flat)).unwrap();
    family.density(&[0.0; 2]).unwrap().sample(count, 1).unwrap()
}

/// The least log-density of the module `offset`, relative to the uniform density: a bound for every point of every
/// support. Splines of few knots only come near the tilts that they interpolate.
fn bound(settings: &Settings) -> f64 {
    match settings {
        Settings::SumOfSquares(_) => -(1.25f64.ln()),
        Settings::Histogram(_) => -9.0 / 32.0,
        Settings::Spline(_) => -0.3,
    }
}

#[test]
fn zeros_are_close_to_uniform_on_any_support() {
    for (name, constraint) in regions() {
        let n = constraint.reals.len();
        let places = points(&Case::on(&name, constraint.clone(), spline(2, 1)), 2000);
        for components in [1, 2, 3, 8, 50] {
            for settings in kinds(components, n) {
                let case = Case::on(&name, constraint.clone(), settings);
                let (family, want) = (case.compile(), uniform(&case));
                let logs = family.log_prob(&vec![0.0; family.num_params()], &places).unwrap();
                let least = logs.iter().fold(f64::INFINITY, |a, b| a.min(*b)) - want;
                let mean = logs.iter().sum::<f64>() / logs.len() as f64 - want;
                if components == 1 {
                    assert!(logs.iter().all(|log| (log - want).abs() < 1e-12), "{case}");
                }
                assert!(least > bound(&case.settings) - 1e-9, "{case}: {least}");
                // The mean is at most 0, up to the error of the sample.
                assert!(mean > -0.3 && mean < 0.02, "{case}: {mean}");
                // Small parameters stay near.
                let near: Vec<f64> = family.random_params(1, 5).iter().map(|p| 0.02 * p).collect();
                let logs = family.log_prob(&near, &places).unwrap();
                let moved = logs.iter().sum::<f64>() / logs.len() as f64 - want;
                assert!((moved - mean).abs() < 0.05, "{case}: {mean} {moved}");
            }
        }
    }
}

/// Knots that are wider than the region and not equally spaced.
#[test]
fn given_knots_and_bins() {
    let axes: [&[(i64, i64)]; 2] = [&[(-1, 1), (0, 1), (1, 4), (1, 1)], &[(0, 1), (2, 5), (2, 1)]];
    for components in [1, 2, 7] {
        for settings in [given_knots(&axes, components), given_bins(&axes, components)] {
            let case = Case::new("notched", settings);
            let family = case.compile();
            let logs = family.log_prob(&vec![0.0; family.num_params()], &points(&case, 2000)).unwrap();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64 - uniform(&case);
            assert!(mean.abs() < if components == 1 { 1e-12 } else { 0.3 }, "{case}: {mean}");
        }
    }
}

/// Whether components are close together where there are many: histograms of two bins, and members of a basis that are
/// nearly the same on a thin support.
fn crowded(settings: &Settings) -> bool {
    match settings {
        Settings::Histogram(settings) => settings.knots == Knots::Uniform(3),
        Settings::SumOfSquares(settings) => settings.basis != Basis::Orthonormal,
        Settings::Spline(_) => false,
    }
}

/// Each component has a gradient of its own, and no two components have the same.
#[test]
fn gradients_at_zero_tell_components_apart() {
    for (name, constraint) in regions() {
        let n = constraint.reals.len();
        let all = points(&Case::on(&name, constraint.clone(), spline(2, 1)), 400);
        // Data in a corner of the region.
        let mut rows: Vec<&[f64]> = all.chunks(n).collect();
        rows.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum::<f64>()));
        let data = rows[..40].concat();
        for components in [2, 8, 50] {
            for settings in kinds(components, n) {
                // There is only one polynomial of degree 0, and no way to tell squares of it apart.
                if matches!(settings, Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(0), .. })) {
                    continue;
                }
                let case = Case::on(&name, constraint.clone(), settings);
                let family = case.compile();
                let zeros = vec![0.0; family.num_params()];
                let gradient = family.log_prob_vjp(&zeros, &data, &[1.0 / 40.0; 40]).unwrap();
                let parts: Vec<&[f64]> = gradient.chunks(gradient.len() / components).collect();
                let size = |part: &[f64]| part.iter().fold(0.0f64, |a, g| a.max(g.abs()));
                let largest = size(&gradient);
                let least = if crowded(&case.settings) { 1e-6 } else { 1e-3 };
                assert!(largest > 0.1 / components as f64, "{case}: {largest}");
                for (k, part) in parts.iter().enumerate() {
                    assert!(size(part) > 0.02 * largest, "{case}: component {k}");
                    for other in &parts[..k] {
                        let difference: Vec<f64> = part.iter().zip(*other).map(|(a, b)| a - b).collect();
                        assert!(size(&difference) > least * largest, "{case}: component {k}");
                    }
                }
            }
        }
    }
}

/// Steps along the gradient, from zeros, find two clusters with two components.
#[test]
fn ascent_from_zeros_finds_clusters() {
    let (reals, x) = variables(1);
    let unit = Constraint { formula: x[0].between(0, 1), reals, booleans: Vec::new() };
    let mut dice = Dice::new(4);
    let data: Vec<f64> = (0..200).map(|k| 0.2 + 0.6 * f64::from(k % 2) + 0.05 * (dice.unit() - 0.5)).collect();
    for settings in [spline(14, 2), histogram(16, 2), sum_of_squares(7, 2, Basis::Orthonormal)] {
        let case = Case::on("unit interval", unit.clone(), settings);
        let family = case.compile();
        let mut params = vec![0.0; family.num_params()];
        for _ in 0..300 {
            let gradient = family.log_prob_vjp(&params, &data, &[1.0 / 200.0; 200]).unwrap();
            params.iter_mut().zip(&gradient).for_each(|(p, g)| *p += 0.3 * g);
        }
        let mean = family.log_prob(&params, &data).unwrap().iter().sum::<f64>() / 200.0;
        // The density of two intervals of width 0.05 has the mean log-density log 10.
        assert!(mean > 0.8, "{case}: {mean}");
    }
}

/// The formula of the module `offset` on the unit interval, against a histogram computed by hand.
#[test]
fn histograms_have_the_documented_tilts() {
    let (reals, x) = variables(1);
    let region = Region::new(&Constraint { formula: x[0].between(0, 1), reals, booleans: Vec::new() }).unwrap();
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let tilt = |pair: usize, x: f64| 0.75 * (PI * x - 2.0 * PI * golden * pair as f64).cos();
    let middles: Vec<f64> = (0..4).map(|bin| (f64::from(bin) + 0.5) / 4.0).collect();
    let normalised = |h: &dyn Fn(f64) -> f64| {
        let weights: Vec<f64> = middles.iter().map(|x| h(*x).exp()).collect();
        let mean = weights.iter().sum::<f64>() / 4.0;
        weights.iter().map(|w| w / mean).collect::<Vec<f64>>()
    };
    // One constant component and two pairs.
    let mut components = vec![vec![1.0; 4]];
    for pair in 0..2 {
        components.push(normalised(&|x| tilt(pair, x)));
        components.push(normalised(&|x| -tilt(pair, x)));
    }
    let settings = HistogramSettings { knots: Knots::Uniform(5), components: 5 };
    let family = Family::new(&region, &settings.into()).unwrap();
    let logs = family.log_prob(&vec![0.0; family.num_params()], &middles).unwrap();
    for (bin, log) in logs.iter().enumerate() {
        let want = components.iter().map(|q| q[bin]).sum::<f64>() / 5.0;
        assert!((log - want.ln()).abs() < 1e-14, "{bin}: {log} {}", want.ln());
    }
}

/// The square of a spline with many knots is the documented density, in two variables on the unit square.
#[test]
fn splines_have_the_documented_tilts() {
    let (reals, x) = variables(2);
    let square = Formula::all(x.iter().map(|x| x.between(0, 1)));
    let region = Region::new(&Constraint { formula: square, reals, booleans: Vec::new() }).unwrap();
    let settings = SplineSettings { knots: Knots::Uniform(65), components: 4 };
    let family = Family::new(&region, &settings.into()).unwrap();
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let tilt = |pair: f64, axis: f64, x: f64| 0.375 * (PI * x - 2.0 * PI * golden * pair * (axis + 1.0)).cos();
    // The integral of e^(sign h) along an axis, by the midpoint rule.
    let integral = |sign: f64, pair: f64, axis: f64| {
        (0..20_000).map(|k| (sign * tilt(pair, axis, (f64::from(k) + 0.5) / 2e4)).exp()).sum::<f64>() / 2e4
    };
    let points = [0.1, 0.9, 0.5, 0.5, 0.987, 0.321, 0.0, 1.0];
    let logs = family.log_prob(&vec![0.0; family.num_params()], &points).unwrap();
    for (point, log) in points.chunks(2).zip(logs) {
        let mut want = 0.0;
        for (sign, pair) in [(1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (-1.0, 1.0)] {
            let factors = [0.0, 1.0]
                .map(|axis| (sign * tilt(pair, axis, point[axis as usize])).exp() / integral(sign, pair, axis));
            want += factors[0] * factors[1] / 4.0;
        }
        assert!((log - want.ln()).abs() < 1e-7, "{point:?}: {log} {}", want.ln());
    }
}

/// The offset of sums of squares: the constant, and members of the basis with a root mean square of a half.
#[test]
fn squares_have_the_documented_parts() {
    let (reals, x) = variables(1);
    let region = Region::new(&Constraint { formula: x[0].between(0, 1), reals, booleans: Vec::new() }).unwrap();
    for basis in [Basis::Orthonormal, Basis::Legendre] {
        let settings = SumOfSquaresSettings { degree: Some(3), components: 3, basis, subset: None };
        let family = Family::new(&region, &settings.into()).unwrap();
        for at in [0.0, 0.3, 1.0] {
            // 1, and 1 + f and 1 - f with f = sqrt(3) (2 x - 1) / 2. The mean of f^2 is 1/4.
            let f: f64 = 3f64.sqrt() * (2.0 * at - 1.0) / 2.0;
            let want = (1.0 + (1.0 + f).powi(2) + (1.0 - f).powi(2)) / (3.0 + 2.0 * 0.25);
            let log = family.log_prob(&vec![0.0; family.num_params()], &[at]).unwrap()[0];
            assert!((log - want.ln()).abs() < 1e-13, "{basis:?} {at}: {log} {}", want.ln());
        }
    }
}
