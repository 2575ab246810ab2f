//! Exact regions, integrals and densities under linear constraints.
#![deny(missing_docs)]
// A comparison that fails for NaN is what sends a doubtful number to the exact path.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

pub mod checksum;
pub mod density;
pub mod formula;
pub mod interrupt;
pub mod moments;
pub mod number;
pub mod polynomial;
pub mod query;
pub mod random;
pub mod region;
pub mod shapes;
pub mod wmi;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/densities.md")]
struct Densities;
