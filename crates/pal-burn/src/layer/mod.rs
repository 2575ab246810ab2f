//! The layer: a family of densities as the last layer of a network.
//!
//! Whatever depends on points alone is computed by the core in float64: exact membership, and the features in which
//! log-densities are linear before squares and logarithms. Whatever depends on parameters is done here by tensor
//! operations, with the constants of the recipe of the family.
//!
//! Every kind of family has a module of its own, which implements [`LayerKind`](kind::LayerKind); `kind` lists them.
//! The [`Normaliser`] is a value beside the layer: the same parameters and points can be normalised on another region
//! of the same grid, and every row of a batch can have a region of its own.

mod fused;
mod histogram;
mod kind;
mod mixed;
mod normaliser;
mod product;
mod spline;
mod sum_of_squares;

use std::sync::{Arc, OnceLock};

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use pal::density::{Density, DensityError, Family, RegionForms, RowInput};
use pal::formula::Formula;
use pal::query::QueryError;
use thiserror::Error;

use crate::device::{self, DeviceError, Work};
use crate::predictor::to_f64_vec;
use kind::LayerKind;

pub use mixed::MixedLayer;
pub use normaliser::Normaliser;
pub use spline::StudentTHead;

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
    kind: Arc<dyn LayerKind>,
    normaliser: Normaliser,
    /// What is added to every row of parameters ([`Family::offset`]).
    offset: Tensor<2>,
    device: Device,
    dtype: DType,
}

/// Why there is no layer for a family on a device.
#[derive(Clone, Debug, Error)]
pub enum LayerError {
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The family is too large for tensor operations.
    #[error(transparent)]
    Form(DensityError),
    /// The kind of family is not one of those that have a layer.
    #[error("this kind of family has no layer")]
    Kind,
}

/// The points of a batch, prepared for a layer: their features, and which of them are outside the constraint.
#[derive(Clone, Debug)]
pub struct Points {
    /// The coordinates, row by row.
    coordinates: Arc<[f64]>,
    /// Computed when first needed: the fused pass does without.
    features: Arc<OnceLock<Tensor<2>>>,
    /// False where a point is outside the constraint.
    inside: Vec<bool>,
    /// The opposite as a tensor; `None` if all points are inside.
    outside: Option<Tensor<1, Bool>>,
    device: Device,
}

