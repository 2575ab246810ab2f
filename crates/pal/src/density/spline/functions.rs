//! The components of one spline mixture as functions.

use std::sync::Arc;

use super::MAX_SPLINE_DIMENSION;
use super::hermite::{self, CUBIC};
use crate::density::chebyshev;
use crate::density::functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
use crate::density::grid::BinIndex;
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, Simd, dispatch, one_by_one};
use crate::density::mesh::Degree;
use crate::moments::Exponents;

/// Products of squared splines.
pub(super) struct SplineFunctions {
    /// Where each axis starts in the coefficients of a component.
    pub starts: Vec<usize>,
    /// The number of coefficients of one component.
    pub length: usize,
    pub components: usize,
    pub coefficients: Vec<f64>,
    pub exponents: Arc<Exponents>,
}

impl SplineFunctions {
    fn cubic(&self, component: usize, axis: usize, bin: &[BinIndex]) -> &[f64] {
        let at = component * self.length + self.starts[axis] + bin[axis].get() * CUBIC;
        &self.coefficients[at..at + CUBIC]
    }

    fn root(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let factors = t.iter().enumerate().map(|(j, t)| hermite::value(self.cubic(component, j, bin), *t));
        factors.product()
    }
}

/// The squared products of cubics, one per axis, at many points.
struct ProductsOfSquares<'p> {
    cubics: &'p [[f64; CUBIC]],
    points: &'p [f64],
    out: &'p mut [f64],
}

impl LaneWork for ProductsOfSquares<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.out.fill(1.0);
        for (cubic, coordinates) in self.cubics.iter().zip(self.points.chunks_exact(self.out.len().max(1))) {
            for (out, t) in self.out.iter_mut().zip(coordinates) {
                *out *= hermite::value(cubic, *t);
            }
        }
        self.out.iter_mut().for_each(|out| *out *= *out);
    }
}

/// The Bernstein polynomials of degree 3 along every axis at points, one point per lane. Lanes without a point are in
/// the middle of the bin.
#[inline(always)]
fn bernstein<const N: usize>(points: &[f64], count: usize, block: usize) -> [[Lanes<f64>; CUBIC]; N] {
    let present = (count - block).min(LANES);
    let mut all = [[Lanes::zero(); CUBIC]; N];
    for (axis, basis) in all.iter_mut().enumerate() {
        let mut t = Lanes::splat(0.5);
        let coordinates = &points[axis * count + block..][..present];
        // A copy of a known length is one instruction.
        match coordinates.first_chunk() {
            Some(all) => t.0 = *all,
            None => t.0[..present].copy_from_slice(coordinates),
        }
        let s = Lanes::splat(1.0) - t;
        let (ss, tt) = (s * s, t * t);
        *basis = [ss * s, (ss * t).times(3.0), (tt * s).times(3.0), tt * t];
    }
    all
}

/// A cubic at points whose Bernstein polynomials are known.
#[inline(always)]
fn cubic_at(cubic: &[f64], basis: &[Lanes<f64>; CUBIC]) -> Lanes<f64> {
    let mut value = one_by_one(&basis[0]).times(cubic[0]);
    for (b, basis) in cubic[1..].iter().zip(&basis[1..]) {
        value.add_times(*one_by_one(basis), *b);
    }
    value
}

/// The weighted sum of all components at many points, in N variables.
struct MixtureAtPoints<'p, const N: usize> {
    functions: &'p SplineFunctions,
    weights: &'p [f64],
    bin: &'p [BinIndex],
    points: &'p [f64],
    out: &'p mut [f64],
}

impl<const N: usize> LaneWork for MixtureAtPoints<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let count = self.out.len();
        for block in (0..count).step_by(LANES) {
            let bases = bernstein::<N>(self.points, count, block);
            let mut total = Lanes::zero();
            for (m, weight) in self.weights.iter().enumerate() {
                let mut root = cubic_at(self.functions.cubic(m, 0, self.bin), &bases[0]);
                for (axis, basis) in bases.iter().enumerate().skip(1) {
                    root = root * cubic_at(self.functions.cubic(m, axis, self.bin), basis);
                }
                total.add_times(root * root, *weight);
            }
            let out = &mut self.out[block..];
            match out.first_chunk_mut() {
                Some(all) => *all = total.0,
                None => out.copy_from_slice(&total.0[..out.len()]),
            }
        }
    }
}

