//! What can be wrong with a question about a density.

use crate::density::DensityError;
use crate::formula::Var;
use crate::polynomial::PolynomialError;

/// Why a question about a density has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueryError {
    /// A condition that the density gives no mass.
    #[error("the condition has probability 0 under this density")]
    Impossible,
    /// Values at which the density of the given variables is 0.
    #[error("the density of {0} is 0, so nothing can be conditioned on it")]
    NoDensity(String),
    /// A condition or a list of variables that does not fit the density.
    #[error("{0}")]
    Variables(String),
    /// A value that is not a finite number.
    #[error("the value of `{0}` is {1}; give a finite number")]
    Value(Var, f64),
    /// Uniform numbers outside the unit interval.
    #[error("uniform number {column} of row {row} is {value}; give numbers between 0 and 1")]
    Uniform {
        /// row, from 0
        row: usize,
        /// column, from 0
        column: usize,
        /// what it is
        value: f64,
    },
    /// A number of values that does not fit.
    #[error("{given} numbers given; {what} come in rows of {wanted}")]
    Length {
        /// what was given
        what: &'static str,
        /// numbers given
        given: usize,
        /// numbers per row
        wanted: usize,
    },
    /// More samples than memory.
    #[error("there is no memory for {0} samples at once; draw them in parts")]
    Memory(usize),
    /// Mass where no double is.
    #[error(
        "a part of the region with probability {0:.1e} is so thin that it contains no point with coordinates in doubles; rescale or shift the variables"
    )]
    NoDoubles(f64),
    /// See there.
    #[error(transparent)]
    Level(#[from] super::marginal::NotAProbability),
    /// See there.
    #[error(transparent)]
    Density(#[from] DensityError),
    /// See there.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}
