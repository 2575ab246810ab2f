//! The fused pass of the core as a tensor with a gradient of its own.
//!
//! On the CPU it takes the place of a dozen tensor operations: the core computes log-densities and their gradients G with
//! respect to the parameters at once, and
//!
//! ```text
//! log_prob + sum_k (row_k - constant(row_k)) G_k
//! ```
//!
//! has these values, because the difference is exactly zero, and these gradients. The tensor operations stay the
//! reference, and are what GPUs compute.

use burn::tensor::{DType, Device, Element, Tensor, TensorData};
use pal::density::{Precision, RowInput};

use super::{PalLayer, Points};

/// Returns the log-densities of one point per row of parameters, or of outputs for a Student t head; `None` where there
/// is no fused pass: on a GPU, for another kind of family, where one row is for all points, or where a number is not
/// finite, which the tensor operations turn into NaN.
pub(super) fn log_prob(layer: &PalLayer, input: RowInput, rows: &Tensor<2>, points: &Points) -> Option<Tensor<1>> {
    let count = rows.dims()[0];
    if layer.device != Device::flex() || !layer.family.has_kernel() || count != points.len() || count == 0 {
        return None;
    }
    match layer.dtype {
        DType::F32 => rows_of::<f32>(layer, input, rows, points),
        DType::F64 => rows_of::<f64>(layer, input, rows, points),
        _ => None,
    }
}

fn rows_of<T: Precision + Element>(
    layer: &PalLayer,
    input: RowInput,
    rows: &Tensor<2>,
    points: &Points,
) -> Option<Tensor<1>> {
    let [count, width] = rows.dims();
    let device = rows.device();
    let with_gradient = device.is_autodiff();
    let constant = rows.clone().detach();
    let numbers =
        constant.clone().into_data().convert::<T>().try_to_vec::<T>().expect("they were converted to this type");
    if numbers.iter().any(|x| !x.to_f64().is_finite()) {
        return None;
    }
    let computed = layer
        .family
        .log_prob_rows(input, &numbers, &points.coordinates, with_gradient)
        .expect("rows of outputs and points have the lengths that the layer asks for")?;
    let values = Tensor::<1>::from_data(TensorData::new(computed.log_prob, [count]), (&device, layer.dtype));
    let Some(gradient) = computed.gradient else { return Some(values) };
    let gradient = Tensor::<2>::from_data(TensorData::new(gradient, [count, width]), (&device, layer.dtype));
    Some(values + ((rows.clone() - constant) * gradient).sum_dim(1).squeeze_dim(1))
}
