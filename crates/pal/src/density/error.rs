//! What can be wrong with a request for a density.

use super::mesh::MeshError;
use crate::formula::{MembershipError, Var};
use crate::region::{RegionError, Unbounded};

/// Why a family cannot be compiled, or a question cannot be answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DensityError {
    /// Densities are over real variables only.
    #[error(
        "the constraint has Boolean variables ({0}), densities are over real ones only; replace each by true or false, or by a condition on the reals"
    )]
    Booleans(String),
    /// There is nothing to put mass on.
    #[error("the region is {0} and has no volume, so no density lives on it; `pal check` tells more")]
    NoVolume(&'static str),
    /// There is no variable.
    #[error("the constraint has no real variables")]
    NoVariables,
    /// The box around the region is narrower than doubles can tell, or wider than they reach.
    #[error("along `{0}` the region is too narrow or too far away for doubles; rescale the variable")]
    Scale(Var),
    /// A set of variables that makes no sense.
    #[error("{0}")]
    Variables(String),
    /// Settings out of range.
    #[error("{0}")]
    Settings(String),
    /// A number of parameters or coordinates that does not fit.
    #[error("{given} numbers given; {what} come in rows of {wanted}")]
    Length {
        /// what was given
        what: &'static str,
        /// numbers given
        given: usize,
        /// numbers per row
        wanted: usize,
    },
    /// Parameter vectors and points that do not pair up.
    #[error("{params} parameter vectors and {points} points; give one parameter vector, or one for each point")]
    Pairing {
        /// parameter vectors
        params: usize,
        /// points
        points: usize,
    },
    /// A parameter is not a number.
    #[error(
        "parameter {column} of row {row} is {value}; parameters must be finite, and so must be what is computed from them"
    )]
    Parameter {
        /// row, from 0
        row: usize,
        /// column, from 0
        column: usize,
        /// what it is
        value: f64,
    },
    /// The parameters describe no density: every component is 0 on the region.
    #[error("parameter row {0} gives a density of 0 everywhere on the region; change its parameters")]
    Zero(usize),
    /// The condition has no mass.
    #[error("the condition has probability 0 under parameter row {0}")]
    Impossible(usize),
    /// See there.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// See there.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// See there.
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
