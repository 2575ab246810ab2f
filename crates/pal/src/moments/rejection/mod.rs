//! Monte Carlo integration by rejection: the approximate integrator that exact ones are compared with (PAL paper,
//! Section 4 and the appendix on rejection sampling).
//!
//! With N points uniform on the bounding box B of the region,
//!
//! ```text
//! integral of f  ~  vol(B) * mean of g,     g = f inside the region, 0 outside,
//! standard error  =  vol(B) * sqrt(variance of g / N)
//! ```
//!
//! Membership is exact. Boolean variables are drawn as well, each true or false with equal chance, and the result is
//! multiplied by 2^k for k of them: as everywhere, every assignment counts. This is unbiased, costs nothing per sample,
//! and its price, a lower acceptance where few assignments are solutions, shows in the standard error.
//!
//! Samples come in blocks of fixed size, each with a random stream of its own; the same seed gives the same bytes on
//! any number of threads.
//!
//! ```
//! use pal::{formula::reals, moments::rejection, polynomial::Polynomial, region::Region};
//! let [x, y] = reals(["x", "y"]);
//! let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
//! let area = rejection::integrate(&triangle, &Polynomial::one(), 10_000, 1)?;
//! assert!((area.value - 0.5).abs() < 5.0 * area.standard_error);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rayon::prelude::*;

use super::gasp::{BATCH, BatchFunction, BatchPolynomial, Closure, PointBatch, Sum};
use crate::formula::{Membership, MembershipError, Var};
use crate::interrupt::checkpoint;
use crate::number::{self, Rational};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::random::Stream;
use crate::region::{Region, RegionError, Unbounded};

/// Samples that share a random stream. Another number would change what a seed means.
const BLOCK: u64 = 4096;

/// Blocks whose results are held at the same time.
const ROUND: u64 = 4096;

/// Why an integral cannot be estimated by rejection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RejectionError {
    /// No samples were asked for.
    #[error("at least one sample is needed")]
    NoSamples,
    /// The polynomial does not fit the variables.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
    /// The region has no bounding box.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
    /// The formula cannot be tested at points.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The integrand is NaN or infinite somewhere.
    #[error("the integrand is not finite at {0:?}; exclude this point by a constraint")]
    NotFinite(Vec<f64>),
    /// The bounding box is so narrow that float64 numbers in it are too far apart for samples of a function.
    #[error(
        "along `{0}` the region is so narrow, or so far from 0, that float64 numbers are too coarse for samples; \
         shift or rescale the variable, or integrate exactly"
    )]
    Narrow(Var),
    /// The region in other coordinates cannot be made.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The bounding box or the result is too large or too small for float64.
    #[error("numbers beyond the range of float64 occur; rescale the variables or the integrand")]
    Overflow,
}

/// An estimated integral.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectionResult {
    /// The estimate.
    pub value: f64,
    /// Its standard deviation, estimated from the samples. Infinite if there are fewer than two samples or if none was
    /// accepted, in which case nothing is known about the integrand. 0 for a region without volume.
    pub standard_error: f64,
    /// Samples drawn: as many as asked for, or none if the region has no volume and the integral is exactly 0.
    pub samples: u64,
    /// Samples inside the region.
    pub accepted: u64,
}

/// Estimates the integral of a polynomial over a region, summed over the assignments of its Boolean variables.
pub fn integrate(
    region: &Region,
    polynomial: &Polynomial,
    samples: u64,
    seed: u64,
) -> Result<RejectionResult, RejectionError> {
    let variables = region.variables();
    let Some(ends) = region.bounding_box()?.filter(|ends| ends.iter().any(|ends| is_narrow(ends, FINE))) else {
        return estimate(region, &BatchPolynomial::new(polynomial, variables)?, samples, seed);
    };
    // Reported for the polynomial as it was given, before its variables are changed.
    polynomial.aligned(variables)?;
    let changes = variables.iter().zip(&ends).map(|(var, (low, high))| (var.clone(), (high - low, low.clone())));
    let moved = polynomial.affine(&changes.collect())?;
    let stretched = region.stretched(&ends)?;
    let result = estimate(&stretched, &BatchPolynomial::new(&moved, variables)?, samples, seed)?;
    let volume = number::to_f64(&ends.iter().fold(Rational::ONE, |product, (low, high)| product * (high - low)));
    let (value, standard_error) = (result.value * volume, result.standard_error * volume);
    if !(volume >= f64::MIN_POSITIVE && value.is_finite() && !standard_error.is_nan()) {
        return Err(RejectionError::Overflow);
    }
    Ok(RejectionResult { value, standard_error, ..result })
}

