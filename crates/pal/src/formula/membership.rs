//! Exact membership of points, fast.
//!
//! The formula is compiled to a decision program: a list of tests, each with the next test to make when it holds and
//! when it fails, so that most atoms are never looked at. Each test evaluates `a . x - b` in doubles together
//! with a bound on its rounding error; only when the sign is in doubt is it evaluated again in exact arithmetic.

use std::cmp::Ordering;
use std::collections::HashMap;

use rayon::prelude::*;

use super::{Atom, Connective, Formula, Node, Relation, Var};
use crate::number::{self, Integer, Rational, scaled_to_f64};

/// Why a formula cannot be compiled for membership tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// The formula mentions a variable that the points have no value for.
    #[error("the formula uses variable `{0}`, which is not among the given ones")]
    UnknownVariable(Var),
    /// Sharing in the formula makes its decision program too large.
    #[error("the formula needs more than {0} tests per point; simplify it")]
    TooLarge(usize),
}

/// A compiled formula: exact membership of points given as doubles.
///
/// ```
/// use pal::formula::{reals, Constraint};
/// let [x, y] = reals(["x", "y"]);
/// let members = Constraint::new(x.lt(&y)).membership().unwrap();
/// assert_eq!(members.contains_batch(&[0.0, 1.0, 1.0, 1.0]), [true, false]);
/// ```
#[derive(Clone, Debug)]
pub struct Membership {
    dimension: usize,
    booleans: usize,
    entry: u32,
    tests: Vec<Test>,
    atoms: Vec<CompiledAtom>,
    /// Normals of all atoms, `dimension` doubles each: one allocation, walked linearly.
    normals: Vec<f64>,
}

/// Program counter values that end the program.
const REJECT: u32 = u32::MAX;
const ACCEPT: u32 = u32::MAX - 1;

/// Programs beyond this size are refused; a formula without sharing needs one test per literal.
const MAX_TESTS: usize = 4_000_000;

/// Points handled by one parallel task.
const BLOCK: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Test {
    subject: Subject,
    on_true: u32,
    on_false: u32,
}

#[derive(Clone, Copy, Debug)]
enum Subject {
    Atom(u32),
    Boolean(u32),
}

#[derive(Clone, Debug)]
struct CompiledAtom {
    relation: Relation,
    offset: f64,
    exact_normal: Vec<(usize, Integer)>,
    exact_offset: Integer,
}

impl Membership {
    /// Compiles a formula for points whose coordinates are `reals` and truth values `booleans`, in these orders.
    pub fn new(formula: &Formula, reals: &[Var], booleans: &[Var]) -> Result<Self, MembershipError> {
        let index = |vars: &[Var]| -> HashMap<Var, usize> {
            vars.iter().enumerate().rev().map(|(k, v)| (v.clone(), k)).collect()
        };
        let (reals_at, booleans_at) = (index(reals), index(booleans));
        let mut program = Membership {
            dimension: reals.len(),
            booleans: booleans.len(),
            entry: REJECT,
            tests: Vec::new(),
            atoms: Vec::new(),
            normals: Vec::new(),
        };
        let mut atom_ids: HashMap<Atom, u32> = HashMap::new();
        for atom in formula.atoms() {
            let compiled = program.compile_atom(&atom, &reals_at)?;
            atom_ids.insert(atom, program.atoms.len() as u32);
            program.atoms.push(compiled);
        }
        program.entry =
            Emitter { program: &mut program, atom_ids, booleans_at, labels: HashMap::new(), resume: HashMap::new() }
                .emit(formula)?;
        Ok(program)
    }

    fn compile_atom(&mut self, atom: &Atom, reals_at: &HashMap<Var, usize>) -> Result<CompiledAtom, MembershipError> {
        let plane = atom.plane();
        // Only the sign matters, so a power of two brings coefficients of any size into the range of doubles.
        let bits = |a: &Integer| number::bit_length(a);
        let largest = plane.normal().iter().map(|(_, a)| bits(a)).chain([bits(plane.offset())]).max();
        let shift = largest.unwrap_or(0).saturating_sub(1000);
        let start = self.normals.len();
        self.normals.resize(start + self.dimension, 0.0);
        let mut exact_normal = Vec::new();
        for (var, a) in plane.normal() {
            let at = *reals_at.get(var).ok_or_else(|| MembershipError::UnknownVariable(var.clone()))?;
            self.normals[start + at] = scaled_to_f64(a, shift);
            exact_normal.push((at, a.clone()));
        }
        Ok(CompiledAtom {
            relation: atom.relation(),
            offset: scaled_to_f64(plane.offset(), shift),
            exact_normal,
            exact_offset: plane.offset().clone(),
        })
    }

