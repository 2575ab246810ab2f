//! Fast and exact membership tests of points.
//!
//! The formula is compiled to a decision program: a list of tests, each with the next test to make when it holds and
//! when it fails, so that most atoms are never looked at. Each test evaluates `a . x - b` in float64 together with a
//! bound on its rounding error; only when the sign is in doubt is it evaluated again in exact arithmetic.
//!
//! Large batches in up to three dimensions first look up a grid over the bounding box, whose bins hold what is left of
//! the program there: usually nothing, or a test or two.

mod emit;
mod grid;
mod image;
mod segment;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::{Atom, Bounds, Formula, Relation, Var};
use crate::interrupt::checkpoint;
use crate::number::{self, Integer, Rational, scaled_coefficient, scaled_to_f64};
use emit::Emitter;
use grid::ProgramGrid;
pub(crate) use image::ImagePoint;

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

/// A formula compiled for exact membership tests of points with float64 coordinates.
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
    /// The normals of all atoms, `dimension` numbers each, in one allocation that is read in order.
    normals: Vec<f64>,
    bounds: Bounds,
    reals: Vec<Var>,
    /// The grid for large batches, built once enough points were asked for.
    grid: Arc<OnceLock<Option<ProgramGrid>>>,
    /// The number of points that came in batches so far.
    asked: Arc<AtomicUsize>,
}

/// The target of a test that ends the program with the answer that the point is not a member.
const REJECT: u32 = u32::MAX;
/// The target of a test that ends the program with the answer that the point is a member.
const ACCEPT: u32 = u32::MAX - 1;

/// Programs beyond this size are refused; a formula without sharing needs one test per literal.
const MAX_TESTS: usize = 4_000_000;

/// Building the grid pays off for this many points, in one batch or in several.
const MANY: usize = 20_000;

/// The number of points that one parallel task handles.
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
            bounds: formula.bounds(),
            reals: reals.to_vec(),
            grid: Arc::default(),
            asked: Arc::default(),
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
        // Only the sign matters, so a power of two brings coefficients of any size into the range of float64.
        let bits = |a: &Integer| number::bit_length(a);
        let largest = plane.normal().iter().map(|(_, a)| bits(a)).chain([bits(plane.offset())]).max();
        let shift = largest.unwrap_or(0).saturating_sub(1000);
        let start = self.normals.len();
        self.normals.resize(start + self.dimension, 0.0);
        let mut exact_normal = Vec::new();
        for (var, a) in plane.normal() {
            let at = *reals_at.get(var).ok_or_else(|| MembershipError::UnknownVariable(var.clone()))?;
            self.normals[start + at] = scaled_coefficient(a, shift);
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

    /// Whether the point satisfies the formula where the Boolean variables have the given values; otherwise like
    /// [`Membership::contains`].
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
        if self.booleans > 0 {
            return result;
        }
        let asked = self.asked.fetch_add(result.len(), atomic::Ordering::Relaxed).saturating_add(result.len());
        let grid = match asked {
            MANY.. => self.grid.get_or_init(|| ProgramGrid::new(self)).as_ref(),
            _ => None,
        };
        let decide = |(out, rows): (&mut [bool], &[f64])| {
            checkpoint();
            for (slot, point) in out.iter_mut().zip(rows.chunks_exact(self.dimension)) {
                *slot = match grid {
                    Some(grid) => grid.contains(self, point),
                    None => self.contains(point),
                };
            }
        };
        // Calling other threads for few points would take longer than the work.
        if result.len() <= BLOCK {
            decide((&mut result, points));
        } else {
            result.par_chunks_mut(BLOCK).zip(points.par_chunks(BLOCK * self.dimension)).for_each(decide);
        }
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

    fn run(&self, point: &[f64], booleans: &[bool], exact: &mut usize) -> bool {
        self.run_from(&self.tests, self.entry, point, booleans, exact)
    }

    #[inline]
    fn run_from(&self, tests: &[Test], entry: u32, point: &[f64], booleans: &[bool], exact: &mut usize) -> bool {
        let mut at = entry;
        loop {
            match at {
                ACCEPT => return true,
                REJECT => return false,
                _ => {}
            }
            let test = tests[at as usize];
            let holds = match test.subject {
                Subject::Atom(id) => self.atom_holds(id as usize, point, exact),
                Subject::Boolean(id) => booleans[id as usize],
            };
            at = if holds { test.on_true } else { test.on_false };
        }
    }

    /// Whether an atom holds at a point, with exact arithmetic only where the sign of its value in float64 is in doubt.
    #[inline]
    fn atom_holds(&self, id: usize, point: &[f64], exact: &mut usize) -> bool {
        let atom = &self.atoms[id];
        let (value, error) = self.atom_value(id, point);
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

    /// The value of an atom at a point in float64, and a bound on its error.
    ///
    /// The rounding error of the value is at most `(n + 2) u` times the sum of magnitudes, with u = 2^-53: one `u`
    /// for each coefficient's own rounding, one for its product, n for the additions; the factor 2 leaves room
    /// for second-order terms and for the rounding of the magnitudes. The last summand covers underflow.
    #[inline]
    fn atom_value(&self, id: usize, point: &[f64]) -> (f64, f64) {
        let offset = self.atoms[id].offset;
        let normal = &self.normals[id * self.dimension..(id + 1) * self.dimension];
        let (mut value, mut magnitude) = (-offset, offset.abs());
        for (a, x) in normal.iter().zip(point) {
            let product = a * x;
            value += product;
            magnitude += product.abs();
        }
        (value, magnitude * (self.dimension as f64 + 3.0) * f64::EPSILON + f64::MIN_POSITIVE)
    }
}

impl CompiledAtom {
    #[cold]
    fn exact_sign(&self, point: &[f64]) -> Ordering {
        self.exact_value(point).cmp(&Rational::ZERO)
    }
}
