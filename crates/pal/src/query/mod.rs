//! Queries on densities: probabilities, marginals, samples, modes.

mod distribution;
mod error;
mod event;
mod expectation;
mod given;
mod sample;
mod univariate;

pub use distribution::Distribution;
pub use error::QueryError;
pub use event::Event;
pub use expectation::Expectation;
pub use sample::Sampler;
