//! A formula together with the variables it ranges over.

use super::membership::{Membership, MembershipError};
use super::{Formula, Var};

/// A formula over a declared, ordered list of variables: what a file holds and what a region is made of.
///
/// The order of `reals` is the order of coordinates everywhere: in points, cells, moments and samples. A declared
/// variable counts even where the formula does not mention it: an unmentioned real is unbounded, an unmentioned
/// Boolean doubles every volume.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// What must hold.
    pub formula: Formula,
    /// The real variables, in coordinate order.
    pub reals: Vec<Var>,
    /// The Boolean variables.
    pub booleans: Vec<Var>,
}

impl Constraint {
    /// The formula over the variables that occur in it, in name order.
    pub fn new(formula: Formula) -> Self {
        let reals = formula.real_variables().into_iter().collect();
        let booleans = formula.boolean_variables().into_iter().collect();
        Constraint { formula, reals, booleans }
    }

    /// Compiles the formula for exact membership tests of many points.
    pub fn membership(&self) -> Result<Membership, MembershipError> {
        Membership::new(&self.formula, &self.reals, &self.booleans)
    }
}

impl From<Formula> for Constraint {
    fn from(formula: Formula) -> Self {
        Constraint::new(formula)
    }
}
