//! A mixed family as the last layer of a network: densities over real and Boolean variables at once.
//!
//! The core computes log-densities and their gradients with respect to the parameters together, in float64 and on the
//! CPU, whatever the precision and the device of the network. They become a tensor with a gradient of its own:
//!
//! ```text
//! log_prob + sum_k (row_k - constant(row_k)) G_k
//! ```
//!
//! has these values, because the difference is exactly zero, and these gradients.

use burn::tensor::{Tensor, TensorData};
use pal::density::DensityError;
use pal::mixed::{MixedDensity, MixedFamily};

use crate::predictor::to_f64_vec;

/// A family of densities over real and Boolean variables as the last layer of a network.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use pal::density::SplineSettings;
/// use pal::formula::{Formula, reals};
/// use pal::{mixed::MixedFamily, region::Region};
/// use pal_burn::MixedLayer;
///
/// let [x] = reals(["x"]);
/// let wet = Formula::boolean("wet");
/// let phi = x.between(0, 4) & (!wet | x.le(1));
/// let family = MixedFamily::new(&Region::new(&phi.into())?, &SplineSettings::default().into())?;
///
/// let device = Device::flex().autodiff();
/// let layer = MixedLayer::new(family);
/// let params = Tensor::<2>::zeros([2, layer.num_params()], (&device, DType::F64)).require_grad();
/// // A point has the real variables first, then a 0 or 1 for each Boolean one.
/// let loss = -layer.log_prob(params.clone(), &[0.5, 1.0, 3.0, 0.0])?.mean();
/// assert_eq!(params.grad(&loss.backward()).unwrap().dims(), [2, layer.num_params()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MixedLayer {
    family: MixedFamily,
}

impl MixedLayer {
    /// A layer with the densities of a family.
    pub fn new(family: MixedFamily) -> MixedLayer {
        MixedLayer { family }
    }

    /// Returns the family.
    pub fn family(&self) -> &MixedFamily {
        &self.family
    }

    /// Returns the number of parameters of one density: the outputs that a network needs.
    pub fn num_params(&self) -> usize {
        self.family.num_params()
    }

    /// Returns the log-density of each mixed point, minus infinity outside the constraint. There is one row of parameters
    /// for each point, or one for all of them. Parameters that are not finite give NaN.
    pub fn log_prob(&self, params: Tensor<2>, points: &[f64]) -> Result<Tensor<1>, DensityError> {
        let count = points.len() / self.family.support().columns();
        let (device, dtype) = (params.device(), params.dtype());
        let constant = params.clone().detach();
        let numbers = to_f64_vec(constant.clone());
        let values = |values: Vec<f64>| Tensor::<1>::from_data(TensorData::new(values, [count]), (&device, dtype));
        if numbers.iter().any(|x| !x.is_finite()) {
            return Ok(values(vec![f64::NAN; count]));
        }
        if !device.is_autodiff() {
            return Ok(values(self.family.log_prob(&numbers, points)?));
        }
        if params.dims()[0] == 1 && count > 1 {
            return self.log_prob(params.repeat_dim(0, count), points);
        }
        let (log_prob, gradient) = self.family.log_prob_rows(&numbers, points)?;
        let shape = [count, self.num_params()];
        let gradient = Tensor::<2>::from_data(TensorData::new(gradient, shape), (&device, dtype));
        Ok(values(log_prob) + ((params - constant) * gradient).sum_dim(1).squeeze_dim(1))
    }

    /// Returns the mean negative log-density of mixed points. Where one row of parameters is for all points, its
    /// normalising constant is computed once.
    pub fn loss(&self, params: Tensor<2>, points: &[f64]) -> Result<Tensor<1>, DensityError> {
        let (device, dtype) = (params.device(), params.dtype());
        let constant = params.clone().detach();
        let numbers = to_f64_vec(constant.clone());
        let one_for_all = params.dims()[0] == 1 && device.is_autodiff();
        if !one_for_all || numbers.iter().any(|x| !x.is_finite()) {
            return Ok(-self.log_prob(params, points)?.mean());
        }
        let logs = self.family.log_prob(&numbers, points)?;
        let each = -1.0 / logs.len().max(1) as f64;
        let gradient = self.family.log_prob_vjp(&numbers, points, &vec![each; logs.len()])?;
        let value = each * logs.iter().sum::<f64>();
        let value = Tensor::<1>::from_data(TensorData::new(vec![value], [1]), (&device, dtype));
        let shape = [1, self.num_params()];
        let gradient = Tensor::<2>::from_data(TensorData::new(gradient, shape), (&device, dtype));
        Ok(value + ((params - constant) * gradient).sum_dim(1).squeeze_dim(1))
    }

    /// Returns one density for each row of parameters.
    pub fn densities(&self, params: Tensor<2>) -> Result<Vec<MixedDensity>, DensityError> {
        self.family.densities(&to_f64_vec(params))
    }
}
