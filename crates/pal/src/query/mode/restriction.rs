//! Chebyshev polynomials on a part of their interval.
//!
//! ```text
//! T_k(scale x + shift) = sum_j R_kj T_j(x),     R_(k+1) = 2 (scale x + shift) R_k - R_(k-1)
//! ```
//!
//! An error made in row i enters row k multiplied by a Chebyshev polynomial of the second kind, which is at most k - i
//! in magnitude. With the error of each row measured by the sum of the magnitudes of its entries, this bounds the error
//! of every row on the whole interval.

const EPS: f64 = f64::EPSILON;

/// The rows R_k, and for each the rounding error that a coefficient 1 of T_k may cause.
pub(super) struct Restriction {
    /// Row k has k + 1 entries and starts at k (k + 1) / 2.
    rows: Vec<f64>,
    cost: Vec<f64>,
}

impl Restriction {
    /// The rows up to a degree, where `scale + |shift| <= 1` up to rounding; both may be off by 2 ulp of 1.
    pub fn new(scale: f64, shift: f64, degree: usize) -> Restriction {
        let start = |k: usize| k * (k + 1) / 2;
        let mut rows = vec![0.0; start(degree + 1)];
        let mut cost = Vec::with_capacity(degree + 1);
        rows[0] = 1.0;
        if degree > 0 {
            (rows[1], rows[2]) = (shift, scale);
        }
        let (mut size, mut size_below) = (1.0, 0.0);
        let (mut error, mut fresh) = (0.0, 0.0);
        for k in 0..=degree {
            let square = (k * k) as f64;
            cost.push(error + EPS * (4.0 * square + (degree + 2) as f64 * size));
            if k == degree {
                break;
            }
            if k > 0 {
                let (known, next) = rows.split_at_mut(start(k + 1));
                let (below, row) = known[start(k - 1)..].split_at(k);
                for (m, next) in next[..=k + 1].iter_mut().enumerate() {
                    let at = |j: usize| row.get(j).copied().unwrap_or(0.0);
                    let left = match m {
                        0 => 0.0,
                        1 => 2.0 * row[0],
                        _ => row[m - 1],
                    };
                    let product = 2.0 * shift * at(m) + scale * (left + at(m + 1));
                    *next = product - below.get(m).copied().unwrap_or(0.0);
                }
            }
            fresh += 2.0 * EPS * (3.0 * size + size_below);
            error += fresh;
            size_below = size;
            size = rows[start(k + 1)..start(k + 2)].iter().map(|r| r.abs()).sum();
        }
        Restriction { rows, cost }
    }

    /// Computes the coefficients on the part from those of one fibre, and returns a bound on the rounding error.
    pub fn apply(&self, fibre: &[f64], out: &mut [f64]) -> f64 {
        out.fill(0.0);
        let (mut start, mut error) = (0, 0.0);
        for (k, (c, cost)) in fibre.iter().zip(&self.cost).enumerate() {
            let row = &self.rows[start..start + k + 1];
            out.iter_mut().zip(row).for_each(|(out, r)| *out += c * r);
            error += c.abs() * cost;
            start += k + 1;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::chebyshev;

    #[test]
    fn rows_are_the_polynomials_on_the_part() {
        for (scale, shift) in [(0.5, 0.5), (0.5, -0.5), (1.0, 0.0), (0.01, 0.99), (1e-9, -0.3), (0.3, 0.1)] {
            let degree = 48;
            let restriction = Restriction::new(scale, shift, degree);
            for k in 0..=degree {
                let mut unit = vec![0.0; k + 1];
                unit[k] = 1.0;
                let mut fibre = vec![0.0; k + 1];
                let error = restriction.apply(&unit, &mut fibre);
                assert!(error < 1e-10, "degree {k}: {error}");
                for x in [-1.0, -0.7, 0.0, 0.2, 1.0] {
                    let mut t = vec![0.0; k + 1];
                    chebyshev::values(x, &mut t);
                    let sum: f64 = fibre.iter().zip(&t).map(|(c, t)| c * t).sum();
                    let want = (k as f64 * f64::acos((scale * x + shift).clamp(-1.0, 1.0))).cos();
                    assert!((sum - want).abs() < 1e-13 * (k + 1) as f64, "T_{k}({scale} {x} + {shift}): {sum}, {want}");
                }
            }
        }
    }
}
