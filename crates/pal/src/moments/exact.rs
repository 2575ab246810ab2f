//! The recurrence in exact arithmetic.
//!
//! With a common denominator D of the vertices of a simplex, `v = Y / D`, the numbers `h_alpha = D^|alpha| g_alpha` satisfy the same
//! recurrence in integers: no fraction is reduced anywhere on the way. One division per simplex gives the integral.

use dashu_int::UBig;
use dashu_int::ops::Gcd;

use super::exponents::{Exponents, NONE};
use super::integrand::lattice_is_cheaper;
use crate::number::{Integer, Rational};
use crate::region::{Lattice, Polytope, pairwise_sum};

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

    /// The exact integral over a polytope, and the number of simplices or faces it took.
    pub fn integrate(&self, polytope: &Polytope) -> (Rational, usize) {
        let lattice = Lattice::new(polytope);
        if lattice_is_cheaper(&lattice, polytope.dimension()) {
            return (self.integrate_faces(polytope, &lattice), lattice.faces.len());
        }
        let simplices = lattice.simplices();
        let parts = simplices.iter().map(|simplex| self.integrate_simplex(polytope, simplex));
        (pairwise_sum(parts.collect()), simplices.len())
    }

    /// By the face lattice (see [`super::faces`]). The table of a face holds integers `D^|alpha| den_F [t^alpha] M_F`.
    fn integrate_faces(&self, polytope: &Polytope, lattice: &Lattice) -> Rational {
        let exact = lattice.exact_heights(polytope);
        let mut uses = vec![0usize; lattice.faces.len()];
        lattice.faces.iter().flat_map(|face| &face.opposite).for_each(|facet| uses[*facet] += 1);
        let mut tables: Vec<(Vec<Integer>, Integer)> = vec![(Vec::new(), Integer::ONE); lattice.faces.len()];
        let mut heights = exact.heights.iter();
        for (at, face) in lattice.faces.iter().enumerate() {
            let mut table = vec![Integer::ZERO; self.exponents.len()];
            let mut denominator = Integer::ONE;
            if face.dimension == 0 {
                table[0] = Integer::ONE;
            }
            let parts: Vec<(usize, &Rational)> = face.opposite.iter().copied().zip(&mut heights).collect();
            for (facet, height) in &parts {
                let own = &tables[*facet].1 * Integer::from(height.denominator().clone());
                denominator = least_common_multiple(&denominator, &own);
            }
            for (facet, height) in &parts {
                let (part, own) = &tables[*facet];
                let factor = height.numerator() * (&denominator / (own * Integer::from(height.denominator().clone())));
                table.iter_mut().zip(part).for_each(|(sum, entry)| *sum += &factor * entry);
                uses[*facet] -= 1;
                if uses[*facet] == 0 {
                    tables[*facet].0 = Vec::new();
                }
            }
            self.sweep(&mut table, &exact.points[face.apex]);
            tables[at] = (table, denominator);
        }
        match tables.pop() {
            Some((table, denominator)) => {
                self.contract(&table, &exact.denominator, polytope.dimension()) * exact.unit
                    / Rational::from(denominator)
            }
            None => Rational::ZERO,
        }
    }

    /// Multiplies by 1 / (1 - <t, row>).
    fn sweep(&self, table: &mut [Integer], row: &[Integer]) {
        for at in 1..table.len() {
            let mut sum = std::mem::take(&mut table[at]);
            for (y, from) in row.iter().zip(self.exponents.predecessors(at)) {
                if *from != NONE && !y.is_zero() {
                    sum += y * &table[*from as usize];
                }
            }
            table[at] = sum;
        }
    }

    fn integrate_simplex(&self, polytope: &Polytope, simplex: &[usize]) -> Rational {
        let n = polytope.dimension();
        let (rows, denominator) = common_denominator(polytope, simplex);
        let mut h = vec![Integer::ZERO; self.exponents.len()];
        h[0] = Integer::ONE;
        rows.iter().for_each(|row| self.sweep(&mut h, row));
        self.contract(&h, &denominator, n) * polytope.exact_size(simplex)
    }

    /// The sum of the terms over a table of `D^|alpha| g_alpha`: `sum_alpha c_alpha alpha! / (|alpha| + n)! g_alpha`.
    fn contract(&self, h: &[Integer], denominator: &Integer, n: usize) -> Rational {
        // sum over degrees k of S_k / (D^k (k + n)!), S_k the integer sum of the terms of degree k, by Horner's rule from the top:
        // everything over D^K (K + n)! with K the degree.
        let degree = self.terms.len() - 1;
        let mut numerator = Integer::ZERO;
        for (k, terms) in self.terms.iter().enumerate() {
            if k > 0 {
                numerator *= denominator * Integer::from(k + n);
            }
            for (position, c) in terms {
                numerator += c * &h[*position];
            }
        }
        let scale = denominator.pow(degree) * crate::region::factorial(degree + n) * &self.denominator;
        Rational::from_parts_signed(numerator, scale)
    }
}

fn least_common_multiple(a: &Integer, b: &Integer) -> Integer {
    a / Integer::from(a.gcd(b)) * b
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
