//! Compiles a formula to a decision program.

use std::collections::HashMap;

use super::{ACCEPT, MAX_TESTS, Membership, MembershipError, REJECT, Subject, Test};
use crate::formula::{Atom, Connective, Formula, Node, Var};

/// Turns a formula into tests: `emit(node, t, f)` yields the label where a test of `node` starts that goes on to `t`
/// or `f`. Labels are memoised, so a shared subformula is compiled once per pair of continuations.
pub(super) struct Emitter<'a> {
    pub program: &'a mut Membership,
    pub atom_ids: HashMap<Atom, u32>,
    pub booleans_at: HashMap<Var, usize>,
    pub labels: HashMap<Goal, u32>,
    /// How far the compilation of a conjunction or disjunction has got: the number of parts still to do, and the label
    /// of what follows them.
    pub resume: HashMap<Goal, (usize, u32)>,
}

/// A subformula with its continuations.
pub(super) type Goal = (*const Node, u32, u32);

impl Emitter<'_> {
    pub fn emit(mut self, root: &Formula) -> Result<u32, MembershipError> {
        // An explicit stack of goals: a goal whose ingredients are missing pushes them and is tried again.
        let goal = (root, ACCEPT, REJECT);
        let mut stack = vec![goal];
        while let Some(&(formula, t, f)) = stack.last() {
            if self.labels.contains_key(&(formula.key(), t, f)) {
                stack.pop();
                continue;
            }
            if let Some(label) = self.try_label(formula, t, f, &mut stack)? {
                self.labels.insert((formula.key(), t, f), label);
                stack.pop();
            }
        }
        Ok(self.labels[&(root.key(), ACCEPT, REJECT)])
    }

    fn try_label<'f>(
        &mut self,
        formula: &'f Formula,
        t: u32,
        f: u32,
        stack: &mut Vec<(&'f Formula, u32, u32)>,
    ) -> Result<Option<u32>, MembershipError> {
        let mut want = |labels: &HashMap<Goal, u32>, child: &'f Formula, t, f| {
            let known = labels.get(&(child.key(), t, f)).copied();
            if known.is_none() {
                stack.push((child, t, f));
            }
            known
        };
        let label = match formula.node() {
            Node::Constant(value) => Some(if *value { t } else { f }),
            Node::Bool(var) => {
                let id = self.booleans_at.get(var).ok_or_else(|| MembershipError::UnknownVariable(var.clone()))?;
                Some(self.test(Subject::Boolean(*id as u32), t, f)?)
            }
            Node::Atom(atom) => Some(self.test(Subject::Atom(self.atom_ids[atom]), t, f)?),
            Node::Connective(connective, parts) => match connective {
                Connective::Not => want(&self.labels, &parts[0], f, t),
                Connective::And | Connective::Or => {
                    // Parts are compiled from the last to the first, from where an earlier try of this goal stopped.
                    let conjunction = *connective == Connective::And;
                    let key = (formula.key(), t, f);
                    let start = (parts.len(), if conjunction { t } else { f });
                    let (mut left, mut next) = self.resume.get(&key).copied().unwrap_or(start);
                    while left > 0 {
                        let (on_true, on_false) = if conjunction { (next, f) } else { (t, next) };
                        match want(&self.labels, &parts[left - 1], on_true, on_false) {
                            Some(label) => next = label,
                            None => break,
                        }
                        left -= 1;
                    }
                    if left > 0 {
                        self.resume.insert(key, (left, next));
                    }
                    (left == 0).then_some(next)
                }
                Connective::Iff => match want(&self.labels, &parts[1], t, f) {
                    None => None,
                    Some(same) => match want(&self.labels, &parts[1], f, t) {
                        None => None,
                        Some(opposite) => want(&self.labels, &parts[0], same, opposite),
                    },
                },
                Connective::Ite => match want(&self.labels, &parts[1], t, f) {
                    None => None,
                    Some(yes) => match want(&self.labels, &parts[2], t, f) {
                        None => None,
                        Some(no) => want(&self.labels, &parts[0], yes, no),
                    },
                },
            },
        };
        Ok(label)
    }

    fn test(&mut self, subject: Subject, on_true: u32, on_false: u32) -> Result<u32, MembershipError> {
        if self.program.tests.len() >= MAX_TESTS {
            return Err(MembershipError::TooLarge(MAX_TESTS));
        }
        self.program.tests.push(Test { subject, on_true, on_false });
        Ok(self.program.tests.len() as u32 - 1)
    }
}
