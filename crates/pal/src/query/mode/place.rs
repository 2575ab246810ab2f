//! From a place in an element to a double that satisfies the constraint.
//!
//! A maximum is often at a vertex of the region, and the double next to that vertex is as often outside as inside; of a strict
//! inequality even an exact vertex is outside. So the point is moved towards the centre of its element, by as little as will do.

use super::Problem;
use crate::density::BinIndex;
use crate::density::mesh::ElementIndex;

/// The first share of the way to the centre that is tried, and how much longer the next one is.
const FIRST_STEP: f64 = 1e-15;
const LONGER: f64 = 4.0;

/// A point that satisfies the constraint, and the density there.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub point: Vec<f64>,
    pub value: f64,
}

impl Problem<'_> {
    /// A point that satisfies the constraint near local coordinates of an element, if there is one on the way to its centre.
    pub(super) fn place(&self, element: ElementIndex, t: &[f64], weights: &[f64]) -> Option<Candidate> {
        let element = self.mesh.element(element);
        let grid = &self.mesh.grid;
        let n = grid.dimension();
        let centre = element.shape.centre();
        let (mut local, mut point, mut bin) = (t.to_vec(), vec![0.0; n], vec![BinIndex::default(); n]);
        let mut values = vec![0.0; self.functions.components()];
        let mut best: Option<Candidate> = None;
        let mut share = 0.0;
        loop {
            let moved = t.iter().zip(&centre).map(|(t, c)| t + share * (c - t));
            local.iter_mut().zip(moved).for_each(|(local, moved)| *local = moved);
            grid.point_at(&element.bin, &local, &mut point);
            if (self.contains)(&point) {
                grid.locate(&point, &mut bin, &mut local);
                self.functions.values(&bin, &local, &mut values);
                let value = values.iter().zip(weights).map(|(q, w)| q * w).sum::<f64>();
                if best.as_ref().is_none_or(|best| value > best.value) && !value.is_nan() {
                    best = Some(Candidate { point: point.clone(), value: value.max(0.0) });
                }
                // On the edge between two bins a point belongs to one of them only, and the density may jump.
                if bin == element.bin {
                    return best;
                }
            }
            if share >= 1.0 {
                return best;
            }
            share = (share * LONGER).clamp(FIRST_STEP, 1.0);
        }
    }
}
