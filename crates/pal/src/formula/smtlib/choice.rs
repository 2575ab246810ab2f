//! Terms of enumerated sorts: which value they have, as one formula per value.
//!
//! A constant of an enumerated sort is a [`Category`]: a Boolean variable per value, of which exactly one is true. Terms
//! are built from constants, values and `ite`, so exactly one of their formulas holds wherever that is so.

use std::rc::Rc;

use super::super::{Category, Formula};

/// An enumerated sort: `(declare-datatype Mode ((walk) (bike)))`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct EnumeratedSort {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// A term of an enumerated sort.
#[derive(Clone)]
pub(crate) struct Choice {
    sort: Rc<EnumeratedSort>,
    /// For each value of the sort the formula that the term has it.
    is: Vec<Formula>,
}

impl Choice {
    /// A value of the sort.
    pub(super) fn value(sort: &Rc<EnumeratedSort>, at: usize) -> Choice {
        Choice { sort: sort.clone(), is: (0..sort.values.len()).map(|k| Formula::constant(k == at)).collect() }
    }

    /// A variable. One literal per value suffices, since the constraint says that exactly one of them is true.
    pub(super) fn variable(sort: &Rc<EnumeratedSort>, category: &Category) -> Choice {
        Choice { sort: sort.clone(), is: category.variables().iter().cloned().map(Formula::from).collect() }
    }

    pub(super) fn sort(&self) -> &Rc<EnumeratedSort> {
        &self.sort
    }

    /// Whether the term is one of the values of its sort.
    pub(super) fn is_value(&self) -> bool {
        self.is.iter().all(|formula| formula.as_constant().is_some())
    }

    /// The formula that two terms of one sort have the same value.
    pub(super) fn same(&self, other: &Choice) -> Formula {
        Formula::any(self.is.iter().zip(&other.is).map(|(a, b)| a.clone() & b.clone()))
    }

    /// The term that equals `yes` where the condition holds, and `no` elsewhere.
    pub(super) fn ite(condition: &Formula, yes: &Choice, no: &Choice) -> Choice {
        let is = yes.is.iter().zip(&no.is).map(|(yes, no)| condition.clone().ite(yes.clone(), no.clone()));
        Choice { sort: yes.sort.clone(), is: is.collect() }
    }
}
