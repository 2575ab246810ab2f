//! Independent samples by inverse transform sampling, without rejection (PAL paper, Section 5).
//!
//! A sample takes n + 1 uniform numbers. The first chooses a component and an element of the mesh by their exact joint
//! mass. The others determine the coordinates of the element one after the other (see `walk`).
//!
//! A [`Sampler`] computes the masses of all components on all elements, which pays for many samples of one density. For
//! few samples of each of many densities see `rows`.
//!
//! Rounding may push a sample out of the constraint by an ulp. It is then moved towards a point inside its element
//! until exact evaluation says that it is inside.

use std::sync::Arc;

use rayon::prelude::*;

use super::error::QueryError;
use super::walk::{PointValues, Rules, Target, Walk};
use crate::density::cubature::MeshCubature;
use crate::density::mesh::{Element, ElementIndex};
use crate::density::{Density, Support};
use crate::interrupt::checkpoint;
use crate::random::Stream;

/// The number of samples that are sorted together, which limits the memory for sorting.
const BATCH: usize = 1 << 20;
/// The largest number of samples of one element that one task draws.
const GROUP: usize = 2048;
/// The largest fraction of the mass that may lie in elements without any float64 point; more is an error.
pub(super) const NEGLIGIBLE: f64 = 1e-9;

/// A density prepared for sampling: the masses of all components on all elements, and quadrature rules.
pub struct Sampler {
    density: Density,
    /// Running sums of the masses of all (component, element) pairs that have mass; the last is 1.
    cumulative: Vec<f64>,
    pairs: Vec<Pair>,
    rules: Arc<Rules>,
}

/// A component and an element.
#[derive(Clone, Copy)]
struct Pair {
    component: u32,
    element: ElementIndex,
}

/// Which pair of a sampler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PairIndex(u32);

/// A row of uniform numbers, which one sample is made of, and the pair that the first of them chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Draw {
    pair: PairIndex,
    row: u32,
}

impl Density {
    /// Prepares sampling: computes the masses of all components on all elements.
    pub fn sampler(&self) -> Result<Sampler, QueryError> {
        let mesh = self.support.mesh();
        let rules = Rules::shared(self.dimension(), self.functions.degree());
        let masses: Vec<Vec<f64>> =
            mesh.elements.par_iter().map(|element| self.masses(element, &rules.cubature)).collect();
        let anchors = self.support.anchors();
        let (mut pairs, mut cumulative, mut total, mut lost) = (Vec::new(), Vec::new(), 0.0, 0.0);
        for (element, (masses, anchor)) in mesh.element_indices().zip(masses.iter().zip(anchors)) {
            for (c, mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                if anchor.is_none() {
                    lost += mass;
                    continue;
                }
                total += mass;
                pairs.push(Pair { component: c as u32, element });
                cumulative.push(total);
            }
        }
        if !(lost <= NEGLIGIBLE * total) || pairs.is_empty() {
            return Err(QueryError::NoFloat64Point(lost / (lost + total)));
        }
        cumulative.iter_mut().for_each(|sum| *sum /= total);
        Ok(Sampler { density: self.clone(), cumulative, pairs, rules })
    }

    /// Draws independent samples, row by row. The same seed gives the same samples for any number of threads.
    ///
    /// ```
    /// use pal::density::{Family, Settings, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let phi = x.gt(0) & y.gt(0) & (&x + &y).lt(1);
    /// let settings = SumOfSquaresSettings { degree: Some(3), components: 2, basis: Default::default(), subset: None };
    /// let family = Family::new(&Region::new(&phi.clone().into())?, &Settings::SumOfSquares(settings))?;
    /// let density = family.density(&family.random_params(1, 0))?;
    /// let samples = density.sample(1000, 42)?;
    /// assert!(samples.chunks(2).all(|point| phi.contains(point)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        check_memory(count, self.variables().len())?;
        Ok(self.sampler()?.sample(count, seed))
    }

    /// The masses of all components on an element.
    fn masses(&self, element: &Element, cubature: &MeshCubature) -> Vec<f64> {
        let mut masses = vec![0.0; self.weights.len()];
        let components = 0..masses.len();
        PointValues::default().add_masses(&*self.functions, components, element, cubature, &mut masses);
        masses.iter().zip(&self.weights).map(|(mass, weight)| (mass * weight).max(0.0)).collect()
    }
}

/// Refuses more samples than there is memory for.
pub(crate) fn check_memory(count: usize, dimension: usize) -> Result<(), QueryError> {
    let reserve = |numbers| Vec::<f64>::new().try_reserve_exact(numbers).ok();
    count.checked_mul(dimension).and_then(reserve).ok_or(QueryError::Memory(count))
}

