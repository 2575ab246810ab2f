//! The shape of a node in coordinates of the box around it, and Newton's method inside it.
//!
//! The points of a simplex are `x = v_0 + sum_i y_i (v_i - v_0)` with barycentric coordinates y, those of a box
//! `x = y`. Newton's method ascends in `y`: each step maximises the quadratic model over the shape, so that it ends
//! inside or at a face where the gradient points outwards.

use nalgebra::{Cholesky, DMatrix, DVector};

use super::chebyshev_basis::ChebyshevBasis;
use super::enclosure::{Jet, PolynomialEnclosure};

/// The largest number of sweeps of the coordinate ascent that maximises a quadratic; each takes a few dozen operations.
const SWEEPS: usize = 60;

/// The shape of a node, in coordinates in which the box around it is [-1, 1]^n.
pub(super) enum NodeShape {
    /// The cube [-1, 1]^n itself.
    Cube(usize),
    /// A simplex, by its vertices with n coordinates each.
    Simplex(usize, Vec<f64>),
}

/// A point of a shape, its parameters y, and value and derivatives of the polynomial there.
pub(super) struct AscentPoint {
    y: Vec<f64>,
    pub x: Vec<f64>,
    pub jet: Jet,
}

impl NodeShape {
    /// The parameters of the centre.
    fn centre(&self) -> Vec<f64> {
        match self {
            NodeShape::Cube(n) => vec![0.0; *n],
            NodeShape::Simplex(n, _) => vec![1.0 / (n + 1) as f64; *n],
        }
    }

    /// The parameters of the vertex that is farthest in a direction.
    fn farthest(&self, direction: &[f64]) -> Vec<f64> {
        match self {
            NodeShape::Cube(_) => direction.iter().map(|g| if *g < 0.0 { -1.0 } else { 1.0 }).collect(),
            NodeShape::Simplex(n, vertices) => {
                let reach = |v: &[f64]| v.iter().zip(direction).map(|(v, g)| v * g).sum::<f64>();
                let mut best = (0, f64::NEG_INFINITY);
                for (k, v) in vertices.chunks(*n).enumerate() {
                    if reach(v) > best.1 {
                        best = (k, reach(v));
                    }
                }
                (1..=*n).map(|k| if k == best.0 { 1.0 } else { 0.0 }).collect()
            }
        }
    }

    /// The point with the parameters y.
    fn point(&self, y: &[f64]) -> Vec<f64> {
        match self {
            NodeShape::Cube(_) => y.to_vec(),
            NodeShape::Simplex(n, vertices) => {
                // All barycentric coordinates at once, so that a vertex is met exactly.
                let first = 1.0 - y.iter().sum::<f64>();
                let barycentric = std::iter::once(&first).chain(y);
                let mut x = vec![0.0; *n];
                for (weight, v) in barycentric.zip(vertices.chunks(*n)) {
                    x.iter_mut().zip(v).for_each(|(x, v)| *x += weight * v);
                }
                x
            }
        }
    }

    /// The largest value over the shape of `gradient . (v - x) + curvature |v - x|^2 / 2` with a curvature of at least
    /// 0. That function is convex, so it is largest at a vertex.
    pub fn largest_increase(&self, x: &[f64], gradient: &[f64], curvature: f64) -> f64 {
        let along = |g: f64, step: f64| g * step + 0.5 * curvature * step * step;
        match self {
            NodeShape::Cube(_) => {
                x.iter().zip(gradient).map(|(x, g)| along(*g, 1.0 - x).max(along(*g, -1.0 - x))).sum::<f64>()
            }
            NodeShape::Simplex(n, vertices) => {
                let increase =
                    |v: &[f64]| v.iter().zip(x).zip(gradient).map(|((v, x), g)| along(*g, v - x)).sum::<f64>();
                vertices.chunks(*n).map(increase).fold(f64::NEG_INFINITY, f64::max)
            }
        }
    }

    /// The better of the centre and the vertex where the linear part is largest.
    pub fn start(&self, basis: &ChebyshevBasis, enclosure: &PolynomialEnclosure) -> AscentPoint {
        let gradient: Vec<f64> = (0..basis.dimension).map(|i| basis.linear(&enclosure.coefficients, i)).collect();
        let [centre, corner] = [self.centre(), self.farthest(&gradient)].map(|y| (self.point(&y), y));
        let [low, high] = [&centre, &corner].map(|(x, _)| enclosure.value(basis, x));
        let (x, y) = if high > low { corner } else { centre };
        let jet = enclosure.jet(basis, &x);
        AscentPoint { y, x, jet }
    }

