//! Queries on densities: probabilities, marginals, samples, modes.
