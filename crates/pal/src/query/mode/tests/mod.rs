//! Modes of known functions on known regions, checked independently by dense evaluation.

mod certificates;
mod places;
mod runs;

use std::sync::Arc;

pub(super) use certificates::noise;

use super::{Mode, ModeOptions, ModeProblem, ModeStop, search};
use crate::density::BinIndex;
use crate::density::chebyshev;
use crate::density::functions::{ChebyshevSeries, ComponentFunctions};
use crate::density::grid::{Axis, Grid};
use crate::density::mesh::{Degree, Mesh};
use crate::formula::Constraint;
use crate::moments::Exponents;
use crate::number::Rational;
use crate::region::Region;

type LocalFunction = dyn Fn(&[BinIndex], &[f64]) -> f64 + Send + Sync;

/// Multiples of one function of local coordinates, polynomial on every bin; coefficients come from interpolation.
struct Known {
    exponents: Exponents,
    degrees: Vec<usize>,
    function: Box<LocalFunction>,
    /// One factor per component.
    factors: Vec<f64>,
}

impl ComponentFunctions for Known {
    fn components(&self) -> usize {
        self.factors.len()
    }

    fn degree(&self) -> Degree {
        Degree { total: self.exponents.degree(), axis: *self.degrees.iter().max().unwrap() }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        (0..out.len()).for_each(|c| out[c] = self.value(c, bin, t));
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.factors[component] * (self.function)(bin, t)
    }
}

impl ChebyshevSeries for Known {
    fn chebyshev_exponents(&self) -> &Exponents {
        &self.exponents
    }

    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64> {
        let n = bin.len();
        let factor: f64 = weights.iter().zip(&self.factors).map(|(w, f)| w * f).sum();
        let node =
            |axis: usize, k: usize| ((k as f64 + 0.5) * std::f64::consts::PI / (self.degrees[axis] + 1) as f64).cos();
        let count: usize = self.degrees.iter().map(|d| d + 1).product();
        let digits = |mut k: usize| -> Vec<usize> {
            self.degrees
                .iter()
                .map(|d| {
                    let digit = k % (d + 1);
                    k /= d + 1;
                    digit
                })
                .collect()
        };
        let mut table: Vec<f64> = (0..count)
            .map(|k| {
                let t: Vec<f64> = digits(k).iter().enumerate().map(|(axis, k)| 0.5 + 0.5 * node(axis, *k)).collect();
                factor * (self.function)(bin, &t)
            })
            .collect();
        let mut stride = 1;
        for axis in 0..n {
            let m = self.degrees[axis] + 1;
            let rows: Vec<Vec<f64>> = (0..m)
                .map(|k| {
                    let mut row = vec![0.0; m];
                    chebyshev::values(node(axis, k), &mut row);
                    row
                })
                .collect();
            for start in (0..count).filter(|k| (k / stride) % m == 0) {
                let line: Vec<f64> = (0..m).map(|k| table[start + k * stride]).collect();
                for a in 0..m {
                    let sum: f64 = line.iter().zip(&rows).map(|(v, row)| v * row[a]).sum();
                    table[start + a * stride] = sum * if a == 0 { 1.0 } else { 2.0 } / m as f64;
                }
            }
            stride *= m;
        }
        let mut out = vec![0.0; self.exponents.len()];
        let positions = self.exponents.positions();
        for (k, c) in table.iter().enumerate() {
            let a: Vec<u16> = digits(k).iter().map(|d| *d as u16).collect();
            if let Some(position) = positions.get(&a[..]) {
                out[*position] = *c;
            }
        }
        out
    }
}

/// A constraint, a grid over its box and a function.
struct Scene {
    constraint: Constraint,
    mesh: Mesh,
    known: Known,
}

