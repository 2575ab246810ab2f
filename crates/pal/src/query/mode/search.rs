//! Best-first branch and bound.
//!
//! In every round the [`BATCH`] nodes with the largest bounds are cut in two, and the parts are examined on all cores against the best
//! value of the round before. The parts are then taken in their order, so that the number of threads changes nothing.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

use rayon::prelude::*;

use super::basis::Basis;
use super::node::{Context, Node, Report};
use super::place::Candidate;
use super::series::Series;
use super::{Mode, ModeOptions, ModeStop, Problem};
use crate::density::mesh::ElementIndex;

/// Nodes cut in one round.
const BATCH: usize = 32;

/// Elements examined in one round at the beginning.
const FIRST_BATCH: usize = 64;

/// Rounds without any double that satisfies the constraint before the search gives up.
const BLIND_ROUNDS: usize = 64;

/// Sizes of densities that are left as they are; others are scaled, lest squares and small parts leave the range of doubles.
const PLAIN: std::ops::Range<f64> = 1e-100..1e100;

/// An open node; the larger bound comes first, then the older node.
struct Open {
    node: Node,
    number: usize,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.node.upper.total_cmp(&other.node.upper).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

/// What is known so far.
struct Progress {
    best: Option<Candidate>,
    heap: BinaryHeap<Open>,
    /// The largest bound of nodes that are done with.
    done: f64,
    nodes: usize,
    /// The largest sum of coefficients on an element's bin.
    size: f64,
}

/// See [`super::search`].
pub(super) fn run(problem: &Problem, options: &ModeOptions) -> Option<Mode> {
    let start = Instant::now();
    let grid = &problem.mesh.grid;
    if problem.mesh.elements.is_empty() || grid.dimension() == 0 {
        return None;
    }
    let largest = problem.weights.iter().copied().fold(0.0, f64::max);
    let mut exponent = exponent_of(largest);
    let mut context = Context {
        problem,
        basis: Basis::new(problem.functions.chebyshev_exponents()),
        weights: scaled(problem.weights, -exponent),
        gap: options.gap.max(0.0),
        positions: grid.axes().iter().map(|axis| axis.positions()).collect(),
    };
    let mut progress = Progress::begin(&context);
    if progress.size > 0.0 && !PLAIN.contains(&progress.size) {
        exponent += exponent_of(progress.size);
        context.weights = scaled(problem.weights, -exponent);
        progress = Progress::begin(&context);
    }
    let stop = progress.run(&context, options, start);
    progress.finish(exponent, stop)
}

impl Progress {
    /// Examines all elements.
    fn begin(context: &Context) -> Progress {
        let mut progress = Progress { best: None, heap: BinaryHeap::new(), done: 0.0, nodes: 0, size: 0.0 };
        let elements = &context.problem.mesh.elements;
        let runs: Vec<&[_]> = elements.chunk_by(|a, b| a.bin == b.bin).collect();
        let mut indices = context.problem.mesh.element_indices();
        for runs in runs.chunks(FIRST_BATCH) {
            let series: Vec<Series> = runs.par_iter().map(|run| context.series(&run[0].bin)).collect();
            let of_run = |(run, series): (&&[_], _)| std::iter::repeat_n(series, run.len());
            let series = runs.iter().zip(&series).flat_map(of_run);
            let roots: Vec<(&Series, ElementIndex)> = series.zip(indices.by_ref()).collect();
            for roots in roots.chunks(FIRST_BATCH) {
                let best = progress.value();
                let examine = |(series, element): &(&Series, ElementIndex)| context.root(*element, series, best);
                let reports: Vec<Report> = roots.par_iter().map(examine).collect();
                for (report, (series, _)) in reports.into_iter().zip(roots) {
                    let size = series.coefficients.iter().map(|c| c.abs()).sum::<f64>();
                    progress.size = progress.size.max(size);
                    progress.take(report);
                }
            }
        }
        progress
    }

    fn value(&self) -> Option<f64> {
        self.best.as_ref().map(|best| best.value)
    }

    fn take(&mut self, report: Report) {
        self.nodes += 1;
        if let Some(candidate) = report.candidate
            && self.value().is_none_or(|best| candidate.value > best)
        {
            self.best = Some(candidate);
        }
        match report.open {
            Some(node) => self.heap.push(Open { node, number: self.nodes }),
            None => self.done = self.done.max(report.upper),
        }
    }

    fn run(&mut self, context: &Context, options: &ModeOptions, start: Instant) -> ModeStop {
        let certified = |upper: f64, best: Option<f64>| best.is_some_and(|best| upper <= (1.0 + context.gap) * best);
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
            let examine = |node: &Node| context.split(node).map(|shape| context.part(node, shape, best));
            let reports: Vec<[Report; 2]> = batch.par_iter().map(examine).collect();
            reports.into_iter().flatten().for_each(|report| self.take(report));
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

/// The exponent of two of a number; 0 for numbers that have none.
fn exponent_of(x: f64) -> i32 {
    if x > 0.0 && x.is_finite() { x.log2().floor() as i32 } else { 0 }
}

/// Weights times a power of two, in two steps because the power may be outside of the range of doubles.
fn scaled(weights: &[f64], exponent: i32) -> Vec<f64> {
    let half = exponent / 2;
    weights.iter().map(|w| w * 2f64.powi(half) * 2f64.powi(exponent - half)).collect()
}
