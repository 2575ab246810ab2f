//! Cubic Hermite splines in one variable, bin by bin in Bernstein form.
//!
//! Between two knots with values v0, v1 and derivatives d0, d1 (in units of the bin) the cubic has the Bernstein
//! coefficients
//!
//! ```text
//! v0,   v0 + d0 / 3,   v1 - d1 / 3,   v1
//! ```
//!
//! on t in [0, 1], and its square, of degree 6, has `S_k = sum_(i+j=k) C(3,i) C(3,j) / C(6,k) b_i b_j`: all factors are
//! positive.

/// The number of coefficients of a cubic.
pub(super) const CUBIC: usize = 4;
/// The number of coefficients of the square of a cubic.
pub(super) const SQUARE: usize = 7;

const BINOMIAL_3: [f64; CUBIC] = [1.0, 3.0, 3.0, 1.0];
pub(super) const BINOMIAL_6: [f64; SQUARE] = [1.0, 6.0, 15.0, 20.0, 15.0, 6.0, 1.0];

/// Computes the Bernstein coefficients of all bins from values and derivatives at the knots. Derivatives are multiplied
/// by `stretch[bin]` to be in units of the bin; it is 1 for equally spaced knots.
pub(super) fn expand(values: &[f64], derivatives: &[f64], stretch: &[f64], out: &mut [f64]) {
    for (bin, (b, stretch)) in out.chunks_exact_mut(CUBIC).zip(stretch).enumerate() {
        b[0] = values[bin];
        b[1] = values[bin] + derivatives[bin] * stretch / 3.0;
        b[2] = values[bin + 1] - derivatives[bin + 1] * stretch / 3.0;
        b[3] = values[bin + 1];
    }
}

/// Adds the transpose of [`expand`], times `factor`: from a gradient with respect to coefficients to one with respect
/// to values and derivatives.
pub(super) fn pull_back(gradient: &[f64], stretch: &[f64], factor: f64, values: &mut [f64], derivatives: &mut [f64]) {
    for (bin, (g, stretch)) in gradient.chunks_exact(CUBIC).zip(stretch).enumerate() {
        pull_back_bin(g, bin, *stretch, factor, values, derivatives);
    }
}

/// [`pull_back`] for one bin.
pub(super) fn pull_back_bin(
    g: &[f64],
    bin: usize,
    stretch: f64,
    factor: f64,
    values: &mut [f64],
    derivatives: &mut [f64],
) {
    values[bin] += (g[0] + g[1]) * factor;
    values[bin + 1] += (g[2] + g[3]) * factor;
    derivatives[bin] += g[1] * stretch / 3.0 * factor;
    derivatives[bin + 1] -= g[2] * stretch / 3.0 * factor;
}

/// The square of a cubic.
pub(super) fn square(b: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (i, x) in b.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += BINOMIAL_3[i] * x * (BINOMIAL_3[j] * y);
        }
    }
    out.iter_mut().zip(BINOMIAL_6).for_each(|(s, c)| *s /= c);
}

/// Adds the gradient with respect to a cubic, given the one with respect to its square.
pub(super) fn add_square_gradient(b: &[f64], gradient: &[f64], out: &mut [f64]) {
    for i in 0..CUBIC {
        for j in 0..CUBIC {
            out[i] += 2.0 * gradient[i + j] / BINOMIAL_6[i + j] * BINOMIAL_3[i] * BINOMIAL_3[j] * b[j];
        }
    }
}

/// Bernstein polynomials of degree 3.
pub(super) fn basis(t: f64) -> [f64; CUBIC] {
    let s = 1.0 - t;
    [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t]
}

/// The derivatives of the Bernstein polynomials of degree 3, of a given order.
pub(super) fn basis_derivatives(t: f64, order: u16) -> [f64; CUBIC] {
    let s = 1.0 - t;
    match order {
        0 => basis(t),
        1 => [-3.0 * s * s, 3.0 * s * (s - 2.0 * t), 3.0 * t * (2.0 * s - t), 3.0 * t * t],
        2 => [6.0 * s, 6.0 * (t - 2.0 * s), 6.0 * (s - 2.0 * t), 6.0 * t],
        3 => [-6.0, 18.0, -18.0, 6.0],
        _ => [0.0; CUBIC],
    }
}

/// Bernstein polynomials of degree 6.
pub(super) fn square_basis(t: f64) -> [f64; SQUARE] {
    let (s, mut up, mut down) = (1.0 - t, [1.0; SQUARE], [1.0; SQUARE]);
    for k in 1..SQUARE {
        up[k] = up[k - 1] * t;
        down[k] = down[k - 1] * s;
    }
    std::array::from_fn(|k| BINOMIAL_6[k] * up[k] * down[SQUARE - 1 - k])
}

/// The value of a cubic.
#[inline(always)]
pub(super) fn value(b: &[f64], t: f64) -> f64 {
    let s = 1.0 - t;
    // Pairs of products, so that no power of t is formed alone.
    (b[0] * s + 3.0 * b[1] * t) * (s * s) + (3.0 * b[2] * s + b[3] * t) * (t * t)
}

/// The coefficients of a cubic in Chebyshev polynomials of 2 t - 1.
pub(super) fn chebyshev(b: &[f64]) -> [f64; CUBIC] {
    let (ends, middle) = (b[0] + b[3], b[1] + b[2]);
    let (odd_ends, odd_middle) = (b[3] - b[0], b[2] - b[1]);
    [
        (5.0 * ends + 3.0 * middle) / 16.0,
        (15.0 * odd_ends + 3.0 * odd_middle) / 32.0,
        3.0 * (ends - middle) / 16.0,
        (odd_ends - 3.0 * odd_middle) / 32.0,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spline_takes_values_and_derivatives_at_its_knots() {
        let (values, derivatives) = ([1.0, -2.0, 0.5], [0.25, 3.0, -1.0]);
        let mut b = [0.0; 8];
        expand(&values, &derivatives, &[1.0, 0.5], &mut b);
        let h = 1e-6;
        for (bin, stretch) in [(0, 1.0), (1, 0.5)] {
            let cubic = &b[bin * 4..][..4];
            assert_eq!((value(cubic, 0.0), value(cubic, 1.0)), (values[bin], values[bin + 1]));
            let derivative = (value(cubic, h) - value(cubic, 0.0)) / h;
            assert!((derivative - derivatives[bin] * stretch).abs() < 1e-4);
            for t in [0.0, 0.3, 0.77, 1.0] {
                let dot = |b: &[f64], basis: &[f64]| b.iter().zip(basis).map(|(b, p)| b * p).sum::<f64>();
                assert!((dot(cubic, &basis(t)) - value(cubic, t)).abs() < 1e-15);
                let mut s = [0.0; SQUARE];
                square(cubic, &mut s);
                assert!((dot(&s, &square_basis(t)) - value(cubic, t).powi(2)).abs() < 1e-14);
                for order in 1..6 {
                    let lower = |t: f64| dot(cubic, &basis_derivatives(t, order - 1));
                    let want = (lower(t + h) - lower(t - h)) / (2.0 * h);
                    assert!((dot(cubic, &basis_derivatives(t, order)) - want).abs() < 1e-6, "{order}");
                }
                let mut polynomials = [0.0; CUBIC];
                crate::density::chebyshev::values(2.0 * t - 1.0, &mut polynomials);
                assert!((dot(&chebyshev(cubic), &polynomials) - value(cubic, t)).abs() < 1e-15);
            }
        }
    }
}
