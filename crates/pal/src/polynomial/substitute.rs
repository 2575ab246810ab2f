//! Substitution of polynomials for variables, and derivatives.

use std::collections::BTreeMap;

use super::error::{PolynomialError, WorkLimit, check_bits};
use super::monomial::Monomial;
use super::product::{check_memory, power, product};
use super::terms::Terms;
use super::{Polynomial, position, sorted_union};
use crate::formula::Var;
use crate::number::Rational;

impl Polynomial {
    /// Replaces variables by polynomials, all at the same time: `x -> y, y -> x` swaps two variables.
    ///
    /// Variables without an image stay. For `x -> s x + t` use [`Polynomial::affine`], which is much faster.
    pub fn substitute(&self, images: &BTreeMap<Var, Polynomial>) -> Result<Polynomial, PolynomialError> {
        let (replaced, kept): (Vec<Var>, Vec<Var>) =
            self.variables.iter().cloned().partition(|variable| images.contains_key(variable));
        let used: Vec<&Polynomial> = replaced.iter().filter_map(|variable| images.get(variable)).collect();
        let outputs = sorted_union(used.iter().map(|p| p.variables.as_slice()).chain([kept.as_slice()]));
        // An old and a new variable of the same name must not be confused: the old variables come first in the list.
        let first_output = replaced.len() as u32;
        let place = |variable: &Var| match position(&replaced, variable) {
            Some(at) => at,
            None => first_output + position(&outputs, variable).unwrap_or_default(),
        };
        let positions: Vec<u32> = self.variables.iter().map(place).collect();
        let mut terms: Terms = self.terms.iter().map(|(m, c)| (m.renamed(&positions), c.clone())).collect();
        let shift: Vec<u32> = (0..outputs.len() as u32).map(|v| first_output + v).collect();
        let mut budget = WorkLimit::new();
        for (at, image) in used.into_iter().enumerate() {
            let image = image.terms_over(&outputs).moved(&shift);
            terms = replace(terms, at as u32, &image, &mut budget)?;
        }
        let unshift: Vec<u32> =
            (0..first_output + outputs.len() as u32).map(|v| v.saturating_sub(first_output)).collect();
        Ok(Polynomial::trimmed(outputs, terms.moved(&unshift)))
    }

    /// Returns the partial derivative with respect to a variable.
    pub fn derivative(&self, variable: &Var) -> Polynomial {
        let Some(v) = position(&self.variables, variable) else { return Polynomial::zero() };
        let derived = self.terms.iter().filter_map(|(monomial, coefficient)| {
            let (rest, exponent) = monomial.split(v);
            let lowered = rest.times(&Monomial::power(v, exponent.checked_sub(1)?));
            Some((lowered, coefficient * Rational::from(exponent)))
        });
        Polynomial::trimmed(self.variables.clone(), derived.collect())
    }
}

/// Replaces one variable by a sum of monomials in other variables, by Horner's rule.
fn replace(terms: Terms, variable: u32, image: &Terms, budget: &mut WorkLimit) -> Result<Terms, PolynomialError> {
    let mut by_exponent: BTreeMap<u16, Terms> = BTreeMap::new();
    for (monomial, coefficient) in terms {
        let (rest, exponent) = monomial.split(variable);
        by_exponent.entry(exponent).or_default().add(rest, coefficient);
    }
    let mut sum = Terms::default();
    let mut at = 0;
    for (exponent, part) in by_exponent.into_iter().rev() {
        if !sum.is_empty() {
            sum = product(&sum, &power(image, u64::from(at - exponent), budget)?, budget)?;
        }
        let bits = sum.absorb(part);
        check_bits(bits)?;
        check_memory(sum.len(), 0)?;
        at = exponent;
    }
    product(&sum, &power(image, u64::from(at), budget)?, budget)
}
