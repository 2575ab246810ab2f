//! The Student t head against the closed form of its densities, at extreme outputs, and at its starting values.

use burn::tensor::{DType, Device, Tensor};
use pal::density::{Basis, Family, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, reals};
use pal::number::Rational;
use pal::region::Region;
use pal_burn::{PalLayer, StudentTHead, matrix};

fn layer(phi: Formula, knots: Knots, components: usize) -> PalLayer {
    let settings = Settings::Spline(SplineSettings { knots, components });
    let family = Family::new(&Region::new(&phi.into()).unwrap(), &settings).unwrap();
    PalLayer::new(&family, &Device::flex(), DType::F64).unwrap()
}

/// The outputs that stand for a location, a scale and a tail of the only component on the only axis, from 0 to 20, where
/// the distance of the knots around the location is `distance`.
fn outputs(location: f64, scale: f64, tail: f64, distance: f64) -> [f64; 3] {
    let inverse_softplus = |y: f64| (y.exp() - 1.0).ln();
    let golden = (1.0 + 5.0f64.sqrt()) / 2.0;
    let offset = (0.5 + 1.0 / golden).fract() - 0.5;
    let fraction = (scale - 0.35 * distance) / 20.0;
    let scale = ((fraction / (1.0 - fraction)).ln() + 3.0f64.ln()) / 2.0;
    [(location - 10.0) / 10.0 - offset, scale, inverse_softplus(tail - 0.6) - inverse_softplus(1.4)]
}

/// The distribution function of Student's t with four degrees of freedom.
fn student4(t: f64) -> f64 {
    let q = 1.0 + t * t / 4.0;
    0.5 + 3.0 / 8.0 * t / q.sqrt() * (1.0 - t * t / q / 12.0)
}

/// With a tail of 5/2 a component is a t distribution with four degrees of freedom, truncated to the constraint.
#[test]
fn components_are_truncated_t_distributions() {
    let [x] = reals(["x"]);
    let equal = Knots::Uniform(81);
    // The same number of knots, closer in the middle; the mean width of a bin is still a quarter.
    let spread = |k: i64| Rational::from(10) + Rational::from((k - 40) * (k - 40).abs()) / Rational::from(160);
    let denser = Knots::At(vec![(0..81).map(spread).collect()]);
    // There 9.2 lies between the knots at 9.1 and 9.24375, whose neighbours are 0.15 and 0.1375 away in the mean.
    let local = 0.15 - 0.0125 * (9.2 - 9.1) / 0.14375;
    for (knots, distance, tolerance) in [(equal, 0.25, 2e-5), (denser, local, 2e-4)] {
        // A hole from 12 to 13.
        let layer = layer(x.between(0, 20) & !(x.gt(12) & x.lt(13)), knots, 1);
        let head = StudentTHead::new(&layer).unwrap();
        assert_eq!(head.num_params(), 4);
        // At 9.2, with u = (x - 9.2) / 2 and t = u sqrt(4 / 2.5).
        let [m, w, a] = outputs(9.2, 2.0, 2.5, distance);
        let params = head.params(matrix(&[0.7, m, w, a], 4, &Device::flex(), DType::F64));
        assert_eq!(params.dims(), [1, layer.num_params()]);
        let factor = (4.0f64 / 2.5).sqrt() / 2.0;
        let t = |x: f64| (x - 9.2) * factor;
        let mass = student4(t(20.0)) - student4(t(13.0)) + student4(t(12.0)) - student4(t(0.0));
        let points = [0.1, 3.0, 8.1, 9.2, 9.9, 11.9, 13.3, 19.5];
        let found = pal_burn::to_f64_vec(layer.log_prob(params, &layer.points(&points).unwrap()));
        for (x, found) in points.iter().zip(found) {
            let density = 3.0 / 8.0 * (1.0 + t(*x).powi(2) / 4.0).powf(-2.5) * factor / mass;
            assert!((found - density.ln()).abs() < tolerance, "{x}: {found} instead of {}", density.ln());
        }
    }
}

