//! The components of one sum of squares as functions.

use std::sync::Arc;

use crate::density::chebyshev;
use crate::density::mesh::Degree;
use crate::density::pieces::Pieces;
use crate::moments::Exponents;

/// Exponents grouped by all but the last variable: along the last one a polynomial is a short sum of products.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub dimension: usize,
    /// One more than the degree.
    pub top: usize,
    /// Per group: where it starts; one more entry than groups.
    starts: Vec<usize>,
    /// Per group the exponents of all variables but the last.
    prefixes: Vec<u16>,
    /// For each place of this layout the position in the exponents.
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

    /// Coefficients in the order of this layout.
    pub fn arrange(&self, coefficients: &[f64]) -> Vec<f64> {
        self.order.iter().map(|at| coefficients[*at]).collect()
    }

    fn tables(&self, t: &[f64], tables: &mut [f64]) {
        for (row, t) in tables.chunks_mut(self.top).zip(t) {
            chebyshev::values(2.0 * t - 1.0, row);
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

/// Polynomials given by Chebyshev coefficients, squared.
pub(super) struct SquaredPieces {
    pub layout: Arc<Layout>,
    /// In the order of the layout, component by component.
    pub arranged: Vec<f64>,
    /// In the order of the exponents.
    pub plain: Vec<f64>,
    pub components: usize,
    pub exponents: Arc<Exponents>,
    /// Exponents of the squares.
    pub double: Arc<Exponents>,
}

/// Tables that fit on the stack: a point is evaluated without allocation.
const SMALL: usize = 256;

impl SquaredPieces {
    fn with_tables<R>(&self, t: &[f64], visit: impl FnOnce(&[f64]) -> R) -> R {
        let size = self.layout.top * self.layout.dimension;
        let (mut small, mut large) = ([0.0; SMALL], Vec::new());
        let tables = if size <= SMALL {
            &mut small[..size]
        } else {
            large.resize(size, 0.0);
            &mut large[..]
        };
        self.layout.tables(t, tables);
        visit(tables)
    }

    fn component(&self, c: usize) -> &[f64] {
        let length = self.exponents.len();
        &self.arranged[c * length..(c + 1) * length]
    }
}

impl Pieces for SquaredPieces {
    fn components(&self) -> usize {
        self.components
    }

    fn degree(&self) -> Degree {
        Degree { total: 2 * self.exponents.degree(), axis: 2 * self.exponents.degree() }
    }

    fn values(&self, _bin: &[u32], t: &[f64], out: &mut [f64]) {
        self.with_tables(t, |tables| {
            for (c, out) in out.iter_mut().enumerate() {
                *out = self.layout.value(self.component(c), tables).powi(2);
            }
        });
    }

    fn value(&self, component: usize, _bin: &[u32], t: &[f64]) -> f64 {
        self.with_tables(t, |tables| self.layout.value(self.component(component), tables).powi(2))
    }

    fn log_value(&self, component: usize, _bin: &[u32], t: &[f64]) -> f64 {
        self.with_tables(t, |tables| 2.0 * self.layout.value(self.component(component), tables).abs().ln())
    }

    fn exponents(&self) -> &Exponents {
        &self.double
    }

    fn chebyshev(&self, _bin: &[u32], weights: &[f64]) -> Vec<f64> {
        let n = self.layout.dimension;
        let length = self.exponents.len();
        let positions = self.double.positions();
        let mut sums = vec![0.0; self.double.len()];
        let mut sum = vec![0u16; n];
        let split = 1.0 / (1usize << n) as f64;
        for (i, a) in self.exponents.iter().enumerate() {
            for (k, b) in self.exponents.iter().enumerate().take(i + 1) {
                let pairs = weights.iter().enumerate();
                let product: f64 = pairs.map(|(c, w)| w * self.plain[c * length + i] * self.plain[c * length + k]).sum();
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
