//! A non-negative polynomial on [0, 1], its integral and the inverse of that: what quantiles and samples are drawn from.
//!
//! From values at the m Gauss-Legendre nodes s_i, with x = 2 s - 1, the Legendre series of degree m - 1 is
//!
//! ```text
//! f(s) = sum_k c_k P_k(x),            c_k = (2 k + 1) sum_i w_i f(s_i) P_k(x_i)
//! F(s) = integral of f from 0 to s = s (c_0 - (1 - s) sum_(k >= 1) c_k g_(k-1)(x)),      g_(k-1) = 2 P_k' / (k (k + 1))
//! ```
//!
//! where |g_k| <= 1 and `g_(k+1) = ((2 k + 3) x g_k - k g_(k-1)) / (k + 3)`. Written so, F is exact at both ends and keeps its relative
//! accuracy towards 0, and f and F come out of one loop.
//!
//! The inverse is monotone although F is rounded: [0, 1] is halved thirty times by comparisons of F with the target, always at the same
//! places, and inside the last interval the answer is linear in the target. Two targets part where a comparison first tells them apart,
//! and stay apart. Newton's method only finds out which comparisons need not be made. Linear inside 2^-30 costs less than the rounding
//! of F: at most 2^-63 max f', and f' is below 2 m^2 max f.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::density::gauss::Gauss;

/// Intervals among which [`Univariate::inverse`] decides.
const CELLS: u32 = 1 << 30;
const CELL: f64 = 1.0 / CELLS as f64;

/// A step of Newton's method after which the next is expected to stay within a cell.
const SMALL_STEP: f64 = 1.0 / (1 << 17) as f64;

/// A non-negative polynomial on [0, 1].
#[derive(Clone, Debug)]
pub(crate) struct Univariate {
    projection: Arc<Projection>,
    /// Values are multiplied by this before anything else; 1 unless they are huge or tiny.
    scale: f64,
    /// Legendre coefficients of the scaled values.
    coefficients: Vec<f64>,
    /// Sums of the first values times their weights: close to F at the sums of the weights.
    partial: Vec<f64>,
    /// Differences of F(s) from a target below this part of s may be rounding.
    noise: f64,
}

/// What depends on the number of values only.
#[derive(Debug)]
struct Projection {
    gauss: Arc<Gauss>,
    /// Coefficients per value, value by value.
    matrix: Vec<f64>,
    /// Sums of the first weights.
    steps: Vec<f64>,
    /// Of P_k and g_k: the factors of x times the last and of the last but one.
    recurrence: Vec<[f64; 4]>,
}

impl Projection {
    fn with_points(m: usize) -> Arc<Projection> {
        static KNOWN: OnceLock<Mutex<HashMap<usize, Arc<Projection>>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        // Entries are complete before they are stored, so that a poisoned lock does no harm.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(m).or_insert_with(|| Arc::new(Projection::compute(m))).clone()
    }

    fn compute(m: usize) -> Projection {
        let gauss = Gauss::with_points(m);
        let recurrence: Vec<[f64; 4]> = (0..m)
            .map(|k| k as f64)
            .map(|k| [(2.0 * k + 1.0) / (k + 1.0), k / (k + 1.0), (2.0 * k + 3.0) / (k + 3.0), k / (k + 3.0)])
            .collect();
        let mut matrix = Vec::with_capacity(m * m);
        for (node, weight) in gauss.nodes.iter().zip(&gauss.weights) {
            let x = 2.0 * node - 1.0;
            let (mut below, mut p) = (0.0, 1.0);
            for (k, r) in recurrence.iter().enumerate() {
                matrix.push((2 * k + 1) as f64 * weight * p);
                (below, p) = (p, r[0] * x * p - r[1] * below);
            }
        }
        let mut sum = 0.0;
        let steps = gauss.weights.iter().map(|w| {
            sum += w;
            sum
        });
        Projection { matrix, steps: steps.collect(), recurrence, gauss: gauss.clone() }
    }
}

impl Univariate {
    /// The polynomial of degree `values.len() - 1` with these values at the nodes of [`Gauss::with_points`].
    ///
    /// Values that are not positive count as 0, and no values at all as the polynomial 0.
    pub fn from_values(values: &[f64]) -> Univariate {
        let m = values.len().max(1);
        let projection = Projection::with_points(m);
        let mut new =
            Univariate { projection, scale: 1.0, coefficients: vec![0.0; m], partial: vec![0.0; m], noise: 0.0 };
        if !values.is_empty() {
            new.refit(values);
        }
        new
    }