impl Sampler {
    /// The number of uniform numbers that one sample takes: one more than there are free variables.
    pub fn uniforms(&self) -> usize {
        self.density.dimension() + 1
    }

    /// Draws independent samples, row by row.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        self.sample_from(0, count, seed)
    }

    /// Draws `count` samples of the endless sequence of a seed, beginning with number `start`.
    pub fn sample_from(&self, start: u64, count: usize, seed: u64) -> Vec<f64> {
        let per = self.uniforms();
        let mut samples = Vec::with_capacity(count * self.density.variables().len());
        for first in (0..count).step_by(BATCH) {
            let rows = (first..count.min(first + BATCH)).into_par_iter();
            let uniforms: Vec<f64> = rows
                .flat_map_iter(|row| {
                    let mut stream = Stream::new(seed, start + row as u64);
                    (0..per).map(move |_| stream.unit())
                })
                .collect();
            samples.append(&mut self.density.filled(self.batch(&uniforms)));
        }
        samples
    }

    /// Samples from given uniform numbers, such as a low-discrepancy sequence: rows of [`Sampler::uniforms`] numbers in
    /// [0, 1], the first of which chooses the piece.
    pub fn transform(&self, uniforms: &[f64]) -> Result<Vec<f64>, QueryError> {
        let per = self.uniforms();
        if !uniforms.len().is_multiple_of(per) {
            return Err(QueryError::Length { what: "uniform numbers", given: uniforms.len(), wanted: per });
        }
        if let Some(at) = uniforms.iter().position(|u| !(0.0..=1.0).contains(u)) {
            return Err(QueryError::Uniform { row: at / per, column: at % per, value: uniforms[at] });
        }
        Ok(uniforms.chunks(BATCH * per).flat_map(|part| self.density.filled(self.batch(part))).collect())
    }

    fn batch(&self, uniforms: &[f64]) -> Vec<f64> {
        let n = self.density.dimension();
        let pair = |u: &f64| {
            let index = self.cumulative.partition_point(|sum| sum < u).min(self.pairs.len() - 1);
            PairIndex(u32::try_from(index).expect("pairs that fit into memory are fewer than 2^32"))
        };
        // Sorted by pair, so that what is common to the samples of a pair is computed once.
        let draw = |(row, u): (usize, &[f64])| Draw { pair: pair(&u[0]), row: row as u32 };
        let mut order: Vec<Draw> = uniforms.par_chunks(n + 1).enumerate().map(draw).collect();
        order.par_sort_unstable();
        let groups: Vec<&[Draw]> =
            order.chunk_by(|a, b| a.pair == b.pair).flat_map(|group| group.chunks(GROUP)).collect();
        let parts: Vec<Vec<f64>> = groups.par_iter().map(|group| self.group(group, uniforms)).collect();
        let mut samples = vec![0.0; order.len() * n];
        for (group, part) in groups.iter().zip(parts) {
            for (draw, point) in group.iter().zip(part.chunks(n)) {
                samples[draw.row as usize * n..][..n].copy_from_slice(point);
            }
        }
        samples
    }

    /// Draws samples of one component on one element.
    fn group(&self, group: &[Draw], uniforms: &[f64]) -> Vec<f64> {
        checkpoint();
        let n = self.density.dimension();
        let pair = self.pairs[group[0].pair.0 as usize];
        let element = self.density.support.mesh().element(pair.element);
        let target = Target { functions: &*self.density.functions, component: pair.component as usize, element };
        let mut walk = Walk::new(&self.rules, n);
        let mut samples = Vec::with_capacity(group.len() * n);
        let (mut point, mut known) = (vec![0.0; n], 0);
        for draw in group {
            let u = &uniforms[draw.row as usize * (n + 1)..][..n + 1];
            walk.draw(&target, &u[1..], known);
            known = walk.common(&target);
            walk.point(&target, self.density.support(), &mut point);
            move_inside(self.density.support(), &mut point, pair.element);
            samples.extend_from_slice(&point);
        }
        samples
    }
}

/// Moves a point into the constraint if rounding has put it outside. The element that it was drawn from has an anchor.
pub(super) fn move_inside(support: &Support, point: &mut [f64], element: ElementIndex) {
    let membership = support.membership();
    if membership.contains(point) {
        return;
    }
    let anchor = support.anchors()[element.get()].as_ref();
    let anchor = anchor.expect("no sample is drawn from an element without an anchor");
    let from = point.to_vec();
    for halvings in (0..=52).rev() {
        let step = 0.5f64.powi(halvings);
        point.iter_mut().zip(&from).zip(anchor).for_each(|((p, from), to)| *p = from + step * (to - from));
        if membership.contains(point) {
            return;
        }
    }
    point.copy_from_slice(anchor);
}
