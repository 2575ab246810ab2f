//! GASP!: integration over simplices by cubature, the integrator of the PAL paper (Section 4, Algorithms 1 and 2).
//!
//! ```text
//! region -> disjoint cells -> simplices;     integral over a simplex  =  n! vol * sum_p w_p f(A r_p)
//! ```
//!
//! with the points `r_p` and weights `w_p` of Grundmann and Moeller ([`GrundmannMoellerRule`]) on the unit simplex and
//! the affine map A onto the simplex at hand. A rule of degree `2 s + 1` is exact for polynomials of that degree,
//! whatever their number of terms; it also integrates functions that are only given as code, with an error that falls
//! as `s` grows.
//!
//! The work is laid out as dense arrays and three steps, each a plain loop over all points of a batch:
//!
//! 1. the affine map: (points x barycentric coordinates) times (barycentric coordinates x axes), a matrix product;
//! 2. a table of powers per axis, and per monomial the product of rows of that table;
//! 3. weighted sums over terms and over points.
//!
//! None of them branches on data, so that the same steps run as tensor operations of shape (simplex, point, term) on a
//! GPU, from the constants of a [`CubatureConstants`]. Here simplices and chunks of points run on all cores; sums are
//! compensated and formed in a fixed order, so that results do not depend on the number of threads.
//!
//! Weights alternate in sign and their magnitudes grow as `2.3^s`. Positive and negative ones are summed apart, and
//! [`GaspResult::rounding_error`] says what the cancellation between them has left: at least `1e-16 * 2.3^s` of the
//! integral of the magnitude of the terms.
//!
//! ```
//! use pal::{formula::reals, moments::gasp, polynomial::Polynomial, region::Region};
//! let [x, y] = reals(["x", "y"]);
//! let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
//! let moment = gasp::integrate(&triangle, &Polynomial::parse("x^2*y")?)?;
//! assert!((moment.value - 1.0 / 60.0).abs() <= moment.rounding_error && moment.rounding_error < 1e-15);
//! let smooth = gasp::integrate_fn(&triangle, 6, |p| (p[0] + p[1]).exp())?;
//! assert!((smooth.value - 1.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constants;
mod integrand;
mod rule;
mod simplices;
mod sum;

pub use constants::CubatureConstants;
pub(crate) use integrand::{BATCH, BatchFunction, BatchPolynomial, Closure, PointBatch};
pub use rule::{GrundmannMoellerRule, MAX_INDEX, MAX_POINTS};
pub(crate) use sum::Sum;

use super::frame::{AffineFrame, Converter};
use crate::formula::Var;
use crate::number::Rational;
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Cell, Region, Unbounded};
use simplices::{Measured, PartialIntegral};

/// Why an integral cannot be computed by cubature.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GaspError {
    /// The rule would have more than [`MAX_POINTS`] points.
    #[error(
        "the rule of degree {} in {dimension} dimensions has more than {MAX_POINTS} points; \
         lower the degree, or integrate by moments",
        2 * .index + 1
    )]
    TooManyPoints {
        /// the number of variables
        dimension: usize,
        /// the index `s` of the rule
        index: usize,
    },
    /// The index of the rule is above [`MAX_INDEX`].
    #[error(
        "index {index} is above the limit of {MAX_INDEX}; \
         the weights cancel so strongly that float64 is useless there. \
         Lower the degree, or integrate by moments"
    )]
    Degree {
        /// the index `s` asked for
        index: usize,
    },
    /// The polynomial does not fit the variables.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// The region has no finite volume.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The integrand is NaN or infinite somewhere.
    #[error("the integrand is not finite at {0:?}; exclude this point by a constraint")]
    NotFinite(Vec<f64>),
    /// A coordinate, a coefficient or the result is too large for float64.
    #[error("numbers beyond the range of float64 occur; rescale the variables or the integrand")]
    Overflow,
    /// A list of coordinates that is not a list of simplices.
    #[error(
        "{given} coordinates are not a list of simplices in {dimension} dimensions; \
         each takes n + 1 vertices of n > 0 coordinates"
    )]
    Shape {
        /// the number of variables
        dimension: usize,
        /// coordinates given
        given: usize,
    },
    /// A vertex with a NaN or an infinity.
    #[error("a vertex has the coordinate {0}, which is not a real number")]
    Vertex(f64),
}

/// An integral by cubature, and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaspResult {
    /// The integral.
    pub value: f64,
    /// A bound on what the rounding of weights, sizes and sums has changed. For a polynomial also that of the points
    /// and of its evaluation, underflow included, so that the exact integral is within this of `value`; how well a
    /// closure computes, and how much it minds points an ulp away, is not known here.
    pub rounding_error: f64,
    /// For a closure the distance to the next coarser rule, added up over the simplices, which usually exceeds the
    /// distance to the truth; infinite for `s = 0`, which has no coarser rule. 0 for a polynomial, for which the rule
    /// is exact.
    pub truncation_estimate: f64,
    /// Convex cells of the region; for a list of simplices their number.
    pub cells: usize,
    /// Simplices the cells were divided into.
    pub simplices: u64,
    /// Points of the rule on each simplex.
    pub points: usize,
}

