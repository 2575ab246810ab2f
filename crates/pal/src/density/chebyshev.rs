//! Chebyshev polynomials T_k(x) = cos(k arccos x) on [-1, 1].
//!
//! They stay below 1, so coefficients are as small as the polynomial, and `T_a T_b = (T_(a+b) + T_|a-b|) / 2` multiplies without cancellation.

/// T_0 .. T_k at x, as many as fit.
pub(crate) fn values(x: f64, out: &mut [f64]) {
    for k in 0..out.len() {
        out[k] = match k {
            0 => 1.0,
            1 => x,
            _ => 2.0 * x * out[k - 1] - out[k - 2],
        };
    }
}

/// The square of a polynomial.
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
}
