//! The integral of one kernel over a region in the plane, and how it changes with the kernel.
//!
//! In coordinates `u` of a kernel its density is `K(u) = k(u_1) k(u_2)` on the square [-1, 1]^2, with the triweight `k` and
//! its integral `F`. By the divergence theorem
//!
//! ```text
//! Z = integral of K over the region = sum over edges of the integral of F(u_1) k(u_2) du_2
//! ```
//!
//! Edges outside the strip |u_2| < 1 and to the left of the square contribute nothing, and to its right, where F is 1,
//! the integral is a difference of two values of F. What is left is polynomial of degree 13, for which seven Gauss nodes
//! are exact. `F k` is smooth across the sides of the square, so that no decision depends on rounding: an edge that is
//! cut a little too early or too late changes the third power of the error.
//!
//! When a kernel moves, the walls move in its coordinates: with the velocity `v(u)` of the region there,
//!
//! ```text
//! dZ = sum over edges of the integral of K(u) (v_1 du_2 - v_2 du_1),      v(u) = -L^-1 (dc + dL u)
//! ```
//!
//! which needs the integrals of K, K u_1 and K u_2 along every edge at the same nodes.

use super::boundary::{Boundary, EdgeVisitor, KernelView};
use super::triweight;

/// A kernel in coordinates of the box: `v = place + L u` with a lower triangular factor `L` and |u_1|, |u_2| <= 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kernel {
    pub place: [f64; 2],
    /// The entries 11, 21 and 22 of the factor; those on the diagonal are positive.
    pub factor: [f64; 3],
}

/// The derivatives of a number with respect to the place and the factor of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct KernelGradient {
    pub place: [f64; 2],
    pub factor: [f64; 3],
}

impl Kernel {
    #[inline(always)]
    pub fn view(&self) -> KernelView {
        let [a, b, c] = self.factor;
        let (over_a, over_c) = (1.0 / a, 1.0 / c);
        KernelView { place: self.place, inverse: [over_a, -b * over_a * over_c, over_c] }
    }

    /// The point of the box at coordinates of the kernel.
    pub fn to_box(self, u: [f64; 2]) -> [f64; 2] {
        let [a, b, c] = self.factor;
        [self.place[0] + a * u[0], self.place[1] + b * u[0] + c * u[1]]
    }

    /// The density at a point of the box.
    #[inline(always)]
    pub fn density(&self, v: [f64; 2]) -> f64 {
        let view = self.view();
        let [u1, u2] = view.to_kernel(v);
        if u1.abs() < 1.0 && u2.abs() < 1.0 {
            triweight::inside(u1) * triweight::inside(u2) * view.inverse[0] * view.inverse[2]
        } else {
            0.0
        }
    }

    /// The density at a point of the box and its derivatives with respect to the kernel, if the point is inside its
    /// square. Derivatives with respect to the point are those with respect to the place with the opposite sign.
    #[inline(always)]
    pub fn density_with_gradient(&self, v: [f64; 2]) -> Option<(f64, KernelGradient)> {
        let view = self.view();
        let u = view.to_kernel(v);
        if !(u[0].abs() < 1.0 && u[1].abs() < 1.0) {
            return None;
        }
        let volume = view.inverse[0] * view.inverse[2];
        let k = u.map(triweight::inside);
        let density = k[0] * k[1] * volume;
        // The derivatives with respect to u, pulled back to v.
        let (a, b) = (triweight::slope(u[0]) * k[1] * volume, triweight::slope(u[1]) * k[0] * volume);
        let [x, y] = [a * view.inverse[0] + b * view.inverse[1], b * view.inverse[2]];
        let factor = [-x * u[0] - density * view.inverse[0], -y * u[0], -y * u[1] - density * view.inverse[2]];
        Some((density, KernelGradient { place: [-x, -y], factor }))
    }

    /// The integral over a region.
    pub fn mass(&self, boundary: &Boundary) -> f64 {
        let mut sum = MassSum::default();
        boundary.visit(self.view(), &mut sum);
        sum.0
    }

    /// The integral over a region, and its derivatives.
    #[inline(always)]
    pub fn mass_with_gradient(&self, boundary: &Boundary) -> (f64, KernelGradient) {
        let view = self.view();
        let mut sums = GradientSums::default();
        boundary.visit(view, &mut sums);
        let [a, b, c] = view.inverse;
        // The transposed inverse of the factor times (x, y).
        let pull = |x: f64, y: f64| [-(a * x + b * y), -(c * y)];
        let place = pull(sums.walls[0][0], sums.walls[1][0]);
        let first = pull(sums.walls[0][1], sums.walls[1][1]);
        let second = pull(sums.walls[0][2], sums.walls[1][2]);
        (sums.mass, KernelGradient { place, factor: [first[0], first[1], second[1]] })
    }
}

