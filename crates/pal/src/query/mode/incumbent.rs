//! From local coordinates in an element to a float64 point that satisfies the constraint.
//!
//! A maximum is often at a vertex of the region, and the float64 point next to that vertex is as often outside as
//! inside; with a strict inequality even an exact vertex is outside. So the point is moved towards the centroid of its
//! element, by as little as possible.

use super::ModeProblem;
use crate::density::BinIndex;
use crate::density::mesh::ElementIndex;

/// The first fraction of the way to the centroid that is tried.
const FIRST_STEP: f64 = 1e-15;
/// The factor from one fraction to the next.
const STEP_GROWTH: f64 = 4.0;

/// A point that satisfies the constraint, and the density there: a lower bound of the maximum.
#[derive(Clone, Debug)]
pub(super) struct Incumbent {
    pub point: Vec<f64>,
    pub value: f64,
}

impl ModeProblem<'_> {
    /// A point that satisfies the constraint near local coordinates of an element, if one was found on the way to its
    /// centroid.
    pub(super) fn feasible_point(&self, element: ElementIndex, t: &[f64], weights: &[f64]) -> Option<Incumbent> {
        let element = self.mesh.element(element);
        let grid = &self.mesh.grid;
        let n = grid.dimension();
        let centre = element.shape.centre();
        let (mut local, mut point, mut bin) = (t.to_vec(), vec![0.0; n], vec![BinIndex::default(); n]);
        let mut values = vec![0.0; self.functions.components()];
        let mut best: Option<Incumbent> = None;
        let mut fraction = 0.0;
        loop {
            let moved = t.iter().zip(&centre).map(|(t, c)| t + fraction * (c - t));
            local.iter_mut().zip(moved).for_each(|(local, moved)| *local = moved);
            grid.point_at(&element.bin, &local, &mut point);
            if (self.contains)(&point) {
                grid.locate(&point, &mut bin, &mut local);
                self.functions.values(&bin, &local, &mut values);
                let value = values.iter().zip(weights).map(|(q, w)| q * w).sum::<f64>();
                if best.as_ref().is_none_or(|best| value > best.value) && !value.is_nan() {
                    best = Some(Incumbent { point: point.clone(), value: value.max(0.0) });
                }
                // On the edge between two bins a point belongs to one of them only, and the density may jump.
                if bin == element.bin {
                    return best;
                }
            }
            if fraction >= 1.0 {
                return best;
            }
            fraction = (fraction * STEP_GROWTH).clamp(FIRST_STEP, 1.0);
        }
    }
}
