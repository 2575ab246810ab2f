//! Queries on densities: probabilities, marginals, samples, modes.

pub mod mode;
