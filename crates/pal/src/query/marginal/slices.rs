//! The slices of a mesh at the quadrature nodes of one axis, from which marginals are built.
//!
//! Between two neighbouring projections of vertices every slice keeps its combinatorial type, its vertices move linearly, and the
//! integral of a polynomial of degree D over it is a polynomial in the coordinate:
//!
//! ```text
//! degree of the marginal <= D + n - 1 where simplices are met,     <= D in that variable where only boxes are
//! ```
//!
//! so that as many slices as that, at Gauss nodes, determine it. The slices themselves are not kept: to cut them again is cheap next to
//! evaluating a density on them, and all their nodes would be hundreds of megabytes for a large mesh.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::slice::{Plane, Side, Slicer, extent};
use super::Marginal;
use super::mixture::Mixture;
use crate::density::gauss::Gauss;
use crate::density::mesh::{Degree, Element, Mesh, Shape};
use crate::density::pieces::Pieces;
use crate::density::rules::Rules;

/// Projections of vertices closer than this part of the axis count as one.
const SAME: f64 = 1e-13;

/// The axis of one variable in stretches on which all marginals are polynomials.
#[derive(Debug)]
pub(crate) struct Slices {
    mesh: Arc<Mesh>,
    axis: usize,
    rules: Rules,
    stretches: Vec<Stretch>,
    /// Elements that a stretch passes through, stretch by stretch.
    met: Vec<u32>,
}

#[derive(Debug)]
struct Stretch {
    bin: usize,
    low: f64,
    high: f64,
    nodes: usize,
    met: Range<usize>,
}

/// A polynomial piece of a marginal before normalisation, in local coordinates of a bin.
pub(super) struct Stretched {
    pub bin: usize,
    pub low: f64,
    pub high: f64,
    pub values: Vec<f64>,
}

impl Slices {
    /// For densities of at most this degree. `axis` is one of the mesh.
    pub fn new(mesh: &Arc<Mesh>, axis: usize, degree: Degree) -> Slices {
        let n = mesh.dimension();
        let extents: Vec<(f64, f64)> = mesh.elements.iter().map(|e| extent(&e.shape, n, axis)).collect();
        let mut by_bin = vec![Vec::new(); mesh.grid.axes()[axis].bins()];
        for (index, element) in mesh.elements.iter().enumerate() {
            by_bin[element.bin[axis] as usize].push(index);
        }
        let mut slices = Slices {
            mesh: mesh.clone(),
            axis,
            rules: Rules::new(n - 1, degree),
            stretches: Vec::new(),
            met: Vec::new(),
        };
        for (bin, elements) in by_bin.iter().enumerate() {
            slices.add_bin(bin, elements, &extents, degree);
        }
        slices
    }

    fn add_bin(&mut self, bin: usize, elements: &[usize], extents: &[(f64, f64)], degree: Degree) {
        let n = self.mesh.dimension();
        let axis = &self.mesh.grid.axes()[self.axis];
        let breaks = breaks(&self.mesh, elements, self.axis, SAME * axis.length() / axis.width(bin));
        let middles: Vec<f64> = breaks.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        let mut met = vec![Vec::new(); middles.len()];
        for element in elements {
            let (low, high) = extents[*element];
            let first = middles.partition_point(|middle| *middle < low);
            let last = middles.partition_point(|middle| *middle <= high);
            met[first..last.max(first)].iter_mut().for_each(|met| met.push(*element as u32));
        }
        for (ends, met) in breaks.windows(2).zip(met) {
            if met.is_empty() {
                continue;
            }
            let is_cuboid = |e: &u32| matches!(self.mesh.elements[*e as usize].shape, Shape::Cuboid(..));
            let nodes = if met.iter().all(is_cuboid) { degree.axis + 1 } else { degree.total + n };
            let from = self.met.len();
            self.met.extend(met);
            let met = from..self.met.len();
            self.stretches.push(Stretch { bin, low: ends[0], high: ends[1], nodes, met });
        }
    }

    /// The marginal of `sum_c weights_c q_c`. `None` if that has no mass.
    pub fn marginal(&self, pieces: &dyn Pieces, weights: &[f64]) -> Option<Marginal> {
        let scratch = || (Slicer::new(), Mixture::new(pieces, weights), vec![0.0; self.mesh.dimension()]);
        let stretched: Vec<Stretched> = self
            .stretches
            .par_iter()
            .map_init(scratch, |(slicer, mixture, point), stretch| {
                let gauss = Gauss::with_points(stretch.nodes);
                let nodes = gauss.nodes.iter().map(|s| stretch.low + s * (stretch.high - stretch.low));
                let values = nodes.map(|t| self.integral(&self.met[stretch.met.clone()], t, slicer, mixture, point));
                Stretched { bin: stretch.bin, low: stretch.low, high: stretch.high, values: values.collect() }
            })
            .collect();
        Marginal::new(&self.mesh.grid, self.axis, stretched)
    }

    /// The integral of a density over the slices of elements at one local coordinate.
    fn integral(
        &self,
        elements: &[u32],
        at: f64,
        slicer: &mut Slicer,
        mixture: &mut Mixture,
        point: &mut [f64],
    ) -> f64 {
        let axis = &self.mesh.grid.axes()[self.axis];
        let plane = Plane { axis: self.axis, at, side: Side::Right };
        point[self.axis] = at;
        let mut sum = 0.0;
        for element in elements.iter().map(|e| &self.mesh.elements[*e as usize]) {
            let share = axis.width(element.bin[self.axis] as usize) / axis.length();
            slicer.cut(element, plane, share, |slice| {
                visit(&self.rules, slice, |t, weight| {
                    point[..self.axis].copy_from_slice(&t[..self.axis]);
                    point[self.axis + 1..].copy_from_slice(&t[self.axis..]);
                    sum += weight * mixture.value(&element.bin, point);
                });
            });
        }
        sum
    }
}

/// The nodes of a rule on a slice, which may be a single point.
pub(super) fn visit(rules: &Rules, slice: &Element, mut visit: impl FnMut(&[f64], f64)) {
    if slice.bin.is_empty() { visit(&[], slice.volume) } else { rules.visit(slice, visit) }
}

/// The projections of all vertices of elements of one bin, in order, none closer than `same` to the next.
fn breaks(mesh: &Mesh, elements: &[usize], axis: usize, same: f64) -> Vec<f64> {
    let mut all = Vec::new();
    for element in elements {
        match &mesh.elements[*element].shape {
            Shape::Cuboid(low, high) => all.extend([low[axis], high[axis]]),
            Shape::Simplex(v) => all.extend(v.iter().skip(axis).step_by(mesh.dimension())),
        }
    }
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
