//! Neural networks whose outputs are densities on a constraint.
//!
//! [`PalLayer`] turns the outputs of any burn network into parameters of a density that is zero outside a constraint, with an exact
//! log-likelihood made of plain tensor operations. Models for comparison, which cannot give that guarantee, are trained by the same
//! loop ([`Trainer`]).
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

pub mod cubature;
pub mod data;
pub mod device;
mod file;
mod layer;
mod model;
mod network;
mod optimiser;
mod random;
pub mod start;
mod train;
pub mod tutorial;
pub mod weights;

pub use burn::tensor::{DType, Device};
pub use file::{NetworkFile, NetworkFileError};
pub use layer::{Likelihood, PalLayer, Points, StudentTHead};
pub use model::*;
pub use network::{Free, Mlp, Network};
pub use optimiser::{Optimiser, OptimiserSettings, Rule};
pub use train::{
    Bytes, CheckpointError, Epoch, Moment, Rows, Split, SplitError, Stop, TrainError, TrainSettings, Trainer,
    Violation, evaluate, violation,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/training.md")]
struct Training;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/gpu.md")]
struct Gpu;
