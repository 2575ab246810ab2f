//! An integrator that is independent of the one in the library: Gauss-Legendre rules on the boxes and triangulated
//! cells of a region, exact for piecewise polynomials.

use pal::density::Density;
use pal::formula::Constraint;
use pal::number::{Rational, to_f64};
use pal::region::Region;

/// A cubature rule over a region: nodes and weights.
pub struct Cubature {
    pub dimension: usize,
    /// The nodes, row by row.
    pub points: Vec<f64>,
    pub weights: Vec<f64>,
}

/// The nodes and weights of the Gauss-Legendre rule on [0, 1], by Newton's method.
pub fn gauss(count: usize) -> Vec<(f64, f64)> {
    let legendre = |x: f64| {
        let (mut before, mut here) = (1.0, x);
        for k in 1..count {
            (before, here) = (here, ((2 * k + 1) as f64 * x * here - k as f64 * before) / (k + 1) as f64);
        }
        (here, count as f64 * (x * here - before) / (x * x - 1.0))
    };
    let node = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (count as f64 + 0.5)).cos();
        for _ in 0..20 {
            let (value, slope) = legendre(x);
            x -= value / slope;
        }
        let slope = legendre(x).1;
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    if count == 1 { vec![(0.5, 1.0)] } else { (0..count).map(node).collect() }
}

/// The product of rules on [0, 1]: points of the unit cube with the products of their weights.
fn product(axes: &[Vec<(f64, f64)>]) -> Vec<(Vec<f64>, f64)> {
    axes.iter().fold(vec![(Vec::new(), 1.0)], |points, axis| {
        let extend = |(point, weight): &(Vec<f64>, f64)| {
            let longer = axis.iter().map(|(x, w)| ([&point[..], &[*x]].concat(), weight * w));
            longer.collect::<Vec<_>>()
        };
        points.iter().flat_map(extend).collect()
    })
}

impl Cubature {
    /// A rule that is exact for polynomials between the knots, of a total degree and a degree in each variable.
    pub fn new(constraint: &Constraint, knots: &[Vec<Rational>], (total, axis): (usize, usize)) -> Cubature {
        let n = constraint.reals.len();
        let inner: Vec<Vec<Rational>> = knots.iter().map(|list| list[1..list.len() - 1].to_vec()).collect();
        let cells = Region::new(constraint).unwrap().with_knots(&inner).unwrap().decompose().unwrap();
        let on_box = product(&vec![gauss(axis / 2 + 1); n]);
        let collapsed: Vec<_> = (0..n).map(|k| gauss((total + n - 1 - k) / 2 + 1)).collect();
        let on_simplex = product(&collapsed);
        let mut rule = Cubature { dimension: n, points: Vec::new(), weights: Vec::new() };
        for cell in &cells {
            let polytope = cell.polytope();
            let vertices = polytope.exact_vertices();
            if let Some((low, sides)) = cuboid(&vertices) {
                for (s, weight) in &on_box {
                    let offset = |j: usize| s[j] * sides[j];
                    rule.push(&low, offset, weight * sides.iter().product::<f64>());
                }
                continue;
            }
            for simplex in polytope.triangulate() {
                let first = &vertices[simplex[0]];
                let edges = simplex[1..].iter().map(|v| difference(&vertices[*v], first));
                let edges: Vec<Vec<f64>> = edges.collect();
                let size = determinant(edges.clone()).abs();
                for (s, weight) in &on_simplex {
                    // s -> barycentric coordinates s_1 .. s_k (1 - s_(k+1)); the Jacobian is the product of the s_k^(n
                    // - k).
                    let (mut share, mut jacobian, mut barycentric) = (1.0, 1.0, Vec::new());
                    for (k, s) in s.iter().enumerate() {
                        barycentric.push(share * (1.0 - s));
                        share *= s;
                        jacobian *= s.powi((n - 1 - k) as i32);
                    }
                    barycentric.push(share);
                    let offset = |j: usize| barycentric[1..].iter().zip(&edges).map(|(b, edge)| b * edge[j]).sum();
                    rule.push(first, offset, weight * jacobian * size);
                }
            }
        }
        rule
    }

    fn push(&mut self, base: &[Rational], offset: impl Fn(usize) -> f64, weight: f64) {
        self.points.extend(base.iter().enumerate().map(|(j, b)| to_f64(b) + offset(j)));
        self.weights.push(weight);
    }

    /// The weight of every node times the density there.
    pub fn masses(&self, density: &Density) -> Vec<f64> {
        let logs = density.log_prob(&self.points);
        logs.iter().zip(&self.weights).map(|(log, weight)| weight * log.exp()).collect()
    }

    /// The integral of a density over the region.
    pub fn mass(&self, density: &Density) -> f64 {
        self.masses(density).iter().sum()
    }

    /// The integral of a density times functions of the point.
    pub fn expectation<const N: usize>(&self, density: &Density, f: impl Fn(&[f64]) -> [f64; N]) -> [f64; N] {
        let mut sums = [0.0; N];
        for (point, mass) in self.points.chunks(self.dimension).zip(self.masses(density)) {
            sums.iter_mut().zip(f(point)).for_each(|(sum, value)| *sum += mass * value);
        }
        sums
    }
}

fn difference(a: &[Rational], b: &[Rational]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| to_f64(&(a - b))).collect()
}

/// The lowest corner and the sides, if the points are the corners of a box along the axes.
fn cuboid(vertices: &[Vec<Rational>]) -> Option<(Vec<Rational>, Vec<f64>)> {
    let n = vertices[0].len();
    let corner = |pick: fn(Rational, Rational) -> Rational| -> Vec<Rational> {
        (0..n).map(|j| vertices.iter().map(|v| v[j].clone()).reduce(pick).unwrap()).collect()
    };
    let (low, high) = (corner(std::cmp::min), corner(std::cmp::max));
    let at_ends = |v: &Vec<Rational>| (0..n).all(|j| v[j] == low[j] || v[j] == high[j]);
    let sides = difference(&high, &low);
    (vertices.len() == 1 << n && vertices.iter().all(at_ends)).then_some((low, sides))
}

/// The determinant, by Gaussian elimination with pivoting.
fn determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let n = rows.len();
    let mut product = 1.0;
    for k in 0..n {
        let best = (k..n).max_by(|i, j| rows[*i][k].abs().total_cmp(&rows[*j][k].abs())).unwrap();
        rows.swap(k, best);
        let pivot = rows[k].clone();
        product *= pivot[k];
        for row in rows.iter_mut().skip(k + 1) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
    product
}
