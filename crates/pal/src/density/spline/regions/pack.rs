//! Several components of one row side by side.
//!
//! Where every row has a form of its own, its table can be shared by the components of one row only. A pack holds eight
//! of them: one register of 512 bits in float64.

use crate::density::lanes::Real;

/// The number of components that go through together.
pub(super) const PACK: usize = 8;

/// One number per component.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Pack<T>(pub [T; PACK]);

impl<T: Real> Pack<T> {
    #[inline(always)]
    pub fn splat(x: T) -> Pack<T> {
        Pack([x; PACK])
    }

    #[inline(always)]
    pub fn zero() -> Pack<T> {
        Pack::splat(T::default())
    }

    /// All numbers times one.
    #[inline(always)]
    pub fn times(mut self, factor: T) -> Pack<T> {
        for x in &mut self.0 {
            *x = *x * factor;
        }
        self
    }

    /// The products of two packs.
    #[inline(always)]
    pub fn product(mut self, other: Pack<T>) -> Pack<T> {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = *x * y;
        }
        self
    }

    /// Adds another pack.
    #[inline(always)]
    pub fn add(&mut self, other: Pack<T>) {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y;
        }
    }

    /// Adds another pack times one number.
    #[inline(always)]
    pub fn add_times(&mut self, other: Pack<T>, factor: T) {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y * factor;
        }
    }

    /// Adds the products of two packs.
    #[inline(always)]
    pub fn add_product(&mut self, a: Pack<T>, b: Pack<T>) {
        for (x, (a, b)) in self.0.iter_mut().zip(a.0.into_iter().zip(b.0)) {
            *x += a * b;
        }
    }

    /// The magnitudes.
    #[inline(always)]
    pub fn abs(mut self) -> Pack<T> {
        for x in &mut self.0 {
            *x = if *x < T::default() { -*x } else { *x };
        }
        self
    }
}
