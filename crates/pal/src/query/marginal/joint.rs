//! The joint marginal density of several variables, point by point.
//!
//! All elements that contain the given values are cut at them, axis after axis, and the density is integrated over the
//! slices. Where a point lies on the boundary of elements, those on the side of larger coordinates count, as in
//! [`SliceSide::Right`], so that no point is counted twice; where there are none, those on the other side count.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::super::slice::{SlicePlane, SliceSide, extent, slice};
use super::mixture::Mixture;
use super::slices::visit;
use crate::density::BinIndex;
use crate::density::cubature::MeshCubature;
use crate::density::functions::ComponentFunctions;
use crate::density::mesh::{ElementIndex, Mesh};
use crate::interrupt::checkpoint;

/// The joint density of the variables `axes`, which are different axes of the mesh, at points. The points are rows with
/// one value for each of `axes`, in that order.
///
/// With all variables there is nothing to integrate: it is the density itself, of points that are assumed to lie in the
/// region.
pub(crate) fn joint_density(
    mesh: &Mesh,
    functions: &dyn ComponentFunctions,
    weights: &[f64],
    axes: &[usize],
    points: &[f64],
) -> Vec<f64> {
    if axes.is_empty() {
        return Vec::new();
    }
    let joint = Joint::new(mesh, axes, functions);
    let unit: f64 = axes.iter().map(|axis| mesh.grid.axes()[*axis].length()).product();
    let density = |mixture: &mut Mixture, point: &[f64]| {
        checkpoint();
        joint.relative(mixture, point) / unit
    };
    points.par_chunks_exact(axes.len()).map_init(|| Mixture::new(functions, weights), density).collect()
}

struct Joint<'a> {
    mesh: &'a Mesh,
    axes: &'a [usize],
    /// The axes that are integrated over.
    free: Vec<usize>,
    /// `None` if there is nothing to integrate over.
    cubature: Option<MeshCubature>,
    /// Elements by their bins along `axes`.
    by_bin: BTreeMap<Vec<BinIndex>, Vec<ElementIndex>>,
    /// The extents of the elements along `axes`, element by element.
    extents: Vec<(f64, f64)>,
}

/// A value along one axis, as a plane in a bin.
#[derive(Clone, Copy)]
struct Section {
    bin: BinIndex,
    /// The local coordinate.
    at: f64,
    side: SliceSide,
}

impl<'a> Joint<'a> {
    fn new(mesh: &'a Mesh, axes: &'a [usize], functions: &dyn ComponentFunctions) -> Joint<'a> {
        let n = mesh.dimension();
        let free: Vec<usize> = (0..n).filter(|axis| !axes.contains(axis)).collect();
        let cubature = (!free.is_empty()).then(|| MeshCubature::new(free.len(), functions.degree()));
        let mut joint = Joint { mesh, axes, free, cubature, by_bin: BTreeMap::new(), extents: Vec::new() };
        if joint.cubature.is_some() {
            for index in mesh.element_indices() {
                let element = mesh.element(index);
                let bin = axes.iter().map(|axis| element.bin[*axis]).collect();
                joint.by_bin.entry(bin).or_default().push(index);
                joint.extents.extend(axes.iter().map(|axis| extent(&element.shape, n, *axis)));
            }
        }
        joint
    }

    /// The density at a point, relative to the volume of the box in `axes`.
    fn relative(&self, mixture: &mut Mixture, point: &[f64]) -> f64 {
        let sections: Vec<Section> = self.axes.iter().zip(point).map(|(axis, y)| self.section(*axis, *y)).collect();
        let Some(cubature) = &self.cubature else {
            let (mut bin, mut t) = (vec![BinIndex::default(); sections.len()], vec![0.0; sections.len()]);
            self.axes
                .iter()
                .zip(&sections)
                .for_each(|(axis, section)| (bin[*axis], t[*axis]) = (section.bin, section.at));
            return mixture.value(&bin, &t);
        };
        if let Some(value) = self.integral(cubature, mixture, &sections) {
            return value;
        }
        // Only values where an element ends can have an element on their other side alone.
        let ends: Vec<(usize, Section)> =
            (0..sections.len()).filter_map(|k| Some((k, self.other_side(k, sections[k])?))).collect();
        for choice in 1..1_u64 << ends.len().min(63) {
            let mut sections = sections.clone();
            let chosen = ends.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1);
            chosen.for_each(|(_, (k, section))| sections[*k] = *section);
            if let Some(value) = self.integral(cubature, mixture, &sections) {
                return value;
            }
        }
        0.0
    }

    /// The section at a value along an axis.
    fn section(&self, axis: usize, y: f64) -> Section {
        let line = &self.mesh.grid.axes()[axis];
        let bin = line.bin_of(y);
        // The rounded ends of the axis stand for the exact ones.
        let at = if line.global(bin, 0.0) == y {
            0.0
        } else if line.global(bin, 1.0) == y {
            1.0
        } else {
            line.local(bin, y)
        };
        Section { bin, at, side: SliceSide::Right }
    }

    /// The same value approached from the left, if an element ends there along axis number `k` of `axes`.
    fn other_side(&self, k: usize, section: Section) -> Option<Section> {
        let (bin, at) = match section.bin.below() {
            Some(below) if section.at == 0.0 => (below, 1.0),
            _ => (section.bin, section.at),
        };
        let axis = self.axes[k];
        let ends = |index: ElementIndex| self.mesh.element(index).bin[axis] == bin && self.extents_of(index)[k].1 == at;
        self.mesh.element_indices().any(ends).then_some(Section { bin, at, side: SliceSide::Left })
    }

    /// The extents of an element along `axes`.
    fn extents_of(&self, element: ElementIndex) -> &[(f64, f64)] {
        let count = self.axes.len();
        &self.extents[element.get() * count..(element.get() + 1) * count]
    }

    /// The integral over the slices at given planes; `None` if the planes meet no element.
    fn integral(&self, cubature: &MeshCubature, mixture: &mut Mixture, sections: &[Section]) -> Option<f64> {
        let bin: Vec<BinIndex> = sections.iter().map(|section| section.bin).collect();
        let plane =
            |(axis, section): (&usize, &Section)| SlicePlane { axis: *axis, at: section.at, side: section.side };
        let planes: Vec<SlicePlane> = self.axes.iter().zip(sections).map(plane).collect();
        let mut point = vec![0.0; self.mesh.dimension()];
        planes.iter().for_each(|plane| point[plane.axis] = plane.at);
        let mut sum = None;
        for &index in self.by_bin.get(&bin)? {
            if !self.extents_of(index).iter().zip(&planes).all(|(extent, plane)| plane.side.meets(*extent, plane.at)) {
                continue;
            }
            let element = self.mesh.element(index);
            for piece in slice(element, &self.mesh.grid, &planes) {
                let sum = sum.get_or_insert(0.0);
                visit(cubature, &piece, |t, weight| {
                    self.free.iter().zip(t).for_each(|(axis, t)| point[*axis] = *t);
                    *sum += weight * mixture.value(&element.bin, &point);
                });
            }
        }
        sum
    }
}
