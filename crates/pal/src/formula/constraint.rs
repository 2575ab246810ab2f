//! A formula together with the variables it ranges over.

use super::membership::{Membership, MembershipError};
use super::{Formula, Var};

/// A formula over a declared, ordered list of variables: what a file holds and what a region is made of.
///
/// The order of `reals` is the order of coordinates everywhere: in points, cells, moments and samples. A declared
/// variable counts even where the formula does not mention it: an unmentioned real is unbounded, an unmentioned
/// Boolean doubles every volume.
///
/// ```
/// use pal::formula::{Constraint, reals};
/// let [speed, gap] = reals(["speed", "gap"]);
/// let safe = Constraint::new(gap.between(2, 9) & speed.between(0, 30));
/// assert_eq!(format!("{:?}", safe.reals), "[speed, gap]");
/// let swapped = safe.with_order(&["gap", "speed"]).unwrap();
/// assert_eq!(format!("{:?}", swapped.reals), "[gap, speed]");
/// ```
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The formula that must hold.
    pub formula: Formula,
    /// The real variables, in coordinate order.
    pub reals: Vec<Var>,
    /// The Boolean variables.
    pub booleans: Vec<Var>,
}

/// Why a list of names is no order of the variables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A name is listed that is not a variable of the constraint.
    #[error("`{name}` is not a real variable of the constraint; its variables are, in this order: {known}")]
    Unknown {
        /// The name that is not a variable.
        name: String,
        /// The variables of the constraint.
        known: String,
    },
    /// A variable of the constraint is not listed.
    #[error("the variable `{missing}` is missing in the order of variables {given}")]
    Missing {
        /// The variable that is not listed.
        missing: String,
        /// The names that were listed.
        given: String,
    },
    /// A name is listed more than once.
    #[error("`{0}` occurs twice in the order of variables")]
    Repeated(String),
}

impl Constraint {
    /// The formula over the variables that occur in it, in the order of their declaration.
    pub fn new(formula: Formula) -> Self {
        let reals = formula.real_variables();
        let booleans = formula.boolean_variables();
        Constraint { formula, reals, booleans }
    }

    /// The formula over the given real variables, in the order given, and over the Boolean variables that occur in it.
    ///
    /// All real variables of the formula must be among them. Others may be listed too: the formula leaves them free.
    pub fn over<S: AsRef<str>>(formula: Formula, reals: &[S]) -> Result<Self, OrderError> {
        let mut constraint = Constraint::new(formula);
        constraint.check_order(reals)?;
        constraint.reals = reals.iter().map(|name| constraint.real(name.as_ref())).collect();
        Ok(constraint)
    }

    /// The same constraint with its real variables in another order.
    pub fn with_order<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self, OrderError> {
        self.check_order(names)?;
        if let Some(name) = names.iter().find(|name| !self.reals.iter().any(|var| var.name() == name.as_ref())) {
            return Err(OrderError::Unknown { name: name.as_ref().to_string(), known: listed(&self.reals) });
        }
        self.reals = names.iter().map(|name| self.real(name.as_ref())).collect();
        Ok(self)
    }

    /// Compiles the formula for exact membership tests of many points.
    pub fn membership(&self) -> Result<Membership, MembershipError> {
        Membership::new(&self.formula, &self.reals, &self.booleans)
    }

    /// The variable of that name, declared now if the constraint has none.
    fn real(&self, name: &str) -> Var {
        self.reals.iter().find(|var| var.name() == name).cloned().unwrap_or_else(|| Var::new(name))
    }

    /// Refuses a list that repeats a name or leaves out a variable.
    fn check_order<S: AsRef<str>>(&self, names: &[S]) -> Result<(), OrderError> {
        let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(OrderError::Repeated(pair[0].to_string()));
        }
        match self.reals.iter().find(|var| sorted.binary_search(&var.name()).is_err()) {
            Some(var) => Err(OrderError::Missing { missing: var.to_string(), given: listed(names) }),
            None => Ok(()),
        }
    }
}

/// The names as they stand in messages: `speed, gap`, or `(none)`.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => "(none)".to_string(),
        names => names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "),
    }
}

impl From<Formula> for Constraint {
    fn from(formula: Formula) -> Self {
        Constraint::new(formula)
    }
}
