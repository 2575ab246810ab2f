//! Upper bounds of a polynomial on a node.
//!
//! Two are known, and both converge with the square of the width or faster:
//!
//! ```text
//! (1)   max over vertices v of (c_0 + sum_i c_i v_i)  +  sum over |a| >= 2 of |c_a|
//! (2)   f(z) + max over vertices v of ( grad f(z) . (v - z) + m |v - z|^2 / 2 ),     Hessian of f <= m on the box
//! ```
//!
//! The first sees the shape through a linear function, which is why it is good at the boundary of a constraint. The second holds for any
//! point z. Where f is concave, m = 0, and at its maximum over the node the second term vanishes as well: the node needs no further cut.
//! The Hessian is that of the quadratic part, constant, plus what all higher terms can add: a symmetric matrix with entries up
//! to R_ij lies below the diagonal matrix of the row sums of R.
//!
//! Vertices are doubles, so that nodes cover the region up to [`SLACK`] only. On a box wider by the fraction s, T_k and all its derivatives
//! grow by no more than `exp(k^2 s)`.

use super::basis::Basis;
use super::hull::{Hull, Summit, cholesky};
use super::series::Series;

const EPS: f64 = f64::EPSILON;

/// Points of the region may be outside all nodes by so much per axis, in local coordinates: 1e-14 from the vertices of the mesh, and half an
/// ulp from every bisection, of which there are at most [`MAX_DEPTH`].
const SLACK: f64 = 3e-14;

/// Nodes are not cut more often than this.
pub(super) const MAX_DEPTH: u32 = 160;

/// A node as its bounds see it.
pub(super) struct View<'a> {
    pub basis: &'a Basis<'a>,
    pub series: &'a Series,
    pub sizes: &'a [f64],
    pub hull: &'a Hull,
    /// Half widths of the box in local coordinates.
    pub half: &'a [f64],
}

/// How much T_a may be larger on a box that is wider by [`SLACK`].
pub(super) fn growth(half: &[f64], degree: usize) -> f64 {
    let narrow = half.iter().copied().fold(f64::INFINITY, f64::min);
    ((degree * degree) as f64 * SLACK / narrow).exp()
}

impl View<'_> {
    /// Bound (1).
    pub fn linear(&self) -> f64 {
        let n = self.basis.dimension;
        let c = &self.series.coefficients;
        let slope: Vec<f64> = (0..n).map(|i| self.basis.linear(c, i)).collect();
        let reach = self.hull.rise(&vec![0.0; n], &slope, 0.0);
        let beyond: f64 = slope.iter().zip(self.half).map(|(c, half)| c.abs() * (SLACK / half + 8.0 * EPS)).sum();
        let rest: f64 = self.sizes.iter().skip(2).sum();
        let all: f64 = self.sizes.iter().sum();
        let rounding = (c.len() + 8) as f64 * EPS * all;
        c[0] + reach + beyond + rest * growth(self.half, self.sizes.len()) + rounding + self.series.error
    }

    /// Bound (2), if the Hessian is close enough to concave for it to be of use.
    pub fn concave(&self, summit: &Summit) -> Option<f64> {
        let n = self.basis.dimension;
        let growth = growth(self.half, self.sizes.len());
        if !(growth <= 1.01) {
            return None;
        }
        let bend = self.bend(growth)?;
        let (value, slope) = self.series.rounding(self.basis, self.sizes);
        // A gradient that is off by `slope` per entry, over a distance of at most 2 (and the slack) per axis.
        let beyond: f64 = summit.jet.gradient.iter().zip(self.half).map(|(g, half)| g.abs() * SLACK / half).sum();
        let rise = self.hull.rise(&summit.x, &summit.jet.gradient, bend) * (1.0 + 1e-14);
        let bent = bend * n as f64 * (2.0 * (growth - 1.0) + 1e-13);
        Some(summit.jet.value + rise.max(0.0) + beyond + bent + value + 3.0 * n as f64 * slope + self.series.error)
    }

    /// The smallest of a few numbers `m >= 0` for which `m - Hessian` is certainly positive semi-definite on the box.
    fn bend(&self, growth: f64) -> Option<f64> {
        let n = self.basis.dimension;
        let c = &self.series.coefficients;
        let mut higher = vec![0.0; n];
        for position in self.basis.up_to(2).min(c.len())..c.len() {
            let size = c[position].abs();
            higher.iter_mut().zip(self.basis.curvature(position)).for_each(|(sum, k)| *sum += size * k);
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
        // Success of the factorisation in doubles proves as much up to this share of the norm.
        let doubt = 1e-14 * n as f64 * norm;
        let mut bend = 0.0;
        loop {
            let shifted = hessian.iter().enumerate().map(|(k, h)| if k / n == k % n { bend - h } else { -h });
            if cholesky(n, &shifted.collect::<Vec<_>>()).is_some() {
                return Some(bend + doubt);
            }
            bend = (bend * 4.0).max(1e-9 * norm);
            if bend > norm {
                return None;
            }
        }
    }
}
