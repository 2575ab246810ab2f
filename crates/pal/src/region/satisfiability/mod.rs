//! Whether a constraint has a solution at all, for any number of variables: truth values are searched with learning from
//! conflicts, and sides of hyperplanes are checked by the simplex method in fractions.

mod clauses;
mod simplex;

use std::collections::HashMap;

use super::{RegionError, check_names};
use crate::formula::{Connective, Constraint, Formula, Node, Plane, Relation, Var};
use crate::interrupt::checkpoint;
use crate::number::Rational;
use clauses::{ClauseSearch, TruthLiteral};
use simplex::{Nudged, Simplex};

/// Whether a constraint can be satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Satisfiability {
    /// This point satisfies it, together with these values of the Boolean variables.
    Satisfiable {
        /// The values of the real variables, in their order.
        reals: Vec<Rational>,
        /// The values of the Boolean variables, in their order.
        booleans: Vec<bool>,
    },
    /// Nothing satisfies it.
    Unsatisfiable,
    /// The search was given up.
    Undecided,
}

/// Conflicts after which the search is given up.
const MAX_CONFLICTS: usize = 200_000;

/// What an atom says: a bound on a variable of the simplex method.
struct StatedBound {
    variable: usize,
    /// `a x <= b` with a positive `a` bounds from above.
    limit: Rational,
    strict: bool,
}

impl Constraint {
    /// Finds out whether some point and some values of the Boolean variables satisfy the constraint, strict inequalities
    /// and equalities included. All decisions are exact, and there is no limit to the number of variables.
    ///
    /// ```
    /// use pal::formula::{Constraint, reals};
    /// use pal::region::Satisfiability;
    /// let [x, y] = reals(["x", "y"]);
    /// let touching = Constraint::new(x.le(&y) & y.le(&x) & (&x + &y).equals(1));
    /// let Satisfiability::Satisfiable { reals, .. } = touching.satisfiability().unwrap() else { panic!() };
    /// assert_eq!((reals[0].to_string(), reals[1].to_string()), ("1/2".into(), "1/2".into()));
    /// let apart = Constraint::new(x.lt(&y) & y.lt(&x));
    /// assert_eq!(apart.satisfiability().unwrap(), Satisfiability::Unsatisfiable);
    /// ```
    pub fn satisfiability(&self) -> Result<Satisfiability, RegionError> {
        check_names(self)?;
        let mut solver = Solver::new(self)?;
        Ok(solver.run(self))
    }
}

struct Solver {
    search: ClauseSearch,
    simplex: Simplex,
    /// What variables of the search say about reals.
    stated: HashMap<usize, StatedBound>,
    reals: Vec<usize>,
    booleans: Vec<usize>,
    /// Whether clauses contradict each other from the start.
    hopeless: bool,
    /// Per literal on the trail that the simplex method knows, its state before.
    marks: Vec<usize>,
}

/// A node of a formula as a literal, or its truth value.
#[derive(Clone, Copy)]
enum Encoded {
    Known(bool),
    Open(TruthLiteral),
}

impl Solver {
    fn new(constraint: &Constraint) -> Result<Solver, RegionError> {
        let (mut search, mut simplex) = (ClauseSearch::default(), Simplex::default());
        let reals: Vec<usize> = constraint.reals.iter().map(|_| simplex.variable()).collect();
        let booleans: Vec<usize> = constraint.booleans.iter().map(|_| search.variable()).collect();
        let real_of: HashMap<&Var, usize> = constraint.reals.iter().zip(reals.iter().copied()).collect();
        let boolean_of: HashMap<&Var, usize> = constraint.booleans.iter().zip(booleans.iter().copied()).collect();
        let mut undeclared: Option<Var> = None;
        let mut stated = HashMap::new();
        let mut sums: HashMap<Vec<(Var, String)>, usize> = HashMap::new();
        let mut atoms: HashMap<(Plane, Relation), usize> = HashMap::new();
        let mut hopeless = false;
        // In negation normal form a connective needs to imply its operands, not the other way round.
        let root = constraint.formula.to_nnf().fold(|node, children: &[Encoded]| match node.node() {
            Node::Constant(value) => Encoded::Known(*value),
            Node::Bool(var) => match boolean_of.get(var) {
                Some(variable) => Encoded::Open(TruthLiteral::new(*variable, true)),
                None => {
                    undeclared.get_or_insert(var.clone());
                    Encoded::Known(false)
                }
            },
            Node::Atom(atom) => {
                let key = (atom.plane().clone(), atom.relation());
                if let Some(known) = atoms.get(&key) {
                    return Encoded::Open(TruthLiteral::new(*known, true));
                }
                let mut terms = Vec::new();
                for (var, a) in atom.plane().normal() {
                    match real_of.get(var) {
                        Some(variable) => terms.push((*variable, Rational::from(a.clone()))),
                        None => _ = undeclared.get_or_insert(var.clone()),
                    }
                }
                let offset = Rational::from(atom.plane().offset().clone());
                let (variable, limit) = match &terms[..] {
                    [(variable, a)] => (*variable, offset / a),
                    _ => {
                        let shape = atom.plane().normal().iter().map(|(var, a)| (var.clone(), a.to_string()));
                        (*sums.entry(shape.collect()).or_insert_with(|| simplex.sum(terms)), offset)
                    }
                };
                let number = search.variable();
                stated.insert(number, StatedBound { variable, limit, strict: atom.relation() == Relation::Lt });
                atoms.insert(key, number);
                Encoded::Open(TruthLiteral::new(number, true))
            }
            Node::Connective(Connective::Not, _) => match children[0] {
                Encoded::Known(value) => Encoded::Known(!value),
                Encoded::Open(literal) => Encoded::Open(literal.negated()),
            },
            Node::Connective(connective, _) => {
                let conjunction = *connective == Connective::And;
                let mut open = Vec::new();
                for child in children {
                    match child {
                        Encoded::Known(value) if *value == conjunction => {}
                        Encoded::Known(_) => return *child,
                        Encoded::Open(literal) => open.push(*literal),
                    }
                }
                match open[..] {
                    [] => return Encoded::Known(conjunction),
                    [only] => return Encoded::Open(only),
                    _ => {}
                }
                let itself = TruthLiteral::new(search.variable(), true);
                if conjunction {
                    hopeless |= !open.iter().all(|literal| search.add(vec![itself.negated(), *literal]));
                } else {
                    hopeless |= !search.add(open.into_iter().chain([itself.negated()]).collect());
                }
                Encoded::Open(itself)
            }
        });
        if let Some(var) = undeclared {
            return Err(RegionError::Undeclared(var));
        }
        hopeless |= match root {
            Encoded::Known(value) => !value,
            Encoded::Open(literal) => !search.add(vec![literal]),
        };
        Ok(Solver { search, simplex, stated, reals, booleans, hopeless, marks: Vec::new() })
    }

