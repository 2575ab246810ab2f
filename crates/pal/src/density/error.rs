//! Why a density cannot be made or evaluated.

use super::mesh::MeshError;
use crate::formula::{MembershipError, Var};
use crate::region::{RegionError, Unbounded};

/// Why a family cannot be compiled, or a question cannot be answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DensityError {
    /// The constraint has Boolean variables, and densities are over real variables only.
    #[error(
        "the constraint has Boolean variables ({0}), densities are over real ones only; replace each by true or false, \
         or by a condition on the reals"
    )]
    Booleans(String),
    /// The region has no volume, so that no density exists on it.
    #[error("the region is {0} and has no volume, so that no density exists on it")]
    NoVolume(&'static str),
    /// The constraint has no real variables.
    #[error("the constraint has no real variables")]
    NoVariables,
    /// The box around the region is too narrow or too wide for float64.
    #[error("along `{0}` the region is too narrow or too far away for float64; rescale the variable")]
    Scale(Var),
    /// The settings of the family are out of range.
    #[error("{0}")]
    Settings(String),
    /// The number of parameters or coordinates does not fit.
    #[error("{given} numbers given; {what} come in rows of {wanted}")]
    Length {
        /// What the numbers are.
        what: &'static str,
        /// How many numbers were given.
        given: usize,
        /// How many numbers make up a row.
        wanted: usize,
    },
    /// The numbers of parameter vectors and points do not match.
    #[error("{params} parameter vectors and {points} points; give one parameter vector, or one for each point")]
    Pairing {
        /// How many parameter vectors there are.
        params: usize,
        /// How many points there are.
        points: usize,
    },
    /// A parameter, or what is computed from it, is not a finite number.
    #[error(
        "parameter {column} of row {row} is {value}; parameters must be finite, and so must be what is computed from \
         them"
    )]
    Parameter {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// The value of the parameter.
        value: f64,
    },
    /// The parameters describe no density: every component is 0 on the region.
    #[error("parameter row {0} gives a density of 0 everywhere on the region; change its parameters")]
    Zero(usize),
    /// The region could not be decomposed.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The region is unbounded.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The test of membership in the constraint could not be compiled.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

impl From<MeshError> for DensityError {
    fn from(error: MeshError) -> Self {
        match error {
            MeshError::Region(error) => error.into(),
            MeshError::Unbounded(error) => error.into(),
            MeshError::Simplices(_) => DensityError::Settings(error.to_string()),
        }
    }
}
