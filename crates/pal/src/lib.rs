//! Exact regions, integrals and densities under linear constraints.
#![deny(missing_docs)]

pub mod formula;
pub mod moments;
pub mod number;
pub mod polynomial;
pub mod region;
pub mod shapes;