    /// Ascends from a point for at most `steps` steps of Newton's method, or until the linear model predicts an
    /// increase of no more than `tolerance`.
    pub fn ascend(
        &self,
        basis: &ChebyshevBasis,
        enclosure: &PolynomialEnclosure,
        ascent: &mut AscentPoint,
        steps: usize,
        tolerance: f64,
    ) {
        for _ in 0..steps {
            let predicted = self.largest_increase(&ascent.x, &ascent.jet.gradient, 0.0);
            if predicted <= tolerance {
                return;
            }
            let (value, level) = (ascent.jet.value, 8.0 * f64::EPSILON * ascent.jet.value.abs());
            let mut model = self.model(&ascent.jet);
            let mut target = ascent.y.clone();
            model.maximise(self, &mut target);
            // The model may predict too much: go back towards the point at which it was made.
            let mut found = None;
            for _ in 0..6 {
                let x = self.point(&target);
                let jet = enclosure.jet(basis, &x);
                // Near the maximum values no longer differ, but gradients do.
                let flatter = || self.largest_increase(&x, &jet.gradient, 0.0) < 0.5 * predicted;
                if jet.value > value + level || (jet.value >= value - level && flatter()) {
                    found = Some(AscentPoint { y: target, x, jet });
                    break;
                }
                target.iter_mut().zip(&ascent.y).for_each(|(to, from)| *to = 0.75 * from + 0.25 * *to);
            }
            match found {
                Some(higher) => *ascent = higher,
                None => return,
            }
        }
    }

    /// The quadratic model of the polynomial in the parameters y.
    fn model(&self, jet: &Jet) -> QuadraticModel {
        match self {
            NodeShape::Cube(n) => {
                QuadraticModel { n: *n, gradient: jet.gradient.clone(), hessian: jet.hessian.clone() }
            }
            NodeShape::Simplex(n, v) => {
                let n = *n;
                let edge = |i: usize| (0..n).map(move |j| v[(i + 1) * n + j] - v[j]);
                let gradient = (0..n).map(|i| edge(i).zip(&jet.gradient).map(|(e, g)| e * g).sum()).collect();
                let turned: Vec<Vec<f64>> = (0..n)
                    .map(|i| jet.hessian.chunks(n).map(|row| edge(i).zip(row).map(|(e, h)| e * h).sum()).collect())
                    .collect();
                let hessian = (0..n * n)
                    .map(|k| edge(k / n).zip(&turned[k % n]).map(|(e, t): (f64, &f64)| e * t).sum())
                    .collect();
                QuadraticModel { n, gradient, hessian }
            }
        }
    }
}

/// The quadratic function `gradient . p + p' hessian p / 2` of a displacement p of the parameters.
struct QuadraticModel {
    n: usize,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

impl QuadraticModel {
    /// Moves `y` to a maximum of the model over the shape.
    fn maximise(&mut self, shape: &NodeShape, y: &mut [f64]) {
        let negated = DMatrix::from_fn(self.n, self.n, |i, j| -self.hessian[i * self.n + j]);
        if let Some(factor) = Cholesky::new(negated) {
            let step = factor.solve(&DVector::from_column_slice(&self.gradient));
            let inside = match shape {
                NodeShape::Cube(_) => y.iter().zip(step.iter()).all(|(y, p)| (y + p).abs() <= 1.0),
                NodeShape::Simplex(..) => {
                    y.iter().zip(step.iter()).all(|(y, p)| y + p >= 0.0)
                        && y.iter().zip(step.iter()).map(|(y, p)| y + p).sum::<f64>() <= 1.0
                }
            };
            if inside {
                y.iter_mut().zip(step.iter()).for_each(|(y, p)| *y += p);
                return;
            }
        }
        let scale = self.gradient.iter().map(|g| g.abs()).fold(0.0, f64::max);
        for _ in 0..SWEEPS {
            let mut gain = 0.0;
            for i in 0..self.n {
                gain += match shape {
                    NodeShape::Cube(_) => self.line_maximise(y, i, None, -1.0 - y[i], 1.0 - y[i]),
                    NodeShape::Simplex(..) => {
                        let first = (1.0 - y.iter().sum::<f64>()).max(0.0);
                        let mut gain = self.line_maximise(y, i, None, -y[i], first);
                        for j in 0..i {
                            gain += self.line_maximise(y, i, Some(j), -y[i], y[j]);
                        }
                        gain
                    }
                };
            }
            if !(gain > 1e-15 * scale) {
                break;
            }
        }
    }

    /// Takes the best step in `[low, high]` along axis i, or along the difference of axes i and j, and returns what it
    /// gains.
    fn line_maximise(&mut self, y: &mut [f64], i: usize, j: Option<usize>, low: f64, high: f64) -> f64 {
        let n = self.n;
        let at = |h: &[f64], k: usize| h[k * n + i] - j.map_or(0.0, |j| h[k * n + j]);
        let gradient = self.gradient[i] - j.map_or(0.0, |j| self.gradient[j]);
        let curvature = at(&self.hessian, i) - j.map_or(0.0, |j| at(&self.hessian, j));
        let value = |step: f64| gradient * step + 0.5 * curvature * step * step;
        let step = match curvature < 0.0 {
            true => (-gradient / curvature).max(low).min(high),
            false if value(low) > value(high) => low,
            false => high,
        };
        if !(value(step) > 0.0) {
            return 0.0;
        }
        y[i] += step;
        if let Some(j) = j {
            y[j] -= step;
        }
        for k in 0..n {
            self.gradient[k] += step * at(&self.hessian, k);
        }
        value(step)
    }
}
