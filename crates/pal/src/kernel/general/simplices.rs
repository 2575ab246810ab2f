//! Regions as simplices, and the parts of them that a kernel sees: sums of positive terms for small masses, samples and
//! expectations.

use std::sync::Arc;

use super::integral::GeneralKernel;
use super::{MOST, Point};
use crate::density::gauss::Gauss;
use crate::density::mesh::{Mesh, Shape};

/// A simplex of a region in coordinates of the box, which run from -1 to 1.
#[derive(Clone, Debug)]
pub(super) struct RegionSimplex {
    pub corners: Vec<Point>,
    pub volume: f64,
}

impl RegionSimplex {
    pub fn centre(&self) -> Point {
        let count = self.corners.len() as f64;
        std::array::from_fn(|j| self.corners.iter().map(|corner| corner[j]).sum::<f64>() / count)
    }
}

/// The simplices of a mesh with a single bin. A box is divided along the orders of its axes.
pub(super) fn of_mesh(mesh: &Mesh) -> Vec<RegionSimplex> {
    let n = mesh.dimension();
    let point =
        |t: &dyn Fn(usize) -> f64| -> Point { std::array::from_fn(|j| if j < n { 2.0 * t(j) - 1.0 } else { 0.0 }) };
    let mut simplices = Vec::new();
    for element in &mesh.elements {
        let volume = element.volume * 2f64.powi(n as i32);
        match &element.shape {
            Shape::Simplex(vertices) => {
                let corners = vertices.chunks(n).map(|v| point(&|j| v[j])).collect();
                simplices.push(RegionSimplex { corners, volume });
            }
            Shape::Cuboid(low, high) => {
                let orders: &[&[usize]] = match n {
                    1 => &[&[0]],
                    2 => &[&[0, 1], &[1, 0]],
                    _ => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
                };
                for order in orders {
                    let corner = |k: usize| point(&|j| if order[..k].contains(&j) { high[j] } else { low[j] });
                    let corners = (0..=n).map(corner).collect();
                    simplices.push(RegionSimplex { corners, volume: volume / orders.len() as f64 });
                }
            }
        }
    }
    simplices
}

/// A corner of a part: coordinates of the kernel, and barycentric ones of the simplex that it is a part of, which keep
/// the relative accuracy of the volumes of slivers.
#[derive(Clone, Copy, Debug)]
struct PartCorner {
    u: Point,
    within: [f64; MOST + 1],
}

/// A simplex inside the cube of a kernel, in its coordinates.
#[derive(Clone, Debug)]
pub(super) struct KernelSimplex {
    pub corners: Vec<Point>,
    /// n! times the volume in coordinates of the kernel.
    size: f64,
}

/// The parts of simplices inside the cube of a kernel. The kernel vanishes on the sides of its cube together with its
/// derivatives, so that what rounding takes away or adds there has no mass.
pub(super) fn seen_by(kernel: &GeneralKernel, simplices: &[RegionSimplex]) -> Vec<KernelSimplex> {
    let (n, view) = (kernel.n, kernel.view());
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    let mut seen = Vec::new();
    for simplex in simplices {
        let corner = |(k, v): (usize, &Point)| {
            let mut within = [0.0; MOST + 1];
            within[k] = 1.0;
            PartCorner { u: view(v), within }
        };
        let whole: Vec<PartCorner> = simplex.corners.iter().enumerate().map(corner).collect();
        let beyond = |axis: usize, sign: f64| whole.iter().all(|corner| sign * corner.u[axis] >= 1.0);
        if (0..n).any(|axis| beyond(axis, 1.0) || beyond(axis, -1.0)) {
            continue;
        }
        let mut parts = vec![whole];
        for (axis, sign) in (0..n).flat_map(|axis| [(axis, 1.0), (axis, -1.0)]) {
            parts = parts.iter().flat_map(|part| clip(part, axis, sign)).collect();
        }
        let size = simplex.volume * factorial / kernel.volume();
        for part in parts {
            let size = size * fraction(n, &part);
            if size > 0.0 {
                seen.push(KernelSimplex { corners: part.iter().map(|corner| corner.u).collect(), size });
            }
        }
    }
    seen
}

