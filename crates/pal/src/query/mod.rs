//! Queries on densities: probabilities, marginals, samples, modes.

mod univariate;
