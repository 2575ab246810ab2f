//! Integrals of products of squared splines over a set, compiled to one multilinear form.
//!
//! With `S_j` the Bernstein coefficients of the squared spline along axis j, 7 per bin,
//!
//! ```text
//! integral of prod_j s_j(y_j)^2  =  H(S_1, .., S_n),      H[i_1, .., i_n] = integral of B_i1(y_1) .. B_in(y_n)
//! ```
//!
//! so the integrals of a whole batch are one matrix product with the first axis and n - 1 short contractions.

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use super::blocks::Blocks;
use super::hermite::{self, CUBIC, SQUARE};
use crate::density::DensityError;
use crate::density::grid::BinIndex;
use crate::density::kind::{Expansion, Form};
use crate::density::mesh::{Element, Mesh, Shape};

/// The largest number of entries of a form.
pub(super) const MAX_ENTRIES: usize = 40_000_000;

/// The number of components per matrix product.
const BLOCK: usize = 256;

/// The form H.
#[derive(Clone, Debug)]
pub(super) struct TensorForm {
    /// For each axis 7 times the number of bins.
    sizes: Vec<usize>,
    /// The entries of H, the last axis running fastest.
    entries: Vec<f64>,
    components: usize,
    /// For each bin, the last axis running fastest, the volume of the simplices that were integrated by recurrence: an
    /// entry of such a bin is only as accurate as the largest entry of the bin. Empty if no simplex was.
    swept: Vec<f64>,
}

impl TensorForm {
    /// The number of entries of a form, given the number of bins per axis.
    pub fn entries(bins: &[usize]) -> usize {
        bins.iter().fold(1, |product: usize, b| product.saturating_mul(SQUARE * b))
    }

    pub fn compile(mesh: &Mesh, powers: &[u16], components: usize) -> Result<TensorForm, DensityError> {
        let blocks = Blocks::new(mesh, powers)?;
        let mut by_bin: BTreeMap<&[BinIndex], Vec<&Element>> = BTreeMap::new();
        mesh.elements.iter().for_each(|element| by_bin.entry(&element.bin).or_default().push(element));
        let by_bin: Vec<(&[BinIndex], Vec<&Element>)> = by_bin.into_iter().collect();
        let made: Vec<Vec<f64>> = by_bin.par_iter().map(|(bin, elements)| blocks.block(bin, elements)).collect();
        let sizes: Vec<usize> = mesh.grid.axes().iter().map(|axis| SQUARE * axis.bins()).collect();
        let swept = swept_volumes(mesh);
        let mut form = TensorForm { entries: vec![0.0; sizes.iter().product()], sizes, components, swept };
        for ((bin, _), block) in by_bin.iter().zip(made) {
            form.add(bin, &block);
        }
        Ok(form)
    }

    /// The form with entries that were read from a file.
    pub fn from_entries(mesh: &Mesh, sizes: Vec<usize>, entries: Vec<f64>, components: usize) -> TensorForm {
        TensorForm { sizes, entries, components, swept: swept_volumes(mesh) }
    }

    pub fn raw(&self) -> (&[usize], &[f64]) {
        (&self.sizes, &self.entries)
    }

    fn add(&mut self, bin: &[BinIndex], block: &[f64]) {
        let n = self.sizes.len();
        for (row, values) in block.chunks(SQUARE).enumerate() {
            let mut rest = row;
            let mut at = 0;
            let mut stride = self.sizes[n - 1];
            for j in (0..n - 1).rev() {
                at += stride * (bin[j].get() * SQUARE + rest % SQUARE);
                stride *= self.sizes[j];
                rest /= SQUARE;
            }
            at += bin[n - 1].get() * SQUARE;
            self.entries[at..at + SQUARE].iter_mut().zip(values).for_each(|(e, v)| *e += v);
        }
    }

    /// The Bernstein coefficients of the squares of all splines of a component, axis after axis.
    fn squares(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut squares = vec![0.0; coefficients.len() / CUBIC * SQUARE];
        fill_squares(coefficients, &mut squares);
        squares
    }

    /// The part of a component's squares that belongs to one axis.
    fn axis<'s>(&self, squares: &'s [f64], axis: usize) -> &'s [f64] {
        let start: usize = self.sizes[..axis].iter().sum();
        &squares[start..start + self.sizes[axis]]
    }

    /// The integrals of several components, given by the coefficients of their squares.
    fn block_integrals(&self, squares: &[f64]) -> Vec<f64> {
        let n = self.sizes.len();
        let length: usize = self.sizes.iter().sum();
        let (first, rest) = (self.sizes[0], self.entries.len() / self.sizes[0]);
        let count = squares.len() / length;
        let columns = DMatrixView::from_slice_with_strides(squares, first, count, 1, length);
        // As a column-major matrix, the entries have one column per index of the first axis.
        let entries = DMatrixView::from_slice(&self.entries, rest, first);
        let mut contracted = DMatrix::zeros(rest, count);
        contracted.gemm(1.0, &entries, &columns, 0.0);
        let finish = |(column, squares): (&[f64], &[f64])| {
            if n == 1 {
                return column[0];
            }
            let mut rest = contract_last(column, self.axis(squares, n - 1));
            for j in (1..n - 1).rev() {
                rest = contract_last(&rest, self.axis(squares, j));
            }
            rest[0]
        };
        contracted.as_slice().chunks(rest).zip(squares.chunks(length)).map(finish).collect()
    }
}

