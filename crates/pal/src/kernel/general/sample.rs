//! Samples: a kernel by its mass, a simplex of what it sees of the region, and a point inside by inverse transform along
//! collapsed coordinates, one after the other.

use std::cell::OnceCell;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::sample::{ATTEMPTS, choose, running_sums};
use super::head::GeneralRow;
use super::integral::GeneralKernel;
use super::simplices::{self, KernelSimplex, collapsed, seen_by};
use super::{GeneralKernelFamily, Point};
use crate::density::gauss::Gauss;
use crate::interrupt::checkpoint;
use crate::query::{QueryError, check_memory};
use crate::random::Stream;

impl GeneralKernelFamily {
    /// Draws `count` independent samples for each row of parameters, row by row. The same seed gives the same samples
    /// for any number of threads.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        check_memory(rows.len().saturating_mul(count), self.dimension())?;
        let draw = |(number, row): (usize, &GeneralRow)| {
            let sampler = GeneralSampler::new(self, row)?;
            let mut points = Vec::with_capacity(self.dimension() * count);
            // One stream per sample: how many numbers a sample takes has no effect on the next.
            let first = (number as u64).wrapping_mul(count as u64);
            for k in 0..count {
                checkpoint();
                points.extend(sampler.draw(&mut Stream::new(seed, first.wrapping_add(k as u64)))?);
            }
            Ok(points)
        };
        let parts: Vec<Vec<f64>> = rows.par_iter().enumerate().map(draw).collect::<Result<_, QueryError>>()?;
        Ok(parts.concat())
    }
}

/// One density prepared for sampling.
struct GeneralSampler<'s> {
    family: &'s GeneralKernelFamily,
    row: &'s GeneralRow,
    /// Running sums of the masses of kernels; the last is that of the uniform part.
    cumulative: Vec<f64>,
    /// Exact for a kernel along collapsed coordinates, and for products with as many other polynomials.
    rules: [Arc<Gauss>; 2],
    /// What each kernel sees of the region, with running sums of masses, found when first needed.
    seen: Vec<OnceCell<(Vec<KernelSimplex>, Vec<f64>)>>,
    volumes: Vec<f64>,
}

