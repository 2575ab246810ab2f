//! The Boolean structure of a formula over numbered hyperplanes, and its simplification on a cell.
//!
//! Inside a full-dimensional cell that a hyperplane does not cut, an atom is simply true or false, strict or not;
//! an equality is false. What is left undecided is a smaller skeleton. Evaluation is three-valued (Kleene): a
//! disjunction with a true part is true whatever the rest.

use std::collections::HashMap;

use super::polytope::Side;
use crate::formula::{Atom, Connective, Formula, Node, Relation, Var};

/// Something that can be true or false and is decided by branching.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Literal {
    /// The cell lies on this side of the hyperplane.
    Side { plane: u32, side: Side },
    /// The Boolean variable has this value.
    Bool { var: u32, value: bool },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Part {
    Literal(Literal),
    /// A conjunction or disjunction over a range of `kids`.
    Many {
        conjunction: bool,
        start: u32,
        end: u32,
    },
}

/// A formula in negation normal form, as a table in which every part comes after its own parts; the last is the root.
#[derive(Clone, Default, Debug)]
pub(crate) struct Skeleton {
    parts: Vec<Part>,
    kids: Vec<u32>,
    /// Literals below each part, counted with repetition.
    sizes: Vec<u32>,
    /// The hyperplanes that occur, each once.
    pub planes: Vec<u32>,
}

/// A skeleton after simplification.
#[derive(Clone, Debug)]
pub(crate) enum Residue {
    Decided(bool),
    Open(Skeleton),
}

/// Representatives of decided parts during simplification.
const TRUE: u32 = u32::MAX;
const FALSE: u32 = u32::MAX - 1;

impl Skeleton {
    /// Builds the skeleton of a formula; the tables say which hyperplane and which Boolean each name stands for.
    pub fn compile(formula: &Formula, plane_of: &impl Fn(&Atom) -> u32, boolean_of: &impl Fn(&Var) -> u32) -> Residue {
        let mut builder = Builder::default();
        // Both polarities of every node at once.
        let (root, _) = formula.fold(|node, children: &[(u32, u32)]| match node.node() {
            Node::Constant(true) => (TRUE, FALSE),
            Node::Constant(false) => (FALSE, TRUE),
            Node::Bool(var) => {
                let var = boolean_of(var);
                (
                    builder.literal(Literal::Bool { var, value: true }),
                    builder.literal(Literal::Bool { var, value: false }),
                )
            }
            Node::Atom(atom) if atom.relation() == Relation::Eq => (FALSE, TRUE),
            Node::Atom(atom) => {
                let plane = plane_of(atom);
                (
                    builder.literal(Literal::Side { plane, side: Side::Below }),
                    builder.literal(Literal::Side { plane, side: Side::Above }),
                )
            }
            Node::Connective(connective, _) => builder.connective(*connective, children),
        });
        match root {
            TRUE => Residue::Decided(true),
            FALSE => Residue::Decided(false),
            // The builder's table also holds parts that the root does not reach.
            _ => Skeleton { parts: builder.parts, kids: builder.kids, ..Skeleton::default() }.extract(root, |_| None),
        }
    }

    /// What is left of the formula once some literals are decided.
    pub fn simplify(&self, decide: impl Fn(Literal) -> Option<bool>) -> Residue {
        match self.parts.len() {
            0 => Residue::Decided(true),
            n => self.extract(n as u32 - 1, decide),
        }
    }

