//! The integral of one kernel over a region in one or three variables, and how it changes with the kernel.
//!
//! As in the plane (`kernel/integral.rs`) both are sums over the walls of the region in coordinates `u` of the kernel,
//!
//! ```text
//! Z  = sum over walls of the integral of F(u_1) k(u_2) .. k(u_n) along the first coordinate of the outward normal
//! dZ = sum over walls of the integral of K(u) along v(u) . normal,      v(u) = -L^-1 (dc + dL u)
//! ```
//!
//! In one variable a wall is a point. In three variables it is a triangle, cut to the column |u_2|, |u_3| <= 1, where the
//! integrand is polynomial of degree 19 in two coordinates: eleven times ten Gauss nodes are exact. `F k k` and `K` are
//! smooth across the sides of the column and of the cube, so that no decision depends on rounding.

// Loops over indices of small matrices read like the formulas.
#![allow(clippy::needless_range_loop)]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use smallvec::SmallVec;

use super::super::triweight;
use super::simplices::RegionSimplex;
use super::{MOST, Point};
use crate::density::gauss::Gauss;

/// A lower triangular matrix.
pub(super) type Matrix = [Point; 3];

/// A kernel in coordinates of the box: `v = place + L u` with a lower triangular factor and |u_j| <= 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GeneralKernel {
    pub n: usize,
    pub place: Point,
    /// The entries on the diagonal are positive.
    pub factor: Matrix,
}

/// The derivatives of a number with respect to the place and the factor of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct GeneralKernelGradient {
    pub place: Point,
    pub factor: Matrix,
}

impl GeneralKernelGradient {
    pub fn add(&mut self, other: &GeneralKernelGradient, factor: f64) {
        self.place.iter_mut().zip(other.place).for_each(|(sum, part)| *sum += factor * part);
        let rows = self.factor.iter_mut().flatten().zip(other.factor.iter().flatten());
        rows.for_each(|(sum, part)| *sum += factor * part);
    }
}

/// A wall of a region in coordinates of the box, which its normal points out of.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneralWall {
    /// One corner in one variable, and three in three variables, counter-clockwise from outside.
    pub corners: [Point; MOST],
    /// How often it counts: the sign of its normal in one variable.
    pub count: f64,
}

/// The walls of simplices: their sides without those that two of them share as a whole.
pub(super) fn walls(n: usize, simplices: &[RegionSimplex]) -> Vec<GeneralWall> {
    let mut known: BTreeMap<Vec<[u64; MOST]>, (f64, [Point; MOST])> = BTreeMap::new();
    for simplex in simplices {
        let v = &simplex.corners;
        if n == 1 {
            let (low, high) = if v[0][0] < v[1][0] { (v[0], v[1]) } else { (v[1], v[0]) };
            for (at, sign) in [(low, -1.0), (high, 1.0)] {
                let corners = [at, Point::default(), Point::default()];
                known.entry(vec![bits(&at)]).or_insert((0.0, corners)).0 += sign;
            }
            continue;
        }
        let edge = |k: usize| [0, 1, 2].map(|j| v[k][j] - v[0][j]);
        let orientation = dot(&edge(1), &cross(&edge(2), &edge(3)));
        for side in [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]] {
            let corners = side.map(|k| v[k]);
            let mut order = [0, 1, 2];
            order.sort_by_key(|k| bits(&corners[*k]));
            // An even order of the corners has the same normal.
            let even = [[0, 1, 2], [1, 2, 0], [2, 0, 1]].contains(&order);
            let sorted = order.map(|k| corners[k]);
            let key = sorted.iter().map(bits).collect();
            let sign = if even == (orientation > 0.0) { 1.0 } else { -1.0 };
            known.entry(key).or_insert((0.0, sorted)).0 += sign;
        }
    }
    let kept = known.into_values().filter(|(count, _)| *count != 0.0);
    kept.map(|(count, corners)| GeneralWall { corners, count }).collect()
}

