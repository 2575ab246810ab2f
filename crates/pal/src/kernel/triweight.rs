//! The triweight kernel `k(u) = 35/32 (1 - u^2)^3` on [-1, 1]: a polynomial bell that integrates to 1 and is twice
//! continuously differentiable, with its integral.

/// `k(0)`, so that the integral is 1.
pub(super) const HEIGHT: f64 = 35.0 / 32.0;

/// `k(u)` inside [-1, 1].
#[inline(always)]
pub(super) fn inside(u: f64) -> f64 {
    let a = 1.0 - u * u;
    HEIGHT * (a * a * a)
}

/// `k(u)` anywhere.
#[inline(always)]
pub(super) fn value(u: f64) -> f64 {
    if u.abs() < 1.0 { inside(u) } else { 0.0 }
}

/// The derivative of `k` inside [-1, 1].
#[inline(always)]
pub(super) fn slope(u: f64) -> f64 {
    let a = 1.0 - u * u;
    -6.0 * HEIGHT * u * (a * a)
}

/// The integral of `k` from -1 to `u`, inside [-1, 1].
#[inline(always)]
pub(super) fn integral_inside(u: f64) -> f64 {
    let s = u * u;
    0.5 + HEIGHT * u * (1.0 - s * (1.0 - s * (0.6 - s * (1.0 / 7.0))))
}

/// The integral of `k` from minus infinity to `u`.
#[inline(always)]
pub(super) fn integral(u: f64) -> f64 {
    integral_inside(u.clamp(-1.0, 1.0))
}

/// The integral of `k` between two numbers in [-1, 1]: a sum of positive terms, because the difference of two values of
/// [`integral`] would lose digits where they are close together.
pub(super) fn integral_between(low: f64, high: f64) -> f64 {
    // Four nodes of Gauss and Legendre are exact up to degree 7.
    const NODES: [f64; 4] =
        [0.069_431_844_202_973_71, 0.330_009_478_207_571_9, 0.669_990_521_792_428_1, 0.930_568_155_797_026_3];
    const WEIGHTS: [f64; 4] =
        [0.173_927_422_568_726_93, 0.326_072_577_431_273_1, 0.326_072_577_431_273_1, 0.173_927_422_568_726_93];
    let mut sum = 0.0;
    for j in 0..4 {
        sum += WEIGHTS[j] * value(low + NODES[j] * (high - low));
    }
    sum * (high - low)
}

/// The number between `low` and `high`, both in [-1, 1], below which the fraction `uniform` of the integral of `k`
/// between them lies.
pub(super) fn quantile_between(low: f64, high: f64, uniform: f64) -> f64 {
    let target = uniform * integral_between(low, high);
    let (mut a, mut b) = (low, high);
    let mut u = low + uniform * (high - low);
    for _ in 0..60 {
        let excess = integral_between(low, u) - target;
        if excess > 0.0 {
            b = u
        } else {
            a = u
        }
        let step = u - excess / inside(u);
        // Newton's method, inside an interval that is known to hold the solution.
        let next = if step > a && step < b { step } else { 0.5 * (a + b) };
        if (next - u).abs() <= 1e-16 {
            break;
        }
        u = next;
    }
    u.clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_is_that_of_the_kernel() {
        for (u, expected) in [(-2.0, 0.0), (0.0, 0.5), (1.0, 1.0), (5.0, 1.0)] {
            assert!((integral(u) - expected).abs() < 1e-15);
        }
        assert!((integral_between(-1.0, 1.0) - 1.0).abs() < 1e-15);
        for u in [-0.9, -0.3, 0.2, 0.75] {
            let h = 1e-5;
            assert!(((integral(u + h) - integral(u - h)) / (2.0 * h) - value(u)).abs() < 1e-8);
            assert!(((value(u + h) - value(u - h)) / (2.0 * h) - slope(u)).abs() < 1e-8);
        }
        assert_eq!((value(1.0), value(-1.5)), (0.0, 0.0));
    }

    #[test]
    fn quantiles_invert_the_integral() {
        for (low, high) in [(-1.0, 1.0), (-0.2, 0.9), (0.99, 1.0), (-1.0, -0.999)] {
            for uniform in [0.01, 0.3, 0.5, 0.97] {
                let u = quantile_between(low, high, uniform);
                let fraction = integral_between(low, u) / integral_between(low, high);
                assert!(
                    u >= low && u <= high && (fraction - uniform).abs() < 1e-9,
                    "{low} {high} {uniform}: {fraction}"
                );
            }
        }
    }
}