/// An axis of the box with fewer float64 numbers than this is stretched before points are drawn: their rounding would
/// move the walls of the region by more than the standard error.
const FINE: f64 = (1u64 << 32) as f64;

/// A function cannot be stretched. With this many float64 numbers along every axis of the box, the rounding of points
/// moves a wall by at most a millionth of the box.
const FINE_ENOUGH: f64 = (1u64 << 20) as f64;

/// Whether an interval has fewer than so many float64 numbers.
fn is_narrow((low, high): &(Rational, Rational), numbers: f64) -> bool {
    let farther = number::to_f64(low).abs().max(number::to_f64(high).abs());
    farther.is_finite() && number::to_f64(&(high - low)) < numbers * (farther - farther.next_down())
}

/// Estimates the integral of a function of the real variables, in the order of the region's variables.
pub fn integrate_fn(
    region: &Region,
    f: impl Fn(&[f64]) -> f64 + Sync,
    samples: u64,
    seed: u64,
) -> Result<RejectionResult, RejectionError> {
    if let Some(ends) = region.bounding_box()?
        && let Some((var, _)) = region.variables().iter().zip(&ends).find(|(_, ends)| is_narrow(ends, FINE_ENOUGH))
    {
        return Err(RejectionError::Narrow(var.clone()));
    }
    estimate(region, &Closure { dimension: region.dimension(), function: f }, samples, seed)
}

fn estimate(
    region: &Region,
    integrand: &impl BatchFunction,
    samples: u64,
    seed: u64,
) -> Result<RejectionResult, RejectionError> {
    if samples == 0 {
        return Err(RejectionError::NoSamples);
    }
    let Some(ends) = region.bounding_box()? else {
        return Ok(RejectionResult { value: 0.0, standard_error: 0.0, samples: 0, accepted: 0 });
    };
    let sampler = BoxSampler::new(region, &ends)?;
    let mut total = Tally::default();
    let blocks = samples.div_ceil(BLOCK);
    for first in (0..blocks).step_by(ROUND as usize) {
        let round = first..blocks.min(first + ROUND);
        let size = |block: u64| BLOCK.min(samples - block * BLOCK);
        let tally = |block| {
            checkpoint();
            sampler.block(seed, block, size(block), integrand)
        };
        let tallies: Vec<Result<Tally, Vec<f64>>> = round.into_par_iter().map(tally).collect();
        for tally in tallies {
            total.merge(&tally.map_err(RejectionError::NotFinite)?);
        }
    }
    let value = sampler.volume * total.mean;
    let known = total.samples > 1 && total.accepted > 0;
    let count = total.samples as f64;
    let standard_error =
        if known { sampler.volume * (total.squares / (count - 1.0) / count).sqrt() } else { f64::INFINITY };
    if !value.is_finite() || standard_error.is_nan() {
        return Err(RejectionError::Overflow);
    }
    Ok(RejectionResult { value, standard_error, samples, accepted: total.accepted })
}

/// Draws points from the bounding box.
struct BoxSampler {
    members: Membership,
    /// Lower end and width per axis.
    axes: Vec<(f64, f64)>,
    booleans: usize,
    /// The volume of the box, times the number of assignments of the Boolean variables.
    volume: f64,
}

impl BoxSampler {
    fn new(region: &Region, ends: &[(Rational, Rational)]) -> Result<Self, RejectionError> {
        let axes: Vec<(f64, f64)> = ends.iter().map(outer_interval).collect();
        let booleans = region.boolean_count();
        let volume = axes.iter().map(|(_, width)| width).product::<f64>() * (booleans as f64).exp2();
        if !(volume.is_finite()
            && volume >= f64::MIN_POSITIVE
            && axes.iter().all(|(low, width)| low.is_finite() && width.is_finite()))
        {
            return Err(RejectionError::Overflow);
        }
        Ok(BoxSampler { members: region.membership()?, axes, booleans, volume })
    }

