//! A grid of specialised decision programs.
//!
//! For every bin of a uniform grid over the bounding box the atoms that do not change inside the bin are decided once,
//! with certified bounds on a slightly larger bin, so that rounding in the look-up cannot matter. What is left of the
//! program is stored per bin.

use super::{ACCEPT, Membership, REJECT, Subject, Test};
use crate::formula::{Bounds, Interval};
use crate::number;

/// Bins per axis for one, two and three dimensions.
const BINS: [usize; 3] = [2048, 96, 20];

/// The fraction of its width by which a bin is enlarged on every side before atoms are decided on it.
const MARGIN: f64 = 1e-6;

/// Programs larger than this are not worth specialising for thousands of bins.
const MAX_TESTS: usize = 5_000;

/// A uniform grid over the bounding box of a formula, with a decision program for each of its bins.
#[derive(Clone, Debug)]
pub(super) struct ProgramGrid {
    axes: Vec<UniformAxis>,
    /// Where to start in `tests`, bin by bin, the first axis running fastest.
    entries: Vec<u32>,
    tests: Vec<Test>,
}

/// One axis of the grid: an interval cut into bins of equal width.
#[derive(Clone, Debug)]
struct UniformAxis {
    low: f64,
    bins: usize,
    width: f64,
    per_unit: f64,
}

impl UniformAxis {
    fn new(interval: &Interval, bins: usize) -> Option<UniformAxis> {
        let (low, high) = (interval.low.as_ref()?, interval.high.as_ref()?);
        let (low, high) = (number::to_f64(low), number::to_f64(high));
        let width = (high - low) / bins as f64;
        // The margin must be far above the rounding of the ends and of coordinates near them.
        let resolution = low.abs().max(high.abs()) * f64::EPSILON;
        (width.is_finite() && width * MARGIN > 64.0 * resolution && width > 1e-290).then(|| UniformAxis {
            low,
            bins,
            width,
            per_unit: 1.0 / width,
        })
    }

    /// The bin that holds a coordinate; nothing for NaN and for coordinates outside the bounding box.
    #[inline]
    fn bin(&self, x: f64) -> Option<usize> {
        let t = (x - self.low) * self.per_unit;
        if t >= -MARGIN / 2.0 && t <= self.bins as f64 + MARGIN / 2.0 {
            Some((t.max(0.0) as usize).min(self.bins - 1))
        } else {
            None
        }
    }

    /// The centre and half-width of an enlarged bin.
    fn enlarged(&self, bin: usize) -> (f64, f64) {
        (self.low + (bin as f64 + 0.5) * self.width, self.width * (0.5 + MARGIN))
    }
}

impl ProgramGrid {
    /// The grid for a program; nothing where the formula does not bound all variables or has too many of them.
    pub fn new(program: &Membership) -> Option<ProgramGrid> {
        let n = program.dimension;
        if n == 0 || n > BINS.len() || program.tests.len() > MAX_TESTS {
            return None;
        }
        let axes: Option<Vec<UniformAxis>> = match &program.bounds {
            Bounds::Empty => None,
            bounds => program.reals.iter().map(|var| UniformAxis::new(&bounds.of(var), BINS[n - 1])).collect(),
        };
        let axes = axes?;
        let mut grid = ProgramGrid { entries: Vec::new(), tests: Vec::new(), axes };
        let count: usize = grid.axes.iter().map(|axis| axis.bins).product();
        for bin in 0..count {
            let mut remaining = bin;
            let boxes: Vec<(f64, f64)> = grid
                .axes
                .iter()
                .map(|axis| {
                    let at = remaining % axis.bins;
                    remaining /= axis.bins;
                    axis.enlarged(at)
                })
                .collect();
            let entry = grid.specialise(program, &boxes);
            grid.entries.push(entry);
        }
        Some(grid)
    }

    /// Stores the program without the tests of atoms that do not change on the box, and returns where it starts. Tests
    /// only lead to earlier tests, so one pass in order suffices; only what the entry reaches is kept.
    fn specialise(&mut self, program: &Membership, boxes: &[(f64, f64)]) -> u32 {
        let decided: Vec<Option<bool>> = (0..program.atoms.len()).map(|id| program.decide_on_box(id, boxes)).collect();
        // Where each test leads to: an end, or an undecided test of the original program.
        let mut leads_to: Vec<u32> = Vec::with_capacity(program.tests.len());
        let follow = |leads_to: &[u32], target: u32| match target {
            ACCEPT | REJECT => target,
            test => leads_to[test as usize],
        };
        for (at, test) in program.tests.iter().enumerate() {
            let (yes, no) = (follow(&leads_to, test.on_true), follow(&leads_to, test.on_false));
            let known = match test.subject {
                Subject::Atom(id) => decided[id as usize],
                Subject::Boolean(_) => None,
            };
            leads_to.push(match known {
                Some(true) => yes,
                Some(false) => no,
                None if yes == no => yes,
                None => at as u32,
            });
        }
        let start = follow(&leads_to, program.entry);
        if start == ACCEPT || start == REJECT {
            return start;
        }
        // Tests that are reached are copied in order, so that their targets again come before them.
        let mut reached = vec![false; program.tests.len()];
        reached[start as usize] = true;
        for at in (0..=start as usize).rev().filter(|at| leads_to[*at] == *at as u32) {
            if reached[at] {
                for target in [program.tests[at].on_true, program.tests[at].on_false] {
                    match follow(&leads_to, target) {
                        ACCEPT | REJECT => {}
                        next => reached[next as usize] = true,
                    }
                }
            }
        }
        let mut moved = vec![0u32; start as usize + 1];
        for at in (0..=start as usize).filter(|at| reached[*at]) {
            let test = program.tests[at];
            let target = |to: u32| match follow(&leads_to, to) {
                end @ (ACCEPT | REJECT) => end,
                next => moved[next as usize],
            };
            let copy = Test { on_true: target(test.on_true), on_false: target(test.on_false), ..test };
            moved[at] = self.tests.len() as u32;
            self.tests.push(copy);
        }
        moved[start as usize]
    }

    #[inline]
    pub fn contains(&self, program: &Membership, point: &[f64]) -> bool {
        let (mut index, mut stride) = (0, 1);
        for (axis, x) in self.axes.iter().zip(point) {
            match axis.bin(*x) {
                Some(bin) => index += bin * stride,
                None => return false,
            }
            stride *= axis.bins;
        }
        match self.entries[index] {
            ACCEPT => true,
            REJECT => false,
            entry => program.run_from(&self.tests, entry, point, &[], &mut 0),
        }
    }
}

impl Membership {
    /// The truth of an atom on a box (centre and half-width per axis), or nothing if it may change inside the box.
    fn decide_on_box(&self, id: usize, boxes: &[(f64, f64)]) -> Option<bool> {
        let atom = &self.atoms[id];
        let normal = &self.normals[id * self.dimension..(id + 1) * self.dimension];
        let (mut value, mut magnitude, mut swing) = (-atom.offset, atom.offset.abs(), 0.0);
        for (a, (centre, half)) in normal.iter().zip(boxes) {
            value += a * centre;
            magnitude += (a * centre).abs() + (a * half).abs();
            swing += a.abs() * half;
        }
        let reach = swing + magnitude * (self.dimension as f64 + 6.0) * f64::EPSILON + f64::MIN_POSITIVE;
        if value > reach {
            Some(atom.relation.holds(std::cmp::Ordering::Greater))
        } else if value < -reach {
            Some(atom.relation.holds(std::cmp::Ordering::Less))
        } else {
            None
        }
    }
}
