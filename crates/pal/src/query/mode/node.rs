//! A part of an element, and what is known of the density there.

use super::Problem;
use super::basis::Basis;
use super::bound::{MAX_DEPTH, View, growth};
use super::hull::Hull;
use super::place::Candidate;
use super::series::Series;
use crate::density::BinIndex;
use crate::density::mesh::{ElementIndex, Shape};
use crate::interrupt::checkpoint;

/// Boxes are kept at least this wide, in local coordinates; narrower ones are not cut.
const MIN_WIDTH: f64 = 1e-13;

/// The part of the gap that one truncation may use up. There is at most one per level.
const TRUNCATION: f64 = 1e-3;

/// Newton steps inside one node.
const STEPS: usize = 8;

/// Coefficients and values of a density family are trusted up to so many ulp per degree.
const FAMILY_ROUNDING: f64 = 16.0;

/// A box or simplex inside one element.
pub(super) struct Node {
    element: ElementIndex,
    depth: u32,
    shape: Shape,
    low: Vec<f64>,
    high: Vec<f64>,
    series: Series,
    /// How much the cut along each axis can lower the bound.
    weights: Vec<f64>,
    pub upper: f64,
}

/// All that nodes are examined with.
pub(super) struct Context<'a> {
    pub problem: &'a Problem<'a>,
    pub basis: Basis<'a>,
    /// Weights of the components, scaled by a power of two.
    pub weights: Vec<f64>,
    pub gap: f64,
    /// Ends of the bins per axis.
    pub positions: Vec<Vec<f64>>,
}

/// What became of a node.
pub(super) struct Report {
    /// A bound of the density on the node.
    pub upper: f64,
    /// The node, if a cut is worth while and doubles allow it.
    pub open: Option<Node>,
    pub candidate: Option<Candidate>,
}

