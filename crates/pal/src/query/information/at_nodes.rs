//! One of the densities in an integrand: its values at nodes, and what their derivatives add up to.

use std::sync::Arc;

use crate::density::gradient::Cotangents;
use crate::density::lanes::{LaneWork, Simd, dispatch};
use crate::density::mesh::Mesh;
use crate::density::weights::log_sum_exp;
use crate::density::{BinIndex, Differentiable, Family, Grid, Real, Row};

/// Nodes of one element: their bin, their local coordinates, the first ones of all nodes first.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'n> {
    pub bin: &'n [BinIndex],
    pub points: &'n [f64],
    pub count: usize,
}

/// One density, relative to the volume of its box.
pub(super) struct DensityAtNodes<'f> {
    family: &'f Family,
    row: &'f Row,
    functions: Arc<dyn Differentiable>,
    weights: Vec<f64>,
    /// The grid that nodes are given on, if it is not that of the density: they have to be located.
    from: Option<&'f Grid>,
}

impl<'f> DensityAtNodes<'f> {
    /// A density whose nodes come from a mesh, or from its own.
    pub fn new(family: &'f Family, row: &'f Row, mesh: Option<&'f Mesh>) -> DensityAtNodes<'f> {
        let own = family.support().grid();
        let from = mesh.map(|mesh| &*mesh.grid).filter(|grid| !same_edges(grid, own));
        DensityAtNodes { family, row, functions: family.kind().functions(&row.expansion), weights: row.weights(), from }
    }

    pub fn cotangents(&self) -> Cotangents {
        Cotangents::new(self.row, self.family.kind())
    }

    /// Computes the density at nodes.
    pub fn values(&self, nodes: Nodes<'_>, out: &mut Vec<f64>) {
        out.clear();
        out.resize(nodes.count, 0.0);
        if self.from.is_some() {
            let mut values = vec![0.0; self.weights.len()];
            for (i, out) in out.iter_mut().enumerate() {
                let (bin, t) = self.locate(nodes, i);
                self.functions.values(&bin, &t, &mut values);
                *out = values.iter().zip(&self.weights).map(|(q, w)| w * q).sum();
            }
            return;
        }
        self.functions.mixture_at_points(&self.weights, nodes.bin, nodes.points, out);
    }

    /// The logarithm of the density at one node where its value has no logarithm: products of small numbers may have
    /// underflowed, sums of their logarithms do not.
    pub fn log(&self, nodes: Nodes<'_>, node: usize) -> f64 {
        let (bin, t) = self.locate(nodes, node);
        let logs = self.row.log_weights.iter().enumerate().map(|(c, w)| match *w {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            w => w + self.functions.log_value(c, &bin, &t),
        });
        log_sum_exp(logs)
    }

    /// Adds the derivative of `sum_i factors_i density(node_i)`.
    pub fn add_gradient(&self, nodes: Nodes<'_>, factors: &[f64], sums: &mut Cotangents) {
        if self.from.is_some() {
            let mut values = vec![0.0; self.weights.len()];
            for (i, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
                let (bin, t) = self.locate(nodes, i);
                self.functions.values(&bin, &t, &mut values);
                let scaled: Vec<f64> = self.weights.iter().map(|weight| factor * weight).collect();
                let terms = values.iter().zip(&scaled).map(|(q, w)| q * w);
                sums.weights.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                self.functions.add_gradient(&bin, &t, &scaled, &mut sums.coefficients);
            }
            return;
        }
        let Cotangents { weights: of_weights, coefficients, .. } = sums;
        let (bin, points) = (nodes.bin, nodes.points);
        self.functions.add_gradient_at_points(bin, points, factors, &self.weights, of_weights, coefficients);
    }

    /// Bin and local coordinates of a node on the grid of the density.
    fn locate(&self, nodes: Nodes<'_>, node: usize) -> (Vec<BinIndex>, Vec<f64>) {
        let n = nodes.bin.len();
        let t: Vec<f64> = (0..n).map(|j| nodes.points[j * nodes.count + node]).collect();
        let Some(from) = self.from else { return (nodes.bin.to_vec(), t) };
        let (mut point, mut bin, mut local) = (vec![0.0; n], vec![BinIndex::default(); n], vec![0.0; n]);
        from.point_at(nodes.bin, &t, &mut point);
        self.family.support().grid().locate(&point, &mut bin, &mut local);
        // Nodes are inside of the support; rounding may have put one outside of the box.
        local.iter_mut().for_each(|t| *t = t.clamp(0.0, 1.0));
        (bin, local)
    }
}

/// Computes the logarithms of densities; minus infinity for those that are 0 or have lost digits by underflow.
pub(super) fn logarithms(values: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.resize(values.len(), 0.0);
    dispatch(Logarithms { values, out });
}

struct Logarithms<'l> {
    values: &'l [f64],
    out: &'l mut [f64],
}

impl LaneWork for Logarithms<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (out, value) in self.out.iter_mut().zip(self.values) {
            let regular = *value >= f64::MIN_POSITIVE;
            let log = (if regular { *value } else { 1.0 }).ln_of_normal();
            *out = if regular { log } else { f64::NEG_INFINITY };
        }
    }
}

fn same_edges(a: &Grid, b: &Grid) -> bool {
    std::ptr::eq(a, b) || a.axes().iter().zip(b.axes()).all(|(a, b)| a.edges() == b.edges())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_standard_library() {
        let values: Vec<f64> = (-2000..2000).map(|k| 1.37f64.powi(k / 2) * (1.0 + f64::from(k % 7) * 0.013)).collect();
        let mut logs = Vec::new();
        logarithms(&values, &mut logs);
        for (value, log) in values.iter().zip(&logs).filter(|(value, _)| value.is_normal()) {
            assert!((log - value.ln()).abs() <= 4e-16 * (1.0 + log.abs()), "{value:e}");
        }
        logarithms(&[0.0, 1.0, -1.0, 1e-310], &mut logs);
        assert_eq!(logs, [f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY, f64::NEG_INFINITY]);
    }
}
