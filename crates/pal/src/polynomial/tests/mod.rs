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

/// A linear congruential generator, so that the tests see the same polynomials every time.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn ratio(&mut self) -> Rational {
        ratio(self.below(41) as i64 - 20, self.below(6) + 1)
    }

    /// Returns a polynomial with a few terms of low degree over some of the names.
    fn poly(&mut self, names: &[&str]) -> Polynomial {
        let variables: Vec<Var> = names.iter().map(|name| Var::new(name)).collect();
        let mut terms = Vec::new();
        for _ in 0..self.below(7) {
            let exponents = variables.iter().map(|_| self.below(4).saturating_sub(1) as u16).collect();
            terms.push((exponents, self.ratio()));
        }
        Polynomial::from_terms(&variables, terms).unwrap()
    }
}
