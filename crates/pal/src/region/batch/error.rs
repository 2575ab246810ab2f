//! Why regions do not make a batch.

use crate::formula::{MembershipError, Var};
use crate::region::RegionError;

/// Why regions do not make a batch, or points do not fit one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    /// A region of the batch has other variables than the first one.
    #[error("row {row} is over {given}, but the rows before it are over {wanted}, in this order")]
    Variables {
        /// Which row, counted from 0.
        row: usize,
        /// Its variables.
        given: String,
        /// The variables of the first row.
        wanted: String,
    },
    /// A constraint has Boolean variables.
    #[error("a constraint has the Boolean variable `{0}`; batches are over reals: substitute a value for it first")]
    Boolean(Var),
    /// There is nothing to take the variables from.
    #[error("there are no variables: a batch needs at least one")]
    NoVariables,
    /// A batch without rows has no variables to make regions of.
    #[error("a batch needs at least one region")]
    Empty,
    /// Headings exist in the plane only.
    #[error("windows can be turned in the plane only, and there are {0} variables: leave the headings out")]
    Headings(usize),
    /// What can be seen is computed in the plane only.
    #[error("what can be seen from a point is computed in the plane only, and there are {0} variables")]
    NotInThePlane(usize),
    /// What can be seen is computed on bounded maps only.
    #[error("the map is unbounded; give it a box, such as `0 <= x <= 9 and 0 <= y <= 9`")]
    UnboundedMap,
    /// A wall without an interior casts a shadow, but is no obstacle piece.
    #[error("the map has a wall without any thickness on the line {0}; give it some")]
    ThinWall(String),
    /// Not as many numbers as are needed.
    #[error("{given} {what} given, but {wanted} are needed")]
    Length {
        /// What the numbers are.
        what: &'static str,
        /// How many there are.
        given: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// A half width that is not a positive number.
    #[error("a half width is {0}; it must be a positive number")]
    HalfWidth(f64),
    /// A number that is not finite, or out of range.
    #[error("{what} of row {row} is {value}")]
    Value {
        /// What the number is.
        what: &'static str,
        /// Which row, counted from 0.
        row: usize,
        /// The number.
        value: f64,
    },
    /// A row that does not exist.
    #[error("there is no row {row}: the batch has {rows} rows, counted from 0")]
    Row {
        /// Which row was asked for.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// A constraint is no region.
    #[error("row {row}: {error}")]
    Region {
        /// Which row, counted from 0.
        row: usize,
        /// Why it is none.
        error: RegionError,
    },
    /// The test of membership of a region could not be compiled.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}
