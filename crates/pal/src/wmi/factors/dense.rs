//! Polynomials in one variable with all their coefficients, over one denominator.

use dashu_int::ops::Gcd;

use crate::linear_algebra::{common_denominator, numerator_over};
use crate::number::{Integer, Rational};

/// `sum_k c_k t^k / d` in lowest terms; no coefficients for zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DensePolynomial {
    coefficients: Vec<Integer>,
    denominator: Integer,
}

impl DensePolynomial {
    pub fn zero() -> Self {
        DensePolynomial { coefficients: Vec::new(), denominator: Integer::ONE }
    }

    pub fn new(coefficients: &[Rational]) -> Self {
        let denominator = common_denominator(coefficients);
        let numerators = coefficients.iter().map(|c| numerator_over(c, &denominator)).collect();
        DensePolynomial { coefficients: numerators, denominator: denominator.into() }.reduced()
    }

    pub fn is_zero(&self) -> bool {
        self.coefficients.is_empty()
    }

    fn reduced(mut self) -> Self {
        while self.coefficients.last().is_some_and(Integer::is_zero) {
            self.coefficients.pop();
        }
        if self.is_zero() {
            return DensePolynomial::zero();
        }
        let mut divisor = self.denominator.clone();
        for c in &self.coefficients {
            if divisor.is_one() {
                return self;
            }
            divisor = Integer::from(divisor.gcd(c));
        }
        if !divisor.is_one() {
            self.coefficients.iter_mut().for_each(|c| *c /= &divisor);
            self.denominator /= &divisor;
        }
        self
    }

    pub fn plus(&self, other: &Self) -> Self {
        if self.is_zero() {
            return other.clone();
        }
        let common = Integer::from((&self.denominator).gcd(&other.denominator));
        let (mine, theirs) = (&other.denominator / &common, &self.denominator / &common);
        let at = |list: &[Integer], k: usize, by: &Integer| list.get(k).map_or(Integer::ZERO, |c| c * by);
        let length = self.coefficients.len().max(other.coefficients.len());
        let coefficients =
            (0..length).map(|k| at(&self.coefficients, k, &mine) + at(&other.coefficients, k, &theirs)).collect();
        DensePolynomial { coefficients, denominator: &self.denominator * mine }.reduced()
    }

    pub fn minus(&self, other: &Self) -> Self {
        let negative = other.coefficients.iter().map(|c| -c).collect();
        self.plus(&DensePolynomial { coefficients: negative, denominator: other.denominator.clone() })
    }

    pub fn times(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return DensePolynomial::zero();
        }
        let mut coefficients = vec![Integer::ZERO; self.coefficients.len() + other.coefficients.len() - 1];
        for (j, a) in self.coefficients.iter().enumerate().filter(|(_, a)| !a.is_zero()) {
            for (k, b) in other.coefficients.iter().enumerate() {
                coefficients[j + k] += a * b;
            }
        }
        DensePolynomial { coefficients, denominator: &self.denominator * &other.denominator }.reduced()
    }

    /// The antiderivative of `t^power` times the polynomial, without a constant.
    pub fn antiderivative(&self, power: usize) -> Self {
        let values: Vec<Rational> = std::iter::repeat_n(Rational::ZERO, power + 1)
            .chain(self.coefficients.iter().enumerate().map(|(k, c)| {
                let divisor = &self.denominator * Integer::from(k + power + 1);
                Rational::from_parts_signed(c.clone(), divisor)
            }))
            .collect();
        DensePolynomial::new(&values)
    }

    /// The polynomial at `slope * t + shift`, as a polynomial in `t`.
    pub fn at_line(&self, slope: &Rational, shift: &Rational) -> Self {
        if self.is_zero() {
            return DensePolynomial::zero();
        }
        // slope t + shift = (a t + b) / c, and so sum_k g_k (slope t + shift)^k = sum_k g_k c^(d-k) (a t + b)^k / c^d.
        let line = DensePolynomial::new(&[shift.clone(), slope.clone()]);
        let part = |k: usize| line.coefficients.get(k).cloned().unwrap_or(Integer::ZERO);
        let (a, b, c) = (part(1), part(0), line.denominator);
        let degree = self.coefficients.len() - 1;
        let mut values = self.coefficients.clone();
        let mut scale = Integer::ONE;
        for value in values.iter_mut().rev() {
            *value *= &scale;
            scale *= &c;
        }
        let denominator = &self.denominator * c.pow(degree);
        if a.is_zero() {
            let value = values.iter().rev().fold(Integer::ZERO, |sum, value| sum * &b + value);
            return DensePolynomial { coefficients: vec![value], denominator }.reduced();
        }
        // A Taylor shift by b, row by row.
        if !b.is_zero() {
            for row in 0..degree {
                for k in (row..degree).rev() {
                    let next = if b.is_one() { values[k + 1].clone() } else { &values[k + 1] * &b };
                    values[k] += next;
                }
            }
        }
        let mut power = Integer::ONE;
        for value in &mut values {
            *value *= &power;
            power *= &a;
        }
        DensePolynomial { coefficients: values, denominator }.reduced()
    }

    /// The value of a constant polynomial, and in general that at zero.
    pub fn constant(&self) -> Rational {
        match self.coefficients.first() {
            Some(c) => Rational::from_parts_signed(c.clone(), self.denominator.clone()),
            None => Rational::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(text: &[&str]) -> DensePolynomial {
        DensePolynomial::new(&text.iter().map(|c| crate::number::parse_rational(c).unwrap()).collect::<Vec<_>>())
    }

    fn ratio(text: &str) -> Rational {
        crate::number::parse_rational(text).unwrap()
    }

    #[test]
    fn arithmetic_is_that_of_polynomials() {
        // (1/2 + t) (2 - t/3) = 1 + 11/6 t - 1/3 t^2
        let product = dense(&["1/2", "1"]).times(&dense(&["2", "-1/3"]));
        assert_eq!(product, dense(&["1", "11/6", "-1/3"]));
        assert_eq!(product.minus(&product), DensePolynomial::zero());
        assert_eq!(product.plus(&dense(&["-1", "1/6"])), dense(&["0", "2", "-1/3"]));
        // The antiderivative of t (3 + 5 t).
        assert_eq!(dense(&["3", "5"]).antiderivative(1), dense(&["0", "0", "3/2", "5/3"]));
        // 1 + t^2 at 2/3 t - 1/2 is 5/4 - 2/3 t + 4/9 t^2.
        assert_eq!(dense(&["1", "0", "1"]).at_line(&ratio("2/3"), &ratio("-1/2")), dense(&["5/4", "-2/3", "4/9"]));
        assert_eq!(dense(&["1", "0", "1"]).at_line(&Rational::ZERO, &ratio("-1/2")).constant(), ratio("5/4"));
    }
}
