//! Weighted model integration: integrals of piecewise polynomial weights over constraints with Boolean variables.
//!
//! ```text
//! value  =  sum over assignments of the Booleans of  integral over { x : support }  of  weight dx
//! ```
//!
//! The search of [`crate::region`] carries the weight along. Once the support holds on a cell, the cell is split
//! further only by conditions of the weight that are still undecided there. Cells on which the weight is zero are
//! dropped.

mod factors;
mod moments_file;
mod nested;
mod piecewise;
mod problem;
mod solve;
mod term;
mod weight;

pub use moments_file::{MomentsFile, MomentsFileError};
pub use piecewise::{Piecewise, TooManyCases};
pub use problem::{Problem, ProblemError};
pub use solve::{Answer, Solution, WmiError};
