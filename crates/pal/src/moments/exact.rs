//! The recurrence in exact arithmetic.
//!
//! With a common denominator D of the vertices of a simplex, `v = Y / D`, the numbers `h_alpha = D^|alpha| g_alpha` satisfy the same
//! recurrence in integers: no fraction is reduced anywhere on the way. One division per simplex gives the integral.

use dashu_int::UBig;
use dashu_int::ops::Gcd;

use super::exponents::{Exponents, NONE};
use crate::number::{Integer, Rational};
use crate::region::Polytope;

/// A polynomial prepared for exact integration: integer multiples `c_alpha alpha!` of its coefficients over one denominator.
#[derive(Clone, Debug)]
pub(crate) struct ExactIntegrand {
    exponents: Exponents,
    /// Position and numerator of every term, by total degree.
    terms: Vec<Vec<(usize, Integer)>>,
    denominator: Integer,
}

impl ExactIntegrand {
    /// `exponents` must contain all exponents of the terms.
    pub fn new(exponents: Exponents, terms: &[(Vec<u16>, Rational)]) -> Self {
        let denominator = terms.iter().fold(UBig::ONE, |d, (_, c)| {
            let q = c.denominator();
            &d / (&d).gcd(q) * q
        });
        let denominator = Integer::from(denominator);
        let positions = exponents.positions();
        let mut by_degree = vec![Vec::new(); exponents.degree() + 1];
        for (alpha, c) in terms {
            let Some(position) = positions.get(&alpha[..]) else { continue };
            let degree: usize = alpha.iter().map(|a| usize::from(*a)).sum();
            let whole = c.numerator() * (&denominator / Integer::from(c.denominator().clone()));
            by_degree[degree].push((*position, whole * factorials(alpha)));
        }
        drop(positions);
        ExactIntegrand { exponents, terms: by_degree, denominator }
    }

    /// The exact integral over a polytope, and the number of simplices it took.
    pub fn integrate(&self, polytope: &Polytope) -> (Rational, usize) {
        let simplices = polytope.triangulate();
        let sum = simplices.iter().fold(Rational::ZERO, |sum, simplex| sum + self.integrate_simplex(polytope, simplex));
        (sum, simplices.len())
    }

    fn integrate_simplex(&self, polytope: &Polytope, simplex: &[usize]) -> Rational {
        let n = polytope.dimension();
        let (rows, denominator) = common_denominator(polytope, simplex);
        let mut h = vec![Integer::ZERO; self.exponents.len()];
        h[0] = Integer::ONE;
        for row in &rows {
            for at in 1..h.len() {
                let mut sum = std::mem::take(&mut h[at]);
                for (y, from) in row.iter().zip(self.exponents.predecessors(at)) {
                    if *from != NONE && !y.is_zero() {
                        sum += y * &h[*from as usize];
                    }
                }
                h[at] = sum;
            }
        }
        // sum over degrees k of S_k / (D^k (k + n)!), S_k the integer sum of the terms of degree k, by Horner's rule from the top:
        // everything over D^K (K + n)! with K the degree.
        let degree = self.terms.len() - 1;
        let mut numerator = Integer::ZERO;
        for (k, terms) in self.terms.iter().enumerate() {
            if k > 0 {
                numerator *= &denominator * Integer::from(k + n);
            }
            for (position, c) in terms {
                numerator += c * &h[*position];
            }
        }
        let scale = denominator.pow(degree) * crate::region::factorial(degree + n) * &self.denominator;
        Rational::from_parts_signed(numerator, scale) * polytope.exact_size(simplex)
    }
}

fn factorials(alpha: &[u16]) -> Integer {
    alpha.iter().fold(Integer::ONE, |product, a| product * crate::region::factorial(usize::from(*a)))
}

/// The vertices of a simplex over one denominator.
fn common_denominator(polytope: &Polytope, simplex: &[usize]) -> (Vec<Vec<Integer>>, Integer) {
    let points: Vec<Vec<Rational>> =
        simplex.iter().map(|v| polytope.exact_coordinates(&polytope.vertices()[*v])).collect();
    let denominator = points.iter().flatten().fold(UBig::ONE, |d, x| {
        let q = x.denominator();
        &d / (&d).gcd(q) * q
    });
    let denominator = Integer::from(denominator);
    let whole = |x: &Rational| x.numerator() * (&denominator / Integer::from(x.denominator().clone()));
    (points.iter().map(|point| point.iter().map(whole).collect()).collect(), denominator)
}
