//! GASP! cubature as tensor operations: integrals of polynomials on any device.
//!
//! The constants come from the library ([`Recipe`]): points and weights of the rule, vertices and sizes of the simplices. With s simplices, p points and t
//! monomials in n variables,
//!
//! 1. points on all simplices are one matrix product, (p x n+1) times (n+1 x n s);
//! 2. powers of each coordinate are made by repeated multiplication, and monomials are products of chosen powers, p x t x s;
//! 3. positive and negative weights are the two rows of a matrix that is multiplied with them, (2 x p) times (p x t s), so that what cancels is summed
//!    apart; then sums over simplices, weighted by size.
//!
//! There is no division, root, exponential or logarithm in it, so that doubles are right on devices that get those wrong. Simplices, points and monomials are
//! taken in blocks, which limits the memory; the few sums of each block are added up in doubles, compensated.
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
use pal::moments::gasp::{GaspError, Recipe};
use pal::polynomial::Polynomial;
use pal::region::Region;
use thiserror::Error;

use crate::device::{self, DeviceError, Work};

/// Why there is no integral.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CubatureError {
    /// The region or the polynomial does not allow it.
    #[error(transparent)]
    Integral(#[from] GaspError),
    /// The device does not allow it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device has given up on the way.
    #[error("{device} failed during the integration: {message}; smaller blocks may help, or the CPU")]
    Execution {
        /// its name
        device: String,
        /// its own words
        message: String,
    },
}

/// An integral, and what it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integral {
    /// The integral.
    pub value: f64,
    /// A bound on what rounding has changed, provided that the device rounds products and sums as it should.
    pub rounding_error: f64,
    /// Simplices of the region.
    pub simplices: usize,
    /// Points of the rule on each of them.
    pub points: usize,
}

/// How much is computed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The most values of monomials, at points on simplices, that are held at a time.
    pub values: usize,
    /// The most simplices among them. The device sums over them and over points, so that long blocks cost digits.
    pub simplices: usize,
    /// The most points among them.
    pub points: usize,
    /// The most monomials among them.
    pub monomials: usize,
}

impl Default for Blocks {
    /// 32 megabytes of doubles; a few times that are needed on the way.
    fn default() -> Blocks {
        Blocks { values: 1 << 22, simplices: 1 << 10, points: 1 << 10, monomials: 1 << 8 }
    }
}

/// Integrates a polynomial over a region, with every assignment of its Boolean variables counted.
pub fn integrate(
    region: &Region,
    polynomial: &Polynomial,
    device: &Device,
    dtype: DType,
) -> Result<Integral, CubatureError> {
    integrate_in_blocks(region, polynomial, device, dtype, Blocks::default())
}

/// Like [`integrate`], with blocks of one's own. They change the result within its error.
pub fn integrate_in_blocks(
    region: &Region,
    polynomial: &Polynomial,
    device: &Device,
    dtype: DType,
    blocks: Blocks,
) -> Result<Integral, CubatureError> {
    let device = device.clone().without_autodiff();
    device::check(&device, dtype, Work::Products)?;
    let recipe = Recipe::new(region, polynomial)?;
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
    recipe: &'r Recipe,
    device: &'r Device,
    dtype: DType,
    blocks: Blocks,
}

/// The integral of a monomial in parts.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    positive: Sum,
    negative: Sum,
    /// The same sum with absolute values throughout: what errors are measured against.
    magnitude: f64,
}

impl Moment {
    fn value(&self) -> f64 {
        self.positive.value() + self.negative.value()
    }
}

/// Parts of all that there is to sum over.
struct Block {
    simplices: Range<usize>,
    points: Range<usize>,
    monomials: Range<usize>,
}

impl Cubature<'_> {
    /// The integrals of the monomials of all terms.
    fn moments(&self) -> Result<Vec<Moment>, String> {
        let mut moments = vec![Moment::default(); self.recipe.terms.len()];
        if self.recipe.dimension == 0 {
            // Nothing but a constant, on regions that are points.
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

    /// The sums of a block: of all monomials over points of positive weight, then over those of negative weight.
    fn sums(&self, block: &Block, absolute: bool) -> Result<Vec<f64>, String> {
        let (n, rule) = (self.recipe.dimension, &self.recipe.rule);
        let sign = |x: f64| if absolute { x.abs() } else { x };
        let (p, t, s) = (block.points.len(), block.monomials.len(), block.simplices.len());
        let barycentric = block.points.clone().flat_map(|at| rule.barycentric(at)).collect();
        let corner = |i: usize, axis: usize, simplex: usize| self.recipe.vertices[(simplex * (n + 1) + i) * n + axis];
        let corners = (0..=n).flat_map(|i| (0..n).map(move |axis| (i, axis)));
        let corners = corners.flat_map(|(i, axis)| block.simplices.clone().map(move |k| sign(corner(i, axis, k))));
        // One row for each corner, and in it all simplices for each axis.
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
            // Constants alone.
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

    /// How far the integral of a monomial may be off, as a share of its magnitude: the number of roundings that a summand meets, times the size of one.
    fn error(&self, alpha: &[u16]) -> f64 {
        let (n, degree) = (self.recipe.dimension as f64, alpha.iter().map(|a| f64::from(*a)).sum::<f64>());
        let most = |all: usize, block: usize| all.min(block.max(1)) as f64;
        let (points, simplices) = (self.recipe.rule.len(), self.recipe.sizes.len());
        // A coordinate: barycentric coordinates and corners as the device holds them and as they were found, n + 1 products and n sums. A monomial: as
        // many coordinates, and products of them. A sum: weight, size and their products, points, simplices. Sums of blocks in doubles.
        let coordinate = n + 7.0;
        let sums = most(points, self.blocks.points) + most(simplices, self.blocks.simplices);
        let roundings = degree * (coordinate + 1.0) + sums + 8.0;
        let unit = if self.dtype == DType::F64 { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 };
        // The size of a simplex is known to 1e-12 of itself, by the library. Second orders are in the factor.
        1.01 * (roundings * unit + 1e-12)
    }
}

/// A running sum with what rounding has taken from it (Kahan, Babuska, Neumaier).
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
