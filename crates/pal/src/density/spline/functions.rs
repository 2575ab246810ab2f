//! The components of one spline mixture as functions.

use std::sync::Arc;

use super::MAX_SPLINE_DIMENSION;
use super::hermite::{self, CUBIC};
use crate::density::chebyshev;
use crate::density::functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
use crate::density::grid::BinIndex;
use crate::density::lanes::{LaneWork, Simd, dispatch};
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
}
