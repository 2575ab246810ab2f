//! Monomials: products of powers of variables. Variables are positions in a list that the polynomial keeps.
//!
//! Only the variables that occur are stored: a sum of a hundred thousand variables is a hundred thousand small
//! monomials, not a hundred thousand vectors of that length.

use std::cmp::Ordering;

use smallvec::SmallVec;

/// The monomial `prod_j x_j^(e_j)` as pairs of a position and a positive exponent, sorted by position.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Monomial {
    degree: u32,
    powers: SmallVec<[(u32, u16); 5]>,
}

impl Monomial {
    /// The monomial 1.
    pub(super) fn one() -> Self {
        Monomial::default()
    }

    pub(super) fn power(variable: u32, exponent: u16) -> Self {
        let mut monomial = Monomial::one();
        monomial.push(variable, exponent);
        monomial
    }

    /// Multiplies by a power of a variable that comes after all variables of the monomial.
    pub(super) fn push(&mut self, variable: u32, exponent: u16) {
        if exponent > 0 {
            self.degree += u32::from(exponent);
            self.powers.push((variable, exponent));
        }
    }

    pub(super) fn degree(&self) -> u32 {
        self.degree
    }

    pub(super) fn powers(&self) -> &[(u32, u16)] {
        &self.powers
    }

    pub(super) fn exponent(&self, variable: u32) -> u16 {
        match self.powers.binary_search_by_key(&variable, |&(v, _)| v) {
            Ok(at) => self.powers[at].1,
            Err(_) => 0,
        }
    }

    /// Returns the product. Exponents cannot overflow: both degrees are within the limit of 10,000.
    pub(super) fn times(&self, other: &Monomial) -> Monomial {
        let (mut left, mut right) = (self.powers.as_slice(), other.powers.as_slice());
        let mut product = Monomial { degree: self.degree + other.degree, powers: SmallVec::new() };
        while let (Some(&(v, a)), Some(&(w, b))) = (left.first(), right.first()) {
            let power = match v.cmp(&w) {
                Ordering::Less => (v, a),
                Ordering::Greater => (w, b),
                Ordering::Equal => (v, a + b),
            };
            left = &left[usize::from(v <= w)..];
            right = &right[usize::from(w <= v)..];
            product.powers.push(power);
        }
        product.powers.extend_from_slice(left);
        product.powers.extend_from_slice(right);
        product
    }

    /// Returns the monomial without one variable, and the exponent of that variable.
    pub(super) fn split(&self, variable: u32) -> (Monomial, u16) {
        let exponent = self.exponent(variable);
        let mut rest = self.clone();
        if exponent > 0 {
            rest.powers.retain(|&mut (v, _)| v != variable);
            rest.degree -= u32::from(exponent);
        }
        (rest, exponent)
    }

    /// Returns the same monomial over another list of variables, where `positions` may be in any order.
    pub(super) fn renamed(&self, positions: &[u32]) -> Monomial {
        let mut renamed = self.moved(positions);
        renamed.powers.sort_unstable();
        renamed
    }

    /// Returns the same monomial over another list of variables; `positions` must increase on those that occur.
    pub(super) fn moved(&self, positions: &[u32]) -> Monomial {
        let mut moved = self.clone();
        for (variable, _) in &mut moved.powers {
            *variable = positions[*variable as usize];
        }
        moved
    }
}

/// Graded lexicographic order, `1 < y < x < y^2 < x*y < x^2`. It is compatible with multiplication, so multiplying a
/// polynomial by a monomial keeps the order of its terms. Renumbering the variables in increasing order keeps it too.
impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> Ordering {
        self.degree.cmp(&other.degree).then_with(|| {
            let differing = self.powers.iter().zip(&other.powers).find(|(a, b)| a != b);
            differing.map_or(Ordering::Equal, |(&(v, a), &(w, b))| w.cmp(&v).then(a.cmp(&b)))
        })
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monomial(exponents: &[u16]) -> Monomial {
        let mut m = Monomial::one();
        exponents.iter().enumerate().for_each(|(v, &e)| m.push(v as u32, e));
        m
    }

    #[test]
    fn graded_order_and_multiplication_agree() {
        let mut all: Vec<[u16; 3]> = Vec::new();
        for code in 0..64u16 {
            all.push([code & 3, (code >> 2) & 3, (code >> 4) & 3]);
        }
        for a in &all {
            for b in &all {
                let graded = (a.iter().sum::<u16>(), a).cmp(&(b.iter().sum::<u16>(), b));
                assert_eq!(monomial(a).cmp(&monomial(b)), graded, "{a:?} {b:?}");
                let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
                assert_eq!(monomial(a).times(&monomial(b)), monomial(&sum));
            }
            assert_eq!(monomial(a).split(1), (monomial(&[a[0], 0, a[2]]), a[1]));
        }
    }
}