    /// The same for other values, in the memory of this one.
    pub fn refit(&mut self, values: &[f64]) {
        let m = values.len();
        if m == 0 {
            *self = Univariate::from_values(&[]);
            return;
        }
        if m != self.coefficients.len() {
            self.projection = Projection::with_points(m);
            self.partial.resize(m, 0.0);
            self.coefficients.resize(m, 0.0);
        }
        let largest = values.iter().fold(0.0_f64, |a, b| a.max(*b));
        self.scale = if (1e-150..1e150).contains(&largest) || largest == 0.0 {
            1.0
        } else if largest < 1.0 {
            2f64.powi(1000)
        } else {
            2f64.powi(-1000)
        };
        self.coefficients.fill(0.0);
        let mut sum = 0.0;
        let columns = self.projection.matrix.chunks_exact(m);
        let nodes = columns.zip(&self.projection.gauss.weights).zip(values).zip(&mut self.partial);
        for (((column, weight), value), partial) in nodes {
            let value = value.clamp(0.0, f64::MAX) * self.scale;
            // clamp lets NaN through
            let value = if value > 0.0 { value } else { 0.0 };
            sum += weight * value;
            *partial = sum;
            self.coefficients.iter_mut().zip(column).for_each(|(c, a)| *c += a * value);
        }
        let size: f64 = self.coefficients.iter().map(|c| c.abs()).sum();
        self.noise = 4.0 * m as f64 * f64::EPSILON * size;
    }

    /// f at `s`, and never less than 0.
    pub fn value(&self, s: f64) -> f64 {
        self.evaluate(s).1.max(0.0) / self.scale
    }

    /// The integral of f from 0 to 1.
    pub fn integral(&self) -> f64 {
        self.coefficients[0] / self.scale
    }

    /// The integrals of f, s f and s^2 f.
    pub fn moments(&self) -> [f64; 3] {
        let c = |k: usize| self.coefficients.get(k).map_or(0.0, |c| c / self.scale);
        [c(0), c(0) / 2.0 + c(1) / 6.0, c(0) / 3.0 + c(1) / 6.0 + c(2) / 30.0]
    }

    /// The coefficients of P_k(2 s - 1).
    pub fn legendre(&self) -> Vec<f64> {
        self.coefficients.iter().map(|c| c / self.scale).collect()
    }

    /// The integral of f from 0 to `s`: exact at the ends, constant beyond them, in between monotone up to rounding.
    pub fn cdf(&self, s: f64) -> f64 {
        self.rising(s) / self.scale
    }

    fn rising(&self, s: f64) -> f64 {
        if !(s > 0.0) {
            0.0
        } else if s >= 1.0 {
            self.coefficients[0]
        } else {
            self.evaluate(s).0.clamp(0.0, self.coefficients[0])
        }
    }

    /// F and f at `s`, of the scaled values.
    #[inline]
    fn evaluate(&self, s: f64) -> (f64, f64) {
        let x = 2.0 * s - 1.0;
        let (mut p_below, mut p, mut g_below, mut g) = (0.0, 1.0, 0.0, 1.0);
        let (mut density, mut bend) = (self.coefficients[0], 0.0);
        for (c, r) in self.coefficients[1..].iter().zip(&self.projection.recurrence) {
            (p_below, p) = (p, r[0] * x * p - r[1] * p_below);
            density += c * p;
            bend += c * g;
            (g_below, g) = (g, r[2] * x * g - r[3] * g_below);
        }
        (s * (self.coefficients[0] - (1.0 - s) * bend), density)
    }

    /// The `s` with `cdf(s) = p integral()`, in [0, 1] and monotone in `p`. Where f is 0 everywhere, `p` itself.
    pub fn inverse(&self, p: f64) -> f64 {
        if !(p > 0.0) {
            return 0.0;
        }
        if p >= 1.0 {
            return 1.0;
        }
        let total = self.coefficients[0];
        if !(total > 0.0) {
            return p;
        }
        let target = p * total;
        // F is certainly below the target up to `low`, and certainly above it from `high` on.
        let (mut low, mut high) = (0.0, 1.0);
        let mut s = self.guess(target);
        let mut missed = 0;
        for _ in 0..40 {
            let (rise, slope) = self.evaluate(s);
            let excess = rise - target;
            self.narrow(s, excess, &mut low, &mut high);
            let newton = s - excess / slope;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let step = (next - s).abs();
            s = next;
            if step < SMALL_STEP {
                let cell = ((s * CELLS as f64) as u32).min(CELLS - 1);
                let ends = self.ends(cell);
                self.narrow(f64::from(cell) * CELL, ends.0 - target, &mut low, &mut high);
                self.narrow(f64::from(cell + 1) * CELL, ends.1 - target, &mut low, &mut high);
                if low == f64::from(cell) * CELL && high == f64::from(cell + 1) * CELL {
                    return inside(cell, ends, target);
                }
                missed += 1;
                if missed > 1 {
                    break;
                }
            }
        }
        let (mut first, mut last) = (0, CELLS);
        while last - first > 1 {
            let middle = first + (last - first) / 2;
            let at = f64::from(middle) * CELL;
            let right = at <= low || (at < high && self.evaluate(at).0 <= target);
            if right { first = middle } else { last = middle }
        }
        inside(first, self.ends(first), target)
    }

