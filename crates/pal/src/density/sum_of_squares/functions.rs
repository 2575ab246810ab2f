//! The components of one sum of squares as functions.

use std::sync::{Arc, OnceLock};

use nalgebra::DVectorView;

use super::Tensors;
use super::local::Tables;
use crate::density::chebyshev;
use crate::density::functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
use crate::density::grid::BinIndex;
use crate::density::lanes::{LANES, LaneWork, Lanes, Simd, dispatch};
use crate::density::mesh::Degree;
use crate::moments::Exponents;

/// Exponents grouped by all but the last variable: along the last one a polynomial is a short sum of products.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    dimension: usize,
    /// One more than the degree.
    top: usize,
    /// Where each group starts, and the end of the last one.
    starts: Vec<usize>,
    /// For each group the exponents of all variables but the last.
    prefixes: Vec<u16>,
    /// For each position in this layout the position in the exponents.
    order: Vec<usize>,
}

impl Layout {
    pub fn new(exponents: &Exponents) -> Layout {
        let n = exponents.dimension();
        let mut order: Vec<usize> = (0..exponents.len()).collect();
        order.sort_by(|a, b| exponents.get(*a).cmp(exponents.get(*b)));
        let mut layout = Layout { dimension: n, top: exponents.degree() + 1, starts: vec![], prefixes: vec![], order };
        for (place, at) in layout.order.iter().enumerate() {
            let alpha = exponents.get(*at);
            // Within a group the last exponent counts up from 0, since the set is closed downwards.
            if alpha[n - 1] == 0 {
                layout.starts.push(place);
                layout.prefixes.extend(&alpha[..n - 1]);
            }
        }
        layout.starts.push(layout.order.len());
        layout
    }

    /// The number of polynomials that [`Layout::tables`] computes.
    pub fn tables_len(&self) -> usize {
        self.top * self.dimension
    }

    /// For each position in this layout the position in the exponents.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Computes the Chebyshev polynomials along every axis at a point.
    pub fn tables(&self, t: &[f64], tables: &mut [f64]) {
        for (row, t) in tables.chunks_mut(self.top).zip(t) {
            chebyshev::values(2.0 * t - 1.0, row);
        }
    }

    /// Adds all Chebyshev products, times a weight, in the order of this layout.
    pub fn add_products(&self, tables: &[f64], weight: f64, out: &mut [f64]) {
        let n = self.dimension;
        let last = &tables[(n - 1) * self.top..];
        for (group, range) in self.starts.windows(2).enumerate() {
            let prefix = &self.prefixes[group * (n - 1)..(group + 1) * (n - 1)];
            let factors = prefix.iter().enumerate().map(|(j, a)| tables[j * self.top + usize::from(*a)]);
            let factor = factors.fold(weight, |product, factor| product * factor);
            out[range[0]..range[1]].iter_mut().zip(last).for_each(|(out, t)| *out += factor * t);
        }
    }

    fn value(&self, coefficients: &[f64], tables: &[f64]) -> f64 {
        let n = self.dimension;
        let last = &tables[(n - 1) * self.top..];
        let mut sum = 0.0;
        for (group, range) in self.starts.windows(2).enumerate() {
            let prefix = &self.prefixes[group * (n - 1)..(group + 1) * (n - 1)];
            let factor: f64 = prefix.iter().enumerate().map(|(j, a)| tables[j * self.top + usize::from(*a)]).product();
            let part: f64 = coefficients[range[0]..range[1]].iter().zip(last).map(|(c, t)| c * t).sum();
            sum += factor * part;
        }
        sum
    }
}

/// The squares of a polynomial at many points.
struct SquaresAtPoints<'p> {
    layout: &'p Layout,
    coefficients: &'p [f64],
    points: &'p [f64],
    out: &'p mut [f64],
}