impl<'s> GeneralSampler<'s> {
    fn new(family: &'s GeneralKernelFamily, row: &'s GeneralRow) -> Result<GeneralSampler<'s>, QueryError> {
        let cumulative = running_sums(family.masses(row).into_iter());
        if !(cumulative.last().copied().unwrap_or(0.0) >= f64::MIN_POSITIVE) {
            return Err(QueryError::Impossible);
        }
        let degree = 7 * family.dimension() - 1;
        Ok(GeneralSampler {
            family,
            row,
            cumulative,
            rules: [simplices::rule(family.dimension(), 0), Gauss::for_degree(2 * degree)],
            seen: vec![OnceCell::new(); row.kernels.len()],
            volumes: running_sums(family.0.simplices.iter().map(|simplex| simplex.volume)),
        })
    }

    fn draw(&self, stream: &mut Stream) -> Result<Vec<f64>, QueryError> {
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

    fn draw_kernel(&self, chosen: usize, kernel: &GeneralKernel, stream: &mut Stream) -> Option<Vec<f64>> {
        let n = self.family.dimension();
        let (parts, sums) = self.seen[chosen].get_or_init(|| {
            let parts = seen_by(kernel, &self.family.0.simplices);
            let sums = running_sums(parts.iter().map(|part| part.mass(kernel, &self.rules[0])));
            (parts, sums)
        });
        let place = stream.unit();
        let uniforms: Point = std::array::from_fn(|_| stream.unit());
        if !(*sums.last()? > 0.0) {
            return None;
        }
        let corners = &parts[choose(sums, place)].corners;
        let mut s = Point::default();
        for j in 0..n {
            let mut at = |x: f64| {
                s[j] = x;
                self.rest(kernel, corners, j + 1, &mut s)
            };
            let values: Vec<f64> = self.rules[1].nodes.iter().map(|x| at(*x)).collect();
            s[j] = quantile(&self.rules[1], &values, uniforms[j]);
        }
        let half = collapsed(corners, &[0.5; 3]);
        self.inside(&kernel.to_box(&collapsed(corners, &s)), &kernel.to_box(&half))
    }

    /// The integral of the kernel over the collapsed coordinates from one on, the others being given.
    fn rest(&self, kernel: &GeneralKernel, corners: &[Point], from: usize, s: &mut Point) -> f64 {
        let n = self.family.dimension();
        if from == n {
            let jacobian: f64 = (0..n).map(|j| s[j].powi((n - 1 - j) as i32)).product();
            return jacobian * kernel.bell(&collapsed(corners, s));
        }
        let rule = &self.rules[0];
        let mut sum = 0.0;
        for (x, weight) in rule.nodes.iter().zip(&rule.weights) {
            s[from] = *x;
            sum += weight * self.rest(kernel, corners, from + 1, s);
        }
        sum
    }

    fn draw_uniform(&self, stream: &mut Stream) -> Option<Vec<f64>> {
        let n = self.family.dimension();
        let simplex = &self.family.0.simplices[choose(&self.volumes, stream.unit())];
        let s: Point = std::array::from_fn(|j| {
            let uniform = stream.unit();
            if j < n { uniform.powf(1.0 / (n - j) as f64) } else { 0.0 }
        });
        self.inside(&collapsed(&simplex.corners, &s), &simplex.centre())
    }

    /// The float64 point at a position, or one closer to the middle of its part that the constraint contains.
    fn inside(&self, v: &Point, middle: &Point) -> Option<Vec<f64>> {
        let mut step = 0.0;
        for _ in 0..64 {
            let point = self.family.to_user(&std::array::from_fn(|j| v[j] + step * (middle[j] - v[j])));
            if self.family.contains(&point) {
                return Some(point);
            }
            step = if step == 0.0 { f64::EPSILON } else { (2.0 * step).min(1.0) };
        }
        None
    }
}

impl GeneralKernel {
    /// The point of the box at coordinates of the kernel.
    pub fn to_box(self, u: &Point) -> Point {
        let along = |i: usize| (0..=i).map(|j| self.factor[i][j] * u[j]).sum::<f64>();
        std::array::from_fn(|i| if i < self.n { self.place[i] + along(i) } else { 0.0 })
    }
}

/// Where the integral from 0 of a polynomial that is not negative on [0, 1], given at the nodes of a rule with as many of
/// them as its degree, is a fraction of that up to 1.
fn quantile(rule: &Gauss, values: &[f64], uniform: f64) -> f64 {
    let count = values.len();
    // Coefficients of Legendre polynomials, in coordinates from -1 to 1.
    let mut coefficients = vec![0.0; count];
    for ((x, weight), value) in rule.nodes.iter().zip(&rule.weights).zip(values) {
        let legendre = legendre(2.0 * x - 1.0, count);
        for (l, c) in coefficients.iter_mut().enumerate() {
            *c += (2 * l + 1) as f64 * weight * value * legendre[l];
        }
    }
    let integral = |t: f64| {
        let legendre = legendre(2.0 * t - 1.0, count + 1);
        let term = |l: usize| (legendre[l + 1] - legendre[l - 1]) / (2 * (2 * l + 1)) as f64;
        coefficients[0] * t + (1..count).map(|l| coefficients[l] * term(l)).sum::<f64>()
    };
    let (target, mut low, mut high) = (uniform * integral(1.0), 0.0, 1.0);
    for _ in 0..54 {
        let middle = 0.5 * (low + high);
        if integral(middle) > target { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}

/// The first Legendre polynomials.
fn legendre(z: f64, count: usize) -> Vec<f64> {
    let mut values = vec![1.0, z];
    for l in 2..count {
        let (a, b) = (values[l - 1], values[l - 2]);
        values.push(((2 * l - 1) as f64 * z * a - (l - 1) as f64 * b) / l as f64);
    }
    values
}
