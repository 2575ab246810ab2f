//! A non-negative polynomial on [0, 1], its integral and the inverse of that, from which quantiles and samples are
//! computed.
//!
//! From values at the m Gauss-Legendre nodes s_i, with x = 2 s - 1, the Legendre series of degree m - 1 is
//!
//! ```text
//! f(s) = sum_k c_k P_k(x),            c_k = (2 k + 1) sum_i w_i f(s_i) P_k(x_i)
//! F(s) = integral of f from 0 to s = s (c_0 - (1 - s) sum_(k >= 1) c_k g_(k-1)(x)),   g_(k-1) = 2 P_k' / (k (k + 1))
//! ```
//!
//! where |g_k| <= 1 and `g_(k+1) = ((2 k + 3) x g_k - k g_(k-1)) / (k + 3)`. In this form F is exact at both ends and
//! keeps its relative accuracy towards 0, and f and F come out of one loop.
//!
//! The inverse is monotone although F is rounded: [0, 1] is halved thirty times by comparisons of F with the target,
//! always at the same positions, and inside the last interval the answer is linear in the target. Two targets separate
//! where a comparison first tells them apart, and stay apart. Newton's method only finds out which comparisons need not
//! be made. Linear interpolation on an interval of length 2^-30 costs less than the rounding of F: at most 2^-63 max
//! f', and f' is below 2 m^2 max f.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::density::gauss::Gauss;

/// The number of intervals of equal length among which [`Univariate::inverse`] decides.
const INTERVALS: u32 = 1 << 30;
const INTERVAL: f64 = 1.0 / INTERVALS as f64;

/// The length of a step of Newton's method after which the next is expected to stay within one interval.
const SMALL_STEP: f64 = 1.0 / (1 << 17) as f64;

/// A non-negative polynomial on [0, 1].
#[derive(Clone, Debug)]
pub(crate) struct Univariate {
    projection: Arc<LegendreProjection>,
    /// The factor by which values are multiplied before anything else; 1 unless they are huge or tiny.
    scale: f64,
    /// The Legendre coefficients of the scaled polynomial.
    coefficients: Vec<f64>,
    /// The sums of the first k values times their weights, which are close to F at the sums of the first k weights.
    partial: Vec<f64>,
    /// Differences of F(s) from a target may be rounding if they are below this times s.
    noise: f64,
}

/// The tables that depend on the number of values only.
#[derive(Debug)]
struct LegendreProjection {
    gauss: Arc<Gauss>,
    /// The coefficients of each value, value by value.
    matrix: Vec<f64>,
    /// The sums of the first k weights.
    steps: Vec<f64>,
    /// The factors of the recurrences of P_k and g_k: of x times the last one, and of the one before it, for each.
    recurrence: Vec<[f64; 4]>,
}

impl LegendreProjection {
    fn with_points(m: usize) -> Arc<LegendreProjection> {
        static KNOWN: OnceLock<Mutex<HashMap<usize, Arc<LegendreProjection>>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        // Entries are complete before they are stored, so that a poisoned lock does no harm.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(m).or_insert_with(|| Arc::new(LegendreProjection::compute(m))).clone()
    }

    fn compute(m: usize) -> LegendreProjection {
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
        LegendreProjection { matrix, steps: steps.collect(), recurrence, gauss: gauss.clone() }
    }
}

impl Univariate {
    /// The polynomial of degree `values.len() - 1` with these values at the nodes of [`Gauss::with_points`].
    ///
    /// Values that are not positive count as 0; without values it is the polynomial 0.
    pub fn from_values(values: &[f64]) -> Univariate {
        let m = values.len().max(1);
        let projection = LegendreProjection::with_points(m);
        let mut new =
            Univariate { projection, scale: 1.0, coefficients: vec![0.0; m], partial: vec![0.0; m], noise: 0.0 };
        if !values.is_empty() {
            new.refit(values);
        }
        new
    }

