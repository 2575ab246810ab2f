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

/// An upper bound, and the part of it that is there for rounding: smaller nodes do not lower that.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub upper: f64,
    pub margin: f64,
}

impl Bound {
    fn new(upper: f64, margin: f64) -> Bound {
        Bound { upper: upper + margin, margin }
    }
}

impl View<'_> {
    /// Bound (1).
    pub fn linear(&self) -> Bound {
        let n = self.basis.dimension;
        let c = &self.series.coefficients;
        let slope: Vec<f64> = (0..n).map(|i| self.basis.linear(c, i)).collect();
        let reach = self.hull.rise(&vec![0.0; n], &slope, 0.0);
        let beyond: f64 = slope.iter().zip(self.half).map(|(c, half)| c.abs() * (SLACK / half + 8.0 * EPS)).sum();
        let rest: f64 = self.sizes.iter().skip(2).sum();
        let all: f64 = self.sizes.iter().sum();
        let rounding = (c.len() + 8) as f64 * EPS * all;
        let rest = rest * growth(self.half, self.sizes.len());
        Bound::new(c[0] + reach + rest, beyond + rounding + self.series.error)
    }

    /// Bound (2), if the Hessian is close enough to concave for it to be of use.
    pub fn concave(&self, summit: &Summit) -> Option<Bound> {
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
        let margin = beyond + bent + value + 3.0 * n as f64 * slope + self.series.error;
        Some(Bound::new(summit.jet.value + rise.max(0.0), margin))
    }

    /// The smallest of a few numbers `m >= 0` for which `m - Hessian` is certainly positive semi-definite on the box.
    fn bend(&self, growth: f64) -> Option<f64> {
        let n = self.basis.dimension;
        let c = &self.series.coefficients;
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

#[cfg(test)]
mod tests {
    use super::super::tests::noise;
    use super::*;
    use crate::moments::Exponents;

    /// A point of a hull, from numbers that look random.
    fn point(hull: &Hull, n: usize, seed: u64) -> Vec<f64> {
        let random = |k: usize| noise(seed + k as u64);
        match hull {
            Hull::Cube(_) => (0..n).map(|k| (3.0 * random(k) - 1.5).clamp(-1.0, 1.0)).collect(),
            Hull::Simplex(_, vertices) => {
                let shares: Vec<f64> = (0..=n).map(|k| (random(k) - 0.2).max(0.0) + 1e-9).collect();
                let sum: f64 = shares.iter().sum();
                let at = |j: usize| shares.iter().enumerate().map(|(k, s)| s * vertices[k * n + j]).sum::<f64>() / sum;
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
            let basis = Basis::new(&exponents);
            // From wild polynomials to those of small nodes near a maximum.
            let decay = 0.02 + 0.5 * noise(seed + 5000);
            let coefficient = |(k, a): (usize, &[u16])| {
                let size = decay.powi(i32::from(a.iter().sum::<u16>()));
                let value = size * (2.0 * noise(seed * 1000 + k as u64) - 1.0);
                if a.contains(&2) && seed % 2 == 0 { -value.abs() - 0.5 * size } else { value }
            };
            let coefficients = exponents.iter().enumerate().map(coefficient).collect();
            let series = Series { coefficients, error: 0.0 };
            let hull = match seed % 4 {
                0 | 1 => Hull::Cube(n),
                _ => Hull::Simplex(n, (0..n * (n + 1)).map(|k| 2.0 * noise(seed * 77 + k as u64) - 1.0).collect()),
            };
            let half = vec![0.01; n];
            let sizes = series.sizes(&basis);
            let view = View { basis: &basis, series: &series, sizes: &sizes, hull: &hull, half: &half };
            let linear = view.linear();
            let start = hull.start(&basis, &series);
            let mut summit = hull.start(&basis, &series);
            hull.climb(&basis, &series, &mut summit, 8, 0.0);
            assert!(summit.jet.value >= start.jet.value);
            let bounds = [Some(linear), view.concave(&start), view.concave(&summit)];
            let values = (0..500).map(|k| series.value(&basis, &point(&hull, n, seed * 100_000 + 10 * k)));
            let largest = values.fold(summit.jet.value, f64::max);
            for (which, bound) in bounds.iter().enumerate() {
                assert!(bound.is_none_or(|bound| largest <= bound.upper), "seed {seed}, bound {which}");
            }
            if let Some(bound) = bounds[2] {
                concave += 1;
                tight += usize::from(bound.upper - largest <= 1e-7 * sizes.iter().sum::<f64>());
            }
        }
        // Else the test would say little about the second bound.
        assert!(concave > 100 && tight > 100, "{concave} bounds of the second kind, {tight} of them tight");
    }

    #[test]
    fn no_curvature_is_above_its_bound() {
        let (mut seen, mut close) = (0, 0);
        for seed in 0..400u64 {
            let n = 1 + (seed % 3) as usize;
            let exponents = Exponents::tensor(&vec![3 + (seed % 2) as u16; n]).unwrap();
            let basis = Basis::new(&exponents);
            // Concave quadratic parts, and higher terms that all bend upwards at the corner (1, .., 1), where they do so most.
            let decay = 0.02 + 0.2 * noise(seed);
            let coefficient = |(k, a): (usize, &[u16])| {
                let size = decay.powi(i32::from(a.iter().sum::<u16>())) * (0.1 + noise(seed * 1000 + k as u64));
                if a.iter().sum::<u16>() == 2 && a.contains(&2) { -size } else { size }
            };
            let coefficients = exponents.iter().enumerate().map(coefficient).collect();
            let series = Series { coefficients, error: 0.0 };
            let (hull, half) = (Hull::Cube(n), vec![0.01; n]);
            let sizes = series.sizes(&basis);
            let view = View { basis: &basis, series: &series, sizes: &sizes, hull: &hull, half: &half };
            let Some(bend) = view.bend(1.0) else { continue };
            seen += 1;
            let mut largest = f64::NEG_INFINITY;
            for k in 0..40 {
                let x = if k == 0 { vec![1.0; n] } else { point(&hull, n, seed * 100_000 + 10 * k) };
                let hessian = series.jet(&basis, &x).hessian;
                for direction in 0..20 {
                    let d = point(&hull, n, seed * 7_000_000 + 100 * k + 5 * direction);
                    let square: f64 = d.iter().map(|d| d * d).sum();
                    let bent: f64 = (0..n * n).map(|k| d[k / n] * hessian[k] * d[k % n]).sum();
                    if square > 0.0 {
                        largest = largest.max(bent / square);
                    }
                }
            }
            assert!(largest <= bend, "seed {seed}: {largest} is above {bend}");
            close += usize::from(largest > 0.1 * bend && bend > 1e-12);
        }
        assert!(seen > 100 && close > 20, "{seen} bounds, {close} of them within a factor of ten");
    }
}
