//! Independent samples without rejection, by inverse transform.
//!
//! A sample takes n + 1 uniform numbers. The first chooses a component and an element of the mesh by their exact joint mass. The others go
//! through the coordinates s_1 .. s_n of the element (see [`crate::density`]) one after the other: given those before, the density of s_k
//! is a univariate polynomial, known from cubature over the coordinates after it, and its distribution function is inverted.
//!
//! Rounding may push a sample out of the constraint by an ulp. It is then moved towards a point inside its element until exact
//! evaluation says that it is inside.

use rayon::prelude::*;

use super::error::QueryError;
use super::univariate::Univariate;
use crate::density::Density;
use crate::density::cubature::{CubatureRule, MeshCubature};
use crate::density::gauss::Gauss;
use crate::density::mesh::{Element, ElementIndex, Shape};
use crate::interrupt::checkpoint;
use crate::random::Stream;

/// Samples handled together: limits the memory that sorting takes.
const BATCH: usize = 1 << 20;
/// Samples of one element handled by one task.
const GROUP: usize = 2048;
/// Elements that hold no double may together have this much mass; more is an error.
const NEGLIGIBLE: f64 = 1e-9;

/// A density made ready for sampling.
pub struct Sampler {
    density: Density,
    /// Running sums of the masses of all (component, element) pairs that have mass; the last is 1.
    cumulative: Vec<f64>,
    pairs: Vec<(u32, ElementIndex)>,
    stages: Stages,
}

/// Nodes and rules of the n stages.
struct Stages {
    cuboid: Vec<Stage>,
    simplex: Vec<Stage>,
}

struct Stage {
    gauss: std::sync::Arc<Gauss>,
    inner: CubatureRule,
}

impl Density {
    /// Prepares sampling: computes the masses of all pieces.
    pub fn sampler(&self) -> Result<Sampler, QueryError> {
        let mesh = &self.support.mesh;
        let rules = MeshCubature::new(self.dimension(), self.functions.degree());
        let masses: Vec<Vec<f64>> = mesh.elements.par_iter().map(|element| self.masses(element, &rules)).collect();
        let anchors = self.support.anchors();
        let (mut pairs, mut cumulative, mut total, mut lost) = (Vec::new(), Vec::new(), 0.0, 0.0);
        for (element, (masses, anchor)) in mesh.element_indices().zip(masses.iter().zip(anchors)) {
            for (c, mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                if anchor.is_none() {
                    lost += mass;
                    continue;
                }
                total += mass;
                pairs.push((c as u32, element));
                cumulative.push(total);
            }
        }
        if !(lost <= NEGLIGIBLE * total) || pairs.is_empty() {
            return Err(QueryError::NoDoubles(lost / (lost + total)));
        }
        cumulative.iter_mut().for_each(|sum| *sum /= total);
        let n = self.dimension();
        let degree = self.functions.degree();
        let stage = |like: fn(usize, usize) -> CubatureRule, inner: usize, here: usize, k: usize| Stage {
            gauss: Gauss::with_points(here + 1),
            inner: like(n - 1 - k, inner),
        };
        let stages = Stages {
            cuboid: (0..n).map(|k| stage(CubatureRule::cuboid, degree.axis, degree.axis, k)).collect(),
            simplex: (0..n).map(|k| stage(CubatureRule::simplex, degree.total, degree.total + n - 1 - k, k)).collect(),
        };
        Ok(Sampler { density: self.clone(), cumulative, pairs, stages })
    }

    /// Independent samples, row by row. The same seed gives the same samples for any number of threads.
    ///
    /// ```
    /// use pal::density::{Family, Settings, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let phi = x.gt(0) & y.gt(0) & (&x + &y).lt(1);
    /// let settings = SumOfSquaresSettings { degree: 3, components: 2, basis: Default::default(), subset: None };
    /// let family = Family::new(&Region::new(&phi.clone().into())?, &Settings::SumOfSquares(settings))?;
    /// let density = family.density(&family.random_params(1, 0))?;
    /// let samples = density.sample(1000, 42)?;
    /// assert!(samples.chunks(2).all(|point| phi.contains(point)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        room(count, self.dimension())?;
        Ok(self.sampler()?.sample(count, seed))
    }

    fn masses(&self, element: &Element, rules: &MeshCubature) -> Vec<f64> {
        let mut masses = vec![0.0; self.weights.len()];
        let mut values = masses.clone();
        rules.visit(element, |t, weight| {
            self.functions.values(&element.bin, t, &mut values);
            masses.iter_mut().zip(&values).for_each(|(mass, value)| *mass += weight * value);
        });
        masses.iter().zip(&self.weights).map(|(mass, weight)| (mass * weight).max(0.0)).collect()
    }
}

