//! Means, covariances, expectations of polynomials and entropies, against closed forms and an integrator of its own.

mod common;

use common::densities::cubature::Cubature;
use common::densities::{Case, PLANAR, catalogue, given_knots, histogram, in_float64, place, spline, sum_of_squares};
use common::{ratio, variables};
use pal::density::Density;
use pal::density::{Basis, Settings};
use pal::formula::{Constraint, Formula};
use pal::number::to_f64;
use pal::polynomial::Polynomial;
use pal::query::EntropyOptions;

/// In units of the box around the region.
fn tolerance(case: &Case) -> f64 {
    1e-11 + 100.0 * case.resolution
}

#[test]
fn means_and_covariances() {
    for case in catalogue() {
        let n = case.dimension();
        let (family, rule) = (case.compile(), case.cubature(&Formula::yes(), 2));
        let params = family.random_params(2, 12);
        let (means, covariances) = (family.mean(&params).unwrap(), family.covariance(&params).unwrap());
        let ends: Vec<(f64, f64)> = case.ends().iter().map(in_float64).collect();
        for (row, density) in family.densities(&params).unwrap().iter().enumerate() {
            let (mean, covariance) = (density.mean(), density.covariance());
            // In coordinates from 0 to 1 over the box.
            let masses = rule.masses(density);
            let share = |point: &[f64], j: usize| (point[j] - ends[j].0) / ends[j].1;
            let sum = |f: &dyn Fn(&[f64]) -> f64| {
                rule.points.chunks(n).zip(&masses).map(|(point, mass)| mass * f(point)).sum::<f64>()
            };
            let want: Vec<f64> = (0..n).map(|j| sum(&|point| share(point, j))).collect();
            for i in 0..n {
                for got in [mean[i], means[row * n + i]] {
                    let got = (got - ends[i].0) / ends[i].1;
                    assert!((got - want[i]).abs() < tolerance(&case), "{case}: mean of {i}: {got} {}", want[i]);
                }
                for j in 0..n {
                    let want = sum(&|point| (share(point, i) - want[i]) * (share(point, j) - want[j]));
                    for got in [covariance[i * n + j], covariances[(row * n + i) * n + j]] {
                        let got = got / (ends[i].1 * ends[j].1);
                        assert!((got - want).abs() < tolerance(&case), "{case}: covariance of {i}, {j}: {got} {want}");
                    }
                }
                let marginal = density.marginal(case.constraint.reals[i].name()).unwrap();
                let off = (marginal.mean() - mean[i]) / ends[i].1;
                assert!(off.abs() < tolerance(&case), "{case}: mean of the marginal {off}");
                let off = (marginal.variance() - covariance[i * n + i]) / (ends[i].1 * ends[i].1);
                assert!(off.abs() < 1e-11, "{case}: variance of the marginal {off}");
            }
        }
    }
}

#[test]
fn expectations_of_polynomials() {
    for case in catalogue() {
        let family = case.compile();
        let params = family.params_of(&family.random_params(2, 13));
        let ends = case.ends();
        // Powers of coordinates that run from 0 to 1 over the box, written in the user's.
        let unit = |j: usize| {
            let (low, high) = &ends[j];
            format!("((x{} - ({low})) / ({}))", j + 1, high - low)
        };
        let last = case.dimension() - 1;
        let texts = [
            "1".to_string(),
            format!("{}^4 - 2*{} + 1/3", unit(0), unit(last)),
            format!("{}*{}^2 - {}^3", unit(0), unit(last), unit(last)),
        ];
        let polynomials = texts.each_ref().map(|text| Polynomial::parse(text).unwrap());
        let together = family.expectation(&polynomials).unwrap().values(&params).unwrap();
        let ends: Vec<(f64, f64)> = ends.iter().map(in_float64).collect();
        let rule = case.cubature(&Formula::yes(), 4);
        for (row, density) in family.densities(&params).unwrap().iter().enumerate() {
            let want = rule.expectation(density, |point| {
                let [x, y] = [0, last].map(|j| (point[j] - ends[j].0) / ends[j].1);
                [1.0, x.powi(4) - 2.0 * y + 1.0 / 3.0, x * y * y - y.powi(3)]
            });
            for (k, polynomial) in polynomials.iter().enumerate() {
                let alone = density.expectation(polynomial).unwrap();
                // In four variables the weights of its cubature have both signs.
                let more = if case.dimension() == 4 { 4.0 } else { 1.0 };
                for (got, more) in [(alone, more), (together[row * 3 + k], 1.0)] {
                    assert!((got - want[k]).abs() < more * tolerance(&case), "{case}: {} {got} {}", texts[k], want[k]);
                }
            }
        }
        assert!(family.expectation(&[Polynomial::parse("unknown").unwrap()]).is_err());
    }
}

