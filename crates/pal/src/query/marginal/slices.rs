//! The slices of a mesh at the quadrature nodes of one axis, from which marginals are built.
//!
//! Between two neighbouring projections of its vertices a slice of an element keeps its combinatorial type, its
//! vertices move linearly, and the integral of a polynomial of degree D over it is a polynomial in the coordinate:
//!
//! ```text
//! degree of the integral <= D + n - 1 for a simplex,     <= D in that variable for a box
//! ```
//!
//! so that one slice more than that, at Gauss nodes, determines it. An element between two neighbouring projections of
//! its own vertices is called a slab here. The marginal is the sum over all slabs, a polynomial between two
//! neighbouring projections of vertices of any elements, which is called an interval. Only the slabs take evaluations
//! of the density; to slice anew in every interval would take a dozen times as many on a map. The slices are cut when
//! they are needed: that is cheap compared with evaluating a density on them, and their nodes need not be stored.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::slice::{SlicePlane, SliceSide, Slicer};
use super::super::univariate::Univariate;
use super::Marginal;
use super::mixture::Mixture;
use crate::density::BinIndex;
use crate::density::cubature::MeshCubature;
use crate::density::functions::ComponentFunctions;
use crate::density::gauss::Gauss;
use crate::density::mesh::{Degree, Element, ElementIndex, Mesh, Shape};
use crate::interrupt::checkpoint;

/// Projections of vertices that are closer than this in local coordinates count as one.
const SAME: f64 = 1e-13;

/// The axis of one variable cut into intervals on which the marginals of all densities are polynomials.
#[derive(Debug)]
pub(crate) struct Slices {
    mesh: Arc<Mesh>,
    axis: usize,
    cubature: MeshCubature,
    slabs: Vec<Slab>,
    intervals: Vec<PolynomialInterval>,
    /// The slabs that lie above each interval, interval by interval.
    met: Vec<SlabIndex>,
}

/// An element between neighbouring projections of its own vertices.
#[derive(Debug)]
struct Slab {
    element: ElementIndex,
    low: f64,
    high: f64,
    /// The number of slices that determine the polynomial on it.
    nodes: usize,
}

/// Which slab of [`Slices`].
#[derive(Clone, Copy, Debug)]
struct SlabIndex(u32);

impl SlabIndex {
    fn new(index: usize) -> SlabIndex {
        SlabIndex(u32::try_from(index).expect("slabs that fit into memory are fewer than 2^32"))
    }

    fn get(self) -> usize {
        self.0 as usize
    }
}

/// An interval of the axis inside one bin, in local coordinates, on which marginals are polynomials.
#[derive(Debug)]
struct PolynomialInterval {
    bin: BinIndex,
    low: f64,
    high: f64,
    nodes: usize,
    /// The range of its slabs in [`Slices::met`].
    met: Range<usize>,
}

/// A polynomial piece of a marginal before normalisation, in local coordinates of a bin.
pub(super) struct UnnormalisedPiece {
    pub bin: BinIndex,
    pub low: f64,
    pub high: f64,
    /// Values at Gauss nodes.
    pub values: Vec<f64>,
}

impl Slices {
    /// Cuts an axis of a mesh for densities of at most a degree.
    pub fn new(mesh: &Arc<Mesh>, axis: usize, degree: Degree) -> Slices {
        let n = mesh.dimension();
        let bins = mesh.grid.axes()[axis].bins();
        let mut by_bin = vec![Vec::new(); bins];
        for element in mesh.element_indices() {
            by_bin[mesh.element(element).bin[axis].get()].push(element);
        }
        let mut slices = Slices {
            mesh: mesh.clone(),
            axis,
            cubature: MeshCubature::new(n - 1, degree),
            slabs: Vec::new(),
            intervals: Vec::new(),
            met: Vec::new(),
        };
        for (bin, elements) in mesh.grid.axes()[axis].bin_indices().zip(&by_bin) {
            slices.add_bin(bin, elements, degree);
        }
        slices
    }

    fn add_bin(&mut self, bin: BinIndex, elements: &[ElementIndex], degree: Degree) {
        let n = self.mesh.dimension();
        let first_slab = self.slabs.len();
        let (mut projections, mut narrowest) = (Vec::new(), f64::INFINITY);
        for &element in elements {
            let shape = &self.mesh.element(element).shape;
            let own = self::projections(shape, n, self.axis);
            let nodes = if matches!(shape, Shape::Cuboid(..)) { degree.axis + 1 } else { degree.total + n };
            let ends = own.windows(2).filter(|ends| ends[0] < ends[1]);
            self.slabs.extend(ends.map(|ends| Slab { element, low: ends[0], high: ends[1], nodes }));
            narrowest = narrowest.min(own[own.len() - 1] - own[0]);
            projections.extend(own);
        }
        // No element may vanish between two breaks: its mass need not be small.
        let breaks = breaks(projections, SAME.min(narrowest / 4.0));
        let middles: Vec<f64> = breaks.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        let mut met = vec![Vec::new(); middles.len()];
        for (index, slab) in self.slabs.iter().enumerate().skip(first_slab) {
            let first = middles.partition_point(|middle| *middle < slab.low);
            let last = middles.partition_point(|middle| *middle < slab.high);
            met[first..last].iter_mut().for_each(|met| met.push(SlabIndex::new(index)));
        }
        for (ends, met) in breaks.windows(2).zip(met) {
            if let Some(nodes) = met.iter().map(|slab| self.slabs[slab.get()].nodes).max() {
                let from = self.met.len();
                self.met.extend(met);
                let met = from..self.met.len();
                self.intervals.push(PolynomialInterval { bin, low: ends[0], high: ends[1], nodes, met });
            }
        }
    }

