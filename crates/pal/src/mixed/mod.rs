//! Mixed densities: over real and Boolean variables at once, with exactly zero mass outside the constraint.
//!
//! ```text
//! p(y, b)  =  sum_m  w_m  q_m(y) prod_b t_mb(b)  /  I_m     where the constraint holds
//! ```
//!
//! Components `q_m` come from any kind of family, and every component has a probability `t_mb` for each Boolean
//! variable. A constraint is first projected onto its reals ([`Region::onto_reals`]), in cells on each of which the same
//! assignments are allowed. Cells with the same assignments are a *part* of the support; its assignments are a node of a
//! decision diagram, and its cells a mesh. So a normaliser costs one form per part and one pass through the diagram, and
//! twenty Boolean variables under a few clauses are as cheap as none.
//!
//! The alternative, a form for each assignment that the search of a region finds, was rejected: ten clauses of three
//! variables have up to 3^10 disjoint partial assignments, and the same diagram has some fifty nodes.
//!
//! | file | what it does |
//! |---|---|
//! | `diagram` | sets of assignments: probabilities, gradients, draws, most probable members |
//! | `support` | the projection of a constraint in parts. [`MixedSupport`] |
//! | `family` | batches of log-densities and their gradients. [`MixedFamily`] |
//! | `factors` | the same in lanes, for the fused pass of a training step |
//! | `event` | probabilities of conditions, in batches. [`MixedEvent`] |
//! | `expectation` | expectations and tables of batches. [`MixedExpectation`] |
//! | `density` | one density: probabilities, conditions, tables. [`MixedDensity`], [`Table`] |
//! | `given` | given values of some variables |
//! | `sample` | independent samples |
//! | `shape` | marginals of reals, moments, entropy |
//! | `file` | families and models as files. [`MixedModel`] |
//! | `mode` | the mode with a certificate |
//!
//! [`Region::onto_reals`]: crate::region::Region::onto_reals

mod density;
mod diagram;
mod event;
mod expectation;
mod factors;
mod family;
mod file;
mod given;
mod mode;
mod sample;
mod shape;
mod support;

pub use density::{MixedDensity, Table};
pub use event::MixedEvent;
pub use expectation::MixedExpectation;
pub use family::MixedFamily;
pub use file::MixedModel;
pub use support::MixedSupport;
