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

use super::grid::{BinIndex, Grid};
use crate::interrupt::checkpoint;
use crate::moments::{Converter, Frame};
use crate::number::{self, Integer, Rational};
use crate::region::{Cell, Lattice, Polytope, Region, Unbounded};

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
    pub bin: Vec<BinIndex>,
    pub shape: Shape,
    /// Its volume as a part of the whole box around the region.
    pub volume: f64,
}

/// Which element of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ElementIndex(u32);

impl ElementIndex {
    /// The position in [`Mesh::elements`].
    pub fn get(self) -> usize {
        self.0 as usize
    }
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
pub struct Mesh {
    pub(crate) grid: Arc<Grid>,
    pub(crate) elements: Vec<Element>,
    pub(crate) cells: usize,
}

impl Mesh {
    /// Cuts a region along the edges of the grid and triangulates what is not a box.
    pub(crate) fn new(region: &Region, grid: &Arc<Grid>) -> Result<Mesh, MeshError> {
        let inner = grid.axes().iter().map(|axis| axis.edges()[1..axis.bins()].to_vec());
        let cut = region.with_knots(&inner.collect::<Vec<_>>())?;
        let cells = cut.decompose()?;
        let parts: Vec<Vec<Element>> = cells.par_iter().map(|cell| elements(cell, grid)).collect::<Result<_, _>>()?;
        Ok(Mesh { grid: grid.clone(), cells: cells.len(), elements: parts.into_iter().flatten().collect() })
    }

    /// The indices of all elements, in order.
    pub(crate) fn element_indices(&self) -> impl ExactSizeIterator<Item = ElementIndex> + use<> {
        let count =
            u32::try_from(self.elements.len()).expect("a mesh that fits into memory has fewer than 2^32 elements");
        (0..count).map(ElementIndex)
    }

    pub(crate) fn element(&self, index: ElementIndex) -> &Element {
        &self.elements[index.get()]
    }

    pub(crate) fn dimension(&self) -> usize {
        self.grid.dimension()
    }

    /// Whether a number is the volume of all elements, as a part of the box: tells tensors of another constraint.
    pub(crate) fn is_volume(&self, number: f64) -> bool {
        let volume: f64 = self.elements.iter().map(|element| element.volume).sum();
        (number - volume).abs() <= 1e-6 * volume
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
    /// A cell of many dimensions.
    #[error(
        "a cell of the region has {0:.0} simplices, and a density needs all of them; at most {MAX_SIMPLICES} are possible. Use fewer variables"
    )]
    Simplices(f64),
}

/// The largest number of simplices of one cell.
const MAX_SIMPLICES: usize = 1_000_000;

fn elements(cell: &Cell, grid: &Grid) -> Result<Vec<Element>, MeshError> {
    checkpoint();
    let polytope = cell.polytope();
    let bin: Vec<BinIndex> = cell.bin().iter().map(|b| BinIndex::new(*b as usize)).collect();
    let edges = grid.axes().iter().zip(&bin).map(|(axis, b)| &axis.edges()[b.get()..b.get() + 2]);
    let ends: Vec<(Rational, Rational)> = edges.map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let frame = Frame::unit(&ends);
    let converter = Converter::new(&frame);
    let (corners, coordinate) = converter.corners(polytope);
    let share = grid.share(&bin);
    if is_cuboid(polytope) {
        let n = polytope.dimension();
        let fold = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            (0..n).map(|j| corners.iter().map(|c| c[j]).reduce(pick).unwrap_or(0.0)).collect()
        };
        let (low, high) = (fold(f64::min), fold(f64::max));
        let volume = share * cuboid_volume(polytope, &ends);
        return Ok(vec![Element { bin, shape: Shape::Cuboid(low, high), volume }]);
    }
    let lattice = Lattice::new(polytope);
    if lattice.simplex_count() > MAX_SIMPLICES as f64 {
        return Err(MeshError::Simplices(lattice.simplex_count()));
    }
    let (simplices, _) = converter.simplices(polytope, &lattice.simplices(), &corners, coordinate);
    let n = polytope.dimension();
    let n_factorial: f64 = (1..=n).map(|k| k as f64).product();
    let vertices = simplices.vertices.chunks(n * (n + 1));
    let parts = vertices.zip(&simplices.sizes).map(|(vertices, size)| Element {
        bin: bin.clone(),
        shape: Shape::Simplex(vertices.to_vec()),
        volume: share * size / n_factorial,
    });
    Ok(parts.filter(|element| element.volume > 0.0).collect())
}

/// The volume of a box as a part of its bin, from its exact walls: differences of rounded coordinates have few digits if it is thin.
fn cuboid_volume(polytope: &Polytope, bin: &[(Rational, Rational)]) -> f64 {
    let mut sides = vec![Rational::ZERO; bin.len()];
    for (normal, offset) in polytope.half_spaces() {
        for (side, a) in sides.iter_mut().zip(&normal).filter(|(_, a)| !a.is_zero()) {
            // Upper ends are added, lower ends come with the other sign.
            let size = if *a < Integer::ZERO { -a } else { a.clone() };
            *side += Rational::from(offset.clone()) / Rational::from(size);
        }
    }
    sides.iter().zip(bin).map(|(side, (low, high))| number::to_f64(&(side / (high - low)))).product()
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

    /// The point at a node of a cubature rule: coordinates in the unit cube for boxes, barycentric ones for simplices.
    pub fn at(&self, node: &[f64], t: &mut [f64]) {
        match self {
            Shape::Cuboid(..) => self.map(node, t),
            Shape::Simplex(v) => {
                t.fill(0.0);
                for (weight, v) in node.iter().zip(v.chunks(t.len())) {
                    t.iter_mut().zip(v).for_each(|(t, v)| *t += weight * v);
                }
            }
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
