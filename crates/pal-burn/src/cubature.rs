//! GASP! cubature as tensor operations: integrals of polynomials on any device (PAL paper, Section 4 and Appendix C).
//!
//! The constants come from the core ([`CubatureConstants`]): points and weights of the Grundmann-Moeller rule, vertices
//! and sizes of the simplices. With s simplices, p points and t monomials in n variables,
//!
//! 1. the points on all simplices are one matrix product, (p x n+1) times (n+1 x n s);
//! 2. powers of each coordinate are made by repeated multiplication, and monomials, p x t x s, are products of powers;
//! 3. the sums over points are one matrix product, (2 x p) times (p x t s), with the positive weights in one row and
//!    the negative ones in the other, so that what cancels is summed apart; then come sums over simplices, weighted by
//!    size.
//!
//! There is no division, root, exponential or logarithm in it, so float64 is right even on devices that get those
//! wrong. Simplices, points and monomials are taken in blocks, which limits the memory; the few sums of each block are
//! added up in float64 with compensation.
//!
//! ```
//! use burn::tensor::{DType, Device};
//! use pal::{polynomial::Polynomial, region::Region, shapes};
//! use pal_burn::cubature;
//!
//! let cube = Region::new(&shapes::cube(3))?;
//! let integral = cubature::integrate(&cube, &Polynomial::parse("x1*x2*x3")?, &Device::flex(), DType::F64)?;
//! assert!((integral.value - 0.125).abs() <= integral.rounding_error, "{integral:?}");
//! assert!(integral.rounding_error < 1e-12, "{integral:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use pal::moments::gasp::{CubatureConstants, GaspError};
use pal::polynomial::Polynomial;
use pal::region::Region;
use thiserror::Error;

use crate::device::{self, DeviceError, Work};

/// Why there is no integral.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CubatureError {
    /// The region or the polynomial cannot be integrated.
    #[error(transparent)]
    Integral(#[from] GaspError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device failed during the integration.
    #[error("{device} failed during the integration: {message}; smaller blocks may help, or the CPU")]
    Execution {
        /// The name of the device.
        device: String,
        /// The message of the driver.
        message: String,
    },
}

/// An integral with an error bound and the size of the cubature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integral {
    /// The integral.
    pub value: f64,
    /// A bound on the rounding error, provided that the device rounds products and sums correctly.
    pub rounding_error: f64,
    /// The number of simplices of the region.
    pub simplices: usize,
    /// The number of points of the rule on each simplex.
    pub points: usize,
}

/// How much is computed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The largest number of values of monomials at points on simplices that are held at a time.
    pub values: usize,
    /// The largest number of simplices in a block. The device sums over simplices and over points in its own precision,
    /// so that large blocks cost digits.
    pub simplices: usize,
    /// The largest number of points in a block.
    pub points: usize,
    /// The largest number of monomials in a block.
    pub monomials: usize,
}

impl Default for Blocks {
    /// At most 32 megabytes of values in float64; temporary tensors need a few times that.
    fn default() -> Blocks {
        Blocks { values: 1 << 22, simplices: 1 << 10, points: 1 << 10, monomials: 1 << 8 }
    }
}

/// Integrates a polynomial over a region, summed over the assignments of its Boolean variables.
pub fn integrate(
    region: &Region,
    polynomial: &Polynomial,
    device: &Device,
    dtype: DType,
) -> Result<Integral, CubatureError> {
    integrate_in_blocks(region, polynomial, device, dtype, Blocks::default())
}

