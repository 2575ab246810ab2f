//! The documented formulas of all kinds of families implemented a second time, in dual numbers: values and derivatives
//! that use nothing of the library but its cells.

use std::ops::{Add, Div, Mul, Sub};

use pal::density::{Basis, Settings, SumOfSquaresSettings};
use pal::formula::Formula;
use pal::moments::Exponents;
use pal::number::to_f64;

use super::cubature::Cubature;
use super::{Case, in_float64};

/// A number and its derivative in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dual {
    pub value: f64,
    pub slope: f64,
}

impl From<f64> for Dual {
    fn from(value: f64) -> Dual {
        Dual { value, slope: 0.0 }
    }
}

impl Add for Dual {
    type Output = Dual;
    fn add(self, b: Dual) -> Dual {
        Dual { value: self.value + b.value, slope: self.slope + b.slope }
    }
}

impl Sub for Dual {
    type Output = Dual;
    fn sub(self, b: Dual) -> Dual {
        Dual { value: self.value - b.value, slope: self.slope - b.slope }
    }
}

impl Mul for Dual {
    type Output = Dual;
    fn mul(self, b: Dual) -> Dual {
        Dual { value: self.value * b.value, slope: self.slope * b.value + self.value * b.slope }
    }
}

impl Div for Dual {
    type Output = Dual;
    fn div(self, b: Dual) -> Dual {
        let value = self.value / b.value;
        Dual { value, slope: (self.slope - value * b.slope) / b.value }
    }
}

impl Dual {
    pub fn times(self, factor: f64) -> Dual {
        Dual { value: self.value * factor, slope: self.slope * factor }
    }

    pub fn exp(self) -> Dual {
        let value = self.value.exp();
        Dual { value, slope: value * self.slope }
    }

    pub fn ln(self) -> Dual {
        Dual { value: self.value.ln(), slope: self.slope / self.value }
    }

    /// The paper's `sign(z) (sqrt(|z| + 0.1) - sqrt(0.1))`.
    fn softened(self) -> Dual {
        let root = (self.value.abs() + 0.1).sqrt();
        Dual { value: self.value.signum() * (root - 0.1f64.sqrt()), slope: self.slope / (2.0 * root) }
    }
}

pub fn total(terms: impl IntoIterator<Item = Dual>) -> Dual {
    terms.into_iter().fold(Dual::default(), |sum, term| sum + term)
}

/// A family evaluated by its definition.
pub struct Oracle {
    functions: Functions,
    components: usize,
    cubature: Cubature,
    /// The values of the basis at every node of the cubature; empty for splines.
    at_nodes: Vec<Vec<f64>>,
}

enum Functions {
    /// Spline mixtures, by their knots per axis.
    Splines(Vec<Vec<f64>>),
    /// Histogram mixtures, by the ends of their bins per axis.
    Histograms(Vec<Vec<f64>>),
    /// Sums of squares: every basis function is a linear combination of the starting functions up to its own position.
    Polynomials {
        settings: SumOfSquaresSettings,
        ends: Vec<(f64, f64)>,
        exponents: Vec<Vec<u16>>,
        change: Vec<Vec<f64>>,
    },
}

impl Oracle {
    pub fn new(case: &Case) -> Oracle {
        let cubature = case.cubature(&Formula::yes(), 0);
        let (functions, components) = match &case.settings {
            Settings::Spline(settings) => {
                let knots = case.knots().iter().map(|list| list.iter().map(to_f64).collect()).collect();
                (Functions::Splines(knots), settings.components)
            }
            Settings::Histogram(settings) => {
                let knots = case.knots().iter().map(|list| list.iter().map(to_f64).collect()).collect();
                (Functions::Histograms(knots), settings.components)
            }
            Settings::SumOfSquares(settings) => {
                assert!(settings.subset.is_none(), "which members were chosen is for the library to know");
                let ends: Vec<(f64, f64)> = case.ends().iter().map(in_float64).collect();
                let set = Exponents::total_degree(ends.len(), settings.degree.unwrap()).unwrap();
                let exponents: Vec<Vec<u16>> = set.iter().map(<[u16]>::to_vec).collect();
                let volume: f64 = ends.iter().map(|(_, length)| length).product();
                let start = |point: &[f64]| start(settings.basis, &ends, &exponents, point);
                let values: Vec<Vec<f64>> = cubature.points.chunks(ends.len()).map(start).collect();
                let change = orthogonaliser(settings.basis, &values, &cubature.weights, volume);
                (Functions::Polynomials { settings: *settings, ends, exponents, change }, settings.components)
            }
        };
        let mut oracle = Oracle { functions, components, cubature, at_nodes: Vec::new() };
        oracle.at_nodes = oracle.cubature.points.chunks(case.dimension()).map(|point| oracle.basis(point)).collect();
        oracle
    }

    /// The values of the basis functions at a point.
    fn basis(&self, point: &[f64]) -> Vec<f64> {
        let Functions::Polynomials { settings, ends, exponents, change } = &self.functions else { return Vec::new() };
        let start = start(settings.basis, ends, exponents, point);
        change.iter().map(|row| row.iter().zip(&start).map(|(a, b)| a * b).sum()).collect()
    }

