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

/// The outputs that stand for a location and a width in bins, and a tail.
fn outputs(location: f64, width: f64, tail: f64, bins: f64) -> [f64; 3] {
    let inverse_softplus = |y: f64| (y.exp() - 1.0).ln();
    [location / (bins / 6.0), inverse_softplus(width - 0.35), inverse_softplus(tail - 0.6)]
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
    for (knots, tolerance) in [(equal, 2e-5), (denser, 2e-4)] {
        // A hole from 12 to 13.
        let layer = layer(x.between(0, 20) & !(x.gt(12) & x.lt(13)), knots, 1);
        let head = StudentTHead::new(&layer).unwrap();
        assert_eq!(head.num_params(), 4);
        // At 9.2, with u = (x - 9.2) / 2 and t = u sqrt(4 / 2.5).
        let [m, w, a] = outputs(9.2 * 4.0, 2.0 * 4.0, 2.5, 80.0);
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
