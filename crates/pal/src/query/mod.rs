//! Queries on densities: probabilities, marginals, samples, modes.

mod batch;
mod entropy;
mod error;
mod event;
mod expectation;
mod given;
mod marginal;
mod mode;
mod sample;
mod shape;
mod slice;
mod univariate;

pub use entropy::{Entropy, EntropyOptions};
pub use error::QueryError;
pub use event::Event;
pub use expectation::Expectation;
pub use marginal::{Marginal, MarginalPiece, NotAProbability};
pub use mode::{Mode, ModeOptions, ModeStop};
pub use sample::Sampler;