fn bits(point: &Point) -> [u64; MOST] {
    // Zeros of both signs are the same place.
    point.map(|x| (x + 0.0).to_bits())
}

fn cross(a: &Point, b: &Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

static OUTER: LazyLock<Arc<Gauss>> = LazyLock::new(|| Gauss::for_degree(20));
static INNER: LazyLock<Arc<Gauss>> = LazyLock::new(|| Gauss::for_degree(19));

/// The mass of a kernel, and for K and every K u_j the integrals along the walls times the outward normal.
#[derive(Default)]
struct WallSums {
    mass: f64,
    along: [Point; MOST + 1],
}

impl GeneralKernel {
    /// The inverse of the factor.
    fn inverse(&self) -> Matrix {
        let mut inverse = Matrix::default();
        for j in 0..self.n {
            inverse[j][j] = 1.0 / self.factor[j][j];
            for i in j + 1..self.n {
                let sum: f64 = (j..i).map(|k| self.factor[i][k] * inverse[k][j]).sum();
                inverse[i][j] = -sum / self.factor[i][i];
            }
        }
        inverse
    }

    /// Points of the box in coordinates of the kernel.
    pub fn view(&self) -> impl Fn(&Point) -> Point + use<> {
        let (n, place, inverse) = (self.n, self.place, self.inverse());
        move |v| {
            let away = [0, 1, 2].map(|j| v[j] - place[j]);
            std::array::from_fn(|i| if i < n { (0..=i).map(|j| inverse[i][j] * away[j]).sum() } else { 0.0 })
        }
    }

    /// The product of the kernel's factors at coordinates inside its cube.
    pub fn bell(&self, u: &Point) -> f64 {
        u[..self.n].iter().map(|u| triweight::value(*u)).product()
    }

    /// The volume that a unit of the coordinates of the kernel has in the box.
    pub fn volume(&self) -> f64 {
        (0..self.n).map(|j| self.factor[j][j]).product()
    }

    /// The density at a point of the box.
    pub fn density(&self, v: &Point) -> f64 {
        self.bell(&self.view()(v)) / self.volume()
    }

    /// The density at a point of the box and its derivatives with respect to the kernel, if the point is inside its cube.
    /// Derivatives with respect to the point are those with respect to the place with the opposite sign.
    pub fn density_with_gradient(&self, v: &Point) -> Option<(f64, GeneralKernelGradient)> {
        let u = self.view()(v);
        if !u[..self.n].iter().all(|u| u.abs() < 1.0) {
            return None;
        }
        let density = self.bell(&u) / self.volume();
        let slopes: Point = std::array::from_fn(|j| {
            if j < self.n { density * triweight::slope(u[j]) / triweight::inside(u[j]) } else { 0.0 }
        });
        let mut gradient = self.pull(&slopes, |j| u[j]);
        (0..self.n).for_each(|j| gradient.factor[j][j] -= density / self.factor[j][j]);
        Some((density, gradient))
    }

    /// The derivatives of a number whose derivatives with respect to `u` are given, where `u` moves with the kernel.
    fn pull(&self, of_u: &Point, u: impl Fn(usize) -> f64) -> GeneralKernelGradient {
        let inverse = self.inverse();
        let mut gradient = GeneralKernelGradient::default();
        for i in 0..self.n {
            gradient.place[i] = -(i..self.n).map(|k| inverse[k][i] * of_u[k]).sum::<f64>();
            (0..=i).for_each(|j| gradient.factor[i][j] = gradient.place[i] * u(j));
        }
        gradient
    }

    /// The integral over a region.
    pub fn mass(&self, walls: &[GeneralWall]) -> f64 {
        self.wall_sums(walls).mass
    }

    /// The integral over a region, and its derivatives.
    pub fn mass_with_gradient(&self, walls: &[GeneralWall]) -> (f64, GeneralKernelGradient) {
        let sums = self.wall_sums(walls);
        let mut gradient = self.pull(&sums.along[0], |_| 0.0);
        for j in 0..self.n {
            let of_column = self.pull(&sums.along[j + 1], |_| 0.0).place;
            (j..self.n).for_each(|i| gradient.factor[i][j] = of_column[i]);
        }
        (sums.mass, gradient)
    }

    fn wall_sums(&self, walls: &[GeneralWall]) -> WallSums {
        let (view, mut sums) = (self.view(), WallSums::default());
        for wall in walls {
            if self.n == 1 {
                let u = view(&wall.corners[0]);
                sums.mass += wall.count * triweight::integral(u[0]);
                let k = wall.count * triweight::value(u[0]);
                sums.along[0][0] += k;
                sums.along[1][0] += k * u[0];
                continue;
            }
            let mut polygon: FacePolygon = wall.corners.iter().map(&view).collect();
            let beyond = |axis: usize, sign: f64| polygon.iter().all(|u| sign * u[axis] >= 1.0);
            if beyond(0, -1.0) || [1, 2].iter().any(|axis| beyond(*axis, 1.0) || beyond(*axis, -1.0)) {
                continue;
            }
            for (axis, sign) in [(1, 1.0), (1, -1.0), (2, 1.0), (2, -1.0), (0, -1.0)] {
                polygon = cut(&polygon, |u| sign * u[axis] - 1.0);
            }
            // To the right of the cube F is 1 and K is 0.
            sums.add(&cut(&polygon, |u| 1.0 - u[0]), wall.count, |u| {
                (triweight::inside(u[1]) * triweight::inside(u[2]), 0.0)
            });
            sums.add(&cut(&polygon, |u| u[0] - 1.0), wall.count, |u| {
                let across = triweight::inside(u[1]) * triweight::inside(u[2]);
                (triweight::integral_inside(u[0]) * across, triweight::inside(u[0]) * across)
            });
        }
        sums
    }
}

type FacePolygon = SmallVec<[Point; 8]>;

impl WallSums {
    /// Adds the integrals over a polygon, given what is integrated for the mass and K.
    fn add(&mut self, polygon: &FacePolygon, count: f64, values: impl Fn(&Point) -> (f64, f64)) {
        for pair in polygon.get(1..).unwrap_or_default().windows(2) {
            let corner = polygon[0];
            let edges = [pair[0], pair[1]].map(|to| [0, 1, 2].map(|j| to[j] - corner[j]));
            let normal = cross(&edges[0], &edges[1]);
            let (mut mass, mut along) = (0.0, [0.0; MOST + 1]);
            for (s, outer) in OUTER.nodes.iter().zip(&OUTER.weights) {
                for (t, inner) in INNER.nodes.iter().zip(&INNER.weights) {
                    let u: Point =
                        std::array::from_fn(|j| corner[j] + s * (edges[0][j] + t * (edges[1][j] - edges[0][j])));
                    let (f, k) = values(&u);
                    let weight = outer * inner * s * count;
                    mass += weight * f;
                    along[0] += weight * k;
                    (0..MOST).for_each(|j| along[j + 1] += weight * k * u[j]);
                }
            }
            self.mass += mass * normal[0];
            for (sum, along) in self.along.iter_mut().zip(along) {
                sum.iter_mut().zip(normal).for_each(|(sum, n)| *sum += along * n);
            }
        }
    }
}

/// The part of a convex polygon where a linear function is not positive.
fn cut(polygon: &FacePolygon, value: impl Fn(&Point) -> f64) -> FacePolygon {
    let mut out = FacePolygon::new();
    for (k, to) in polygon.iter().enumerate() {
        let from = &polygon[if k == 0 { polygon.len() - 1 } else { k - 1 }];
        let (p, q) = (value(from), value(to));
        if p < 0.0 && q > 0.0 || p > 0.0 && q < 0.0 {
            out.push(std::array::from_fn(|j| from[j] + p / (p - q) * (to[j] - from[j])));
        }
        if q <= 0.0 {
            out.push(*to);
        }
    }
    out
}
