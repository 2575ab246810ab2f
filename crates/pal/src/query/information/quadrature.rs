//! Sums over the nodes of elements that are halved, for every row by itself, until its rules agree.
//!
//! The integrands are smooth where the densities are positive, and have an infinite second derivative where a square
//! vanishes. The value on an element is that of the best of several Gauss rules, and its error the distance from the
//! others, which is rather the error of the others. The elements with the largest errors are halved until the errors
//! add up to less than the tolerance. Where halving shows that the error of an element was larger than its estimate, the
//! estimates of its halves are enlarged.
//!
//! Where few digits are asked for, and there are many elements, two rules have to do, and the errors of the elements,
//! whose signs differ, add up like independent ones: to the distance of the sums of both rules, and twice the root of
//! the sum of squared errors. For more digits, or with few elements, there are three rules, and magnitudes are added.

use std::borrow::Cow;

use super::at_nodes::{DensityAtNodes, Nodes, logarithms};
use crate::density::cubature::MeshCubature;
use crate::density::gradient::Cotangents;
use crate::density::mesh::{Degree, Element, Mesh};
use crate::query::entropy::{EntropyOptions, halves, rule_nodes};
use crate::query::error::QueryError;

/// A tolerance from which on few digits are asked for.
const FEW_DIGITS: f64 = 1e-4;
/// So many elements are enough for errors that add up like independent ones.
const MANY_ELEMENTS: usize = 100;
/// The largest number of elements that are halved at a time.
const MOST_HALVED: usize = 1024;
/// The largest number of logarithms that a task keeps for the derivatives: they stay in the caches of a processor.
const MOST_KEPT: usize = 1 << 17;

/// The gradients of one row, summed over nodes: of the density and, if there is one, of the other.
pub(super) type RowCotangents = (Cotangents, Option<Cotangents>);

/// What is integrated for one row: `r log r`, or `r (log r - log s)`.
pub(super) struct RowIntegrand<'f> {
    pub side: DensityAtNodes<'f>,
    pub other: Option<DensityAtNodes<'f>>,
    /// The integral of `r` over all elements.
    pub mass: f64,
}

/// An element, or a part of one, with the integral over it.
#[derive(Clone)]
pub(super) struct RowLeaf<'m> {
    element: Cow<'m, Element>,
    value: f64,
    /// The estimate of the error, with a sign if there are two rules.
    error: f64,
    /// The factor by which error estimates are enlarged because that of an ancestor was too small.
    doubt: f64,
}

/// The integral for one row.
pub(super) struct RowSum<'m> {
    pub value: f64,
    pub error: f64,
    /// The sum of the magnitudes on all elements.
    pub size: f64,
    /// The parts of elements that were halved, and which elements these are.
    parts: Vec<RowLeaf<'m>>,
    halved: Vec<bool>,
    /// The logarithms at the nodes of the best rule on all elements, in their order, if they were kept.
    logs: Option<Vec<f64>>,
}

/// Rules on the elements of a mesh, the best one first, and when the work ends.
pub(super) struct RowQuadrature<'m> {
    mesh: &'m Mesh,
    rules: Vec<MeshCubature>,
    options: EntropyOptions,
}

/// Memory for one task.
#[derive(Default)]
struct Buffers {
    points: Vec<f64>,
    weights: Vec<f64>,
    values: Vec<f64>,
    logs: Vec<f64>,
    others: Vec<f64>,
    other_logs: Vec<f64>,
    factors: Vec<f64>,
    other_factors: Vec<f64>,
}

