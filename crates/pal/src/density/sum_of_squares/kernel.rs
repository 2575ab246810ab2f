//! The fused pass of sums of squares: see [`crate::density::row_kernel`].
//!
//! With `v_k = u_k . f` the value of a polynomial at the point, f its features, and the integral `I_k = u_k^T G u_k`,
//! the fractions of square k in the value and in the normaliser,
//!
//! ```text
//! a_k = w_k v_k^2 / sum_l w_l v_l^2        and        b_k = w_k I_k / sum_l w_l I_l,
//! ```
//!
//! are all that the gradient of the log-density needs:
//!
//! ```text
//! d log p  =  sum_k  (2 a_k / v_k) f . du_k  -  (2 b_k / I_k) (G u_k) . du_k  +  (a_k - b_k) d logit_k.
//! ```
//!
//! All of it is computed in float64: there is little to compute.

use std::sync::Arc;

use nalgebra::{DMatrix, DMatrixView};

use super::SumOfSquares;
use super::form::GramForm;
use crate::density::kind::FamilyKind;
use crate::density::lanes::{LANES, Real, dot};
use crate::density::parts::{PartFactors, PartLanes, SupportParts};
use crate::density::row_kernel::{LocatedPoints, RowBlock, RowBlocks, RowInput, RowKernel};
use crate::density::weights::{log_softmax, log_sum_exp};

/// The number of rows that a thread takes at a time: one for each lane that factors of parts come in.
const ROWS: usize = LANES;
/// A batch of at least this many coefficients is divided between threads.
const PARALLEL: usize = 1 << 14;

/// Memory that is used for one row after the other.
struct RowMemory {
    /// Coefficients and their derivatives with respect to the parameters, square by square.
    coefficients: Vec<f64>,
    jacobian: Vec<f64>,
    /// `G u` for every square; empty if G is the identity.
    images: Vec<f64>,
    features: Vec<f64>,
    /// Zeros: features, not derivatives of them.
    orders: Vec<u16>,
}

/// The Gram matrices of the parts of a support.
#[derive(Debug)]
pub(super) struct SquaresOnParts {
    family: SumOfSquares,
    grams: Vec<DMatrix<f64>>,
    factors: Arc<dyn PartFactors>,
}

/// The integrals of squares over the parts of a support, for the row of one lane.
struct RowParts<'p, T> {
    grams: &'p [DMatrix<f64>],
    lanes: &'p mut PartLanes<T>,
    lane: usize,
}

impl<T: Real> RowParts<'_, T> {
    /// Computes `sum_g P_g G_g u` for every square, and keeps the integrals over the parts.
    fn images(&mut self, u: DMatrixView<'_, f64>, images: &mut [f64]) {
        images.fill(0.0);
        let (size, parts) = (u.nrows(), self.grams.len());
        for (part, gram) in self.grams.iter().enumerate() {
            let product = gram * u;
            for (k, image) in images.chunks_mut(size).enumerate() {
                let (own, factor) = (product.column(k), self.lanes.of(k)[part].0[self.lane].to_f64());
                self.lanes.fractions[k * parts + part].0[self.lane] = T::from_f64(u.column(k).dot(&own).max(0.0));
                image.iter_mut().zip(own.iter()).for_each(|(image, x)| *image += factor * x);
            }
        }
    }

    /// The logarithms of the factors of value and integral of a square.
    fn logs(&self, k: usize) -> (f64, f64) {
        let logs = &self.lanes.logs[k];
        (logs.value.0[self.lane], logs.scale.0[self.lane])
    }

    /// Keeps the fractions of a square in value and normaliser, given its integral.
    fn keep(&mut self, k: usize, of_value: f64, of_integral: f64, integral: f64) {
        let (lane, parts) = (self.lane, self.grams.len());
        self.lanes.by_value[k].0[lane] = of_value;
        self.lanes.by_integral[k].0[lane] = of_integral;
        let reciprocal = T::from_f64(if integral < T::TINY { 0.0 } else { 1.0 / integral });
        for fraction in &mut self.lanes.fractions[k * parts..(k + 1) * parts] {
            fraction.0[lane] = fraction.0[lane] * reciprocal;
        }
    }
}

