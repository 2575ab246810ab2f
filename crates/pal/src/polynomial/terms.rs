//! Sums of monomials over the list of variables that a polynomial keeps, and clearing of their denominators.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dashu_int::UBig;
use dashu_int::ops::BitTest;

use super::error::{PolynomialError, check_bits};
use super::monomial::Monomial;
use crate::linear_algebra::{lcm, numerator_over};
use crate::number::{Integer, Rational, bit_length};

/// Monomials with their non-zero coefficients, in graded order.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Terms(BTreeMap<Monomial, Rational>);

/// Terms over a common denominator. The key `K` is the monomial, or the exponent of a single variable.
pub(super) struct Cleared<K> {
    pub(super) numerators: Vec<(K, Integer)>,
    pub(super) denominator: UBig,
}

impl<K> Cleared<K> {
    /// Returns whether the common denominator is about as long as the denominators of the single terms.
    ///
    /// That of many unrelated denominators is far longer, and then numerators over it cost more than fractions.
    pub(super) fn is_short(&self, terms: &Terms) -> bool {
        self.denominator.bit_len() <= 1024 + 4 * terms.bits()
    }
}

impl Terms {
    pub(super) fn single(monomial: Monomial, coefficient: Rational) -> Self {
        let mut terms = Terms::default();
        terms.add(monomial, coefficient);
        terms
    }

    pub(super) fn constant(value: Rational) -> Self {
        Terms::single(Monomial::one(), value)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the terms from the lowest monomial to the highest.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Monomial, &Rational)> + Clone {
        self.0.iter()
    }

    pub(super) fn get(&self, monomial: &Monomial) -> Option<&Rational> {
        self.0.get(monomial)
    }

    pub(super) fn degree(&self) -> u32 {
        self.0.keys().next_back().map_or(0, Monomial::degree)
    }

    /// Returns the value, if no variable occurs.
    pub(super) fn as_constant(&self) -> Option<Rational> {
        match self.0.first_key_value() {
            None => Some(Rational::ZERO),
            Some((_, value)) => (self.degree() == 0).then(|| value.clone()),
        }
    }

    /// Adds one term, and drops it if it cancels. Returns the bits of the new coefficient if the monomial was there
    /// already, and 0 otherwise.
    pub(super) fn add(&mut self, monomial: Monomial, coefficient: Rational) -> usize {
        match self.0.entry(monomial) {
            Entry::Vacant(place) => {
                if !coefficient.is_zero() {
                    place.insert(coefficient);
                }
                0
            }
            Entry::Occupied(mut place) => {
                *place.get_mut() += coefficient;
                let bits = coefficient_bits(place.get());
                if place.get().is_zero() {
                    place.remove();
                }
                bits
            }
        }
    }

    /// Adds `other`. The terms of the smaller sum are added to the larger one, so that reading a text with many `+`
    /// does not take quadratic time. Returns the bits of the longest coefficient that this changed.
    pub(super) fn absorb(&mut self, mut other: Terms) -> usize {
        if other.len() > self.len() {
            std::mem::swap(self, &mut other);
        }
        other.0.into_iter().map(|(monomial, coefficient)| self.add(monomial, coefficient)).max().unwrap_or(0)
    }

    pub(super) fn negate(&mut self) {
        for coefficient in self.0.values_mut() {
            *coefficient = -std::mem::take(coefficient);
        }
    }

    pub(super) fn scale(&mut self, factor: &Rational) {
        if factor.is_zero() {
            self.0.clear();
        } else if !factor.is_one() {
            self.0.values_mut().for_each(|coefficient| *coefficient *= factor);
        }
    }

    /// Returns the sum times one monomial. It keeps the graded order of the terms.
    pub(super) fn times_monomial(&self, monomial: &Monomial) -> Terms {
        self.iter().map(|(m, c)| (m.times(monomial), c.clone())).collect()
    }

    /// Returns the same sum over another list of variables; `positions` must increase on the variables that occur.
    pub(super) fn moved(&self, positions: &[u32]) -> Terms {
        self.iter().map(|(m, c)| (m.moved(positions), c.clone())).collect()
    }

    /// Returns the largest number of bits in a numerator or denominator.
    pub(super) fn bits(&self) -> usize {
        self.0.values().map(coefficient_bits).max().unwrap_or(0)
    }

    /// Groups the terms by their monomials in the other variables. Each group lists the exponents of `variable`, in
    /// increasing order, with their coefficients.
    pub(super) fn lines(self, variable: u32) -> BTreeMap<Monomial, Vec<(u16, Rational)>> {
        let mut lines: BTreeMap<Monomial, Vec<(u16, Rational)>> = BTreeMap::new();
        for (monomial, coefficient) in self.0 {
            let (rest, exponent) = monomial.split(variable);
            lines.entry(rest).or_default().push((exponent, coefficient));
        }
        lines
    }
}

/// Collects distinct monomials with non-zero coefficients.
impl FromIterator<(Monomial, Rational)> for Terms {
    fn from_iter<I: IntoIterator<Item = (Monomial, Rational)>>(terms: I) -> Self {
        Terms(terms.into_iter().collect())
    }
}

impl IntoIterator for Terms {
    type Item = (Monomial, Rational);
    type IntoIter = std::collections::btree_map::IntoIter<Monomial, Rational>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Returns the number of bits of the numerator or the denominator, whichever is longer.
pub(super) fn coefficient_bits(value: &Rational) -> usize {
    bit_length(value.numerator()).max(value.denominator().bit_len())
}

/// Returns the least common denominator and the numerators over it, with which sums need no gcd at every step.
pub(super) fn clear_denominators<K, B>(
    terms: impl Iterator<Item = (K, B)> + Clone,
) -> Result<Cleared<K>, PolynomialError>
where
    B: std::borrow::Borrow<Rational>,
{
    let mut denominator = UBig::ONE;
    for (_, coefficient) in terms.clone() {
        let q = coefficient.borrow().denominator();
        if !q.is_one() && &denominator != q {
            denominator = lcm(&denominator, q);
            check_bits(denominator.bit_len())?;
        }
    }
    let numerators =
        terms.map(|(key, coefficient)| (key, numerator_over(coefficient.borrow(), &denominator))).collect();
    Ok(Cleared { numerators, denominator })
}
