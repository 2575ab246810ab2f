//! A region as boxes and simplices in bin-local coordinates, and cubature on them.
//!
//! On a simplex with vertices v_0 .. v_n the collapsed (Duffy) coordinates s in [0, 1]^n run through
//!
//! ```text
//! y = v_0 + s_1 ((v_1 - v_0) + s_2 ((v_2 - v_1) + .. s_n (v_n - v_(n-1))))         dy = n! vol s_1^(n-1) s_2^(n-2) .. s_(n-1) ds
//! ```
//!
//! and a polynomial in y is a polynomial in every s_j, so that Gauss-Legendre nodes per axis integrate it exactly. All weights are
//! positive: the integral of a square keeps its relative accuracy whatever the basis it is written in.

use std::sync::Arc;

use rayon::prelude::*;

use super::gauss::Gauss;
use super::grid::Grid;
use crate::moments::{Converter, Frame};
use crate::number::Rational;
use crate::region::{Cell, Polytope, Region, Unbounded};

/// How a piecewise polynomial grows: the total degree on a bin, and the largest degree in a single variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degree {
    /// in all variables together
    pub total: usize,
    /// in any one variable
    pub axis: usize,
}

impl Degree {
    /// The degree of a product with a polynomial of so many degrees.
    pub(crate) fn times(self, other: usize) -> Degree {
        Degree { total: self.total + other, axis: self.axis + other }
    }
}

/// One convex piece, in local coordinates of its bin.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub bin: Vec<u32>,
    pub shape: Shape,
    /// Its volume as a part of the whole box around the region.
    pub volume: f64,
}

/// The shape of an element, in coordinates of [0, 1]^n.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Lower and upper ends per axis.
    Cuboid(Vec<f64>, Vec<f64>),
    /// n + 1 vertices, n coordinates each.
    Simplex(Vec<f64>),
}

/// The pieces of a region.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    pub grid: Arc<Grid>,
    pub elements: Vec<Element>,
    pub cells: usize,
}

impl Mesh {
    /// Cuts a region along the edges of the grid and triangulates what is not a box.
    pub fn new(region: &Region, grid: &Arc<Grid>) -> Result<Mesh, MeshError> {
        let inner = grid.axes().iter().map(|axis| axis.edges()[1..axis.bins()].to_vec());
        let cut = region.with_knots(&inner.collect::<Vec<_>>())?;
        let cells = cut.decompose()?;
        let parts: Vec<Vec<Element>> = cells.par_iter().map(|cell| elements(cell, grid)).collect();
        Ok(Mesh { grid: grid.clone(), cells: cells.len(), elements: parts.into_iter().flatten().collect() })
    }

    pub fn dimension(&self) -> usize {
        self.grid.dimension()
    }
}

/// Why a region cannot be cut.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MeshError {
    /// See there.
    #[error(transparent)]
    Region(#[from] crate::region::RegionError),
    /// See there.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
}

fn elements(cell: &Cell, grid: &Grid) -> Vec<Element> {
    let polytope = cell.polytope();
    let bin = cell.bin();
    let edges = grid.axes().iter().zip(bin).map(|(axis, b)| &axis.edges()[*b as usize..*b as usize + 2]);
    let ends: Vec<(Rational, Rational)> = edges.map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let frame = Frame::unit(&ends);
    let converter = Converter::new(&frame);
    let (corners, coordinate) = converter.corners(polytope);
    let share = grid.share(bin);
    if is_cuboid(polytope) {
        let n = polytope.dimension();
        let fold = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            (0..n).map(|j| corners.iter().map(|c| c[j]).reduce(pick).unwrap_or(0.0)).collect()
        };
        let (low, high) = (fold(f64::min), fold(f64::max));
        let volume = share * low.iter().zip(&high).map(|(a, b)| b - a).product::<f64>();
        return vec![Element { bin: bin.to_vec(), shape: Shape::Cuboid(low, high), volume }];
    }
    let (simplices, _) = converter.simplices(polytope, &polytope.triangulate(), &corners, coordinate);
    let n = polytope.dimension();
    let n_factorial: f64 = (1..=n).map(|k| k as f64).product();
    let vertices = simplices.vertices.chunks(n * (n + 1));
    let parts = vertices.zip(&simplices.sizes).map(|(vertices, size)| Element {
        bin: bin.to_vec(),
        shape: Shape::Simplex(vertices.to_vec()),
        volume: share * size / n_factorial,
    });
    parts.filter(|element| element.volume > 0.0).collect()
}

/// Whether every facet is orthogonal to an axis.
fn is_cuboid(polytope: &Polytope) -> bool {
    let walls = polytope.half_spaces();
    walls.len() == 2 * polytope.dimension()
        && walls.iter().all(|(normal, _)| normal.iter().filter(|a| !a.is_zero()).count() == 1)
}