impl SumOfSquares {
    fn row_memory(&self) -> RowMemory {
        let (size, components) = (self.form.size, self.settings.components);
        RowMemory {
            coefficients: vec![0.0; size * components],
            jacobian: vec![0.0; size * components],
            images: vec![0.0; if self.form.gram.is_some() { size * components } else { 0 }],
            features: vec![0.0; size],
            orders: vec![0; self.support.dimension()],
        }
    }

    /// The log-density of the point with these features under one row; its gradient replaces `gradient`.
    fn row<T: Real>(
        &self,
        row: &[T],
        memory: &mut RowMemory,
        mut parts: Option<RowParts<'_, T>>,
        gradient: Option<&mut [T]>,
    ) -> f64 {
        let (size, per) = (self.form.size, self.params_per_component());
        let RowMemory { coefficients, jacobian, images, features, .. } = memory;
        let mut logits = Vec::with_capacity(self.settings.components);
        let mut largest = 0.0f64;
        let squares = row.chunks(per).zip(self.offset.chunks(per));
        for ((row, offset), (u, factor)) in squares.zip(coefficients.chunks_mut(size).zip(jacobian.chunks_mut(size))) {
            // Added in the precision of the row, so that what is zero there stays zero.
            let mut theta = row.iter().zip(offset).map(|(x, offset)| (*x + T::from_f64(*offset)).to_f64());
            logits.extend(theta.next());
            for ((theta, u), factor) in theta.zip(u).zip(factor) {
                (*u, *factor) = self.reparametrised(theta);
                largest = largest.max(u.abs());
            }
        }
        // One scale for all squares: the density does not depend on it.
        let scale = 1.0 / largest.max(T::TINY);
        coefficients.iter_mut().for_each(|u| *u *= scale);
        let u = DMatrixView::from_slice(coefficients, size, logits.len());
        if let Some(parts) = &mut parts {
            parts.images(u, images);
        } else if let Some(gram) = &self.form.gram {
            images.copy_from_slice((gram * u).as_slice());
        }
        let image = |k: usize| {
            let part = k * size..(k + 1) * size;
            if images.is_empty() { &coefficients[part] } else { &images[part] }
        };
        let log_weights = log_softmax(&logits);
        let squares = coefficients.chunks(size).enumerate();
        let numbers: Vec<(f64, f64)> = squares.map(|(k, u)| (dot(u, features), dot(u, image(k)))).collect();
        let logs: Vec<(f64, f64)> =
            (0..logits.len()).map(|k| parts.as_ref().map_or((0.0, 0.0), |parts| parts.logs(k))).collect();
        let value = |k: usize| log_weights[k] + 2.0 * numbers[k].0.abs().max(T::TINY).ln() + logs[k].0;
        let integral = |k: usize| log_weights[k] + numbers[k].1.max(T::TINY).ln() + logs[k].1;
        let values = log_sum_exp((0..logits.len()).map(value));
        let integrals = log_sum_exp((0..logits.len()).map(integral));
        for (k, gradient) in gradient.into_iter().flat_map(|gradient| gradient.chunks_mut(per)).enumerate() {
            let (of_value, of_integral) = ((value(k) - values).exp(), (integral(k) - integrals).exp());
            gradient[0] = T::from_f64(of_value - of_integral);
            // What counts as zero is constant.
            let (v, i) = numbers[k];
            if let Some(parts) = &mut parts {
                parts.keep(k, of_value, of_integral, i);
            }
            let by_value = if v.abs() < T::TINY { 0.0 } else { 2.0 * scale * of_value / v };
            let by_integral = if i < T::TINY { 0.0 } else { 2.0 * scale * of_integral / i };
            let terms = features.iter().zip(image(k)).zip(&jacobian[k * size..]);
            for (gradient, ((feature, image), factor)) in gradient[1..].iter_mut().zip(terms) {
                *gradient = T::from_f64((by_value * feature - by_integral * image) * factor);
            }
        }
        values - integrals - self.support.grid().log_volume()
    }
}

