//! A region as elements: boxes and simplices in local coordinates of their bins.
//!
//! On a simplex with vertices v_0 .. v_n the collapsed (Duffy) coordinates s in [0, 1]^n run through
//!
//! ```text
//! y = v_0 + s_1 ((v_1 - v_0) + s_2 ((v_2 - v_1) + .. s_n (v_n - v_(n-1))))
//! dy = n! vol s_1^(n-1) s_2^(n-2) .. s_(n-1) ds
//! ```
//!
//! and a polynomial in y is a polynomial in every s_j, so that Gauss-Legendre nodes per axis integrate it exactly. All
//! weights are positive: the integral of a square keeps its relative accuracy whatever the basis it is written in. The
//! triangulation of cells is that of the PAL paper, Section 4; the cubature on it is in [`super::cubature`].

use std::sync::Arc;

use rayon::prelude::*;

use super::grid::{BinIndex, Grid};
use crate::interrupt::checkpoint;
use crate::moments::{AffineFrame, Converter};
use crate::number::{self, Integer, Rational};
use crate::region::{Cell, Lattice, Polytope, Region, Skeleton, Unbounded};

/// The degree of a piecewise polynomial on a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degree {
    /// The total degree, in all variables together.
    pub total: usize,
    /// The largest degree in a single variable.
    pub axis: usize,
}

impl Degree {
    /// The degree of the product with a polynomial of total degree `other`.
    pub(crate) fn times(self, other: usize) -> Degree {
        Degree { total: self.total + other, axis: self.axis + other }
    }
}

/// A convex piece of a region inside one bin, in local coordinates of that bin.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub bin: Vec<BinIndex>,
    pub shape: Shape,
    /// The volume as a fraction of the volume of the box around the region.
    pub volume: f64,
}

/// Which element of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ElementIndex(u32);

impl ElementIndex {
    /// The element at a position in [`Mesh::elements`].
    pub fn new(position: u32) -> ElementIndex {
        ElementIndex(position)
    }

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

/// A region cut into elements along a grid.
#[derive(Clone, Debug)]
pub struct Mesh {
    pub(crate) grid: Arc<Grid>,
    pub(crate) elements: Vec<Element>,
    pub(crate) cells: usize,
    /// For each cell where its elements end; they start where those of the cell before it end.
    pub(crate) cell_ends: Vec<usize>,
    /// For each cell what the Boolean variables have to satisfy there; `None` if any values do.
    pub(crate) undecided: Vec<Option<Arc<Skeleton>>>,
}

impl Mesh {
    /// Cuts a region along the edges of the grid and triangulates the cells that are not boxes.
    pub(crate) fn new(region: &Region, grid: &Arc<Grid>) -> Result<Mesh, MeshError> {
        let inner = grid.axes().iter().map(|axis| axis.edges()[1..axis.bins()].to_vec());
        let cut = region.with_knots(&inner.collect::<Vec<_>>())?;
        let cells = cut.decompose()?;
        let parts: Vec<Vec<Element>> = cells.par_iter().map(|cell| elements(cell, grid)).collect::<Result<_, _>>()?;
        let mut end = 0;
        let cell_ends = parts.iter().map(|part| {
            end += part.len();
            end
        });
        let cell_ends = cell_ends.collect();
        let undecided = cells.iter().map(|cell| cell.undecided().cloned()).collect();
        let elements = parts.into_iter().flatten().collect();
        Ok(Mesh { grid: grid.clone(), cells: cells.len(), elements, cell_ends, undecided })
    }

    /// The mesh of some of the cells, which are given in order.
    pub(crate) fn of_cells(&self, chosen: &[usize]) -> Mesh {
        let start = |cell: usize| if cell == 0 { 0 } else { self.cell_ends[cell - 1] };
        let (mut elements, mut cell_ends) = (Vec::new(), Vec::new());
        for cell in chosen {
            elements.extend_from_slice(&self.elements[start(*cell)..self.cell_ends[*cell]]);
            cell_ends.push(elements.len());
        }
        let undecided = chosen.iter().map(|cell| self.undecided[*cell].clone()).collect();
        Mesh { grid: self.grid.clone(), elements, cells: chosen.len(), cell_ends, undecided }
    }

