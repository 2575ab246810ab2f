//! Integrals and inverses compared with closed forms, and the laws of the inverse.

use super::*;

fn fit(m: usize, f: impl Fn(f64) -> f64) -> Univariate {
    Univariate::from_values(&Gauss::with_points(m).nodes.iter().map(|s| f(*s)).collect::<Vec<_>>())
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} {b}");
}

#[test]
fn powers_have_closed_forms() {
    for (m, power) in [(1, 0), (2, 1), (3, 2), (5, 2), (14, 4), (14, 13), (31, 6), (61, 20)] {
        let f = fit(m, |s| s.powi(power));
        let mirrored = fit(m, |s| (1.0 - s).powi(power));
        let k = f64::from(power + 1);
        close(f.integral(), 1.0 / k, 1e-15);
        assert_eq!((f.cdf(0.0), f.cdf(1.0)), (0.0, f.integral()));
        assert_eq!((f.cdf(-1.0), f.cdf(2.0), f.cdf(f64::NAN)), (0.0, f.integral(), 0.0));
        for i in 1..100 {
            let p = f64::from(i) / 100.0;
            close(f.value(p), p.powi(power), (m * m).max(10) as f64 * f64::EPSILON);
            close(f.cdf(p), p.powi(power + 1) / k, 1e-15);
            // The smaller the density, the more an error of the integral changes the inverse.
            let allowed = |s: f64| m as f64 * f64::EPSILON / s.powi(power);
            let (s, r) = (p.powf(1.0 / k), (1.0 - p).powf(1.0 / k));
            close(f.inverse(p), s, allowed(s));
            close(mirrored.inverse(p), 1.0 - r, allowed(r));
        }
        let [zeroth, first, second] = f.moments();
        close(zeroth, 1.0 / k, 1e-15);
        close(first, 1.0 / (k + 1.0), 1e-15);
        close(second, 1.0 / (k + 2.0), 1e-15);
    }
}

#[test]
fn small_probabilities_keep_their_digits() {
    let flat = fit(14, |_| 3.0);
    let linear = fit(14, |s| 1.0 + s);
    for p in [1e-3, 1e-10, 1e-17, 1e-100, 1e-300, f64::MIN_POSITIVE] {
        close(flat.inverse(p) / p, 1.0, 1e-14);
        let want = 3.0 * p / (1.0 + (1.0 + 3.0 * p).sqrt());
        close(linear.inverse(p), want, (1e-9 * want).min(2e-16));
    }
    close(flat.inverse(1.0 - 1e-16), 1.0, 2e-16);
}

/// Squares with zeros inside, at the ends and of high order; all mass at one end; constants.
fn awkward() -> Vec<Univariate> {
    let mut all = vec![
        fit(1, |_| 2.0),
        fit(7, |_| 1e-3),
        fit(14, |s| (s - 0.5).powi(2)),
        fit(14, |s| (s - 0.5).powi(12)),
        fit(13, |s| (s * (1.0 - s) * (s - 0.3) * (s - 0.31)).powi(2)),
        fit(61, |s| s.powi(60)),
        fit(61, |s| (1.0 - s).powi(60)),
        fit(41, |s| ((2.0 * s - 1.0).acos() * 20.0).cos().powi(2)),
    ];
    let like = |scale: f64| fit(14, |s| scale * (s - 0.2).powi(4));
    all.extend([1e-300, 1e-310, 1e300, 1e-150].map(like));
    all
}

#[test]
fn inverses_are_inside_and_monotone_and_meet_the_integral() {
    for f in awkward() {
        let mut previous = 0.0;
        let allowed = 1e-15 + f.noise / f.coefficients[0];
        let coarse = (0..=2000).map(|i| f64::from(i) / 2000.0);
        // Neighbouring float64 numbers, whose order only the comparisons at fixed positions keep.
        let middle = f.cdf(0.5) / f.integral();
        let fine = |around: f64| (0..2000).map(move |i| around * (1.0 + f64::from(i) * f64::EPSILON));
        let mut all: Vec<f64> = coarse.chain(fine(middle)).chain(fine(0.3)).chain(fine(1e-9)).collect();
        all.sort_by(f64::total_cmp);
        for p in all {
            let s = f.inverse(p);
            assert!((0.0..=1.0).contains(&s) && s >= previous, "{p}: {s} after {previous}");
            // Not through cdf, whose result may be subnormal.
            close(f.scaled_cdf(s) / f.coefficients[0], p.min(1.0), allowed);
            previous = s;
        }
    }
}

#[test]
fn scaling_does_not_change_the_inverse() {
    let plain = fit(14, |s| (s - 0.2).powi(4));
    for scale in [1e-300, 1e200, 1e300] {
        let scaled = fit(14, |s| scale * (s - 0.2).powi(4));
        close(scaled.integral() / scale, plain.integral(), 1e-15);
        close(scaled.cdf(0.7) / scale, plain.cdf(0.7), 1e-15);
        close(scaled.inverse(0.7), plain.inverse(0.7), 1e-14);
    }
}

#[test]
fn refitting_is_fitting_again() {
    let mut f = fit(14, |s| s);
    for m in [14, 5, 20] {
        let values: Vec<f64> = Gauss::with_points(m).nodes.iter().map(|s| 1.0 + s * s).collect();
        f.refit(&values);
        let fresh = Univariate::from_values(&values);
        assert_eq!((f.cdf(0.3), f.inverse(0.3), f.legendre()), (fresh.cdf(0.3), fresh.inverse(0.3), fresh.legendre()));
    }
}

#[test]
fn nonsense_gives_no_nan() {
    for values in [&[][..], &[0.0; 4], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0], &[-1.0, -2.0]] {
        let f = Univariate::from_values(values);
        for p in [f64::NAN, -1.0, 0.0, 0.5, 1.0, 2.0] {
            assert!((0.0..=1.0).contains(&f.inverse(p)), "{values:?} {p}");
        }
        assert!(f.value(0.5) >= 0.0 && f.integral() >= 0.0 && f.cdf(0.4) >= 0.0);
    }
    assert_eq!(Univariate::from_values(&[0.0; 4]).inverse(0.25), 0.25);
}