impl Context<'_> {
    /// The density on a whole bin.
    pub fn series(&self, bin: &[BinIndex]) -> Series {
        let coefficients = self.problem.functions.chebyshev(bin, &self.weights);
        let size: f64 = coefficients.iter().map(|c| c.abs()).sum();
        let error = FAMILY_ROUNDING * (self.basis.exponents.degree() + 1) as f64 * f64::EPSILON * size;
        Series { coefficients, error }
    }

    /// The node of a whole element, given the series of its bin.
    pub fn root(&self, element: ElementIndex, series: &Series, best: Option<f64>) -> Report {
        checkpoint();
        let shape = match &self.problem.mesh.element(element).shape {
            // The region is inside the box of the grid, whatever rounding says.
            Shape::Cuboid(low, high) => Shape::Cuboid(clamped(low), clamped(high)),
            Shape::Simplex(vertices) => Shape::Simplex(clamped(vertices)),
        };
        let n = self.basis.dimension;
        let whole = Part { low: &vec![0.0; n], high: &vec![1.0; n], series };
        self.examine(element, 0, shape, whole, best)
    }

    /// The two parts of a node.
    pub fn split(&self, node: &Node) -> [Shape; 2] {
        let n = self.basis.dimension;
        match &node.shape {
            Shape::Cuboid(low, high) => {
                let axis = largest((0..n).map(|i| node.weights[i]));
                let middle = 0.5 * (low[axis] + high[axis]);
                let (mut left, mut right) = (high.clone(), low.clone());
                (left[axis], right[axis]) = (middle, middle);
                [Shape::Cuboid(low.clone(), left), Shape::Cuboid(right, high.clone())]
            }
            Shape::Simplex(vertices) => {
                let pairs: Vec<(usize, usize)> = (0..=n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
                let length = |&(i, j): &(usize, usize)| {
                    let along = |k: usize| (vertices[i * n + k] - vertices[j * n + k]) / (node.high[k] - node.low[k]);
                    (0..n).map(|k| node.weights[k] * along(k).powi(2)).sum()
                };
                let (i, j) = pairs[largest(pairs.iter().map(length))];
                let middle: Vec<f64> = (0..n).map(|k| 0.5 * (vertices[i * n + k] + vertices[j * n + k])).collect();
                [i, j].map(|gone| {
                    let mut part = vertices.clone();
                    part[gone * n..(gone + 1) * n].copy_from_slice(&middle);
                    Shape::Simplex(part)
                })
            }
        }
    }

    /// One of the parts of a node.
    pub fn part(&self, node: &Node, shape: Shape, best: Option<f64>) -> Report {
        checkpoint();
        let whole = Part { low: &node.low, high: &node.high, series: &node.series };
        let mut report = self.examine(node.element, node.depth + 1, shape, whole, best);
        // What bounds the whole bounds its parts.
        report.upper = report.upper.min(node.upper);
        if let Some(open) = &mut report.open {
            open.upper = report.upper;
        }
        report
    }

    fn examine(&self, element: ElementIndex, depth: u32, shape: Shape, whole: Part, best: Option<f64>) -> Report {
        let basis = &self.basis;
        let n = basis.dimension;
        let degree = basis.degree(whole.series.coefficients.len());
        let (low, high) = whole.around(&shape);
        let half: Vec<f64> = low.iter().zip(&high).map(|(a, b)| 0.5 * (b - a)).collect();
        let mut series = whole.restricted(basis, &low, &high);
        let mut sizes = series.sizes(basis);
        series.truncate(basis, &mut sizes, TRUNCATION * self.gap * best.unwrap_or(0.0));
        // Errors are known on the box, and needed where the region may be.
        let fresh = series.error - whole.series.error;
        series.error += fresh * (growth(&half, degree) - 1.0);
        let hull = match &shape {
            Shape::Cuboid(..) => Hull::Cube(n),
            Shape::Simplex(vertices) => {
                let inner = |(k, v): (usize, &f64)| ((v - low[k % n]) / half[k % n] - 1.0).clamp(-1.0, 1.0);
                Hull::Simplex(n, vertices.iter().enumerate().map(inner).collect())
            }
        };
        let view = View { basis, series: &series, sizes: &sizes, hull: &hull, half: &half };
        let mut bound = view.linear();
        let mut candidate = None;
        let closed = |upper: f64, best: Option<f64>| best.is_some_and(|best| upper <= (1.0 + self.gap) * best);
        if closed(bound.upper, best) {
            return Report { upper: bound.upper, open: None, candidate };
        }
        let higher: f64 = sizes.iter().skip(3).sum();
        let smooth = higher <= 0.5 * sizes.get(2).copied().unwrap_or(0.0);
        let mut summit = hull.start(basis, &series);
        if smooth || best.is_none_or(|best| summit.jet.value > 0.7 * best) {
            let tolerance = TRUNCATION * self.gap * summit.jet.value.abs();
            hull.climb(basis, &series, &mut summit, STEPS, tolerance);
        }
        if smooth
            && let Some(other) = view.concave(&summit)
            && other.upper < bound.upper
        {
            bound = other;
        }
        let mut best = best;
        if best.is_none_or(|best| summit.jet.value > best) {
            let place = |k: usize| (low[k] + half[k] * (1.0 + summit.x[k])).clamp(low[k], high[k]);
            let t: Vec<f64> = (0..n).map(place).collect();
            candidate = self.problem.place(element, &t, &self.weights);
            best = best.into_iter().chain(candidate.as_ref().map(|c| c.value)).reduce(f64::max);
        }
        if closed(bound.upper, best) {
            return Report { upper: bound.upper, open: None, candidate };
        }
        let weights = self.cut_weights(element, &series, &half);
        let upper = if bound.upper.is_nan() { f64::INFINITY } else { bound.upper };
        // Where the bound would do without its margin for rounding, smaller nodes are of no use.
        let enough = 1.0 + 0.5 * self.gap + 32.0 * f64::EPSILON;
        let hopeless = best.is_some_and(|best| upper - bound.margin <= enough * best);
        let exhausted = hopeless || !upper.is_finite() || depth >= MAX_DEPTH || weights.iter().all(|w| *w == 0.0);
        let open = (!exhausted).then_some(Node { element, depth, shape, low, high, series, weights, upper });
        Report { upper, open, candidate }
    }

    /// How much a cut across each axis can lower the bound; 0 where doubles do not allow one.
    fn cut_weights(&self, element: ElementIndex, series: &Series, half: &[f64]) -> Vec<f64> {
        let basis = &self.basis;
        let c = &series.coefficients;
        let mut weights: Vec<f64> = (0..basis.dimension).map(|i| 1e-3 * basis.linear(c, i).abs()).collect();
        for (c, a) in c.iter().zip(basis.exponents.iter()).skip(basis.up_to(1)) {
            weights.iter_mut().zip(a).for_each(|(w, k)| *w += c.abs() * (1.0 - 0.5f64.powi(i32::from(*k))));
        }
        // An axis that does not matter now may matter later, and a simplex must not become a needle.
        let floor = 1e-2 * weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let bin = &self.problem.mesh.element(element).bin;
        for (i, weight) in weights.iter_mut().enumerate() {
            let narrow = MIN_WIDTH.max(self.spacing(i, bin[i]));
            *weight = if 2.0 * half[i] <= 2.0 * narrow { 0.0 } else { weight.max(floor) };
        }
        weights
    }

    /// The distance of neighbouring doubles in a bin, in local coordinates.
    fn spacing(&self, axis: usize, bin: BinIndex) -> f64 {
        let ends = &self.positions[axis];
        f64::EPSILON * ends[bin.get()].abs().max(ends[bin.get() + 1].abs())
            / self.problem.mesh.grid.axes()[axis].width(bin)
    }
}

