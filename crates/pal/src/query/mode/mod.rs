//! The mode (MAP estimate) of a density, with a certificate.
//!
//! The largest value of `q = sum_c w_c q_c` over a region is sought by best-first branch and bound. On every part of
//! the region the polynomial is bounded from above by its Chebyshev coefficients there; its value at a float64 point
//! that satisfies the constraint (the incumbent) bounds the maximum from below. The search ends when the two agree:
//!
//! ```text
//! q(point)  <=  sup q  <=  upper  <=  (1 + gap) q(point)
//! ```
//!
//! The supremum is taken over the closed cells of positive volume. The point satisfies the constraint exactly, strict
//! inequalities included. The upper bound accounts for all rounding in this module, and trusts the coefficients of the
//! family to a few ulp of their sum.
//!
//! | file | what it does |
//! |---|---|
//! | `search` | best-first branch and bound over boxes and simplices |
//! | `node` | examines one node: bound, local ascent, incumbent, how to split it |
//! | `bound` | the two upper bounds of a polynomial on a node |
//! | `ascent` | Newton's method inside a node |
//! | `incumbent` | from local coordinates to a float64 point that satisfies the constraint |
//! | `enclosure` | a Chebyshev series on a box with a bound on its error |
//! | `chebyshev_basis` | exponents and tables that all enclosures of one density share |
//! | `restriction` | Chebyshev polynomials on a part of their interval |

mod ascent;
mod bound;
mod chebyshev_basis;
mod enclosure;
mod incumbent;
mod node;
mod restriction;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::density::functions::ChebyshevSeries;
use crate::density::mesh::Mesh;

/// The density whose mode is sought.
pub(crate) struct ModeProblem<'a> {
    pub mesh: &'a Mesh,
    pub functions: &'a dyn ChebyshevSeries,
    /// The weights of the components, none negative.
    pub weights: &'a [f64],
    /// Exact membership of a point in the constraint.
    pub contains: &'a (dyn Fn(&[f64]) -> bool + Sync),
}

/// Finds the mode of a density. `None` if the mesh has no elements, or if no float64 point that satisfies the
/// constraint was found near any of them.
pub(crate) fn search(problem: &ModeProblem, options: &ModeOptions) -> Option<Mode> {
    search::run(problem, options)
}

/// When the search for a mode ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeOptions {
    /// The relative gap between the density at the point and its upper bound that is small enough.
    pub gap: f64,
    /// The largest number of nodes to examine; every element is examined once whatever this says. With `None` there is
    /// no limit, nor one on memory.
    pub nodes: Option<usize>,
    /// The time limit, which is checked after every element was examined once.
    pub time: Option<Duration>,
}

impl Default for ModeOptions {
    /// A gap of 1e-6 and at most a million nodes.
    fn default() -> Self {
        ModeOptions { gap: 1e-6, nodes: Some(1_000_000), time: None }
    }
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeStop {
    /// The gap asked for was reached.
    Certified,
    /// The limit on nodes was reached.
    NodeLimit,
    /// The limit on time was reached.
    TimeLimit,
    /// The precision of float64 is exhausted: no float64 point near the supremum satisfies the constraint, or the
    /// remaining gap is below rounding.
    Precision,
}

/// A point of largest density, with an upper bound of the density that holds whatever ended the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// The point, which satisfies the constraint exactly.
    pub point: Vec<f64>,
    /// The logarithm of the density at the point; minus infinity if the density is zero everywhere.
    pub log_density: f64,
    /// An upper bound of the log-density of all points of the region.
    pub log_upper: f64,
    /// The relative gap: upper bound of the density divided by the density at the point, minus 1.
    pub gap: f64,
    /// The number of nodes that were examined.
    pub nodes: usize,
    /// Why the search ended.
    pub stop: ModeStop,
}