/// The uniform density: parameters of zero, which are splines with values of 1 and derivatives of 0, or the constant
/// polynomial, or equal weights of all bins.
fn uniform(case: &Case) -> Density {
    let family = case.compile();
    let theta: Vec<f64> = match &case.settings {
        Settings::Spline(_) => {
            let knots =
                case.knots().iter().flat_map(|axis| [vec![1.0; axis.len()], vec![0.0; axis.len()]].concat()).collect();
            [vec![0.0], knots].concat()
        }
        Settings::SumOfSquares(settings) => {
            // A member z of the basis of monomials stands for sqrt(z + 0.1) - sqrt(0.1).
            let one = if settings.basis == Basis::Monomial { (1.0 + 0.1f64.sqrt()).powi(2) - 0.1 } else { 1.0 };
            (0..family.num_params()).map(|k| if k == 1 { one } else { 0.0 }).collect()
        }
        Settings::Histogram(_) => vec![0.0; family.num_params()],
    };
    assert!(family.params_of(&theta).iter().all(|p| p.abs() < 1e-15), "{case}: {:?}", family.offset());
    family.density(&vec![0.0; family.num_params()]).unwrap()
}

#[test]
fn the_uniform_density_of_every_region() {
    for region in PLANAR.iter().chain(&["interval", "two intervals", "notched cube", "cut box 4", "simplex 5"]) {
        let flat = [sum_of_squares(0, 1, Basis::Orthonormal), sum_of_squares(2, 1, Basis::Legendre)];
        for settings in flat.into_iter().chain([spline(3, 1), histogram(2, 1)]) {
            let case = Case::new(region, settings);
            if case.dimension() > 3 && matches!(case.settings, Settings::Spline(_)) {
                continue;
            }
            let density = uniform(&case);
            let volume = to_f64(&case.region().exact_volume().unwrap());
            let logs = density.log_prob(&case.inside(10));
            assert!(logs.iter().all(|log| (log + volume.ln()).abs() < 1e-12), "{case}: {logs:?} {}", -volume.ln());
            let entropy = density.entropy(&EntropyOptions::default());
            assert!((entropy.value - volume.ln()).abs() < 1e-12, "{case}: {entropy:?} {}", volume.ln());
            assert!(entropy.converged && entropy.error < 1e-6, "{case}: {entropy:?}");
        }
    }
}

#[test]
fn moments_of_the_triangle() {
    let factorial = |n: u32| f64::from((1..=n).product::<u32>());
    for settings in [sum_of_squares(0, 1, Basis::Monomial), spline(4, 1)] {
        let case = Case::new("triangle", settings);
        let density = uniform(&case);
        assert!(density.mean().iter().all(|m| (m - 1.0 / 3.0).abs() < 1e-14), "{case}: {:?}", density.mean());
        let want = [1.0 / 18.0, -1.0 / 36.0, -1.0 / 36.0, 1.0 / 18.0];
        let off = density.covariance().iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-14, "{case}: {:?}", density.covariance());
        for (a, b) in [(0, 0), (5, 0), (2, 3), (1, 4)] {
            let got = density.expectation(&Polynomial::parse(&format!("x1^{a} * x2^{b}")).unwrap()).unwrap();
            let want = 2.0 * factorial(a) * factorial(b) / factorial(a + b + 2);
            assert!((got / want - 1.0).abs() < 1e-13, "{case}: {a} {b} {got} {want}");
        }
    }
}

/// 3 x^2 on [0, 1], and its product with itself on the square.
#[test]
fn the_entropy_of_a_square_of_a_coordinate() {
    let root = 12f64.sqrt();
    for (n, theta) in
        [(1, vec![0.0, 0.5, 1.0 / root]), (2, vec![0.0, 0.25, 0.5 / root, 0.5 / root, 0.0, 1.0 / 12.0, 0.0])]
    {
        let (reals, x) = variables(n);
        let constraint =
            Constraint { formula: Formula::all(x.iter().map(|x| x.between(0, 1))), reals, booleans: Vec::new() };
        let case = Case { constraint, ..Case::new("box", sum_of_squares(n as u16, 1, Basis::Legendre)) };
        let family = case.compile();
        let density = family.density(&family.params_of(&theta)).unwrap();
        assert!((density.log_prob(&vec![0.5; n])[0] - n as f64 * 0.75f64.ln()).abs() < 1e-13);
        let want = n as f64 * (2.0 / 3.0 - 3f64.ln());
        let entropy = density.entropy(&EntropyOptions { tolerance: 1e-9, ..EntropyOptions::default() });
        assert!((entropy.value - want).abs() <= entropy.error && entropy.error <= 1e-9, "{entropy:?} {want}");
    }
}