impl<T: Real> RowKernel<T> for SumOfSquares {
    fn width(&self, input: RowInput) -> Option<usize> {
        (input == RowInput::Parameters).then(|| self.num_params())
    }

    fn log_prob(
        &self,
        _: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    ) {
        let width = self.num_params();
        let work = |block: RowBlock<'_, T>, memory: &mut RowMemory| {
            let RowBlock { first, rows, log_prob, mut gradient } = block;
            for (k, (row, log_prob)) in rows.chunks(width).zip(log_prob).enumerate() {
                let mut gradient = gradient.as_mut().map(|gradient| &mut gradient[k * width..(k + 1) * width]);
                *log_prob = T::from_f64(if points.is_inside(first + k) {
                    let (bin, local) = points.place(first + k);
                    self.features(bin, local, &memory.orders, &mut memory.features);
                    self.row(row, memory, None, gradient.as_deref_mut())
                } else {
                    gradient.into_iter().for_each(|row| row.fill(T::default()));
                    f64::NEG_INFINITY
                });
            }
        };
        let blocks = RowBlocks { width, rows: ROWS, parallel: rows.len() >= PARALLEL };
        blocks.run(rows, log_prob, gradient, || self.row_memory(), work);
    }
}

impl SquaresOnParts {
    pub fn new(family: &SumOfSquares, parts: &SupportParts<'_>) -> Option<SquaresOnParts> {
        let grams = parts.forms_of::<GramForm>()?.into_iter().map(|form| form.gram.clone()).collect::<Option<_>>()?;
        Some(SquaresOnParts { family: family.clone(), grams, factors: parts.factors.clone() })
    }
}

impl<T: Real> RowKernel<T> for SquaresOnParts {
    fn width(&self, input: RowInput) -> Option<usize> {
        let tail = PartLanes::<T>::tail(Some(&self.factors), self.family.settings.components);
        (input == RowInput::Parameters).then(|| self.family.num_params() + tail)
    }

    fn log_prob(
        &self,
        input: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    ) {
        let Some(width) = RowKernel::<T>::width(self, input) else { return };
        let (family, components) = (&self.family, self.family.settings.components);
        let reals = family.num_params();
        let memory = || {
            let images = vec![0.0; family.form.size * components];
            (RowMemory { images, ..family.row_memory() }, PartLanes::new(Some(&self.factors), components))
        };
        let work = |block: RowBlock<'_, T>, (memory, lanes): &mut (RowMemory, PartLanes<T>)| {
            let RowBlock { first, rows, log_prob, mut gradient } = block;
            lanes.load(rows, width, points, first);
            for (lane, (row, log_prob)) in rows.chunks(width).zip(log_prob).enumerate() {
                let mut gradient = gradient.as_mut().map(|gradient| &mut gradient[lane * width..(lane + 1) * width]);
                *log_prob = T::from_f64(if points.is_inside(first + lane) {
                    let (bin, local) = points.place(first + lane);
                    family.features(bin, local, &memory.orders, &mut memory.features);
                    let parts = RowParts { grams: &self.grams, lanes, lane };
                    family.row(&row[..reals], memory, Some(parts), gradient.map(|row| &mut row[..reals]))
                } else {
                    gradient.iter_mut().for_each(|row| row.fill(T::default()));
                    f64::NEG_INFINITY
                });
            }
            if let Some(gradient) = gradient {
                lanes.pull_back(gradient, width, points, first);
            }
        };
        let blocks = RowBlocks { width, rows: ROWS, parallel: rows.len() >= PARALLEL };
        blocks.run(rows, log_prob, gradient, memory, work);
    }
}