/// Nodes of Gauss and Legendre on [0, 1] and their weights; exact up to degree 13. An eighth node of weight 0 fills the
/// registers of the processor.
const NODES: [f64; 8] = [
    0.025_446_043_828_620_757,
    0.129_234_407_200_302_77,
    0.297_077_424_311_301_4,
    0.5,
    0.702_922_575_688_698_5,
    0.870_765_592_799_697_2,
    0.974_553_956_171_379_2,
    0.5,
];
const WEIGHTS: [f64; 8] = [
    0.064_742_483_084_434_91,
    0.139_852_695_744_638_28,
    0.190_915_025_252_559_46,
    0.208_979_591_836_734_7,
    0.190_915_025_252_559_46,
    0.139_852_695_744_638_28,
    0.064_742_483_084_434_91,
    0.0,
];

/// The part of `range` in which `low <= at + t step <= high`; with its first end not below its second one it is empty.
#[inline(always)]
fn within(range: [f64; 2], at: f64, step: f64, low: f64, high: f64) -> [f64; 2] {
    if step == 0.0 {
        return if at >= low && at <= high { range } else { [1.0, 0.0] };
    }
    let (a, b) = ((low - at) / step, (high - at) / step);
    let (a, b) = if step > 0.0 { (a, b) } else { (b, a) };
    [range[0].max(a), range[1].min(b)]
}

/// An edge in coordinates of a kernel, and where it runs inside the square.
struct CutEdge {
    from: [f64; 2],
    step: [f64; 2],
    inside: [f64; 2],
    /// What the part to the right of the square contributes to the integral.
    right: f64,
}

impl CutEdge {
    #[inline(always)]
    fn new(from: [f64; 2], to: [f64; 2]) -> Option<CutEdge> {
        if from[0] <= -1.0 && to[0] <= -1.0 || from[1] <= -1.0 && to[1] <= -1.0 || from[1] >= 1.0 && to[1] >= 1.0 {
            return None;
        }
        let step = [to[0] - from[0], to[1] - from[1]];
        let strip = within([0.0, 1.0], from[1], step[1], -1.0, 1.0);
        if !(strip[0] < strip[1]) {
            return None;
        }
        let mut right = 0.0;
        if from[0] > 1.0 || to[0] > 1.0 {
            let [a, b] = within(strip, from[0], step[0], 1.0, f64::INFINITY);
            if a < b {
                right = triweight::integral(from[1] + b * step[1]) - triweight::integral(from[1] + a * step[1]);
            }
        }
        Some(CutEdge { from, step, inside: within(strip, from[0], step[0], -1.0, 1.0), right })
    }

    fn is_inside(&self) -> bool {
        self.inside[0] < self.inside[1]
    }

    #[inline(always)]
    fn at(&self, t: f64) -> [f64; 2] {
        [self.from[0] + t * self.step[0], self.from[1] + t * self.step[1]]
    }
}

#[derive(Default)]
struct MassSum(f64);

impl EdgeVisitor for MassSum {
    fn edge(&mut self, from: [f64; 2], to: [f64; 2]) {
        let Some(edge) = CutEdge::new(from, to) else { return };
        self.0 += edge.right;
        if !edge.is_inside() {
            return;
        }
        let length = edge.inside[1] - edge.inside[0];
        let mut sum = 0.0;
        for (node, weight) in NODES.iter().zip(&WEIGHTS) {
            let [u1, u2] = edge.at(edge.inside[0] + length * node);
            sum += weight * triweight::integral_inside(u1) * triweight::inside(u2);
        }
        self.0 += sum * length * edge.step[1];
    }

    fn right(&mut self, from: f64, to: f64) {
        self.0 += triweight::integral(to) - triweight::integral(from);
    }
}

#[derive(Default)]
struct GradientSums {
    mass: f64,
    /// The integrals of K, K u_1 and K u_2 along all edges times the outward normal: its first and its second coordinate.
    walls: [[f64; 3]; 2],
}