/// A box with the density on it.
struct Part<'a> {
    low: &'a [f64],
    high: &'a [f64],
    series: &'a Series,
}

impl Part<'_> {
    /// The smallest box around a shape inside this one, but no narrower than [`MIN_WIDTH`].
    fn around(&self, shape: &Shape) -> (Vec<f64>, Vec<f64>) {
        let n = self.low.len();
        let (mut low, mut high) = match shape {
            Shape::Cuboid(low, high) => (low.clone(), high.clone()),
            Shape::Simplex(v) => {
                let (mut low, mut high) = (v[..n].to_vec(), v[..n].to_vec());
                for (k, x) in v.iter().enumerate() {
                    (low[k % n], high[k % n]) = (low[k % n].min(*x), high[k % n].max(*x));
                }
                (low, high)
            }
        };
        for k in 0..n {
            if high[k] - low[k] < MIN_WIDTH {
                low[k] = (0.5 * (low[k] + high[k] - MIN_WIDTH)).max(self.low[k]);
                high[k] = (low[k] + MIN_WIDTH).min(self.high[k]);
                low[k] = (high[k] - MIN_WIDTH).max(self.low[k]);
            }
        }
        (low, high)
    }

    /// The density on a smaller box.
    fn restricted(&self, basis: &Basis, low: &[f64], high: &[f64]) -> Series {
        let mut series = self.series.clone();
        for axis in 0..low.len() {
            let (below, above) = (low[axis] - self.low[axis], high[axis] - self.high[axis]);
            if below != 0.0 || above != 0.0 {
                let width = self.high[axis] - self.low[axis];
                series.restrict(basis, axis, (high[axis] - low[axis]) / width, (below + above) / width);
            }
        }
        series
    }
}

fn clamped(coordinates: &[f64]) -> Vec<f64> {
    coordinates.iter().map(|x| x.clamp(0.0, 1.0)).collect()
}

/// The first position of the largest number.
fn largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (k, x) in numbers.enumerate() {
        if x > best.1 {
            best = (k, x);
        }
    }
    best.0
}
