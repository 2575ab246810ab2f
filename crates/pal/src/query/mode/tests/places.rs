//! Modes in the interior, on edges, at vertices, on open boundaries and in slivers.

use super::*;
use crate::formula::reals;
use crate::shapes;

fn peak(centre: [f64; 2]) -> impl Fn(&[f64]) -> f64 + Send + Sync + 'static {
    move |y| {
        10.0 - (y[0] - centre[0]).powi(2) - 2.0 * (y[1] - centre[1]).powi(2) - (y[0] - centre[0]) * (y[1] - centre[1])
    }
}

#[test]
fn quadratics_on_a_triangle() {
    let scene = Scene::new(shapes::simplex(2), 1, 2, peak([0.3, 0.2]));
    let mode = scene.certified();
    assert!(close(&mode.point, &[0.3, 0.2], 1e-7) && mode.nodes <= 3, "{mode:?}");
    let scene = Scene::new(shapes::simplex(2), 1, 2, peak([2.0, -1.5]));
    let mode = scene.certified();
    assert!(close(&mode.point, &[1.0, 0.0], 1e-7) && mode.nodes <= 3, "{mode:?}");
    // On x + y = 1 the gradient is parallel to (1, 1).
    let scene = Scene::new(shapes::simplex(2), 1, 2, |y| 10.0 - (y[0] - 0.9).powi(2) - (y[1] - 0.7).powi(2));
    let mode = scene.certified();
    assert!(close(&mode.point, &[0.6, 0.4], 1e-6) && mode.nodes <= 3, "{mode:?}");
}

#[test]
fn convex_functions_have_their_mode_at_a_vertex() {
    let scene = Scene::new(shapes::cross_polytope(2), 1, 2, |y| y[0] * y[0] + 0.5 * y[1] * y[1] + 0.1 * y[0]);
    let mode = scene.certified();
    assert!(close(&mode.point, &[1.0, 0.0], 1e-6), "{mode:?}");
    let scene = Scene::new(shapes::cube(3), 2, 2, |y| (y[0] - 0.3).powi(2) + (y[1] - 0.6).powi(2) + y[2]);
    assert!(close(&scene.certified().point, &[1.0, 0.0, 1.0], 1e-6));
}

#[test]
fn a_saddle_over_an_edge() {
    // Concave along the upper edge, convex across it.
    let scene = Scene::new(shapes::cube(2), 1, 2, |y| 3.0 - (y[0] - 0.37).powi(2) + y[1] * y[1] + y[1]);
    let mode = scene.certified();
    assert!(close(&mode.point, &[0.37, 1.0], 1e-3), "{mode:?}");
}

#[test]
fn strict_inequalities_are_obeyed() {
    let [x, y] = reals(["x", "y"]);
    let open = x.gt(0) & y.gt(0) & (3 * &x + 7 * &y).lt(1);
    let scene = Scene::new(open, 1, 2, |y| 1.0 + y[0] + y[1] + 0.5 * y[0] * y[0]);
    let mode = scene.certified();
    assert!(mode.point[0] < 1.0 / 3.0 + 1e-15 && close(&mode.point, &[1.0 / 3.0, 0.0], 1e-6));
}

#[test]
fn flat_and_zero_densities_end_at_once() {
    let scene = Scene::new(scattered(3), 4, 3, |_| 0.7);
    let mode = scene.certified();
    assert_eq!(mode.nodes, scene.mesh.elements.len());
    assert!(mode.gap < 1e-12);
    let nothing = Scene::new(scattered(3), 4, 3, |_| 0.0).mode(&ModeOptions::default());
    assert_eq!((nothing.log_density, nothing.log_upper, nothing.gap), (f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0));
    assert_eq!(nothing.stop, ModeStop::Certified);
}

#[test]
fn one_flat_direction() {
    let scene = Scene::new(scattered(2), 2, 4, |y| 2.0 - (y[0] - 0.41).powi(2) - (y[0] - 0.41).powi(4));
    assert!((scene.certified().point[0] - 0.41).abs() < 1e-3);
    let slanted = Scene::new(shapes::cube(3), 1, 2, |y| 4.0 - (y[0] + y[1] - 2.0 * y[2]).powi(2));
    slanted.certified();
}

#[test]
fn flat_tops() {
    let scene = Scene::new(shapes::cube(2), 1, 4, |y| 1.0 - (y[0] - 0.3).powi(4) - (y[1] - 0.6).powi(4));
    assert!(close(&scene.certified().point, &[0.3, 0.6], 0.04));
}

