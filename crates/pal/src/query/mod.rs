//! Queries on densities: probabilities, marginals, samples, modes.

pub(crate) mod entropy;
pub(crate) mod marginal;
pub(crate) mod slice;
pub(crate) mod univariate;

pub use entropy::{Entropy, EntropyOptions};
pub use marginal::{Marginal, MarginalPiece, NotAProbability};
