//! Spline mixtures.

use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Tensor};
use pal::density::SplineRecipe;

use super::{Likelihood, Place, log_sum_exp, tiny};

/// The constants of a [`SplineRecipe`].
#[derive(Clone, Debug)]
pub(super) struct SplineTensors {
    components: usize,
    axes: Vec<Axis>,
    /// The form with the first axis down and all others across.
    form: Tensor<2>,
    log_volume: f64,
    dtype: DType,
}

#[derive(Clone, Debug)]
struct Axis {
    params: usize,
    nodes: usize,
    /// From parameters to values at nodes.
    values: Tensor<2>,
}

impl SplineTensors {
    pub fn new(recipe: &SplineRecipe, place: Place) -> SplineTensors {
        let axis = |axis: &pal::density::SplineAxis| Axis {
            params: axis.params,
            nodes: axis.nodes,
            values: place.matrix(axis.values.clone(), axis.params, axis.nodes),
        };
        let first = recipe.axes.first().map_or(1, |axis| axis.nodes);
        SplineTensors {
            components: recipe.components,
            axes: recipe.axes.iter().map(axis).collect(),
            form: place.matrix(recipe.form.clone(), first, recipe.form.len() / first),
            log_volume: recipe.log_volume,
            dtype: place.dtype,
        }
    }

    pub fn likelihood(&self, params: Tensor<2>, features: Tensor<2>) -> Likelihood {
        let [rows, width] = params.dims();
        let (components, per) = (self.components, width / self.components);
        let params = params.reshape([rows, components, per]);
        let logits: Tensor<2> = params.clone().slice([0..rows, 0..components, 0..1]).squeeze_dim(2);
        let tiny = tiny(self.dtype);
        let (mut log_values, mut log_scales) = (None, None);
        let mut squares = Vec::with_capacity(self.axes.len());
        let mut at = 0;
        for axis in &self.axes {
            let theta = params.clone().slice([0..rows, 0..components, at + 1..at + 1 + axis.params]);
            // Densities do not depend on the scale, so its gradient is zero and need not be followed.
            let scale = theta.clone().detach().abs().max_dim(2).clamp_min(tiny);
            let theta = theta / scale.clone();
            let scale: Tensor<2> = scale.squeeze_dim(2);
            let scale = scale.log() * 2.0;
            log_scales = Some(log_scales.map_or(scale.clone(), |sum: Tensor<2>| sum + scale));
            let count = features.dims()[0];
            let features = features.clone().slice([0..count, at..at + axis.params]);
            let flat = theta.clone().reshape([rows * components, axis.params]);
            let value = if rows == 1 {
                features.matmul(flat.clone().transpose())
            } else {
                (theta * features.unsqueeze_dim::<3>(1)).sum_dim(2).squeeze_dim(2)
            };
            let log = value.abs().clamp_min(tiny).log() * 2.0;
            log_values = Some(log_values.map_or(log.clone(), |sum: Tensor<2>| sum + log));
            squares.push(flat.matmul(axis.values.clone()).square());
            at += axis.params;
        }
        let integrals: Tensor<2> = self.integrals(squares).reshape([rows, components]);
        // A component without mass takes no part in the mixture.
        let without_mass = integrals.clone().lower_equal_scalar(tiny);
        let logits = logits.mask_fill(without_mass.clone(), -1e30);
        let log_integrals = integrals.mask_fill(without_mass, 1.0).log() + self.log_volume;
        let weights = log_softmax(logits, 1) - log_integrals.clone();
        let log_integral = match log_scales {
            Some(scales) => log_integrals + scales,
            None => log_integrals,
        };
        let terms = match log_values {
            Some(values) => values + weights,
            None => weights,
        };
        Likelihood { log_prob: log_sum_exp(terms), log_integral: log_integral.max_dim(1).squeeze_dim(1) }
    }

    /// The form of squared values at nodes, one row for each component.
    fn integrals(&self, squares: Vec<Tensor<2>>) -> Tensor<2> {
        let mut squares = squares.into_iter();
        let Some(first) = squares.next() else { return self.form.clone() };
        let rows = first.dims()[0];
        let mut rest = first.matmul(self.form.clone());
        for (square, axis) in squares.zip(&self.axes[1..]) {
            let across = rest.dims()[1] / axis.nodes;
            rest = if across == 1 {
                (rest * square).sum_dim(1)
            } else {
                let rest = rest.reshape([rows, axis.nodes, across]);
                square.unsqueeze_dim::<3>(1).matmul(rest).squeeze_dim(1)
            };
        }
        rest
    }
}
