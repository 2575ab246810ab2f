//! Densities with many peaks: the bound compared with dense evaluation.

use super::places::scattered;
use super::*;
use crate::shapes;

/// A pseudorandom number in [0, 1).
pub(in super::super) fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A cubic Hermite spline on equal bins of [0, 1] with random values and derivatives at the knots.
fn spline(seed: u64, bins: usize, y: f64) -> f64 {
    let bin = ((y * bins as f64) as usize).min(bins - 1);
    let t = y * bins as f64 - bin as f64;
    let value = |k: usize| noise(1000 * seed + 2 * k as u64) - 0.3;
    let derivative = |k: usize| noise(1000 * seed + 2 * k as u64 + 1) - 0.5;
    let (v0, v1, d0, d1) = (value(bin), value(bin + 1), derivative(bin), derivative(bin + 1));
    v0 + t * (d0 + t * ((3.0 * (v1 - v0) - 2.0 * d0 - d1) + t * (2.0 * (v0 - v1) + d0 + d1)))
}

/// A mixture of products of squared splines.
pub(super) fn mixture(seed: u64, components: u64, bins: usize) -> impl Fn(&[f64]) -> f64 + Send + Sync + 'static {
    move |y| {
        let term = |m: u64| {
            let factor = |(j, y): (usize, &f64)| spline(seed + 10 * m + j as u64, bins, *y).powi(2);
            y.iter().enumerate().map(factor).product::<f64>()
        };
        (0..components).map(term).sum()
    }
}

/// The square of a random polynomial of a total degree.
fn squared(dimension: usize, degree: u16) -> impl Fn(&[f64]) -> f64 + Send + Sync + 'static {
    let exponents = Exponents::total_degree(dimension, degree).unwrap();
    let coefficients: Vec<f64> = (0..exponents.len()).map(|k| noise(k as u64 + 7) - 0.5).collect();
    move |y| {
        let table = |y: &f64| {
            let mut t = vec![0.0; usize::from(degree) + 1];
            chebyshev::values(2.0 * y - 1.0, &mut t);
            t
        };
        let tables: Vec<Vec<f64>> = y.iter().map(table).collect();
        let term = |a: &[u16]| a.iter().zip(&tables).map(|(a, t)| t[usize::from(*a)]).product::<f64>();
        coefficients.iter().zip(exponents.iter()).map(|(c, a)| c * term(a)).sum::<f64>().powi(2)
    }
}

#[test]
fn mixtures_of_splines_in_two_dimensions() {
    for seed in 0..3 {
        let scene = Scene::new(scattered(5), 12, 6, mixture(seed, 5, 12));
        let mode = scene.certified();
        assert!(mode.nodes < 5 * scene.mesh.elements.len(), "{mode:?}");
    }
}

#[test]
fn mixtures_of_splines_in_one_three_and_four_dimensions() {
    Scene::new(shapes::simplex(1), 9, 6, mixture(3, 4, 9)).certified();
    Scene::new(shapes::simplex(3), 3, 6, mixture(4, 3, 3)).certified();
    Scene::new(shapes::cube(4), 2, 6, mixture(5, 2, 2)).certified();
}

#[test]
fn one_polynomial_of_high_degree() {
    for degree in [6, 12] {
        let exponents = Exponents::total_degree(2, 2 * degree).unwrap();
        Scene::with(scattered(5), 1, exponents, squared(2, degree)).certified();
    }
}

#[test]
fn a_polynomial_of_degree_48() {
    let exponents = Exponents::total_degree(2, 48).unwrap();
    let scene = Scene::with(scattered(6), 1, exponents.clone(), squared(2, 24));
    let mode = scene.mode(&ModeOptions::default());
    assert_eq!(mode.stop, ModeStop::Certified);
    assert!(mode.nodes < 20 * scene.mesh.elements.len(), "{mode:?}");
    scene.check(&mode, 20_000);
    let power = |y: &[f64]| (1.0 - 0.5 * ((y[0] - 0.31).powi(2) + (y[1] - 0.77).powi(2))).powi(24);
    let mode = Scene::with(scattered(6), 1, exponents, power).certified();
    assert!(close(&mode.point, &[0.31, 0.77], 1e-4), "{mode:?}");
}

#[test]
fn polynomials_in_three_and_four_dimensions() {
    for (n, degree) in [(3, 3), (4, 2), (5, 2)] {
        let exponents = Exponents::total_degree(n, 2 * degree).unwrap();
        Scene::with(shapes::simplex(n), 1, exponents.clone(), squared(n, degree)).certified();
        Scene::with(shapes::cube(n), 1, exponents, squared(n, degree)).certified();
    }
}