    fn extract(&self, root: u32, decide: impl Fn(Literal) -> Option<bool>) -> Residue {
        // Bottom-up: a decided part is TRUE or FALSE; a part with one undecided child is that child.
        let mut stands_for = vec![FALSE; self.parts.len()];
        for (at, part) in self.parts.iter().enumerate().take(root as usize + 1) {
            stands_for[at] = match part {
                Part::Literal(literal) => match decide(*literal) {
                    Some(true) => TRUE,
                    Some(false) => FALSE,
                    None => at as u32,
                },
                Part::Many { conjunction, start, end } => {
                    let (neutral, absorbing) = if *conjunction { (TRUE, FALSE) } else { (FALSE, TRUE) };
                    let (mut open, mut last) = (0, neutral);
                    for kid in &self.kids[*start as usize..*end as usize] {
                        let kid = stands_for[*kid as usize];
                        if kid == absorbing {
                            (open, last) = (0, absorbing);
                            break;
                        }
                        if kid != neutral {
                            open += usize::from(kid != last);
                            last = kid;
                        }
                    }
                    if open <= 1 { last } else { at as u32 }
                }
            };
        }
        match stands_for[root as usize] {
            TRUE => Residue::Decided(true),
            FALSE => Residue::Decided(false),
            top => Residue::Open(self.copy_reachable(top, &stands_for)),
        }
    }

    fn copy_reachable(&self, top: u32, stands_for: &[u32]) -> Skeleton {
        let undecided = |start: u32, end: u32| {
            let kids = self.kids[start as usize..end as usize].iter().map(|kid| stands_for[*kid as usize]);
            kids.filter(|kid| *kid != TRUE && *kid != FALSE)
        };
        let mut reached = vec![false; top as usize + 1];
        reached[top as usize] = true;
        for at in (0..=top as usize).rev() {
            if let (true, Part::Many { start, end, .. }) = (reached[at], &self.parts[at]) {
                undecided(*start, *end).for_each(|kid| reached[kid as usize] = true);
            }
        }
        let mut copy = Skeleton::default();
        let mut moved = vec![0u32; top as usize + 1];
        for at in (0..=top as usize).filter(|at| reached[*at]) {
            moved[at] = copy.parts.len() as u32;
            match &self.parts[at] {
                Part::Literal(literal) => {
                    if let Literal::Side { plane, .. } = literal {
                        copy.planes.push(*plane);
                    }
                    copy.parts.push(Part::Literal(*literal));
                    copy.sizes.push(1);
                }
                Part::Many { conjunction, start, end } => {
                    let first = copy.kids.len() as u32;
                    copy.kids.extend(undecided(*start, *end).map(|kid| moved[kid as usize]));
                    let last = copy.kids.len() as u32;
                    let size = copy.kids[first as usize..]
                        .iter()
                        .fold(0u32, |sum, kid| sum.saturating_add(copy.sizes[*kid as usize]));
                    copy.parts.push(Part::Many { conjunction: *conjunction, start: first, end: last });
                    copy.sizes.push(size);
                }
            }
        }
        copy.planes.sort_unstable();
        copy.planes.dedup();
        copy
    }

    /// The literal to branch on next: the first one of the smallest undecided clause.
    pub fn choose(&self) -> Option<Literal> {
        let mut at = self.parts.len().checked_sub(1)?;
        loop {
            match &self.parts[at] {
                Part::Literal(literal) => return Some(*literal),
                Part::Many { start, end, .. } => {
                    let kids = &self.kids[*start as usize..*end as usize];
                    at = *kids.iter().min_by_key(|kid| self.sizes[**kid as usize])? as usize;
                }
            }
        }
    }
}

/// Collects parts, sharing equal ones.
#[derive(Default)]
struct Builder {
    parts: Vec<Part>,
    kids: Vec<u32>,
    literals: HashMap<Literal, u32>,
    many: HashMap<(bool, Vec<u32>), u32>,
}

impl Builder {
    fn literal(&mut self, literal: Literal) -> u32 {
        *self.literals.entry(literal).or_insert_with(|| {
            self.parts.push(Part::Literal(literal));
            self.parts.len() as u32 - 1
        })
    }

