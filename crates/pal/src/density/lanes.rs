//! Several numbers that go through the same arithmetic side by side: one lane for each row of a batch.
//!
//! Kernels are written on [`Lanes`] in plain loops, and [`dispatch`] compiles them once for each generation of
//! processors; the widest one that the machine has is taken when the program runs. Products and sums are rounded one by
//! one (none is fused), so that results are the same on all of them. Where the compiler would rather work on the same
//! lane of several [`Lanes`] at once, a kernel names the registers itself ([`Real::registers`]).

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

pub(crate) use pulp::Simd;
use pulp::{Arch, WithSimd};

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
    /// The natural logarithm of a positive number that is not denormal, without a branch.
    fn ln_of_normal(self) -> Self;

    /// A register of the processor.
    type Register<S: Simd>: Copy;
    /// All lanes as registers.
    fn registers<S: Simd>(lanes: &[Self]) -> &[Self::Register<S>];
    /// All lanes as registers to write to.
    fn registers_mut<S: Simd>(lanes: &mut [Self]) -> &mut [Self::Register<S>];
    /// The same number everywhere in a register.
    fn fill<S: Simd>(simd: S, x: Self) -> Self::Register<S>;
    /// `sum + a b`, with the product rounded.
    fn plus_product<S: Simd>(
        simd: S,
        sum: Self::Register<S>,
        a: Self::Register<S>,
        b: Self::Register<S>,
    ) -> Self::Register<S>;
}

impl Real for f32 {
    type Register<S: Simd> = S::f32s;

    #[inline(always)]
    fn registers<S: Simd>(lanes: &[f32]) -> &[S::f32s] {
        S::as_simd_f32s(lanes).0
    }

    #[inline(always)]
    fn registers_mut<S: Simd>(lanes: &mut [f32]) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(lanes).0
    }

    #[inline(always)]
    fn fill<S: Simd>(simd: S, x: f32) -> S::f32s {
        simd.splat_f32s(x)
    }

    #[inline(always)]
    fn plus_product<S: Simd>(simd: S, sum: S::f32s, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.add_f32s(sum, simd.mul_f32s(a, b))
    }

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
    fn ln_of_normal(self) -> f32 {
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
    type Register<S: Simd> = S::f64s;

    #[inline(always)]
    fn registers<S: Simd>(lanes: &[f64]) -> &[S::f64s] {
        S::as_simd_f64s(lanes).0
    }

    #[inline(always)]
    fn registers_mut<S: Simd>(lanes: &mut [f64]) -> &mut [S::f64s] {
        S::as_mut_simd_f64s(lanes).0
    }

    #[inline(always)]
    fn fill<S: Simd>(simd: S, x: f64) -> S::f64s {
        simd.splat_f64s(x)
    }

    #[inline(always)]
    fn plus_product<S: Simd>(simd: S, sum: S::f64s, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.add_f64s(sum, simd.mul_f64s(a, b))
    }

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
    fn ln_of_normal(self) -> f64 {
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

// Plain loops over indices become single instructions. Iterators over arrays, and closures, which would be compiled for
// the oldest processor unless they are inlined, do not always.
#[allow(clippy::needless_range_loop)]
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
        for k in 0..LANES {
            self.0[k] = self.0[k] * factor;
        }
        self
    }

    /// Adds `other` times one number.
    #[inline(always)]
    pub fn add_times(&mut self, other: Lanes<T>, factor: T) {
        for k in 0..LANES {
            self.0[k] += other.0[k] * factor;
        }
    }

    /// Adds the products of two.
    #[inline(always)]
    pub fn add_product(&mut self, a: Lanes<T>, b: Lanes<T>) {
        for k in 0..LANES {
            self.0[k] += a.0[k] * b.0[k];
        }
    }

    /// One over each number.
    #[inline(always)]
    pub fn reciprocal(mut self) -> Lanes<T> {
        let one = T::from_f64(1.0);
        for k in 0..LANES {
            self.0[k] = one / self.0[k];
        }
        self
    }

    /// The larger of two, lane by lane.
    #[inline(always)]
    pub fn max(mut self, other: Lanes<T>) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = if self.0[k] < other.0[k] { other.0[k] } else { self.0[k] };
        }
        self
    }

    /// Replaces the lanes in which `numbers` are at most `limit` by a value.
    #[inline(always)]
    pub fn where_at_most(mut self, numbers: Lanes<T>, limit: T, value: T) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = if numbers.0[k] <= limit { value } else { self.0[k] };
        }
        self
    }

    /// [`Real::exp_of_negative`] in every lane.
    #[inline(always)]
    pub fn exp(mut self) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = self.0[k].exp_of_negative();
        }
        self
    }

    /// [`Real::ln_of_normal`] in every lane.
    #[inline(always)]
    pub fn ln(mut self) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = self.0[k].ln_of_normal();
        }
        self
    }

    /// The magnitudes.
    #[inline(always)]
    pub fn abs(mut self) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = if self.0[k] < T::default() { -self.0[k] } else { self.0[k] };
        }
        self
    }
}

#[allow(clippy::needless_range_loop)]
impl<T: Real> Add for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn add(mut self, other: Lanes<T>) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] += other.0[k];
        }
        self
    }
}

#[allow(clippy::needless_range_loop)]
impl<T: Real> AddAssign for Lanes<T> {
    #[inline(always)]
    fn add_assign(&mut self, other: Lanes<T>) {
        for k in 0..LANES {
            self.0[k] += other.0[k];
        }
    }
}

#[allow(clippy::needless_range_loop)]
impl<T: Real> Sub for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn sub(mut self, other: Lanes<T>) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = self.0[k] - other.0[k];
        }
        self
    }
}

#[allow(clippy::needless_range_loop)]
impl<T: Real> Mul for Lanes<T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn mul(mut self, other: Lanes<T>) -> Lanes<T> {
        for k in 0..LANES {
            self.0[k] = self.0[k] * other.0[k];
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

    /// Does the work, with the registers of one generation.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

struct Dispatched<W>(W);

impl<W: LaneWork> WithSimd for Dispatched<W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> W::Output {
        self.0.run(simd)
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
            assert!((y.ln_of_normal() - y.ln()).abs() < 4e-16 * (1.0 + y.ln()), "{y}");
            let short = y as f32;
            let want = f64::from(short).ln();
            assert!((short.ln_of_normal().to_f64() - want).abs() < 2e-7 * (1.0 + want), "{y}");
            let small = (-f64::from(k) * 1e-4 * if k % 2 == 0 { 1.0 } else { 35.0 }).exp();
            assert!((small.ln_of_normal() - small.ln()).abs() < 4e-16 * (1.0 - small.ln()), "{small}");
        }
        assert_eq!((1f64.ln_of_normal(), 0f64.exp_of_negative()), (0.0, 1.0));
    }
}
