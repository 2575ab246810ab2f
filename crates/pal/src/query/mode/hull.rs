//! The shape of a node in coordinates of the box around it, and climbing inside it.
//!
//! A simplex is run through by the shares of its vertices, `x = v_0 + sum_i y_i (v_i - v_0)`, a box by `y = x`. Newton's method climbs
//! in `y`: each step maximises the quadratic model over the shape, so that it ends inside or at a face where the
//! gradient points outwards.

use super::basis::Basis;
use super::series::{Jet, Series};

/// Sweeps of the coordinate ascent that maximises a quadratic; each is a few dozen operations.
const SWEEPS: usize = 60;

/// A convex shape in [-1, 1]^n.
pub(super) enum Hull {
    /// All of it.
    Cube(usize),
    /// The vertices, n coordinates each.
    Simplex(usize, Vec<f64>),
}

/// A point of a hull, and the polynomial there.
pub(super) struct Summit {
    y: Vec<f64>,
    pub x: Vec<f64>,
    pub jet: Jet,
}

impl Hull {
    /// The parameters of the centre.
    fn centre(&self) -> Vec<f64> {
        match self {
            Hull::Cube(n) => vec![0.0; *n],
            Hull::Simplex(n, _) => vec![1.0 / (n + 1) as f64; *n],
        }
    }

