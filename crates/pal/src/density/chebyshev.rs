//! Chebyshev polynomials T_k(x) = cos(k arccos x) on [-1, 1].
//!
//! Their values are at most 1 in magnitude, so that coefficients are as small as the polynomial, and
//! `T_a T_b = (T_(a+b) + T_|a-b|) / 2` multiplies without cancellation.

/// Computes T_0, T_1, .. at x, as many as `out` has room for.
pub(crate) fn values(x: f64, out: &mut [f64]) {
    for k in 0..out.len() {
        out[k] = match k {
            0 => 1.0,
            1 => x,
            _ => 2.0 * x * out[k - 1] - out[k - 2],
        };
    }
}

/// Computes the derivatives of an order of T_0, T_1, .. at x, as many as `out` has room for.
pub(crate) fn derivatives(x: f64, order: u16, out: &mut [f64]) {
    values(x, out);
    for order in 1..=order {
        // The recurrence of the values, differentiated: T_k' = 2 x T_(k-1)' + 2 T_(k-1) - T_(k-2)', and so on.
        let lower = out.to_vec();
        for k in 0..out.len() {
            out[k] = match k {
                0 => 0.0,
                1 => f64::from(order == 1),
                _ => 2.0 * x * out[k - 1] + 2.0 * f64::from(order) * lower[k - 1] - out[k - 2],
            };
        }
    }
}

/// The Chebyshev coefficients of the square of a polynomial.
pub(crate) fn square(coefficients: &[f64]) -> Vec<f64> {
    let mut square = vec![0.0; 2 * coefficients.len().max(1) - 1];
    for (a, x) in coefficients.iter().enumerate() {
        for (b, y) in coefficients.iter().enumerate() {
            let half = x * y / 2.0;
            square[a + b] += half;
            square[a.abs_diff(b)] += half;
        }
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_agree_with_values() {
        let p = [0.3, -1.0, 0.25, 2.0];
        let square = square(&p);
        for x in [-1.0, -0.4, 0.0, 0.9, 1.0] {
            let mut t = [0.0; 7];
            values(x, &mut t);
            let dot = |c: &[f64]| c.iter().zip(&t).map(|(c, t)| c * t).sum::<f64>();
            assert!((dot(&square) - dot(&p).powi(2)).abs() < 1e-14);
            assert!((t[6] - (6.0 * f64::acos(x)).cos()).abs() < 1e-14);
        }
    }

    /// T_4 = 8 x^4 - 8 x^2 + 1 and T_5 = 16 x^5 - 20 x^3 + 5 x.
    #[test]
    fn derivatives_of_every_order() {
        for x in [-1.0f64, -0.3, 0.0, 0.7, 1.0] {
            let four = [32.0 * x.powi(3) - 16.0 * x, 96.0 * x * x - 16.0, 192.0 * x, 192.0, 0.0, 0.0];
            let five = [
                80.0 * x.powi(4) - 60.0 * x * x + 5.0,
                320.0 * x.powi(3) - 120.0 * x,
                960.0 * x * x - 120.0,
                1920.0 * x,
                1920.0,
                0.0,
            ];
            for order in 1..=6 {
                let mut t = [0.0; 6];
                derivatives(x, order, &mut t);
                let at = usize::from(order) - 1;
                assert!((t[4] - four[at]).abs() < 1e-12 && (t[5] - five[at]).abs() < 1e-12, "{order} {x}: {t:?}");
                assert_eq!([t[0], t[1]], [0.0, if order == 1 { 1.0 } else { 0.0 }]);
            }
        }
    }
}
