//! The region as convex pieces, cut to the square of a kernel: where integrals of kernels are sums of positive terms.
//!
//! In coordinates of a kernel a convex piece is cut to [-1, 1]^2 and divided at its corners into trapezoids between two
//! verticals. Integrals over them keep their relative accuracy however small they are, and samples are drawn in them.

use std::sync::Arc;

use super::boundary::KernelView;
use super::integral::Kernel;
use super::triweight;
use crate::density::gauss::Gauss;

/// A convex piece of a region, counterclockwise, in coordinates of the box.
#[derive(Clone, Debug)]
pub(crate) struct ConvexPiece {
    pub corners: Vec<[f64; 2]>,
    pub area: f64,
    low: [f64; 2],
    high: [f64; 2],
}

/// The part of the plane between two verticals and two lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelTrapezoid {
    /// The positions of the verticals.
    pub sides: [f64; 2],
    /// The heights of the lower line at both sides.
    pub below: [f64; 2],
    /// The heights of the upper line at both sides.
    pub above: [f64; 2],
}

impl ConvexPiece {
    pub fn new(corners: Vec<[f64; 2]>, area: f64) -> ConvexPiece {
        let end = |j: usize, pick: fn(f64, f64) -> f64| corners.iter().map(|c| c[j]).fold(f64::NAN, pick);
        let (low, high) = ([0, 1].map(|j| end(j, f64::min)), [0, 1].map(|j| end(j, f64::max)));
        ConvexPiece { corners, area, low, high }
    }

    /// Whether the box around the piece may meet the square of a kernel.
    fn may_meet(&self, view: KernelView) -> bool {
        let centre = view.to_kernel([0, 1].map(|j| 0.5 * (self.low[j] + self.high[j])));
        let extent = [0, 1].map(|j| 0.5 * (self.high[j] - self.low[j]));
        let [a, b, c] = view.inverse.map(f64::abs);
        centre[0].abs() < 1.0 + extent[0] * a && centre[1].abs() < 1.0 + extent[0] * b + extent[1] * c
    }

    /// The trapezoids of the whole piece, in coordinates of the box.
    pub fn trapezoids(&self) -> Vec<KernelTrapezoid> {
        let mut found = Vec::new();
        add_trapezoids(&self.corners, &mut found);
        found
    }

    /// Adds the trapezoids of the piece inside the square of a kernel, in coordinates of the kernel.
    pub fn add_trapezoids(&self, view: KernelView, work: &mut ClipMemory, out: &mut Vec<KernelTrapezoid>) {
        if !self.may_meet(view) {
            return;
        }
        let polygon = work.cut_to_square(self.corners.iter().map(|corner| view.to_kernel(*corner)));
        add_trapezoids(&polygon, out);
    }
}

/// Memory for cutting polygons.
#[derive(Default)]
pub(crate) struct ClipMemory {
    polygon: Vec<[f64; 2]>,
    other: Vec<[f64; 2]>,
}

impl ClipMemory {
    /// The part of a convex polygon inside [-1, 1]^2.
    pub fn cut_to_square(&mut self, corners: impl Iterator<Item = [f64; 2]>) -> Vec<[f64; 2]> {
        let ClipMemory { polygon, other } = self;
        polygon.clear();
        polygon.extend(corners);
        for (axis, sign) in [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)] {
            clip(polygon, axis, sign, other);
            std::mem::swap(polygon, other);
        }
        polygon.clone()
    }
}

/// The part of a convex polygon where `sign u_axis <= 1`.
fn clip(polygon: &[[f64; 2]], axis: usize, sign: f64, out: &mut Vec<[f64; 2]>) {
    out.clear();
    let Some(mut from) = polygon.last().copied() else { return };
    for to in polygon {
        let (a, b) = (sign * from[axis] - 1.0, sign * to[axis] - 1.0);
        if (a > 0.0) != (b > 0.0) {
            let t = a / (a - b);
            let mut point = [0, 1].map(|j| from[j] + t * (to[j] - from[j]));
            point[axis] = sign;
            out.push(point);
        }
        if !(b > 0.0) {
            out.push(*to);
        }
        from = *to;
    }
}

