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

use nalgebra::DMatrixView;

use super::SumOfSquares;
use crate::density::kind::FamilyKind;
use crate::density::lanes::{Real, dot};
use crate::density::row_kernel::{LocatedPoints, RowBlock, RowBlocks, RowInput, RowKernel};
use crate::density::weights::{log_softmax, log_sum_exp};

/// The number of rows that a thread takes at a time.
const ROWS: usize = 16;
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
    fn row<T: Real>(&self, row: &[T], memory: &mut RowMemory, gradient: Option<&mut [T]>) -> f64 {
        let (size, per) = (self.form.size, self.params_per_component());
        let RowMemory { coefficients, jacobian, images, features, .. } = memory;
        let mut logits = Vec::with_capacity(self.settings.components);
        let mut largest = 0.0f64;
        let parts = row.chunks(per).zip(self.offset.chunks(per));
        for ((row, offset), (u, factor)) in parts.zip(coefficients.chunks_mut(size).zip(jacobian.chunks_mut(size))) {
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
        if let Some(gram) = &self.form.gram {
            let u = DMatrixView::from_slice(coefficients, size, logits.len());
            images.copy_from_slice((gram * u).as_slice());
        }
        let image = |k: usize| {
            let part = k * size..(k + 1) * size;
            if images.is_empty() { &coefficients[part] } else { &images[part] }
        };
        let log_weights = log_softmax(&logits);
        let squares = coefficients.chunks(size).enumerate();
        let numbers: Vec<(f64, f64)> = squares.map(|(k, u)| (dot(u, features), dot(u, image(k)))).collect();
        let value = |k: usize| log_weights[k] + 2.0 * numbers[k].0.abs().max(T::TINY).ln();
        let integral = |k: usize| log_weights[k] + numbers[k].1.max(T::TINY).ln();
        let values = log_sum_exp((0..logits.len()).map(value));
        let integrals = log_sum_exp((0..logits.len()).map(integral));
        for (k, gradient) in gradient.into_iter().flat_map(|gradient| gradient.chunks_mut(per)).enumerate() {
            let (of_value, of_integral) = ((value(k) - values).exp(), (integral(k) - integrals).exp());
            gradient[0] = T::from_f64(of_value - of_integral);
            // What counts as zero is constant.
            let (v, i) = numbers[k];
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
                    self.row(row, memory, gradient.as_deref_mut())
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
