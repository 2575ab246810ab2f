//! Samples of kernel mixtures: a kernel by its mass, a trapezoid of it, and a point inside by inverse transform.
//!
//! Rounding may push a sample out of the constraint by an ulp. It is then moved towards the middle of its trapezoid until
//! exact evaluation says that it is inside.

use std::sync::Arc;

use rayon::prelude::*;

use super::KernelFamily;
use super::head::KernelRow;
use super::integral::Kernel;
use super::pieces::{ConvexPiece, KernelTrapezoid, mass_rule, trapezoids};
use crate::density::DensityError;
use crate::density::gauss::Gauss;
use crate::interrupt::checkpoint;
use crate::query::{QueryError, check_memory};
use crate::random::Stream;

/// How often a part without a float64 point is replaced by another one, before that is an error.
pub(super) const ATTEMPTS: usize = 100;

impl KernelFamily {
    /// Draws `count` independent samples for each row of parameters, row by row. The same seed gives the same samples
    /// for any number of threads.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        check_memory(rows.len().saturating_mul(count), 2)?;
        let draw = |(number, row): (usize, &KernelRow)| {
            checkpoint();
            let sampler = KernelSampler::new(self, row)?;
            let mut points = Vec::with_capacity(2 * count);
            // One stream per sample: how many numbers a sample takes has no effect on the next.
            let first = (number as u64).wrapping_mul(count as u64);
            for k in 0..count {
                points.extend(sampler.draw(&mut Stream::new(seed, first.wrapping_add(k as u64)))?);
            }
            Ok(points)
        };
        let parts: Vec<Vec<f64>> = rows.par_iter().enumerate().map(draw).collect::<Result<_, QueryError>>()?;
        Ok(parts.concat())
    }
}

/// One sample of each row of parameters on the region of its own family. All families have the same number of parameters.
/// The same seed gives the same samples for any number of threads.
pub fn sample_each(families: &[&KernelFamily], params: &[f64], seed: u64) -> Result<Vec<f64>, QueryError> {
    let Some(first) = families.first() else { return Ok(Vec::new()) };
    let rows = first.rows(params)?;
    if rows.len() != families.len() {
        return Err(DensityError::Pairing { params: rows.len(), points: families.len() }.into());
    }
    let draw = |(number, (row, family)): (usize, (&KernelRow, &&KernelFamily))| {
        checkpoint();
        KernelSampler::new(family, row)?.draw(&mut Stream::new(seed, number as u64))
    };
    let rows = rows.par_iter().zip(families).enumerate().with_min_len(16);
    Ok(rows.map(draw).collect::<Result<Vec<[f64; 2]>, QueryError>>()?.concat())
}

/// One density prepared for sampling.
struct KernelSampler<'s> {
    family: &'s KernelFamily,
    row: &'s KernelRow,
    /// Running sums of the masses of kernels; the last is that of the uniform part.
    cumulative: Vec<f64>,
    rule: Arc<Gauss>,
    /// The trapezoids of each kernel with running sums of their masses, found when first needed.
    cuts: Vec<std::cell::OnceCell<(Vec<KernelTrapezoid>, Vec<f64>)>>,
    areas: Vec<f64>,
}

pub(super) fn running_sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    values
        .map(|value| {
            sum += value;
            sum
        })
        .collect()
}

/// The first place at which running sums exceed the fraction `uniform` of the last one.
pub(super) fn choose(sums: &[f64], uniform: f64) -> usize {
    let target = uniform * sums.last().copied().unwrap_or(0.0);
    sums.partition_point(|sum| *sum <= target).min(sums.len() - 1)
}

