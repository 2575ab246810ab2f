//! The mode of a kernel mixture, with a certificate, by branch and bound over triangles.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Instant;

use rayon::prelude::*;

use super::KernelFamily;
use super::head::KernelRow;
use super::triangles::Triangle;
use crate::interrupt::checkpoint;
use crate::query::{Mode, ModeOptions, ModeStop, QueryError};

/// A triangle with an upper bound of the density in it.
struct Candidate {
    upper: f64,
    /// The order of creation, so that the order of equal bounds is fixed.
    number: usize,
    triangle: Triangle,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.upper.total_cmp(&other.upper).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// How far a corner is moved towards the centre of its triangle until the constraint contains it, as fractions.
const STEPS: [f64; 4] = [0.0, 1e-12, 1e-9, 1e-6];

impl KernelFamily {
    /// A point of largest density for each row of parameters, with an upper bound that holds whatever ended the search.
    pub fn modes(&self, params: &[f64], options: &ModeOptions) -> Result<Vec<Mode>, QueryError> {
        let rows = self.rows(params)?;
        rows.par_iter().map(|row| self.mode(row, options)).collect()
    }

    fn mode(&self, row: &KernelRow, options: &ModeOptions) -> Result<Mode, QueryError> {
        let start = Instant::now();
        let normaliser = self.normaliser(row);
        if !(normaliser >= f64::MIN_POSITIVE) {
            return Err(QueryError::Impossible);
        }
        let (mut heap, mut number) = (BinaryHeap::new(), 0);
        let mut best: Option<(f64, [f64; 2])> = None;
        for triangle in Triangle::all(self, row) {
            self.improve(row, &triangle, &mut best);
            heap.push(Candidate { upper: triangle.upper(self, row), number, triangle });
            number += 1;
        }
        let stop = loop {
            checkpoint();
            let Some(top) = heap.peek() else { break ModeStop::Precision };
            let value = best.map_or(0.0, |(value, _)| value);
            if top.upper <= (1.0 + options.gap) * value {
                break ModeStop::Certified;
            }
            if options.nodes.is_some_and(|most| number >= most) {
                break ModeStop::NodeLimit;
            }
            if options.time.is_some_and(|most| start.elapsed() > most) {
                break ModeStop::TimeLimit;
            }
            let corners = top.triangle.corners;
            let size = (0..2).map(|j| (corners[0][j] - corners[1][j]).abs() + (corners[0][j] - corners[2][j]).abs());
            if size.sum::<f64>() < 1e-14 {
                break ModeStop::Precision;
            }
            let Some(top) = heap.pop() else { break ModeStop::Precision };
            for half in top.triangle.halves(row) {
                self.improve(row, &half, &mut best);
                heap.push(Candidate { upper: half.upper(self, row).min(top.upper), number, triangle: half });
                number += 1;
            }
        };
        let (value, point) = best.ok_or(QueryError::NoFloat64Point(1.0))?;
        let upper = heap.peek().map_or(value, |top| top.upper).max(value);
        let constant = self.log_constant(normaliser);
        Ok(Mode {
            point: point.to_vec(),
            log_density: value.ln() - constant,
            log_upper: upper.ln() - constant,
            gap: upper / value - 1.0,
            nodes: number,
            stop,
        })
    }

    /// Compares the best point so far with the centre and the corners of a triangle.
    fn improve(&self, row: &KernelRow, triangle: &Triangle, best: &mut Option<(f64, [f64; 2])>) {
        let centre = triangle.centre();
        let known = best.map_or(0.0, |(value, _)| value);
        for corner in triangle.corners.into_iter().chain([centre]) {
            if triangle.density(self, row, corner) <= known {
                continue;
            }
            for step in STEPS {
                let point = self.to_user([0, 1].map(|j| corner[j] + step * (centre[j] - corner[j])));
                if self.contains(&point) {
                    let value = self.unnormalised(row, self.to_box(&point));
                    if best.is_none_or(|(known, _)| value > known) {
                        *best = Some((value, point));
                    }
                    break;
                }
            }
        }
    }
}
