//! From parameters to log-densities by tensor operations.

mod spline;
mod student_t;
mod sum_of_squares;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use pal::density::Density;
use pal::density::{DensityError, Family, Recipe};

use crate::device::{self, DeviceError, Work};
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
    compiled: Family,
    constants: Constants,
    device: Device,
    dtype: DType,
}

#[derive(Clone, Debug)]
enum Constants {
    Spline(SplineTensors),
    SumOfSquares(SumOfSquaresTensors),
}

/// Points of a batch as constants: what the layer needs to know of them.
#[derive(Clone, Debug)]
pub struct Points {
    features: Tensor<2>,
    /// Set where a point is outside the constraint; `None` if all are inside.
    outside: Option<Tensor<1, Bool>>,
}

impl Points {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.features.dims()[0]
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all of them satisfy the constraint.
    pub fn all_inside(&self) -> bool {
        self.outside.is_none()
    }
}

/// What a batch is worth.
#[derive(Clone, Debug)]
pub struct Likelihood {
    /// The log-density of each point.
    pub log_prob: Tensor<1>,
    /// The largest logarithm of an integral `I` behind each parameter vector: for splines of any of its components.
    pub log_integral: Tensor<1>,
}

impl PalLayer {
    /// The layer on a device, with constants of a precision: single, or double where the device does it right. A device that is wrong in one of the
    /// operations is refused, with the name of the operation; so are doubles on many GPUs.
    pub fn new(compiled: &Family, device: &Device, dtype: DType) -> Result<PalLayer, DeviceError> {
        // Constants take no part in gradients; they go with tensors that do.
        let device = device.clone().without_autodiff();
        device::check(&device, dtype, Work::LogSpace)?;
        let place = Place { device: &device, dtype };
        let constants = match compiled.recipe() {
            Recipe::Spline(recipe) => Constants::Spline(SplineTensors::new(&recipe, place)),
            Recipe::SumOfSquares(recipe) => Constants::SumOfSquares(SumOfSquaresTensors::new(&recipe, place)),
        };
        Ok(PalLayer { compiled: compiled.clone(), constants, device, dtype })
    }

    /// The family.
    pub fn compiled(&self) -> &Family {
        &self.compiled
    }

    /// How many outputs a network must have.
    pub fn num_params(&self) -> usize {
        self.compiled.num_params()
    }

    /// Prepares points, row by row.
    pub fn points(&self, points: &[f64]) -> Result<Points, DensityError> {
        let (features, inside) = self.compiled.features(points)?;
        let place = Place { device: &self.device, dtype: self.dtype };
        let features = place.matrix(features, inside.len(), self.compiled.family().num_features());
        let outside = inside.contains(&false).then(|| {
            let outside: Vec<bool> = inside.iter().map(|inside| !inside).collect();
            Tensor::<1, Bool>::from_data(TensorData::new(outside, [inside.len()]), &self.device)
        });
        Ok(Points { features, outside })
    }

    /// The log-density of each point: under its own row of `params`, or all under the only row. Minus infinity outside the constraint, with gradients of
    /// zero. Where the density is zero inside the constraint, the logarithm of the smallest number at hand, so that training can go on.
    ///
    /// # Panics
    ///
    /// As tensor operations do, if the shapes do not fit.
    pub fn log_prob(&self, params: Tensor<2>, points: &Points) -> Tensor<1> {
        let log_prob = self.likelihood(params, points).log_prob;
        match &points.outside {
            Some(outside) => log_prob.mask_fill(outside.clone(), f64::NEG_INFINITY),
            None => log_prob,
        }
    }

    /// The loss of the paper: the mean of minus the log-density, plus the mean of `(log I - 10)^2` where `log I > 10`, which keeps parameters in the range
    /// of numbers. Densities do not depend on the size of I.
    pub fn loss(&self, params: Tensor<2>, points: &Points) -> Tensor<1> {
        let Likelihood { log_prob, log_integral } = self.likelihood(params, points);
        let excess = (log_integral - 10.0).clamp_min(0.0);
        excess.square().mean() - log_prob.mean()
    }

    /// Log-densities of points that are inside the constraint, and integrals.
    pub fn likelihood(&self, params: Tensor<2>, points: &Points) -> Likelihood {
        match &self.constants {
            Constants::Spline(tensors) => tensors.likelihood(params, points.features.clone()),
            Constants::SumOfSquares(tensors) => tensors.likelihood(params, points.features.clone()),
        }
    }

    /// The densities of parameter vectors, for queries: samples, probabilities, modes.
    pub fn densities(&self, params: Tensor<2>) -> Result<Vec<Density>, DensityError> {
        let params: Vec<f64> = params.into_data_dtype(DType::F64).try_into_vec().unwrap_or_default();
        self.compiled.densities(&params)
    }
}

/// Where constants go.
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

/// The smallest number whose logarithm is taken: below it a value counts as zero.
pub(crate) fn tiny(dtype: DType) -> f64 {
    if dtype == DType::F64 { 1e-280 } else { 1e-35 }
}

/// The logarithm of the sum of exponentials along the second axis.
pub(crate) fn log_sum_exp(terms: Tensor<2>) -> Tensor<1> {
    let largest = terms.clone().detach().max_dim(1);
    let sum = (terms - largest.clone()).exp().sum_dim(1);
    (sum.log() + largest).squeeze_dim(1)
}
