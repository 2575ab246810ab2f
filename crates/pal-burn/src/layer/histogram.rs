//! Histogram mixtures: products of functions that are constant on every bin.
//!
//! With `theta_mj` the log-weights of the bins along axis j of component m, and `f_j` the one-hot vector of the bin
//! that a point lies in, `log q_m(y) = sum_j theta_mj . f_j(y)` and `Z_m = volume * form(exp theta_m1, .., exp
//! theta_mn)`.

use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use pal::density::{Family, HistogramMixture};

use super::kind::{LayerKind, LayerParts};
use super::product::Factors;
use super::{LayerError, Likelihood, Normaliser, Placement, tiny};

/// The constants of a histogram mixture.
#[derive(Clone, Debug)]
pub(super) struct HistogramLayer {
    components: usize,
    /// The number of bins along each axis.
    bins: Vec<usize>,
    /// The shape of the form: the bins of the first axis down, those of all others across.
    form_shape: [usize; 2],
    log_volume: f64,
    dtype: DType,
}

impl HistogramLayer {
    /// Makes the layer of a family of histogram mixtures; `None` for another kind.
    pub fn from_family(family: &Family, placement: Placement) -> Option<Result<LayerParts, LayerError>> {
        let recipe = family.downcast::<HistogramMixture>()?.recipe();
        let first = *recipe.bins.first().expect("a family has at least one variable");
        let form_shape = [first, recipe.form.len() / first];
        let layer = HistogramLayer {
            components: recipe.components,
            bins: recipe.bins,
            form_shape,
            log_volume: recipe.log_volume,
            dtype: placement.dtype,
        };
        let normaliser = Normaliser::dense(placement.matrix(recipe.form, form_shape[0], form_shape[1]));
        Some(Ok((Arc::new(layer), normaliser)))
    }
}

impl LayerKind for HistogramLayer {
    fn form_shape(&self) -> [usize; 2] {
        self.form_shape
    }

    fn likelihood(&self, theta: Tensor<2>, features: Tensor<2>, normaliser: &Normaliser) -> Likelihood {
        let [rows, width] = theta.dims();
        let (components, per) = (self.components, width / self.components);
        let all = theta.reshape([rows, components, per]);
        let logits: Tensor<2> = all.clone().slice([0..rows, 0..components, 0..1]).squeeze_dim(2);
        let (mut log_values, mut log_scales, mut coefficients) = (Vec::new(), Vec::new(), Vec::new());
        let count = features.dims()[0];
        let mut at = 0;
        for bins in &self.bins {
            let theta = all.clone().slice([0..rows, 0..components, at + 1..at + 1 + bins]);
            // Densities do not depend on the scale of the weights, so the gradient through it is zero and need not be
            // computed.
            let log_scale = theta.clone().detach().max_dim(2);
            let theta = theta - log_scale.clone();
            log_scales.push(log_scale.squeeze_dim(2));
            let features = features.clone().slice([0..count, at..at + bins]);
            let flat = theta.clone().reshape([rows * components, *bins]);
            log_values.push(if rows == 1 {
                features.matmul(flat.clone().transpose())
            } else {
                (theta * features.unsqueeze_dim::<3>(1)).sum_dim(2).squeeze_dim(2)
            });
            coefficients.push(flat.exp());
            at += bins;
        }
        let factors = Factors { logits, log_values, log_scales, coefficients };
        factors.likelihood(normaliser, self.log_volume, tiny(self.dtype))
    }
}
