//! One node of the search: a part of an element, and what is known of the density there.

use super::ModeProblem;
use super::ascent::NodeShape;
use super::bound::{MAX_DEPTH, NodeBounds, growth};
use super::chebyshev_basis::ChebyshevBasis;
use super::enclosure::PolynomialEnclosure;
use super::incumbent::Incumbent;
use crate::density::BinIndex;
use crate::density::mesh::{ElementIndex, Shape};
use crate::interrupt::checkpoint;

/// Boxes are kept at least this wide, in local coordinates; narrower ones are not cut.
const MIN_WIDTH: f64 = 1e-13;

/// The fraction of the gap that one truncation may use up. There is at most one per level of the search tree.
const TRUNCATION: f64 = 1e-3;

/// The largest number of Newton steps inside one node.
const STEPS: usize = 8;

/// The number of ulp per degree up to which coefficients and values of a density family are trusted.
const FAMILY_ROUNDING: f64 = 16.0;

/// A box or simplex inside one element, which may be cut further.
pub(super) struct ModeNode {
    element: ElementIndex,
    depth: u32,
    shape: Shape,
    low: Vec<f64>,
    high: Vec<f64>,
    enclosure: PolynomialEnclosure,
    /// How much a cut across each axis can lower the bound; 0 where float64 does not allow one.
    cut_gains: Vec<f64>,
    pub upper: f64,
}

/// What all nodes of one search are examined with.
pub(super) struct Examiner<'a> {
    pub problem: &'a ModeProblem<'a>,
    pub basis: ChebyshevBasis<'a>,
    /// Weights of the components, scaled by a power of two.
    pub weights: Vec<f64>,
    pub gap: f64,
    /// The ends of the bins, per axis.
    pub positions: Vec<Vec<f64>>,
}

/// The result of examining a node.
pub(super) struct Examination {
    /// An upper bound of the density on the node.
    pub upper: f64,
    /// The node, if cutting it is worthwhile and float64 allows it.
    pub open: Option<ModeNode>,
    pub incumbent: Option<Incumbent>,
}

