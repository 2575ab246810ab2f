//! The change of variables `x_j -> s_j x_j + t_j`, one variable after the other, by Taylor shifts in integers.
//!
//! Write `t = p/q`, `s = a/b`, and let d be the degree in x. For integers c_k,
//!
//! ```text
//! (b q)^d sum_k c_k (s x + t)^k  =  sum_k m_k a^k b^(d-k) q^k x^k
//! ```
//!
//! where the m_k are the coefficients of `sum_k c_k q^(d-k) u^k` after the shift `u -> u + p`. So all terms of a
//! polynomial can share one denominator through all variables, and fractions are reduced once, at the end.

use std::collections::BTreeMap;

use dashu_int::UBig;
use dashu_int::ops::BitTest;

use super::Polynomial;
use super::error::{PolynomialError, TERM_STEPS, WorkLimit, check_bits};
use super::monomial::Monomial;
use super::product::{check_memory, fractions, words};
use super::terms::{Cleared, Terms, clear_denominators, coefficient_bits};
use crate::formula::Var;
use crate::interrupt::checkpoint;
use crate::number::{Integer, Rational, bit_length};

impl Polynomial {
    /// Applies the change of variables `x_j -> s_j x_j + t_j`, given as `x_j: (s_j, t_j)`; other variables stay.
    ///
    /// The variables are replaced one after the other, each along lines of the exponent set: a dense polynomial of N
    /// terms and degree d in n variables takes about N n d steps.
    ///
    /// ```
    /// use pal::formula::Var;
    /// use pal::polynomial::Polynomial;
    /// let p = Polynomial::parse("x^2*y")?;
    /// let moved = p.affine(&[(Var::new("x"), (2.into(), 1.into()))].into())?;
    /// assert_eq!(moved, Polynomial::parse("(2*x + 1)^2*y")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn affine(&self, changes: &BTreeMap<Var, (Rational, Rational)>) -> Result<Polynomial, PolynomialError> {
        let mut budget = WorkLimit::new();
        let changes: Vec<(u32, &(Rational, Rational))> = (0..)
            .zip(&self.variables)
            .filter_map(|(v, variable)| changes.get(variable).map(|change| (v, change)))
            .collect();
        let mut moved = Terms::default();
        for Cleared { numerators, denominator } in groups(&self.terms)? {
            let mut terms: Vec<(Monomial, Integer)> = numerators.into_iter().map(|(m, n)| (m.clone(), n)).collect();
            let mut denominator = denominator;
            for &(v, (scale, shift)) in &changes {
                denominator *= change_one(&mut terms, v, scale, shift, &mut budget)?;
                check_bits(denominator.bit_len())?;
            }
            check_bits(moved.absorb(fractions(terms.into_iter(), &denominator)))?;
            check_memory(moved.len(), 0)?;
        }
        Ok(Polynomial::trimmed(self.variables.clone(), moved))
    }
}

/// Returns the terms over their common denominator, or, where it is far longer than the single denominators, one group
/// of terms for each denominator.
fn groups(terms: &Terms) -> Result<Vec<Cleared<&Monomial>>, PolynomialError> {
    if let Ok(cleared) = clear_denominators(terms.iter())
        && cleared.is_short(terms)
    {
        return Ok(vec![cleared]);
    }
    let mut groups: BTreeMap<&UBig, Vec<(&Monomial, &Rational)>> = BTreeMap::new();
    for (monomial, coefficient) in terms.iter() {
        groups.entry(coefficient.denominator()).or_default().push((monomial, coefficient));
    }
    groups.into_values().map(|group| clear_denominators(group.into_iter())).collect()
}

/// Replaces one variable in terms with integer coefficients; returns the number that the result must be divided by.
fn change_one(
    terms: &mut Vec<(Monomial, Integer)>,
    variable: u32,
    scale: &Rational,
    shift: &Rational,
    budget: &mut WorkLimit,
) -> Result<UBig, PolynomialError> {
    let degree = terms.iter().map(|(m, _)| usize::from(m.exponent(variable))).max().unwrap_or(0);
    let longest = terms.iter().map(|(_, n)| bit_length(n)).max().unwrap_or(0);
    let shifted_bits = longest + degree * (coefficient_bits(shift) + 1);
    let bits = shifted_bits + degree * (coefficient_bits(scale) + coefficient_bits(shift));
    check_bits(bits)?;

    let mut lines: BTreeMap<Monomial, Vec<(u16, Integer)>> = BTreeMap::new();
    for (monomial, numerator) in terms.drain(..) {
        let (rest, exponent) = monomial.split(variable);
        lines.entry(rest).or_default().push((exponent, numerator));
    }
    let top = |line: &[(u16, Integer)]| line.iter().map(|(e, _)| *e).max().unwrap_or(0);
    if !shift.is_zero() {
        // A result that is too large is refused before the work starts.
        let expanded = lines.values().map(|line| usize::from(top(line)) + 1).fold(0, usize::saturating_add);
        check_memory(expanded, bits)?;
    }
    let per_step = TERM_STEPS + words(shifted_bits) as u64 * words(coefficient_bits(shift)) as u64;
    let table = |base: Integer| powers(base, degree, bits);
    let (q, a, b) = (
        table(Integer::from(shift.denominator().clone()))?,
        table(scale.numerator().clone())?,
        table(Integer::from(scale.denominator().clone()))?,
    );
    for (rest, line) in lines {
        checkpoint();
        let highest = usize::from(top(&line));
        let mut coefficients = vec![Integer::ZERO; highest + 1];
        for (exponent, numerator) in line {
            coefficients[usize::from(exponent)] = numerator * &q[degree - usize::from(exponent)];
        }
        if !shift.is_zero() {
            budget.charge((highest as u64 + 1).pow(2) / 2 * per_step)?;
            taylor_shift(&mut coefficients, shift.numerator());
        }
        for (k, coefficient) in coefficients.into_iter().enumerate().filter(|(_, c)| !c.is_zero()) {
            let value = coefficient * &a[k] * &b[degree - k] * &q[k];
            if !value.is_zero() {
                terms.push((rest.times(&Monomial::power(variable, k as u16)), value));
            }
        }
    }
    Ok(scale.denominator().pow(degree) * shift.denominator().pow(degree))
}

/// Turns the coefficients of `f(u)` into those of `f(u + p)` by repeated synthetic division.
fn taylor_shift(coefficients: &mut [Integer], p: &Integer) {
    for lowest in 0..coefficients.len() - 1 {
        for k in (lowest..coefficients.len() - 1).rev() {
            let carried = p * &coefficients[k + 1];
            coefficients[k] += carried;
        }
    }
}

/// Returns `base^0 .. base^degree`, where no power has more than `bits` bits.
fn powers(base: Integer, degree: usize, bits: usize) -> Result<Vec<Integer>, PolynomialError> {
    if base.is_one() {
        return Ok(vec![base; degree + 1]);
    }
    check_memory(degree + 1, bits)?;
    let mut powers = vec![Integer::ONE];
    for k in 0..degree {
        let next = &powers[k] * &base;
        powers.push(next);
    }
    Ok(powers)
}