/// The numbers were computed with 40 digits from the formula; python/tests/test_student_t.py has the same ones.
#[test]
fn rust_and_python_have_the_same_head() {
    let [x, y] = reals(["x", "y"]);
    let knots = [&[0, 1, 2, 4, 8][..], &[0, 1, 2, 3]].map(|axis| axis.iter().map(|p| Rational::from(*p)).collect());
    let layer = layer(x.between(0, 8) & y.between(0, 3), Knots::At(knots.into()), 2);
    let head = StudentTHead::new(&layer).unwrap();
    let outputs = [0.25, 0.5, -1.0, 0.75, -0.25, 0.5, -2.0, -0.5, -1.25, 2.0, -0.5, 0.125, -3.0, 1.0];
    let params = [
        &[0.25][..],
        &[0.138141532702, 0.216834162568, 0.359597895317, 1.0, 0.367124467469],
        &[0.116980625717, 0.207699365378, 0.381235343779, 0.783649611479, -0.39033039765],
        &[1.0, 0.994098061459, 0.789683759271, 0.603905316827],
        &[0.141196173469, -0.150312937165, -0.214474100995, -0.154229249695],
        &[-0.5],
        &[1.0, 0.951984002985, 0.89710316152, 0.779567583296, 0.567160615503],
        &[-0.0867605882336, -0.104085614625, -0.114309048072, -0.117543177707, -0.0915406708681],
        &[0.034002540219, 0.193483620052, 1.0, 0.125705833117],
        &[0.0462186048677, 0.424855243711, -0.804610192796, -0.250254948483],
    ];
    let found = pal_burn::to_f64_vec(head.params(matrix(&outputs, 14, &Device::flex(), DType::F64)));
    let expected = params.concat();
    assert_eq!(found.len(), expected.len());
    for ((found, offset), expected) in found.iter().zip(layer.family().offset()).zip(&expected) {
        let found = found + offset;
        assert!((found - expected).abs() < 1e-11 * expected.abs(), "{found} instead of {expected}");
    }
}

/// Outputs of 0 are a broad density: its divergence from the uniform one is small.
#[test]
fn zeros_are_a_broad_density() {
    let [x, y] = reals(["x", "y"]);
    let layer = layer(x.between(0, 4) & y.between(0, 4) & !(x.gt(1) & y.gt(1)), Knots::Uniform(12), 8);
    let head = StudentTHead::new(&layer).unwrap();
    let zeros = head.params(matrix(&vec![0.0; head.num_params()], head.num_params(), &Device::flex(), DType::F64));
    // The area is 7: unit squares on the left and at the bottom, with points in the middle of their quarters.
    let quarters = |a: i32| (0..2).map(move |k| f64::from(a) + 0.25 + 0.5 * f64::from(k));
    let squares = (0..4).map(|k| (0, k)).chain((1..4).map(|k| (k, 0)));
    let points: Vec<f64> =
        squares.flat_map(|(a, b)| quarters(a).flat_map(move |x| quarters(b).flat_map(move |y| [x, y]))).collect();
    let mean: f64 = layer.log_prob(zeros, &layer.points(&points).unwrap()).mean().into_scalar();
    assert!((-(7.0f64).ln() - mean).abs() < 0.3, "{mean}");
}

/// Locations far outside, very narrow and very wide components have finite losses and finite gradients.
#[test]
fn extreme_outputs_give_finite_gradients() {
    let [x, y] = reals(["x", "y"]);
    let phi = x.between(0, 4) & y.between(0, 4) & !(x.gt(1) & y.gt(1));
    for dtype in [DType::F32, DType::F64] {
        let layer = PalLayer::new(layer(phi.clone(), Knots::Uniform(9), 2).family(), &Device::flex(), dtype).unwrap();
        let head = StudentTHead::new(&layer).unwrap();
        let extremes = [-1e4, -300.0, -30.0, 0.0, 30.0, 300.0, 1e4];
        for (k, first) in extremes.iter().enumerate() {
            for second in &extremes[k..] {
                let row = [0.0, *first, *second, *first, *second, *first, *second];
                let rows = matrix(&[row, row].concat(), 14, &Device::flex().autodiff(), dtype).require_grad();
                let points = layer.points(&[0.5, 0.5]).unwrap();
                let loss = layer.loss(head.params(rows.clone()), &points);
                let gradient = pal_burn::to_f64_vec(rows.grad(&loss.backward()).unwrap());
                let loss: f64 = pal_burn::to_f64_vec(loss)[0];
                assert!(loss.is_finite(), "{row:?}: {loss}");
                assert!(gradient.iter().all(|value| value.is_finite()), "{row:?}: {gradient:?}");
            }
        }
    }
}

