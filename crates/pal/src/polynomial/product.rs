//! Multiplication and powers of sums of monomials, within limits.
//!
//! Denominators are cleared first, so that the inner loop is one integer multiply-add per pair of terms: in machine
//! integers when a bound shows that they suffice, else in integers of any length. One gcd per term of the result turns
//! its coefficients into reduced fractions again.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::ops::{AddAssign, Mul};

use dashu_int::UBig;
use dashu_int::ops::BitTest;

use super::error::{MAX_TERMS, MAX_WORDS, PolynomialError, TERM_STEPS, WorkLimit, check_bits, check_degree};
use super::monomial::Monomial;
use super::packing::{PackedState, Packing};
use super::terms::{Cleared, Terms, clear_denominators, coefficient_bits};
use crate::interrupt::checkpoint;
use crate::number::{Integer, Rational, bit_length};

/// Returns `a * b`.
pub(super) fn product(a: &Terms, b: &Terms, budget: &mut WorkLimit) -> Result<Terms, PolynomialError> {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    check_degree(u64::from(a.degree()) + u64::from(b.degree()))?;
    match few.iter().next() {
        None => Ok(Terms::default()),
        Some((monomial, coefficient)) if few.len() == 1 => by_one_term(many, monomial, coefficient, budget),
        Some(_) => by_many_terms(few, many, budget),
    }
}

/// Returns `base^exponent`; `0^0` is 1.
pub(super) fn power(base: &Terms, exponent: u64, budget: &mut WorkLimit) -> Result<Terms, PolynomialError> {
    if exponent == 0 {
        return Ok(Terms::constant(Rational::ONE));
    }
    if base.is_empty() || base.as_constant().is_some_and(|c| c.is_one()) {
        return Ok(base.clone());
    }
    check_degree(u64::from(base.degree()).saturating_mul(exponent))?;
    // The limit on degrees does not stop a constant: 9^(10^9) is refused before the first squaring. Only powers of 1
    // and -1 stay short.
    if let Some(value) = base.as_constant()
        && coefficient_bits(&value) > 1
    {
        check_bits((coefficient_bits(&value) - 1).saturating_mul(exponent.try_into().unwrap_or(usize::MAX)))?;
    }
    let mut result = base.clone();
    // Squares of many terms have far more pairs of terms than a product with a few: for three terms or more, one factor
    // after the other is much less work.
    if base.len() > 2 {
        // Refused before it begins, if it would be refused later on.
        let average = most_terms(base, exponent) / base.len().min(8) as f64;
        budget.check(average * exponent as f64 * base.len() as f64 * TERM_STEPS as f64)?;
        for _ in 1..exponent {
            result = product(&result, base, budget)?;
        }
        return Ok(result);
    }
    for bit in (0..exponent.ilog2()).rev() {
        result = product(&result, &result, budget)?;
        if exponent >> bit & 1 == 1 {
            result = product(&result, base, budget)?;
        }
    }
    Ok(result)
}

/// A bound on the number of terms of a power: the multisets of terms, or the monomials in the box of its degrees.
fn most_terms(base: &Terms, exponent: u64) -> f64 {
    let mut degrees: BTreeMap<u32, u16> = BTreeMap::new();
    for (variable, power) in base.iter().flat_map(|(monomial, _)| monomial.powers()) {
        let degree = degrees.entry(*variable).or_default();
        *degree = (*degree).max(*power);
    }
    let monomials: f64 = degrees.values().map(|degree| f64::from(*degree) * exponent as f64 + 1.0).product();
    let multisets: f64 = (1..base.len()).map(|k| (exponent as f64 + k as f64) / k as f64).product();
    monomials.min(multisets)
}

fn by_one_term(
    many: &Terms,
    monomial: &Monomial,
    coefficient: &Rational,
    budget: &mut WorkLimit,
) -> Result<Terms, PolynomialError> {
    let mut result = many.times_monomial(monomial);
    let (bits, own_bits) = (many.bits(), coefficient_bits(coefficient));
    budget.charge(many.len() as u64 * (TERM_STEPS + words(bits) as u64 * words(own_bits) as u64))?;
    if !coefficient.is_one() {
        check_bits(bits + own_bits)?;
        check_memory(many.len(), bits + own_bits)?;
        result.scale(coefficient);
    }
    Ok(result)
}

