//! Packs monomials into single integers, for the inner loop of multiplication.
//!
//! The degree and every exponent get as many bits as the product needs: the degree the highest bits, the first variable
//! the next ones. Then monomials are multiplied by adding integers, and graded order is the order of the integers.

use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::monomial::Monomial;
use super::terms::Terms;

/// The layout of the exponents in an integer of 128 bits.
pub(super) struct Packing {
    /// for each variable its position, its lowest bit and its number of bits; the first variable has the highest bits
    fields: Vec<(u32, u32, u32)>,
    degree_shift: u32,
}

impl Packing {
    /// Returns a layout for the product of two sums, if 128 bits are enough.
    pub(super) fn of_product(a: &Terms, b: &Terms) -> Option<Packing> {
        let (highest_a, highest_b) = (highest_powers(a), highest_powers(b));
        let mut highest = highest_a;
        for (variable, exponent) in highest_b {
            *highest.entry(variable).or_insert(0) += exponent;
        }
        let mut used = 0;
        let mut fields = Vec::with_capacity(highest.len());
        for (&variable, &exponent) in highest.iter().rev() {
            let bits = bits_for(u32::from(exponent));
            fields.push((variable, used, bits));
            used += bits;
            if used > 128 {
                return None;
            }
        }
        fields.reverse();
        (used + bits_for(a.degree() + b.degree()) <= 128).then_some(Packing { fields, degree_shift: used })
    }

    pub(super) fn pack(&self, monomial: &Monomial) -> u128 {
        // A constant needs no bits for its degree, and then a shift by `degree_shift` could be a shift by 128 bits.
        let mut packed = match monomial.degree() {
            0 => 0,
            degree => u128::from(degree) << self.degree_shift,
        };
        let mut fields = self.fields.iter();
        for &(variable, exponent) in monomial.powers() {
            if let Some(&(_, shift, _)) = fields.find(|field| field.0 == variable) {
                packed |= u128::from(exponent) << shift;
            }
        }
        packed
    }

    pub(super) fn unpack(&self, packed: u128) -> Monomial {
        let mut monomial = Monomial::one();
        for &(variable, shift, bits) in &self.fields {
            monomial.push(variable, ((packed >> shift) & ((1 << bits) - 1)) as u16);
        }
        monomial
    }
}

fn bits_for(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

fn highest_powers(terms: &Terms) -> BTreeMap<u32, u16> {
    let mut highest = BTreeMap::new();
    for (monomial, _) in terms.iter() {
        for &(variable, exponent) in monomial.powers() {
            let entry = highest.entry(variable).or_insert(0);
            *entry = exponent.max(*entry);
        }
    }
    highest
}

/// Hashes packed monomials by one wide multiplication. The default hasher would take most of the time of a product.
#[derive(Default)]
pub(super) struct PackedHasher(u64);

/// The state from which hash maps build a [`PackedHasher`].
pub(super) type PackedState = BuildHasherDefault<PackedHasher>;

impl Hasher for PackedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u128(u128::from(byte));
        }
    }

    fn write_u128(&mut self, packed: u128) {
        let (low, high) = (packed as u64, (packed >> 64) as u64);
        let folded = low ^ high.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ self.0;
        let wide = u128::from(folded ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}