/// The derivatives of a weighted sum over points, in N variables: see [`Differentiable::add_gradient_at_points`].
struct GradientAtPoints<'p, const N: usize> {
    functions: &'p SplineFunctions,
    bin: &'p [BinIndex],
    points: &'p [f64],
    factors: &'p [f64],
    weights: &'p [f64],
    sums: &'p mut [f64],
    gradient: &'p mut [f64],
}

/// The number of components that are differentiated side by side: one register of 512 bits.
const GROUP: usize = 8;

impl<const N: usize> LaneWork for GradientAtPoints<'_, N> {
    type Output = ();

    /// Components are in lanes, so that sums over points need no sums over lanes.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for first in (0..self.weights.len()).step_by(GROUP) {
            let group = &self.weights[first..self.weights.len().min(first + GROUP)];
            let mut cubics = [[[0.0; GROUP]; CUBIC]; N];
            for lane in 0..group.len() {
                for (axis, of_axis) in cubics.iter_mut().enumerate() {
                    let cubic = self.functions.cubic(first + lane, axis, self.bin);
                    of_axis.iter_mut().zip(cubic).for_each(|(lanes, b)| lanes[lane] = *b);
                }
            }
            let moments = self.moments(simd, &cubics);
            for (lane, weight) in group.iter().enumerate() {
                let m = first + lane;
                // The cubic itself is a sum of Bernstein polynomials.
                let products = cubics[0].iter().zip(&moments[0]).map(|(b, moment)| b[lane] * moment[lane]);
                self.sums[m] += weight * products.sum::<f64>();
                for (axis, of_axis) in moments.iter().enumerate() {
                    let at = m * self.functions.length + self.functions.starts[axis] + self.bin[axis].get() * CUBIC;
                    let gradient = &mut self.gradient[at..at + CUBIC];
                    gradient.iter_mut().zip(of_axis).for_each(|(g, moment)| *g += 2.0 * weight * moment[lane]);
                }
            }
        }
    }
}

impl<const N: usize> GradientAtPoints<'_, N> {
    /// For every axis, Bernstein polynomial and component the sum over all points of the factor times the polynomial times
    /// the cubic of that axis and the squares of the others.
    #[inline(always)]
    #[allow(clippy::needless_range_loop)]
    fn moments<S: Simd>(&self, simd: S, cubics: &[[[f64; GROUP]; CUBIC]; N]) -> [[[f64; GROUP]; CUBIC]; N] {
        let count = self.factors.len();
        let mut moments = [[[0.0; GROUP]; CUBIC]; N];
        for part in 0..f64::registers::<S>(&cubics[0][0]).len() {
            let mut cubic = [[simd.splat_f64s(0.0); CUBIC]; N];
            for axis in 0..N {
                for k in 0..CUBIC {
                    cubic[axis][k] = f64::registers::<S>(&cubics[axis][k])[part];
                }
            }
            let mut sums = [[simd.splat_f64s(0.0); CUBIC]; N];
            for block in (0..count).step_by(LANES) {
                let bases = bernstein::<N>(self.points, count, block);
                for (node, factor) in self.factors[block..count.min(block + LANES)].iter().enumerate() {
                    let mut values = [simd.splat_f64s(0.0); N];
                    for axis in 0..N {
                        for k in 0..CUBIC {
                            let basis = simd.splat_f64s(bases[axis][k].0[node]);
                            values[axis] = f64::plus_product(simd, values[axis], cubic[axis][k], basis);
                        }
                    }
                    let mut root = simd.splat_f64s(*factor);
                    for value in values {
                        root = simd.mul_f64s(root, value);
                    }
                    // `root` is the factor times the product of all cubics; a square needs that product once more.
                    for axis in 0..N {
                        let mut others = root;
                        for (other, value) in values.iter().enumerate() {
                            if other != axis {
                                others = simd.mul_f64s(others, *value);
                            }
                        }
                        for k in 0..CUBIC {
                            let basis = simd.splat_f64s(bases[axis][k].0[node]);
                            sums[axis][k] = f64::plus_product(simd, sums[axis][k], others, basis);
                        }
                    }
                }
            }
            for (of_axis, sums) in moments.iter_mut().zip(sums) {
                for (lanes, sum) in of_axis.iter_mut().zip(sums) {
                    f64::registers_mut::<S>(lanes)[part] = sum;
                }
            }
        }
        moments
    }
}

impl ComponentFunctions for SplineFunctions {
    fn components(&self) -> usize {
        self.components
    }

