//! Neural networks whose outputs are densities on a constraint, for [burn](https://burn.dev).
//!
//! # Mathematics
//!
//! Given a constraint `phi` over outputs `y`, a family of non-negative piecewise polynomials `q(y; params)` and a
//! network `f`, a predictor is the conditional density (PAL paper, Eq. PAL)
//!
//! ```text
//! p(y | x) = q(y; f(x)) 1[y |= phi] / I(f(x)),        I(params) = integral over phi of q(y; params) dy.
//! ```
//!
//! No mass lies outside `phi`, whatever the network says. The crate `pal` compiles `I` once per constraint into a form:
//! a multilinear or quadratic function of coefficients. What remains to be done for a batch is linear algebra, which
//! this crate does by tensor operations of burn; so gradients come from burn, and any of its devices can be used.
//!
//! # Pipeline
//!
//! ```text
//! inputs -> Network -> (StudentTHead) -> params ------------------\
//!                                                                  PalLayer -> log_prob, loss -> Trainer, Optimiser
//! points -> PalLayer::points (exact membership, features) --------/
//! params -> PalLayer::densities -> queries of the crate pal: samples, probabilities, marginals, modes
//! ```
//!
//! # What lives where
//!
//! | to | see |
//! |---|---|
//! | learn by example | [`tutorial`] |
//! | put a family on top of a network | [`PalLayer`], [`Points`], [`Likelihood`] |
//! | have Booleans and categories beside reals | [`MixedLayer`], [`MixedPredictor`] |
//! | normalise on a smaller region | [`Normaliser`] |
//! | give every row a region of its own | [`PalLayer::log_prob_on`], [`RowRegions`] |
//! | let a network give locations and widths instead of spline parameters | [`StudentTHead`] |
//! | use a ready-made network | [`Network`], [`Mlp`], [`Free`] |
//! | have a network and a layer as one trainable density | [`PalPredictor`] |
//! | compare with baselines that give no guarantee | [`Mixture`], [`Flow`], [`Relaxed`] |
//! | train any of them | [`Trainable`], [`Trainer`], [`Rows`], [`Split`], [`evaluate`], [`violation`] |
//! | start training near the data | [`start`], [`PalPredictor::start`] |
//! | take optimiser steps in a loop of one's own | [`Optimiser`], [`OptimiserSettings`] |
//! | store and load trained predictors | [`Plan`], [`Predictor`], [`NetworkFile`] |
//! | read and write parameters as plain numbers | [`weights`] |
//! | open a GPU and test whether it computes correctly | [`device`] |
//! | integrate polynomials by cubature on any device | [`cubature`] |
//! | generate the data sets of the examples | [`data`] |
//!
//! # Example
//!
//! A network of one's own under a constraint:
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{DType, Device, Tensor, activation::tanh};
//! use pal::density::{Family, Knots, Settings, SplineSettings};
//! use pal::{formula::reals, region::Region};
//! use pal_burn::{Optimiser, OptimiserSettings, PalLayer, matrix};
//!
//! #[derive(Module, Debug)]
//! struct Network {
//!     first: Linear,
//!     last: Linear,
//! }
//!
//! impl Network {
//!     fn forward(&self, x: Tensor<2>) -> Tensor<2> {
//!         self.last.forward(tanh(self.first.forward(x)))
//!     }
//! }
//!
//! // Points y = x / 2 on a square without its upper right quarter.
//! let [u, v] = reals(["u", "v"]);
//! let phi = u.between(-1, 1) & v.between(-1, 1) & !(u.gt(0) & v.gt(0));
//! let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(5), components: 3 });
//! let family = Family::new(&Region::new(&phi.into())?, &settings)?;
//! let inputs = [-1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -0.2, 0.9];
//! let outputs: Vec<f64> = inputs.iter().map(|x| x / 2.0).collect();
//!
//! let device = Device::flex().autodiff();
//! let layer = PalLayer::new(&family, &device, DType::F32)?;
//! let mut network = Network {
//!     first: LinearConfig::new(2, 16).init(&device),
//!     last: LinearConfig::new(16, layer.num_params()).init(&device),
//! };
//! let (x, y) = (matrix(&inputs, 2, &device, DType::F32), layer.points(&outputs)?);
//! let mut optimiser = Optimiser::<f32>::new(OptimiserSettings { learning_rate: 0.01, ..Default::default() });
//! for _ in 0..200 {
//!     let loss = layer.loss(network.forward(x.clone()), &y);
//!     network = optimiser.step(network, loss.backward());
//! }
//! let params = optimiser.averaged(network).valid().forward(x);
//! let mean: f32 = layer.log_prob(params.clone(), &y).mean().into_scalar();
//! assert!(mean > 0.0);
//! let density = &layer.densities(params)?[0];
//! assert_eq!(density.probability(&(u.gt(0) & v.gt(0)))?, 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

pub mod cubature;
pub mod data;
pub mod device;
mod file;
mod layer;
mod network;
mod optimiser;
mod predictor;
pub mod start;
mod train;
pub mod tutorial;
pub mod weights;

pub use burn::tensor::{DType, Device};
pub use file::{NetworkFile, NetworkFileError};
pub use layer::{LayerError, Likelihood, MixedLayer, Normaliser, PalLayer, Points, StudentTHead};
pub use network::{Free, Mlp, Network};
pub use optimiser::{Optimiser, OptimiserSettings, OptimiserState, UpdateRule};
pub use predictor::{
    AnyFamily, Batch, BatchRegions, Flow, FlowSettings, KernelPredictor, MixedPredictor, Mixture, MixtureSettings,
    PalPredictor, Plan, Predictor, PredictorError, PredictorKind, RegionPlan, Relaxed, RelaxedSettings, Scaler,
    Trainable, WindowPlan, matrix, to_f64_vec,
};
pub use train::{
    CheckpointError, Epoch, MAX_INPUT_ROWS, Milestone, RowRegions, Rows, Split, SplitError, Stop, TrainError,
    TrainSettings, Trainer, Violation, evaluate, violation,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/training.md")]
struct Training;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/gpu.md")]
struct Gpu;