    /// Where F comes close to a target, judged by the partial sums of the quadrature.
    fn guess(&self, target: f64) -> f64 {
        let steps = &self.projection.steps;
        let mut from = (0.0, 0.0);
        for to in self.partial.iter().zip(steps).map(|(sum, step)| (*sum, *step)) {
            if to.0 > target {
                return from.1 + (to.1 - from.1) * ((target - from.0) / (to.0 - from.0));
            }
            from = to;
        }
        0.5
    }

    /// Moves an end of the bracket to `s` if the excess of F over the target there is not rounding.
    #[inline]
    fn narrow(&self, s: f64, excess: f64, low: &mut f64, high: &mut f64) {
        if excess > self.noise * s {
            *high = high.min(s);
        } else if excess < -self.noise * s {
            *low = low.max(s);
        }
    }

    /// F at both ends of a cell.
    fn ends(&self, cell: u32) -> (f64, f64) {
        let rise = |k: u32| if k == CELLS { self.coefficients[0] } else { self.evaluate(f64::from(k) * CELL).0 };
        (rise(cell), rise(cell + 1))
    }
}

/// The place inside a cell where a linear F meets the target.
fn inside(cell: u32, (low, high): (f64, f64), target: f64) -> f64 {
    let part = if high > low { ((target - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    f64::from(cell) * CELL + part * CELL
}

#[cfg(test)]
mod tests {
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
                // An error of the integral counts as much as the density is small.
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
        let slope = fit(14, |s| 1.0 + s);
        for p in [1e-3, 1e-10, 1e-17, 1e-100, 1e-300, f64::MIN_POSITIVE] {
            close(flat.inverse(p) / p, 1.0, 1e-14);
            let want = 3.0 * p / (1.0 + (1.0 + 3.0 * p).sqrt());
            close(slope.inverse(p), want, (1e-9 * want).min(2e-16));
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
            // Neighbouring doubles: here only the fixed comparisons keep the order.
            let middle = f.cdf(0.5) / f.integral();
            let fine = |around: f64| (0..2000).map(move |i| around * (1.0 + f64::from(i) * f64::EPSILON));
            let mut all: Vec<f64> = coarse.chain(fine(middle)).chain(fine(0.3)).chain(fine(1e-9)).collect();
            all.sort_by(f64::total_cmp);
            for p in all {
                let s = f.inverse(p);
                assert!((0.0..=1.0).contains(&s) && s >= previous, "{p}: {s} after {previous}");
                // Not through cdf, whose result may be subnormal.
                close(f.rising(s) / f.coefficients[0], p.min(1.0), allowed);
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
            assert_eq!(
                (f.cdf(0.3), f.inverse(0.3), f.legendre()),
                (fresh.cdf(0.3), fresh.inverse(0.3), fresh.legendre())
            );
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

    /// `cargo test --release -p pal --lib query::univariate -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn speed() {
        for m in [7, 14, 20, 31, 61] {
            let mut f = fit(m, |s| (0.1 + (s - 0.4) * (s - 0.9)).powi(2));
            let count = 1_000_000;
            let start = std::time::Instant::now();
            let sum: f64 = (0..count).map(|i| f.inverse((f64::from(i) + 0.5) / f64::from(count))).sum();
            let inverse = start.elapsed().as_secs_f64() / f64::from(count);
            let values: Vec<f64> = Gauss::with_points(m).nodes.clone();
            let start = std::time::Instant::now();
            (0..count).for_each(|_| f.refit(std::hint::black_box(&values)));
            let refit = start.elapsed().as_secs_f64() / f64::from(count);
            println!("{m} values: inverse {:.0} ns, refit {:.0} ns ({sum})", inverse * 1e9, refit * 1e9);
        }
    }
}
