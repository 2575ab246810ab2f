//! Tutorials. They hold no code of the library; every example in them is compiled and run with the tests.
//!
//! - [`integral`]: from a constraint to an integral.
//! - [`density`]: from data to a density and its queries.
//!
//! The third one, from a network to a constrained prediction, is the module `tutorial` of the crate `pal-burn`.

pub mod density;
pub mod integral;