/// Refuses more samples than there is memory for.
pub(super) fn room(count: usize, dimension: usize) -> Result<(), QueryError> {
    let room = |numbers| Vec::<f64>::new().try_reserve_exact(numbers).ok();
    count.checked_mul(dimension).and_then(room).ok_or(QueryError::Memory(count))
}

impl Sampler {
    /// Uniform numbers that one sample takes: one more than there are variables.
    pub fn uniforms(&self) -> usize {
        self.density.dimension() + 1
    }

    /// Independent samples, row by row.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        self.sample_from(0, count, seed)
    }

    /// The samples from position `start` on of the endless sequence that a seed stands for.
    pub fn sample_from(&self, start: u64, count: usize, seed: u64) -> Vec<f64> {
        let per = self.uniforms();
        let mut samples = Vec::with_capacity(count * (per - 1));
        for first in (0..count).step_by(BATCH) {
            let rows = (first..count.min(first + BATCH)).into_par_iter();
            let uniforms: Vec<f64> = rows
                .flat_map_iter(|row| {
                    let mut stream = Stream::new(seed, start + row as u64);
                    (0..per).map(move |_| stream.unit())
                })
                .collect();
            samples.append(&mut self.batch(&uniforms));
        }
        samples
    }

    /// Samples from given uniform numbers, such as a low-discrepancy sequence: rows of [`Sampler::uniforms`] numbers in [0, 1], the first of which
    /// chooses the piece.
    pub fn transform(&self, uniforms: &[f64]) -> Result<Vec<f64>, QueryError> {
        let per = self.uniforms();
        if !uniforms.len().is_multiple_of(per) {
            return Err(QueryError::Length { what: "uniform numbers", given: uniforms.len(), wanted: per });
        }
        if let Some(at) = uniforms.iter().position(|u| !(0.0..=1.0).contains(u)) {
            return Err(QueryError::Uniform { row: at / per, column: at % per, value: uniforms[at] });
        }
        Ok(uniforms.chunks(BATCH * per).flat_map(|part| self.batch(part)).collect())
    }

    fn batch(&self, uniforms: &[f64]) -> Vec<f64> {
        let n = self.density.dimension();
        // Sorted by piece, so that what is common to the samples of a piece is computed once.
        let piece = |u: &f64| self.cumulative.partition_point(|sum| sum < u).min(self.pairs.len() - 1) as u32;
        let mut order: Vec<(u32, u32)> =
            uniforms.par_chunks(n + 1).enumerate().map(|(row, u)| (piece(&u[0]), row as u32)).collect();
        order.par_sort_unstable();
        let groups: Vec<&[(u32, u32)]> =
            order.chunk_by(|a, b| a.0 == b.0).flat_map(|group| group.chunks(GROUP)).collect();
        let parts: Vec<Vec<f64>> = groups.par_iter().map(|group| self.group(group, uniforms)).collect();
        let mut samples = vec![0.0; order.len() * n];
        for (group, part) in groups.iter().zip(parts) {
            for ((_, row), point) in group.iter().zip(part.chunks(n)) {
                samples[*row as usize * n..][..n].copy_from_slice(point);
            }
        }
        samples
    }

    /// Samples of one piece.
    fn group(&self, group: &[(u32, u32)], uniforms: &[f64]) -> Vec<f64> {
        checkpoint();
        let n = self.density.dimension();
        let (component, index) = self.pairs[group[0].0 as usize];
        let element = self.density.support.mesh.element(index);
        let mut walk = Walk::new(self, component as usize, element);
        let first = walk.density(0);
        let mut samples = Vec::with_capacity(group.len() * n);
        let mut point = vec![0.0; n];
        for (_, row) in group {
            let u = &uniforms[*row as usize * (n + 1)..][..n + 1];
            walk.set(0, first.inverse(u[1]));
            for k in 1..n {
                let s = walk.density_into(k).inverse(u[k + 1]);
                walk.set(k, s);
            }
            self.density.support.grid().point_at(&element.bin, &walk.t, &mut point);
            self.settle(&mut point, index);
            samples.extend_from_slice(&point);
        }
        samples
    }

    /// Moves a point into the constraint, if rounding has put it outside.
    fn settle(&self, point: &mut [f64], element: ElementIndex) {
        let membership = self.density.support.membership();
        if membership.contains(point) {
            return;
        }
        let Some(anchor) = &self.density.support.anchors()[element.get()] else { return };
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
}

