//! Sums of squares of polynomials (PAL paper, Eq. 3), in any basis:
//!
//! ```text
//! log p(y) = log sum_k w_k (u_k . f(y))^2 - log sum_k w_k u_k^T G u_k - log volume,        w = softmax(logits).
//! ```

use std::sync::Arc;

use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Tensor};
use pal::density::{Family, SumOfSquares};

use super::kind::{LayerKind, LayerParts};
use super::{LayerError, Likelihood, Normaliser, Placement, log_sum_exp, tiny};

/// The constants of a [`SumOfSquaresRecipe`](pal::density::SumOfSquaresRecipe).
#[derive(Clone, Debug)]
pub(super) struct SumOfSquaresLayer {
    components: usize,
    /// The number of coefficients of a square.
    size: usize,
    /// Whether parameters are reparametrised as in the PAL paper, Appendix B.1.
    reparametrised: bool,
    log_volume: f64,
    dtype: DType,
}

impl SumOfSquaresLayer {
    /// Makes the layer of a family of sums of squares; `None` for another kind.
    pub fn from_family(family: &Family, placement: Placement) -> Option<Result<LayerParts, LayerError>> {
        let recipe = family.downcast::<SumOfSquares>()?.recipe();
        let size = recipe.size;
        let normaliser = match recipe.gram {
            Some(gram) => Normaliser::dense(placement.matrix(gram, size, size)),
            None => Normaliser::identity(size),
        };
        let layer = SumOfSquaresLayer {
            components: recipe.components,
            size,
            reparametrised: recipe.reparametrised,
            log_volume: recipe.log_volume,
            dtype: placement.dtype,
        };
        Some(Ok((Arc::new(layer), normaliser)))
    }
}

impl LayerKind for SumOfSquaresLayer {
    /// The Gram matrix G.
    fn form_shape(&self) -> [usize; 2] {
        [self.size, self.size]
    }

    fn likelihood(&self, theta: Tensor<2>, features: Tensor<2>, normaliser: &Normaliser) -> Likelihood {
        let rows = theta.dims()[0];
        let (components, size, tiny) = (self.components, self.size, tiny(self.dtype));
        let theta = theta.reshape([rows, components, size + 1]);
        let logits: Tensor<2> = theta.clone().slice([0..rows, 0..components, 0..1]).squeeze_dim(2);
        let log_weights = log_softmax(logits, 1);
        let z = theta.slice([0..rows, 0..components, 1..size + 1]);
        let u = if self.reparametrised { z.clone().sign() * ((z.abs() + 0.1).sqrt() - 0.1f64.sqrt()) } else { z };
        // Densities do not depend on a common scale of all squares, so the gradient through it is zero and need not be
        // computed.
        let scale = u.clone().detach().abs().max_dim(2).max_dim(1).clamp_min(tiny);
        let u = u / scale.clone();
        let flat = u.clone().reshape([rows * components, size]);
        let value = if rows == 1 {
            features.matmul(flat.clone().transpose())
        } else {
            (u * features.unsqueeze_dim::<3>(1)).sum_dim(2).squeeze_dim(2)
        };
        let log_values = value.abs().clamp_min(tiny).log() * 2.0;
        let integrals = (flat.clone() * normaliser.apply(flat)).sum_dim(1).reshape([rows, components]);
        let log_total = log_sum_exp(integrals.clamp_min(tiny).log() + log_weights.clone());
        let log_prob = log_sum_exp(log_values + log_weights) - log_total.clone() - self.log_volume;
        let scale: Tensor<1> = scale.reshape([rows]);
        Likelihood { log_prob, log_integral: log_total + scale.log() * 2.0 + self.log_volume }
    }
}