impl Examiner<'_> {
    /// The density on a bin.
    pub fn enclosure(&self, bin: &[BinIndex]) -> PolynomialEnclosure {
        let coefficients = self.problem.functions.chebyshev(bin, &self.weights);
        let size: f64 = coefficients.iter().map(|c| c.abs()).sum();
        let error = FAMILY_ROUNDING * (self.basis.exponents.degree() + 1) as f64 * f64::EPSILON * size;
        PolynomialEnclosure { coefficients, error }
    }

    /// Examines an element, given the density on its bin.
    pub fn root(&self, element: ElementIndex, enclosure: &PolynomialEnclosure, best: Option<f64>) -> Examination {
        checkpoint();
        let shape = match &self.problem.mesh.element(element).shape {
            // The region lies inside the box of the grid, so coordinates beyond it come from rounding.
            Shape::Cuboid(low, high) => Shape::Cuboid(clamped(low), clamped(high)),
            Shape::Simplex(vertices) => Shape::Simplex(clamped(vertices)),
        };
        let n = self.basis.dimension;
        let parent = ParentBox { low: &vec![0.0; n], high: &vec![1.0; n], enclosure };
        self.examine(element, 0, shape, parent, best)
    }

    /// Cuts a node into two shapes.
    pub fn split(&self, node: &ModeNode) -> [Shape; 2] {
        let n = self.basis.dimension;
        match &node.shape {
            Shape::Cuboid(low, high) => {
                let axis = largest((0..n).map(|i| node.cut_gains[i]));
                let middle = 0.5 * (low[axis] + high[axis]);
                let (mut left, mut right) = (high.clone(), low.clone());
                (left[axis], right[axis]) = (middle, middle);
                [Shape::Cuboid(low.clone(), left), Shape::Cuboid(right, high.clone())]
            }
            Shape::Simplex(vertices) => {
                let pairs: Vec<(usize, usize)> = (0..=n).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
                let length = |&(i, j): &(usize, usize)| {
                    let along = |k: usize| (vertices[i * n + k] - vertices[j * n + k]) / (node.high[k] - node.low[k]);
                    (0..n).map(|k| node.cut_gains[k] * along(k).powi(2)).sum()
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

    /// Examines one of the two shapes that a node is cut into.
    pub fn part(&self, node: &ModeNode, shape: Shape, best: Option<f64>) -> Examination {
        checkpoint();
        let parent = ParentBox { low: &node.low, high: &node.high, enclosure: &node.enclosure };
        let mut examination = self.examine(node.element, node.depth + 1, shape, parent, best);
        // A bound of the node also bounds its parts.
        examination.upper = examination.upper.min(node.upper);
        if let Some(open) = &mut examination.open {
            open.upper = examination.upper;
        }
        examination
    }

    fn examine(
        &self,
        element: ElementIndex,
        depth: u32,
        shape: Shape,
        parent: ParentBox,
        best: Option<f64>,
    ) -> Examination {
        let basis = &self.basis;
        let n = basis.dimension;
        let degree = basis.degree(parent.enclosure.coefficients.len());
        let (low, high) = parent.around(&shape);
        let half: Vec<f64> = low.iter().zip(&high).map(|(a, b)| 0.5 * (b - a)).collect();
        let mut enclosure = parent.restricted(basis, &low, &high);
        let mut sizes = enclosure.sizes(basis);
        enclosure.truncate(basis, &mut sizes, TRUNCATION * self.gap * best.unwrap_or(0.0));
        // Errors are known on the box, and needed on the slightly larger set where the region may be.
        let fresh = enclosure.error - parent.enclosure.error;
        enclosure.error += fresh * (growth(&half, degree) - 1.0);
        let shape_in_box = match &shape {
            Shape::Cuboid(..) => NodeShape::Cube(n),
            Shape::Simplex(vertices) => {
                let inner = |(k, v): (usize, &f64)| ((v - low[k % n]) / half[k % n] - 1.0).clamp(-1.0, 1.0);
                NodeShape::Simplex(n, vertices.iter().enumerate().map(inner).collect())
            }
        };
        let bounds = NodeBounds { basis, enclosure: &enclosure, sizes: &sizes, shape: &shape_in_box, half: &half };
        let mut bound = bounds.linear();
        let mut incumbent = None;
        let closed = |upper: f64, best: Option<f64>| best.is_some_and(|best| upper <= (1.0 + self.gap) * best);
        if closed(bound.upper, best) {
            return Examination { upper: bound.upper, open: None, incumbent };
        }
        let higher: f64 = sizes.iter().skip(3).sum();
        let smooth = higher <= 0.5 * sizes.get(2).copied().unwrap_or(0.0);
        let mut ascent = shape_in_box.start(basis, &enclosure);
        if smooth || best.is_none_or(|best| ascent.jet.value > 0.7 * best) {
            let tolerance = TRUNCATION * self.gap * ascent.jet.value.abs();
            shape_in_box.ascend(basis, &enclosure, &mut ascent, STEPS, tolerance);
        }
        if smooth
            && let Some(other) = bounds.concave(&ascent)
            && other.upper < bound.upper
        {
            bound = other;
        }
        let mut best = best;
        if best.is_none_or(|best| ascent.jet.value > best) {
            let place = |k: usize| (low[k] + half[k] * (1.0 + ascent.x[k])).clamp(low[k], high[k]);
            let t: Vec<f64> = (0..n).map(place).collect();
            incumbent = self.problem.feasible_point(element, &t, &self.weights);
            best = best.into_iter().chain(incumbent.as_ref().map(|c| c.value)).reduce(f64::max);
        }
        if closed(bound.upper, best) {
            return Examination { upper: bound.upper, open: None, incumbent };
        }
        let cut_gains = self.cut_gains(element, &enclosure, &half);
        let upper = if bound.upper.is_nan() { f64::INFINITY } else { bound.upper };
        // Where the bound would be good enough without its margin for rounding, smaller nodes are of no use.
        let enough = 1.0 + 0.5 * self.gap + 32.0 * f64::EPSILON;
        let hopeless = best.is_some_and(|best| upper - bound.margin <= enough * best);
        let exhausted =
            hopeless || !upper.is_finite() || depth >= MAX_DEPTH || cut_gains.iter().all(|gain| *gain == 0.0);
        let open = (!exhausted).then_some(ModeNode { element, depth, shape, low, high, enclosure, cut_gains, upper });
        Examination { upper, open, incumbent }
    }

    /// How much a cut across each axis can lower the bound; 0 where float64 does not allow one.
    fn cut_gains(&self, element: ElementIndex, enclosure: &PolynomialEnclosure, half: &[f64]) -> Vec<f64> {
        let basis = &self.basis;
        let c = &enclosure.coefficients;
        let mut gains: Vec<f64> = (0..basis.dimension).map(|i| 1e-3 * basis.linear(c, i).abs()).collect();
        for (c, a) in c.iter().zip(basis.exponents.iter()).skip(basis.up_to(1)) {
            gains.iter_mut().zip(a).for_each(|(gain, k)| *gain += c.abs() * (1.0 - 0.5f64.powi(i32::from(*k))));
        }
        // An axis that does not matter now may matter later, and a simplex must not become a needle.
        let floor = 1e-2 * gains.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let bin = &self.problem.mesh.element(element).bin;
        for (i, gain) in gains.iter_mut().enumerate() {
            let narrow = MIN_WIDTH.max(self.spacing(i, bin[i]));
            *gain = if 2.0 * half[i] <= 2.0 * narrow { 0.0 } else { gain.max(floor) };
        }
        gains
    }

    /// The distance of neighbouring float64 numbers in a bin, in local coordinates.
    fn spacing(&self, axis: usize, bin: BinIndex) -> f64 {
        let ends = &self.positions[axis];
        f64::EPSILON * ends[bin.get()].abs().max(ends[bin.get() + 1].abs())
            / self.problem.mesh.grid.axes()[axis].width(bin)
    }
}

/// The box of the parent of a node, with the density on it.
struct ParentBox<'a> {
    low: &'a [f64],
    high: &'a [f64],
    enclosure: &'a PolynomialEnclosure,
}

impl ParentBox<'_> {
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

    /// The density on a smaller box inside this one.
    fn restricted(&self, basis: &ChebyshevBasis, low: &[f64], high: &[f64]) -> PolynomialEnclosure {
        let mut enclosure = self.enclosure.clone();
        for axis in 0..low.len() {
            let (below, above) = (low[axis] - self.low[axis], high[axis] - self.high[axis]);
            if below != 0.0 || above != 0.0 {
                let width = self.high[axis] - self.low[axis];
                enclosure.restrict(basis, axis, (high[axis] - low[axis]) / width, (below + above) / width);
            }
        }
        enclosure
    }
}

fn clamped(coordinates: &[f64]) -> Vec<f64> {
    coordinates.iter().map(|x| x.clamp(0.0, 1.0)).collect()
}

/// The position of the largest number; the first one if several are equal.
fn largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (k, x) in numbers.enumerate() {
        if x > best.1 {
            best = (k, x);
        }
    }
    best.0
}