    /// The marginal of `sum_c weights_c q_c`. `None` if that has no mass.
    pub fn marginal(&self, functions: &dyn ComponentFunctions, weights: &[f64]) -> Option<Marginal> {
        let scratch = || (Slicer::new(), Mixture::new(functions, weights), vec![0.0; self.mesh.dimension()]);
        let curves: Vec<Univariate> = self
            .slabs
            .par_iter()
            .map_init(scratch, |(slicer, mixture, point), slab| {
                checkpoint();
                let element = self.mesh.element(slab.element);
                let nodes = nodes(slab.nodes, slab.low, slab.high);
                let values: Vec<f64> = nodes.map(|t| self.integral(element, t, slicer, mixture, point)).collect();
                Univariate::from_values(&values)
            })
            .collect();
        let sum = |met: &[SlabIndex], t: f64| {
            let slabs = met.iter().map(|slab| (&self.slabs[slab.get()], &curves[slab.get()]));
            // A node can lie outside of a slab by the distance of projections that count as one.
            slabs.map(|(slab, curve)| curve.value(((t - slab.low) / (slab.high - slab.low)).clamp(0.0, 1.0))).sum()
        };
        let pieces = self.intervals.par_iter().map(|interval| {
            let met = &self.met[interval.met.clone()];
            let values = nodes(interval.nodes, interval.low, interval.high).map(|t| sum(met, t)).collect();
            UnnormalisedPiece { bin: interval.bin, low: interval.low, high: interval.high, values }
        });
        Marginal::new(&self.mesh.grid, self.axis, pieces.collect())
    }

    /// The integral of a density over the slice of an element at a local coordinate.
    fn integral(
        &self,
        element: &Element,
        at: f64,
        slicer: &mut Slicer,
        mixture: &mut Mixture,
        point: &mut [f64],
    ) -> f64 {
        let width_fraction = self.mesh.grid.axes()[self.axis].width_fraction(element.bin[self.axis]);
        let plane = SlicePlane { axis: self.axis, at, side: SliceSide::Right };
        point[self.axis] = at;
        let mut sum = 0.0;
        slicer.cut(element, plane, width_fraction, |slice| {
            visit(&self.cubature, slice, |t, weight| {
                point[..self.axis].copy_from_slice(&t[..self.axis]);
                point[self.axis + 1..].copy_from_slice(&t[self.axis..]);
                sum += weight * mixture.value(&element.bin, point);
            });
        });
        sum
    }
}

/// The Gauss nodes of an interval.
fn nodes(count: usize, low: f64, high: f64) -> impl Iterator<Item = f64> {
    let gauss = Gauss::with_points(count);
    (0..count).map(move |k| low + gauss.nodes[k] * (high - low))
}

/// Visits the cubature nodes of a slice, which may be a single point.
pub(super) fn visit(cubature: &MeshCubature, slice: &Element, mut visit: impl FnMut(&[f64], f64)) {
    if slice.bin.is_empty() { visit(&[], slice.volume) } else { cubature.visit(slice, visit) }
}

/// The projections of the vertices of a shape on an axis, in ascending order.
fn projections(shape: &Shape, dimension: usize, axis: usize) -> Vec<f64> {
    match shape {
        Shape::Cuboid(low, high) => vec![low[axis], high[axis]],
        Shape::Simplex(v) => {
            let mut all: Vec<f64> = v.iter().skip(axis).step_by(dimension).copied().collect();
            all.sort_by(f64::total_cmp);
            all
        }
    }
}

/// Projections in ascending order, none closer than `same` to the next.
fn breaks(mut all: Vec<f64>, same: f64) -> Vec<f64> {
    all.sort_by(f64::total_cmp);
    let mut kept: Vec<f64> = Vec::new();
    for &position in &all {
        if kept.last().is_none_or(|last| position - last > same) {
            kept.push(position);
        }
    }
    // The support ends where the last vertex is.
    if let (Some(last), Some(end)) = (all.last(), kept.last_mut()) {
        *end = *last;
    }
    kept
}
