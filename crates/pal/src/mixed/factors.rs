//! Probabilities of sets of assignments and their derivatives with respect to logits, for one row per lane: what the
//! fused pass of a kind of family asks for.
//!
//! ```text
//! P_mg  =  probability of the assignments of part g under component m,      t_m  =  that of the assignment of a point
//! ```

use std::sync::Arc;

use super::diagram::{AssignmentDiagram, AssignmentSet};
use crate::density::lanes::{LANES, LaneWork, Lanes, Simd, dispatch, one_by_one};
use crate::density::parts::{FactorLogs, PartCotangents, PartFactors};

/// The largest number that the probability of a set counts as 0 below.
const NO_PROBABILITY: f64 = 1e-290;

/// The sets of the parts of a support, with the nodes of the diagram that they lead to and no others.
#[derive(Clone, Debug)]
pub(super) struct DiagramFactors {
    variables: usize,
    /// For each node but the first two, its variable and where its branches are.
    nodes: Vec<[usize; 3]>,
    /// For each part the node of its set.
    parts: Vec<usize>,
}

impl DiagramFactors {
    pub fn new(diagram: &AssignmentDiagram, sets: &[AssignmentSet]) -> DiagramFactors {
        let (nodes, parts) = diagram.reachable(sets);
        DiagramFactors { variables: diagram.variables(), nodes, parts }
    }

    /// What is kept of a component: the probabilities of both values of all variables, those of all sets, and one over
    /// the largest of a part.
    fn places(&self) -> [usize; 4] {
        let k = self.variables;
        [k, 2 * k, 2 * k + self.nodes.len() + 2, 2 * k + self.nodes.len() + 3]
    }
}

impl PartFactors for DiagramFactors {
    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn logits(&self) -> usize {
        self.variables
    }

    fn memory(&self) -> [usize; 2] {
        [self.places()[3], self.nodes.len() + 2]
    }

    fn factors(
        &self,
        logits: &[Lanes<f64>],
        truth: &[Lanes<f64>],
        kept: &mut [Lanes<f64>],
        factors: &mut [Lanes<f64>],
    ) -> FactorLogs {
        dispatch(Probabilities { of: self, logits, truth, kept, factors })
    }

    fn pull_back(
        &self,
        truth: &[Lanes<f64>],
        kept: &[Lanes<f64>],
        by: PartCotangents<'_>,
        scratch: &mut [Lanes<f64>],
        gradient: &mut [Lanes<f64>],
    ) {
        dispatch(LogitGradient { of: self, truth, kept, by, scratch, gradient });
    }
}

struct Probabilities<'p> {
    of: &'p DiagramFactors,
    logits: &'p [Lanes<f64>],
    truth: &'p [Lanes<f64>],
    kept: &'p mut [Lanes<f64>],
    factors: &'p mut [Lanes<f64>],
}

impl LaneWork for Probabilities<'_> {
    type Output = FactorLogs;

    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    fn run<S: Simd>(self, _: S) -> FactorLogs {
        let Probabilities { of, logits, truth, kept, factors } = self;
        let [no_start, values_start, scale_at, _] = of.places();
        let (yes, rest) = kept.split_at_mut(no_start);
        let (no, rest) = rest.split_at_mut(no_start);
        let (values, scale) = rest.split_at_mut(scale_at - values_start);
        // With e = exp(-|z|): the more probable value has 1 / (1 + e), the other one e / (1 + e).
        let (mut log, mut product) = (Lanes::zero(), Lanes::splat(1.0));
        for variable in 0..of.variables {
            let z = one_by_one(logits)[variable];
            let e = (Lanes::zero() - z.abs()).exp();
            let sum = e + Lanes::splat(1.0);
            let (large, small) = (sum.reciprocal(), e * sum.reciprocal());
            yes[variable] = choose(z, large, small);
            no[variable] = choose(z, small, large);
            // log sigmoid(s) = min(s, 0) - log(1 + e), with s = z or -z. The factors are at most 2: 512 of them fit.
            let sign = truth[variable].times(2.0) - Lanes::splat(1.0);
            log = log - (Lanes::zero() - z * sign).max(Lanes::zero());
            product = product * sum;
        }
        values[0] = Lanes::zero();
        values[1] = Lanes::splat(1.0);
        for (at, [variable, low, high]) in of.nodes.iter().enumerate() {
            let mut value = no[*variable] * values[*low];
            value.add_product(yes[*variable], values[*high]);
            one_by_one(&mut *values)[at + 2] = value;
        }
        let mut largest = Lanes::splat(NO_PROBABILITY);
        for part in &of.parts {
            largest = largest.max(values[*part]);
        }
        scale[0] = largest.reciprocal();
        for (factor, part) in factors.iter_mut().zip(&of.parts) {
            *factor = values[*part] * scale[0];
        }
        FactorLogs { value: log - product.ln(), scale: largest.ln() }
    }
}

/// The first numbers where z is not negative, else the second ones.
#[inline(always)]
#[allow(clippy::needless_range_loop)]
fn choose(z: Lanes<f64>, first: Lanes<f64>, second: Lanes<f64>) -> Lanes<f64> {
    let mut chosen = second;
    for lane in 0..LANES {
        chosen.0[lane] = if z.0[lane] >= 0.0 { first.0[lane] } else { second.0[lane] };
    }
    chosen
}

struct LogitGradient<'p> {
    of: &'p DiagramFactors,
    truth: &'p [Lanes<f64>],
    kept: &'p [Lanes<f64>],
    by: PartCotangents<'p>,
    scratch: &'p mut [Lanes<f64>],
    gradient: &'p mut [Lanes<f64>],
}

impl LaneWork for LogitGradient<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    fn run<S: Simd>(self, _: S) {
        let LogitGradient { of, truth, kept, by, scratch, gradient } = self;
        let [no_start, values_start, scale_at, _] = of.places();
        let (yes, no) = (&kept[..no_start], &kept[no_start..values_start]);
        let (values, scale) = (&kept[values_start..scale_at], kept[scale_at]);
        // With respect to the probability of a node; the derivative with respect to a logit has yes no as a factor.
        scratch.fill(Lanes::zero());
        for (part, by) in of.parts.iter().zip(by.factors) {
            scratch[*part].add_product(*by, scale);
        }
        gradient.fill(Lanes::zero());
        for (at, [variable, low, high]) in of.nodes.iter().enumerate().rev() {
            let g = scratch[at + 2];
            gradient[*variable].add_product(g, values[*high] - values[*low]);
            scratch[*high].add_product(g, yes[*variable]);
            scratch[*low].add_product(g, no[*variable]);
        }
        for variable in 0..of.variables {
            let gradient = one_by_one(&mut gradient[variable]);
            // The derivative of the logarithm of the value: 1 - yes or -yes.
            let slope = truth[variable] * no[variable] - (Lanes::splat(1.0) - truth[variable]) * yes[variable];
            *gradient = *gradient * (yes[variable] * no[variable]) + slope * by.log_value;
        }
    }
}

/// What a kernel needs of the Boolean variables of a support.
pub(super) fn part_factors(diagram: &AssignmentDiagram, sets: &[AssignmentSet]) -> Arc<dyn PartFactors> {
    Arc::new(DiagramFactors::new(diagram, sets))
}
