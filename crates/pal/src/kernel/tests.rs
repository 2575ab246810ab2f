//! Kernel mixtures against the exact integrator of polynomials, finite differences and counts of samples.

use super::head::KernelRow;
use super::integral::Kernel;
use super::pieces::positive_mass;
use super::{KernelFamily, KernelSettings, log_prob_each};
use crate::formula::{Formula, Linear, Var, reals};
use crate::moments::{Method, integrate};
use crate::number::{self, Rational};
use crate::polynomial::Polynomial;
use crate::query::{EntropyOptions, ModeOptions, ModeStop};
use crate::random::Stream;
use crate::region::{Region, RegionMap};

/// A room with a slanted obstacle, a wall and a hole in the middle of it.
fn room() -> (Vec<Var>, Formula) {
    let [x, y] = reals(["x", "y"]);
    let block = (x.clone() + y.clone()).le(7) & (x.clone() - y.clone()).le(2) & x.ge(2) & y.le(5);
    let wall = x.between(6, 7) & y.ge(1);
    let formula = x.between(0, 10) & y.between(0, 6) & !block & !wall;
    (Var::declare(["x", "y"]).to_vec(), formula)
}

fn region(formula: Formula) -> Region {
    Region::new(&formula.into()).unwrap()
}

fn family(components: usize) -> KernelFamily {
    KernelFamily::new(&region(room().1), &KernelSettings { components }).unwrap()
}

/// Parameters of the size that networks have: with their gains they move kernels far from where zeros put them.
fn random_params(family: &KernelFamily, rows: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, 0);
    (0..rows * family.num_params()).map(|_| 0.25 * stream.normal()).collect()
}

/// The mass of a kernel of dyadic numbers by the exact integrator: its polynomial over the region and the sides of its
/// square.
fn reference(kernel: &Kernel, formula: &Formula) -> f64 {
    let exact = |x: f64| number::from_f64(x).unwrap();
    let [x, y] = ["x", "y"].map(|name| Linear::from(Var::new(name)));
    // The box is [0, 10] x [0, 6]; v = (2 y - low - high) / side.
    let v1 = x.scaled(&Rational::from_parts(1.into(), 5u8.into())) - Linear::from(Rational::ONE);
    let v2 = y.scaled(&Rational::from_parts(1.into(), 3u8.into())) - Linear::from(Rational::ONE);
    let [a, b, c] = kernel.factor.map(exact);
    let u1 = (v1 - Linear::from(exact(kernel.place[0]))).scaled(&(Rational::ONE / &a));
    let u2 = (v2 - Linear::from(exact(kernel.place[1])) - u1.scaled(&b)).scaled(&(Rational::ONE / &c));
    let square = u1.between(-1, 1) & u2.between(-1, 1);
    let bell = |u: Linear| {
        let square = Polynomial::from(u).pow(2).unwrap();
        (Polynomial::from(Rational::ONE) - square).pow(3).unwrap()
    };
    let product = bell(u1).mul(&bell(u2)).unwrap();
    let integral = integrate(&region(formula.clone() & square), &product, Method::Exact).unwrap();
    // dv = dy / 15, du = dv / (a c).
    let height = super::triweight::HEIGHT;
    integral.value * height * height / (15.0 * kernel.factor[0] * kernel.factor[2])
}

#[test]
fn masses_are_those_of_the_exact_integrator() {
    let (formula, family) = (room().1, family(1));
    let mut stream = Stream::new(3, 0);
    // Sixteenths, so that every number is exact.
    let mut between = |low: i32, high: i32| f64::from(low + (stream.bits() % (high - low + 1) as u64) as i32) / 16.0;
    for k in 0..60 {
        let direction = if k % 3 == 0 { 0.0 } else { between(-20, 20) };
        let (place, scale) = ([between(-18, 18), between(-18, 18)], [between(1, 16), between(1, 16)]);
        let kernel = Kernel { place, factor: [scale[0], scale[1] * direction, scale[1]] };
        let expected = reference(&kernel, &formula);
        let (fast, positive) = (kernel.mass(&family.0.boundary), positive_mass(&family.0.pieces, &kernel));
        assert!((fast - expected).abs() < 1e-13, "{kernel:?}: {fast} and {expected}");
        assert!((positive - expected).abs() <= 1e-12 * expected, "{kernel:?}: {positive} and {expected}");
    }
}

