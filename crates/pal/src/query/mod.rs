//! Questions about densities: probabilities, conditioning, marginals, moments, entropy, samples and modes.
//!
//! A density `p(y) = q(y) 1[y |= phi] / I_phi` is a sum of non-negative components, each a polynomial on every element
//! of the mesh of its support (boxes and simplices, see [`density`](crate::density)). All queries are written on meshes
//! and [`ComponentFunctions`](crate::density::ComponentFunctions), and know no kind of family. Most of them integrate
//! polynomials over polytopes, which cubature does exactly up to rounding (PAL paper, Section 5, "Probabilistic
//! Reasoning with PAL").
//!
//! # Mathematics
//!
//! With `I_phi` for the integral of `q` over the points that satisfy `phi`:
//!
//! - **Probability** of a further formula `gamma`: the region of `phi and gamma` is cut along the same grid, and
//!
//!   ```text
//!   P(gamma)  =  I_(phi and gamma) / I_phi
//!   ```
//!
//! - **Conditioning** on a formula: `p(y | gamma) = q(y) 1[y |= phi and gamma] / I_(phi and gamma)`, which is a density
//!   with the same components on a smaller support, so that every query can be asked again.
//! - **Given values** of some variables: they are substituted into the formula and into the polynomials, exactly. What
//!   remains is a density of the other variables.
//! - **Marginals**: `p(y_j)` is the integral of `p` over the slice of the region at `y_j`. Between neighbouring
//!   projections of vertices the slice moves linearly, and the marginal is a polynomial: it is found from as many
//!   slices as its degree needs, and its distribution function and quantiles are closed forms. Joint marginals are
//!   computed point by point.
//! - **Moments**: expectations of polynomials are integrals of products of polynomials, in coordinates of the box.
//! - **Samples** by inverse transform, without rejection: a component and an element are chosen by their exact mass;
//!   then
//!
//!   ```text
//!   F_k(s_k | s_1 .. s_(k-1))  =  u_k,        u_k uniform on [0, 1],        k = 1 .. n
//!   ```
//!
//!   is solved for one coordinate of the element after the other. Given those before, the density of `s_k` is a
//!   polynomial in one variable. A sample is handed out only when exact evaluation says that it satisfies the
//!   constraint.
//! - **Modes** by best-first branch and bound: `p(point) <= sup p <= upper <= (1 + gap) p(point)`, with upper bounds
//!   from Chebyshev coefficients that account for rounding.
//! - **Differential entropy** `-integral of p log p`, which is no polynomial: adaptive cubature with an error estimate.
//!
//! # What lives where
//!
//! - `event`: probabilities of formulas and conditioning on them. [`Event`], [`Density::probability`],
//!   [`Density::condition`].
//! - `given`: conditioning on values of variables. [`Density::given`], [`Family::given`].
//! - `given_rows`: other values for every parameter vector. [`GivenRows`], [`Family::given_rows`].
//! - `moments`: probabilities and moments on an event, with derivatives. [`EventMoments`], [`Family::event_moments`].
//! - `shape`: marginals, distribution function, entropy and mode of one density. [`Density::marginal`],
//!   [`Density::cdf`], [`Density::entropy`], [`Density::mode`].
//! - `batch`: queries for many parameter vectors. [`Family::sample`], [`Family::modes`], [`Family::marginals`].
//! - `marginal`: piecewise polynomial marginals, and joint marginals at points. [`Marginal`], [`MarginalPiece`].
//! - `slice`: slices of boxes and simplices at fixed coordinates.
//! - `univariate`: a polynomial on [0, 1], its integral and the inverse of that.
//! - `expectation`: means, covariances and expectations of polynomials. [`Expectation`], [`Density::mean`].
//! - `sample`: many samples of one density. [`Sampler`], [`Density::sample`].
//! - `rows`: few samples of each of many densities, for [`Family::sample`].
//! - `walk`: one sample inside one element, coordinate by coordinate.
//! - `mode`: the search for a mode. [`Mode`], [`ModeOptions`], [`ModeStop`].
//! - `entropy`: the adaptive cubature of entropies. [`Entropy`], [`EntropyOptions`].
//! - `information`: entropies and divergences of many parameter vectors, with derivatives. [`Information`],
//!   [`Family::information`], [`Family::divergence`].
//! - `flat`: answers on flats, from free coordinates to all coordinates.
//! - `error`: why a question has no answer. [`QueryError`].
//!
//! A new query on one density is a method of [`Density`] in a file of its own; if it makes sense for a batch, a method
//! of [`Family`] goes beside those in `batch`.
//!
//! [`Density`]: crate::density::Density
//! [`Density::probability`]: crate::density::Density::probability
//! [`Density::condition`]: crate::density::Density::condition
//! [`Density::given`]: crate::density::Density::given
//! [`Density::marginal`]: crate::density::Density::marginal
//! [`Density::cdf`]: crate::density::Density::cdf
//! [`Density::entropy`]: crate::density::Density::entropy
//! [`Density::mode`]: crate::density::Density::mode
//! [`Density::mean`]: crate::density::Density::mean
//! [`Density::sample`]: crate::density::Density::sample
//! [`Family`]: crate::density::Family
//! [`Family::divergence`]: crate::density::Family::divergence
//! [`Family::given`]: crate::density::Family::given
//! [`Family::given_rows`]: crate::density::Family::given_rows
//! [`Family::event_moments`]: crate::density::Family::event_moments
//! [`Family::information`]: crate::density::Family::information
//! [`Family::sample`]: crate::density::Family::sample
//! [`Family::modes`]: crate::density::Family::modes
//! [`Family::marginals`]: crate::density::Family::marginals

mod batch;
mod entropy;
mod error;
mod event;
mod expectation;
mod flat;
mod given;
mod given_rows;
mod information;
mod marginal;
mod mode;
mod moments;
mod rows;
mod sample;
mod shape;
mod slice;
mod univariate;
mod walk;

pub use entropy::{Entropy, EntropyOptions};
pub use error::QueryError;
pub use event::Event;
pub use expectation::Expectation;
pub(crate) use expectation::box_terms;
pub(crate) use flat::given_chart;
pub(crate) use given::{SlicedSupport, fixed_coordinates};
pub use given_rows::GivenRows;
pub use information::Information;
pub use marginal::{Marginal, MarginalPiece, NotAProbability};
pub use mode::{Mode, ModeOptions, ModeStop};
pub use moments::EventMoments;
pub use sample::Sampler;
pub(crate) use sample::check_memory;
