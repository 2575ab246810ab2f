use crate::density::{Family, Knots, SplineSettings, SumOfSquaresSettings};
use crate::formula::reals;
use crate::query::EntropyOptions;
use crate::region::Region;

fn families() -> Vec<Family> {
    let [x, y] = reals(["x", "y"]);
    let cut = x.between(0, 2) & y.between(0, 1) & (&x + &y).le(2) & !(x.between(1, 2) & (4 * &y).le(1));
    let region = Region::new(&cut.into()).unwrap();
    let spline = SplineSettings { knots: Knots::Uniform(5), components: 3 };
    let squares = SumOfSquaresSettings { degree: Some(3), components: 2, ..Default::default() };
    vec![Family::new(&region, &spline.into()).unwrap(), Family::new(&region, &squares.into()).unwrap()]
}

fn options(tolerance: f64) -> EntropyOptions {
    EntropyOptions { tolerance, ..Default::default() }
}

#[test]
fn entropies_are_those_of_single_densities() {
    for family in families() {
        let params = family.random_params(20, 3);
        let exact = family.entropies(&params, &options(1e-9)).unwrap();
        for tolerance in [1e-2, 1e-3, 1e-5, 1e-7] {
            let rows = family.information(&params, &options(tolerance), false).unwrap();
            for (row, exact) in exact.iter().enumerate() {
                let error = (rows.values[row] - exact.value).abs();
                assert!(rows.converged[row] && rows.errors[row] <= tolerance);
                assert!(error <= rows.errors[row] + 1e-9, "{row}, {tolerance}: {error:e} {:e}", rows.errors[row]);
            }
        }
    }
}

#[test]
fn few_digits_on_many_elements_are_within_the_tolerance() {
    let [x, y] = reals(["x", "y"]);
    let cut = x.between(0, 2) & y.between(0, 1) & (&x + &y).le(2) & !(x.between(1, 2) & (4 * &y).le(1));
    let region = Region::new(&cut.into()).unwrap();
    for components in [1, 4] {
        let settings = SplineSettings { knots: Knots::Uniform(12), components };
        let family = Family::new(&region, &settings.into()).unwrap();
        assert!(family.support().elements() >= 100);
        let params = family.random_params(40, 2);
        let exact = family.entropies(&params, &options(1e-6)).unwrap();
        for tolerance in [1e-2, 1e-3, 1e-4] {
            let rows = family.information(&params, &options(tolerance), false).unwrap();
            for (row, exact) in exact.iter().enumerate() {
                let error = (rows.values[row] - exact.value).abs();
                assert!(rows.converged[row] && error <= tolerance, "{components}, {row}, {tolerance}: {error:e}");
            }
        }
    }
}

#[test]
fn derivatives_are_those_of_the_entropies_of_single_densities() {
    for family in families() {
        let params = family.random_params(3, 5);
        let per = family.num_params();
        let rows = family.information(&params, &options(1e-8), true).unwrap();
        let gradient = rows.gradient.unwrap();
        for row in 0..3 {
            for column in (0..per).step_by(5) {
                let entropy = |h: f64| {
                    let mut moved = params[row * per..(row + 1) * per].to_vec();
                    moved[column] += h;
                    family.entropies(&moved, &options(1e-10)).unwrap()[0].value
                };
                let h = 1e-4;
                let want = (entropy(h) - entropy(-h)) / (2.0 * h);
                let got = gradient[row * per + column];
                assert!((got - want).abs() < 1e-5 * (1.0 + want.abs()), "{row} {column}: {got} {want}");
            }
        }
    }
}

#[test]
fn divergences_between_families_are_differences_of_expectations() {
    let all = families();
    for (p, q) in [(&all[0], &all[0]), (&all[0], &all[1]), (&all[1], &all[0])] {
        let (of_p, of_q) = (p.random_params(2, 1), q.random_params(2, 2));
        let found = p.divergence(&of_p, q, &of_q, &options(1e-6), true).unwrap();
        assert!(found.converged.iter().all(|converged| *converged));
        // By samples: the mean of log p - log q.
        let count = 200_000;
        let samples = p.sample(&of_p, count, 9).unwrap();
        for row in 0..2 {
            let points = &samples[row * count * 2..(row + 1) * count * 2];
            let (per_p, per_q) = (p.num_params(), q.num_params());
            let log_p = p.log_prob(&of_p[row * per_p..(row + 1) * per_p], points).unwrap();
            let log_q = q.log_prob(&of_q[row * per_q..(row + 1) * per_q], points).unwrap();
            let terms: Vec<f64> = log_p.iter().zip(log_q).map(|(p, q)| p - q).collect();
            let mean = terms.iter().sum::<f64>() / count as f64;
            let variance = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / count as f64;
            let deviation = (variance / count as f64).sqrt();
            assert!((found.values[row] - mean).abs() < 5.0 * deviation, "{} {mean} {deviation}", found.values[row]);
        }
        // Derivatives, by differences of tight values.
        let value = |a: &[f64], b: &[f64]| p.divergence(a, q, b, &options(1e-9), false).unwrap().values[0];
        let h = 1e-4;
        for (params, gradient, first) in
            [(&of_p, found.gradient.unwrap(), true), (&of_q, found.other_gradient.unwrap(), false)]
        {
            let (one_p, one_q) = (&of_p[..p.num_params()], &of_q[..q.num_params()]);
            for column in (0..params.len() / 2).step_by(7) {
                let moved = |h: f64| {
                    let mut moved = params[..params.len() / 2].to_vec();
                    moved[column] += h;
                    if first { value(&moved, one_q) } else { value(one_p, &moved) }
                };
                let want = (moved(h) - moved(-h)) / (2.0 * h);
                assert!((gradient[column] - want).abs() < 1e-3 * (1.0 + want.abs()), "{} {want}", gradient[column]);
            }
        }
    }
}

#[test]
fn given_a_condition_entropies_are_those_of_conditioned_densities() {
    let [x, _] = reals(["x", "y"]);
    for family in families() {
        let params = family.random_params(4, 8);
        let event = family.event(&(3 * &x).le(2)).unwrap();
        let rows = event.information(&params, &options(1e-7), true).unwrap();
        for (row, density) in event.condition(&params).unwrap().iter().enumerate() {
            assert!((rows.values[row] - density.entropy(&options(1e-9)).value).abs() < 1e-6);
        }
        let gradient = rows.gradient.unwrap();
        for column in 0..family.num_params() {
            let entropy = |h: f64| {
                let mut moved = params[..family.num_params()].to_vec();
                moved[column] += h;
                event.condition(&moved).unwrap()[0].entropy(&options(1e-10)).value
            };
            let want = (entropy(1e-4) - entropy(-1e-4)) / 2e-4;
            assert!((gradient[column] - want).abs() < 1e-4 * (1.0 + want.abs()), "{column}");
        }
    }
}

#[test]
fn what_would_take_too_long_is_refused() {
    let family = &families()[0];
    let options = EntropyOptions { tolerance: 1e-3, evaluations: 100 };
    let error = family.information(&family.random_params(1, 0), &options, false).unwrap_err();
    assert!(error.to_string().contains("evaluations of every density, more than the limit of 1.0e2"), "{error}");
}