impl RowIntegrand<'_> {
    pub fn sums(&self) -> RowCotangents {
        (self.side.cotangents(), self.other.as_ref().map(DensityAtNodes::cotangents))
    }

    /// The sum over nodes with weights that sum to 1.
    fn sum(&self, nodes: Nodes<'_>, weights: &[f64], buffers: &mut Buffers) -> f64 {
        let Buffers { values, logs, others, other_logs, .. } = buffers;
        self.side.values(nodes, values);
        logarithms(values, logs);
        if let Some(other) = &self.other {
            other.values(nodes, others);
            logarithms(others, other_logs);
            for (i, (log, of_other)) in logs.iter_mut().zip(&*other_logs).enumerate() {
                *log -= if *of_other > f64::NEG_INFINITY { *of_other } else { other.log(nodes, i) };
            }
        }
        // Where r is 0, or so small that it has lost its digits, the limit of r log r is 0.
        let regular = |(r, _): &(&f64, &f64)| **r >= f64::MIN_POSITIVE;
        let terms = values.iter().zip(weights).zip(&*logs).filter(|(pair, _)| regular(pair));
        terms.map(|((r, weight), log)| weight * r * log).sum()
    }

    /// Adds what nodes contribute to the derivatives of `r log r`, given its logarithms there and their mean over all
    /// elements.
    fn add_entropy_gradient(
        &self,
        nodes: Nodes<'_>,
        (weights, logs): (&[f64], &[f64]),
        mean: f64,
        factors: &mut Vec<f64>,
        sums: &mut Cotangents,
    ) {
        factors.clear();
        factors.extend(logs.iter().zip(weights).map(|(log, weight)| match *log {
            // Where a density of squares vanishes, its derivatives do as well.
            f64::NEG_INFINITY => 0.0,
            log => -weight / self.mass * (log - mean),
        }));
        self.side.add_gradient(nodes, factors, sums);
    }

    /// Adds what nodes contribute to the derivatives, given the mean of the logarithms over all elements.
    fn add_gradient(
        &self,
        nodes: Nodes<'_>,
        weights: &[f64],
        mean: f64,
        buffers: &mut Buffers,
        (sums, other_sums): &mut RowCotangents,
    ) {
        let Buffers { values, logs, others, other_logs, factors, other_factors, .. } = buffers;
        self.side.values(nodes, values);
        logarithms(values, logs);
        let Some(other) = &self.other else {
            return self.add_entropy_gradient(nodes, (weights, logs), mean, factors, sums);
        };
        factors.clear();
        other.values(nodes, others);
        logarithms(others, other_logs);
        other_factors.clear();
        for (i, weight) in weights.iter().enumerate() {
            let (log, of_other, weight) = (logs[i], other_logs[i], weight / self.mass);
            let regular = log > f64::NEG_INFINITY && of_other > f64::NEG_INFINITY;
            factors.push(if regular { weight * (log - of_other - mean) } else { 0.0 });
            other_factors.push(if regular { -weight * (values[i] / others[i]) } else { 0.0 });
        }
        self.side.add_gradient(nodes, factors, sums);
        if let Some(sums) = other_sums {
            other.add_gradient(nodes, other_factors, sums);
        }
    }
}

