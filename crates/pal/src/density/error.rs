//! Why a density cannot be made or evaluated.

use super::mesh::MeshError;
use crate::formula::{Constraint, MembershipError, Var};
use crate::region::{BatchError, FlatError, RegionError, Unbounded};

/// Why a family cannot be compiled, or a question cannot be answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DensityError {
    /// The constraint has Boolean variables, and this kind of object is over real variables only.
    #[error(
        "the constraint has Boolean variables ({0}), and this is over real ones only; use `MixedFamily`, in Rust \
         or Python, or replace each by true or false, or by a condition on the reals"
    )]
    Booleans(String),
    /// The constraint has more Boolean variables than probabilities can be multiplied.
    #[error("the constraint has {given} Boolean variables; at most {most} are possible")]
    TooManyBooleans {
        /// How many there are.
        given: usize,
        /// How many are possible.
        most: usize,
    },
    /// The Boolean variables depend on each other in a way that takes too much memory.
    #[error(
        "the Boolean variables depend on each other in so many ways that their diagram has more than {0} nodes; \
         declare variables that occur together next to each other"
    )]
    EntangledBooleans(usize),
    /// The value of a Boolean variable in a point is neither 0 nor 1.
    #[error("row {row} has {value} for the Boolean variable `{variable}`; give 0 or 1")]
    BooleanValue {
        /// The row, counted from 0.
        row: usize,
        /// The variable.
        variable: Var,
        /// The number that was given.
        value: f64,
    },
    /// The region has no volume, so that no density exists on it.
    #[error("the region is {0} and has no volume, so that no density exists on it")]
    NoVolume(&'static str),
    /// Equalities determine all variables.
    #[error("the region is a single point, so that no density exists on it; leave at least one variable free")]
    Point,
    /// The region has no volume, and no equalities that hold on all of it.
    #[error(transparent)]
    Flat(#[from] FlatError),
    /// The constraint has no real variables.
    #[error("the constraint has no real variables")]
    NoVariables,
    /// The box around the region is too narrow or too wide for float64.
    #[error(
        "along `{0}` the region is too narrow or too far from 0 for float64, of which there must be 256 or more; \
         shift or rescale the variable"
    )]
    Scale(Var),
    /// The settings of the family are out of range.
    #[error("{0}")]
    Settings(String),
    /// More bins are cut by slanted walls than there is memory for.
    #[error(
        "slanted walls cut {bins} bins in {tables} different ways, and each way needs a table of its own; at most \
         {most} tables fit: use about {fitting:.2} times as many knots per axis"
    )]
    CutBins {
        /// How many bins are cut.
        bins: usize,
        /// In how many different ways.
        tables: usize,
        /// How many tables fit.
        most: usize,
        /// By which factor the number of knots would have to change.
        fitting: f64,
    },
    /// The form of a normaliser has too many entries to be written out for a tensor framework.
    #[error(
        "written out for all bins, the normaliser would be too large; only the CPU can be used with so many knots, and \
         first derivatives with respect to parameters alone"
    )]
    DenseForm,
    /// The number of parameters does not fit.
    #[error("{given} numbers given; {what} come in rows of {wanted}")]
    Length {
        /// What the numbers are.
        what: &'static str,
        /// How many numbers were given.
        given: usize,
        /// How many numbers make up a row.
        wanted: usize,
    },
    /// The number of coordinates of points does not fit.
    #[error("{given} numbers given; points come in rows of one number per variable: {variables}")]
    Points {
        /// How many numbers were given.
        given: usize,
        /// The variables, in the order of the coordinates.
        variables: String,
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
    /// Rows of a batch of regions have no volume in the box of the family.
    #[error("{}", without_volume(.0))]
    RowsWithoutVolume(Vec<usize>),
    /// A batch of regions does not fit.
    #[error(transparent)]
    Batch(#[from] BatchError),
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

/// How many rows a message names.
const NAMED: usize = 10;

fn without_volume(rows: &[usize]) -> String {
    let mut names: Vec<String> = rows.iter().take(NAMED).map(ToString::to_string).collect();
    if rows.len() > NAMED {
        names.push(format!("and {} more", rows.len() - NAMED));
    }
    let (noun, verb) = if rows.len() == 1 { ("row", "has") } else { ("rows", "have") };
    format!(
        "{noun} {} of the regions {verb} no volume in the box of the family, so that no density exists there; leave \
         {noun} without volume out",
        names.join(", ")
    )
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

impl DensityError {
    /// Checks that points come in rows of one coordinate per variable.
    pub(crate) fn check_points(constraint: &Constraint, points: &[f64]) -> Result<(), DensityError> {
        if points.len().is_multiple_of(constraint.reals.len()) {
            return Ok(());
        }
        let names: Vec<&str> = constraint.reals.iter().map(Var::name).collect();
        Err(DensityError::Points { given: points.len(), variables: names.join(", ") })
    }
}
