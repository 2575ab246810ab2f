//! The recurrence in exact arithmetic.
//!
//! With a common denominator D of the vertices of a simplex, `v = Y / D`, the numbers `h_alpha = D^|alpha| g_alpha`
//! satisfy the same recurrence in integers: no fraction is reduced anywhere on the way. One division per simplex gives
//! the integral.

use dashu_int::UBig;

use super::exponents::Exponents;
use super::integrand::{IntegrandError, MOST_BYTES, lattice_is_cheaper};
use crate::interrupt::checkpoint;
use crate::linear_algebra::{common_denominator, lcm, numerator_over, numerators_over};
use crate::number::{Integer, Rational, bit_length, factorial, pairwise_sum};
use crate::region::{Lattice, Polytope};

/// Entries computed between two checkpoints; each can have thousands of digits.
const BETWEEN_CHECKPOINTS: usize = 256;

/// A polynomial prepared for exact integration: integer multiples `c_alpha alpha!` of its coefficients over one
/// denominator.
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
        let denominator = common_denominator(terms.iter().map(|(_, c)| c));
        let positions = exponents.positions();
        let mut by_degree = vec![Vec::new(); exponents.degree() + 1];
        for (number, (alpha, c)) in terms.iter().enumerate() {
            if number % BETWEEN_CHECKPOINTS == 0 {
                checkpoint();
            }
            let position = positions.get(&alpha[..]).expect("the exponents contain those of all terms");
            let degree: usize = alpha.iter().map(|a| usize::from(*a)).sum();
            by_degree[degree].push((*position, numerator_over(c, &denominator) * factorials(alpha)));
        }
        drop(positions);
        ExactIntegrand { exponents, terms: by_degree, denominator: denominator.into() }
    }

    /// The exact integral over a polytope, and the number of simplices or faces it took.
    pub fn integrate(&self, polytope: &Polytope) -> Result<(Rational, usize), IntegrandError> {
        let lattice = Lattice::new(polytope);
        let (monomials, bytes) = (self.exponents.len(), self.entry_bytes(polytope));
        if lattice_is_cheaper(&lattice, polytope.dimension(), monomials.saturating_mul(bytes)) {
            return Ok((self.integrate_faces(polytope, &lattice), lattice.faces.len()));
        }
        if monomials.saturating_mul(bytes) > MOST_BYTES {
            return Err(IntegrandError::Memory { monomials, bytes });
        }
        let simplices = lattice.simplices();
        let parts = simplices.iter().map(|simplex| self.integrate_simplex(polytope, simplex));
        Ok((pairwise_sum(parts.collect()), simplices.len()))
    }

    /// How much memory an entry of a table takes: the largest power of a sum of coordinates, over the denominator that
    /// the vertices of a simplex have in common.
    fn entry_bytes(&self, polytope: &Polytope) -> usize {
        let bits = |x: &Rational| bit_length(x.numerator()).max(bit_length(&x.denominator().clone().into()));
        let coordinates = polytope.exact_vertices();
        let longest = coordinates.iter().flatten().map(bits).max().unwrap_or(0);
        let whole = coordinates.iter().flatten().all(|x| x.denominator().is_one());
        let factor = if whole { 1 } else { polytope.dimension() + 1 };
        size_of::<Integer>() + self.exponents.degree() * (longest * factor + 2) / 8
    }

    /// By the face lattice (see [`super::faces`]). The table of a face holds integers `D_F^|alpha| den_F [t^alpha]
    /// M_F`, with D_F a common denominator of the vertices below the face only: small faces have short numbers.
    fn integrate_faces(&self, polytope: &Polytope, lattice: &Lattice) -> Rational {
        let exact = lattice.exact_heights(polytope);
        let own_denominators: Vec<UBig> = exact.points.iter().map(common_denominator).collect();
        let mut uses = vec![0usize; lattice.faces.len()];
        lattice.faces.iter().flat_map(|face| &face.opposite).for_each(|facet| uses[*facet] += 1);
        let mut tables: Vec<FaceTable> = Vec::with_capacity(lattice.faces.len());
        let mut heights = exact.heights.iter();
        for face in &lattice.faces {
            let parts: Vec<(usize, &Rational)> = face.opposite.iter().copied().zip(&mut heights).collect();
            let common =
                parts.iter().fold(own_denominators[face.apex].clone(), |d, (facet, _)| lcm(&d, &tables[*facet].common));
            let scale = parts
                .iter()
                .fold(UBig::ONE, |d, (facet, height)| lcm(&d, &(&tables[*facet].scale * height.denominator())));
            let mut entries = vec![Integer::ZERO; self.exponents.len()];
            if face.dimension == 0 {
                entries[0] = Integer::ONE;
            }
            for (facet, height) in &parts {
                let part = &tables[*facet];
                let step = Integer::from(&common / &part.common);
                let mut factor = height.numerator() * Integer::from(&scale / (&part.scale * height.denominator()));
                for level in self.exponents.levels() {
                    checkpoint();
                    for at in level {
                        entries[at] += &factor * &part.entries[at];
                    }
                    factor *= &step;
                }
                uses[*facet] -= 1;
                if uses[*facet] == 0 {
                    tables[*facet].entries = Vec::new();
                }
            }
            self.sweep(&mut entries, &numerators_over(&exact.points[face.apex], &common));
            tables.push(FaceTable { entries, common, scale });
        }
        let table = tables.pop().expect("the polytope itself is a face");
        let value = self.contract(&table.entries, &Integer::from(table.common), polytope.dimension());
        value * exact.unit / Rational::from(table.scale)
    }

    /// Multiplies by 1 / (1 - <t, row>).
    fn sweep(&self, table: &mut [Integer], row: &[Integer]) {
        for at in 1..table.len() {
            if at % BETWEEN_CHECKPOINTS == 0 {
                checkpoint();
            }
            let mut sum = std::mem::take(&mut table[at]);
            for (y, from) in row.iter().zip(self.exponents.predecessors(at)) {
                if let (Some(from), false) = (from.position(), y.is_zero()) {
                    sum += y * &table[from];
                }
            }
            table[at] = sum;
        }
    }

    fn integrate_simplex(&self, polytope: &Polytope, simplex: &[usize]) -> Rational {
        let n = polytope.dimension();
        let (rows, denominator) = over_one_denominator(polytope, simplex);
        let mut h = vec![Integer::ZERO; self.exponents.len()];
        h[0] = Integer::ONE;
        rows.iter().for_each(|row| self.sweep(&mut h, row));
        self.contract(&h, &denominator, n) * polytope.exact_size(simplex)
    }

    /// The sum of the terms over a table of `D^|alpha| g_alpha`: `sum_alpha c_alpha alpha! / (|alpha| + n)! g_alpha`.
    fn contract(&self, h: &[Integer], denominator: &Integer, n: usize) -> Rational {
        // sum over degrees k of S_k / (D^k (k + n)!), S_k the integer sum of the terms of degree k, by Horner's rule
        // from the top: everything over D^K (K + n)! with K the degree.
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
        let scale = denominator.pow(degree) * factorial(degree + n) * &self.denominator;
        Rational::from_parts_signed(numerator, scale)
    }
}

/// What the sweep over the lattice knows of a face: `entries / scale` over powers of the common denominator `common`.
struct FaceTable {
    entries: Vec<Integer>,
    common: UBig,
    scale: UBig,
}

fn factorials(alpha: &[u16]) -> Integer {
    alpha.iter().fold(Integer::ONE, |product, a| product * factorial(usize::from(*a)))
}

/// The vertices of a simplex over one denominator.
fn over_one_denominator(polytope: &Polytope, simplex: &[usize]) -> (Vec<Vec<Integer>>, Integer) {
    let points: Vec<Vec<Rational>> =
        simplex.iter().map(|v| polytope.exact_coordinates(&polytope.vertices()[*v])).collect();
    let denominator = common_denominator(points.iter().flatten());
    (points.iter().map(|point| numerators_over(point, &denominator)).collect(), denominator.into())
}
