//! Upper bounds of a polynomial on a node of the search.
//!
//! There are two, and both converge with the square of the width of the node or faster:
//!
//! ```text
//! (1)   max over vertices v of (c_0 + sum_i c_i v_i)  +  sum over |a| >= 2 of |c_a|
//! (2)   f(z) + max over vertices v of ( grad f(z) . (v - z) + m |v - z|^2 / 2 ),     Hessian of f <= m on the box
//! ```
//!
//! The first maximises a linear function over the shape, which is why it is good at the boundary of a constraint. The
//! second holds for any point z. Where f is concave, m = 0, and at its maximum over the node the second term vanishes
//! as well: the node needs no further cut. The Hessian is the constant one of the quadratic part plus what all higher
//! terms can add: a symmetric matrix with entries up to R_ij in magnitude is at most the diagonal matrix of the row
//! sums of R.
//!
//! Vertices are rounded to float64, so that nodes cover the region only up to [`SLACK`]. On a box wider by the fraction
//! s, T_k and all its derivatives grow by no more than `exp(k^2 s)`.

use super::chebyshev_basis::ChebyshevBasis;
use nalgebra::{Cholesky, DMatrix};

use super::ascent::{AscentPoint, NodeShape};
use super::enclosure::PolynomialEnclosure;

const EPS: f64 = f64::EPSILON;

/// Points of the region may lie outside all nodes by at most this much per axis, in local coordinates: 1e-14 from the
/// vertices of the mesh, and half an ulp from every bisection, of which there are at most [`MAX_DEPTH`].
const SLACK: f64 = 3e-14;

/// The largest number of bisections that lead to a node.
pub(super) const MAX_DEPTH: u32 = 160;

/// What the bounds of a node depend on.
pub(super) struct NodeBounds<'a> {
    pub basis: &'a ChebyshevBasis<'a>,
    pub enclosure: &'a PolynomialEnclosure,
    /// The sums of the magnitudes of coefficients, by total degree.
    pub sizes: &'a [f64],
    pub shape: &'a NodeShape,
    /// Half the widths of the box in local coordinates.
    pub half: &'a [f64],
}

/// The factor by which a term of a total degree may grow on a box that is wider by [`SLACK`].
pub(super) fn growth(half: &[f64], degree: usize) -> f64 {
    let narrow = half.iter().copied().fold(f64::INFINITY, f64::min);
    ((degree * degree) as f64 * SLACK / narrow).exp()
}

/// An upper bound, and the margin in it that is there for rounding, which smaller nodes do not lower.
#[derive(Clone, Copy)]
pub(super) struct UpperBound {
    pub upper: f64,
    pub margin: f64,
}

impl UpperBound {
    fn new(upper: f64, margin: f64) -> UpperBound {
        UpperBound { upper: upper + margin, margin }
    }
}