/// Coordinates in the unit cube that run through an element, the same for every element of one shape.
impl Shape {
    /// The point at `s` in [0, 1]^n.
    pub fn map(&self, s: &[f64], t: &mut [f64]) {
        match self {
            Shape::Cuboid(low, high) => {
                for (((t, s), a), b) in t.iter_mut().zip(s).zip(low).zip(high) {
                    *t = a + s * (b - a);
                }
            }
            Shape::Simplex(v) => {
                let n = s.len();
                t.fill(0.0);
                for k in (1..=n).rev() {
                    for j in 0..n {
                        t[j] = s[k - 1] * (t[j] + (v[k * n + j] - v[(k - 1) * n + j]));
                    }
                }
                t.iter_mut().zip(v).for_each(|(t, v)| *t += v);
            }
        }
    }

    /// The density of the volume at `s`, relative to the volume of the element: its mean over the cube is 1.
    pub fn jacobian(&self, s: &[f64]) -> f64 {
        match self {
            Shape::Cuboid(..) => 1.0,
            Shape::Simplex(_) => {
                let n = s.len();
                s.iter().enumerate().map(|(k, s)| (n - k) as f64 * s.powi((n - 1 - k) as i32)).product()
            }
        }
    }

    /// The degree along axis `k` of `s` of a polynomial times the Jacobian.
    pub fn degree(&self, degree: Degree, k: usize, dimension: usize) -> usize {
        match self {
            Shape::Cuboid(..) => degree.axis,
            Shape::Simplex(_) => degree.total + dimension - 1 - k,
        }
    }

    /// The centre of gravity.
    pub fn centre(&self) -> Vec<f64> {
        match self {
            Shape::Cuboid(low, high) => low.iter().zip(high).map(|(a, b)| (a + b) / 2.0).collect(),
            Shape::Simplex(v) => {
                // (n + 1) n numbers
                let n = ((4 * v.len() + 1) as f64).sqrt() as usize / 2;
                let mut centre = vec![0.0; n];
                v.chunks(n).for_each(|v| centre.iter_mut().zip(v).for_each(|(c, x)| *c += x / (n + 1) as f64));
                centre
            }
        }
    }
}

/// Cubature nodes in the unit cube with weights that sum to 1, for all simplices or for all boxes.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    dimension: usize,
    /// For simplices barycentric coordinates would do; the cube's coordinates serve both.
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

impl Rule {
    fn new(like: &Shape, dimension: usize, degree: Degree) -> Rule {
        let axes: Vec<Arc<Gauss>> =
            (0..dimension).map(|k| Gauss::for_degree(like.degree(degree, k, dimension))).collect();
        let mut rule = Rule { dimension, nodes: Vec::new(), weights: Vec::new() };
        let mut at = vec![0; dimension];
        loop {
            let s: Vec<f64> = at.iter().zip(&axes).map(|(i, axis)| axis.nodes[*i]).collect();
            let weight: f64 = at.iter().zip(&axes).map(|(i, axis)| axis.weights[*i]).product();
            rule.weights.push(weight * like.jacobian(&s));
            rule.nodes.extend(s);
            let Some(next) = (0..dimension).rev().find(|k| at[*k] + 1 < axes[*k].nodes.len()) else { break };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
        rule
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }
}

/// The two rules that integrate polynomials of a degree over the elements of a mesh.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    cuboid: Rule,
    simplex: Rule,
}

impl Rules {
    pub fn new(dimension: usize, degree: Degree) -> Rules {
        Rules {
            cuboid: Rule::new(&Shape::Cuboid(Vec::new(), Vec::new()), dimension, degree),
            simplex: Rule::new(&Shape::Simplex(Vec::new()), dimension, degree),
        }
    }

    pub fn of(&self, shape: &Shape) -> &Rule {
        match shape {
            Shape::Cuboid(..) => &self.cuboid,
            Shape::Simplex(_) => &self.simplex,
        }
    }

    /// How many nodes it takes for a mesh.
    pub fn count(&self, mesh: &Mesh) -> usize {
        mesh.elements.iter().map(|element| self.of(&element.shape).len()).sum()
    }

    /// Visits all nodes of an element in local coordinates, with weights that sum to its volume.
    pub fn visit(&self, element: &Element, mut visit: impl FnMut(&[f64], f64)) {
        let rule = self.of(&element.shape);
        let mut t = vec![0.0; rule.dimension];
        for (s, weight) in rule.nodes.chunks(rule.dimension).zip(&rule.weights) {
            element.shape.map(s, &mut t);
            visit(&t, weight * element.volume);
        }
    }
}
