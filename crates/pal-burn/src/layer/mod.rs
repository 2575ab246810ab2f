//! The layer: from parameters of a family to log-densities by tensor operations.

mod spline;
mod student_t;
mod sum_of_squares;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use pal::density::{Density, DensityError, Family, Recipe};

use crate::device::{self, DeviceError, Work};
use crate::predictor::to_f64_vec;
use spline::SplineTensors;
pub use student_t::StudentTHead;
use sum_of_squares::SumOfSquaresTensors;

/// A family of densities as the last layer of a network.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use pal::density::{Family, Knots, Settings, SplineSettings};
/// use pal::{formula::reals, region::Region};
/// use pal_burn::PalLayer;
///
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let family = Family::new(&triangle, &Settings::Spline(SplineSettings { knots: Knots::Uniform(4), components: 2 }))?;
///
/// let device = Device::flex().autodiff();
/// let layer = PalLayer::new(&family, &device, DType::F64)?;
/// let params = Tensor::<2>::ones([1, layer.num_params()], (&device, DType::F64)).require_grad();
/// let points = layer.points(&[0.25, 0.25, 0.1, 0.6])?;
/// let loss = -layer.log_prob(params.clone(), &points).mean();
/// let gradient = params.grad(&loss.backward()).unwrap();
/// assert_eq!(gradient.dims(), [1, layer.num_params()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PalLayer {
    family: Family,
    constants: Constants,
    device: Device,
    dtype: DType,
}

#[derive(Clone, Debug)]
enum Constants {
    Spline(SplineTensors),
    SumOfSquares(SumOfSquaresTensors),
}

/// The points of a batch, prepared for a layer: their features, and which of them are outside the constraint.
#[derive(Clone, Debug)]
pub struct Points {
    features: Tensor<2>,
    /// Set where a point is outside the constraint; `None` if all are inside.
    outside: Option<Tensor<1, Bool>>,
}

impl Points {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.features.dims()[0]
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all points satisfy the constraint.
    pub fn all_inside(&self) -> bool {
        self.outside.is_none()
    }
}

/// The log-densities of a batch and the normalising constants behind them.
#[derive(Clone, Debug)]
pub struct Likelihood {
    /// The log-density of each point.
    pub log_prob: Tensor<1>,
    /// For each parameter vector the logarithm of its normalising constant; for mixtures the largest one of a
    /// component.
    pub log_integral: Tensor<1>,
}

impl PalLayer {
    /// Puts the constants of a family on a device, in float32 or float64.
    ///
    /// A device that computes one of the operations wrongly in that precision is refused, with the name of the
    /// operation; many GPUs do so in float64.
    pub fn new(family: &Family, device: &Device, dtype: DType) -> Result<PalLayer, DeviceError> {
        // Constants have no gradients, but can be combined with tensors that do.
        let device = device.clone().without_autodiff();
        device::check(&device, dtype, Work::LogSpace)?;
        let place = Place { device: &device, dtype };
        let constants = match family.recipe() {
            Recipe::Spline(recipe) => Constants::Spline(SplineTensors::new(&recipe, place)),
            Recipe::SumOfSquares(recipe) => Constants::SumOfSquares(SumOfSquaresTensors::new(&recipe, place)),
        };
        Ok(PalLayer { family: family.clone(), constants, device, dtype })
    }

    /// Returns the family.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// Returns the length of a parameter vector: the number of outputs that a network in front of the layer must have.
    pub fn num_params(&self) -> usize {
        self.family.num_params()
    }

    /// Prepares points, given row by row in the order of the variables of the constraint.
    pub fn points(&self, points: &[f64]) -> Result<Points, DensityError> {
        let (features, inside) = self.family.features(points)?;
        let place = Place { device: &self.device, dtype: self.dtype };
        let features = place.matrix(features, inside.len(), self.family.family().num_features());
        let outside = inside.contains(&false).then(|| {
            let outside: Vec<bool> = inside.iter().map(|inside| !inside).collect();
            Tensor::<1, Bool>::from_data(TensorData::new(outside, [inside.len()]), &self.device)
        });
        Ok(Points { features, outside })
    }

    /// Returns the log-density of each point, under its own row of `params` or, where `params` has one row, under that.
    ///
    /// It is minus infinity outside the constraint, with a gradient of zero. Where the density vanishes inside the
    /// constraint, it is the logarithm of a very small number instead, so that training can continue.
    ///
    /// # Panics
    ///
    /// If `params` has neither one row nor one per point, or not [`PalLayer::num_params`] columns.
    pub fn log_prob(&self, params: Tensor<2>, points: &Points) -> Tensor<1> {
        let log_prob = self.likelihood(params, points).log_prob;
        match &points.outside {
            Some(outside) => log_prob.mask_fill(outside.clone(), f64::NEG_INFINITY),
            None => log_prob,
        }
    }

    /// Returns the loss of the PAL paper (Appendix B.3): the mean negative log-likelihood, plus the mean of
    /// `(log I - 10)^2` over the rows with `log I > 10`, where I is the normalising constant.
    ///
    /// Densities do not depend on the scale of the parameters; the penalty keeps I in the range of floating-point
    /// numbers.
    pub fn loss(&self, params: Tensor<2>, points: &Points) -> Tensor<1> {
        let Likelihood { log_prob, log_integral } = self.likelihood(params, points);
        let excess = (log_integral - 10.0).clamp_min(0.0);
        excess.square().mean() - log_prob.mean()
    }

    /// Returns log-densities and normalising constants. Unlike [`PalLayer::log_prob`] it does not look at whether
    /// points are inside the constraint.
    pub fn likelihood(&self, params: Tensor<2>, points: &Points) -> Likelihood {
        match &self.constants {
            Constants::Spline(tensors) => tensors.likelihood(params, points.features.clone()),
            Constants::SumOfSquares(tensors) => tensors.likelihood(params, points.features.clone()),
        }
    }

    /// Returns the density of each row of parameters, for queries: samples, probabilities, modes.
    pub fn densities(&self, params: Tensor<2>) -> Result<Vec<Density>, DensityError> {
        self.family.densities(&to_f64_vec(params))
    }
}

/// The device and precision of constants.
#[derive(Clone, Copy)]
struct Place<'d> {
    device: &'d Device,
    dtype: DType,
}

impl Place<'_> {
    fn matrix(&self, values: Vec<f64>, rows: usize, columns: usize) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values, [rows, columns]), (self.device, self.dtype))
    }
}

/// Returns the smallest number whose logarithm is taken; smaller values count as zero.
pub(crate) fn tiny(dtype: DType) -> f64 {
    if dtype == DType::F64 { 1e-280 } else { 1e-35 }
}

/// Computes the logarithm of the sum of exponentials of each row.
pub(crate) fn log_sum_exp(terms: Tensor<2>) -> Tensor<1> {
    let largest = terms.clone().detach().max_dim(1);
    let sum = (terms - largest.clone()).exp().sum_dim(1);
    (sum.log() + largest).squeeze_dim(1)
}
