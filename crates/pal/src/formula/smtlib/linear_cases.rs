//! Real terms that contain `ite`: linear terms distinguished by cases.
//!
//! Such a term is a decision tree with a linear term at every leaf, stored in pre-order: a branch is followed by the
//! steps of its `then` part and then those of its `else` part. Arithmetic combines leaves; a condition that was decided
//! further up is not tested again, so `(+ t t)` has as many cases as `t`.

use std::collections::HashMap;
use std::rc::Rc;

use dashu_int::ops::BitTest;

use super::super::{Connective, Formula, Linear, Node, Plane, Relation, Var};
use crate::number::Rational;

/// Terms with more cases than this are refused.
pub(super) const MAX_CASES: usize = 4096;
/// Numbers with more bits than this are refused: squaring a number 60 times in a `let` chain would fill the memory.
pub(super) const MAX_BITS: usize = 100_000;

/// Why the arithmetic refuses a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    Cases,
    Bits,
    NonLinear,
    ZeroDivisor,
}

#[derive(Clone)]
enum Step {
    Branch(Formula),
    Leaf(Rc<Linear>),
}

/// A real term that is linear in every case: a decision tree over conditions with a linear term at every leaf.
#[derive(Clone)]
pub(crate) struct LinearCases {
    steps: Vec<Step>,
}

impl From<Linear> for LinearCases {
    fn from(term: Linear) -> Self {
        LinearCases { steps: vec![Step::Leaf(Rc::new(term))] }
    }
}

/// The identity of a condition up to negation. Equal planes share memory, so they are compared by address.
#[derive(PartialEq, Eq, Hash)]
enum Condition {
    Atom(*const Plane, Relation),
    Bool(Var),
    Shared(*const Node),
}

/// The condition without its negation, and whether it was without negation before.
fn condition(formula: &Formula) -> (Condition, bool) {
    let (inner, positive) = match formula.node() {
        Node::Connective(Connective::Not, children) => (children.first().unwrap_or(formula), false),
        _ => (formula, true),
    };
    let key = match inner.node() {
        Node::Atom(atom) => Condition::Atom(atom.plane(), atom.relation()),
        Node::Bool(var) => Condition::Bool(var.clone()),
        _ => Condition::Shared(inner.key()),
    };
    (key, positive)
}

/// The conditions that are decided on the way from the root of a tree to the current step.
#[derive(Default)]
struct Path {
    decided: HashMap<Condition, bool>,
    /// The condition of each open branch, and whether it is in its `then` part.
    open: Vec<(Formula, bool)>,
}

impl Path {
    fn enter(&mut self, branch: &Formula, holds: bool) {
        let (key, positive) = condition(branch);
        self.decided.insert(key, holds == positive);
    }

    fn value(&self, branch: &Formula) -> Option<bool> {
        if self.decided.is_empty() {
            return None;
        }
        let (key, positive) = condition(branch);
        self.decided.get(&key).map(|value| *value == positive)
    }

    fn open(&mut self, branch: &Formula) {
        self.enter(branch, true);
        self.open.push((branch.clone(), true));
    }

    /// Moves on to the next part of the tree after a leaf.
    fn advance(&mut self) {
        while let Some((branch, in_then)) = self.open.pop() {
            if in_then {
                self.enter(&branch, false);
                self.open.push((branch, false));
                return;
            }
            self.decided.remove(&condition(&branch).0);
        }
    }
}

impl LinearCases {
    /// The term that equals one of several linear terms, each where its condition holds. Exactly one condition holds, so
    /// that the last one is not asked for.
    pub(super) fn by_value(cases: impl ExactSizeIterator<Item = (Formula, Rc<Linear>)>) -> LinearCases {
        let last = cases.len().saturating_sub(1);
        let steps = cases.enumerate().flat_map(|(k, (test, term))| {
            let branch = (k < last).then_some(Step::Branch(test));
            branch.into_iter().chain([Step::Leaf(term)])
        });
        LinearCases { steps: steps.collect() }
    }

    /// The linear term, if there is only one case.
    pub(crate) fn as_linear(&self) -> Option<&Linear> {
        match self.steps.as_slice() {
            [Step::Leaf(term)] => Some(term),
            _ => None,
        }
    }

    fn as_linear_mut(&mut self) -> Option<&mut Linear> {
        match self.steps.as_mut_slice() {
            [Step::Leaf(term)] => Some(Rc::make_mut(term)),
            _ => None,
        }
    }

    /// The number of bits of the longest number in the term.
    pub(super) fn bits(&self) -> usize {
        let leaf = |step: &Step| if let Step::Leaf(term) = step { bits(term) } else { 0 };
        self.steps.iter().map(leaf).max().unwrap_or(0)
    }

    /// Adds `factor * other`, in place where both have only one case. The caller limits the size of numbers.
    pub(super) fn add_scaled(&mut self, other: &LinearCases, factor: &Rational) -> Result<(), Refusal> {
        if let (Some(sum), Some(term)) = (self.as_linear_mut(), other.as_linear()) {
            sum.add_scaled(term, factor);
            return Ok(());
        }
        *self = self.combine(other, |a, b| {
            let mut sum = a.clone();
            sum.add_scaled(b, factor);
            Ok(sum)
        })?;
        Ok(())
    }

