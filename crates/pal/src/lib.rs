//! Probability densities that give exactly zero mass to everything that violates a constraint, and the exact geometry
//! and integration that this takes.
//!
//! A *constraint* `phi` is a Boolean combination of linear inequalities with rational coefficients over the real
//! variables `y = (y_1, .., y_n)`. A *family* consists of non-negative functions `q(y; params)` that are polynomials on
//! every bin of a grid. Together they make one density for every parameter vector:
//!
//! ```text
//! p(y; params)  =  q(y; params) 1[y |= phi] / I(params),        I(params)  =  integral of q(y; params) over phi
//! ```
//!
//! `1[y |= phi]` is 1 where `y` satisfies the constraint and 0 elsewhere, decided exactly. The normalising constant `I`
//! is compiled once for a constraint; after that it costs one small matrix product for a whole batch of parameter
//! vectors. When a neural network computes the parameters, `params = f(x)`, this is a conditional density `p(y | x)`
//! that is trained by exact maximum likelihood and cannot put mass on what is forbidden.
//!
//! The crate re-implements and corrects *A Probabilistic Neuro-symbolic Layer for Algebraic Constraint Satisfaction*
//! (Kurscheidt, Morettin, Sebastiani, Passerini, Vergari; UAI 2025), which the documentation calls "the PAL paper". The
//! density above is its equation (PAL) in Section 3.
//!
//! # The pipeline
//!
//! ```text
//! text or Rust --> formula --> region --> moments --> wmi
//!                                 |          |
//!                                 +----------+--> density --> query
//!                                                    |
//!                                                    +--> layers of networks (pal-burn, PyTorch)
//! ```
//!
//! A constraint becomes a region of disjoint convex cells with exact vertices. Polynomials are integrated over these
//! cells, in float64 with a certified error bound or as fractions. A family is compiled from both and answers queries.
//! Every stage can be used alone: [`region`] is a decomposition of non-convex sets, [`moments`] an integrator of
//! polynomials, [`wmi`] a solver for weighted model integration.
//!
//! ```
//! use pal::density::{Family, Knots, Settings, SplineSettings};
//! use pal::{formula::reals, region::Region};
//!
//! // The unit square without a closed square in its middle.
//! let [x, y] = reals(["x", "y"]);
//! let hole = (4 * &x).between(1, 3) & (4 * &y).between(1, 3);
//! let region = Region::new(&(x.between(0, 1) & y.between(0, 1) & !hole).into())?;
//! assert_eq!(region.exact_volume()?.to_string(), "3/4");
//! let family = Family::new(&region, &Settings::Spline(SplineSettings { knots: Knots::Uniform(5), components: 2 }))?;
//! let density = family.density(&family.random_params(1, 42))?;
//! assert_eq!(density.log_prob(&[0.5, 0.5]), [f64::NEG_INFINITY]);
//! assert!((density.probability(&x.le(&y))? + density.probability(&x.gt(&y))? - 1.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What lives where
//!
//! - [`formula`]: constraints, built with operators or read from SMT-LIB 2 and GeoJSON, and exact membership of points.
//!   [`Formula`], [`Constraint`], [`Membership`], [`reals`], [`parse_smtlib`], [`parse_geojson`].
//! - [`region`]: a constraint as disjoint convex cells with exact vertices and volumes, triangulation, budgets, and a
//!   status for constraints without volume or bounds. [`Region`], [`Cell`], [`Polytope`], [`Status`], [`Budget`].
//! - [`polynomial`]: polynomials with rational coefficients over named variables. [`Polynomial`].
//! - [`moments`]: integrals of polynomials over regions, one by one or all moments up to a degree at once.
//!   [`integrate`], [`Method`], [`Integral`], [`Moments`].
//! - [`wmi`]: weighted model integration, with weights that have cases, Boolean variables and queries.
//!   [`Problem`], [`Solution`], [`Piecewise`]; [`MomentsFile`] keeps the moments of a constraint in a file.
//! - [`density`]: families compiled on a region, which compute log-densities, normalising constants and gradients of
//!   both for batches of parameter vectors, and their files. [`Family`], [`Settings`], [`Density`], [`Model`];
//!   [`FamilyKind`] is what a new kind of family implements.
//! - [`query`]: questions about densities, which are methods of [`Density`] and [`Family`]: probabilities,
//!   conditioning, marginals, moments, entropy, samples and certified modes. [`Event`], [`Marginal`], [`Sampler`],
//!   [`Mode`].
//! - [`tutorials`]: from a constraint to an integral, and from data to a density and its queries.
//! - [`number`]: exact integers and fractions, and their conversion from text and float64. [`Rational`].
//! - [`interrupt`]: stopping long work from another thread.
//! - [`random`]: a counter-based generator, so that a seed means the same samples on any number of threads.
//! - [`shapes`]: shapes with known volumes, for tests and benchmarks.
//! - [`checksum`]: checksums of files.
//!
//! The crate does no input or output: files are byte strings in and out. Networks and training are in the crate
//! `pal-burn`, the program `pal` in `pal-cli`, the Python package in `pal-python`.
//!
//! [`Formula`]: formula::Formula
//! [`Constraint`]: formula::Constraint
//! [`Membership`]: formula::Membership
//! [`reals`]: formula::reals()
//! [`parse_smtlib`]: formula::parse_smtlib()
//! [`parse_geojson`]: formula::parse_geojson()
//! [`Region`]: region::Region
//! [`Cell`]: region::Cell
//! [`Polytope`]: region::Polytope
//! [`Status`]: region::Status
//! [`Budget`]: region::Budget
//! [`Polynomial`]: polynomial::Polynomial
//! [`integrate`]: moments::integrate()
//! [`Method`]: moments::Method
//! [`Integral`]: moments::Integral
//! [`Moments`]: moments::Moments
//! [`Problem`]: wmi::Problem
//! [`Solution`]: wmi::Solution
//! [`Piecewise`]: wmi::Piecewise
//! [`MomentsFile`]: wmi::MomentsFile
//! [`Family`]: density::Family
//! [`Settings`]: density::Settings
//! [`Density`]: density::Density
//! [`Model`]: density::Model
//! [`FamilyKind`]: density::FamilyKind
//! [`Event`]: query::Event
//! [`Marginal`]: query::Marginal
//! [`Sampler`]: query::Sampler
//! [`Mode`]: query::Mode
//! [`Rational`]: number::Rational
#![deny(missing_docs)]
// A comparison that fails for NaN is what sends a doubtful number to the exact path.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

pub mod checksum;
pub mod container;
pub mod density;
mod double_double;
pub mod formula;
pub mod interrupt;
mod json;
pub mod kernel;
mod linear_algebra;
pub mod mixed;
pub mod moments;
pub mod number;
pub mod polynomial;
pub mod query;
pub mod random;
pub mod region;
pub mod shapes;
pub mod tutorials;
pub mod wmi;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Tour;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/densities.md")]
struct Densities;
