//! The bins of a grid that hold a part of the support.
//!
//! A point on the edge between two bins is counted to the bin above. Where that bin holds no part of the support,
//! functions that are not continuous across edges, or not defined in empty bins, are evaluated in the occupied bin
//! below instead.

use super::mesh::{Element, Mesh};
use crate::density::grid::BinIndex;

/// The occupied bins of a mesh, numbered in the order of the mesh.
#[derive(Clone, Debug)]
pub(crate) struct OccupiedBins {
    /// The bin of every slot.
    pub list: Vec<Vec<BinIndex>>,
    /// The slot of every bin in row-major order.
    slots: Vec<Option<u32>>,
    counts: Vec<usize>,
}

impl OccupiedBins {
    pub fn new(mesh: &Mesh) -> OccupiedBins {
        let counts: Vec<usize> = mesh.grid.axes().iter().map(|axis| axis.bins()).collect();
        let mut bins = OccupiedBins { list: Vec::new(), slots: vec![None; counts.iter().product()], counts };
        for element in &mesh.elements {
            let at = bins.flat(&element.bin);
            if bins.slots[at].is_none() {
                bins.slots[at] = Some(bins.list.len() as u32);
                bins.list.push(element.bin.clone());
            }
        }
        bins
    }

    /// The position of a bin in row-major order.
    pub fn flat(&self, bin: &[BinIndex]) -> usize {
        bin.iter().zip(&self.counts).fold(0, |at, (b, count)| at * count + b.get())
    }

    /// The slot of a bin; `None` for a bin that holds no part of the support.
    pub fn slot(&self, bin: &[BinIndex]) -> Option<usize> {
        self.slots[self.flat(bin)].map(|slot| slot as usize)
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The elements of every slot.
    pub fn elements<'m>(&self, mesh: &'m Mesh) -> Vec<Vec<&'m Element>> {
        let mut lists = vec![Vec::new(); self.len()];
        for element in &mesh.elements {
            if let Some(slot) = self.slot(&element.bin) {
                lists[slot].push(element);
            }
        }
        lists
    }

    /// Moves a point from an empty bin to an occupied one, if it lies on the edge between the two.
    pub fn enter(&self, bin: &mut [BinIndex], t: &mut [f64]) {
        if self.slot(bin).is_some() {
            return;
        }
        let below = |axis: usize| bin[axis].below().filter(|_| t[axis] == 0.0).map(|below| (axis, below));
        let edges: Vec<(usize, BinIndex)> = (0..t.len()).filter_map(below).collect();
        for choice in 1..1usize << edges.len() {
            let chosen = || edges.iter().enumerate().filter(|(k, _)| choice >> k & 1 == 1).map(|(_, edge)| *edge);
            let mut lower = bin.to_vec();
            chosen().for_each(|(axis, below)| lower[axis] = below);
            if self.slot(&lower).is_some() {
                bin.copy_from_slice(&lower);
                chosen().for_each(|(axis, _)| t[axis] = 1.0);
                return;
            }
        }
    }
}
