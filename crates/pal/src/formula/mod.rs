//! Constraints: Boolean combinations of linear inequalities with rational coefficients.
//!
//! A [`Formula`] is a shared, immutable expression. It is built with operators, read from SMT-LIB 2 or GeoJSON,
//! and normalised on the way: constants are exact, atoms are in lowest terms, connectives are flattened.
//!
//! ```
//! use pal::formula::reals;
//! let [x, y] = reals(["x", "y"]);
//! let square = x.between(-1, 1) & y.between(-1, 1);
//! let triangle = x.ge(0) & y.ge(0) & (&x + &y).le(1);
//! let phi = square & !triangle;
//! assert!(phi.contains(&[-0.5, 0.5]));
//! assert!(!phi.contains(&[0.25, 0.25]));
//! ```

mod atom;
mod bounds;
mod category;
mod constraint;
mod geojson;
mod linear;
mod map;
mod mask;
mod membership;
mod piecewise;
mod pishield;
mod polygon;
mod print;
pub(crate) mod smtlib;
mod transform;
mod variable;
mod wkb;
mod wkt;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::sync::Arc;

pub use atom::{Atom, Plane, Relation};
pub use bounds::{Bounds, Interval};
pub use category::{Category, CategoryError};
pub use constraint::{Constraint, OrderError};
pub use geojson::{GeoJsonError, GeoJsonOptions, parse_geojson};
pub use linear::{Linear, real, reals};
pub use map::{MapError, Meaning, map_constraint};
pub use mask::{Mask, MaskError, mask_polygons};
pub(crate) use membership::ImagePoint;
pub use membership::{Membership, MembershipError};
pub use piecewise::{MAX_PIECES, PiecewiseLinear, TooManyPieces};
pub use pishield::{PiShieldError, parse_pishield};
pub use polygon::{Edge, Polygon, PolygonError, Ring};
pub use smtlib::{
    SmtError, SmtQuestion, SmtWriteError, parse_smtlib, parse_smtlib_questions, parse_smtlib_term, write_smtlib,
};
pub use transform::Substitution;
pub use variable::Var;
pub use wkb::{WkbError, parse_wkb};
pub use wkt::{WktError, WktProblem, parse_wkt};

use atom::Normalised;
use variable::Declarations;

/// A quantifier-free formula of linear real arithmetic with Boolean variables. It is shared, so cloning it is cheap.
#[derive(Clone)]
pub struct Formula(Arc<Node>);

/// One node of a formula. Children are formulas themselves and may be shared.
pub enum Node {
    /// A truth value.
    Constant(bool),
    /// A linear (in)equality.
    Atom(Atom),
    /// A Boolean variable.
    Bool(Var),
    /// A connective over its arguments.
    Connective(Connective, Vec<Formula>),
}

/// The connectives that formulas are made of. All other connectives are rewritten to these.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Connective {
    /// The negation of one argument.
    Not,
    /// The conjunction of two or more arguments. Only large shared arguments are conjunctions themselves.
    And,
    /// The disjunction of two or more arguments. Only large shared arguments are disjunctions themselves.
    Or,
    /// The equivalence of two arguments.
    Iff,
    /// If-then-else: a condition, what holds where it is true, and what holds where it is false.
    Ite,
}

/// A shared conjunction (or disjunction) of at most this many parts is copied into the one it occurs in.
const SPLICED: usize = 32;

impl Formula {
    /// The formula that always holds.
    pub fn yes() -> Formula {
        Formula(Arc::new(Node::Constant(true)))
    }

    /// The formula that never holds.
    pub fn no() -> Formula {
        Formula(Arc::new(Node::Constant(false)))
    }

    /// A truth value as a formula.
    pub fn constant(value: bool) -> Formula {
        if value { Formula::yes() } else { Formula::no() }
    }

    /// Declares a Boolean variable and returns it as a formula.
    pub fn boolean(name: &str) -> Formula {
        Formula::from(Var::new(name))
    }

    /// The formula `term relation 0`.
    pub fn compare(term: &Linear, relation: Relation) -> Formula {
        match Atom::normalise(term, relation) {
            Normalised::Constant(value) => Formula::constant(value),
            Normalised::Atom { atom, negated } => {
                let atom = Formula(Arc::new(Node::Atom(atom)));
                if negated { !atom } else { atom }
            }
        }
    }

    /// The conjunction of all given formulas; [`Formula::yes`] if there are none.
    pub fn all(parts: impl IntoIterator<Item = Formula>) -> Formula {
        Formula::flat(Connective::And, parts)
    }