impl NodeBounds<'_> {
    /// UpperBound (1): the linear part is maximised, all other terms are bounded by their coefficients.
    pub fn linear(&self) -> UpperBound {
        let n = self.basis.dimension;
        let c = &self.enclosure.coefficients;
        let gradient: Vec<f64> = (0..n).map(|i| self.basis.linear(c, i)).collect();
        let linear = self.shape.largest_increase(&vec![0.0; n], &gradient, 0.0);
        let beyond: f64 = gradient.iter().zip(self.half).map(|(c, half)| c.abs() * (SLACK / half + 8.0 * EPS)).sum();
        let higher: f64 = self.sizes.iter().skip(2).sum();
        let all: f64 = self.sizes.iter().sum();
        let rounding = (c.len() + 8) as f64 * EPS * all;
        let higher = higher * growth(self.half, self.sizes.len());
        UpperBound::new(c[0] + linear + higher, beyond + rounding + self.enclosure.error)
    }

    /// UpperBound (2) at a point, if the polynomial is close enough to concave for the bound to be of use.
    pub fn concave(&self, ascent: &AscentPoint) -> Option<UpperBound> {
        let n = self.basis.dimension;
        let growth = growth(self.half, self.sizes.len());
        if !(growth <= 1.01) {
            return None;
        }
        let curvature = self.largest_curvature(growth)?;
        let (value, gradient) = self.enclosure.rounding(self.basis, self.sizes);
        // Each entry of the gradient may be off by `gradient`, over a distance of at most 2 (and the slack) per axis.
        let beyond: f64 = ascent.jet.gradient.iter().zip(self.half).map(|(g, half)| g.abs() * SLACK / half).sum();
        let increase = self.shape.largest_increase(&ascent.x, &ascent.jet.gradient, curvature) * (1.0 + 1e-14);
        let curved = curvature * n as f64 * (2.0 * (growth - 1.0) + 1e-13);
        let margin = beyond + curved + value + 3.0 * n as f64 * gradient + self.enclosure.error;
        Some(UpperBound::new(ascent.jet.value + increase.max(0.0), margin))
    }

    /// The smallest of a few numbers `m >= 0` for which `m - Hessian` is certainly positive semi-definite on the box.
    fn largest_curvature(&self, growth: f64) -> Option<f64> {
        let n = self.basis.dimension;
        let c = &self.enclosure.coefficients;
        let mut higher = vec![0.0; n];
        for (position, c) in c.iter().enumerate().skip(self.basis.up_to(2)) {
            higher.iter_mut().zip(self.basis.curvature(position)).for_each(|(sum, k)| *sum += c.abs() * k);
        }
        let entry = |k: usize| {
            let (i, j) = (k / n, k % n);
            let quadratic = self.basis.quadratic(c, i, j);
            if i == j { 4.0 * quadratic + higher[i] * growth * (1.0 + 1e-10) } else { quadratic }
        };
        let hessian: Vec<f64> = (0..n * n).map(entry).collect();
        let norm: f64 = hessian.iter().map(|h| h.abs()).sum();
        if !(norm > 0.0) {
            return (norm == 0.0).then_some(0.0);
        }
        // Fractions of smaller numbers underflow, so that they would prove nothing and shifts would not grow.
        if norm < 1e-280 {
            return None;
        }
        // Success of the Cholesky factorisation in float64 proves definiteness up to this fraction of the norm.
        let doubt = 1e-14 * n as f64 * norm;
        let mut shift = 0.0;
        loop {
            let shifted =
                DMatrix::from_fn(n, n, |i, j| if i == j { shift - hessian[i * n + j] } else { -hessian[i * n + j] });
            if Cholesky::new(shifted).is_some() {
                return Some(shift + doubt);
            }
            shift = (shift * 4.0).max(1e-9 * norm);
            if shift > norm {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;
    use crate::moments::Exponents;

    /// A point of a shape, from pseudorandom numbers.
    fn point(shape: &NodeShape, n: usize, seed: u64) -> Vec<f64> {
        let random = |k: usize| noise(seed + k as u64);
        match shape {
            NodeShape::Cube(_) => (0..n).map(|k| (3.0 * random(k) - 1.5).clamp(-1.0, 1.0)).collect(),
            NodeShape::Simplex(_, vertices) => {
                let weights: Vec<f64> = (0..=n).map(|k| (random(k) - 0.2).max(0.0) + 1e-9).collect();
                let sum: f64 = weights.iter().sum();
                let at = |j: usize| weights.iter().enumerate().map(|(k, s)| s * vertices[k * n + j]).sum::<f64>() / sum;
                (0..n).map(at).collect()
            }
        }
    }

    #[test]
    fn no_value_is_above_a_bound() {
        let (mut concave, mut tight) = (0, 0);
        for seed in 0..600u64 {
            let n = 1 + (seed % 3) as usize;
            let exponents = Exponents::total_degree(n, 2 + (seed % 5) as u16).unwrap();
            let basis = ChebyshevBasis::new(&exponents);
            // From wild polynomials to those of small nodes near a maximum.
            let decay = 0.02 + 0.5 * noise(seed + 5000);
            let coefficient = |(k, a): (usize, &[u16])| {
                let size = decay.powi(i32::from(a.iter().sum::<u16>()));
                let value = size * (2.0 * noise(seed * 1000 + k as u64) - 1.0);
                if a.contains(&2) && seed % 2 == 0 { -value.abs() - 0.5 * size } else { value }
            };
            let coefficients = exponents.iter().enumerate().map(coefficient).collect();
            let enclosure = PolynomialEnclosure { coefficients, error: 0.0 };
            let shape = match seed % 4 {
                0 | 1 => NodeShape::Cube(n),
                _ => NodeShape::Simplex(n, (0..n * (n + 1)).map(|k| 2.0 * noise(seed * 77 + k as u64) - 1.0).collect()),
            };
            let half = vec![0.01; n];
            let sizes = enclosure.sizes(&basis);
            let bounds = NodeBounds { basis: &basis, enclosure: &enclosure, sizes: &sizes, shape: &shape, half: &half };
            let linear = bounds.linear();
            let start = shape.start(&basis, &enclosure);
            let mut ascent = shape.start(&basis, &enclosure);
            shape.ascend(&basis, &enclosure, &mut ascent, 8, 0.0);
            assert!(ascent.jet.value >= start.jet.value);
            let uppers = [Some(linear), bounds.concave(&start), bounds.concave(&ascent)];
            let values = (0..500).map(|k| enclosure.value(&basis, &point(&shape, n, seed * 100_000 + 10 * k)));
            let largest = values.fold(ascent.jet.value, f64::max);
            for (which, bound) in uppers.iter().enumerate() {
                assert!(bound.is_none_or(|bound| largest <= bound.upper), "seed {seed}, bound {which}");
            }
            if let Some(bound) = uppers[2] {
                concave += 1;
                tight += usize::from(bound.upper - largest <= 1e-7 * sizes.iter().sum::<f64>());
            }
        }
        // Otherwise the test would say little about the second bound.
        assert!(concave > 100 && tight > 100, "{concave} bounds of the second kind, {tight} of them tight");
    }

    #[test]
    fn no_curvature_is_above_its_bound() {
        let (mut seen, mut close) = (0, 0);
        for seed in 0..400u64 {
            let n = 1 + (seed % 3) as usize;
            let exponents = Exponents::tensor(&vec![3 + (seed % 2) as u16; n]).unwrap();
            let basis = ChebyshevBasis::new(&exponents);
            // Concave quadratic parts, and higher terms that are all convex at the corner (1, .., 1), where their
            // curvature is largest.
            let decay = 0.02 + 0.2 * noise(seed);
            let coefficient = |(k, a): (usize, &[u16])| {
                let size = decay.powi(i32::from(a.iter().sum::<u16>())) * (0.1 + noise(seed * 1000 + k as u64));
                if a.iter().sum::<u16>() == 2 && a.contains(&2) { -size } else { size }
            };
            let coefficients = exponents.iter().enumerate().map(coefficient).collect();
            let enclosure = PolynomialEnclosure { coefficients, error: 0.0 };
            let (shape, half) = (NodeShape::Cube(n), vec![0.01; n]);
            let sizes = enclosure.sizes(&basis);
            let bounds = NodeBounds { basis: &basis, enclosure: &enclosure, sizes: &sizes, shape: &shape, half: &half };
            let Some(bound) = bounds.largest_curvature(1.0) else { continue };
            seen += 1;
            let mut largest = f64::NEG_INFINITY;
            for k in 0..40 {
                let x = if k == 0 { vec![1.0; n] } else { point(&shape, n, seed * 100_000 + 10 * k) };
                let hessian = enclosure.jet(&basis, &x).hessian;
                for direction in 0..20 {
                    let d = point(&shape, n, seed * 7_000_000 + 100 * k + 5 * direction);
                    let square: f64 = d.iter().map(|d| d * d).sum();
                    let along: f64 = (0..n * n).map(|k| d[k / n] * hessian[k] * d[k % n]).sum();
                    if square > 0.0 {
                        largest = largest.max(along / square);
                    }
                }
            }
            assert!(largest <= bound, "seed {seed}: {largest} is above {bound}");
            close += usize::from(largest > 0.1 * bound && bound > 1e-12);
        }
        assert!(seen > 100 && close > 20, "{seen} bounds, {close} of them within a factor of ten");
    }
}
