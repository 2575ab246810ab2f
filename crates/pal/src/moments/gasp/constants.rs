//! What a framework with tensors of its own needs to integrate by itself.
//!
//! Whatever must be exact or carefully rounded is done here: cells, simplices and their sizes, points and weights. What
//! is left is products and sums over (simplex, point, monomial), on any device that knows them.

use std::sync::Arc;

use rayon::prelude::*;

use super::rule::GrundmannMoellerRule;
use super::{AffineFrame, Converter, GaspError, rule_index};
use crate::moments::around;
use crate::moments::simplex::Simplices;
use crate::number;
use crate::polynomial::Polynomial;
use crate::region::{Cell, Region};

/// An integral over a region as constants. With the vertices `v_s0 .. v_sn` of simplex s, the rows `b_p` of
/// [`GrundmannMoellerRule::barycentric`] and the weights `w_p`,
///
/// ```text
/// integral  =  sum over terms (alpha, c) of  c * sum over s of  size_s * sum over p of  w_p * (sum_i b_pi v_si)^alpha
/// ```
///
/// Coordinates are divided by a power of two for each axis, which changes no digit and makes them at most about 1:
/// powers of them fit single precision. Coefficients make up for it.
///
/// ```
/// use pal::{moments::gasp::CubatureConstants, polynomial::Polynomial, region::Region, shapes};
/// let constants = CubatureConstants::new(&Region::new(&shapes::cube(2))?, &Polynomial::parse("3*x1^2*x2")?)?;
/// assert_eq!((constants.dimension, constants.sizes.len(), constants.rule.len()), (2, 2, 4));
/// assert_eq!(constants.terms, [(vec![2, 1], 3.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CubatureConstants {
    /// The number of variables.
    pub dimension: usize,
    /// `n + 1` vertices of `n` coordinates for each simplex.
    pub vertices: Vec<f64>,
    /// `n!` times the volume of each simplex, times the assignments of Boolean variables that it stands for.
    pub sizes: Vec<f64>,
    /// Exponents and coefficients.
    pub terms: Vec<(Vec<u16>, f64)>,
    /// A rule that is exact for the terms.
    pub rule: Arc<GrundmannMoellerRule>,
}

impl CubatureConstants {
    /// For a polynomial over a region. Of a region without volume, no simplex is left.
    pub fn new(region: &Region, polynomial: &Polynomial) -> Result<CubatureConstants, GaspError> {
        let dimension = region.dimension();
        let rule = GrundmannMoellerRule::shared(dimension, rule_index(polynomial))?;
        let aligned = polynomial.aligned(region.variables())?;
        let cells = region.decompose()?;
        let frame = AffineFrame::origin(&around(cells.iter()));
        let mut constants =
            CubatureConstants { dimension, vertices: Vec::new(), sizes: Vec::new(), terms: Vec::new(), rule };
        if cells.is_empty() {
            return Ok(constants);
        }
        let converter = Converter::new(&frame);
        let convert = |cell: &Cell| {
            let polytope = cell.polytope();
            let (corners, error) = converter.corners(polytope);
            converter.simplices(polytope, &polytope.triangulate(), &corners, error).0
        };
        let parts: Vec<Simplices> = cells.par_iter().map(convert).collect();
        for (cell, simplices) in cells.iter().zip(parts) {
            let multiplicity = cell.multiplicity().to_f64().value();
            constants.vertices.extend(simplices.vertices);
            constants.sizes.extend(simplices.sizes.iter().map(|size| size * multiplicity));
        }
        let unit = frame.volume();
        for (alpha, c) in aligned {
            let coefficient = number::to_f64(&(c * frame.power(&alpha) * &unit));
            constants.terms.push((alpha, coefficient));
        }
        let numbers = constants.vertices.iter().chain(&constants.sizes).chain(constants.terms.iter().map(|(_, c)| c));
        if numbers.into_iter().any(|x| !x.is_finite()) {
            return Err(GaspError::Overflow);
        }
        Ok(constants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::{Formula, reals};
    use crate::moments::gasp;
    use crate::number::Rational;

    /// The sum of the documentation, as it stands there.
    fn sum(constants: &CubatureConstants) -> f64 {
        let (n, rule) = (constants.dimension, &constants.rule);
        let mut total = 0.0;
        for (s, size) in constants.sizes.iter().enumerate() {
            let vertex = |i: usize, axis: usize| constants.vertices[(s * (n + 1) + i) * n + axis];
            for p in 0..rule.len() {
                let b = rule.barycentric(p);
                let x: Vec<f64> = (0..n).map(|axis| (0..=n).map(|i| b[i] * vertex(i, axis)).sum()).collect();
                for (alpha, c) in &constants.terms {
                    let monomial: f64 = alpha.iter().zip(&x).map(|(a, x)| x.powi(i32::from(*a))).product();
                    total += c * size * rule.weight(p) * monomial;
                }
            }
        }
        total
    }

    #[test]
    fn the_sum_is_the_integral() {
        let [x, y] = reals(["x", "y"]);
        // Two triangles in a frame of 4096 by 1/4, counted for both values of a Boolean variable.
        let strip = x.between(3000, 4000) & y.between(0, Rational::from_parts(1.into(), 5u8.into()));
        let region = Region::new(&(strip & (Formula::boolean("a") | !Formula::boolean("a"))).into()).unwrap();
        let p = Polynomial::parse("x^2*y - 7*y^3 + 2").unwrap();
        let constants = CubatureConstants::new(&region, &p).unwrap();
        assert!(constants.vertices.iter().all(|x| (0.0..=1.0).contains(x)));
        let want = gasp::integrate(&region, &p).unwrap();
        assert!((sum(&constants) / want.value - 1.0).abs() < 1e-13, "{} {want:?}", sum(&constants));
    }

    #[test]
    fn nothing_is_left_of_a_region_without_volume() {
        let [x] = reals(["x"]);
        let constants = CubatureConstants::new(&Region::new(&x.equals(1).into()).unwrap(), &Polynomial::one()).unwrap();
        assert!(constants.sizes.is_empty() && constants.vertices.is_empty());
        let ray = CubatureConstants::new(&Region::new(&x.ge(1).into()).unwrap(), &Polynomial::one());
        assert!(matches!(ray, Err(GaspError::Unbounded(_))));
    }
}