impl<'m> RowQuadrature<'m> {
    /// Chooses rules for the degree of the densities and the tolerance, and refuses what would take too long.
    pub fn new(mesh: &'m Mesh, degree: Degree, options: &EntropyOptions) -> Result<RowQuadrature<'m>, QueryError> {
        let n = mesh.dimension();
        let few = options.tolerance >= FEW_DIGITS && mesh.elements.len() >= MANY_ELEMENTS;
        let nodes = rule_nodes(n, degree.axis, few);
        let rule = |nodes: usize| {
            let degree = 2 * (nodes - 1);
            MeshCubature::new(n, Degree { total: degree, axis: degree })
        };
        if !MeshCubature::feasible(n, Degree { total: 2 * (nodes - 1), axis: 2 * (nodes - 1) }) {
            let needed = (nodes as f64).powi(n as i32) * mesh.elements.len() as f64;
            return Err(QueryError::Evaluations { needed, limit: options.evaluations });
        }
        let rules: Vec<MeshCubature> = (0..if few { 2 } else { 3 }).map(|less| rule(nodes - less)).collect();
        let needed: f64 = mesh.elements.iter().map(|element| count(&rules, element) as f64).sum();
        if needed > options.evaluations as f64 {
            return Err(QueryError::Evaluations { needed, limit: options.evaluations });
        }
        Ok(RowQuadrature { mesh, rules, options: *options })
    }

    /// The integrals for some rows. With `with_gradient` they are going to be differentiated.
    pub fn integrate(&self, integrands: &[RowIntegrand<'_>], with_gradient: bool) -> Vec<RowSum<'m>> {
        let (count, mut buffers) = (self.mesh.elements.len(), Buffers::default());
        let mut kept = (with_gradient && self.can_keep_logs(integrands)).then(|| vec![Vec::new(); integrands.len()]);
        let (mut values, mut errors) = (vec![0.0; count * integrands.len()], vec![0.0; count * integrands.len()]);
        let mut sums = vec![0.0; self.rules.len() * integrands.len()];
        for (at, element) in self.mesh.elements.iter().enumerate() {
            self.estimate(integrands, element, &mut buffers, &mut sums, kept.as_deref_mut());
            for (row, sums) in sums.chunks_exact(self.rules.len()).enumerate() {
                (values[row * count + at], errors[row * count + at]) = (sums[0], difference(sums));
            }
        }
        let rows = integrands.iter().zip(values.chunks(count.max(1)).zip(errors.chunks(count.max(1))));
        let mut results: Vec<RowSum<'m>> =
            rows.map(|(integrand, (values, errors))| self.refine(integrand, values, errors, &mut buffers)).collect();
        results.iter_mut().zip(kept.into_iter().flatten()).for_each(|(result, logs)| result.logs = Some(logs));
        results
    }

    /// Whether there are few enough logarithms, of entropies, to keep them until they are differentiated.
    fn can_keep_logs(&self, integrands: &[RowIntegrand<'_>]) -> bool {
        let nodes: usize = self.mesh.elements.iter().map(|element| count(&self.rules[..1], element)).sum();
        nodes * integrands.len() <= MOST_KEPT && integrands.iter().all(|integrand| integrand.other.is_none())
    }

    /// Computes, for every integrand, the integral over an element by all rules, and appends the logarithms at the nodes
    /// of the best one to those that are kept.
    fn estimate(
        &self,
        integrands: &[RowIntegrand<'_>],
        element: &Element,
        buffers: &mut Buffers,
        sums: &mut [f64],
        mut kept: Option<&mut [Vec<f64>]>,
    ) {
        sums.fill(0.0);
        let mut points = std::mem::take(&mut buffers.points);
        for (rule, cubature) in self.rules.iter().enumerate() {
            cubature.visit_blocks(element, &mut points, |points, weights| {
                let nodes = Nodes { bin: &element.bin, points, count: weights.len() };
                for (row, integrand) in integrands.iter().enumerate() {
                    sums[row * self.rules.len() + rule] += element.volume * integrand.sum(nodes, weights, buffers);
                    if let Some(kept) = kept.as_deref_mut().filter(|_| rule == 0) {
                        kept[row].extend_from_slice(&buffers.logs);
                    }
                }
            });
        }
        buffers.points = points;
    }

    /// Halves the elements with the largest errors until their sum is small enough.
    fn refine(
        &self,
        integrand: &RowIntegrand<'_>,
        values: &[f64],
        errors: &[f64],
        buffers: &mut Buffers,
    ) -> RowSum<'m> {
        let mut sum = RowSum {
            value: values.iter().sum(),
            error: self.total(errors.iter().copied()),
            size: values.iter().map(|value| value.abs()).sum(),
            parts: Vec::new(),
            halved: vec![false; values.len()],
            logs: None,
        };
        let tolerance = self.options.tolerance * integrand.mass;
        // A tolerance below what rounding leaves is never reached.
        let goal = tolerance.max(8.0 * f64::EPSILON * (integrand.mass + sum.size));
        if sum.error <= goal || !sum.value.is_finite() {
            return sum;
        }
        let whole = |(at, element): (usize, &'m Element)| RowLeaf {
            element: Cow::Borrowed(element),
            value: values[at],
            error: errors[at],
            doubt: 1.0,
        };
        let mut leaves: Vec<(RowLeaf<'m>, usize)> =
            self.mesh.elements.iter().enumerate().map(|(at, element)| (whole((at, element)), at)).collect();
        let mut left = self.options.evaluations / count(&self.rules, &self.mesh.elements[0]).max(1);
        let mut sums = vec![0.0; self.rules.len()];
        while sum.error > goal && left > 1 && sum.value.is_finite() {
            // Stable, so that the order of equal errors is fixed.
            leaves.sort_by(|a, b| b.0.error.abs().total_cmp(&a.0.error.abs()));
            let wanted = self.largest(leaves.iter().map(|(leaf, _)| leaf.error), 0.5 * goal);
            let most = wanted.clamp(1 + leaves.len() / 16, MOST_HALVED).min(leaves.len()).min(left / 2);
            left -= 2 * most;
            let worst: Vec<(RowLeaf<'m>, usize)> = leaves.drain(..most).collect();
            for (leaf, at) in worst {
                sum.halved[at] = true;
                let estimates = halves(&leaf.element).map(|half| {
                    self.estimate(std::slice::from_ref(integrand), &half, buffers, &mut sums, None);
                    (half, sums[0], difference(&sums))
                });
                let missed = (estimates[0].1 + estimates[1].1 - leaf.value).abs();
                let more = if missed > leaf.error.abs() { (missed / leaf.error.abs()).min(4.0) } else { 1.0 };
                let doubt = more * leaf.doubt;
                for (half, value, error) in estimates {
                    leaves.push((RowLeaf { element: Cow::Owned(half), value, error: error * doubt, doubt }, at));
                }
            }
            // Summed again in a fixed order: differences would leave rounding errors.
            sum.value = leaves.iter().map(|(leaf, _)| leaf.value).sum();
            sum.error = self.total(leaves.iter().map(|(leaf, _)| leaf.error));
            sum.size = leaves.iter().map(|(leaf, _)| leaf.value.abs()).sum();
        }
        sum.parts =
            leaves.into_iter().map(|(leaf, _)| leaf).filter(|leaf| matches!(leaf.element, Cow::Owned(_))).collect();
        sum
    }

    /// The error of a sum, given those of its terms.
    fn total(&self, errors: impl Iterator<Item = f64>) -> f64 {
        if self.rules.len() > 2 {
            return errors.map(f64::abs).sum();
        }
        let (sum, squares) = errors.fold((0.0, 0.0), |(sum, squares), error| (sum + error, squares + error * error));
        f64::abs(sum) + 2.0 * f64::sqrt(squares)
    }

    /// How many of the largest errors have to go so that the others add up to no more than a bound. They are given in
    /// falling order.
    fn largest(&self, errors: impl ExactSizeIterator<Item = f64> + DoubleEndedIterator, bound: f64) -> usize {
        let (count, two) = (errors.len(), self.rules.len() == 2);
        let (mut sum, bound) = (0.0, if two { (0.5 * bound).powi(2) } else { bound });
        let small = errors.rev().position(|error| {
            sum += if two { error * error } else { error.abs() };
            sum > bound
        });
        small.map_or(0, |small| count - small)
    }

    /// Adds the derivatives of all integrals, at the nodes that their values are sums over.
    pub fn differentiate(&self, integrands: &[RowIntegrand<'_>], results: &[RowSum<'m>], sums: &mut [RowCotangents]) {
        let mut buffers = Buffers::default();
        let mean = |row: usize| results[row].value / integrands[row].mass;
        let mut rows: Vec<(usize, &RowIntegrand<'_>, f64, &mut RowCotangents)> = Vec::new();
        let all = integrands.iter().zip(sums).enumerate();
        rows.extend(all.map(|(row, (integrand, sums))| (row, integrand, mean(row), sums)));
        // An infinite divergence has no derivatives.
        rows.retain(|(_, _, mean, _)| mean.is_finite());
        let mut visited = 0;
        for (at, element) in self.mesh.elements.iter().enumerate() {
            self.visit_best(element, &mut buffers, |nodes, weights, buffers| {
                let whole = rows.iter_mut().filter(|(row, ..)| !results[*row].halved[at]);
                whole.for_each(|(row, integrand, mean, sums)| match &results[*row].logs {
                    Some(logs) => {
                        let logs = &logs[visited..visited + nodes.count];
                        integrand.add_entropy_gradient(
                            nodes,
                            (weights, logs),
                            *mean,
                            &mut buffers.factors,
                            &mut sums.0,
                        );
                    }
                    None => integrand.add_gradient(nodes, weights, *mean, buffers, sums),
                });
                visited += nodes.count;
            });
        }
        for (row, integrand, mean, sums) in &mut rows {
            for part in &results[*row].parts {
                self.visit_best(&part.element, &mut buffers, |nodes, weights, buffers| {
                    integrand.add_gradient(nodes, weights, *mean, buffers, sums);
                });
            }
        }
    }

    /// Visits the nodes of the best rule on an element, with weights that sum to its volume.
    fn visit_best(
        &self,
        element: &Element,
        buffers: &mut Buffers,
        mut visit: impl FnMut(Nodes<'_>, &[f64], &mut Buffers),
    ) {
        let (mut points, mut scaled) = (std::mem::take(&mut buffers.points), std::mem::take(&mut buffers.weights));
        self.rules[0].visit_blocks(element, &mut points, |points, weights| {
            scaled.clear();
            scaled.extend(weights.iter().map(|weight| weight * element.volume));
            let nodes = Nodes { bin: &element.bin, points, count: weights.len() };
            visit(nodes, &scaled, buffers);
        });
        (buffers.points, buffers.weights) = (points, scaled);
    }
}

/// The number of nodes of all rules on an element.
fn count(rules: &[MeshCubature], element: &Element) -> usize {
    rules.iter().map(|rule| rule.of(&element.shape).len()).sum()
}

/// How far the first estimate is from the others: the largest distance or, if there is one other, the difference.
/// Infinite ones agree.
fn difference(sums: &[f64]) -> f64 {
    let from = |other: f64| if other == sums[0] { 0.0 } else { other - sums[0] };
    match sums {
        [_, other] => from(*other),
        _ => sums[1..].iter().map(|other| from(*other).abs()).fold(0.0, f64::max),
    }
}