#[test]
fn one_to_five_dimensions() {
    for n in 1..=5 {
        let scene = Scene::new(shapes::simplex(n), 1, 2, move |y| {
            5.0 - y.iter().enumerate().map(|(j, y)| (y - (j + 1) as f64 / 40.0).powi(2)).sum::<f64>()
        });
        let mode = scene.certified();
        let want: Vec<f64> = (1..=n).map(|j| j as f64 / 40.0).collect();
        assert!(close(&mode.point, &want, 1e-6), "{mode:?}");
    }
    let scene = Scene::new(shapes::simplex(4), 2, 2, |y| (0.1 + y[0] * y[1] + y[2] * y[3] - 0.2 * y[0] * y[3]).powi(1));
    scene.certified();
}

#[test]
fn slivers() {
    let [x, y] = reals(["x", "y"]);
    let billion = 1_000_000_000i64;
    let thin = x.between(0, 1) & (&y - &x).ge(0) & (billion * (&y - &x)).le(1);
    let scene = Scene::new(thin, 3, 4, |y| (1.0 + y[0] * (1.3 - y[1])).powi(2));
    assert!(close(&scene.certified().point, &[0.65, 0.65], 1e-3));
    let huge = 100_000_000_000_000_000i64;
    let [x] = reals(["x"]);
    let without_float64_points = (huge * &x).gt(huge + 1) & (huge * &x).lt(huge + 2);
    let scene = Scene::new(without_float64_points, 1, 2, |_| 1.0);
    assert!(scene.weighted(&[1.0], &ModeOptions::default()).is_none());
}

#[test]
fn no_elements_no_mode() {
    let mut scene = Scene::new(shapes::cube(2), 1, 2, |_| 1.0);
    scene.mesh.elements.clear();
    assert!(scene.weighted(&[1.0], &ModeOptions::default()).is_none());
}

#[test]
fn far_from_the_origin() {
    let [x, y] = reals(["x", "y"]);
    let far = x.between(1_000_000, 1_000_001) & (&y - &x).between(0, 1) & y.le(1_000_001);
    let scene = Scene::new(far, 2, 2, |y| 3.0 - (y[0] - 1_000_000.25).powi(2) - (y[1] - 1_000_000.75).powi(2));
    assert!(close(&scene.certified().point, &[1_000_000.25, 1_000_000.75], 1e-6));
    // Float64 coordinates are 1/512 apart: none is at the maximum, and the bound says so.
    let ten = 10_000_000_000_000i64;
    let mut coarse = Scene::new(x.between(ten, ten + 1) & y.between(ten, ten + 1), 1, 2, |_| 0.0);
    coarse.known.function = Box::new(|_, t| 3.0 - (t[0] - 0.2505).powi(2) - (t[1] - 0.7).powi(2));
    let mode = coarse.mode(&ModeOptions { gap: 1e-8, ..ModeOptions::default() });
    assert_eq!(mode.stop, ModeStop::Precision);
    assert!(mode.log_upper >= 3f64.ln() && mode.gap < 1e-5 && mode.nodes < 1000, "{mode:?}");
}

#[test]
fn jumps_between_bins() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(0, 1) & y.between(0, 1);
    let scene = Scene::new(square, 2, 2, |y| if y[0] < 0.5 { 1.0 + y[0] } else { 0.1 + y[1] });
    let mode = scene.certified();
    assert!(mode.point[0] < 0.5 && mode.point[0] > 0.5 - 1e-5);
}

#[test]
fn tiny_and_huge_scales() {
    let scene = Scene::new(shapes::simplex(2), 2, 2, peak([0.3, 0.2]));
    let plain = scene.mode(&ModeOptions::default());
    for weight in [1e-310, 1e-200, 1e200, 5e306] {
        let mode = scene.weighted(&[weight], &ModeOptions::default()).unwrap();
        assert_eq!(mode.stop, ModeStop::Certified);
        assert!(close(&mode.point, &plain.point, 1e-7));
        assert!((mode.log_density - plain.log_density - weight.ln()).abs() < 1e-9, "{mode:?}");
    }
    let tiny = Scene::new(shapes::simplex(2), 2, 2, |y| 1e-290 * peak([0.3, 0.2])(y));
    let mode = tiny.weighted(&[1e-15], &ModeOptions::default()).unwrap();
    assert_eq!(mode.stop, ModeStop::Certified);
    assert!((mode.log_density - 10f64.ln() + 305.0 * 10f64.ln()).abs() < 1e-9, "{mode:?}");
}

/// The unit square without a grid of `count * count` diamonds.
pub(super) fn scattered(count: i64) -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let mut free = x.between(0, 1) & y.between(0, 1);
    for i in 0..count {
        for j in 0..count {
            // Around ((i + 1/2) / count, (j + 1/2) / count), of a quarter of the spacing.
            let u = 4 * count * &x - (4 * i + 2);
            let v = 4 * count * &y - (4 * j + 2);
            free = free & !((&u + &v).le(1) & (&u + &v).ge(-1) & (&u - &v).le(1) & (&u - &v).ge(-1));
        }
    }
    free.into()
}