    /// `q_c` of one component, given its parameters without the logit.
    fn component(&self, params: &[Dual], point: &[f64], basis: &[f64]) -> Dual {
        match &self.functions {
            Functions::Splines(knots) => {
                let mut rest = params;
                let factors = knots.iter().zip(point).map(|(knots, y)| {
                    let (here, after) = rest.split_at(2 * knots.len());
                    rest = after;
                    hermite(knots, here, *y)
                });
                factors.fold(Dual::from(1.0), |product, s| product * s * s)
            }
            Functions::Histograms(knots) => {
                let mut rest = params;
                let logs = knots.iter().zip(point).map(|(knots, y)| {
                    let (here, after) = rest.split_at(knots.len() - 1);
                    rest = after;
                    here[(1..knots.len() - 1).filter(|k| knots[*k] <= *y).count()]
                });
                total(logs).exp()
            }
            Functions::Polynomials { settings, .. } => {
                let monomial = settings.basis == Basis::Monomial;
                let u = params.iter().map(|z| if monomial { z.softened() } else { *z });
                let sum = total(u.zip(basis).map(|(u, phi)| u.times(*phi)));
                sum * sum
            }
        }
    }

    /// The integrals of all components over the region.
    pub fn normalisers(&self, params: &[Dual]) -> Vec<Dual> {
        let of = |params: &[Dual]| {
            let nodes = self.cubature.points.chunks(self.cubature.dimension).zip(&self.cubature.weights);
            total(nodes.zip(&self.at_nodes).map(|((y, w), basis)| self.component(&params[1..], y, basis).times(*w)))
        };
        params.chunks(params.len() / self.components).map(of).collect()
    }

    /// The log-densities of points of the region.
    pub fn log_prob(&self, params: &[Dual], points: &[f64]) -> Vec<Dual> {
        let parts: Vec<&[Dual]> = params.chunks(params.len() / self.components).collect();
        let integrals = self.normalisers(params);
        let weights: Vec<Dual> = parts.iter().map(|part| part[0].exp()).collect();
        let at = |point: &[f64]| {
            let basis = self.basis(point);
            let q = parts.iter().map(|part| self.component(&part[1..], point, &basis));
            match &self.functions {
                // The components are normalised, then mixed.
                Functions::Splines(_) | Functions::Histograms(_) => {
                    let mixed = q.zip(&weights).zip(&integrals).map(|((q, w), z)| q * *w / *z);
                    (total(mixed) / total(weights.iter().copied())).ln()
                }
                // The sum is normalised as a whole.
                Functions::Polynomials { .. } => {
                    let integral = total(integrals.iter().zip(&weights).map(|(i, w)| *i * *w));
                    (total(q.zip(&weights).map(|(q, w)| q * *w)) / integral).ln()
                }
            }
        };
        points.chunks(self.cubature.dimension).map(at).collect()
    }
}

/// The cubic through values and derivatives at the two knots around y. Derivatives are per mean distance of the knots.
fn hermite(knots: &[f64], params: &[Dual], y: f64) -> Dual {
    let (values, slopes) = params.split_at(knots.len());
    let bin = (1..knots.len() - 1).filter(|k| knots[*k] <= y).count();
    let width = knots[bin + 1] - knots[bin];
    let unit = (knots[knots.len() - 1] - knots[0]) / (knots.len() - 1) as f64;
    let (t, stretch) = ((y - knots[bin]) / width, width / unit);
    let (t2, t3) = (t * t, t * t * t);
    values[bin].times(2.0 * t3 - 3.0 * t2 + 1.0)
        + values[bin + 1].times(3.0 * t2 - 2.0 * t3)
        + slopes[bin].times((t3 - 2.0 * t2 + t) * stretch)
        + slopes[bin + 1].times((t3 - t2) * stretch)
}

/// The starting functions of a basis: monomials for the basis of monomials, Legendre polynomials on the box for the
/// others.
fn start(basis: Basis, ends: &[(f64, f64)], exponents: &[Vec<u16>], point: &[f64]) -> Vec<f64> {
    let factor = |axis: usize, degree: u16| {
        if basis == Basis::Monomial {
            return point[axis].powi(i32::from(degree));
        }
        let x = 2.0 * (point[axis] - ends[axis].0) / ends[axis].1 - 1.0;
        let (mut before, mut here) = (0.0, 1.0);
        for k in 0..degree {
            let k = f64::from(k);
            (before, here) = (here, ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0));
        }
        here * f64::from(2 * degree + 1).sqrt()
    };
    exponents.iter().map(|alpha| alpha.iter().enumerate().map(|(j, a)| factor(j, *a)).product()).collect()
}

/// The linear combinations that make a basis of the starting functions: scaled monomials, Legendre polynomials
/// unchanged, or the result of the Gram-Schmidt process on the region.
fn orthogonaliser(basis: Basis, values: &[Vec<f64>], weights: &[f64], volume: f64) -> Vec<Vec<f64>> {
    let size = values[0].len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for k in 0..size {
        let mut row: Vec<f64> = (0..size).map(|j| if j == k { 1.0 } else { 0.0 }).collect();
        let inner = |a: &[f64], b: &[f64]| {
            values.iter().zip(weights).map(|(v, w)| w * dot(a, v) * dot(b, v)).sum::<f64>() / volume
        };
        for _ in 0..if basis == Basis::Orthonormal { 2 } else { 0 } {
            for before in &rows {
                let overlap = inner(before, &row);
                row.iter_mut().zip(before).for_each(|(a, b)| *a -= overlap * b);
            }
        }
        if basis != Basis::Legendre {
            let length = inner(&row, &row).sqrt();
            row.iter_mut().for_each(|a| *a /= length);
        }
        rows.push(row);
    }
    rows
}