impl Points {
    fn new(coordinates: Arc<[f64]>, inside: Vec<bool>, device: &Device) -> Points {
        let outside = inside.contains(&false).then(|| {
            let outside: Vec<bool> = inside.iter().map(|inside| !inside).collect();
            Tensor::<1, Bool>::from_data(TensorData::new(outside, [inside.len()]), device)
        });
        Points { coordinates, features: Arc::default(), inside, outside, device: device.clone() }
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// Returns whether all points satisfy the constraint.
    pub fn all_inside(&self) -> bool {
        self.outside.is_none()
    }

    /// Returns the points with those marked `false` outside, in addition to those that are outside already: the points
    /// for a [`Normaliser`] of a smaller region.
    ///
    /// # Panics
    ///
    /// If there is not one mark per point.
    pub fn restrict(&self, inside: &[bool]) -> Points {
        assert_eq!(inside.len(), self.len(), "one mark per point");
        let both = self.inside.iter().zip(inside).map(|(before, now)| *before && *now).collect();
        Points { features: self.features.clone(), ..Points::new(self.coordinates.clone(), both, &self.device) }
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
    pub fn new(family: &Family, device: &Device, dtype: DType) -> Result<PalLayer, LayerError> {
        // Constants have no gradients, but can be combined with tensors that do.
        let device = device.clone().without_autodiff();
        device::check(&device, dtype, Work::LogSpace)?;
        let placement = Placement { device: &device, dtype };
        let (kind, normaliser) = kind::layer_kind(family, placement)?;
        let offset = placement.matrix(family.offset().to_vec(), 1, family.num_params());
        Ok(PalLayer { family: family.clone(), kind, normaliser, offset, device, dtype })
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
        self.family.check_points(points)?;
        Ok(Points::new(points.into(), self.family.contains(points), &self.device))
    }

    /// Returns the features of points.
    fn features(&self, points: &Points) -> Tensor<2> {
        let features = points.features.get_or_init(|| {
            let (features, inside) =
                self.family.features(&points.coordinates).expect("the points come in rows of coordinates");
            self.placement().matrix(features, inside.len(), self.family.kind().num_features())
        });
        features.clone()
    }

    /// Returns the normaliser of the constraint of the family, which [`PalLayer::log_prob`] uses.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Compiles the normaliser of the part of the constraint where a condition holds.
    ///
    /// With it, [`PalLayer::log_prob_with`] returns the log-density of the same parameters on the smaller region: the
    /// one of a family compiled on that region with the same grid. For one component and for sums of squares it is also
    /// the conditional density given the condition; conditioning a mixture would change the weights of its components
    /// too.
    ///
    /// ```
    /// use burn::tensor::{DType, Device, Tensor};
    /// use pal::density::{Family, Knots, Settings, SplineSettings};
    /// use pal::{formula::reals, region::Region};
    /// use pal_burn::{PalLayer, to_f64_vec};
    ///
    /// let [x, y] = reals(["x", "y"]);
    /// let square = Region::new(&(x.between(0, 1) & y.between(0, 1)).into())?;
    /// let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 1 });
    /// let family = Family::new(&square, &settings)?;
    /// let layer = PalLayer::new(&family, &Device::flex(), DType::F64)?;
    /// // Zeros: the uniform density.
    /// let params = Tensor::zeros([1, layer.num_params()], (&Device::flex(), DType::F64));
    /// let points = layer.points(&[0.2, 0.6])?;
    /// let half = layer.normaliser_within(&x.le(&y))?;
    /// let log_prob = to_f64_vec(layer.log_prob_with(params, &points, &half));
    /// assert!((log_prob[0] - 2f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn normaliser_within(&self, condition: &Formula) -> Result<Normaliser, QueryError> {
        let form = self.family.normaliser_tensor(condition, &[])?;
        let [rows, columns] = self.kind.form_shape();
        Ok(Normaliser::dense(self.placement().matrix(form, rows, columns)))
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
        assert_eq!(params.dims()[1], self.num_params(), "a row has one number per parameter");
        match fused::log_prob(self, RowInput::Parameters, &params, points) {
            Some(log_prob) => mask(log_prob, points),
            None => self.log_prob_with(params, points, &self.normaliser),
        }
    }

    /// Returns the log-density of each point like [`PalLayer::log_prob`], for outputs of a network that go through a
    /// head. On the CPU, head and layer are one pass.
    ///
    /// # Panics
    ///
    /// If `outputs` has neither one row nor one per point, or not [`StudentTHead::num_params`] columns.
    pub fn log_prob_of_outputs(&self, head: &StudentTHead, outputs: Tensor<2>, points: &Points) -> Tensor<1> {
        assert_eq!(outputs.dims()[1], head.num_params(), "a row has as many outputs as the head asks for");
        match fused::log_prob(self, RowInput::StudentT, &outputs, points) {
            Some(log_prob) => mask(log_prob, points),
            None => self.log_prob(head.params(outputs), points),
        }
    }

    /// Returns the loss like [`PalLayer::loss`], for outputs of a network that go through a head.
    pub fn loss_of_outputs(&self, head: &StudentTHead, outputs: Tensor<2>, points: &Points) -> Tensor<1> {
        assert_eq!(outputs.dims()[1], head.num_params(), "a row has as many outputs as the head asks for");
        match fused::log_prob(self, RowInput::StudentT, &outputs, points) {
            Some(log_prob) if points.all_inside() => -log_prob.mean(),
            _ => self.loss(head.params(outputs), points),
        }
    }

    /// Returns the log-density of each point under its own row of `params`, on the region of that row
    /// ([`Family::on_regions`]). The core computes it together with its gradient, on the CPU whatever the device.
    ///
    /// It is minus infinity outside the region of the row, with a gradient of zero; all are NaN if a parameter is not
    /// finite.
    ///
    /// ```
    /// use burn::tensor::{DType, Device, Tensor};
    /// use pal::density::{Family, Knots, Settings, SplineSettings};
    /// use pal::{formula::reals, region::{Region, RegionMap}};
    /// use pal_burn::{PalLayer, to_f64_vec};
    ///
    /// let [x, y] = reals(["x", "y"]);
    /// let square = Region::new(&(x.between(-1, 1) & y.between(-1, 1)).into())?;
    /// let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(4), components: 1 });
    /// let layer = PalLayer::new(&Family::new(&square, &settings)?, &Device::flex(), DType::F64)?;
    /// // Two windows of a hall: one in the middle, and one in a corner, where a quarter of it is free.
    /// let hall = RegionMap::new(&Region::new(&(x.between(0, 9) & y.between(0, 6)).into())?)?;
    /// let views = hall.windows(&[4.0, 3.0, 0.0, 0.0], &[1.0], None, None)?;
    /// let regions = layer.family().on_regions(&views)?;
    /// // Zeros of a single component are the uniform density of each row.
    /// let params = Tensor::zeros([2, layer.num_params()], (&Device::flex(), DType::F64));
    /// let log_prob = to_f64_vec(layer.log_prob_on(params, &[0.5, 0.5, 0.5, 0.5], &regions)?);
    /// assert!((log_prob[0] + 4f64.ln()).abs() < 1e-12 && log_prob[1].abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If `params` does not have one row per region and [`PalLayer::num_params`] columns.
    pub fn log_prob_on(
        &self,
        params: Tensor<2>,
        points: &[f64],
        regions: &RegionForms,
    ) -> Result<Tensor<1>, DensityError> {
        assert_eq!(params.dims(), [regions.len(), self.num_params()], "one row of parameters for each region");
        fused::log_prob_on(self, RowInput::Parameters, &params, points, regions)
    }

    /// Returns log-densities like [`PalLayer::log_prob_on`], for outputs of a network that go through a head.
    ///
    /// # Panics
    ///
    /// If `outputs` does not have one row per region and [`StudentTHead::num_params`] columns.
    pub fn log_prob_of_outputs_on(
        &self,
        head: &StudentTHead,
        outputs: Tensor<2>,
        points: &[f64],
        regions: &RegionForms,
    ) -> Result<Tensor<1>, DensityError> {
        assert_eq!(outputs.dims(), [regions.len(), head.num_params()], "one row of outputs for each region");
        fused::log_prob_on(self, RowInput::StudentT, &outputs, points, regions)
    }

    /// Returns log-densities like [`PalLayer::log_prob`], normalised by a normaliser of another region on the same
    /// grid.
    ///
    /// Points must be marked as outside where they are outside that region ([`Points::restrict`]).
    ///
    /// # Panics
    ///
    /// If the shapes of `params` and `points` do not fit, or the normaliser has neither one row nor one per row of
    /// `params`.
    pub fn log_prob_with(&self, params: Tensor<2>, points: &Points, normaliser: &Normaliser) -> Tensor<1> {
        mask(self.likelihood(params, points, normaliser).log_prob, points)
    }

    /// Returns the loss of the PAL paper (Appendix B.3): the mean negative log-likelihood, plus the mean of
    /// `(log I - 10)^2` over the rows with `log I > 10`, where I is the normalising constant, relative to the volume of
    /// the box.
    ///
    /// Densities hardly depend on the scale of large parameters; the penalty keeps I in the range of floating-point
    /// numbers. Spline mixtures scale their parameters themselves, so that the fused pass does without the penalty.
    pub fn loss(&self, params: Tensor<2>, points: &Points) -> Tensor<1> {
        assert_eq!(params.dims()[1], self.num_params(), "a row has one number per parameter");
        if points.all_inside()
            && let Some(log_prob) = fused::log_prob(self, RowInput::Parameters, &params, points)
        {
            return -log_prob.mean();
        }
        self.loss_with(params, points, &self.normaliser)
    }

    /// Returns the loss like [`PalLayer::loss`], normalised as by [`PalLayer::log_prob_with`].
    pub fn loss_with(&self, params: Tensor<2>, points: &Points, normaliser: &Normaliser) -> Tensor<1> {
        let Likelihood { log_prob, log_integral } = self.likelihood(params, points, normaliser);
        let log_volume = self.family.log_box_measure();
        let excess = (log_integral - (10.0 + log_volume)).clamp_min(0.0);
        excess.square().mean() - log_prob.mean()
    }

    /// Returns log-densities and normalising constants. Unlike [`PalLayer::log_prob_with`] it does not look at whether
    /// points are inside the constraint.
    pub fn likelihood(&self, params: Tensor<2>, points: &Points, normaliser: &Normaliser) -> Likelihood {
        let rows = normaliser.rows();
        assert!(rows == 1 || rows == params.dims()[0], "a normaliser has one row, or one per row of parameters");
        self.kind.likelihood(params + self.offset.clone(), self.features(points), normaliser)
    }

    /// Returns the density of each row of parameters, for queries: samples, probabilities, modes.
    pub fn densities(&self, params: Tensor<2>) -> Result<Vec<Density>, DensityError> {
        self.family.densities(&to_f64_vec(params))
    }

    fn placement(&self) -> Placement<'_> {
        Placement { device: &self.device, dtype: self.dtype }
    }
}

/// Puts minus infinity where points are outside.
fn mask(log_prob: Tensor<1>, points: &Points) -> Tensor<1> {
    match &points.outside {
        Some(outside) => log_prob.mask_fill(outside.clone(), f64::NEG_INFINITY),
        None => log_prob,
    }
}

/// The device and precision of constants.
#[derive(Clone, Copy)]
struct Placement<'d> {
    device: &'d Device,
    dtype: DType,
}

impl Placement<'_> {
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
