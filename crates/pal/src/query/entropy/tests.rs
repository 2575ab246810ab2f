//! Entropies compared with closed forms: the reported error must be at least the true one.

use super::super::marginal::case::{Case, on_threads};
use super::*;
use crate::formula::{Formula, reals};

fn compute(case: &Case, tolerance: f64) -> Entropy {
    let options = EntropyOptions { tolerance, ..EntropyOptions::default() };
    entropy(&case.mesh, &case.functions, &case.weights, &options)
}

fn check(case: &Case, want: f64) {
    check_at(&[1e-2, 1e-4, 1e-6, 1e-9], case, want);
}

fn check_at(tolerances: &[f64], case: &Case, want: f64) {
    for &tolerance in tolerances {
        let found = compute(case, tolerance);
        assert!(found.converged && found.error <= tolerance, "{found:?}");
        assert!((found.value - want).abs() <= found.error, "{found:?} {want}");
    }
}

fn unit_square() -> Formula {
    let [x, y] = reals(["x", "y"]);
    x.between(0, 1) & y.between(0, 1)
}

/// Triangles on both sides of a diagonal, so that simplices are tested as well.
fn cut_square() -> Formula {
    let [x, y] = reals(["x", "y"]);
    (unit_square() & (&x + &y).le(1)) | (unit_square() & (&x + &y).ge(1))
}

#[test]
fn uniform_densities_have_the_logarithm_of_the_volume() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let l = x.between(0, 4) & y.between(0, 3) & ((2 * &x).le(5) | (2 * &y).ge(3));
    for edges in [[&[0, 4][..], &[0, 3][..]], [&[0, 1, 4], &[0, 2, 3]]] {
        let found = compute(&Case::new(l.clone(), &edges, 0, |_| 2.0), 1e-6);
        assert!((found.value - 9.75_f64.ln()).abs() < 1e-14 && found.error < 1e-13 && found.converged, "{found:?}");
    }
    let corner = x.ge(0) & y.ge(0) & z.ge(0) & (&x + &y + &z).le(3);
    let found = compute(&Case::new(corner, &[&[0, 3], &[0, 3], &[0, 3]], 4, |_| 1.0), 1e-6);
    assert!((found.value - 4.5_f64.ln()).abs() < 1e-13 && found.error < 1e-13, "{found:?}");
}

#[test]
fn powers_on_an_interval() {
    let [x] = reals(["x"]);
    // (k + 1) t^k on [0, 1] has the entropy k / (k + 1) - log(k + 1); on a length of 5, log 5 more.
    for k in [1, 2, 4, 12] {
        let case = Case::new(x.between(0, 5), &[&[0, 2, 5]], k, move |y| y[0].powi(k as i32));
        let k = k as f64;
        check(&case, k / (k + 1.0) - (k + 1.0).ln() + 5_f64.ln());
    }
}

/// The entropy of the density proportional to |t - a|^2 on [0, 1].
fn parabola(a: f64) -> f64 {
    let mass = (a.powi(3) + (1.0 - a).powi(3)) / 3.0;
    // The integral of u^2 log u^2 from 0 to b is 2 b^3 (log b / 3 - 1 / 9).
    let part = |b: f64| if b > 0.0 { 2.0 * b.powi(3) * (b.ln() / 3.0 - 1.0 / 9.0) } else { 0.0 };
    mass.ln() - (part(a) + part(1.0 - a)) / mass
}

#[test]
fn zeros_inside_wherever_they_are() {
    let [x] = reals(["x"]);
    for k in 0..60 {
        let a = f64::from(k) / 59.0 * 0.9 + 0.01;
        check(&Case::new(x.between(0, 1), &[&[0, 1]], 2, move |y| (y[0] - a).powi(2)), parabola(a));
    }
}

#[test]
fn products_and_lines_of_zeros() {
    let edges: [&[i32]; 2] = [&[0, 1], &[0, 1]];
    for region in [unit_square(), cut_square()] {
        // Zeros along an axis, where halving across it does not help.
        check(&Case::new(region.clone(), &edges, 2, |y| y[0] * y[0]), 2.0 / 3.0 - 3_f64.ln());
        for a in [0.3, 0.5, 0.77] {
            check(&Case::new(region.clone(), &edges, 2, move |y| (y[0] - a).powi(2)), parabola(a));
        }
        let product = |y: &[f64]| (y[0] - 0.3).powi(2) * (y[1] - 0.6).powi(2);
        check(&Case::new(region.clone(), &edges, 4, product), parabola(0.3) + parabola(0.6));
    }
}

#[test]
fn zeros_along_a_diagonal() {
    // s = x + y has the density s on [0, 1] and 2 - s on [1, 2]. The mass of (s - 1)^2 is 1/6, and for r = 6 (s - 1)^2
    // the integral of r log r is 2 times that of (1 - u) 6 u^2 log(6 u^2) over [0, 1], which is log 6 - 7/6.
    let edges: [&[i32]; 2] = [&[0, 1], &[0, 1]];
    for region in [unit_square(), cut_square()] {
        check(&Case::new(region, &edges, 2, |y| (y[0] + y[1] - 1.0).powi(2)), 7.0 / 6.0 - 6_f64.ln());
    }
}

#[test]
fn planes_of_zeros_in_space() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let cube = x.between(0, 1) & y.between(0, 1) & z.between(0, 1);
    let cut = (cube.clone() & (&x + &y + &z).le(1)) | (cube.clone() & (&x + &y + &z).ge(1));
    for region in [cube, cut] {
        let case = Case::new(region, &[&[0, 1], &[0, 1], &[0, 1]], 2, |p| (p[1] - 0.4).powi(2));
        check_at(&[1e-2, 1e-4, 1e-6], &case, parabola(0.4));
    }
}

#[test]
fn budgets_end_the_search_with_an_honest_error() {
    let edges: [&[i32]; 2] = [&[0, 1], &[0, 1]];
    let case = Case::new(unit_square(), &edges, 2, |y| (y[0] + y[1] - 1.0).powi(2));
    for evaluations in [0, 100, 1000, 5000] {
        let options = EntropyOptions { tolerance: 0.0, evaluations };
        let found = entropy(&case.mesh, &case.functions, &case.weights, &options);
        assert!(!found.converged && found.evaluations <= evaluations.max(200), "{found:?}");
        assert!((found.value - (7.0 / 6.0 - 6_f64.ln())).abs() <= found.error, "{found:?}");
    }
}

#[test]
fn threads_change_nothing() {
    let edges: [&[i32]; 2] = [&[0, 1], &[0, 1]];
    let case = Case::new(cut_square(), &edges, 4, |y| (y[0] * y[1] - 0.3).powi(2));
    assert!(case.mesh.elements.iter().any(|element| matches!(element.shape, Shape::Simplex(_))));
    let all = [1, 2, 5].map(|threads| on_threads(threads, || compute(&case, 1e-8)));
    assert!(all[0] == all[1] && all[0] == all[2], "{all:?}");
}