    /// The product, if one factor is constant in every case.
    pub(super) fn times(&self, other: &LinearCases) -> Result<LinearCases, Refusal> {
        self.combine(other, |a, b| match (a.as_constant(), b.as_constant()) {
            (Some(factor), _) => sized(b.scaled(factor)),
            (_, Some(factor)) => sized(a.scaled(factor)),
            _ => Err(Refusal::NonLinear),
        })
    }

    /// The quotient, if the divisor is a non-zero constant in every case.
    pub(super) fn divided_by(&self, divisor: &LinearCases) -> Result<LinearCases, Refusal> {
        self.combine(divisor, |a, b| match b.as_constant() {
            Some(zero) if zero.is_zero() => Err(Refusal::ZeroDivisor),
            Some(divisor) => sized(a.scaled(&(Rational::ONE / divisor))),
            None => Err(Refusal::NonLinear),
        })
    }

    /// The term that equals `yes` where the condition holds, and `no` elsewhere.
    pub(super) fn ite(test: &Formula, yes: &LinearCases, no: &LinearCases) -> Result<LinearCases, Refusal> {
        match test.as_constant() {
            Some(true) => return Ok(yes.clone()),
            Some(false) => return Ok(no.clone()),
            None => {}
        }
        if yes.as_linear().is_some() && yes.as_linear() == no.as_linear() {
            return Ok(yes.clone());
        }
        let (mut out, mut cases, mut path) = (vec![Step::Branch(test.clone())], 0, Path::default());
        for (part, holds) in [(yes, true), (no, false)] {
            path.enter(test, holds);
            part.copy_under(&path, &part.else_parts(), &mut out, &mut cases, |leaf| Ok(leaf.clone()))?;
        }
        Ok(LinearCases { steps: out })
    }

    /// The step at which the `else` part of each branch starts.
    fn else_parts(&self) -> Vec<usize> {
        let mut ends = vec![0; self.steps.len()];
        let mut starts = Vec::new();
        for (k, step) in self.steps.iter().enumerate().rev() {
            if let Step::Branch(_) = step {
                starts.pop();
                ends[k] = starts.pop().unwrap_or(0);
            }
            starts.push(k);
        }
        ends
    }

    /// Appends the tree to `out`, without the branches that `path` decides and with `map` applied to its leaves.
    fn copy_under(
        &self,
        path: &Path,
        else_parts: &[usize],
        out: &mut Vec<Step>,
        cases: &mut usize,
        mut map: impl FnMut(&Rc<Linear>) -> Result<Rc<Linear>, Refusal>,
    ) -> Result<(), Refusal> {
        let mut pending = vec![0];
        while let Some(k) = pending.pop() {
            match &self.steps[k] {
                Step::Leaf(term) => {
                    *cases += 1;
                    if *cases > MAX_CASES {
                        return Err(Refusal::Cases);
                    }
                    out.push(Step::Leaf(map(term)?));
                }
                Step::Branch(test) => match path.value(test) {
                    Some(true) => pending.push(k + 1),
                    Some(false) => pending.push(else_parts[k]),
                    None => {
                        out.push(Step::Branch(test.clone()));
                        pending.extend([else_parts[k], k + 1]);
                    }
                },
            }
        }
        Ok(())
    }

    /// Applies an operation to every pair of leaves that can occur together.
    fn combine(
        &self,
        other: &LinearCases,
        mut operation: impl FnMut(&Linear, &Linear) -> Result<Linear, Refusal>,
    ) -> Result<LinearCases, Refusal> {
        let (mut out, mut cases, mut path) = (Vec::new(), 0, Path::default());
        let else_parts = other.else_parts();
        for step in &self.steps {
            match step {
                Step::Branch(test) => {
                    path.open(test);
                    out.push(step.clone());
                }
                Step::Leaf(a) => {
                    other.copy_under(&path, &else_parts, &mut out, &mut cases, |b| operation(a, b).map(Rc::new))?;
                    path.advance();
                }
            }
        }
        Ok(LinearCases { steps: out })
    }

    /// The formula that holds at a point if the linear term of the case that applies there satisfies `leaf`.
    pub(super) fn test(&self, mut leaf: impl FnMut(&Linear) -> Formula) -> Formula {
        let mut results: Vec<Formula> = Vec::new();
        for step in self.steps.iter().rev() {
            let result = match step {
                Step::Leaf(term) => leaf(term),
                // The steps are visited backwards, so the `then` part was finished last.
                Step::Branch(test) => match (results.pop(), results.pop()) {
                    (Some(yes), Some(no)) => test.clone().ite(yes, no),
                    _ => continue,
                },
            };
            results.push(result);
        }
        results.pop().unwrap_or_else(Formula::no)
    }
}

fn sized(term: Linear) -> Result<Linear, Refusal> {
    if bits(&term) > MAX_BITS { Err(Refusal::Bits) } else { Ok(term) }
}

fn bits(term: &Linear) -> usize {
    let numbers = term.terms().map(|(_, a)| a).chain([term.constant()]);
    let size = |a: &Rational| a.numerator().bit_len() + a.denominator().bit_len();
    numbers.map(size).max().unwrap_or(0)
}