impl<'s> KernelSampler<'s> {
    fn new(family: &'s KernelFamily, row: &'s KernelRow) -> Result<KernelSampler<'s>, QueryError> {
        let cumulative = running_sums(family.masses(row).into_iter());
        if !(cumulative.last().copied().unwrap_or(0.0) >= f64::MIN_POSITIVE) {
            return Err(QueryError::Impossible);
        }
        Ok(KernelSampler {
            family,
            row,
            cumulative,
            rule: mass_rule(),
            cuts: vec![std::cell::OnceCell::new(); row.kernels.len()],
            areas: running_sums(family.0.pieces.iter().map(|piece| piece.area)),
        })
    }

    fn draw(&self, stream: &mut Stream) -> Result<[f64; 2], QueryError> {
        for _ in 0..ATTEMPTS {
            let chosen = choose(&self.cumulative, stream.unit());
            let found = match self.row.kernels.get(chosen) {
                Some(kernel) => self.draw_kernel(chosen, kernel, stream),
                None => self.draw_uniform(stream),
            };
            // A part of the region without any float64 point has a mass of rounding errors: another one is chosen.
            if let Some(point) = found {
                return Ok(point);
            }
        }
        Err(QueryError::NoFloat64Point(1.0))
    }

    fn draw_kernel(&self, chosen: usize, kernel: &Kernel, stream: &mut Stream) -> Option<[f64; 2]> {
        let (trapezoids, sums) = self.cuts[chosen].get_or_init(|| {
            let cut = trapezoids(&self.family.0.pieces, kernel);
            let sums = running_sums(cut.iter().map(|trapezoid| trapezoid.mass(1.0, &self.rule)));
            (cut, sums)
        });
        let uniforms = [stream.unit(), stream.unit(), stream.unit()];
        if !(*sums.last()? > 0.0) {
            return None;
        }
        let trapezoid = &trapezoids[choose(sums, uniforms[0])];
        let u = trapezoid.sample([uniforms[1], uniforms[2]], &self.rule);
        let [low, high] = trapezoid.heights(0.5);
        let middle = [0.5 * (trapezoid.sides[0] + trapezoid.sides[1]), 0.5 * (low + high)];
        self.inside(kernel.to_box(u), kernel.to_box(middle))
    }

    fn draw_uniform(&self, stream: &mut Stream) -> Option<[f64; 2]> {
        let piece = &self.family.0.pieces[choose(&self.areas, stream.unit())];
        let uniforms = [stream.unit(), stream.unit(), stream.unit()];
        self.inside(uniform_in(piece, uniforms), piece.middle())
    }

    /// The float64 point at a position, or one closer to the middle of its part that the constraint contains.
    fn inside(&self, v: [f64; 2], middle: [f64; 2]) -> Option<[f64; 2]> {
        let mut step = 0.0;
        for _ in 0..64 {
            let point = self.family.to_user([0, 1].map(|j| v[j] + step * (middle[j] - v[j])));
            if self.family.contains(&point) {
                return Some(point);
            }
            step = if step == 0.0 { f64::EPSILON } else { (2.0 * step).min(1.0) };
        }
        None
    }
}

impl ConvexPiece {
    fn middle(&self) -> [f64; 2] {
        let count = self.corners.len() as f64;
        [0, 1].map(|j| self.corners.iter().map(|corner| corner[j]).sum::<f64>() / count)
    }
}

/// A uniform point of a convex polygon: in one of the triangles around its first corner, chosen by area.
fn uniform_in(piece: &ConvexPiece, uniforms: [f64; 3]) -> [f64; 2] {
    let first = piece.corners[0];
    let area = |pair: &[[f64; 2]]| {
        let (a, b) = (pair[0], pair[1]);
        ((a[0] - first[0]) * (b[1] - first[1]) - (a[1] - first[1]) * (b[0] - first[0])).max(0.0)
    };
    let sums = running_sums(piece.corners[1..].windows(2).map(area));
    let pair = &piece.corners[1..][choose(&sums, uniforms[0])..];
    let (s, t) = (uniforms[1].sqrt(), uniforms[2]);
    [0, 1].map(|j| first[j] + s * ((pair[0][j] - first[j]) + t * (pair[1][j] - pair[0][j])))
}
