//! Writes formulas as SMT-LIB text.
//!
//! A shared part is written once when that makes the text much shorter: with `let` if one assert uses it, with
//! `define-fun` if several do. The text then grows with the number of distinct parts, not with the size of the
//! written-out tree.

use std::collections::HashMap;

#[cfg(doc)]
use super::super::Category;
use super::super::{Atom, Connective, Constraint, Formula, Node, Relation, Var};
use super::declaration::WrittenDeclarations;
use super::numeral::written;
use super::symbol::{Names, symbol};
use crate::number::Rational;

/// Why a constraint cannot be written as SMT-LIB.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SmtWriteError {
    /// SMT-LIB has no way to write the name.
    #[error("the variable `{0}` cannot be written in SMT-LIB, whose names may contain neither `|` nor `\\`; rename it")]
    Name(Var),
    /// The name is that of a built-in function.
    #[error("the variable `{0}` has the name of an SMT-LIB built-in; rename it")]
    BuiltIn(Var),
    /// The name is declared more than once, perhaps with both sorts.
    #[error("the variable `{0}` is declared twice; rename one of the two")]
    Twice(Var),
    /// The formula uses a variable that the constraint does not list with that sort.
    #[error("the formula uses variable `{0}`, which the constraint does not declare; add it to its variables")]
    Undeclared(Var),
}

/// Writes a script that [`parse_smtlib`](super::parse_smtlib) reads back with the same meaning.
///
/// It declares the variables in order, reals first, and has one assert for each part of a conjunction. Names that are
/// not plain symbols are written in |bars|; those that even bars cannot hold are an error. A category that the
/// constraint gives exactly one value ([`Category::enforce`]) is written as a constant of an enumerated sort, or as an
/// integer if its values are; where names would clash, as its Boolean variables.
///
/// ```
/// use pal::formula::{reals, write_smtlib, Constraint};
/// let [x, y] = reals(["x", "my y"]);
/// let script = write_smtlib(&Constraint::new((2 * &x - 3 * &y).lt(1) & (3 * &x).ge(-1))).unwrap();
/// assert!(script.contains("(declare-const |my y| Real)"));
/// assert!(script.contains("(assert (>= x (- (/ 1 3))))"));
/// ```
pub fn write_smtlib(constraint: &Constraint) -> Result<String, SmtWriteError> {
    let names = Names::of(constraint)?;
    let declarations = WrittenDeclarations::of(constraint);
    let logic = if declarations.rules.is_empty() { "QF_LRA" } else { "ALL" };
    let mut script = format!("(set-logic {logic})\n{}", declarations.text);
    let formula = declarations.without_rules(&constraint.formula);
    let graph = Graph::of(&formula, &names, &declarations.literals)?;
    graph.write(&mut script);
    script.push_str("(check-sat)\n");
    Ok(script)
}

/// A distinct part of the formula, with what the writer knows about it.
struct Subformula {
    connective: Option<Connective>,
    children: Vec<usize>,
    /// The text of a leaf.
    text: String,
    /// The text of the negation, where that is not just `not`.
    negated: Option<String>,
    parents: usize,
    user: User,
    /// The name under which the part is referred to, if it is written separately.
    name: Option<String>,
    /// The level of a named part is one more than the highest level of the parts below it, so that parts of one level
    /// can share a `let`; the level of any other part is the highest level below it.
    level: usize,
}

/// Which asserts contain a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Nobody,
    Assert(usize),
    Several,
}

/// All distinct parts of a formula, each after its children.
struct Graph {
    parts: Vec<Subformula>,
    asserts: Vec<usize>,
}