fn by_many_terms(few: &Terms, many: &Terms, budget: &mut WorkLimit) -> Result<Terms, PolynomialError> {
    let (a, b) = (clear_denominators(few.iter()), clear_denominators(many.iter()));
    let packing = Packing::of_product(few, many);
    let pairs = few.len() as u64 * many.len() as u64;
    match (a, b) {
        (Ok(a), Ok(b)) if a.is_short(few) && b.is_short(many) => {
            let (bits_a, bits_b) = (numerator_bits(&a), numerator_bits(&b));
            let bits = bits_a + bits_b + few.len().ilog2() as usize + 1;
            let denominator = a.denominator * b.denominator;
            check_bits(bits.max(denominator.bit_len()))?;
            let limit = term_limit(bits + denominator.bit_len());
            budget.charge(pairs.saturating_mul(TERM_STEPS + words(bits_a) as u64 * words(bits_b) as u64))?;
            if bits < 127 {
                // The bound on `bits` makes every conversion and every partial sum exact.
                let narrow = |n: Integer| i128::try_from(n).unwrap_or_default();
                let sums = multiply(a.numerators, b.numerators, packing, limit, narrow)?;
                Ok(fractions(sums.into_iter().map(|(m, n)| (m, Integer::from(n))), &denominator))
            } else {
                let sums = multiply(a.numerators, b.numerators, packing, limit, |n| n)?;
                Ok(fractions(sums.into_iter(), &denominator))
            }
        }
        _ => {
            let bits = few.bits() + many.bits();
            budget.charge(pairs.saturating_mul(1000 * words(bits) as u64))?;
            let sums = multiply(few.iter(), many.iter(), packing, term_limit(4 * bits), Rational::clone)?;
            check_bits(sums.iter().map(|(_, c)| coefficient_bits(c)).max().unwrap_or(0))?;
            Ok(sums.into_iter().filter(|(_, c)| !c.is_zero()).collect())
        }
    }
}

/// Returns the sums of all pairwise products; the monomials are multiplied in packed form if there is a packing.
fn multiply<'a, C, D>(
    a: impl IntoIterator<Item = (&'a Monomial, C)>,
    b: impl IntoIterator<Item = (&'a Monomial, C)>,
    packing: Option<Packing>,
    limit: usize,
    convert: impl Fn(C) -> D,
) -> Result<Vec<(Monomial, D)>, PolynomialError>
where
    D: AddAssign + Default,
    for<'d> &'d D: Mul<&'d D, Output = D>,
{
    let Some(packing) = packing else {
        let a: Vec<(Monomial, D)> = a.into_iter().map(|(m, c)| (m.clone(), convert(c))).collect();
        let b: Vec<(Monomial, D)> = b.into_iter().map(|(m, c)| (m.clone(), convert(c))).collect();
        return convolve(&a, &b, Monomial::times, limit, RandomState::new());
    };
    let a: Vec<(u128, D)> = a.into_iter().map(|(m, c)| (packing.pack(m), convert(c))).collect();
    let b: Vec<(u128, D)> = b.into_iter().map(|(m, c)| (packing.pack(m), convert(c))).collect();
    let mut sums = convolve(&a, &b, |m, n| m + n, limit, PackedState::default())?;
    sums.sort_unstable_by_key(|&(packed, _)| packed);
    Ok(sums.into_iter().map(|(packed, c)| (packing.unpack(packed), c)).collect())
}

fn convolve<K, C, S>(
    a: &[(K, C)],
    b: &[(K, C)],
    times: impl Fn(&K, &K) -> K,
    limit: usize,
    state: S,
) -> Result<Vec<(K, C)>, PolynomialError>
where
    K: Eq + Hash,
    C: AddAssign + Default,
    for<'a> &'a C: Mul<&'a C, Output = C>,
    S: BuildHasher,
{
    let mut sums: HashMap<K, C, S> = HashMap::with_hasher(state);
    for (m, x) in a {
        checkpoint();
        for (n, y) in b {
            *sums.entry(times(m, n)).or_default() += x * y;
        }
        if sums.len() > limit {
            return Err(PolynomialError::TooManyTerms { limit });
        }
    }
    Ok(sums.into_iter().collect())
}

pub(super) fn fractions(sums: impl Iterator<Item = (Monomial, Integer)>, denominator: &UBig) -> Terms {
    let fraction = |n: Integer| match denominator.is_one() {
        true => Rational::from(n),
        false => Rational::from_parts(n, denominator.clone()),
    };
    sums.filter(|(_, n)| !n.is_zero()).map(|(m, n)| (m, fraction(n))).collect()
}

fn numerator_bits(cleared: &Cleared<&Monomial>) -> usize {
    cleared.numerators.iter().map(|(_, n)| bit_length(n)).max().unwrap_or(0)
}

pub(super) fn words(bits: usize) -> usize {
    bits / 64 + 1
}

/// Returns how many terms with coefficients of this many bits one result may have.
pub(super) fn term_limit(bits: usize) -> usize {
    MAX_TERMS.min(MAX_WORDS / words(bits))
}

pub(super) fn check_memory(terms: usize, bits: usize) -> Result<(), PolynomialError> {
    let limit = term_limit(bits);
    if terms > limit { Err(PolynomialError::TooManyTerms { limit }) } else { Ok(()) }
}
