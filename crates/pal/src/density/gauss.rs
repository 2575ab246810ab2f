//! Gauss-Legendre quadrature: `m` nodes integrate polynomials up to degree `2 m - 1` exactly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Nodes and weights on [0, 1]; the weights are positive and sum to 1.
#[derive(Clone, Debug)]
pub(crate) struct Gauss {
    pub nodes: Vec<f64>,
    pub weights: Vec<f64>,
}

impl Gauss {
    /// The rule with `points` nodes, which are at least one; computed once per process.
    pub fn with_points(points: usize) -> Arc<Gauss> {
        static KNOWN: OnceLock<Mutex<HashMap<usize, Arc<Gauss>>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        // A rule is complete before it enters the table, so that a poisoned lock does no harm.
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(points.max(1)).or_insert_with(|| Arc::new(Gauss::compute(points.max(1)))).clone()
    }

    /// The smallest rule that is exact for polynomials up to a degree.
    pub fn for_degree(degree: usize) -> Arc<Gauss> {
        Gauss::with_points(degree / 2 + 1)
    }

    /// Newton's method on the Legendre polynomial, from the asymptotic formula for its zeros.
    fn compute(m: usize) -> Gauss {
        let mut rule = Gauss { nodes: vec![0.5; m], weights: vec![1.0; m] };
        for k in 0..m.div_ceil(2) {
            let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (m as f64 + 0.5)).cos();
            let mut derivative = 1.0;
            for _ in 0..100 {
                let (p, d) = legendre(m, x);
                derivative = d;
                let step = p / d;
                x -= step;
                if step.abs() < 1e-16 {
                    derivative = legendre(m, x).1;
                    break;
                }
            }
            if 2 * k + 1 == m {
                x = 0.0;
                derivative = legendre(m, x).1;
            }
            let weight = 1.0 / ((1.0 - x * x) * derivative * derivative);
            (rule.nodes[k], rule.nodes[m - 1 - k]) = ((1.0 - x) / 2.0, (1.0 + x) / 2.0);
            (rule.weights[k], rule.weights[m - 1 - k]) = (weight, weight);
        }
        rule
    }
}

/// The Legendre polynomial of a degree and its derivative, inside (-1, 1).
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut below, mut p) = (0.0, 1.0);
    for k in 0..degree {
        let k = k as f64;
        (below, p) = (p, ((2.0 * k + 1.0) * x * p - k * below) / (k + 1.0));
    }
    (p, degree as f64 * (x * p - below) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_integrated_exactly() {
        for m in [1, 2, 3, 7, 8, 25, 49] {
            let rule = Gauss::with_points(m);
            for power in [0, 1, m, 2 * m - 1] {
                let sum: f64 = rule.nodes.iter().zip(&rule.weights).map(|(x, w)| w * x.powi(power as i32)).sum();
                let want = 1.0 / (power as f64 + 1.0);
                assert!((sum / want - 1.0).abs() < 3e-15 * (m as f64), "{m} nodes, x^{power}: {sum}");
            }
            assert!(rule.nodes.is_sorted() && rule.weights.iter().all(|w| *w > 0.0));
        }
    }
}
