//! Integers that rays are made of: machine words as long as they hold, integers of any size otherwise.

use std::cmp::Ordering;

use dashu_int::ops::{Gcd, UnsignedAbs};

use crate::number::{Integer, bit_length};

/// An operation that left the range of machine words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// Exact arithmetic on vectors of integers. Nothing wraps around: what does not fit is an [`Overflow`].
pub(crate) trait ExactScalar: Clone + Send + Sync {
    /// The number, if it is in range.
    fn from_integer(value: &Integer) -> Result<Self, Overflow>;
    fn to_integer(&self) -> Integer;
    fn sign(&self) -> Ordering;
    /// The sum of products.
    fn dot_pairs<'s>(pairs: impl Iterator<Item = (&'s Self, &'s Self)>) -> Result<Self, Overflow>
    where
        Self: 's;
    /// The inner product.
    fn dot(row: &[Self], ray: &[Self]) -> Result<Self, Overflow> {
        Self::dot_pairs(row.iter().zip(ray))
    }
    /// `(a x - b y) / d`, which is known to be an integer.
    fn minor(a: &Self, x: &Self, b: &Self, y: &Self, d: &Self) -> Result<Self, Overflow>;
    /// `s a - t b` without the common divisor of its entries.
    fn combine(s: &Self, a: &[Self], t: &Self, b: &[Self]) -> Result<Vec<Self>, Overflow>;
}

impl ExactScalar for i64 {
    fn from_integer(value: &Integer) -> Result<Self, Overflow> {
        i64::try_from(value).map_err(|_| Overflow)
    }

    fn to_integer(&self) -> Integer {
        Integer::from(*self)
    }

    fn sign(&self) -> Ordering {
        self.cmp(&0)
    }

    fn dot_pairs<'s>(pairs: impl Iterator<Item = (&'s Self, &'s Self)>) -> Result<Self, Overflow> {
        let mut sum = 0i128;
        for (a, x) in pairs {
            sum = sum.checked_add(i128::from(*a) * i128::from(*x)).ok_or(Overflow)?;
        }
        i64::try_from(sum).map_err(|_| Overflow)
    }

    fn minor(a: &Self, x: &Self, b: &Self, y: &Self, d: &Self) -> Result<Self, Overflow> {
        let products = (i128::from(*a) * i128::from(*x), i128::from(*b) * i128::from(*y));
        let difference = products.0.checked_sub(products.1).ok_or(Overflow)?;
        // Division of words is several times faster than that of double words.
        match i64::try_from(difference) {
            Ok(word) => word.checked_div(*d).ok_or(Overflow),
            Err(_) => i64::try_from(difference / i128::from(*d)).map_err(|_| Overflow),
        }
    }

    fn combine(s: &Self, a: &[Self], t: &Self, b: &[Self]) -> Result<Vec<Self>, Overflow> {
        let common = gcd(s.unsigned_abs().into(), t.unsigned_abs().into()).max(1) as i128;
        let (s, t) = (i128::from(*s) / common, i128::from(*t) / common);
        let mut sums = Vec::with_capacity(a.len());
        let mut divisor = 0u128;
        for (x, y) in a.iter().zip(b) {
            let sum = (s * i128::from(*x)).checked_sub(t * i128::from(*y)).ok_or(Overflow)?;
            if divisor != 1 {
                divisor = gcd(divisor, sum.unsigned_abs());
            }
            sums.push(sum);
        }
        let divisor = i128::try_from(divisor.max(1)).map_err(|_| Overflow)?;
        sums.iter().map(|sum| i64::try_from(sum / divisor).map_err(|_| Overflow)).collect()
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        // Division of words is several times faster than that of double words.
        if let (Ok(x), Ok(y)) = (u64::try_from(a), u64::try_from(b)) {
            let (mut x, mut y) = (x, y);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            return x.into();
        }
        (a, b) = (b, a % b);
    }
    a
}

impl ExactScalar for Integer {
    fn from_integer(value: &Integer) -> Result<Self, Overflow> {
        Ok(value.clone())
    }

    fn to_integer(&self) -> Integer {
        self.clone()
    }

    fn sign(&self) -> Ordering {
        self.cmp(&Integer::ZERO)
    }

    fn dot_pairs<'s>(pairs: impl Iterator<Item = (&'s Self, &'s Self)>) -> Result<Self, Overflow> {
        let products = pairs.filter(|(a, x)| !a.is_zero() && !x.is_zero());
        Ok(products.fold(Integer::ZERO, |sum, (a, x)| sum + a * x))
    }

    fn minor(a: &Self, x: &Self, b: &Self, y: &Self, d: &Self) -> Result<Self, Overflow> {
        let difference = a * x - b * y;
        Ok(if d.is_one() { difference } else { difference / d })
    }

    fn combine(s: &Self, a: &[Self], t: &Self, b: &[Self]) -> Result<Vec<Self>, Overflow> {
        let mut sums: Vec<Integer> = a.iter().zip(b).map(|(x, y)| s * x - t * y).collect();
        // The smallest entry first: the divisor is then short from the start.
        let start = sums.iter().filter(|x| !x.is_zero()).min_by_key(|x| bit_length(x)).map(UnsignedAbs::unsigned_abs);
        let Some(mut divisor) = start else { return Ok(sums) };
        for x in &sums {
            if divisor.is_one() {
                return Ok(sums);
            }
            if !x.is_zero() {
                divisor = divisor.gcd(x.unsigned_abs());
            }
        }
        let divisor = Integer::from(divisor);
        sums.iter_mut().for_each(|x| *x = &*x / &divisor);
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn words_and_integers_agree_or_overflow() {
        let mut stream = Stream::new(7, 0);
        let mut overflows = 0;
        for k in 0..2000 {
            let bits = 4 + k % 60;
            let mut draw = || (stream.bits() as i64) >> (64 - bits.min(63));
            let (a, b): (Vec<i64>, Vec<i64>) = ((0..4).map(|_| draw()).collect(), (0..4).map(|_| draw()).collect());
            let (s, t) = (draw(), draw());
            let wide = |v: &[i64]| v.iter().map(|x| Integer::from(*x)).collect::<Vec<_>>();
            let dot = Integer::dot(&wide(&a), &wide(&b)).unwrap();
            match i64::dot(&a, &b) {
                Ok(value) => assert_eq!(Integer::from(value), dot),
                Err(Overflow) => assert!(bit_length(&dot) > 63),
            }
            let combined = Integer::combine(&s.into(), &wide(&a), &t.into(), &wide(&b)).unwrap();
            match i64::combine(&s, &a, &t, &b) {
                Ok(values) => assert_eq!(wide(&values), combined),
                Err(Overflow) => overflows += 1,
            }
        }
        assert!((100..1500).contains(&overflows), "{overflows}");
    }
}
