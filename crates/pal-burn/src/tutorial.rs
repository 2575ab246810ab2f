//! From a network to a constrained prediction. Every example on this page is run with the tests.
//!
//! Somebody walks along a corridor with a corner: `0 <= x <= 3`, `0 <= y <= 3`, and `x <= 1` or `y <= 1`. The walk
//! starts at the upper end, `(1/2, 3)`, reaches the corner `(1/2, 1/2)` at the time 1/2, and ends at the right,
//! `(3, 1/2)`, at the time 1. Given the time, where is the walker? A network that predicts one point, or a Gaussian,
//! cuts the corner sooner or later. A network under the constraint cannot.
//!
//! # The layer
//!
//! The constraint and a family of densities come from the crate `pal`; its tutorials explain them. A
//! [`PalLayer`](crate::PalLayer) is a family as the last layer of a network. It takes as many numbers as the family has
//! parameters, and returns log-densities that are differentiable with respect to these numbers.
//!
//! ```
//! use burn::tensor::{DType, Device};
//! use pal::density::{Family, Knots, Settings, SplineSettings};
//! use pal::{formula::reals, region::Region};
//! use pal_burn::{PalLayer, matrix};
//!
//! let [x, y] = reals(["x", "y"]);
//! let corridor = x.between(0, 3) & y.between(0, 3) & (x.le(1) | y.le(1));
//! let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(7), components: 1 });
//! let family = Family::new(&Region::new(&corridor.into())?, &settings)?;
//! let layer = PalLayer::new(&family, &Device::flex(), DType::F64)?;
//!
//! // A logit, and for either axis seven values and seven derivatives at the knots, as differences to the constant 1.
//! // Zeros are the uniform density, which is 1/5 on the corridor of area 3 + 3 - 1 and zero elsewhere.
//! let uniform = vec![0.0; 1 + 2 * (7 + 7)];
//! assert_eq!(layer.num_params(), uniform.len());
//! let points = layer.points(&[0.5, 0.5, 2.0, 2.0])?;
//! let log_prob = layer.log_prob(matrix(&uniform, uniform.len(), &Device::flex(), DType::F64), &points);
//! let log_prob: Vec<f64> = log_prob.into_data().to_vec()?;
//! assert!((log_prob[0] - 0.2_f64.ln()).abs() < 1e-12);
//! assert_eq!(log_prob[1], f64::NEG_INFINITY);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Training
//!
//! [`PalLayer::loss`](crate::PalLayer::loss) is the mean of minus the log-density of the data, with a term that keeps
//! parameters in the range of floating-point numbers. The normalising constant is part of it and is exact, so that this
//! is maximum likelihood and nothing else: there is no penalty for violations, because there are none.
//!
//! [`StudentTHead`](crate::StudentTHead) stands between network and layer: the network says the centre, the width and
//! the tail of every component, three numbers per axis, rather than values at all knots.
//!
//! ```
//! use burn::tensor::{DType, Device};
//! # use pal::density::{Family, Knots, Settings, SplineSettings};
//! # use pal::{formula::reals, region::Region};
//! use pal_burn::{Network, Optimiser, OptimiserSettings, PalLayer, StudentTHead, matrix};
//!
//! # let [x, y] = reals(["x", "y"]);
//! # let corridor = x.between(0, 3) & y.between(0, 3) & (x.le(1) | y.le(1));
//! # let region = Region::new(&corridor.clone().into())?;
//! let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(13), components: 4 });
//! let family = Family::new(&region, &settings)?;
//! let device = Device::flex().autodiff();
//! let layer = PalLayer::new(&family, &device, DType::F32)?;
//! let head = StudentTHead::new(&layer).ok_or("the family is not made of splines")?;
//!
//! // The walk at 65 times.
//! let times: Vec<f64> = (0..=64).map(|step| f64::from(step) / 64.0).collect();
//! let walk: Vec<f64> = times.iter().flat_map(|t| [0.5 + 5.0 * (t - 0.5).max(0.0), 3.0 - 5.0 * t.min(0.5)]).collect();
//! let points = layer.points(&walk)?;
//! assert!(points.all_inside());
//!
//! let inputs = matrix(&times, 1, &device, DType::F32);
//! let mut network = Network::new(1, &[32, 32], head.num_params(), &device).around(&head.start(&walk, 1));
//! let mut optimiser = Optimiser::<f32>::new(OptimiserSettings { learning_rate: 0.02, ..Default::default() });
//! for _ in 0..300 {
//!     let loss = layer.loss(head.params(network.forward(Some(inputs.clone()))), &points);
//!     network = optimiser.step(network, loss.backward());
//! }
//! let network = optimiser.averaged(network);
//!
//! // Far more likely than under the uniform density, which knows nothing of the time.
//! let params = head.params(network.forward(Some(inputs)));
//! let mean: f32 = layer.log_prob(params, &points).mean().into_scalar();
//! assert!(mean > -(5.0_f32.ln()) + 1.0, "{mean}");
//!
//! // The prediction at two times.
//! let [early, corner] = [0.1, 0.5];
//! let inputs = matrix(&[early, corner], 1, &device, DType::F32);
//! let densities = layer.densities(head.params(network.forward(Some(inputs))))?;
//! for density in &densities {
//!     assert_eq!(density.probability(&(x.gt(1) & y.gt(1)))?, 0.0);
//!     assert!(density.sample(1000, 1)?.chunks(2).all(|point| corridor.contains(point)));
//! }
//! // Early in the walk the walker is in the upper arm of the corridor.
//! assert!(densities[0].probability(&y.gt(1))? > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The last lines are the prediction. [`PalLayer::densities`](crate::PalLayer::densities) returns what the crate `pal`
//! calls a density, which answers every query: here that the forbidden part has probability zero, exactly and not
//! almost, that all samples are in the corridor, and where the walker is early in the walk.
//!
//! # Where to go from here
//!
//! [`Trainer`](crate::Trainer) is a training loop with batches, early stopping and checkpoints, and trains baselines
//! without guarantees alongside; [`NetworkFile`](crate::NetworkFile) keeps a trained predictor. `docs/training.md` says
//! which family and which settings to choose. `pal train` and `pal predict` do what this page does in the terminal.