/// Integrates a polynomial over a region, with every assignment of its Boolean variables counted.
///
/// ```
/// use pal::{moments::gasp, polynomial::Polynomial, region::Region, shapes};
/// let cube = Region::new(&shapes::cube(3))?;
/// let result = gasp::integrate(&cube, &Polynomial::parse("x1*x2*x3")?)?;
/// assert!((result.value - 0.125).abs() <= result.rounding_error);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn integrate(region: &Region, polynomial: &Polynomial) -> Result<GaspResult, GaspError> {
    let terms = BatchPolynomial::new(polynomial, region.variables())?;
    let mut result = over_region(region, rule_index(polynomial), &terms)?;
    result.truncation_estimate = 0.0;
    Ok(result)
}

/// Integrates a function over a region with the rule of index `s`, of degree `2 s + 1`. The function gets the
/// coordinates in the order of the region's variables; it must not depend on the Boolean ones, whose assignments are
/// counted.
pub fn integrate_fn(region: &Region, s: usize, f: impl Fn(&[f64]) -> f64 + Sync) -> Result<GaspResult, GaspError> {
    over_region(region, s, &Closure { dimension: region.dimension(), function: f })
}

/// Integrates a polynomial over simplices: vertices of all of them in one slice, `n + 1` rows of `n` coordinates each,
/// in the order of `variables`. Simplices that overlap count twice, flat ones not at all.
///
/// ```
/// use pal::{formula::Var, moments::gasp, polynomial::Polynomial};
/// let triangles = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0];
/// let result = gasp::integrate_simplices(&triangles, &["x", "y"].map(Var::new), &Polynomial::parse("x*y")?)?;
/// assert!((result.value - 0.25).abs() <= result.rounding_error);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn integrate_simplices(
    vertices: &[f64],
    variables: &[Var],
    polynomial: &Polynomial,
) -> Result<GaspResult, GaspError> {
    let terms = BatchPolynomial::new(polynomial, variables)?;
    let mut result = over_simplices(vertices, variables.len(), rule_index(polynomial), &terms)?;
    result.truncation_estimate = 0.0;
    Ok(result)
}

/// Integrates a function over simplices given as in [`integrate_simplices`], with the rule of index `s`.
pub fn integrate_fn_simplices(
    vertices: &[f64],
    dimension: usize,
    s: usize,
    f: impl Fn(&[f64]) -> f64 + Sync,
) -> Result<GaspResult, GaspError> {
    over_simplices(vertices, dimension, s, &Closure { dimension, function: f })
}

fn rule_index(polynomial: &Polynomial) -> usize {
    GrundmannMoellerRule::index_for_degree(polynomial.degree().unwrap_or(0) as usize)
}

fn over_region(region: &Region, index: usize, integrand: &impl BatchFunction) -> Result<GaspResult, GaspError> {
    let rule = GrundmannMoellerRule::shared(region.dimension(), index)?;
    let parts = region.map_cells(|cell| over_cell(&cell, &rule, integrand))?;
    let mut total = PartialIntegral::default();
    let cells = parts.len();
    for part in parts {
        total.merge(&part.map_err(GaspError::NotFinite)?);
    }
    finish(total, cells, &rule)
}

fn over_cell(
    cell: &Cell,
    rule: &GrundmannMoellerRule,
    integrand: &impl BatchFunction,
) -> Result<PartialIntegral, Vec<f64>> {
    let polytope = cell.polytope();
    let n = polytope.dimension();
    // The user's own coordinates: closures ask for them, and polynomials would grow by a change of variables.
    let frame = AffineFrame { shift: vec![Rational::ZERO; n], scale: vec![Rational::ONE; n] };
    let converter = Converter::new(&frame);
    let (corners, coordinate) = converter.corners(polytope);
    let (simplices, error) = converter.simplices(polytope, &polytope.triangulate(), &corners, coordinate);
    let measured = Measured { simplices, coordinate_error: error.coordinate, size_error: error.size };
    let part = simplices::integrate(&measured, rule, integrand)?;
    Ok(part.times(cell.multiplicity().to_f64().value()))
}

/// Integrates a polynomial over one cell, with the assignments of Boolean variables that it stands for counted.
pub fn integrate_cell(cell: &Cell, variables: &[Var], polynomial: &Polynomial) -> Result<GaspResult, GaspError> {
    let terms = BatchPolynomial::new(polynomial, variables)?;
    let rule = GrundmannMoellerRule::shared(variables.len(), rule_index(polynomial))?;
    let part = over_cell(cell, &rule, &terms).map_err(GaspError::NotFinite)?;
    let mut result = finish(part, 1, &rule)?;
    result.truncation_estimate = 0.0;
    Ok(result)
}

fn over_simplices(
    vertices: &[f64],
    dimension: usize,
    index: usize,
    integrand: &impl BatchFunction,
) -> Result<GaspResult, GaspError> {
    let measured = Measured::new(vertices, dimension)?;
    let rule = GrundmannMoellerRule::shared(dimension, index)?;
    let total = simplices::integrate(&measured, &rule, integrand).map_err(GaspError::NotFinite)?;
    finish(total, measured.simplices.len(), &rule)
}

fn finish(total: PartialIntegral, cells: usize, rule: &GrundmannMoellerRule) -> Result<GaspResult, GaspError> {
    let value = total.value.value();
    if !value.is_finite() {
        return Err(GaspError::Overflow);
    }
    Ok(GaspResult {
        value,
        // An overflow of the bound alone leaves it infinite, which is the truth about it; NaN would not be.
        rounding_error: if total.rounding.is_nan() { f64::INFINITY } else { total.rounding },
        truncation_estimate: match rule.index() {
            0 if total.simplices > 0 => f64::INFINITY,
            _ => total.truncation,
        },
        cells,
        simplices: total.simplices,
        points: rule.len(),
    })
}
