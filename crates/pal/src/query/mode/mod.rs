//! The mode (MAP) of a density, with a certificate.
//!
//! The largest value of `q = sum_c w_c q_c` over a region is sought by best-first branch and bound. On every part of the region the polynomial is
//! bounded from above by its Chebyshev coefficients there; a double that satisfies the constraint bounds the maximum from below.
//! The search ends when the two agree:
//!
//! ```text
//! q(point)  <=  sup q  <=  upper  <=  (1 + gap) q(point)
//! ```
//!
//! The supremum is that over the closed cells of positive volume. The point satisfies the constraint exactly, strict inequalities included.
//! The upper bound accounts for all rounding in here, and trusts the coefficients of the family to a few ulp of their sum.

mod basis;
mod bound;
mod hull;
mod node;
mod place;
mod restriction;
mod search;
mod series;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::density::functions::ChebyshevSeries;
use crate::density::mesh::Mesh;

/// A density whose mode is sought.
pub(crate) struct Problem<'a> {
    pub mesh: &'a Mesh,
    pub functions: &'a dyn ChebyshevSeries,
    /// One per component, not negative.
    pub weights: &'a [f64],
    /// Exact membership of a point.
    pub contains: &'a (dyn Fn(&[f64]) -> bool + Sync),
}

/// The mode of a density; `None` if there is no element, or no double that satisfies the constraint near any of them.
pub(crate) fn search(problem: &Problem, options: &ModeOptions) -> Option<Mode> {
    search::run(problem, options)
}

/// When the search for a mode ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeOptions {
    /// The relative gap between the density at the point and its upper bound.
    pub gap: f64,
    /// At most so many nodes, or the number of elements if that is more. `None`: no limit, nor on memory.
    pub nodes: Option<usize>,
    /// At most so much time after all elements were looked at once.
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
    /// The limit of nodes was reached.
    NodeLimit,
    /// The limit of time was reached.
    TimeLimit,
    /// Doubles cannot tell more: no double near the supremum satisfies the constraint, or rounding hides the rest of the gap.
    Precision,
}

/// A point of largest density and how sure that is. The bound holds whatever ended the search.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// It satisfies the constraint exactly.
    pub point: Vec<f64>,
    /// The logarithm of the density there; minus infinity if the density is zero everywhere.
    pub log_density: f64,
    /// No point of the region has a larger one.
    pub log_upper: f64,
    /// `upper / density - 1`.
    pub gap: f64,
    /// How many nodes were examined.
    pub nodes: usize,
    /// Why the search ended.
    pub stop: ModeStop,
}
