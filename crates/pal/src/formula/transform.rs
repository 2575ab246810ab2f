//! Rewriting formulas: negation normal form and substitution.

use std::collections::HashMap;

use super::{Connective, Formula, Linear, Node, Relation, Var};
use crate::number::Rational;

/// A substitution: what to put in place of variables.
///
/// ```
/// use pal::formula::{reals, Substitution};
/// let [x, y] = reals(["x", "y"]);
/// let phi = (&x + &y).le(1);
/// let at_half = phi.substitute(&Substitution::new().real("y", "1/2".try_into().unwrap()));
/// assert_eq!(at_half.to_string(), "2*x <= 1");
/// ```
#[derive(Clone, Default, Debug)]
pub struct Substitution {
    reals: HashMap<Var, Linear>,
    booleans: HashMap<Var, Formula>,
}

impl Substitution {
    /// A substitution that leaves everything as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a term, for instance a constant, in place of a real variable.
    pub fn real(mut self, name: &str, term: Linear) -> Self {
        self.reals.insert(Var::new(name), term);
        self
    }

    /// Puts a formula, for instance a truth value, in place of a Boolean variable.
    pub fn boolean(mut self, name: &str, formula: Formula) -> Self {
        self.booleans.insert(Var::new(name), formula);
        self
    }
}

impl Formula {
    /// Replaces all variables at once and simplifies what becomes constant.
    pub fn substitute(&self, with: &Substitution) -> Formula {
        self.fold(|formula, children: &[Formula]| match formula.node() {
            Node::Constant(_) => formula.clone(),
            Node::Bool(var) => with.booleans.get(var).unwrap_or(formula).clone(),
            Node::Atom(atom) => {
                let plane = atom.plane();
                if !plane.normal().iter().any(|(var, _)| with.reals.contains_key(var)) {
                    return formula.clone();
                }
                let mut term = Linear::from(Rational::from(-plane.offset()));
                for (var, a) in plane.normal() {
                    let a = Rational::from(a.clone());
                    match with.reals.get(var) {
                        Some(replacement) => term.add_scaled(replacement, &a),
                        None => term.add_term(var.clone(), a),
                    }
                }
                Formula::compare(&term, atom.relation())
            }
            Node::Connective(connective, _) => connective.apply(children),
        })
    }

    /// The negation normal form of the formula: conjunctions and disjunctions of atoms, Boolean variables and their
    /// negations. The negation of `t <= 0` stays the negation of that shared atom, although it means `-t < 0`; the
    /// negation of an equality becomes a disjunction of two strict inequalities.
    pub fn to_nnf(&self) -> Formula {
        // Every node gives itself and its negation at once: the work is linear in the number of distinct nodes.
        self.fold(|formula, children: &[(Formula, Formula)]| match formula.node() {
            Node::Constant(_) | Node::Bool(_) => (formula.clone(), !formula.clone()),
            Node::Atom(atom) if atom.relation() == Relation::Eq => {
                let below = Formula::compare(&atom.plane().to_linear(), Relation::Lt);
                let upto = Formula::compare(&atom.plane().to_linear(), Relation::Le);
                (upto.clone() & !below.clone(), below | !upto)
            }
            Node::Atom(_) => (formula.clone(), !formula.clone()),
            Node::Connective(connective, _) => {
                let positive = || children.iter().map(|(p, _)| p.clone());
                let negative = || children.iter().map(|(_, n)| n.clone());
                match connective {
                    Connective::Not => (children[0].1.clone(), children[0].0.clone()),
                    Connective::And => (Formula::all(positive()), Formula::any(negative())),
                    Connective::Or => (Formula::any(positive()), Formula::all(negative())),
                    Connective::Iff => {
                        let [(a, na), (b, nb)] = [children[0].clone(), children[1].clone()];
                        let same = (a.clone() & b.clone()) | (na.clone() & nb.clone());
                        (same, (a & nb) | (na & b))
                    }
                    Connective::Ite => {
                        let [(c, nc), (a, na), (b, nb)] = [0, 1, 2].map(|k| children[k].clone());
                        ((c.clone() & a) | (nc.clone() & b), (c & na) | (nc & nb))
                    }
                }
            }
        })
        .0
    }
}

impl Connective {
    /// The connective over new arguments, simplified.
    pub(super) fn apply(self, children: &[Formula]) -> Formula {
        let child = |k: usize| children[k].clone();
        match self {
            Connective::Not => !child(0),
            Connective::And => Formula::all(children.iter().cloned()),
            Connective::Or => Formula::any(children.iter().cloned()),
            Connective::Iff => child(0).iff(child(1)),
            Connective::Ite => child(0).ite(child(1), child(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    fn grid() -> impl Iterator<Item = [f64; 2]> {
        (-4..=4).flat_map(|i| (-4..=4).map(move |j| [i as f64 / 2.0, j as f64 / 2.0]))
    }

    #[test]
    fn negation_normal_form_keeps_the_meaning_of_every_connective() {
        let [x, y] = reals(["x", "y"]);
        let (a, b, c) = (x.le(0), y.lt(1), (&x + &y).equals(1));
        let f = !(a.clone().iff(b.clone()).ite(c.clone() ^ a.clone(), !(b.clone() & c.clone()))) & (a | b | c);
        let nnf = f.to_nnf();
        nnf.fold(|node, _: &[()]| {
            if let Node::Connective(connective, children) = node.node() {
                match connective {
                    Connective::Not => assert!(matches!(children[0].node(), Node::Atom(_) | Node::Bool(_))),
                    other => assert!(matches!(other, Connective::And | Connective::Or)),
                }
            }
        });
        let mut members = 0;
        for p in grid() {
            assert_eq!(f.contains(&p), nnf.contains(&p), "{p:?}");
            members += usize::from(f.contains(&p));
        }
        assert!((1..81).contains(&members), "the formula is neither empty nor everything");
    }

    #[test]
    fn substitution_is_simultaneous() {
        let [x, y] = reals(["x", "y"]);
        let swapped = x.lt(&y).substitute(&Substitution::new().real("x", y.clone()).real("y", x.clone()));
        assert_eq!(swapped.to_string(), y.lt(&x).to_string());
        let b = Formula::boolean("b");
        let f = b.clone().implies(x.le(0));
        assert!(f.substitute(&Substitution::new().boolean("b", Formula::no())).is_true());
    }
}
