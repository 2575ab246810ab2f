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
use pal::density::{DensityError, Precision, RegionForms, RegionPrecision, RowInput, RowLogProb};

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
    Some(with_gradient_of(rows, constant, computed, layer.dtype))
}

/// Log-densities as a tensor whose gradients with respect to the rows are those that were computed with them.
fn with_gradient_of<T: Element>(
    rows: &Tensor<2>,
    constant: Tensor<2>,
    computed: RowLogProb<T>,
    dtype: DType,
) -> Tensor<1> {
    let ([count, width], device) = (rows.dims(), rows.device());
    let values = Tensor::<1>::from_data(TensorData::new(computed.log_prob, [count]), (&device, dtype));
    let Some(gradient) = computed.gradient else { return values };
    let gradient = Tensor::<2>::from_data(TensorData::new(gradient, [count, width]), (&device, dtype));
    values + ((rows.clone() - constant) * gradient).sum_dim(1).squeeze_dim(1)
}

/// Returns the log-densities of one point per row on the regions of the rows.
pub(super) fn log_prob_on(
    layer: &PalLayer,
    input: RowInput,
    rows: &Tensor<2>,
    points: &[f64],
    regions: &RegionForms,
) -> Result<Tensor<1>, DensityError> {
    match layer.dtype {
        DType::F64 => rows_on::<f64>(layer, input, rows, points, regions),
        _ => rows_on::<f32>(layer, input, rows, points, regions),
    }
}

fn rows_on<T: RegionPrecision + Element>(
    layer: &PalLayer,
    input: RowInput,
    rows: &Tensor<2>,
    points: &[f64],
    regions: &RegionForms,
) -> Result<Tensor<1>, DensityError> {
    let device = rows.device();
    let constant = rows.clone().detach();
    let numbers =
        constant.clone().into_data().convert::<T>().try_to_vec::<T>().expect("they were converted to this type");
    if numbers.iter().any(|x| !x.to_f64().is_finite()) {
        let nan = TensorData::new(vec![f64::NAN; regions.len()], [regions.len()]);
        return Ok(Tensor::from_data(nan, (&device, layer.dtype)));
    }
    let computed = regions.log_prob_rows(input, &numbers, points, device.is_autodiff())?;
    Ok(with_gradient_of(rows, constant, computed, layer.dtype))
}