/// The entropy by this file's own rules, on a fine grid.
fn numeric_entropy(case: &Case, density: &Density, refinement: i64) -> f64 {
    let fine = case.knots().into_iter().map(|knots| {
        let parts = knots.windows(2).flat_map(|pair| {
            let at = |k: i64| &pair[0] + (&pair[1] - &pair[0]) * ratio(k, refinement);
            (0..refinement).map(at).collect::<Vec<_>>()
        });
        parts.chain(knots.last().cloned()).collect()
    });
    let (total, axis) = case.degree();
    let rule = Cubature::new(&case.constraint, &fine.collect::<Vec<_>>(), (total + 4, axis + 4));
    let logs = density.log_prob(&rule.points);
    let terms = logs.iter().zip(&rule.weights).filter(|(log, _)| log.is_finite());
    -terms.map(|(log, weight)| weight * log.exp() * log).sum::<f64>()
}

#[test]
fn entropies_agree_with_a_fine_grid() {
    let cases = [
        ("two intervals", sum_of_squares(4, 2, Basis::Orthonormal)),
        ("interval", spline(5, 2)),
        ("star", sum_of_squares(3, 2, Basis::Orthonormal)),
        ("notched", spline(3, 2)),
        ("triangle", given_knots(&[&[(0, 1), (1, 3), (1, 1)], &[(0, 1), (1, 1)]], 1)),
        ("touching", sum_of_squares(2, 1, Basis::Legendre)),
        ("tiny", spline(2, 2)),
        ("far", sum_of_squares(2, 2, Basis::Orthonormal)),
    ];
    for (region, settings) in cases {
        let case = Case::new(region, settings);
        let density = case.density(21);
        let fine = if case.dimension() == 1 { 64 } else { 8 };
        let (coarse, want) = (numeric_entropy(&case, &density, fine / 2), numeric_entropy(&case, &density, fine));
        let entropy = density.entropy(&EntropyOptions::default());
        assert!(entropy.converged && entropy.error <= 1e-6, "{case}: {entropy:?}");
        let allowed = entropy.error + 2.0 * (want - coarse).abs() + 1e3 * case.resolution;
        assert!(allowed < 1e-3 && (entropy.value - want).abs() < allowed, "{case}: {entropy:?} {want} {coarse}");
        // Less effort gives a larger error, which still covers the truth.
        let rough = density.entropy(&EntropyOptions { tolerance: 1e-2, evaluations: 1000 });
        assert!((rough.value - entropy.value).abs() <= rough.error + entropy.error, "{case}: {rough:?} {entropy:?}");
    }
}

/// H = sum of P_i H_i - P_i log P_i over the parts of a partition.
#[test]
fn entropy_adds_up_over_parts() {
    let options = EntropyOptions { tolerance: 1e-8, ..EntropyOptions::default() };
    for case in [Case::new("notched", spline(3, 2)), Case::new("star", sum_of_squares(2, 2, Basis::Orthonormal))] {
        let density = case.density(31);
        let whole = density.entropy(&options);
        let (mut sum, mut error) = (0.0, whole.error);
        for part in case.partition(5) {
            let p = density.probability(&part).unwrap();
            if p > 0.0 {
                let inner = density.condition(&part).unwrap().entropy(&options);
                sum += p * (inner.value - p.ln());
                error += p * inner.error;
            }
        }
        assert!((whole.value - sum).abs() < error + 1e-11 && error < 1e-5, "{case}: {whole:?} {sum} {error}");
    }
}

/// The same parameters on a region a million times smaller: the entropy falls by the logarithm of the areas.
#[test]
fn entropy_follows_the_scale() {
    let tiny = Case::new("tiny", spline(3, 2));
    let (reals, x) = variables(2);
    let formula = x[0].gt(0) & x[1].gt(0) & (&x[0] + 2 * &x[1]).lt(1);
    let large = Case { constraint: Constraint { formula, reals, ..place("tiny") }, ..Case::new("tiny", spline(3, 2)) };
    let [small, large] = [tiny, large].map(|case| case.density(3).entropy(&EntropyOptions::default()).value);
    assert!((large - small - 2.0 * 1e6f64.ln()).abs() < 1e-10, "{large} {small}");
}
