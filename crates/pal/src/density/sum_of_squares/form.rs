//! Integrals of squares over a set: one quadratic form.

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use crate::density::kind::{Expansion, Form};

/// `I = u^T G u`, with G the identity for a basis that is orthonormal on the set.
#[derive(Clone, Debug)]
pub(super) struct GramForm {
    pub gram: Option<DMatrix<f64>>,
    /// The number of coefficients of a component.
    pub size: usize,
    /// The length of the gradient of a component; the coefficients come first.
    pub gradient_len: usize,
}

/// The number of components per matrix product.
const BLOCK: usize = 64;

impl GramForm {
    /// `G u` for several u, as columns.
    fn images(&self, components: &[&[f64]]) -> DMatrix<f64> {
        let columns: Vec<f64> = components.iter().flat_map(|u| u.iter().copied()).collect();
        let columns = DMatrixView::from_slice(&columns, self.size, components.len());
        match &self.gram {
            Some(gram) => gram * columns,
            None => columns.into_owned(),
        }
    }
}

impl Form for GramForm {
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64> {
        let components: Vec<&[f64]> = expansions.iter().flat_map(|row| row.coefficients.chunks(self.size)).collect();
        let blocks = components.par_chunks(BLOCK).map(|block| {
            let images = self.images(block);
            let integral = |(k, u): (usize, &&[f64])| images.column(k).iter().zip(*u).map(|(g, u)| g * u).sum::<f64>();
            block.iter().enumerate().map(integral).collect::<Vec<f64>>()
        });
        // The integral of a square is not negative; rounding may have made it so.
        blocks.flatten_iter().map(|integral| integral.max(0.0)).collect()
    }

    fn scale(&self, coefficients: &[f64], component: usize) -> f64 {
        let u = &coefficients[component * self.size..][..self.size];
        let largest = self.gram.as_ref().map_or(1.0, |gram| gram.trace());
        u.iter().map(|u| u * u).sum::<f64>() * largest
    }

    /// The scale itself is as quickly computed as a bound on it.
    fn largest_scale(&self, _volume: f64) -> f64 {
        f64::INFINITY
    }

    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let components: Vec<&[f64]> = coefficients.chunks(self.size).collect();
        let images = self.images(&components);
        for ((k, target), weight) in gradient.chunks_mut(self.gradient_len).enumerate().zip(weights) {
            for (g, image) in target[..self.size].iter_mut().zip(images.column(k).iter()) {
                *g += 2.0 * weight * image;
            }
        }
    }
}
