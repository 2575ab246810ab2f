//! Mixtures whose components are products of functions of one variable, normalised component by component.
//!
//! ```text
//! log p(y) = log sum_m exp(log softmax(logits)_m + log q_m(y) - log Z_m),        q_m(y) = prod_j q_mj(y_j),
//! Z_m = volume * form(c_m1, .., c_mn)
//! ```
//!
//! where `c_mj` are the coefficients of component m along axis j, and the form is multilinear.

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

use super::{Likelihood, Normaliser, log_sum_exp};

/// What a kind of family computes of the factors of a product mixture.
pub(super) struct Factors {
    /// One row per parameter vector, one column per component.
    pub logits: Tensor<2>,
    /// Along each axis the logarithm of `q_mj` at each point, divided by its scale: one row per point, one column per
    /// component.
    pub log_values: Vec<Tensor<2>>,
    /// Along each axis the logarithm of the scale of `q_mj`: one row per parameter vector, one column per component.
    pub log_scales: Vec<Tensor<2>>,
    /// Along each axis the coefficients of `q_mj`, divided by its scale: one row per parameter vector and component.
    pub coefficients: Vec<Tensor<2>>,
}

impl Factors {
    /// Returns the log-densities; integrals of at most `tiny` count as zero.
    pub fn likelihood(self, normaliser: &Normaliser, log_volume: f64, tiny: f64) -> Likelihood {
        let integrals: Tensor<2> = contract(normaliser, self.coefficients).reshape(self.logits.dims());
        // A component without mass takes no part in the mixture.
        let without_mass = integrals.clone().lower_equal_scalar(tiny);
        let logits = self.logits.mask_fill(without_mass.clone(), -1e30);
        let log_integrals = integrals.mask_fill(without_mass, 1.0).log() + log_volume;
        let log_weights = log_softmax(logits, 1) - log_integrals.clone();
        let log_integral = log_integrals + sum(self.log_scales);
        Likelihood {
            log_prob: log_sum_exp(sum(self.log_values) + log_weights),
            log_integral: log_integral.max_dim(1).squeeze_dim(1),
        }
    }
}

fn sum(terms: Vec<Tensor<2>>) -> Tensor<2> {
    terms.into_iter().reduce(|a, b| a + b).expect("a family has at least one variable")
}

/// Evaluates the multilinear form, which is stored with the first axis down and all others across: one row per
/// parameter vector and component.
fn contract(normaliser: &Normaliser, coefficients: Vec<Tensor<2>>) -> Tensor<2> {
    let mut axes = coefficients.into_iter();
    let mut partial = normaliser.apply(axes.next().expect("a family has at least one variable"));
    for coefficients in axes {
        let [count, length] = coefficients.dims();
        let across = partial.dims()[1] / length;
        partial = if across == 1 {
            (partial * coefficients).sum_dim(1)
        } else {
            coefficients.unsqueeze_dim::<3>(1).matmul(partial.reshape([count, length, across])).squeeze_dim(1)
        };
    }
    partial
}
