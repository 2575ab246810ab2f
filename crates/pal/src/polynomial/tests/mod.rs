//! Tests of the laws, known values, text and limits of polynomials.

mod laws;
mod limits;
mod text;
mod values;

use super::Polynomial;
use crate::formula::Var;
use crate::number::Rational;

fn poly(text: &str) -> Polynomial {
    Polynomial::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ratio(p: i64, q: u64) -> Rational {
    Rational::from_parts(p.into(), q.into())
}

fn vars<const N: usize>(names: [&str; N]) -> [Var; N] {
    names.map(Var::new)
}

/// A linear congruential generator, so that the tests see the same input every time.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}
