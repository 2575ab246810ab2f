//! Differential entropy `-integral of p log p`, by adaptive cubature.
//!
//! With r = p times the volume of the box, and volumes as fractions of that of the box,
//!
//! ```text
//! H = log(volume of the box) - integral of r log r over the region
//! ```
//!
//! r is a polynomial on every element but r log r is not: it is analytic where r > 0, but its second derivative is
//! infinite where a square vanishes. Elements are halved, worst first, until the errors add up to less than the
//! tolerance. The error of an element is estimated from three Gauss rules, each with one node per axis less than the
//! one before: the value is that of the best rule, and the error its larger distance from the other two. To compare
//! with the sum of halves instead would miss zeros along a line that the cut happens to cross. Where halving shows that
//! the error of an element was larger than its estimate, the estimates of its halves are enlarged.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::marginal::mixture::Mixture;
use crate::density::cubature::MeshCubature;
use crate::density::functions::ComponentFunctions;
use crate::density::mesh::{Degree, Element, Mesh, Shape};

/// The largest number of nodes of the best rule on one element: in many dimensions small elements are worth more than
/// many nodes.
const NODES: f64 = 4096.0;

/// When the adaptive cubature of an entropy ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntropyOptions {
    /// The absolute error that is small enough.
    pub tolerance: f64,
    /// The largest number of evaluations of the density; every element is evaluated once whatever this says.
    pub evaluations: usize,
}

impl Default for EntropyOptions {
    /// A tolerance of 1e-6 and at most fifty million evaluations.
    fn default() -> Self {
        EntropyOptions { tolerance: 1e-6, evaluations: 50_000_000 }
    }
}

/// A differential entropy in nats, with an estimate of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// The entropy in nats.
    pub value: f64,
    /// A cautious estimate of the absolute error.
    pub error: f64,
    /// The number of evaluations of the density.
    pub evaluations: usize,
    /// Whether the error is within the tolerance.
    pub converged: bool,
}

/// An element with the integral of r log r over it.
#[derive(Debug)]
struct Leaf {
    element: Element,
    value: f64,
    error: f64,
    /// The factor by which error estimates are enlarged because that of an ancestor was too small.
    doubt: f64,
    /// The order of creation, so that the order of equal errors is fixed.
    number: usize,
}

