//! Several numbers that go through the same arithmetic side by side: one lane for each row of a batch.
//!
//! Kernels are written on [`Lanes`] in plain loops, and [`dispatch`] compiles them once for each generation of
//! processors; the widest one that the machine has is taken when the program runs. Products and sums are rounded one by
//! one (none is fused), so that results are the same on all of them.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use pulp::{Arch, Simd, WithSimd};

/// The number of lanes: one register of 512 bits in float32, two in float64.
pub(crate) const LANES: usize = 16;

/// float32 or float64.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::fmt::Debug
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// The smallest number whose logarithm is taken: below it a value counts as zero.
    const TINY: f64;
    /// The nearest number of this precision.
    fn from_f64(x: f64) -> Self;
    /// The same number in float64.
    fn to_f64(self) -> f64;
    /// The exponential of a number up to 0, without a branch: a loop over lanes becomes a few vector instructions.
    /// Below the logarithm of the smallest normal number it stays at that number.
    fn exp_of_negative(self) -> Self;
    /// The natural logarithm of a number from 1 on, without a branch.
    fn ln_above_one(self) -> Self;
}

impl Real for f32 {
    const TINY: f64 = 1e-35;

    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn exp_of_negative(self) -> f32 {
        // x = n log 2 + r with an integer n: adding 1.5 * 2^23 leaves n in the last bits.
        const ROUND: f32 = 12_582_912.0;
        let x = if self < -87.0 { -87.0 } else { self };
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
        let mut sum = 1.0 / 5040.0;
        for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            sum = sum * r + factor;
        }
        sum * f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23))
    }

    #[inline(always)]
    fn ln_above_one(self) -> f32 {
        // x = 2^e m with m around 1, and log m = 2 artanh((m - 1) / (m + 1)).
        let bits = self.to_bits();
        let e = f32::from_bits((bits >> 23) | 0x4b00_0000) - (8_388_608.0 + 127.0);
        let m = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
        let high = m > std::f32::consts::SQRT_2;
        let (m, e) = (if high { 0.5 * m } else { m }, if high { e + 1.0 } else { e });
        let z = (m - 1.0) / (m + 1.0);
        let square = z * z;
        let mut sum = 1.0 / 9.0;
        for factor in [1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
            sum = sum * square + factor;
        }
        2.0 * z * sum + e * std::f32::consts::LN_2
    }
}

impl Real for f64 {
    const TINY: f64 = 1e-280;

    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn exp_of_negative(self) -> f64 {
        const ROUND: f64 = 6_755_399_441_055_744.0;
        let x = if self < -708.0 { -708.0 } else { self };
        let shifted = x * std::f64::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * 0.693_145_751_953_125) - n * 1.428_606_820_309_417_2e-6;
        let mut sum = 1.0 / 6_227_020_800.0;
        for factor in [
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ] {
            sum = sum * r + factor;
        }
        sum * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
    }

    #[inline(always)]
    fn ln_above_one(self) -> f64 {
        let bits = self.to_bits();
        let e = f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
        let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
        let high = m > std::f64::consts::SQRT_2;
        let (m, e) = (if high { 0.5 * m } else { m }, if high { e + 1.0 } else { e });
        let z = (m - 1.0) / (m + 1.0);
        let square = z * z;
        let mut sum = 1.0 / 23.0;
        for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
            sum = sum * square + 1.0 / odd;
        }
        2.0 * z * sum + e * std::f64::consts::LN_2
    }
}

/// One number per lane.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Lanes<T>(pub [T; LANES]);

impl<T: Real> Lanes<T> {
    /// The same number in all lanes.
    #[inline(always)]
    pub fn splat(x: T) -> Lanes<T> {
        Lanes([x; LANES])
    }

    /// Zero in all lanes.
    #[inline(always)]
    pub fn zero() -> Lanes<T> {
        Lanes::splat(T::default())
    }

    /// All lanes times one number.
    #[inline(always)]
    pub fn times(mut self, factor: T) -> Lanes<T> {
        for x in &mut self.0 {
            *x = *x * factor;
        }
        self
    }