/// Integrates like [`integrate`], with blocks of given sizes. They change the result within its error bound only.
pub fn integrate_in_blocks(
    region: &Region,
    polynomial: &Polynomial,
    device: &Device,
    dtype: DType,
    blocks: Blocks,
) -> Result<Integral, CubatureError> {
    let device = device.clone().without_autodiff();
    device::check(&device, dtype, Work::Products)?;
    let recipe = CubatureConstants::new(region, polynomial)?;
    let cubature = Cubature { recipe: &recipe, device: &device, dtype, blocks };
    let moments = cubature.moments().map_err(|message| {
        let device = device::name(&device);
        CubatureError::Execution { device, message }
    })?;
    let mut total = Sum::default();
    let mut rounding_error = 0.0;
    for ((alpha, c), moment) in recipe.terms.iter().zip(&moments) {
        total.add(c * moment.value());
        rounding_error += c.abs() * moment.magnitude * cubature.error(alpha);
    }
    let value = total.value();
    if !value.is_finite() {
        return Err(GaspError::Overflow.into());
    }
    Ok(Integral { value, rounding_error, simplices: recipe.sizes.len(), points: recipe.rule.len() })
}

struct Cubature<'r> {
    recipe: &'r CubatureConstants,
    device: &'r Device,
    dtype: DType,
    blocks: Blocks,
}

/// A moment (the integral of a monomial), as the cubature sums it.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// The sum over points of positive weight.
    positive: Sum,
    /// The sum over points of negative weight.
    negative: Sum,
    /// The same sum with absolute values of weights and coordinates: what errors are measured against.
    magnitude: f64,
}

impl Moment {
    fn value(&self) -> f64 {
        self.positive.value() + self.negative.value()
    }
}

/// The indices of what is computed at a time.
struct Block {
    simplices: Range<usize>,
    points: Range<usize>,
    monomials: Range<usize>,
}