    /// The disjunction of all given formulas; [`Formula::no`] if there are none.
    pub fn any(parts: impl IntoIterator<Item = Formula>) -> Formula {
        Formula::flat(Connective::Or, parts)
    }

    /// The formula that holds where `self` implies `other`.
    pub fn implies(self, other: Formula) -> Formula {
        !self | other
    }

    /// The formula that holds where `self` and `other` are both true or both false.
    pub fn iff(self, other: Formula) -> Formula {
        match (self.as_constant(), other.as_constant()) {
            (Some(true), _) => other,
            (Some(false), _) => !other,
            (_, Some(true)) => self,
            (_, Some(false)) => !self,
            _ => Formula::connect(Connective::Iff, vec![self, other]),
        }
    }

    /// The formula that equals `yes` where `self` holds, and `no` elsewhere.
    pub fn ite(self, yes: Formula, no: Formula) -> Formula {
        if yes.key() == no.key() {
            return yes;
        }
        match (self.as_constant(), yes.as_constant(), no.as_constant()) {
            (Some(true), ..) => yes,
            (Some(false), ..) => no,
            (_, Some(true), _) => self | no,
            (_, Some(false), _) => !self & no,
            (_, _, Some(true)) => !self | yes,
            (_, _, Some(false)) => self & yes,
            _ => Formula::connect(Connective::Ite, vec![self, yes, no]),
        }
    }

    fn connect(connective: Connective, children: Vec<Formula>) -> Formula {
        Formula(Arc::new(Node::Connective(connective, children)))
    }

    /// A conjunction or disjunction without constants and repeated parts. Nested ones of the same kind are spliced in,
    /// except large shared ones: a chain of shared conjunctions would otherwise take quadratic or exponential memory.
    fn flat(connective: Connective, parts: impl IntoIterator<Item = Formula>) -> Formula {
        let neutral = connective == Connective::And;
        let mut seen = HashSet::new();
        let mut children: Vec<Formula> = Vec::new();
        // Parts stay alive to the end, so that no address in `seen` is used again by another part.
        let mut emptied = Vec::new();
        for mut part in parts {
            if part.as_constant() == Some(neutral) || !seen.insert(part.key()) {
                continue;
            }
            if part.as_constant().is_some() {
                return part;
            }
            match Arc::get_mut(&mut part.0) {
                // Nobody else refers to this part, so its own parts can be moved.
                Some(Node::Connective(inner, own)) if *inner == connective => {
                    if children.is_empty() {
                        children = std::mem::take(own);
                    } else {
                        children.append(own);
                    }
                    emptied.push(part);
                    continue;
                }
                _ => {}
            }
            match part.node() {
                Node::Connective(inner, shared) if *inner == connective && shared.len() <= SPLICED => {
                    children.extend(shared.iter().cloned());
                    emptied.push(part);
                }
                _ => children.push(part),
            }
        }
        match children.len() {
            0 => Formula::constant(neutral),
            1 => children.swap_remove(0),
            _ => Formula::connect(connective, children),
        }
    }

    /// The node at the root of the formula.
    pub fn node(&self) -> &Node {
        &self.0
    }

