//! Spline mixtures: products of squared cubic Hermite splines (PAL paper, Appendix B.2).

mod student_t;

use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use pal::density::{DensityError, Family, SplineAxis, SplineMixture, SplineRecipe};

use super::kind::{LayerKind, LayerParts};
use super::product::Factors;
use super::{LayerError, Likelihood, Normaliser, Placement, tiny};

pub use student_t::StudentTHead;

/// The constants of a [`SplineRecipe`] as tensors.
#[derive(Clone, Debug)]
pub(super) struct SplineLayer {
    components: usize,
    axes: Vec<AxisTensors>,
    /// The shape of the form: the nodes of the first axis down, those of all others across.
    form_shape: [usize; 2],
    log_volume: f64,
    dtype: DType,
}

#[derive(Clone, Debug)]
struct AxisTensors {
    params: usize,
    /// The matrix that takes values and derivatives at the knots to values at nodes.
    values: Tensor<2>,
}

/// Returns the recipe of a family of spline mixtures; `None` for another kind.
fn recipe(family: &Family) -> Option<SplineRecipe> {
    Some(family.downcast::<SplineMixture>()?.recipe())
}

impl SplineLayer {
    /// Makes the layer of a family of spline mixtures; `None` for another kind.
    pub fn from_family(family: &Family, placement: Placement) -> Option<Result<LayerParts, LayerError>> {
        Some(SplineLayer::from_recipe(recipe(family)?, placement))
    }

    fn from_recipe(recipe: SplineRecipe, placement: Placement) -> Result<LayerParts, LayerError> {
        let form = recipe.form.ok_or(LayerError::Form(DensityError::DenseForm))?;
        let axis = |axis: &SplineAxis| AxisTensors {
            params: axis.params,
            values: placement.matrix(axis.values.clone(), axis.params, axis.nodes),
        };
        let first = recipe.axes.first().expect("a family has at least one variable").nodes;
        let form_shape = [first, form.len() / first];
        let layer = SplineLayer {
            components: recipe.components,
            axes: recipe.axes.iter().map(axis).collect(),
            form_shape,
            log_volume: recipe.log_volume,
            dtype: placement.dtype,
        };
        Ok((Arc::new(layer), Normaliser::dense(placement.matrix(form, form_shape[0], form_shape[1]))))
    }
}

impl LayerKind for SplineLayer {
    fn form_shape(&self) -> [usize; 2] {
        self.form_shape
    }

    fn likelihood(&self, theta: Tensor<2>, features: Tensor<2>, normaliser: &Normaliser) -> Likelihood {
        let [rows, width] = theta.dims();
        let (components, per) = (self.components, width / self.components);
        let all = theta.reshape([rows, components, per]);
        let logits: Tensor<2> = all.clone().slice([0..rows, 0..components, 0..1]).squeeze_dim(2);
        let tiny = tiny(self.dtype);
        let (mut log_values, mut log_scales, mut coefficients) = (Vec::new(), Vec::new(), Vec::new());
        let count = features.dims()[0];
        let mut at = 0;
        for axis in &self.axes {
            let theta = all.clone().slice([0..rows, 0..components, at + 1..at + 1 + axis.params]);
            // Densities do not depend on the scale of a spline, so the gradient through it is zero and need not be
            // computed.
            let scale = theta.clone().detach().abs().max_dim(2).clamp_min(tiny);
            let theta = theta / scale.clone();
            let scale: Tensor<2> = scale.squeeze_dim(2);
            log_scales.push(scale.log() * 2.0);
            let features = features.clone().slice([0..count, at..at + axis.params]);
            let flat = theta.clone().reshape([rows * components, axis.params]);
            let value = if rows == 1 {
                features.matmul(flat.clone().transpose())
            } else {
                (theta * features.unsqueeze_dim::<3>(1)).sum_dim(2).squeeze_dim(2)
            };
            log_values.push(value.abs().clamp_min(tiny).log() * 2.0);
            coefficients.push(flat.matmul(axis.values.clone()).square());
            at += axis.params;
        }
        Factors { logits, log_values, log_scales, coefficients }.likelihood(normaliser, self.log_volume, tiny)
    }
}