fn swept_volumes(mesh: &Mesh) -> Vec<f64> {
    if !Blocks::sweeps(mesh.dimension()) {
        return Vec::new();
    }
    let mut volumes = vec![0.0; mesh.grid.bins()];
    for element in mesh.elements.iter().filter(|element| matches!(element.shape, Shape::Simplex(_))) {
        let axes = mesh.grid.axes().iter().zip(&element.bin);
        volumes[axes.fold(0, |at, (axis, bin)| at * axis.bins() + bin.get())] += element.volume;
    }
    volumes
}

fn fill_squares(coefficients: &[f64], squares: &mut [f64]) {
    for (b, s) in coefficients.chunks_exact(CUBIC).zip(squares.chunks_exact_mut(SQUARE)) {
        hermite::square(b, s);
    }
}

fn contract_last(tensor: &[f64], vector: &[f64]) -> Vec<f64> {
    tensor.chunks(vector.len()).map(|row| dot(row, vector)).collect()
}

fn contract_first(tensor: &[f64], vector: &[f64]) -> Vec<f64> {
    let width = tensor.len() / vector.len();
    let mut sum = vec![0.0; width];
    for (row, v) in tensor.chunks(width).zip(vector) {
        sum.iter_mut().zip(row).for_each(|(s, x)| *s += v * x);
    }
    sum
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Form for TensorForm {
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64> {
        let length = self.sizes.iter().sum::<usize>() / SQUARE * CUBIC;
        let components: Vec<&[f64]> = expansions.iter().flat_map(|row| row.coefficients.chunks(length)).collect();
        let blocks = components.par_chunks(BLOCK).map(|block| {
            let per = length / CUBIC * SQUARE;
            let mut squares = vec![0.0; block.len() * per];
            for (coefficients, squares) in block.iter().zip(squares.chunks_mut(per)) {
                fill_squares(coefficients, squares);
            }
            self.block_integrals(&squares)
        });
        // The integral of a square is not negative; rounding may have made it so.
        blocks.flatten_iter().map(|integral| integral.max(0.0)).collect()
    }

    fn scale(&self, coefficients: &[f64], component: usize) -> f64 {
        let length = coefficients.len() / self.components;
        let mut squares = self.squares(&coefficients[component * length..(component + 1) * length]);
        squares.iter_mut().for_each(|s| *s = s.abs());
        let scale = self.block_integrals(&squares)[0];
        if self.swept.is_empty() {
            return scale;
        }
        let largest = |bin: &[f64]| bin.iter().fold(0.0f64, |a, b| a.max(*b));
        let mut rest = self.swept.clone();
        for axis in (0..self.sizes.len()).rev() {
            let bins: Vec<f64> = self.axis(&squares, axis).chunks(SQUARE).map(largest).collect();
            rest = contract_last(&rest, &bins);
        }
        scale.max(rest[0])
    }

    /// Coefficients are at most 1 in size, those of squares too, and Bernstein polynomials add up to 1.
    fn largest_scale(&self, volume: f64) -> f64 {
        volume
    }

    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let n = self.sizes.len();
        let length = coefficients.len() / self.components;
        let parts = coefficients.chunks(length).zip(gradient.chunks_mut(length)).zip(weights);
        for ((coefficients, gradient), weight) in parts {
            if *weight == 0.0 {
                continue;
            }
            let squares = self.squares(coefficients);
            let mut at = 0;
            for j in 0..n {
                let mut rest = None;
                for k in (j + 1..n).rev() {
                    rest = Some(contract_last(rest.as_deref().unwrap_or(&self.entries), self.axis(&squares, k)));
                }
                for k in 0..j {
                    rest = Some(contract_first(rest.as_deref().unwrap_or(&self.entries), self.axis(&squares, k)));
                }
                let slope = rest.as_deref().unwrap_or(&self.entries);
                for s in slope.chunks(SQUARE) {
                    let scaled: [f64; SQUARE] = std::array::from_fn(|k| s[k] * weight);
                    let range = at..at + CUBIC;
                    hermite::add_square_gradient(&coefficients[range.clone()], &scaled, &mut gradient[range]);
                    at += CUBIC;
                }
            }
        }
    }
}