/// The starting values have one component at each of two clusters, and fit the points better than the uniform density.
#[test]
fn starting_values_are_at_clusters() {
    let [x, y] = reals(["x", "y"]);
    let layer = layer(x.between(0, 10) & y.between(0, 5), Knots::Uniform(21), 2);
    let head = StudentTHead::new(&layer).unwrap();
    let cluster = |x: f64, y: f64| (0..50).flat_map(move |k| [x + 0.02 * f64::from(k), y + 0.3 * f64::from(k).sin()]);
    let points: Vec<f64> = cluster(1.0, 1.0).chain(cluster(8.0, 4.0)).collect();
    let start = matrix(&head.start(&points, 1), head.num_params(), &Device::flex(), DType::F64);
    let prepared = layer.points(&points).unwrap();
    let mean = |params: Tensor<2>| -> f64 { layer.log_prob(params, &prepared).mean().into_scalar() };
    let uniform = -(50.0f64).ln();
    assert!(mean(head.params(start)) > uniform + 1.0);
}

#[test]
fn sums_of_squares_have_no_such_head() {
    let [x] = reals(["x"]);
    let region = Region::new(&x.between(0, 1).into()).unwrap();
    let settings = SumOfSquaresSettings { degree: Some(2), components: 1, basis: Basis::Orthonormal, subset: None };
    let family = Family::new(&region, &Settings::SumOfSquares(settings)).unwrap();
    assert!(StudentTHead::new(&PalLayer::new(&family, &Device::flex(), DType::F64).unwrap()).is_none());
}

/// On the CPU, head and layer are one pass of the core; the tensor operations, which GPUs use, give the same numbers.
#[test]
fn the_fused_pass_agrees_with_tensor_operations() {
    let [x, y] = reals(["x", "y"]);
    let room = x.between(0, 8) & y.between(0, 3) & !(x.between(2, 4) & y.between(1, 2)) & (&x + &y).le(10);
    let axes = [&[0, 1, 2, 4, 8][..], &[0, 1, 2, 3]].map(|axis| axis.iter().map(|p| Rational::from(*p)).collect());
    for (knots, dtype, tolerance) in [
        (Knots::Uniform(9), DType::F64, 1e-10),
        (Knots::At(axes.to_vec()), DType::F64, 1e-10),
        (Knots::Uniform(9), DType::F32, 2e-3),
    ] {
        let settings = Settings::Spline(SplineSettings { knots, components: 3 });
        let family = Family::new(&Region::new(&room.clone().into()).unwrap(), &settings).unwrap();
        let device = Device::flex().autodiff();
        let layer = PalLayer::new(&family, &device, dtype).unwrap();
        let head = StudentTHead::new(&layer).unwrap();
        let points: Vec<f64> = (0..20).flat_map(|k| [0.3 * f64::from(k), 0.5]).collect();
        let points = layer.points(&points).unwrap();
        let width = head.num_params();
        let numbers: Vec<f64> = (0..20 * width).map(|k| (1.7 * k as f64).sin()).collect();
        let rows = |fused: bool| {
            let outputs = matrix(&numbers, width, &device, dtype).require_grad();
            let log_prob = match fused {
                true => layer.log_prob_of_outputs(&head, outputs.clone(), &points),
                false => layer.log_prob_with(head.params(outputs.clone()), &points, layer.normaliser()),
            };
            let gradient = outputs.grad(&log_prob.clone().sum().backward()).unwrap();
            let flat: Tensor<1> = gradient.reshape([20 * width]);
            (pal_burn::to_f64_vec(log_prob), pal_burn::to_f64_vec(flat))
        };
        let ((got, gradient), (want, reference)) = (rows(true), rows(false));
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < tolerance * (1.0 + b.abs()));
        assert!(close(&got, &want), "{dtype:?}: {got:?} {want:?}");
        assert!(close(&gradient, &reference), "{dtype:?}: {gradient:?} {reference:?}");
        let params = head.params(matrix(&numbers, width, &Device::flex(), dtype));
        let plain = pal_burn::to_f64_vec(layer.log_prob(params, &points));
        assert!(close(&plain, &want), "{dtype:?}: {plain:?} {want:?}");
    }
}