/// The part of a simplex with `sign u_axis <= 1`, as simplices.
fn clip(simplex: &[PartCorner], axis: usize, sign: f64) -> Vec<Vec<PartCorner>> {
    let value = |corner: &PartCorner| sign * corner.u[axis] - 1.0;
    let (inside, outside): (Vec<PartCorner>, Vec<PartCorner>) = simplex.iter().partition(|corner| value(corner) <= 0.0);
    let between = |a: &PartCorner, b: &PartCorner| {
        let way = value(a) / (value(a) - value(b));
        PartCorner {
            u: std::array::from_fn(|j| a.u[j] + way * (b.u[j] - a.u[j])),
            within: std::array::from_fn(|j| a.within[j] + way * (b.within[j] - a.within[j])),
        }
    };
    // A prism between triangles whose corners are joined in turn.
    let prism = |p: [PartCorner; 3], q: [PartCorner; 3]| {
        vec![vec![p[0], p[1], p[2], q[0]], vec![p[1], p[2], q[0], q[1]], vec![p[2], q[0], q[1], q[2]]]
    };
    match (&inside[..], &outside[..]) {
        ([], _) => Vec::new(),
        (_, []) => vec![inside],
        ([a], _) => vec![std::iter::once(*a).chain(outside.iter().map(|b| between(a, b))).collect()],
        ([a, b, c], [d]) => prism([*a, *b, *c], [between(a, d), between(b, d), between(c, d)]),
        ([a, b], [c, d]) => prism([*a, between(a, c), between(a, d)], [*b, between(b, c), between(b, d)]),
        _ => unreachable!("a simplex in three variables has four corners"),
    }
}

/// The volume of a part as a fraction of its simplex: the determinant of barycentric coordinates.
fn fraction(n: usize, part: &[PartCorner]) -> f64 {
    // Coordinates sum to 1, so that differences in all but the first one are enough.
    let row = |k: usize| -> Point {
        std::array::from_fn(|j| if j < n { part[k].within[j + 1] - part[0].within[j + 1] } else { 0.0 })
    };
    if n == 1 {
        return row(1)[0].abs();
    }
    let [a, b, c] = [row(1), row(2), row(3)];
    (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])).abs()
}

/// Collapsed coordinates on a simplex, each from 0 to 1.
pub(super) fn collapsed(corners: &[Point], s: &Point) -> Point {
    let mut point = Point::default();
    for k in (1..corners.len()).rev() {
        for j in 0..MOST {
            point[j] = s[k - 1] * (point[j] + (corners[k][j] - corners[k - 1][j]));
        }
    }
    std::array::from_fn(|j| point[j] + corners[0][j])
}

/// Visits the nodes of a rule along all collapsed coordinates of a simplex, with weights that sum to 1 / n!.
pub(super) fn visit_nodes(corners: &[Point], rule: &Gauss, visit: &mut impl FnMut(Point, f64)) {
    let n = corners.len() - 1;
    let count = rule.nodes.len();
    for at in 0..count.pow(n as u32) {
        let (mut rest, mut s, mut weight) = (at, Point::default(), 1.0);
        for (j, s) in s[..n].iter_mut().enumerate() {
            *s = rule.nodes[rest % count];
            weight *= rule.weights[rest % count] * s.powi((n - 1 - j) as i32);
            rest /= count;
        }
        visit(collapsed(corners, &s), weight);
    }
}

/// The rule along every collapsed coordinate that is exact for a polynomial of some degree times kernels of n variables.
pub(super) fn rule(n: usize, degree: usize) -> Arc<Gauss> {
    Gauss::for_degree(6 * n + degree + n - 1)
}

impl KernelSimplex {
    /// The integral of the kernel, a sum of positive terms.
    pub fn mass(&self, kernel: &GeneralKernel, rule: &Gauss) -> f64 {
        let mut mass = 0.0;
        visit_nodes(&self.corners, rule, &mut |u, weight| mass += weight * kernel.bell(&u));
        mass * self.size
    }

    /// Visits nodes with weights that sum to the volume in coordinates of the kernel.
    pub fn visit(&self, rule: &Gauss, visit: &mut impl FnMut(Point, f64)) {
        visit_nodes(&self.corners, rule, &mut |u, weight| visit(u, weight * self.size));
    }
}
