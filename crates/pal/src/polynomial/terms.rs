//! Sums of monomials over a list of variables kept elsewhere, and clearing of their denominators.

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

/// Terms, or the terms of one line, that share a denominator.
pub(super) struct Cleared<K> {
    pub(super) numerators: Vec<(K, Integer)>,
    pub(super) denominator: UBig,
}

impl<K> Cleared<K> {
    /// Whether the common denominator is of the size of the single ones. Many unrelated denominators have one that is
    /// far longer, and then numerators over it cost more than fractions.
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

    /// From the lowest monomial to the highest.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Monomial, &Rational)> + Clone {
        self.0.iter()
    }

    pub(super) fn get(&self, monomial: &Monomial) -> Option<&Rational> {
        self.0.get(monomial)
    }

    pub(super) fn degree(&self) -> u32 {
        self.0.keys().next_back().map_or(0, Monomial::degree)
    }

    /// The value, if no variable occurs.
    pub(super) fn as_constant(&self) -> Option<Rational> {
        match self.0.first_key_value() {
            None => Some(Rational::ZERO),
            Some((_, value)) => (self.degree() == 0).then(|| value.clone()),
        }
    }

    /// Adds one term, and drops it if it cancels. Returns the bits of a coefficient that this made longer.
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

    /// Adds `other`, the smaller sum into the larger: a text of many `+` then takes no quadratic time. Returns the
    /// bits of the longest coefficient that this changed.
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

    /// The sum times one monomial; graded order survives, so nothing is sorted again.
    pub(super) fn times_monomial(&self, monomial: &Monomial) -> Terms {
        self.iter().map(|(m, c)| (m.times(monomial), c.clone())).collect()
    }

    pub(super) fn moved(&self, positions: &[u32]) -> Terms {
        self.iter().map(|(m, c)| (m.moved(positions), c.clone())).collect()
    }

    /// The largest number of bits in a numerator or denominator.
    pub(super) fn bits(&self) -> usize {
        self.0.values().map(coefficient_bits).max().unwrap_or(0)
    }

    /// The coefficients as functions of one variable: monomial in the others -> exponents, rising, and coefficients.
    pub(super) fn lines(self, variable: u32) -> BTreeMap<Monomial, Vec<(u16, Rational)>> {
        let mut lines: BTreeMap<Monomial, Vec<(u16, Rational)>> = BTreeMap::new();
        for (monomial, coefficient) in self.0 {
            let (rest, exponent) = monomial.split(variable);
            lines.entry(rest).or_default().push((exponent, coefficient));
        }
        lines
    }
}

/// Of distinct monomials with non-zero coefficients.
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

/// Bits of the numerator or the denominator, whichever is longer.
pub(super) fn coefficient_bits(value: &Rational) -> usize {
    bit_length(value.numerator()).max(value.denominator().bit_len())
}

/// The least common denominator and the numerators over it: sums then need no gcd at every step.
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