    /// The elements of every cell.
    pub(crate) fn by_cell(&self) -> impl Iterator<Item = &[Element]> {
        let starts = std::iter::once(0).chain(self.cell_ends.iter().copied());
        starts.zip(&self.cell_ends).map(|(start, end)| &self.elements[start..*end])
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

    /// Whether a number is the volume of all elements as a fraction of the box. A file whose tensors belong to another
    /// constraint is recognised by this.
    pub(crate) fn is_volume(&self, number: f64) -> bool {
        let volume: f64 = self.elements.iter().map(|element| element.volume).sum();
        (number - volume).abs() <= 1e-6 * volume
    }
}

/// Why a region cannot be cut into elements.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MeshError {
    /// The knots or the decomposition of the region failed.
    #[error(transparent)]
    Region(#[from] crate::region::RegionError),
    /// The region is unbounded.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// A cell in many dimensions has too many simplices.
    #[error(
        "a cell of the region has {0:.0} simplices, and a density needs all of them; at most {MAX_SIMPLICES} are \
         possible. Use fewer variables"
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
    let frame = AffineFrame::unit(&ends);
    let converter = Converter::new(&frame);
    let (corners, coordinate) = converter.corners(polytope);
    let bin_fraction = grid.bin_fraction(&bin);
    if is_cuboid(polytope) {
        let n = polytope.dimension();
        let fold = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            let ends = (0..n).map(|j| corners.iter().map(|c| c[j]).reduce(pick));
            ends.map(|end| end.expect("a polytope has vertices")).collect()
        };
        let (low, high) = (fold(f64::min), fold(f64::max));
        let volume = bin_fraction * cuboid_volume(polytope, &ends);
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
        volume: bin_fraction * size / n_factorial,
    });
    Ok(parts.filter(|element| element.volume > 0.0).collect())
}

/// The volume of a box as a fraction of its bin, from its exact facets: differences of rounded coordinates would have
/// few correct digits for a thin box.
fn cuboid_volume(polytope: &Polytope, bin: &[(Rational, Rational)]) -> f64 {
    let mut sides = vec![Rational::ZERO; bin.len()];
    for (normal, offset) in polytope.half_spaces() {
        for (side, a) in sides.iter_mut().zip(&normal).filter(|(_, a)| !a.is_zero()) {
            // Offsets of upper ends are added; those of lower ends have the opposite sign.
            let size = if *a < Integer::ZERO { -a } else { a.clone() };
            *side += Rational::from(offset.clone()) / Rational::from(size);
        }
    }
    sides.iter().zip(bin).map(|(side, (low, high))| number::to_f64(&(side / (high - low)))).product()
}

/// Whether a polytope is a box: every facet is orthogonal to an axis.
fn is_cuboid(polytope: &Polytope) -> bool {
    let facets = polytope.half_spaces();
    facets.len() == 2 * polytope.dimension()
        && facets.iter().all(|(normal, _)| normal.iter().filter(|a| !a.is_zero()).count() == 1)
}

impl Shape {
    /// Computes the point of the element at `s` in [0, 1]^n: an affine map of the unit cube for boxes, collapsed
    /// coordinates for simplices.
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

    /// Computes the point at a node of a cubature rule, which has coordinates in the unit cube for boxes and
    /// barycentric coordinates for simplices.
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
                // n (n + 1) numbers, whose integer square root is n.
                let n = v.len().isqrt();
                let mut centre = vec![0.0; n];
                v.chunks(n).for_each(|v| centre.iter_mut().zip(v).for_each(|(c, x)| *c += x / (n + 1) as f64));
                centre
            }
        }
    }
}