    fn many(&mut self, conjunction: bool, kids: impl IntoIterator<Item = u32>) -> u32 {
        let (neutral, absorbing) = if conjunction { (TRUE, FALSE) } else { (FALSE, TRUE) };
        let mut list: Vec<u32> = Vec::new();
        for kid in kids {
            if kid == absorbing {
                return absorbing;
            }
            if kid != neutral {
                list.push(kid);
            }
        }
        match list[..] {
            [] => return neutral,
            [only] => return only,
            _ => {}
        }
        let key = (conjunction, list);
        if let Some(known) = self.many.get(&key) {
            return *known;
        }
        let start = self.kids.len() as u32;
        self.kids.extend(&key.1);
        self.parts.push(Part::Many { conjunction, start, end: self.kids.len() as u32 });
        let id = self.parts.len() as u32 - 1;
        self.many.insert(key, id);
        id
    }

    fn connective(&mut self, connective: Connective, children: &[(u32, u32)]) -> (u32, u32) {
        match connective {
            Connective::Not => (children[0].1, children[0].0),
            Connective::And => {
                (self.many(true, children.iter().map(|c| c.0)), self.many(false, children.iter().map(|c| c.1)))
            }
            Connective::Or => {
                (self.many(false, children.iter().map(|c| c.0)), self.many(true, children.iter().map(|c| c.1)))
            }
            Connective::Iff => {
                let ((a, not_a), (b, not_b)) = (children[0], children[1]);
                (self.either([(a, b), (not_a, not_b)]), self.either([(a, not_b), (not_a, b)]))
            }
            Connective::Ite => {
                // The third pair makes the result known as soon as both branches agree.
                let ((c, not_c), (a, not_a), (b, not_b)) = (children[0], children[1], children[2]);
                (self.either([(c, a), (not_c, b), (a, b)]), self.either([(c, not_a), (not_c, not_b), (not_a, not_b)]))
            }
        }
    }

    fn either<const N: usize>(&mut self, pairs: [(u32, u32); N]) -> u32 {
        let options = pairs.map(|(a, b)| self.many(true, [a, b]));
        self.many(false, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    fn skeleton(formula: &Formula) -> Skeleton {
        let atoms = formula.atoms();
        let plane_of = |atom: &Atom| atoms.iter().position(|a| a == atom).unwrap() as u32;
        match Skeleton::compile(formula, &plane_of, &|_| 0) {
            Residue::Open(s) => s,
            Residue::Decided(value) => panic!("decided: {value}"),
        }
    }

    #[test]
    fn three_valued_evaluation_decides_what_it_can() {
        let [x, y] = reals(["x", "y"]);
        let f = (x.le(0) | y.le(0)) & (x.le(1) | y.le(1));
        let s = skeleton(&f);
        let all_below = |l: Literal| matches!(l, Literal::Side { side: Side::Below, .. });
        assert!(matches!(s.simplify(|l| Some(all_below(l))), Residue::Decided(true)));
        assert!(matches!(s.simplify(|l| Some(!all_below(l))), Residue::Decided(false)));
        let Residue::Open(rest) = s.simplify(|l| match l {
            Literal::Side { plane: 0, side } => Some(side == Side::Below),
            _ => None,
        }) else {
            panic!("one atom does not decide the formula")
        };
        assert!(rest.planes.len() < s.planes.len());
    }

    #[test]
    fn an_ite_with_equal_branches_needs_no_condition() {
        let [x, y, z] = reals(["x", "y", "z"]);
        let f = x.le(0).ite(y.le(0), z.le(0));
        let s = skeleton(&f);
        let plane_x = f.atoms().iter().position(|a| a.to_string() == "x <= 0").unwrap() as u32;
        let residue = s.simplify(|l| match l {
            Literal::Side { plane, side } if plane != plane_x => Some(side == Side::Below),
            _ => None,
        });
        assert!(matches!(residue, Residue::Decided(true)));
    }

    #[test]
    fn equalities_have_no_volume() {
        let [x] = reals(["x"]);
        assert!(matches!(Skeleton::compile(&x.equals(1), &|_| 0, &|_| 0), Residue::Decided(false)));
        assert!(matches!(Skeleton::compile(&x.differs(1), &|_| 0, &|_| 0), Residue::Decided(true)));
    }
}