/// The coordinates of one element, fixed one after the other.
struct Walk<'s> {
    sampler: &'s Sampler,
    component: usize,
    element: &'s Element,
    /// What the coordinates fixed so far contribute to the point, per stage.
    base: Vec<Vec<f64>>,
    /// On simplices the product of the coordinates fixed so far, per stage.
    product: Vec<f64>,
    values: Vec<f64>,
    fitted: Vec<Option<Univariate>>,
    t: Vec<f64>,
}

impl<'s> Walk<'s> {
    fn new(sampler: &'s Sampler, component: usize, element: &'s Element) -> Self {
        let n = element.bin.len();
        Walk {
            sampler,
            component,
            element,
            base: vec![vec![0.0; n]; n + 1],
            product: vec![1.0; n + 1],
            values: Vec::new(),
            fitted: vec![None; n],
            t: vec![0.0; n],
        }
    }

    fn stage(&self, k: usize) -> &'s Stage {
        match &self.element.shape {
            Shape::Cuboid(..) => &self.sampler.stages.cuboid[k],
            Shape::Simplex(_) => &self.sampler.stages.simplex[k],
        }
    }

    /// The density of coordinate k given those before it.
    fn density(&mut self, k: usize) -> Univariate {
        self.evaluate(k);
        Univariate::from_values(&self.values)
    }

    fn density_into(&mut self, k: usize) -> &Univariate {
        self.evaluate(k);
        let values = &self.values;
        match &mut self.fitted[k] {
            Some(fitted) => {
                fitted.refit(values);
                fitted
            }
            empty => empty.insert(Univariate::from_values(values)),
        }
    }

    fn evaluate(&mut self, k: usize) {
        let stage = self.stage(k);
        let n = self.t.len();
        let functions = &self.sampler.density.functions;
        self.values.clear();
        for s in &stage.gauss.nodes {
            let mut sum = 0.0;
            for (node, weight) in stage.inner.iter() {
                match &self.element.shape {
                    Shape::Cuboid(low, high) => {
                        self.t[..k].copy_from_slice(&self.base[k][..k]);
                        self.t[k] = low[k] + s * (high[k] - low[k]);
                        for (i, x) in node.iter().enumerate() {
                            let j = k + 1 + i;
                            self.t[j] = low[j] + x * (high[j] - low[j]);
                        }
                    }
                    Shape::Simplex(v) => {
                        let (stay, go) = (self.product[k] * (1.0 - s), self.product[k] * s);
                        for j in 0..n {
                            let ahead: f64 = node.iter().enumerate().map(|(i, x)| x * v[(k + 1 + i) * n + j]).sum();
                            self.t[j] = self.base[k][j] + stay * v[k * n + j] + go * ahead;
                        }
                    }
                }
                sum += weight * functions.value(self.component, &self.element.bin, &self.t);
            }
            let jacobian = match &self.element.shape {
                Shape::Cuboid(..) => 1.0,
                Shape::Simplex(_) => s.powi((n - 1 - k) as i32),
            };
            self.values.push((sum * jacobian).max(0.0));
        }
    }

    /// Fixes coordinate k; after the last one `t` is the sample.
    fn set(&mut self, k: usize, s: f64) {
        let n = self.t.len();
        let (before, after) = self.base.split_at_mut(k + 1);
        after[0].copy_from_slice(&before[k]);
        match &self.element.shape {
            Shape::Cuboid(low, high) => after[0][k] = low[k] + s * (high[k] - low[k]),
            Shape::Simplex(v) => {
                let stay = self.product[k] * (1.0 - s);
                self.product[k + 1] = self.product[k] * s;
                for j in 0..n {
                    after[0][j] += stay * v[k * n + j];
                    if k + 1 == n {
                        after[0][j] += self.product[n] * v[n * n + j];
                    }
                }
            }
        }
        if k + 1 == n {
            self.t.copy_from_slice(&self.base[n]);
        }
    }
}