impl Ord for Leaf {
    fn cmp(&self, other: &Self) -> Ordering {
        self.error.total_cmp(&other.error).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Leaf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Leaf {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Leaf {}

/// The entropy of the normalised density `sum_c weights_c q_c`.
pub(crate) fn entropy(
    mesh: &Mesh,
    functions: &dyn ComponentFunctions,
    weights: &[f64],
    options: &EntropyOptions,
) -> Entropy {
    let estimator = Estimator::new(mesh.dimension(), functions.degree());
    let mut evaluations = 0;
    let mut number = 0;
    let mut add = |heap: &mut BinaryHeap<Leaf>, estimates: Vec<(ElementEstimate, Element, f64)>| {
        for (estimate, element, doubt) in estimates {
            evaluations += estimate.evaluations;
            number += 1;
            heap.push(Leaf { element, value: estimate.value, error: estimate.error * doubt, doubt, number });
        }
        evaluations
    };
    let first = mesh.elements.par_iter().map_init(
        || Mixture::new(functions, weights),
        |mixture, element| (estimator.estimate(mixture, element), element.clone(), 1.0),
    );
    let mut heap = BinaryHeap::new();
    let mut used = add(&mut heap, first.collect());
    let log_volume = mesh.grid.log_volume();
    loop {
        let value: f64 = heap.iter().map(|leaf| leaf.value).sum();
        let error: f64 = heap.iter().map(|leaf| leaf.error).sum();
        let size: f64 = heap.iter().map(|leaf| leaf.value.abs()).sum();
        // The rounding errors of logarithms, of values of polynomials, of weights and of this sum.
        let rounding = 32.0 * f64::EPSILON * (1.0 + size + log_volume.abs());
        let converged = error + rounding <= options.tolerance;
        let result = Entropy { value: log_volume - value, error: error + rounding, evaluations: used, converged };
        if converged || error <= rounding || used >= options.evaluations {
            return result;
        }
        let worst = worst(&mut heap, (options.evaluations - used) / estimator.most);
        if worst.is_empty() {
            return result;
        }
        let halves = worst.into_par_iter().map_init(
            || Mixture::new(functions, weights),
            |mixture, leaf| {
                let halves = halves(&leaf.element).map(|half| (estimator.estimate(mixture, &half), half));
                let missed = (halves[0].0.value + halves[1].0.value - leaf.value).abs();
                let doubt = if missed > leaf.error { (missed / leaf.error).min(4.0) * leaf.doubt } else { leaf.doubt };
                halves.map(|(estimate, half)| (estimate, half, doubt))
            },
        );
        let halves: Vec<[(ElementEstimate, Element, f64); 2]> = halves.collect();
        used = add(&mut heap, halves.into_iter().flatten().collect());
    }
}

/// The number of nodes per axis of the best rule for entropies of many densities. For few digits the nodes that would do
/// for the polynomial itself are enough for its product with its logarithm; for more digits there are three more.
pub(in crate::query) fn rule_nodes(dimension: usize, degree: usize, few_digits: bool) -> usize {
    let per_axis = (NODES.powf(1.0 / dimension as f64) + 1e-9) as usize;
    let more = if few_digits { 1 } else { 4 };
    (degree / 2 + more).max(4).min(per_axis).max(3)
}

/// Takes the leaves with the largest errors: as many as make a round of work, and none with an error that hardly
/// matters.
fn worst(heap: &mut BinaryHeap<Leaf>, affordable: usize) -> Vec<Leaf> {
    let most = (heap.len() / 8).clamp(16, 1024).min(affordable / 2);
    let Some(least) = heap.peek().map(|leaf| leaf.error / 32.0) else { return Vec::new() };
    let mut worst = Vec::new();
    while worst.len() < most && heap.peek().is_some_and(|leaf| leaf.error >= least) {
        worst.extend(heap.pop());
    }
    worst
}

struct ElementEstimate {
    value: f64,
    error: f64,
    evaluations: usize,
}

/// Estimates integrals by three rules of falling degree.
struct Estimator {
    cubatures: [MeshCubature; 3],
    /// The largest number of evaluations on one element.
    most: usize,
}

impl Estimator {
    fn new(dimension: usize, degree: Degree) -> Estimator {
        let per_axis = (NODES.powf(1.0 / dimension as f64) + 1e-9) as usize;
        // A rule of degree 2 k has k + 1 nodes. There are three more than the polynomial needs, for its logarithm.
        let nodes = |degree: usize| (degree / 2 + 4).min(per_axis).max(3);
        let (total, axis) = (nodes(degree.total), nodes(degree.axis));
        let cubatures = [1, 2, 3]
            .map(|less| MeshCubature::new(dimension, Degree { total: 2 * (total - less), axis: 2 * (axis - less) }));
        let both = [Shape::Cuboid(Vec::new(), Vec::new()), Shape::Simplex(Vec::new())];
        let count = |shape: &Shape| cubatures.iter().map(|cubature| cubature.of(shape).len()).sum();
        let most = both.map(|shape| count(&shape)).into_iter().max().expect("there are two shapes");
        Estimator { cubatures, most }
    }

    /// The integral of r log r over an element.
    fn estimate(&self, mixture: &mut Mixture, element: &Element) -> ElementEstimate {
        let mut evaluations = 0;
        let [best, second, third] = self.cubatures.each_ref().map(|cubature| {
            let mut sum = 0.0;
            cubature.visit(element, |t, weight| {
                let r = mixture.value(&element.bin, t);
                // Where r is 0, or below by rounding, the limit of r log r is 0.
                if r > 0.0 {
                    sum += weight * r * r.ln();
                }
                evaluations += 1;
            });
            sum
        });
        ElementEstimate { value: best, error: (best - second).abs().max((best - third).abs()), evaluations }
    }
}

/// Cuts an element in two at the middle of its longest edge.
pub(in crate::query) fn halves(element: &Element) -> [Element; 2] {
    let shapes = match &element.shape {
        Shape::Cuboid(low, high) => {
            let side = |axis: &usize| high[*axis] - low[*axis];
            let longest =
                (0..low.len()).max_by(|a, b| side(a).total_cmp(&side(b))).expect("a box has at least one axis");
            let middle = 0.5 * (low[longest] + high[longest]);
            let (mut lower, mut upper) = (high.clone(), low.clone());
            (lower[longest], upper[longest]) = (middle, middle);
            [Shape::Cuboid(low.clone(), lower), Shape::Cuboid(upper, high.clone())]
        }
        Shape::Simplex(v) => {
            let n = element.bin.len();
            let square =
                |(i, j): &(usize, usize)| -> f64 { (0..n).map(|k| (v[i * n + k] - v[j * n + k]).powi(2)).sum() };
            let edges = (0..n).flat_map(|i| (i + 1..=n).map(move |j| (i, j)));
            let longest = edges.max_by(|a, b| square(a).total_cmp(&square(b)));
            let (i, j) = longest.expect("a simplex has at least one edge");
            [i, j].map(|moved| {
                let mut half = v.clone();
                (0..n).for_each(|k| half[moved * n + k] = 0.5 * (v[i * n + k] + v[j * n + k]));
                Shape::Simplex(half)
            })
        }
    };
    shapes.map(|shape| Element { bin: element.bin.clone(), shape, volume: 0.5 * element.volume })
}
