//! Budgets, numbers of threads, ties and symmetries.

use std::time::Duration;

use super::certificates::mixture;
use super::places::scattered;
use super::*;
use crate::shapes;

#[test]
fn budgets_stop_with_a_reason_and_a_valid_bound() {
    let scene = Scene::new(scattered(3), 4, 6, mixture(1, 4, 4));
    let elements = scene.mesh.elements.len();
    let full = scene.certified();
    let nodes = ModeOptions { nodes: Some(elements + 10), ..ModeOptions::default() };
    let cut = scene.mode(&nodes);
    assert_eq!(cut.stop, ModeStop::NodeLimit);
    assert!(cut.nodes <= elements + 10 && cut.gap > 1e-6 && cut.log_upper >= full.log_density);
    scene.check(&cut, 20_000);
    let none = scene.mode(&ModeOptions { nodes: Some(0), ..ModeOptions::default() });
    assert_eq!((none.stop, none.nodes), (ModeStop::NodeLimit, elements));
    let late = scene.mode(&ModeOptions { time: Some(Duration::ZERO), ..ModeOptions::default() });
    assert_eq!((late.stop, late.nodes), (ModeStop::TimeLimit, elements));
    scene.check(&late, 20_000);
}

#[test]
fn gaps_below_rounding_are_reported() {
    for gap in [0.0, -1.0, f64::NAN, 1e-16] {
        let scene = Scene::new(scattered(2), 2, 6, mixture(2, 3, 2));
        let mode = scene.mode(&ModeOptions { gap, ..ModeOptions::default() });
        assert_eq!(mode.stop, ModeStop::Precision, "{mode:?}");
        assert!(mode.gap < 1e-10 && mode.nodes < 20_000, "{mode:?}");
        scene.check(&mode, 20_000);
    }
    let tight = Scene::new(scattered(2), 2, 6, mixture(2, 3, 2));
    let mode = tight.mode(&ModeOptions { gap: 1e-9, ..ModeOptions::default() });
    assert_eq!(mode.stop, ModeStop::Certified, "{mode:?}");
}

#[test]
fn threads_change_nothing() {
    let scene = Scene::new(scattered(4), 5, 6, mixture(6, 4, 5));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| scene.mode(&ModeOptions::default()))
    };
    let one = with(1);
    let bits = |mode: &Mode| mode.point.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    for threads in [2, 5] {
        let other = with(threads);
        assert_eq!(one, other);
        assert_eq!(bits(&one), bits(&other));
    }
}

#[test]
fn components_are_weighted() {
    let mut scene = Scene::new(scattered(2), 3, 6, mixture(7, 2, 3));
    let one = scene.weighted(&[1.25], &ModeOptions::default()).unwrap();
    scene.known.factors = vec![1.0, 3.0];
    let two = scene.weighted(&[0.5, 0.25], &ModeOptions::default()).unwrap();
    assert!(close(&one.point, &two.point, 1e-12) && (one.log_density - two.log_density).abs() < 1e-12);
}

#[test]
fn equal_peaks_are_one_mode() {
    // Four equal maxima at (1/4 or 3/4, 1/4 or 3/4).
    let bump = |y: f64| 1.0 - 16.0 * (y - 0.25).powi(2) * (y - 0.75).powi(2);
    let scene = Scene::new(shapes::cube(2), 3, 4, move |y| bump(y[0]) * bump(y[1]));
    let mode = scene.certified();
    assert!(mode.point.iter().all(|y| (y - 0.25).abs().min((y - 0.75).abs()) < 1e-3));
}

#[test]
fn permuted_variables_permute_the_mode() {
    let function = mixture(8, 3, 3);
    let straight = Scene::new(shapes::cube(2), 3, 6, mixture(8, 3, 3)).certified();
    let turned = Scene::new(shapes::cube(2), 3, 6, move |y| function(&[y[1], y[0]])).certified();
    assert!(close(&straight.point, &[turned.point[1], turned.point[0]], 1e-4));
    assert!((straight.log_density - turned.log_density).abs() < 1e-6);
}
