//! The mode of a mixed density, with a certificate.
//!
//! On a part with the assignments A, no density is larger than that of the mixture in which every component has its own
//! most probable assignment of A:
//!
//! ```text
//! p(y, b)  <=  sum_m  exp(l_m) q_m(y) max over b' in A of prod t_m(b')
//! ```
//!
//! The certified mode of that mixture over the reals bounds the part from above. Where all components agree on the most
//! probable assignment the bound is a value of the density; where they do not, the part is divided by a variable on which
//! they disagree, best first. The search ends when the best value found and the largest bound agree.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Instant;

use super::density::MixedDensity;
use crate::density::Density;
use crate::query::{Mode, ModeOptions, ModeStop, QueryError};

/// The largest number of times that assignments are divided.
const MAX_DIVISIONS: usize = 2000;

/// Some assignments of a part, with an upper bound of the log-density.
struct AssignmentNode {
    part: usize,
    fixed: Vec<Option<bool>>,
    log_upper: f64,
    /// A variable on which components disagree; `None` if the bound is that of one assignment.
    divide: Option<usize>,
    /// The order of creation, so that the order of equal bounds is fixed.
    number: usize,
}

impl Ord for AssignmentNode {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.log_upper.total_cmp(&other.log_upper).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for AssignmentNode {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AssignmentNode {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for AssignmentNode {}

/// The search for a mode: the best point so far and what is left to examine.
struct ModeSearch<'d> {
    density: &'d MixedDensity,
    options: ModeOptions,
    best: Option<(Vec<f64>, f64)>,
    open: BinaryHeap<AssignmentNode>,
    nodes: usize,
    number: usize,
    stop: ModeStop,
}

impl MixedDensity {
    /// The point and assignment of largest density, with an upper bound of the density of all others. The point has the
    /// real variables first, then a 0 or 1 for each Boolean one.
    pub fn mode(&self, options: &ModeOptions) -> Result<Mode, QueryError> {
        if let Some(chart) = self.support.chart() {
            let inner = self.on(Arc::new(self.support.in_free_coordinates())).mode(options)?;
            let (free, booleans) = inner.point.split_at(chart.dimension());
            let point = [chart.fill(free), booleans.to_vec()].concat();
            let factor = chart.log_factor();
            let (log_density, log_upper) = (inner.log_density - factor, inner.log_upper - factor);
            return Ok(Mode { point, log_density, log_upper, ..inner });
        }
        let started = Instant::now();
        let mut search = ModeSearch {
            density: self,
            options: *options,
            best: None,
            open: BinaryHeap::new(),
            nodes: 0,
            number: 0,
            stop: ModeStop::Certified,
        };
        for part in 0..self.support.parts.len() {
            search.examine(part, vec![None; self.support.booleans().len()])?;
        }
        // What is settled and can be no better than this is not examined again.
        let mut settled = f64::NEG_INFINITY;
        let mut divisions = 0;
        while let Some(node) = search.open.pop() {
            let best = search.best.as_ref().map_or(f64::NEG_INFINITY, |best| best.1);
            let Some(variable) = node.divide.filter(|_| node.log_upper > best + options.gap.ln_1p()) else {
                settled = settled.max(node.log_upper);
                continue;
            };
            let late = options.time.is_some_and(|limit| started.elapsed() > limit);
            if divisions >= MAX_DIVISIONS || late {
                search.stop = if late { ModeStop::TimeLimit } else { ModeStop::NodeLimit };
                settled = settled.max(node.log_upper);
                break;
            }
            divisions += 1;
            for value in [false, true] {
                let mut fixed = node.fixed.clone();
                fixed[variable] = Some(value);
                search.examine(node.part, fixed)?;
            }
        }
        let (point, log_density) = search.best.ok_or(QueryError::Impossible)?;
        let log_upper = settled.max(log_density);
        let gap = (log_upper - log_density).exp_m1();
        let stop = match search.stop {
            ModeStop::Certified if !(gap <= options.gap) => ModeStop::Precision,
            _ if gap <= options.gap => ModeStop::Certified,
            stop => stop,
        };
        Ok(Mode { point, log_density, log_upper, gap, nodes: search.nodes, stop })
    }
}

impl ModeSearch<'_> {
    /// Bounds the density on some assignments of a part, and keeps the best point that is met on the way.
    fn examine(&mut self, part: usize, fixed: Vec<Option<bool>>) -> Result<(), QueryError> {
        let MixedDensity { support, functions, log_weights, odds, .. } = self.density;
        let set = support.parts[part].assignments;
        let largest: Vec<_> = odds.iter().map(|odds| support.diagram.most_probable(set, odds, &fixed)).collect();
        let mut candidates: Vec<Vec<bool>> = Vec::new();
        let mut bounds = Vec::with_capacity(largest.len());
        for (weight, largest) in log_weights.iter().zip(largest) {
            let Some((assignment, log)) = largest else { return Ok(()) };
            bounds.push(weight + log);
            if *weight > f64::NEG_INFINITY && !candidates.contains(&assignment) {
                candidates.push(assignment);
            }
        }
        let bound = Density::new(support.parts[part].support.clone(), functions.clone(), bounds, None);
        let mode = bound.mode(&self.options)?;
        self.nodes += mode.nodes;
        if mode.stop != ModeStop::Certified {
            self.stop = mode.stop;
        }
        for assignment in &candidates {
            let value = self.density.log_prob_of(&mode.point, assignment)[0];
            if self.best.as_ref().is_none_or(|best| value > best.1) {
                let booleans = assignment.iter().map(|value| f64::from(u8::from(*value)));
                self.best = Some((mode.point.iter().copied().chain(booleans).collect(), value));
            }
        }
        let differs = |variable: &usize| candidates.iter().any(|other| other[*variable] != candidates[0][*variable]);
        let divide = (0..fixed.len()).find(differs);
        self.number += 1;
        self.open.push(AssignmentNode { part, fixed, log_upper: mode.log_upper, divide, number: self.number });
        Ok(())
    }
}