impl Cubature<'_> {
    /// Returns the moments of the monomials of all terms.
    fn moments(&self) -> Result<Vec<Moment>, String> {
        let mut moments = vec![Moment::default(); self.recipe.terms.len()];
        if self.recipe.dimension == 0 {
            // Without variables a region is a number of points, and every term is a constant.
            let total = self.recipe.sizes.iter().sum();
            moments.iter_mut().for_each(|moment| {
                moment.positive.add(total);
                moment.magnitude = total;
            });
            return Ok(moments);
        }
        for block in self.split() {
            let [sums, magnitudes] = [false, true].map(|absolute| self.sums(&block, absolute));
            let (sums, magnitudes) = (sums?, magnitudes?);
            let count = block.monomials.len();
            for (k, moment) in moments[block.monomials.clone()].iter_mut().enumerate() {
                moment.positive.add(sums[k]);
                moment.negative.add(sums[count + k]);
                moment.magnitude += magnitudes[k] + magnitudes[count + k];
            }
        }
        Ok(moments)
    }

    fn split(&self) -> Vec<Block> {
        let ranges = |all: usize, most: usize| -> Vec<Range<usize>> {
            let most = most.max(1);
            (0..all).step_by(most).map(|start| start..(start + most).min(all)).collect()
        };
        let (points, monomials) = (self.recipe.rule.len(), self.recipe.terms.len());
        let each = self.blocks.points.clamp(1, points.max(1)) * self.blocks.monomials.clamp(1, monomials.max(1));
        let mut blocks = Vec::new();
        let together = self.blocks.simplices.min(self.blocks.values / each);
        for simplices in ranges(self.recipe.sizes.len(), together) {
            for points in ranges(points, self.blocks.points) {
                for monomials in ranges(monomials, self.blocks.monomials) {
                    blocks.push(Block { simplices: simplices.clone(), points: points.clone(), monomials });
                }
            }
        }
        blocks
    }

    /// Returns the sums of a block: of each monomial over points of positive weight, then of each over those of
    /// negative weight. With `absolute`, weights and coordinates are replaced by their absolute values.
    fn sums(&self, block: &Block, absolute: bool) -> Result<Vec<f64>, String> {
        let (n, rule) = (self.recipe.dimension, &self.recipe.rule);
        let sign = |x: f64| if absolute { x.abs() } else { x };
        let (p, t, s) = (block.points.len(), block.monomials.len(), block.simplices.len());
        let barycentric = block.points.clone().flat_map(|at| rule.barycentric(at)).collect();
        let corner = |i: usize, axis: usize, simplex: usize| self.recipe.vertices[(simplex * (n + 1) + i) * n + axis];
        let corners = (0..=n).flat_map(|i| (0..n).map(move |axis| (i, axis)));
        let corners = corners.flat_map(|(i, axis)| block.simplices.clone().map(move |k| sign(corner(i, axis, k))));
        // The matrix of corners has one row per corner, and in it for each axis all simplices.
        let coordinates = self.matrix(barycentric, p).matmul(self.matrix(corners.collect(), n + 1));
        let exponents = &self.recipe.terms[block.monomials.clone()];
        let mut monomials: Option<Tensor<3>> = None;
        for axis in 0..n {
            let exponents: Vec<i64> = exponents.iter().map(|(alpha, _)| i64::from(alpha[axis])).collect();
            let highest = exponents.iter().copied().max().unwrap_or(0);
            if highest == 0 {
                continue;
            }
            let x: Tensor<3> = coordinates.clone().slice([0..p, axis * s..(axis + 1) * s]).reshape([p, 1, s]);
            let mut powers = vec![x.ones_like(), x.clone()];
            for e in 1..highest as usize {
                powers.push(powers[e].clone() * x.clone());
            }
            let exponents = Tensor::<1, Int>::from_data(TensorData::new(exponents, [t]), self.device);
            let chosen = Tensor::cat(powers, 1).select(1, exponents);
            monomials = Some(match monomials {
                Some(product) => product * chosen,
                None => chosen,
            });
        }
        let monomials = match monomials {
            Some(monomials) => monomials.reshape([p, t * s]),
            // All terms of the block are constants.
            None => Tensor::ones([p, t * s], (self.device, self.dtype)),
        };
        let weight = |at: usize, positive: bool| {
            let weight = rule.weight(at);
            if (weight > 0.0) == positive { sign(weight) } else { 0.0 }
        };
        let weights = [true, false].iter().flat_map(|positive| block.points.clone().map(|at| weight(at, *positive)));
        let sums = self.matrix(weights.collect(), 2).matmul(monomials).reshape([2 * t, s]);
        let sizes = self.matrix(self.recipe.sizes[block.simplices.clone()].to_vec(), 1);
        let sums = (sums * sizes).sum_dim(1);
        let data = sums.try_into_data_dtype(DType::F64).map_err(|error| error.to_string())?;
        data.try_into_vec().map_err(|error| format!("{error:?}"))
    }

    fn matrix(&self, values: Vec<f64>, rows: usize) -> Tensor<2> {
        let columns = values.len() / rows;
        Tensor::from_data(TensorData::new(values, [rows, columns]), (self.device, self.dtype))
    }

    /// Returns a bound on the error of a moment as a fraction of its magnitude: the number of roundings that a summand
    /// goes through, times the unit roundoff.
    fn error(&self, alpha: &[u16]) -> f64 {
        let (n, degree) = (self.recipe.dimension as f64, alpha.iter().map(|a| f64::from(*a)).sum::<f64>());
        let most = |all: usize, block: usize| all.min(block.max(1)) as f64;
        let (points, simplices) = (self.recipe.rule.len(), self.recipe.sizes.len());
        // A coordinate: its barycentric coordinates and corners are rounded when they are computed and when they are
        // put on the device; then come n + 1 products and n sums. A monomial: `degree` coordinates and their products.
        // A sum: rounding the weight and the size, their products, sums over points and simplices; sums of blocks in
        // float64.
        let coordinate = n + 7.0;
        let sums = most(points, self.blocks.points) + most(simplices, self.blocks.simplices);
        let roundings = degree * (coordinate + 1.0) + sums + 8.0;
        let unit = if self.dtype == DType::F64 { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 };
        // The core computes the size of a simplex to a relative error of 1e-12. The factor covers terms of second
        // order.
        1.01 * (roundings * unit + 1e-12)
    }
}

/// A compensated running sum (Kahan, Babuska, Neumaier): `low` collects what rounding `high` has lost.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        self.low += (self.high - (sum - part)) + (x - part);
        self.high = sum;
    }

    fn value(&self) -> f64 {
        self.high + self.low
    }
}