#[test]
fn small_masses_keep_their_digits_as_sums_of_positive_terms() {
    let family = family(1);
    // A kernel in the wall, of which a sliver reaches the free part.
    for reach in [1.0 / 1024.0, 1.0 / 65536.0] {
        let kernel = Kernel { place: [0.3, 0.5], factor: [0.1 + reach, 0.0, 0.125] };
        let u = 0.1 / kernel.factor[0];
        // Both sides of the wall are x = 6 and 7, or v = 0.2 and 0.4; the mass beyond u on both sides, by Gauss nodes.
        let gauss = crate::density::gauss::Gauss::with_points(4);
        let node = |(t, w): (&f64, &f64)| w * super::triweight::value(u + t * (1.0 - u));
        let expected = 2.0 * (1.0 - u) * gauss.nodes.iter().zip(&gauss.weights).map(node).sum::<f64>();
        let mass = positive_mass(&family.0.pieces, &kernel);
        assert!((mass / expected - 1.0).abs() < 1e-9, "{mass:e} and {expected:e}");
    }
}

#[test]
fn densities_integrate_to_one() {
    let variables = room().0;
    let [x, y] = [0, 1].map(|j| Linear::from(variables[j].clone()));
    let family = family(3);
    let params = random_params(&family, 3, 5);
    // A sum over small squares, by Gauss nodes, of the density inside the region: those at walls limit the accuracy.
    let (steps, gauss) = (300, crate::density::gauss::Gauss::with_points(2));
    let mut points = Vec::new();
    let at = |k: usize, t: f64, side: f64| (k as f64 + t) * side / 300.0;
    for (i, j) in (0..steps).flat_map(|i| (0..steps).map(move |j| (i, j))) {
        for (s, t) in gauss.nodes.iter().flat_map(|s| gauss.nodes.iter().map(move |t| (s, t))) {
            points.extend([at(i, *s, 10.0), at(j, *t, 6.0)]);
        }
    }
    for row in params.chunks(family.num_params()) {
        let values = family.log_prob(row, &points).unwrap();
        let sum: f64 = values.iter().map(|value| value.exp()).sum::<f64>() * 60.0 / values.len() as f64;
        assert!((sum - 1.0).abs() < 3e-3, "{sum}");
    }
    // Probabilities of a partition add up.
    let parts = [x.le(3), x.between(3, 8) & y.le(x.clone()), x.between(3, 8) & !y.le(x.clone()), x.ge(8)];
    let mut sums = vec![0.0; 3];
    for part in parts {
        let event = family.within(&part).unwrap();
        let values = family.probability(&event, &params).unwrap();
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{sums:?}");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let family = family(3);
    let event = family.within(&Linear::from(Var::new("x")).le(4)).unwrap();
    let count = 6;
    let params = random_params(&family, count, 7);
    let points = family.sample(&params, 1, 1).unwrap();
    let rows = family.log_prob_rows(&params, &points, true).unwrap();
    let plain = family.log_prob_rows(&params, &points, false).unwrap();
    assert!(rows.log_prob.iter().zip(&plain.log_prob).all(|(a, b)| (a - b).abs() < 1e-12));
    let (_, gradient) = family.probability_with_gradient(&event, &params).unwrap();
    let (per, h) = (family.num_params(), 1e-5);
    for column in 0..per {
        let moved = |by: f64| {
            let mut params = params.clone();
            params.iter_mut().skip(column).step_by(per).for_each(|param| *param += by);
            let log_prob = family.log_prob_rows(&params, &points, false).unwrap().log_prob;
            (log_prob, family.probability(&event, &params).unwrap())
        };
        let (above, below) = (moved(h), moved(-h));
        for row in 0..count {
            let expected = (above.0[row] - below.0[row]) / (2.0 * h);
            let found = rows.gradient[row * per + column];
            assert!((found - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{row} {column}: {found} {expected}");
            let expected = (above.1[row] - below.1[row]) / (2.0 * h);
            assert!((gradient[row * per + column] - expected).abs() < 1e-8, "{row} {column}");
        }
    }
    for row in 0..count {
        for j in 0..2 {
            let moved = |by: f64| {
                let mut point = points[2 * row..2 * row + 2].to_vec();
                point[j] += by;
                family.log_prob(&params[row * per..(row + 1) * per], &point).unwrap()[0]
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            let found = rows.point_gradient[2 * row + j];
            assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{row} {j}: {found} {expected}");
        }
    }
}

#[test]
fn conditions_are_restrictions() {
    let family = family(2);
    let condition = Linear::from(Var::new("y")).ge(4);
    let event = family.within(&condition).unwrap();
    let params = random_params(&family, 1, 9);
    let points = event.sample(&params, 50, 3).unwrap();
    assert!(points.chunks(2).all(|point| point[1] >= 4.0));
    let (joint, given) = (family.log_prob(&params, &points).unwrap(), event.log_prob(&params, &points).unwrap());
    let log_mass = family.probability(&event, &params).unwrap()[0].ln();
    assert!(joint.iter().zip(&given).all(|(joint, given)| (joint - log_mass - given).abs() < 1e-11));
    // An event that is far away from all kernels still has its digits.
    let corner = family.within(&(Linear::from(Var::new("x")).ge(9) & Linear::from(Var::new("y")).le(1))).unwrap();
    let row = KernelRow::new(&params, &family.0.offset);
    let expected: f64 = row.kernels.iter().zip(&row.weights).map(|(k, w)| w * positive_mass(&corner.0.pieces, k)).sum();
    let expected = (expected + row.uniform * corner.volume() / family.volume()) / family.normaliser(&row);
    let found = family.probability(&corner, &params).unwrap()[0];
    assert!((found / expected - 1.0).abs() < 1e-10);
    let impossible = family.within(&Linear::from(Var::new("x")).ge(11)).unwrap();
    assert_eq!(family.probability(&impossible, &params).unwrap(), [0.0]);
    assert!(impossible.sample(&params, 1, 1).is_err());
}

#[test]
fn samples_have_the_frequencies_of_their_events() {
    let family = family(3);
    let (count, params) = (20_000, random_params(&family, 2, 11));
    let samples = family.sample(&params, count, 5).unwrap();
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one_thread.install(|| family.sample(&params, count, 5).unwrap()), samples);
    let inside = family.contains_batch(&samples);
    assert!(inside.iter().all(|inside| *inside));
    let [x, y] = ["x", "y"].map(|name| Linear::from(Var::new(name)));
    for i in 0..5 {
        for j in 0..3 {
            let (low, high) = ([2 * i, 2 * j], [2 * i + 2, 2 * j + 2]);
            let event = family.within(&(x.between(low[0], high[0]) & y.between(low[1], high[1]))).unwrap();
            let expected = family.probability(&event, &params).unwrap();
            for (row, p) in expected.iter().enumerate() {
                let within =
                    |point: &[f64]| (0..2).all(|k| point[k] > f64::from(low[k]) && point[k] < f64::from(high[k]));
                let rows = &samples[2 * count * row..2 * count * (row + 1)];
                let found = rows.chunks(2).filter(|point| within(point)).count() as f64 / count as f64;
                let sigma = (p * (1.0 - p) / count as f64).sqrt();
                assert!((found - p).abs() < 5.0 * sigma + 1e-9, "{i} {j} {row}: {found} and {p}");
            }
        }
    }
}

#[test]
fn zeros_are_close_to_uniform_and_bad_input_is_named() {
    let family = family(16);
    let zeros = vec![0.0; family.num_params()];
    let samples = family.sample(&zeros, 10, 1).unwrap();
    assert!(family.log_prob(&zeros, &samples).unwrap().iter().all(|x| x.is_finite()));
    // The mean of the log-density over the region, against that of the uniform density.
    let uniform = region(room().1);
    let points: Vec<f64> = (0..4000)
        .flat_map(|k| {
            let mut stream = Stream::new(2, k);
            [10.0 * stream.unit(), 6.0 * stream.unit()]
        })
        .collect();
    let values = family.log_prob(&zeros, &points).unwrap();
    let inside: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    let mean = inside.iter().sum::<f64>() / inside.len() as f64;
    assert!((mean + uniform.volume().unwrap().ln()).abs() < 0.3, "{mean}");
    let mut bad = zeros.clone();
    bad[3] = f64::NAN;
    let error = family.log_prob(&bad, &points).unwrap_err().to_string();
    assert!(error.contains("parameter 3 of row 0"), "{error}");
    for extreme in [1e3, -1e3, 1e300, -1e300] {
        let params = vec![extreme; family.num_params()];
        let rows = family.log_prob_rows(&params, &samples[..2], true).unwrap();
        assert!(rows.log_prob[0].is_finite() && rows.gradient.iter().all(|g| g.is_finite()), "{extreme}");
    }
    let [z] = reals(["z"]);
    let error = KernelFamily::new(&region(z.between(0, 1)), &KernelSettings::default()).unwrap_err().to_string();
    assert!(error.contains("two variables"), "{error}");
    assert!(KernelFamily::new(&uniform, &KernelSettings { components: 0 }).is_err());
}

#[test]
fn marginals_means_and_probabilities_agree() {
    let family = family(3);
    let params = random_params(&family, 2, 13);
    let means = family.mean_and_covariance(&params).unwrap();
    let [x, y] = ["x", "y"].map(|name| Linear::from(Var::new(name)));
    for (axis, variable) in [x, y].into_iter().enumerate() {
        let marginals = family.marginals(&params, axis).unwrap();
        for (row, marginal) in marginals.iter().enumerate() {
            assert!((marginal.mean() - means[row].0[axis]).abs() < 1e-9, "{axis} {row}");
            assert!((marginal.variance() / means[row].1[3 * axis] - 1.0).abs() < 1e-8, "{axis} {row}");
        }
        // The boundary knows the same probabilities.
        for at in [1, 2, 3, 4, 5] {
            let event = family.within(&variable.le(at)).unwrap();
            let expected = family.probability(&event, &params).unwrap();
            for (marginal, expected) in marginals.iter().zip(expected) {
                let found = marginal.cdf(f64::from(at));
                assert!((found - expected).abs() < 1e-11, "{axis} {at}: {found} and {expected}");
            }
        }
    }
    let polynomials = ["x", "y", "x^2*y"].map(|text| Polynomial::parse(text).unwrap());
    let found = family.expectation(&params, &polynomials).unwrap();
    for row in 0..2 {
        assert!(
            (found[3 * row] - means[row].0[0]).abs() < 1e-10 && (found[3 * row + 1] - means[row].0[1]).abs() < 1e-10
        );
        let count = 20_000;
        let samples = family.sample(&params[row * family.num_params()..][..family.num_params()], count, 3).unwrap();
        let values: Vec<f64> = samples.chunks(2).map(|p| p[0] * p[0] * p[1]).collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count as f64;
        assert!((found[3 * row + 2] - mean).abs() < 5.0 * (variance / count as f64).sqrt());
    }
}

#[test]
fn entropies_are_those_of_samples_and_have_gradients() {
    let family = family(3);
    let params = random_params(&family, 2, 17);
    let options = EntropyOptions { tolerance: 1e-8, ..EntropyOptions::default() };
    let (entropies, gradient) = family.entropies_with_gradient(&params, &options).unwrap();
    let (per, count) = (family.num_params(), 20_000);
    for (row, entropy) in entropies.iter().enumerate() {
        assert!(entropy.converged && entropy.error <= 1e-8);
        let params = &params[row * per..(row + 1) * per];
        let samples = family.sample(params, count, 3).unwrap();
        let values = family.log_prob(params, &samples).unwrap();
        let mean = -values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v + mean) * (v + mean)).sum::<f64>() / count as f64;
        assert!((entropy.value - mean).abs() < 5.0 * (variance / count as f64).sqrt(), "{} {mean}", entropy.value);
    }
    let h = 1e-4;
    for column in 0..per {
        let moved = |by: f64| {
            let mut params = params.clone();
            params.iter_mut().skip(column).step_by(per).for_each(|param| *param += by);
            family.entropies(&params, &options).unwrap()
        };
        let (above, below) = (moved(h), moved(-h));
        for row in 0..2 {
            let expected = (above[row].value - below[row].value) / (2.0 * h);
            assert!((gradient[row * per + column] - expected).abs() < 1e-4, "{row} {column}: {expected}");
        }
    }
}

#[test]
fn modes_are_above_all_points_and_certified() {
    let family = family(4);
    let params = random_params(&family, 4, 19);
    let modes = family.modes(&params, &ModeOptions::default()).unwrap();
    let points: Vec<f64> =
        (0..200 * 120).flat_map(|k| [f64::from(k % 200) * 0.05, f64::from(k / 200) * 0.05]).collect();
    for (mode, params) in modes.iter().zip(params.chunks(family.num_params())) {
        assert!(mode.stop == ModeStop::Certified && mode.gap <= 1e-6, "{mode:?}");
        assert!(family.contains(&mode.point));
        assert!((family.log_prob(params, &mode.point).unwrap()[0] - mode.log_density).abs() < 1e-12);
        let best = family.log_prob(params, &points).unwrap().into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(mode.log_upper >= best && mode.log_density >= best - 1e-6, "{mode:?} {best}");
    }
}

#[test]
fn rows_of_batches_are_their_own_regions() {
    let map = RegionMap::new(&region(room().1)).unwrap();
    let [x, y] = reals(["x", "y"]);
    let square = region(x.between(-2, 2) & y.between(-2, 2));
    let family = KernelFamily::new(&square, &KernelSettings { components: 3 }).unwrap();
    let centres = [1.0, 1.0, 5.5, 3.0, 6.0, 5.0, 9.5, 0.5, 4.0, 3.0];
    let headings = [1.0, 0.0, 3.0, 4.0, 0.0, 1.0, -1.0, 0.5, 1.0, 1.0];
    let windows = map.windows(&centres, &[2.0], Some(&headings), None).unwrap();
    let rows = family.on_regions(&windows).unwrap();
    let params = random_params(&family, rows.len(), 23);
    let per = family.num_params();
    let mut points = Vec::new();
    for (k, row) in rows.iter().enumerate() {
        let alone = KernelFamily::new(&windows.region(k).unwrap(), &KernelSettings { components: 3 }).unwrap();
        assert!((row.volume() / alone.volume() - 1.0).abs() < 1e-12);
        // The same region cut in fractions, in the same box.
        let ends: Vec<[Rational; 2]> = vec![[Rational::from(-2), Rational::from(2)]; 2];
        let exact = family.within(&windows.region_within(k, &ends).unwrap().constraint().formula).unwrap();
        let mixture = KernelRow::new(&params[k * per..(k + 1) * per], &family.0.offset);
        for kernel in &mixture.kernels {
            assert!((kernel.mass(&row.0.boundary) - kernel.mass(&exact.0.boundary)).abs() < 1e-12);
            assert!((positive_mass(&row.0.pieces, kernel) - kernel.mass(&exact.0.boundary)).abs() < 1e-12);
        }
        let samples = row.sample(&params[k * per..(k + 1) * per], 20, 1).unwrap();
        assert!(samples.chunks(2).all(|point| windows.row_contains(k, point)));
        points.extend_from_slice(&samples[..2]);
    }
    let families: Vec<&KernelFamily> = rows.iter().collect();
    let each = log_prob_each(&families, &params, &points, true).unwrap();
    for (k, row) in rows.iter().enumerate() {
        let alone = row.log_prob(&params[k * per..(k + 1) * per], &points[2 * k..2 * k + 2]).unwrap()[0];
        assert!((each.log_prob[k] - alone).abs() < 1e-12);
    }
    // A window inside of an obstacle has no density.
    let buried = map.windows(&[6.5, 4.0], &[0.1], None, None).unwrap();
    let small = KernelFamily::new(&region(x.between(-1, 1) & y.between(-1, 1)), &KernelSettings::default()).unwrap();
    assert!(small.on_regions(&buried).unwrap_err().to_string().contains("row 0"));
}