    fn block(&self, seed: u64, block: u64, samples: u64, integrand: &impl BatchFunction) -> Result<Tally, Vec<f64>> {
        let mut stream = Stream::new(seed, block);
        let mut point = vec![0.0; self.axes.len()];
        let mut booleans = vec![false; self.booleans];
        let mut batch = PointBatch::new(self.axes.len());
        let mut values = Vec::new();
        for _ in 0..samples {
            for (x, (low, width)) in point.iter_mut().zip(&self.axes) {
                *x = low + width * stream.unit();
            }
            for word in booleans.chunks_mut(64) {
                let bits = stream.bits();
                word.iter_mut().enumerate().for_each(|(k, value)| *value = bits >> k & 1 == 1);
            }
            if !self.members.contains_with(&point, &booleans) {
                continue;
            }
            point.iter().enumerate().for_each(|(axis, x)| batch.points[axis * BATCH + batch.count] = *x);
            batch.count += 1;
            if batch.count == BATCH {
                flush(&mut batch, integrand, &mut values)?;
            }
        }
        flush(&mut batch, integrand, &mut values)?;
        Ok(Tally::new(&values, samples))
    }
}

fn flush(batch: &mut PointBatch, integrand: &impl BatchFunction, values: &mut Vec<f64>) -> Result<(), Vec<f64>> {
    integrand.evaluate(batch)?;
    values.extend_from_slice(&batch.values[..batch.count]);
    batch.count = 0;
    Ok(())
}

/// Lower end and width of an interval in float64 that contains the given one: a box that loses nothing of the region.
fn outer_interval((low, high): &(Rational, Rational)) -> (f64, f64) {
    let (mut down, mut up) = (number::to_f64(low), number::to_f64(high));
    if number::from_f64(down).is_ok_and(|x| &x > low) {
        down = down.next_down();
    }
    if number::from_f64(up).is_ok_and(|x| &x < high) {
        up = up.next_up();
    }
    (down, up - down)
}

/// Mean and sum of squared deviations of samples, those outside the region counting as 0.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    samples: u64,
    accepted: u64,
    mean: f64,
    squares: f64,
}

impl Tally {
    /// Two passes, so that the variance does not come from the difference of large numbers.
    fn new(values: &[f64], samples: u64) -> Self {
        let mean = Sum::from_iter(values.iter().copied()).value() / samples as f64;
        let outside = samples - values.len() as u64;
        let inside = Sum::from_iter(values.iter().map(|v| (v - mean) * (v - mean)));
        Tally { samples, accepted: values.len() as u64, mean, squares: inside.value() + outside as f64 * mean * mean }
    }

    /// Chan, Golub and LeVeque's update.
    fn merge(&mut self, other: &Tally) {
        let (a, b) = (self.samples as f64, other.samples as f64);
        let difference = other.mean - self.mean;
        self.mean += difference * (b / (a + b));
        self.squares += other.squares + difference * difference * (a * b / (a + b));
        self.samples += other.samples;
        self.accepted += other.accepted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let mut parts = Tally::new(&[1.0, 2.0], 4);
        parts.merge(&Tally::new(&[5.0], 2));
        let all = Tally::new(&[1.0, 2.0, 5.0], 6);
        assert!((parts.mean - all.mean).abs() < 1e-15 && (parts.squares - all.squares).abs() < 1e-13);
        assert_eq!((parts.samples, parts.accepted), (6, 3));
        assert!((all.squares - (30.0 - 64.0 / 6.0)).abs() < 1e-13);
    }

    #[test]
    fn boxes_are_widened() {
        let third = Rational::from_parts(1.into(), 3u8.into());
        let (low, width) = outer_interval(&(-&third, third.clone()));
        assert!(number::from_f64(low).unwrap() <= -&third && number::from_f64(low + width).unwrap() >= third);
        assert_eq!(outer_interval(&(Rational::ZERO, Rational::ONE)), (0.0, 1.0));
    }
}