    fn run(&mut self, constraint: &Constraint) -> Satisfiability {
        if self.hopeless {
            return Satisfiability::Unsatisfiable;
        }
        let mut conflicts = 0;
        loop {
            checkpoint();
            let conflict = match self.search.propagate() {
                Err(clause) => Some(clause),
                // Literals that contradict each other: one of them must be false.
                Ok(()) => self.tell_simplex().err().map(|all| all.into_iter().map(TruthLiteral::negated).collect()),
            };
            if let Some(clause) = conflict {
                conflicts += 1;
                if !self.search.learn(clause) {
                    return Satisfiability::Unsatisfiable;
                }
                if conflicts > MAX_CONFLICTS {
                    return Satisfiability::Undecided;
                }
                self.forget();
                continue;
            }
            let Some(variable) = self.search.open_variable() else { return self.solution(constraint) };
            self.search.decide(TruthLiteral::new(variable, self.likely(variable)));
        }
    }

    /// Takes back what the simplex method was told of literals that are no longer on the trail.
    fn forget(&mut self) {
        // Learning keeps the trail below some level and adds one literal, which is new.
        let kept = self.search.trail.len().saturating_sub(1).min(self.marks.len());
        if let Some(mark) = self.marks.get(kept) {
            self.simplex.return_to(*mark);
            self.marks.truncate(kept);
        }
    }

    fn tell_simplex(&mut self) -> Result<(), Vec<TruthLiteral>> {
        while let Some(literal) = self.search.trail.get(self.marks.len()).copied() {
            self.marks.push(self.simplex.mark());
            if let Some(bound) = self.stated.get(&literal.variable()) {
                let upper = literal.value();
                // The negation of x <= c is x > c, and that of x < c is x >= c.
                let excess = match (upper, bound.strict) {
                    (true, true) => Rational::NEG_ONE,
                    (false, false) => Rational::ONE,
                    _ => Rational::ZERO,
                };
                let limit = Nudged { value: bound.limit.clone(), excess };
                self.simplex.bound(bound.variable, upper, limit, literal)?;
            }
        }
        self.simplex.check()
    }

    /// The value to try first: what holds at the present point, and false for Boolean variables.
    fn likely(&self, variable: usize) -> bool {
        self.stated.get(&variable).is_some_and(|bound| {
            let value = self.simplex.value(bound.variable);
            let excess = if bound.strict { Rational::NEG_ONE } else { Rational::ZERO };
            *value <= Nudged { value: bound.limit.clone(), excess }
        })
    }

    fn solution(&self, constraint: &Constraint) -> Satisfiability {
        let values = self.simplex.concrete();
        let reals: Vec<Rational> = self.reals.iter().map(|variable| values[*variable].clone()).collect();
        let boolean = |variable: &usize| self.search.value(TruthLiteral::new(*variable, true)) == Some(true);
        let booleans: Vec<bool> = self.booleans.iter().map(boolean).collect();
        assert!(holds(constraint, &reals, &booleans), "a solution that the search found satisfies the formula");
        Satisfiability::Satisfiable { reals, booleans }
    }
}

/// Whether a point and values of Boolean variables satisfy a constraint.
fn holds(constraint: &Constraint, reals: &[Rational], booleans: &[bool]) -> bool {
    let real: HashMap<&Var, &Rational> = constraint.reals.iter().zip(reals).collect();
    let boolean: HashMap<&Var, bool> = constraint.booleans.iter().zip(booleans.iter().copied()).collect();
    constraint.formula.fold(|node: &Formula, children: &[bool]| match (node.node(), children) {
        (Node::Constant(value), _) => *value,
        (Node::Bool(var), _) => boolean.get(var) == Some(&true),
        (Node::Atom(atom), _) => {
            let start = -Rational::from(atom.plane().offset().clone());
            let sum = atom.plane().normal().iter().fold(start, |sum, (var, a)| match real.get(var) {
                Some(value) => sum + *value * Rational::from(a.clone()),
                None => sum,
            });
            atom.relation().holds(sum.cmp(&Rational::ZERO))
        }
        (Node::Connective(Connective::Not, _), [a, ..]) => !a,
        (Node::Connective(Connective::Or, _), all) => all.contains(&true),
        (Node::Connective(Connective::Iff, _), [a, b, ..]) => a == b,
        (Node::Connective(Connective::Ite, _), [c, a, b, ..]) => {
            if *c {
                *a
            } else {
                *b
            }
        }
        (Node::Connective(..), all) => !all.contains(&false),
    })
}
