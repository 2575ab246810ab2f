//! Conjunctions and disjunctions of shared parts, without copying them over and over.
//!
//! A [`Formula`] keeps `and` and `or` flat. Flattening copies the parts of the inner one, so a chain
//! `p1 = a1 & p0, p2 = a2 & p1, ..` bound by `let` would take quadratic memory, and `p1 = p0 & p0, ..` exponential. Here
//! equal parts are kept once, and when much has been copied, a large inner conjunction goes in
//! as one part instead: `c & rest` is written `ite(c, rest, c)`, and `c | rest` is `ite(c, c, rest)`.

use std::collections::{HashMap, HashSet};

use super::super::{Connective, Formula, Node};

/// Up to this many copied parts, everything is flattened.
const COPIES: usize = 1_000_000;
/// A junction of up to this many parts is always flattened.
const SMALL: usize = 32;

/// Builds formulas for one script.
#[derive(Default)]
pub(super) struct Junctions {
    copied: usize,
    /// Large junctions and their one-part form. Keeping the first alive keeps its address taken.
    packed: HashMap<*const Node, (Formula, Formula)>,
}

impl Junctions {
    /// The conjunction.
    pub(super) fn all(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        self.join(Connective::And, parts)
    }

    /// The disjunction.
    pub(super) fn any(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        self.join(Connective::Or, parts)
    }

    /// `yes` where the condition holds, `no` elsewhere.
    pub(super) fn ite(&mut self, condition: Formula, yes: Formula, no: Formula) -> Formula {
        if yes.key() == no.key() {
            return yes;
        }
        match (condition.as_constant(), yes.as_constant(), no.as_constant()) {
            (Some(true), ..) => yes,
            (Some(false), ..) => no,
            (_, Some(true), _) => self.any([condition, no]),
            (_, Some(false), _) => self.all([!condition, no]),
            (_, _, Some(true)) => self.any([!condition, yes]),
            (_, _, Some(false)) => self.all([condition, yes]),
            _ => condition.ite(yes, no),
        }
    }

    fn join(&mut self, connective: Connective, parts: impl IntoIterator<Item = Formula>) -> Formula {
        let neutral = connective == Connective::And;
        let mut seen = HashSet::new();
        let mut children = Vec::new();
        let mut add = |part: &Formula| {
            if seen.insert(part.key()) {
                children.push(part.clone());
            }
        };
        for part in parts {
            match part.node() {
                Node::Constant(value) if *value == neutral => {}
                Node::Constant(_) => return part,
                Node::Connective(inner, inner_parts) if *inner == connective => {
                    if inner_parts.len() > SMALL && self.copied + inner_parts.len() > COPIES {
                        add(&self.packed(&part, connective, inner_parts));
                    } else {
                        self.copied += inner_parts.len();
                        inner_parts.iter().for_each(&mut add);
                    }
                }
                _ => add(&part),
            }
        }
        match children.len() {
            0 => Formula::constant(neutral),
            1 => children.swap_remove(0),
            _ => Formula::connect(connective, children),
        }
    }

    fn packed(&mut self, junction: &Formula, connective: Connective, parts: &[Formula]) -> Formula {
        let form = || match parts {
            [first, rest @ ..] if rest.len() > 1 => {
                let (first, rest) = (first.clone(), Formula::connect(connective, rest.to_vec()));
                match connective {
                    Connective::And => first.clone().ite(rest, first),
                    _ => first.clone().ite(first, rest),
                }
            }
            _ => junction.clone(),
        };
        self.packed.entry(junction.key()).or_insert_with(|| (junction.clone(), form())).1.clone()
    }
}