impl EdgeVisitor for GradientSums {
    #[inline(always)]
    fn edge(&mut self, from: [f64; 2], to: [f64; 2]) {
        let Some(edge) = CutEdge::new(from, to) else { return };
        self.mass += edge.right;
        if !edge.is_inside() {
            return;
        }
        let length = edge.inside[1] - edge.inside[0];
        let mut parts = [[0.0; 8]; 4];
        for j in 0..8 {
            let [u1, u2] = edge.at(edge.inside[0] + length * NODES[j]);
            let k2 = WEIGHTS[j] * triweight::inside(u2);
            let both = triweight::inside(u1) * k2;
            parts[0][j] = both;
            parts[1][j] = both * u1;
            parts[2][j] = both * u2;
            parts[3][j] = triweight::integral_inside(u1) * k2;
        }
        // Sums in pairs, in a fixed order whatever the width of registers.
        let total = parts.map(|p| ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7])));
        self.mass += total[3] * (length * edge.step[1]);
        let normal = [edge.step[1] * length, -edge.step[0] * length];
        for (walls, n) in self.walls.iter_mut().zip(normal) {
            walls.iter_mut().zip(total).for_each(|(wall, sum)| *wall += n * sum);
        }
    }

    fn right(&mut self, from: f64, to: f64) {
        self.mass += triweight::integral(to) - triweight::integral(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Rational;
    use crate::random::Stream;

    /// A square with a triangular hole, cut into a few convex pieces, in the box from -1 to 1.
    fn holed() -> Boundary {
        let point = |x: i64, y: i64| [Rational::from(x), Rational::from(y)];
        let pieces = [
            [(-8, -8), (8, -8), (3, -3), (-3, -3)].to_vec(),
            [(8, -8), (8, 8), (0, 4), (3, -3)].to_vec(),
            [(8, 8), (-8, 8), (0, 4)].to_vec(),
            [(-8, 8), (-8, -8), (-3, -3), (0, 4)].to_vec(),
        ];
        let pieces = pieces.map(|piece| piece.into_iter().map(|(x, y)| point(x, y)).collect::<Vec<_>>());
        let ends = [(Rational::from(-8), Rational::from(8)), (Rational::from(-8), Rational::from(8))];
        Boundary::new(&pieces, &ends)
    }

    fn is_free([x, y]: [f64; 2]) -> bool {
        let (x, y) = (8.0 * x, 8.0 * y);
        x.abs() <= 8.0 && y.abs() <= 8.0 && !(y > -3.0 && 7.0 * x + 3.0 * y < 12.0 && -7.0 * x + 3.0 * y < 12.0)
    }

    fn random(stream: &mut Stream) -> Kernel {
        let mut between = |low: f64, high: f64| low + (high - low) * stream.unit();
        Kernel {
            place: [between(-1.3, 1.3), between(-1.3, 1.3)],
            factor: [between(0.05, 0.9), between(-1.0, 1.0), between(0.05, 0.9)],
        }
    }

    #[test]
    fn masses_are_those_of_a_fine_grid_of_points() {
        let (boundary, mut stream) = (holed(), Stream::new(1, 0));
        for _ in 0..20 {
            let kernel = random(&mut stream);
            let steps = 400;
            let unit = |k: usize| (k as f64 + 0.5) / f64::from(steps) * 2.0 - 1.0;
            let mut sum = 0.0;
            for (i, j) in (0..steps).flat_map(|i| (0..steps).map(move |j| (i, j))) {
                let u = [unit(i as usize), unit(j as usize)];
                if is_free(kernel.to_box(u)) {
                    sum += triweight::value(u[0]) * triweight::value(u[1]);
                }
            }
            let expected = sum * 4.0 / f64::from(steps * steps);
            let mass = kernel.mass(&boundary);
            assert!((mass - expected).abs() < 4e-3, "{kernel:?}: {mass} and {expected}");
        }
    }

    #[test]
    fn free_and_buried_kernels_have_masses_of_one_and_zero() {
        let boundary = holed();
        let kernel = |place, size| Kernel { place, factor: [size, 0.5 * size, size] };
        assert!((kernel([-0.7, 0.0], 0.1).mass(&boundary) - 1.0).abs() < 1e-14);
        assert!(kernel([0.0, 0.0], 0.05).mass(&boundary).abs() < 1e-14);
        assert_eq!(kernel([3.0, 0.0], 0.5).mass(&boundary), 0.0);
        assert!(kernel([-3.0, 0.0], 0.5).mass(&boundary).abs() < 1e-14);
        // The hole covers half of a narrow kernel on its lower edge, and all of the plane but the box is outside.
        let half = Kernel { place: [0.0, -0.375], factor: [0.01, 0.0, 0.02] };
        assert!((half.mass(&boundary) - 0.5).abs() < 1e-14);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (boundary, mut stream) = (holed(), Stream::new(2, 0));
        for _ in 0..50 {
            let kernel = random(&mut stream);
            let (mass, gradient) = kernel.mass_with_gradient(&boundary);
            assert!((mass - kernel.mass(&boundary)).abs() < 1e-14);
            let point = kernel.to_box([0.3, -0.4]);
            let (density, at_point) = kernel.density_with_gradient(point).unwrap();
            assert!((density - kernel.density(point)).abs() < 1e-12 * density);
            let h = 1e-6;
            for j in 0..5 {
                let moved = |by: f64| {
                    let mut kernel = kernel;
                    *kernel.place.iter_mut().chain(&mut kernel.factor).nth(j).unwrap() += by;
                    kernel
                };
                let difference = |f: &dyn Fn(Kernel) -> f64| (f(moved(h)) - f(moved(-h))) / (2.0 * h);
                let pick = |g: KernelGradient| *g.place.iter().chain(&g.factor).nth(j).unwrap();
                let expected = difference(&|kernel| kernel.mass(&boundary));
                assert!((pick(gradient) - expected).abs() < 1e-7, "{j} {kernel:?} {} {expected}", pick(gradient));
                let expected = difference(&|kernel| kernel.density(point));
                assert!((pick(at_point) - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{j} {kernel:?}");
            }
        }
    }
}