impl Scene {
    /// A scene with `bins` equal bins per axis and a function of at most `degree` in each variable.
    fn new(
        constraint: impl Into<Constraint>,
        bins: usize,
        degree: u16,
        function: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Scene {
        let constraint = constraint.into();
        let n = constraint.reals.len();
        let exponents = Exponents::tensor(&vec![degree; n]).unwrap();
        Scene::with(constraint, bins, exponents, function)
    }

    fn with(
        constraint: Constraint,
        bins: usize,
        exponents: Exponents,
        function: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Scene {
        let region = Region::new(&constraint).unwrap();
        let axes = region.bounding_box().unwrap().unwrap().into_iter().map(|(low, high)| {
            let width = (&high - &low) / Rational::from(bins);
            Axis::new((0..=bins).map(|k| &low + &width * Rational::from(k)).collect()).unwrap()
        });
        let grid = Arc::new(Grid::new(axes.collect()));
        let mesh = Mesh::new(&region, &grid).unwrap();
        let degrees = (0..exponents.dimension()).map(|j| exponents.iter().map(|a| usize::from(a[j])).max().unwrap());
        let places = grid.clone();
        let local = move |bin: &[BinIndex], t: &[f64]| {
            let mut point = vec![0.0; t.len()];
            places.point_at(bin, t, &mut point);
            function(&point)
        };
        let known = Known { degrees: degrees.collect(), exponents, function: Box::new(local), factors: vec![1.0] };
        Scene { constraint, mesh, known }
    }

    fn mode(&self, options: &ModeOptions) -> Mode {
        self.weighted(&[1.0], options).unwrap()
    }

    fn weighted(&self, weights: &[f64], options: &ModeOptions) -> Option<Mode> {
        let membership = self.constraint.membership().unwrap();
        let contains = |point: &[f64]| membership.contains(point);
        let problem = ModeProblem { mesh: &self.mesh, functions: &self.known, weights, contains: &contains };
        search(&problem, options)
    }

    /// The mode with default options, checked: inside, as dense as it says, and no point denser than the bound.
    fn certified(&self) -> Mode {
        let mode = self.mode(&ModeOptions::default());
        assert_eq!(mode.stop, ModeStop::Certified, "{mode:?}");
        assert!(mode.gap <= 1e-6 && mode.log_upper <= mode.log_density + 1.0001e-6);
        self.check(&mode, 100_000);
        mode
    }

    fn value(&self, point: &[f64]) -> f64 {
        let (mut bin, mut t) = (vec![BinIndex::default(); point.len()], vec![0.0; point.len()]);
        self.mesh.grid.locate(point, &mut bin, &mut t);
        self.known.value(0, &bin, &t)
    }

    fn check(&self, mode: &Mode, points: usize) {
        assert!(self.constraint.membership().unwrap().contains(&mode.point));
        let value = self.value(&mode.point);
        assert!((value.ln() - mode.log_density).abs() < 1e-12 || value == mode.log_density.exp());
        let upper = mode.log_upper.exp() * (1.0 + 1e-14);
        let n = self.mesh.dimension();
        let per_element = points.div_ceil(self.mesh.elements.len());
        let (mut t, mut y) = (vec![0.0; n], vec![0.0; n]);
        for (index, element) in self.mesh.elements.iter().enumerate() {
            for k in 0..per_element {
                // A Weyl sequence, pushed to the boundary for every other point.
                let s: Vec<f64> = (0..n)
                    .map(|j| {
                        let s = (((k + 1) as f64) * [0.754877, 0.569840, 0.4301597, 0.3247][j % 4]
                            + index as f64 * 0.618)
                            .fract();
                        if k % 2 == 0 { s } else { (1.5 * s - 0.25).clamp(0.0, 1.0) }
                    })
                    .collect();
                element.shape.map(&s, &mut t);
                self.mesh.grid.point_at(&element.bin, &t, &mut y);
                let value = self.known.value(0, &element.bin, &t);
                assert!(value <= upper, "{value} at {y:?} is above {upper}, {mode:?}");
            }
        }
    }
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
}