    fn degree(&self) -> Degree {
        Degree { total: 6 * self.starts.len(), axis: 6 }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        for (component, out) in out.iter_mut().enumerate() {
            let root = self.root(component, bin, t);
            *out = root * root;
        }
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let root = self.root(component, bin, t);
        root * root
    }

    fn values_at_points(&self, component: usize, bin: &[BinIndex], points: &[f64], out: &mut [f64]) {
        let mut cubics = [[0.0; CUBIC]; MAX_SPLINE_DIMENSION];
        for (axis, cubic) in cubics[..bin.len()].iter_mut().enumerate() {
            cubic.copy_from_slice(self.cubic(component, axis, bin));
        }
        dispatch(ProductsOfSquares { cubics: &cubics[..bin.len()], points, out });
    }

    fn mixture_at_points(&self, weights: &[f64], bin: &[BinIndex], points: &[f64], out: &mut [f64]) {
        match bin.len() {
            1 => dispatch(MixtureAtPoints::<1> { functions: self, weights, bin, points, out }),
            2 => dispatch(MixtureAtPoints::<2> { functions: self, weights, bin, points, out }),
            3 => dispatch(MixtureAtPoints::<3> { functions: self, weights, bin, points, out }),
            MAX_SPLINE_DIMENSION => dispatch(MixtureAtPoints::<4> { functions: self, weights, bin, points, out }),
            n => unreachable!("splines have at most {MAX_SPLINE_DIMENSION} variables, not {n}"),
        }
    }

    fn log_value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let factors = t.iter().enumerate().map(|(j, t)| hermite::value(self.cubic(component, j, bin), *t));
        factors.map(|value| 2.0 * value.abs().ln()).sum()
    }

    fn factor(&self, component: usize, axis: usize, bin: &[BinIndex], t: f64) -> Option<f64> {
        let root = hermite::value(self.cubic(component, axis, bin), t);
        Some(root * root)
    }
}

impl ChebyshevSeries for SplineFunctions {
    fn chebyshev_exponents(&self) -> &Exponents {
        &self.exponents
    }

    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64> {
        let n = self.starts.len();
        let mut sum = vec![0.0; self.exponents.len()];
        for (component, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let squares: Vec<Vec<f64>> =
                (0..n).map(|j| chebyshev::square(&hermite::chebyshev(self.cubic(component, j, bin)))).collect();
            for (sum, alpha) in sum.iter_mut().zip(self.exponents.iter()) {
                *sum += alpha.iter().zip(&squares).fold(*weight, |product, (a, s)| product * s[usize::from(*a)]);
            }
        }
        sum
    }
}

impl Differentiable for SplineFunctions {
    fn add_gradient(&self, bin: &[BinIndex], t: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let n = t.len();
        let mut bases = [[0.0; CUBIC]; MAX_SPLINE_DIMENSION];
        bases.iter_mut().zip(t).for_each(|(basis, t)| *basis = hermite::basis(*t));
        for (m, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let mut values = [1.0; MAX_SPLINE_DIMENSION];
            for j in 0..n {
                values[j] = hermite::value(self.cubic(m, j, bin), t[j]);
            }
            let root: f64 = values.iter().product();
            for j in 0..n {
                let others: f64 = (0..n).filter(|k| *k != j).map(|k| values[k]).product();
                let factor = 2.0 * weight * root * others;
                let at = m * self.length + self.starts[j] + bin[j].get() * CUBIC;
                gradient[at..at + CUBIC].iter_mut().zip(&bases[j]).for_each(|(g, p)| *g += factor * p);
            }
        }
    }

    fn add_gradient_at_points(
        &self,
        bin: &[BinIndex],
        points: &[f64],
        factors: &[f64],
        weights: &[f64],
        sums: &mut [f64],
        gradient: &mut [f64],
    ) {
        let functions = self;
        match bin.len() {
            1 => dispatch(GradientAtPoints::<1> { functions, bin, points, factors, weights, sums, gradient }),
            2 => dispatch(GradientAtPoints::<2> { functions, bin, points, factors, weights, sums, gradient }),
            3 => dispatch(GradientAtPoints::<3> { functions, bin, points, factors, weights, sums, gradient }),
            MAX_SPLINE_DIMENSION => {
                dispatch(GradientAtPoints::<4> { functions, bin, points, factors, weights, sums, gradient })
            }
            n => unreachable!("splines have at most {MAX_SPLINE_DIMENSION} variables, not {n}"),
        }
    }
}
