//! What can be wrong with a question about a density.

use crate::density::DensityError;
use crate::formula::{Formula, Var};
use crate::polynomial::PolynomialError;
use crate::region::visible_equalities;

/// Why a question about a density has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QueryError {
    /// The density gives a condition no mass.
    #[error("the condition has probability 0 under this density")]
    Impossible,
    /// A condition is an equality between variables and numbers, which a density gives no mass.
    #[error(
        "the condition {0} has probability 0 under this density. To condition on the value of a variable, use given: \
         given({1}), or --given {1} in the program"
    )]
    EqualityOfValue(String, String),
    /// A condition is an equality between several variables.
    #[error(
        "the condition {0} has probability 0 under this density, and what conditioning on an equality of several \
         variables means would depend on how they are measured. Make it a part of the constraint and compile a family \
         there"
    )]
    Equality(String),
    /// The density of the given variables is 0 at the given values.
    #[error("the density of {0} is 0, so nothing can be conditioned on it")]
    NoDensity(String),
    /// A condition or a list of variables does not fit the density.
    #[error("{0}")]
    Variables(String),
    /// The value of a variable is not a finite number.
    #[error("the value of `{0}` is {1}; give a finite number")]
    Value(Var, f64),
    /// A uniform number is outside the unit interval.
    #[error("uniform number {column} of row {row} is {value}; give numbers between 0 and 1")]
    Uniform {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
        /// The number that was given.
        value: f64,
    },
    /// The number of values does not fit.
    #[error("{given} numbers given; {what} come in rows of {wanted}")]
    Length {
        /// What the values are.
        what: &'static str,
        /// How many numbers were given.
        given: usize,
        /// How many numbers make up a row.
        wanted: usize,
    },
    /// Adaptive cubature would take too many evaluations of the density before it could begin to adapt.
    #[error(
        "the integral needs {needed:.1e} evaluations of every density, more than the limit of {limit:.1e}; estimate it \
         from samples instead"
    )]
    Evaluations {
        /// The number of evaluations of one density.
        needed: f64,
        /// The largest number.
        limit: usize,
    },
    /// There is not enough memory for the samples.
    #[error("there is no memory for {0} samples at once; draw them in parts")]
    Memory(usize),
    /// A part of the region that has mass contains no point with float64 coordinates.
    #[error(
        "a part of the region with probability {0:.1e} is so thin that it contains no point with float64 coordinates; \
         rescale or shift the variables"
    )]
    NoFloat64Point(f64),
    /// The density itself could not be made.
    #[error(transparent)]
    Density(#[from] DensityError),
    /// A polynomial does not fit the variables of the density.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}

impl QueryError {
    /// Of a condition without mass, that it is an equality, if it is one.
    pub(super) fn explained(self, condition: &Formula) -> QueryError {
        let QueryError::Impossible = self else { return self };
        let Some(equalities) = visible_equalities(condition) else { return self };
        let text: Vec<String> = equalities.iter().map(|(term, value)| format!("{term} = {value}")).collect();
        let is_variable = |term: &crate::formula::Linear| term.terms().count() == 1;
        match (text.is_empty(), equalities.iter().all(|(term, _)| is_variable(term))) {
            (true, _) => self,
            (false, true) => QueryError::EqualityOfValue(text.join(" and "), text.join(", ").replace(" = ", "=")),
            (false, false) => QueryError::Equality(text.join(" and ")),
        }
    }
}