    /// The truth value of a formula that is a constant, and nothing for other formulas.
    pub fn as_constant(&self) -> Option<bool> {
        match self.node() {
            Node::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether this is the constant `true`.
    pub fn is_true(&self) -> bool {
        self.as_constant() == Some(true)
    }

    /// Whether this is the constant `false`.
    pub fn is_false(&self) -> bool {
        self.as_constant() == Some(false)
    }

    fn children(&self) -> &[Formula] {
        match self.node() {
            Node::Connective(_, children) => children,
            _ => &[],
        }
    }

    fn key(&self) -> *const Node {
        Arc::as_ptr(&self.0)
    }

    /// Computes a value bottom-up, once for every distinct node. Neither depth nor sharing is a problem: it uses
    /// no recursion, and a node that occurs a million times is visited once.
    pub fn fold<T: Clone>(&self, mut visit: impl FnMut(&Formula, &[T]) -> T) -> T {
        let mut done: HashMap<*const Node, T> = HashMap::new();
        let mut stack = vec![(self, false)];
        let mut arguments = Vec::new();
        while let Some((formula, ready)) = stack.pop() {
            if done.contains_key(&formula.key()) {
                continue;
            }
            if !ready {
                stack.push((formula, true));
                stack.extend(formula.children().iter().map(|child| (child, false)));
                continue;
            }
            arguments.clear();
            arguments.extend(formula.children().iter().map(|child| done[&child.key()].clone()));
            let value = visit(formula, &arguments);
            done.insert(formula.key(), value);
        }
        done.remove(&self.key()).unwrap_or_else(|| visit(self, &[]))
    }

    /// The distinct atoms of the formula, in a fixed order.
    pub fn atoms(&self) -> Vec<Atom> {
        let mut atoms = BTreeSet::new();
        self.fold(|formula, _: &[()]| {
            if let Node::Atom(atom) = formula.node() {
                atoms.insert(atom.clone());
            }
        });
        atoms.into_iter().collect()
    }

    /// The real variables that occur in the formula, in the order of their declaration.
    pub fn real_variables(&self) -> Vec<Var> {
        let mut found = Declarations::default();
        self.fold(|formula, _: &[()]| {
            if let Node::Atom(atom) = formula.node() {
                atom.plane().normal().iter().for_each(|(var, _)| found.insert(var));
            }
        });
        found.in_order()
    }

    /// The Boolean variables that occur in the formula, in the order of their declaration.
    pub fn boolean_variables(&self) -> Vec<Var> {
        let mut found = Declarations::default();
        self.fold(|formula, _: &[()]| {
            if let Node::Bool(var) = formula.node() {
                found.insert(var);
            }
        });
        found.in_order()
    }

    /// Whether one point satisfies the formula, decided exactly. Its coordinates are in the order of
    /// [`Formula::real_variables`].
    ///
    /// A point of the wrong length, with a NaN or an infinity, or a formula with Boolean variables, is never a
    /// member. For many points, or another order of variables, compile a [`Membership`] once.
    pub fn contains(&self, point: &[f64]) -> bool {
        Membership::new(self, &self.real_variables(), &[]).is_ok_and(|m| m.contains(point))
    }
}

/// The formula that holds where the Boolean variable is true.
impl From<Var> for Formula {
    fn from(var: Var) -> Self {
        Formula(Arc::new(Node::Bool(var)))
    }
}

/// Frees deep formulas without recursion.
impl Drop for Node {
    fn drop(&mut self) {
        let Node::Connective(_, children) = self else { return };
        let mut pending = std::mem::take(children);
        while let Some(formula) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(formula.0)
                && let Node::Connective(_, children) = &mut node
            {
                pending.append(children);
            }
        }
    }
}

impl Not for Formula {
    type Output = Formula;

    fn not(self) -> Formula {
        match self.node() {
            Node::Constant(value) => Formula::constant(!value),
            Node::Connective(Connective::Not, children) => children[0].clone(),
            _ => Formula::connect(Connective::Not, vec![self]),
        }
    }
}

impl BitAnd for Formula {
    type Output = Formula;

    fn bitand(self, other: Formula) -> Formula {
        Formula::all([self, other])
    }
}

impl BitOr for Formula {
    type Output = Formula;

    fn bitor(self, other: Formula) -> Formula {
        Formula::any([self, other])
    }
}

impl BitXor for Formula {
    type Output = Formula;

    fn bitxor(self, other: Formula) -> Formula {
        !self.iff(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connectives_flatten_and_fold() {
        let [x] = reals(["x"]);
        let (a, b, c) = (x.le(1), x.le(2), x.le(3));
        let f = (a.clone() & b.clone()) & (c.clone() & Formula::yes());
        assert!(matches!(f.node(), Node::Connective(Connective::And, k) if k.len() == 3));
        assert!((a.clone() & Formula::no()).is_false());
        assert!((a.clone() | Formula::yes()).is_true());
        assert!(Formula::all([]).is_true() && Formula::any([]).is_false());
        assert_eq!((!!a.clone()).to_string(), a.to_string());
        assert_eq!(a.clone().iff(Formula::no()).to_string(), (!a.clone()).to_string());
        assert_eq!(Formula::yes().ite(b.clone(), c).to_string(), b.to_string());
    }

    #[test]
    fn chains_of_shared_parts_stay_small() {
        let [x] = reals(["x"]);
        let mut doubled = x.le(0) & x.le(1);
        let mut chain = doubled.clone();
        let mut keep = Vec::new();
        for k in 0..20_000 {
            doubled = doubled.clone() & doubled;
            chain = chain & x.le(k % 100);
            keep.push(chain.clone());
        }
        assert!(doubled.children().len() <= 2);
        assert!(chain.children().len() <= SPLICED + 1);
        assert!(chain.contains(&[-1.0]) && !chain.contains(&[1.0]));
    }

    #[test]
    fn a_million_levels_do_not_overflow_the_stack() {
        let [x] = reals(["x"]);
        let mut f = x.le(0);
        for k in 0..1_000_000 {
            f = f.iff(x.le(k % 7));
        }
        assert_eq!(f.atoms().len(), 7);
        drop(f);
    }
}