/// Divides a convex polygon, counterclockwise, into trapezoids between the verticals through its corners.
fn add_trapezoids(polygon: &[[f64; 2]], out: &mut Vec<KernelTrapezoid>) {
    if polygon.len() < 3 {
        return;
    }
    let leftmost = (0..polygon.len()).min_by(|a, b| polygon[*a][0].total_cmp(&polygon[*b][0]));
    let Some(start) = leftmost else { return };
    let n = polygon.len();
    let most = polygon.iter().map(|corner| corner[0]).fold(f64::NEG_INFINITY, f64::max);
    // The lower chain runs forward from the leftmost corner, the upper one backward, until both are at the right.
    let (mut below, mut above) = (start, start);
    let mut left = polygon[start][0];
    let next = |k: usize| (k + 1) % n;
    let back = |k: usize| (k + n - 1) % n;
    for _ in 0..2 * n {
        while polygon[next(below)][0] <= left && left < most && next(below) != start {
            below = next(below);
        }
        while polygon[back(above)][0] <= left && left < most && back(above) != start {
            above = back(above);
        }
        let (b, a) = (next(below), back(above));
        let right = polygon[b][0].min(polygon[a][0]);
        if !(right > left) {
            return;
        }
        let height = |from: [f64; 2], to: [f64; 2], at: f64| {
            let t = (at - from[0]) / (to[0] - from[0]);
            if t >= 1.0 { to[1] } else { from[1] + t * (to[1] - from[1]) }
        };
        let line = |from: usize, to: usize| [left, right].map(|at| height(polygon[from], polygon[to], at));
        let (below_line, above_line) = (line(below, b), line(above, a));
        let above_line = [0, 1].map(|j| above_line[j].max(below_line[j]));
        out.push(KernelTrapezoid { sides: [left, right], below: below_line, above: above_line });
        left = right;
        if left >= most {
            return;
        }
    }
}

/// The rule with which masses of trapezoids are exact.
pub(crate) fn mass_rule() -> Arc<Gauss> {
    Gauss::with_points(8)
}

impl KernelTrapezoid {
    /// The heights of both lines at a position between the sides, from 0 to 1.
    #[inline(always)]
    pub fn heights(&self, t: f64) -> [f64; 2] {
        [self.below[0] + t * (self.below[1] - self.below[0]), self.above[0] + t * (self.above[1] - self.above[0])]
    }

    /// Shows the nodes and weights of a rule that integrates polynomials exactly, of the degrees of the rules.
    pub fn visit(&self, rules: [&Gauss; 2], mut node: impl FnMut([f64; 2], f64)) {
        let width = self.sides[1] - self.sides[0];
        for (t, weight) in rules[0].nodes.iter().zip(&rules[0].weights) {
            let [low, high] = self.heights(*t);
            let u1 = self.sides[0] + t * width;
            for (s, inner) in rules[1].nodes.iter().zip(&rules[1].weights) {
                node([u1, low + s * (high - low)], weight * inner * width * (high - low));
            }
        }
    }

    /// The integral of the kernel up to the fraction `t` of the way between the sides. `rule` has eight nodes, with
    /// which it is exact.
    pub fn mass(&self, t: f64, rule: &Gauss) -> f64 {
        let width = t * (self.sides[1] - self.sides[0]);
        let mut sum = 0.0;
        for (node, weight) in rule.nodes.iter().zip(&rule.weights) {
            sum += weight * self.line_mass(t * node);
        }
        sum * width
    }

    /// The integral of the kernel along the vertical at the fraction `t` of the way between the sides.
    #[inline(always)]
    fn line_mass(&self, t: f64) -> f64 {
        let [low, high] = self.heights(t);
        let u1 = self.sides[0] + t * (self.sides[1] - self.sides[0]);
        triweight::value(u1) * triweight::integral_between(low, high)
    }

    /// A point of the trapezoid with the density of the kernel, from two uniform numbers.
    pub fn sample(&self, uniform: [f64; 2], rule: &Gauss) -> [f64; 2] {
        let total = self.mass(1.0, rule);
        let width = self.sides[1] - self.sides[0];
        let (mut low, mut high, mut t) = (0.0, 1.0, uniform[0]);
        for _ in 0..60 {
            let excess = self.mass(t, rule) - uniform[0] * total;
            if excess > 0.0 {
                high = t
            } else {
                low = t
            }
            let step = t - excess / (self.line_mass(t) * width);
            let next = if step > low && step < high { step } else { 0.5 * (low + high) };
            if (next - t).abs() <= 1e-15 {
                break;
            }
            t = next;
        }
        let [below, above] = self.heights(t).map(|height| height.clamp(-1.0, 1.0));
        [self.sides[0] + t * width, triweight::quantile_between(below, above.max(below), uniform[1])]
    }
}

/// All trapezoids of a kernel in a region of convex pieces.
pub(crate) fn trapezoids(pieces: &[ConvexPiece], kernel: &Kernel) -> Vec<KernelTrapezoid> {
    let (view, mut work, mut found) = (kernel.view(), ClipMemory::default(), Vec::new());
    pieces.iter().for_each(|piece| piece.add_trapezoids(view, &mut work, &mut found));
    found
}

/// The integral of a kernel over a region of convex pieces, as a sum of positive terms.
pub(crate) fn positive_mass(pieces: &[ConvexPiece], kernel: &Kernel) -> f64 {
    let rule = mass_rule();
    trapezoids(pieces, kernel).iter().map(|trapezoid| trapezoid.mass(1.0, &rule)).sum()
}
