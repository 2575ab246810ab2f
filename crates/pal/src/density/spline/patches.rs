//! The patches of spline mixtures: every box, and every cut bin with all its simplices.
//!
//! The mass of a box is a product of integrals along its sides, that of a cut bin comes from its table: a component
//! needs a few operations per bin.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::form::{BinForm, Sides};
use super::hermite::SQUARE;
use crate::density::family::{CANCELLATION, NO_MASS};
use crate::density::grid::BinIndex;
use crate::density::kind::Form;
use crate::density::lanes::{LANES, LaneWork, Lanes, Simd, dispatch};
use crate::density::mesh::{Mesh, Shape};
use crate::density::patches::{ChosenPatch, ElementGroups, PatchQuery, PatchSearch, find_fraction};

/// Boxes, then cut bins.
#[derive(Debug)]
pub(super) struct SplinePatches {
    form: Arc<BinForm<f64>>,
    groups: ElementGroups,
    /// The sides of all axes: where the squares of their bin are, and the means of the functions they are written in.
    sides: Vec<(usize, [f64; SQUARE])>,
    /// For every box one side per axis.
    boxes: Vec<u32>,
    /// The volumes of the boxes.
    volumes: Vec<f64>,
    /// The volume of all elements.
    volume: f64,
}

impl SplinePatches {
    pub fn new(mesh: &Mesh, form: Arc<BinForm<f64>>) -> SplinePatches {
        let n = mesh.dimension();
        let mut sides = Sides::new(&mesh.grid, &[]);
        let (mut groups, mut boxes, mut volumes) = (ElementGroups::default(), Vec::new(), Vec::new());
        let mut cut: BTreeMap<&[BinIndex], Vec<u32>> = BTreeMap::new();
        for (index, element) in (0..).zip(&mesh.elements) {
            match &element.shape {
                Shape::Cuboid(low, high) => {
                    boxes.extend((0..n).map(|j| (j, sides.index(j, element.bin[j], low[j], high[j]))));
                    volumes.push(element.volume);
                    groups.push([index]);
                }
                Shape::Simplex(_) => cut.entry(&element.bin).or_default().push(index),
            }
        }
        // A bin of which the mesh knows nothing keeps an empty group, which nobody can draw from.
        form.cut.iter().for_each(|part| groups.push(cut.remove(&part.bin[..]).unwrap_or_default()));
        let (mut all, mut firsts) = (Vec::new(), Vec::new());
        for (start, axis) in form.plan().starts().iter().zip(sides.intervals()) {
            firsts.push(all.len() as u32);
            all.extend(axis.iter().map(|side| (start + side.bin.get() * form.step, side.means)));
        }
        let boxes = boxes.into_iter().map(|(axis, side)| firsts[axis] + side).collect();
        let volume = mesh.elements.iter().map(|element| element.volume).sum();
        SplinePatches { form, groups, sides: all, boxes, volumes, volume }
    }

    /// The running sums of the masses of all patches, for one component per lane.
    #[inline(always)]
    fn running_sums(&self, squares: &[Lanes<f64>], sides: &mut [Lanes<f64>], sums: &mut [Lanes<f64>]) {
        for ((place, means), side) in self.sides.iter().zip(&mut *sides) {
            let mut sum = Lanes::zero();
            for (square, mean) in squares[*place..place + SQUARE].iter().zip(means) {
                sum.add_times(*square, *mean);
            }
            *side = sum;
        }
        let (boxes, cut) = sums.split_at_mut(self.volumes.len());
        let n = self.form.dimension();
        for ((mass, numbers), volume) in boxes.iter_mut().zip(self.boxes.chunks_exact(n)).zip(&self.volumes) {
            let mut product = sides[numbers[0] as usize].times(*volume);
            for number in &numbers[1..] {
                product = product * sides[*number as usize];
            }
            *mass = product;
        }
        self.form.plan().cut_integrals(&self.form.tables, squares, cut);
        let mut total = Lanes::zero();
        for sum in sums {
            // The integral of a square is not negative; rounding may have made it so.
            for (total, mass) in total.0.iter_mut().zip(sum.0) {
                *total += if mass > 0.0 { mass } else { 0.0 };
            }
            *sum = total;
        }
    }
}

struct RunningSums<'p> {
    patches: &'p SplinePatches,
    squares: &'p [Lanes<f64>],
    sides: &'p mut [Lanes<f64>],
    sums: &'p mut [Lanes<f64>],
}

impl LaneWork for RunningSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.patches.running_sums(self.squares, self.sides, self.sums);
    }
}

impl PatchSearch for SplinePatches {
    fn choose<'p>(&'p self, queries: &[PatchQuery<'_>]) -> Vec<Option<ChosenPatch<'p>>> {
        let mut squares = vec![Lanes::zero(); self.form.plan().length()];
        let mut sides = vec![Lanes::zero(); self.sides.len()];
        let mut sums = vec![Lanes::zero(); self.groups.len()];
        let suspect = CANCELLATION * self.form.largest_scale(self.volume);
        let mut chosen = Vec::with_capacity(queries.len());
        for block in queries.chunks(LANES) {
            let components: Vec<&[f64]> = block.iter().map(|query| query.coefficients).collect();
            self.form.fill(&components, &mut squares);
            dispatch(RunningSums { patches: self, squares: &squares, sides: &mut sides, sums: &mut sums });
            chosen.extend(block.iter().enumerate().map(|(lane, query)| {
                let total = sums.last()?.0[lane];
                let lost = total < suspect && total < CANCELLATION * self.form.scale(query.coefficients, 0);
                if total < NO_MASS || lost {
                    return None;
                }
                let (patch, rest) = find_fraction(sums.len(), |k| sums[k].0[lane], query.uniform)?;
                Some(ChosenPatch { elements: self.groups.get(patch), rest })
            }));
        }
        chosen
    }
}