impl LaneWork for SquaresAtPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let SquaresAtPoints { layout, coefficients, points, out } = self;
        let (n, top, count) = (layout.dimension, layout.top, out.len());
        let mut tables = vec![Lanes::splat(1.0); layout.tables_len()];
        for start in (0..count).step_by(LANES) {
            let filled = LANES.min(count - start);
            for (j, table) in tables.chunks_exact_mut(top).enumerate() {
                let mut x = Lanes::zero();
                x.0.iter_mut().zip(&points[j * count + start..][..filled]).for_each(|(x, t)| *x = 2.0 * t - 1.0);
                for k in 1..top {
                    let (below, here) = table.split_at_mut(k);
                    here[0] = x;
                    if k > 1 {
                        for (lane, value) in here[0].0.iter_mut().enumerate() {
                            *value = 2.0 * x.0[lane] * below[k - 1].0[lane] - below[k - 2].0[lane];
                        }
                    }
                }
            }
            let last = &tables[(n - 1) * top..];
            let mut sum = Lanes::zero();
            for (group, range) in layout.starts.windows(2).enumerate() {
                let mut part = Lanes::zero();
                for (c, t) in coefficients[range[0]..range[1]].iter().zip(last) {
                    part.add_times(*t, *c);
                }
                let prefix = &layout.prefixes[group * (n - 1)..(group + 1) * (n - 1)];
                for (j, a) in prefix.iter().enumerate().filter(|(_, a)| **a > 0) {
                    part = part * tables[j * top + usize::from(*a)];
                }
                sum += part;
            }
            out[start..start + filled].iter_mut().zip(sum.0).for_each(|(out, root)| *out = root * root);
        }
    }
}

/// Squares of polynomials that are given by coefficients in the basis.
pub(super) struct SquaredFunctions {
    pub tensors: Arc<Tensors>,
    /// Coefficients in the basis, component by component.
    pub coefficients: Vec<f64>,
    pub components: usize,
    /// For each slot the coefficients in Chebyshev products, in the order of the layout, component by component;
    /// computed when first needed.
    pub local: Vec<OnceLock<Vec<f64>>>,
}

/// The largest table that is kept on the stack, so that evaluating a point does not allocate.
const SMALL: usize = 256;

impl SquaredFunctions {
    /// Chebyshev coefficients of a component on a bin, in the order of the exponents.
    fn plain(&self, slot: usize, component: usize) -> Vec<f64> {
        let size = self.tensors.size();
        let u = &self.coefficients[component * size..(component + 1) * size];
        let product = &self.tensors.functions[slot] * DVectorView::from_slice(u, size);
        product.as_slice().to_vec()
    }

    fn arranged(&self, slot: usize) -> &[f64] {
        self.local[slot].get_or_init(|| {
            let arrange = |component: usize| {
                let plain = self.plain(slot, component);
                self.tensors.layout.order.iter().map(|at| plain[*at]).collect::<Vec<f64>>()
            };
            (0..self.components).flat_map(arrange).collect()
        })
    }

    fn with_tables<R>(&self, t: &[f64], visit: impl FnOnce(&[f64]) -> R) -> R {
        let layout = &self.tensors.layout;
        let size = layout.tables_len();
        let (mut small, mut large) = ([0.0; SMALL], Vec::new());
        let tables = if size <= SMALL {
            &mut small[..size]
        } else {
            large.resize(size, 0.0);
            &mut large[..]
        };
        layout.tables(t, tables);
        visit(tables)
    }

    /// Calls a function with the slot of the point's bin and the Chebyshev polynomials at the point. `None` if the bin
    /// holds no part of the support.
    fn at<R>(&self, bin: &[BinIndex], t: &[f64], visit: impl FnOnce(usize, &[f64]) -> R) -> Option<R> {
        if let Some(slot) = self.tensors.bins.slot(bin) {
            return Some(self.with_tables(t, |tables| visit(slot, tables)));
        }
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        self.enter(&mut bin, &mut t);
        let slot = self.tensors.bins.slot(&bin)?;
        Some(self.with_tables(&t, |tables| visit(slot, tables)))
    }