    /// The parameters of the vertex that is farthest in a direction.
    fn farthest(&self, direction: &[f64]) -> Vec<f64> {
        match self {
            Hull::Cube(_) => direction.iter().map(|g| if *g < 0.0 { -1.0 } else { 1.0 }).collect(),
            Hull::Simplex(n, vertices) => {
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

    fn point(&self, y: &[f64]) -> Vec<f64> {
        match self {
            Hull::Cube(_) => y.to_vec(),
            Hull::Simplex(n, vertices) => {
                // All shares at once, so that a vertex is met exactly.
                let first = 1.0 - y.iter().sum::<f64>();
                let shares = std::iter::once(&first).chain(y);
                let mut x = vec![0.0; *n];
                for (share, v) in shares.zip(vertices.chunks(*n)) {
                    x.iter_mut().zip(v).for_each(|(x, v)| *x += share * v);
                }
                x
            }
        }
    }

    /// The largest value over the shape of `gradient . (v - x) + bend |v - x|^2 / 2`, which is convex: it is taken at a vertex.
    pub fn rise(&self, x: &[f64], gradient: &[f64], bend: f64) -> f64 {
        let along = |g: f64, step: f64| g * step + 0.5 * bend * step * step;
        match self {
            Hull::Cube(_) => {
                x.iter().zip(gradient).map(|(x, g)| along(*g, 1.0 - x).max(along(*g, -1.0 - x))).sum::<f64>()
            }
            Hull::Simplex(n, vertices) => {
                let rise = |v: &[f64]| v.iter().zip(x).zip(gradient).map(|((v, x), g)| along(*g, v - x)).sum::<f64>();
                vertices.chunks(*n).map(rise).fold(f64::NEG_INFINITY, f64::max)
            }
        }
    }

    /// The better of the centre and of the vertex where the linear part is largest.
    pub fn start(&self, basis: &Basis, series: &Series) -> Summit {
        let slope: Vec<f64> = (0..basis.dimension).map(|i| basis.linear(&series.coefficients, i)).collect();
        let [centre, corner] = [self.centre(), self.farthest(&slope)].map(|y| (self.point(&y), y));
        let [low, high] = [&centre, &corner].map(|(x, _)| series.value(basis, x));
        let (x, y) = if high > low { corner } else { centre };
        let jet = series.jet(basis, &x);
        Summit { y, x, jet }
    }

    /// Climbs from a point for some steps, or until the linear model promises no more than `tolerance`.
    pub fn climb(&self, basis: &Basis, series: &Series, summit: &mut Summit, steps: usize, tolerance: f64) {
        for _ in 0..steps {
            let promise = self.rise(&summit.x, &summit.jet.gradient, 0.0);
            if promise <= tolerance {
                return;
            }
            let (value, level) = (summit.jet.value, 8.0 * f64::EPSILON * summit.jet.value.abs());
            let mut model = self.model(&summit.jet);
            let mut target = summit.y.clone();
            model.maximise(self, &mut target);
            // The model may promise too much: go back towards where it was made.
            let mut found = None;
            for _ in 0..6 {
                let x = self.point(&target);
                let jet = series.jet(basis, &x);
                // At the top values no longer differ; gradients do.
                let flatter = || self.rise(&x, &jet.gradient, 0.0) < 0.5 * promise;
                if jet.value > value + level || (jet.value >= value - level && flatter()) {
                    found = Some(Summit { y: target, x, jet });
                    break;
                }
                target.iter_mut().zip(&summit.y).for_each(|(to, from)| *to = 0.75 * from + 0.25 * *to);
            }
            match found {
                Some(higher) => *summit = higher,
                None => return,
            }
        }
    }

    /// The quadratic model in the parameters.
    fn model(&self, jet: &Jet) -> Model {
        match self {
            Hull::Cube(n) => Model { n: *n, gradient: jet.gradient.clone(), hessian: jet.hessian.clone() },
            Hull::Simplex(n, v) => {
                let n = *n;
                let edge = |i: usize| (0..n).map(move |j| v[(i + 1) * n + j] - v[j]);
                let gradient = (0..n).map(|i| edge(i).zip(&jet.gradient).map(|(e, g)| e * g).sum()).collect();
                let turned: Vec<Vec<f64>> = (0..n)
                    .map(|i| jet.hessian.chunks(n).map(|row| edge(i).zip(row).map(|(e, h)| e * h).sum()).collect())
                    .collect();
                let hessian = (0..n * n)
                    .map(|k| edge(k / n).zip(&turned[k % n]).map(|(e, t): (f64, &f64)| e * t).sum())
                    .collect();
                Model { n, gradient, hessian }
            }
        }
    }
}

/// `gradient . p + p' hessian p / 2` for a displacement p of the parameters.
struct Model {
    n: usize,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

impl Model {
    /// Moves `y` to a maximum of the model over the shape.
    fn maximise(&mut self, hull: &Hull, y: &mut [f64]) {
        let negated: Vec<f64> = self.hessian.iter().map(|h| -h).collect();
        if let Some(step) = solve(self.n, &negated, &self.gradient) {
            let inside = match hull {
                Hull::Cube(_) => y.iter().zip(&step).all(|(y, p)| (y + p).abs() <= 1.0),
                Hull::Simplex(..) => {
                    y.iter().zip(&step).all(|(y, p)| y + p >= 0.0)
                        && y.iter().zip(&step).map(|(y, p)| y + p).sum::<f64>() <= 1.0
                }
            };
            if inside {
                y.iter_mut().zip(step).for_each(|(y, p)| *y += p);
                return;
            }
        }
        let scale = self.gradient.iter().map(|g| g.abs()).fold(0.0, f64::max);
        for _ in 0..SWEEPS {
            let mut gain = 0.0;
            for i in 0..self.n {
                gain += match hull {
                    Hull::Cube(_) => self.along(y, i, None, -1.0 - y[i], 1.0 - y[i]),
                    Hull::Simplex(..) => {
                        let first = (1.0 - y.iter().sum::<f64>()).max(0.0);
                        let mut gain = self.along(y, i, None, -y[i], first);
                        for j in 0..i {
                            gain += self.along(y, i, Some(j), -y[i], y[j]);
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

    /// The best step in `[low, high]` along axis i, or along the difference of axes i and j; returns what it gains.
    fn along(&mut self, y: &mut [f64], i: usize, j: Option<usize>, low: f64, high: f64) -> f64 {
        let n = self.n;
        let at = |h: &[f64], k: usize| h[k * n + i] - j.map_or(0.0, |j| h[k * n + j]);
        let slope = self.gradient[i] - j.map_or(0.0, |j| self.gradient[j]);
        let bend = at(&self.hessian, i) - j.map_or(0.0, |j| at(&self.hessian, j));
        let value = |step: f64| slope * step + 0.5 * bend * step * step;
        let step = match bend < 0.0 {
            true => (-slope / bend).max(low).min(high),
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

/// The Cholesky factor of a symmetric matrix, row by row; `None` unless it is positive definite.
pub(super) fn cholesky(n: usize, matrix: &[f64]) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = matrix[i * n + j] - dot;
            l[i * n + j] = match i == j {
                true if rest > 0.0 => rest.sqrt(),
                true => return None,
                false => rest / l[j * n + j],
            };
        }
    }
    Some(l)
}

/// The solution of `matrix p = right`.
fn solve(n: usize, matrix: &[f64], right: &[f64]) -> Option<Vec<f64>> {
    let l = cholesky(n, matrix)?;
    let mut p = right.to_vec();
    for i in 0..n {
        let dot: f64 = (0..i).map(|k| l[i * n + k] * p[k]).sum();
        p[i] = (p[i] - dot) / l[i * n + i];
    }
    for i in (0..n).rev() {
        let dot: f64 = (i + 1..n).map(|k| l[k * n + i] * p[k]).sum();
        p[i] = (p[i] - dot) / l[i * n + i];
    }
    Some(p)
}
