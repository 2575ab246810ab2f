//! Queries on densities: probabilities, marginals, samples, modes.

mod slice;
mod univariate;