impl Graph {
    fn of(formula: &Formula, names: &Names, literals: &HashMap<Var, String>) -> Result<Graph, SmtWriteError> {
        let mut parts: Vec<Subformula> = Vec::new();
        let mut problem = None;
        let root = formula.fold(|formula, children: &[usize]| {
            let part = Subformula::new(formula, children, names, literals).unwrap_or_else(|error| {
                problem.get_or_insert(error);
                Subformula::leaf(String::new(), None)
            });
            parts.push(part);
            parts.len() - 1
        });
        if let Some(error) = problem {
            return Err(error);
        }
        let asserts = match parts.get(root) {
            Some(part) if part.connective == Some(Connective::And) => part.children.clone(),
            _ => vec![root],
        };
        let mut graph = Graph { parts, asserts };
        graph.name_shared(root, names);
        Ok(graph)
    }

    /// Decides which parts are written separately, and names them.
    fn name_shared(&mut self, root: usize, names: &Names) {
        for k in 0..self.parts.len() {
            for child in self.parts[k].children.clone() {
                self.parts[child].parents += 1;
            }
        }
        for (k, part) in self.asserts.iter().enumerate() {
            self.parts[*part].user = self.parts[*part].user.or(User::Assert(k));
        }
        for k in (0..self.parts.len()).rev() {
            // The conjunction of the asserts is not written and does not use its children itself.
            if k == root && self.asserts != [root] {
                continue;
            }
            for child in self.parts[k].children.clone() {
                self.parts[child].user = self.parts[child].user.or(self.parts[k].user);
            }
        }
        let (mut tree, mut apart) = (vec![0u64; self.parts.len()], 0u64);
        for (k, part) in self.parts.iter().enumerate() {
            let own = part.own_length();
            tree[k] = part.children.iter().fold(own, |sum, child| sum.saturating_add(tree[*child]));
            apart = apart.saturating_add(own);
        }
        if tree.get(root).is_some_and(|written_out| *written_out <= apart.saturating_mul(2)) {
            return;
        }
        // The number of characters that a definition itself takes, roughly.
        const WORTHWHILE: u64 = 30;
        let mut count = 0;
        for (k, length) in tree.into_iter().enumerate() {
            let level = self.parts[k].children.iter().map(|c| self.parts[*c].level).max().unwrap_or(0);
            let part = &mut self.parts[k];
            part.level = level;
            if part.parents > 1 && length > WORTHWHILE {
                count += 1;
                part.name = Some(format!("{}{count}", names.prefix));
                part.level += 1;
            }
        }
    }

    fn write(&self, script: &mut String) {
        let mut lets: HashMap<usize, Vec<usize>> = HashMap::new();
        for (k, part) in self.parts.iter().enumerate() {
            match (&part.name, part.user) {
                (Some(name), User::Several) => {
                    script.push_str(&format!("(define-fun {name} () Bool "));
                    self.write_term(k, true, script);
                    script.push_str(")\n");
                }
                (Some(_), User::Assert(number)) => lets.entry(number).or_default().push(k),
                _ => {}
            }
        }
        for (number, root) in self.asserts.iter().enumerate() {
            let mut bound = lets.remove(&number).unwrap_or_default();
            bound.sort_by_key(|k| self.parts[*k].level);
            script.push_str("(assert ");
            let mut closing = 1;
            for group in bound.chunk_by(|a, b| self.parts[*a].level == self.parts[*b].level) {
                script.push_str("(let (");
                for (position, k) in group.iter().enumerate() {
                    let name = self.parts[*k].name.as_deref().unwrap_or("");
                    script.push_str(&format!("{}({name} ", if position == 0 { "" } else { "\n      " }));
                    self.write_term(*k, true, script);
                    script.push(')');
                }
                script.push_str(")\n ");
                closing += 1;
            }
            self.write_term(*root, false, script);
            script.push_str(&")".repeat(closing));
            script.push('\n');
        }
    }