    /// The number of coordinates of a point.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Whether the point satisfies the formula, strictness included. Points of the wrong length and points with a NaN
    /// or an infinity do not. If the formula has Boolean variables, use [`Membership::contains_with`].
    pub fn contains(&self, point: &[f64]) -> bool {
        self.booleans == 0 && self.contains_with(point, &[])
    }

    /// Like [`Membership::contains`], with values of the Boolean variables.
    pub fn contains_with(&self, point: &[f64], booleans: &[bool]) -> bool {
        point.len() == self.dimension
            && booleans.len() == self.booleans
            && point.iter().all(|x| x.is_finite())
            && self.run(point, booleans, &mut 0)
    }

    /// Membership of many points, given row by row in one slice. A trailing incomplete row is ignored.
    pub fn contains_batch(&self, points: &[f64]) -> Vec<bool> {
        if self.dimension == 0 {
            return Vec::new();
        }
        let mut result = vec![false; points.len() / self.dimension];
        let blocks = result.par_chunks_mut(BLOCK).zip(points.par_chunks(BLOCK * self.dimension));
        blocks.for_each(|(out, rows)| {
            for (slot, point) in out.iter_mut().zip(rows.chunks_exact(self.dimension)) {
                *slot = self.contains(point);
            }
        });
        result
    }

    /// How many atoms of this point needed exact arithmetic, for tests and for tuning.
    pub fn exact_evaluations(&self, point: &[f64], booleans: &[bool]) -> usize {
        let mut count = 0;
        if point.len() == self.dimension && booleans.len() == self.booleans && point.iter().all(|x| x.is_finite()) {
            self.run(point, booleans, &mut count);
        }
        count
    }

    #[inline]
    fn run(&self, point: &[f64], booleans: &[bool], exact: &mut usize) -> bool {
        let mut at = self.entry;
        loop {
            match at {
                ACCEPT => return true,
                REJECT => return false,
                _ => {}
            }
            let test = self.tests[at as usize];
            let holds = match test.subject {
                Subject::Atom(id) => self.atom_holds(id as usize, point, exact),
                Subject::Boolean(id) => booleans[id as usize],
            };
            at = if holds { test.on_true } else { test.on_false };
        }
    }

    /// The rounding error of the sum below is at most `(n + 2) u` times the sum of magnitudes, with u = 2^-53: one `u`
    /// for each coefficient's own rounding, one for its product, n for the additions; the factor 2 leaves room
    /// for second-order terms and for the rounding of the magnitudes. The last summand covers underflow.
    #[inline]
    fn atom_holds(&self, id: usize, point: &[f64], exact: &mut usize) -> bool {
        let atom = &self.atoms[id];
        let normal = &self.normals[id * self.dimension..(id + 1) * self.dimension];
        let (mut value, mut magnitude) = (-atom.offset, atom.offset.abs());
        for (a, x) in normal.iter().zip(point) {
            let product = a * x;
            value += product;
            magnitude += product.abs();
        }
        let error = magnitude * (self.dimension as f64 + 3.0) * f64::EPSILON + f64::MIN_POSITIVE;
        let sign = if value > error {
            Ordering::Greater
        } else if value < -error {
            Ordering::Less
        } else {
            *exact += 1;
            atom.exact_sign(point)
        };
        atom.relation.holds(sign)
    }
}

impl CompiledAtom {
    #[cold]
    fn exact_sign(&self, point: &[f64]) -> Ordering {
        let mut sum = Rational::from(-&self.exact_offset);
        for (at, a) in &self.exact_normal {
            // Coordinates are finite here; a non-finite one would have been refused before.
            let x = number::from_f64(point[*at]).unwrap_or(Rational::ZERO);
            sum += x * Rational::from(a.clone());
        }
        sum.cmp(&Rational::ZERO)
    }
}

/// Turns a formula into tests: `emit(node, t, f)` yields the label where a test of `node` starts that goes on to `t`
/// or `f`. Labels are memoised, so a shared subformula is compiled once per pair of continuations.
struct Emitter<'a> {
    program: &'a mut Membership,
    atom_ids: HashMap<Atom, u32>,
    booleans_at: HashMap<Var, usize>,
    labels: HashMap<Goal, u32>,
    /// How far a conjunction or disjunction has got: parts still to do, label of what follows them.
    resume: HashMap<Goal, (usize, u32)>,
}

/// A subformula with its continuations.
type Goal = (*const Node, u32, u32);

impl Emitter<'_> {
    fn emit(mut self, root: &Formula) -> Result<u32, MembershipError> {
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
                    // From the last part to the first; where an earlier try of this goal stopped, go on from there.
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