    /// Replaces the polynomial by that of other values, in the same memory.
    pub fn refit(&mut self, values: &[f64]) {
        let m = values.len();
        if m == 0 {
            *self = Univariate::from_values(&[]);
            return;
        }
        if m != self.coefficients.len() {
            self.projection = LegendreProjection::with_points(m);
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
            // clamp lets NaN pass.
            let value = if value > 0.0 { value } else { 0.0 };
            sum += weight * value;
            *partial = sum;
            self.coefficients.iter_mut().zip(column).for_each(|(c, a)| *c += a * value);
        }
        let size: f64 = self.coefficients.iter().map(|c| c.abs()).sum();
        self.noise = 4.0 * m as f64 * f64::EPSILON * size;
    }

    /// The value of f at `s`, never less than 0.
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
        self.scaled_cdf(s) / self.scale
    }

    /// The integral of the scaled polynomial from 0 to `s`.
    fn scaled_cdf(&self, s: f64) -> f64 {
        if !(s > 0.0) {
            0.0
        } else if s >= 1.0 {
            self.coefficients[0]
        } else {
            self.evaluate(s).0.clamp(0.0, self.coefficients[0])
        }
    }

    /// F and f at `s`, for the scaled polynomial.
    #[inline]
    fn evaluate(&self, s: f64) -> (f64, f64) {
        let x = 2.0 * s - 1.0;
        let (mut p_below, mut p, mut g_below, mut g) = (0.0, 1.0, 0.0, 1.0);
        let (mut density, mut correction) = (self.coefficients[0], 0.0);
        for (c, r) in self.coefficients[1..].iter().zip(&self.projection.recurrence) {
            (p_below, p) = (p, r[0] * x * p - r[1] * p_below);
            density += c * p;
            correction += c * g;
            (g_below, g) = (g, r[2] * x * g - r[3] * g_below);
        }
        (s * (self.coefficients[0] - (1.0 - s) * correction), density)
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
            let (cdf, density) = self.evaluate(s);
            let excess = cdf - target;
            self.narrow(s, excess, &mut low, &mut high);
            let newton = s - excess / density;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            let step = (next - s).abs();
            s = next;
            if step < SMALL_STEP {
                let interval = ((s * INTERVALS as f64) as u32).min(INTERVALS - 1);
                let ends = self.ends(interval);
                self.narrow(f64::from(interval) * INTERVAL, ends.0 - target, &mut low, &mut high);
                self.narrow(f64::from(interval + 1) * INTERVAL, ends.1 - target, &mut low, &mut high);
                if low == f64::from(interval) * INTERVAL && high == f64::from(interval + 1) * INTERVAL {
                    return inside(interval, ends, target);
                }
                missed += 1;
                if missed > 1 {
                    break;
                }
            }
        }
        let (mut first, mut last) = (0, INTERVALS);
        while last - first > 1 {
            let middle = first + (last - first) / 2;
            let at = f64::from(middle) * INTERVAL;
            let right = at <= low || (at < high && self.evaluate(at).0 <= target);
            if right { first = middle } else { last = middle }
        }
        inside(first, self.ends(first), target)
    }

    /// A position where F is close to a target, from the partial sums of the quadrature.
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

    /// Moves an end of the bracket to `s` if the difference of F from the target there is more than rounding.
    #[inline]
    fn narrow(&self, s: f64, excess: f64, low: &mut f64, high: &mut f64) {
        if excess > self.noise * s {
            *high = high.min(s);
        } else if excess < -self.noise * s {
            *low = low.max(s);
        }
    }

    /// F at both ends of a interval.
    fn ends(&self, interval: u32) -> (f64, f64) {
        let cdf = |k: u32| if k == INTERVALS { self.coefficients[0] } else { self.evaluate(f64::from(k) * INTERVAL).0 };
        (cdf(interval), cdf(interval + 1))
    }
}

/// The position inside an interval where a linear F meets the target.
fn inside(interval: u32, (low, high): (f64, f64), target: f64) -> f64 {
    let fraction = if high > low { ((target - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    f64::from(interval) * INTERVAL + fraction * INTERVAL
}