    /// Writes a part with references to the named ones; `defining` writes out the part even if it is named.
    fn write_term(&self, root: usize, defining: bool, script: &mut String) {
        enum Fragment {
            Term(usize),
            Space,
            Close,
        }
        let mut pending = vec![Fragment::Term(root)];
        let mut write_out = defining;
        while let Some(piece) = pending.pop() {
            let part = match piece {
                Fragment::Space => {
                    script.push(' ');
                    continue;
                }
                Fragment::Close => {
                    script.push(')');
                    continue;
                }
                Fragment::Term(k) => &self.parts[k],
            };
            let named = part.name.as_deref().filter(|_| !write_out);
            write_out = false;
            match (named, part.connective) {
                (Some(name), _) => script.push_str(name),
                (None, None) => script.push_str(&part.text),
                (None, Some(connective)) => {
                    let inner = part.children.first().map(|c| &self.parts[*c]).filter(|inner| inner.name.is_none());
                    if let (Connective::Not, Some(negated)) = (connective, inner.and_then(|i| i.negated.as_ref())) {
                        script.push_str(negated);
                        continue;
                    }
                    script.push('(');
                    script.push_str(operator(connective));
                    pending.push(Fragment::Close);
                    for child in part.children.iter().rev() {
                        pending.extend([Fragment::Term(*child), Fragment::Space]);
                    }
                }
            }
        }
    }
}

impl User {
    fn or(self, other: User) -> User {
        match (self, other) {
            (User::Nobody, user) | (user, User::Nobody) => user,
            (a, b) if a == b => a,
            _ => User::Several,
        }
    }
}

impl Subformula {
    fn leaf(text: String, negated: Option<String>) -> Subformula {
        let (connective, children) = (None, Vec::new());
        Subformula { connective, children, text, negated, parents: 0, user: User::Nobody, name: None, level: 0 }
    }

    fn new(
        formula: &Formula,
        children: &[usize],
        names: &Names,
        literals: &HashMap<Var, String>,
    ) -> Result<Subformula, SmtWriteError> {
        Ok(match formula.node() {
            Node::Constant(value) => Subformula::leaf(value.to_string(), None),
            Node::Bool(var) if names.booleans.contains(var) => {
                let text = literals.get(var).cloned().unwrap_or_else(|| symbol(var.name()));
                Subformula::leaf(text, None)
            }
            Node::Bool(var) => return Err(SmtWriteError::Undeclared(var.clone())),
            Node::Atom(atom) => {
                if let Some((var, _)) = atom.plane().normal().iter().find(|(var, _)| !names.reals.contains(var)) {
                    return Err(SmtWriteError::Undeclared(var.clone()));
                }
                let (text, negated) = atom_texts(atom);
                Subformula::leaf(text, negated)
            }
            Node::Connective(connective, _) => Subformula {
                connective: Some(*connective),
                children: children.to_vec(),
                ..Subformula::leaf(String::new(), None)
            },
        })
    }

    /// The number of characters that the part adds to those of its children.
    fn own_length(&self) -> u64 {
        (self.text.len() + self.connective.map_or(0, |c| operator(c).len() + 2) + self.children.len()) as u64
    }
}

fn operator(connective: Connective) -> &'static str {
    match connective {
        Connective::Not => "not",
        Connective::And => "and",
        Connective::Or => "or",
        Connective::Iff => "=",
        Connective::Ite => "ite",
    }
}

/// The text of an atom, and that of its negation if there is a relation for it.
fn atom_texts(atom: &Atom) -> (String, Option<String>) {
    let plane = atom.plane();
    let (left, right) = match plane.normal() {
        // One variable reads best alone on its side. Its coefficient is positive.
        [(var, a)] => (symbol(var.name()), Rational::from(plane.offset().clone()) / Rational::from(a.clone())),
        terms => {
            let products = terms.iter().map(|(var, a)| match a.is_one() {
                true => symbol(var.name()),
                false => format!("(* {} {})", written(&Rational::from(a.clone())), symbol(var.name())),
            });
            (format!("(+ {})", products.collect::<Vec<_>>().join(" ")), Rational::from(plane.offset().clone()))
        }
    };
    let right = written(&right);
    let compared = |relation: &str| format!("({relation} {left} {right})");
    match atom.relation() {
        Relation::Le => (compared("<="), Some(compared(">"))),
        Relation::Lt => (compared("<"), Some(compared(">="))),
        Relation::Eq => (compared("="), None),
    }
}
