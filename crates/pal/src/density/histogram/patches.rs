//! The patches of histogram mixtures: every bin that holds something, with all its elements.

use std::collections::BTreeMap;

use crate::density::family::NO_MASS;
use crate::density::grid::BinIndex;
use crate::density::mesh::Mesh;
use crate::density::patches::{ChosenPatch, ElementGroups, PatchQuery, PatchSearch, find_fraction};

#[derive(Debug)]
pub(super) struct HistogramPatches {
    groups: ElementGroups,
    /// For every patch where its weights are in the coefficients of a component: one place per axis.
    places: Vec<usize>,
    /// The volumes of the patches, relative to the volume of the box.
    volumes: Vec<f64>,
}

impl HistogramPatches {
    pub fn new(mesh: &Mesh) -> HistogramPatches {
        let mut bins: BTreeMap<&[BinIndex], Vec<u32>> = BTreeMap::new();
        for (index, element) in (0..).zip(&mesh.elements) {
            bins.entry(&element.bin).or_default().push(index);
        }
        let counts = mesh.grid.axes().iter().map(|axis| axis.bins());
        let starts: Vec<usize> = counts.scan(0, |sum, bins| Some(std::mem::replace(sum, *sum + bins))).collect();
        let mut patches =
            HistogramPatches { groups: ElementGroups::default(), places: Vec::new(), volumes: Vec::new() };
        for (bin, elements) in bins {
            patches.places.extend(bin.iter().zip(&starts).map(|(b, start)| start + b.get()));
            patches.volumes.push(elements.iter().map(|index| mesh.elements[*index as usize].volume).sum());
            patches.groups.push(elements);
        }
        patches
    }
}

impl PatchSearch for HistogramPatches {
    fn choose<'p>(&'p self, queries: &[PatchQuery<'_>]) -> Vec<Option<ChosenPatch<'p>>> {
        let axes = (self.places.len() / self.volumes.len().max(1)).max(1);
        let mut sums = Vec::with_capacity(self.volumes.len());
        let choose = |query: &PatchQuery<'_>| {
            let mut total = 0.0;
            sums.clear();
            for (places, volume) in self.places.chunks_exact(axes).zip(&self.volumes) {
                total += places.iter().map(|place| query.coefficients[*place]).sum::<f64>().exp() * volume;
                sums.push(total);
            }
            if total < NO_MASS {
                return None;
            }
            let (patch, rest) = find_fraction(sums.len(), |k| sums[k], query.uniform)?;
            Some(ChosenPatch { elements: self.groups.get(patch), rest })
        };
        queries.iter().map(choose).collect()
    }
}
