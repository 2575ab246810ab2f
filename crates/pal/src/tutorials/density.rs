//! From data to a density and its queries.
//!
//! Somebody walks in a triangular court, `x >= 0`, `y >= 0`, `x + y <= 1`, and is seen at a few places. We put a family
//! of densities on the court, look at a member whose answers are known in closed form, fit another one to the data,
//! and ask it questions.
//!
//! # A family on a constraint
//!
//! [`Family::new`](crate::density::Family::new) compiles a family on a region: it cuts the region along a grid and
//! computes the constants from which the integral of any member follows. Here it is sums of squares of polynomials up
//! to degree 2, `q(y) = (u . b(y))^2`, in a basis `b` that is orthonormal on the constraint and begins with a constant.
//! The parameters of a component are a logit and the coefficients `u`.
//!
//! ```
//! use pal::density::{Family, Settings, SumOfSquaresSettings};
//! use pal::{formula::reals, region::Region};
//!
//! let [x, y] = reals(["x", "y"]);
//! let court = x.ge(0) & y.ge(0) & (&x + &y).le(1);
//! let region = Region::new(&court.into())?;
//! let settings = SumOfSquaresSettings { degree: Some(2), components: 1, ..Default::default() };
//! let family = Family::new(&region, &Settings::SumOfSquares(settings))?;
//! assert_eq!(family.num_params(), 1 + 6); // a logit, and the six monomials up to degree 2 in two variables
//!
//! // Parameters of zero: the uniform density, which is 2 on an area of 1/2, and zero outside.
//! let uniform = [0.0; 7];
//! let log_prob = family.log_prob(&uniform, &[0.25, 0.25, 0.75, 0.5])?;
//! assert!((log_prob[0] - 2.0_f64.ln()).abs() < 1e-12);
//! assert_eq!(log_prob[1], f64::NEG_INFINITY);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Methods of a [`Family`](crate::density::Family) take many parameter vectors at once, one after the other.
//! [`Family::density`](crate::density::Family::density) picks the density of one of them.
//!
//! # Queries
//!
//! On the uniform density of a triangle every answer is known.
//!
//! ```
//! # use pal::density::{Family, Settings, SumOfSquaresSettings};
//! # use pal::{formula::reals, region::Region};
//! # let [x, y] = reals(["x", "y"]);
//! # let region = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
//! # let settings = SumOfSquaresSettings { degree: Some(2), components: 1, ..Default::default() };
//! # let family = Family::new(&region, &Settings::SumOfSquares(settings))?;
//! use pal::query::EntropyOptions;
//!
//! let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
//! let density = family.density(&[0.0; 7])?;
//!
//! // The probability of a further constraint, and the density that remains once it is known to hold.
//! assert!(close(density.probability(&(2 * &x).ge(1))?, 0.25));
//! let right = density.condition(&(2 * &x).ge(1))?;
//! assert!(close(right.log_prob(&[0.7, 0.1])[0], 8.0_f64.ln()));
//!
//! // Mean and covariance.
//! assert!(density.mean().iter().all(|&mean| close(mean, 1.0 / 3.0)));
//! let covariance = density.covariance();
//! assert!(close(covariance[0], 1.0 / 18.0) && close(covariance[1], -1.0 / 36.0));
//!
//! // The marginal of x is 2 (1 - x), with the distribution function 1 - (1 - x)^2.
//! let marginal = density.marginal("x")?;
//! assert!(close(marginal.density(0.25), 1.5));
//! assert!(close(marginal.quantile(0.5)?, 1.0 - 0.5_f64.sqrt()));
//!
//! // Once y = 1/2 is known, x is uniform between 0 and 1/2.
//! let slice = density.given(&[("y", 0.5)])?;
//! assert!(close(slice.log_prob(&[0.3])[0], 2.0_f64.ln()));
//! assert!((density.entropy(&EntropyOptions::default()).value - 0.5_f64.ln()).abs() < 1e-6);
//!
//! // Samples satisfy the constraint under exact evaluation.
//! let samples = right.sample(1000, 1)?;
//! assert!(samples.chunks(2).all(|point| point[0] >= 0.5 && region.constraint().formula.contains(point)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A fit
//!
//! The likelihood of data has exact gradients ([`Family::log_prob_vjp`](crate::density::Family::log_prob_vjp)), so that
//! any optimiser will do; a dozen steps of gradient ascent are enough to see it work. The data below are symmetric in
//! `x` and `y`, and a mixture of splines that begins symmetric stays so.
//!
//! ```
//! use pal::density::{Family, Knots, Settings, SplineSettings};
//! # use pal::{formula::reals, region::Region};
//! # let [x, y] = reals(["x", "y"]);
//! # let region = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
//! let places = [[0.1, 0.2], [0.2, 0.1], [0.15, 0.3], [0.3, 0.15], [0.1, 0.1], [0.25, 0.25]];
//! let points = places.concat();
//! let settings = SplineSettings { knots: Knots::Uniform(4), components: 1 };
//! let family = Family::new(&region, &Settings::Spline(settings))?;
//!
//! // A logit, and four values and four derivatives at the knots of either axis, as differences to the constant 1.
//! let mut params = vec![0.0; 1 + 2 * (4 + 4)];
//! let mean = |params: &[f64]| -> Result<f64, pal::density::DensityError> {
//!     let rows = params.repeat(places.len());
//!     Ok(family.log_prob(&rows, &points)?.iter().sum::<f64>() / places.len() as f64)
//! };
//! assert!((mean(&params)? - 2.0_f64.ln()).abs() < 1e-12); // uniform
//! for _ in 0..12 {
//!     let rows = params.repeat(places.len());
//!     let gradient = family.log_prob_vjp(&rows, &points, &[1.0 / places.len() as f64; 6])?;
//!     for row in gradient.chunks(params.len()) {
//!         params.iter_mut().zip(row).for_each(|(param, derivative)| *param += 0.1 * derivative);
//!     }
//! }
//! assert!(mean(&params)? > 1.2);
//!
//! let density = family.density(&params)?;
//! assert!((density.probability(&x.le(&y))? - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to go from here
//!
//! `docs/densities.md` has the kinds of families, all queries and their limits. The tutorial of the crate `pal-burn`
//! puts such a density behind a neural network, where a training loop does what the gradient ascent did here.
