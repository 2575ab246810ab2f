//! Queries on densities: probabilities, marginals, samples, modes.

mod distribution;

pub use distribution::Distribution;
