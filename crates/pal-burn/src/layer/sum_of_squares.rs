//! Sums of squares.

use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Tensor};
use pal::density::SumOfSquaresRecipe;

use super::{Likelihood, Place, log_sum_exp, tiny};

/// The constants of a [`SumOfSquaresRecipe`].
#[derive(Clone, Debug)]
pub(super) struct SumOfSquaresTensors {
    components: usize,
    size: usize,
    /// `None` for the identity.
    gram: Option<Tensor<2>>,
    damped: bool,
    log_volume: f64,
    dtype: DType,
}

impl SumOfSquaresTensors {
    pub fn new(recipe: &SumOfSquaresRecipe, place: Place) -> SumOfSquaresTensors {
        let size = recipe.size;
        SumOfSquaresTensors {
            components: recipe.components,
            size,
            gram: recipe.gram.as_ref().map(|gram| place.matrix(gram.clone(), size, size)),
            damped: recipe.damped,
            log_volume: recipe.log_volume,
            dtype: place.dtype,
        }
    }

    pub fn likelihood(&self, params: Tensor<2>, features: Tensor<2>) -> Likelihood {
        let rows = params.dims()[0];
        let (components, size, tiny) = (self.components, self.size, tiny(self.dtype));
        let params = params.reshape([rows, components, size + 1]);
        let logits: Tensor<2> = params.clone().slice([0..rows, 0..components, 0..1]).squeeze_dim(2);
        let log_weights = log_softmax(logits, 1);
        let z = params.slice([0..rows, 0..components, 1..size + 1]);
        let u = if self.damped { z.clone().sign() * ((z.abs() + 0.1).sqrt() - 0.1f64.sqrt()) } else { z };
        // One scale for all squares of a density; it does not depend on it.
        let scale = u.clone().detach().abs().max_dim(2).max_dim(1).clamp_min(tiny);
        let u = u / scale.clone();
        let flat = u.clone().reshape([rows * components, size]);
        let value = if rows == 1 {
            features.matmul(flat.clone().transpose())
        } else {
            (u * features.unsqueeze_dim::<3>(1)).sum_dim(2).squeeze_dim(2)
        };
        let log_values = value.abs().clamp_min(tiny).log() * 2.0;
        let images = match &self.gram {
            Some(gram) => flat.clone().matmul(gram.clone()),
            None => flat.clone(),
        };
        let integrals = (flat * images).sum_dim(1).reshape([rows, components]);
        let log_total = log_sum_exp(integrals.clamp_min(tiny).log() + log_weights.clone());
        let log_prob = log_sum_exp(log_values + log_weights) - log_total.clone() - self.log_volume;
        let scale: Tensor<1> = scale.reshape([rows]);
        Likelihood { log_prob, log_integral: log_total + scale.log() * 2.0 + self.log_volume }
    }
}