    /// The polynomial of a component.
    fn root(&self, component: usize, slot: usize, tables: &[f64]) -> f64 {
        let length = self.tensors.exponents.len();
        self.tensors.layout.value(&self.arranged(slot)[component * length..(component + 1) * length], tables)
    }
}

impl ComponentFunctions for SquaredFunctions {
    fn components(&self) -> usize {
        self.components
    }

    fn degree(&self) -> Degree {
        let twice = 2 * self.tensors.exponents.degree();
        Degree { total: twice, axis: twice }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        let all = self.at(bin, t, |slot, tables| {
            out.iter_mut().enumerate().for_each(|(c, out)| *out = self.root(c, slot, tables).powi(2));
        });
        if all.is_none() {
            out.fill(0.0);
        }
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.at(bin, t, |slot, tables| self.root(component, slot, tables).powi(2)).unwrap_or(0.0)
    }

    fn values_at_points(&self, component: usize, bin: &[BinIndex], points: &[f64], out: &mut [f64]) {
        let Some(slot) = self.tensors.bins.slot(bin) else { return out.fill(0.0) };
        let length = self.tensors.exponents.len();
        let coefficients = &self.arranged(slot)[component * length..(component + 1) * length];
        dispatch(SquaresAtPoints { layout: &self.tensors.layout, coefficients, points, out });
    }

    fn log_value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let log = self.at(bin, t, |slot, tables| 2.0 * self.root(component, slot, tables).abs().ln());
        log.unwrap_or(f64::NEG_INFINITY)
    }

    fn enter(&self, bin: &mut [BinIndex], t: &mut [f64]) {
        self.tensors.bins.enter(bin, t);
    }
}

impl ChebyshevSeries for SquaredFunctions {
    fn chebyshev_exponents(&self) -> &Exponents {
        &self.tensors.double
    }

    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64> {
        let Tensors { exponents, double, layout, .. } = &*self.tensors;
        let mut sums = vec![0.0; double.len()];
        let Some(slot) = self.tensors.bins.slot(bin) else { return sums };
        let plain: Vec<Vec<f64>> = (0..self.components).map(|c| self.plain(slot, c)).collect();
        let n = layout.dimension;
        let positions = double.positions();
        let mut sum = vec![0u16; n];
        let split = 1.0 / (1usize << n) as f64;
        for (i, a) in exponents.iter().enumerate() {
            for (k, b) in exponents.iter().enumerate().take(i + 1) {
                let product: f64 = weights.iter().zip(&plain).map(|(w, c)| w * c[i] * c[k]).sum();
                let product = product * split * if i == k { 1.0 } else { 2.0 };
                for signs in 0..1usize << n {
                    for j in 0..n {
                        sum[j] = if signs >> j & 1 == 0 { a[j] + b[j] } else { a[j].abs_diff(b[j]) };
                    }
                    if let Some(at) = positions.get(&sum[..]) {
                        sums[*at] += product;
                    }
                }
            }
        }
        sums
    }
}

impl Differentiable for SquaredFunctions {
    /// The gradient is collected per bin in Chebyshev products and brought back to the basis at the end.
    fn add_gradient(&self, bin: &[BinIndex], t: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        self.enter(&mut bin, &mut t);
        let Some(slot) = self.tensors.bins.slot(&bin) else { return };
        let tensors = &self.tensors;
        let mut tables = Tables::new(&tensors.exponents);
        tables.fill(&t);
        let (size, length) = (tensors.size(), tensors.exponents.len());
        let per = tensors.gradient_len();
        for (c, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let root = self.with_tables(&t, |tables| self.root(c, slot, tables));
            let factor = 2.0 * weight * root;
            let target = &mut gradient[c * per + size + slot * length..][..length];
            target.iter_mut().zip(tensors.exponents.iter()).for_each(|(g, a)| *g += factor * tables.product(a));
        }
    }
}
