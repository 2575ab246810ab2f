//! Compensated summation: the stable sums of the cubature.

/// A running sum together with the roundings it has lost (Kahan, Babuska, Neumaier).
///
/// The error of [`Sum::value`] is one rounding of the result plus `(N u)^2` of the sum of magnitudes, which no number
/// of summands that fits into memory makes visible. Sorting, the other way to a stable sum, costs a factor log N and
/// still grows with N.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    #[inline]
    pub fn add(&mut self, x: f64) {
        let (sum, lost) = two_sum(self.high, x);
        self.high = sum;
        self.low += lost;
    }

    pub fn merge(&mut self, other: Sum) {
        self.add(other.high);
        self.low += other.low;
    }

    pub fn value(&self) -> f64 {
        self.high + self.low
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(items: I) -> Self {
        items.into_iter().fold(Sum::default(), |mut sum, x| {
            sum.add(x);
            sum
        })
    }
}

/// The rounded sum and exactly what rounding took away. Knuth's form has no branch, so that loops over it vectorise.
#[inline]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_where_plain_sums_lose_everything() {
        assert_eq!(Sum::from_iter([1e100, 1.0, -1e100]).value(), 1.0);
        let tenths = Sum::from_iter(std::iter::repeat_n(0.1, 1_000_000));
        assert_eq!(tenths.value(), 100_000.0);
        let mut merged = Sum::from_iter([1e16, 1.0]);
        merged.merge(Sum::from_iter([1.0, -1e16]));
        assert_eq!(merged.value(), 2.0);
    }
}
