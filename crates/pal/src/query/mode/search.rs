//! Best-first branch and bound.
//!
//! In every round the [`BATCH`] nodes with the largest bounds are cut in two, and the halves are examined on all cores
//! against the incumbent of the round before. The results are then taken in order, so that the number of threads
//! changes nothing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

use rayon::prelude::*;

use super::chebyshev_basis::ChebyshevBasis;
use super::enclosure::PolynomialEnclosure;
use super::incumbent::Incumbent;
use super::node::{Examination, Examiner, ModeNode};
use super::{Mode, ModeOptions, ModeProblem, ModeStop};
use crate::density::mesh::ElementIndex;

/// The number of nodes that are cut in one round.
const BATCH: usize = 32;

/// The number of elements that are examined in one round at the beginning.
const FIRST_BATCH: usize = 64;

/// The number of rounds without any point that satisfies the constraint after which the search gives up.
const BLIND_ROUNDS: usize = 64;

/// Magnitudes of densities that are left as they are. Others are scaled, so that squares and small terms stay in the
/// range of float64.
const PLAIN: std::ops::Range<f64> = 1e-100..1e100;

/// A node that waits to be cut; the one with the larger bound comes first, then the older one.
struct OpenNode {
    node: ModeNode,
    number: usize,
}

impl Ord for OpenNode {
    fn cmp(&self, other: &Self) -> Ordering {
        self.node.upper.total_cmp(&other.node.upper).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for OpenNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OpenNode {}

/// The state of the search.
struct BranchAndBound {
    best: Option<Incumbent>,
    heap: BinaryHeap<OpenNode>,
    /// The largest bound of the nodes that will not be cut any further.
    done: f64,
    nodes: usize,
    /// The largest sum of magnitudes of coefficients on the bin of an element.
    size: f64,
}

/// Finds the mode; [`super::search`] is its public face.
pub(super) fn run(problem: &ModeProblem, options: &ModeOptions) -> Option<Mode> {
    let start = Instant::now();
    let grid = &problem.mesh.grid;
    if problem.mesh.elements.is_empty() || grid.dimension() == 0 {
        return None;
    }
    let largest = problem.weights.iter().copied().fold(0.0, f64::max);
    let mut exponent = exponent_of(largest);
    let mut examiner = Examiner {
        problem,
        basis: ChebyshevBasis::new(problem.functions.chebyshev_exponents()),
        weights: scaled(problem.weights, -exponent),
        gap: options.gap.max(0.0),
        positions: grid.axes().iter().map(|axis| axis.positions()).collect(),
    };
    let mut search = BranchAndBound::begin(&examiner);
    if search.size > 0.0 && !PLAIN.contains(&search.size) {
        exponent += exponent_of(search.size);
        examiner.weights = scaled(problem.weights, -exponent);
        search = BranchAndBound::begin(&examiner);
    }
    let stop = search.run(&examiner, options, start);
    search.finish(exponent, stop)
}

impl BranchAndBound {
    /// Examines all elements.
    fn begin(examiner: &Examiner) -> BranchAndBound {
        let mut search = BranchAndBound { best: None, heap: BinaryHeap::new(), done: 0.0, nodes: 0, size: 0.0 };
        let elements = &examiner.problem.mesh.elements;
        let runs: Vec<&[_]> = elements.chunk_by(|a, b| a.bin == b.bin).collect();
        let mut indices = examiner.problem.mesh.element_indices();
        for runs in runs.chunks(FIRST_BATCH) {
            let enclosures: Vec<PolynomialEnclosure> =
                runs.par_iter().map(|run| examiner.enclosure(&run[0].bin)).collect();
            let of_run = |(run, enclosure): (&&[_], _)| std::iter::repeat_n(enclosure, run.len());
            let enclosures = runs.iter().zip(&enclosures).flat_map(of_run);
            let roots: Vec<(&PolynomialEnclosure, ElementIndex)> = enclosures.zip(indices.by_ref()).collect();
            for roots in roots.chunks(FIRST_BATCH) {
                let best = search.value();
                let examine = |(enclosure, element): &(&PolynomialEnclosure, ElementIndex)| {
                    examiner.root(*element, enclosure, best)
                };
                let examinations: Vec<Examination> = roots.par_iter().map(examine).collect();
                for (examination, (enclosure, _)) in examinations.into_iter().zip(roots) {
                    let size = enclosure.coefficients.iter().map(|c| c.abs()).sum::<f64>();
                    search.size = search.size.max(size);
                    search.take(examination);
                }
            }
        }
        search
    }

    fn value(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.value)
    }

    fn take(&mut self, examination: Examination) {
        self.nodes += 1;
        if let Some(incumbent) = examination.incumbent
            && self.value().is_none_or(|best| incumbent.value > best)
        {
            self.best = Some(incumbent);
        }
        match examination.open {
            Some(node) => self.heap.push(OpenNode { node, number: self.nodes }),
            None => self.done = self.done.max(examination.upper),
        }
    }

    fn run(&mut self, examiner: &Examiner, options: &ModeOptions, start: Instant) -> ModeStop {
        let certified = |upper: f64, best: Option<f64>| best.is_some_and(|best| upper <= (1.0 + examiner.gap) * best);
        for round in 0.. {
            let best = self.value();
            if best.is_none() && round >= BLIND_ROUNDS {
                break;
            }
            match self.heap.peek() {
                Some(open) if !certified(open.node.upper, best) => {}
                _ if certified(self.done, best) => return ModeStop::Certified,
                _ => return ModeStop::Precision,
            }
            if options.time.is_some_and(|limit| start.elapsed() >= limit) {
                return ModeStop::TimeLimit;
            }
            let room = options.nodes.map_or(BATCH, |limit| (limit.saturating_sub(self.nodes) / 2).min(BATCH));
            if room == 0 {
                return ModeStop::NodeLimit;
            }
            let mut batch = Vec::with_capacity(room);
            while batch.len() < room
                && let Some(open) = self.heap.pop()
            {
                if certified(open.node.upper, best) {
                    self.done = self.done.max(open.node.upper);
                    self.heap.clear();
                    break;
                }
                batch.push(open.node);
            }
            let examine = |node: &ModeNode| examiner.split(node).map(|shape| examiner.part(node, shape, best));
            let examinations: Vec<[Examination; 2]> = batch.par_iter().map(examine).collect();
            examinations.into_iter().flatten().for_each(|examination| self.take(examination));
        }
        ModeStop::Precision
    }

    fn finish(self, exponent: i32, stop: ModeStop) -> Option<Mode> {
        let best = self.best?;
        let open = self.heap.peek().map_or(0.0, |open| open.node.upper);
        let upper = open.max(self.done).max(best.value);
        let shift = f64::from(exponent) * std::f64::consts::LN_2;
        Some(Mode {
            point: best.point,
            log_density: best.value.ln() + shift,
            log_upper: upper.ln() + shift,
            gap: if upper > best.value { upper / best.value - 1.0 } else { 0.0 },
            nodes: self.nodes,
            stop,
        })
    }
}

/// The binary exponent of a positive finite number; 0 for other numbers.
fn exponent_of(x: f64) -> i32 {
    if x > 0.0 && x.is_finite() { x.log2().floor() as i32 } else { 0 }
}

/// Weights times a power of two, in two steps because the power may be outside of the range of float64.
fn scaled(weights: &[f64], exponent: i32) -> Vec<f64> {
    let half = exponent / 2;
    weights.iter().map(|w| w * 2f64.powi(half) * 2f64.powi(exponent - half)).collect()
}