    /// Adds `other` times one number.
    #[inline(always)]
    pub fn add_times(&mut self, other: Lanes<T>, factor: T) {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y * factor;
        }
    }

    /// Adds the products of two.
    #[inline(always)]
    pub fn add_product(&mut self, a: Lanes<T>, b: Lanes<T>) {
        for (x, (a, b)) in self.0.iter_mut().zip(a.0.into_iter().zip(b.0)) {
            *x += a * b;
        }
    }

    /// One over each number.
    #[inline(always)]
    pub fn reciprocal(mut self) -> Lanes<T> {
        let one = T::from_f64(1.0);
        for x in &mut self.0 {
            *x = one / *x;
        }
        self
    }

    /// The larger of two, lane by lane.
    #[inline(always)]
    pub fn max(mut self, other: Lanes<T>) -> Lanes<T> {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = if *x < y { y } else { *x };
        }
        self
    }

    /// [`Real::exp_of_negative`] in every lane.
    #[inline(always)]
    pub fn exp(mut self) -> Lanes<T> {
        for x in &mut self.0 {
            *x = x.exp_of_negative();
        }
        self
    }

    /// [`Real::ln_above_one`] in every lane.
    #[inline(always)]
    pub fn ln(mut self) -> Lanes<T> {
        for x in &mut self.0 {
            *x = x.ln_above_one();
        }
        self
    }

    /// The magnitudes.
    #[inline(always)]
    pub fn abs(mut self) -> Lanes<T> {
        for x in &mut self.0 {
            *x = if *x < T::default() { -*x } else { *x };
        }
        self
    }
}

impl<T: Real> Add for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn add(mut self, other: Lanes<T>) -> Lanes<T> {
        self += other;
        self
    }
}

impl<T: Real> AddAssign for Lanes<T> {
    #[inline(always)]
    fn add_assign(&mut self, other: Lanes<T>) {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y;
        }
    }
}

impl<T: Real> Sub for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn sub(mut self, other: Lanes<T>) -> Lanes<T> {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = *x - y;
        }
        self
    }
}

impl<T: Real> Mul for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn mul(mut self, other: Lanes<T>) -> Lanes<T> {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = *x * y;
        }
        self
    }
}

/// Hides a reference from the optimiser in a loop over many [`Lanes`]: it would otherwise work on the same lane of several
/// of them at once, and gather these from memory, instead of on all lanes of one.
#[inline(always)]
pub(crate) fn one_by_one<R>(reference: R) -> R {
    std::hint::black_box(reference)
}

/// A piece of work that is compiled for every generation of processors. Everything that it calls has to be inlined
/// into it, or is compiled for the oldest one.
pub(crate) trait LaneWork {
    /// What the work returns.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

struct Dispatched<W>(W);

impl<W: LaneWork> WithSimd for Dispatched<W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> W::Output {
        self.0.run()
    }
}

/// Does the work with the widest registers that the machine has.
pub(crate) fn dispatch<W: LaneWork>(work: W) -> W::Output {
    Arch::new().dispatch(Dispatched(work))
}

/// The scalar product, in eight sums that do not wait for one another.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a_parts, b_parts) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_logarithms_are_those_of_the_standard_library() {
        for k in 0..200_000 {
            let x = -f64::from(k) * 0.004;
            let want = x.max(-708.0).exp();
            assert!((x.exp_of_negative() / want - 1.0).abs() < 1e-15, "{x}");
            let short = x as f32;
            let want = f64::from(short.max(-87.0)).exp();
            assert!((short.exp_of_negative().to_f64() / want - 1.0).abs() < 3e-7, "{short}");
            let y = 1.0 + (f64::from(k) * 1e-4).powi(9);
            assert!((y.ln_above_one() - y.ln()).abs() < 4e-16 * (1.0 + y.ln()), "{y}");
            let short = y as f32;
            let want = f64::from(short).ln();
            assert!((short.ln_above_one().to_f64() - want).abs() < 2e-7 * (1.0 + want), "{y}");
        }
        assert_eq!((1f64.ln_above_one(), 0f64.exp_of_negative()), (0.0, 1.0));
    }
}
