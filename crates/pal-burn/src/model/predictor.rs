//! Any of the models, by a plan that can be written to a file.

use ::pal::density::Family;
use ::pal::formula::Constraint;
use burn::module::Module;
use burn::tensor::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{
    Batch, Flow, FlowSettings, Mixture, MixtureSettings, Model, ModelError, PalModel, Relaxed, RelaxedSettings, Scaler,
};
use crate::network::Network;
use crate::{PalLayer, StudentTHead, weights};

/// Which model, and what it looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Kind {
    /// A layer that keeps all mass on the constraint.
    Pal {
        /// Hidden units.
        hidden: Vec<usize>,
        /// Whether outputs of the network are [`StudentTHead`] rather than plain parameters; only for splines.
        #[serde(default)]
        student_t: bool,
    },
    /// A mixture of Gaussians.
    Mixture {
        /// How many.
        components: usize,
        /// Hidden units.
        hidden: Vec<usize>,
    },
    /// A neural spline flow.
    Flow {
        /// Transformations.
        transforms: usize,
        /// Bins of a spline.
        bins: usize,
        /// Hidden units of each network.
        hidden: Vec<usize>,
    },
    /// A Gaussian under a relaxed constraint.
    Relaxed {
        /// Hidden units.
        hidden: Vec<usize>,
        /// How the constraint is relaxed.
        relaxed: RelaxedSettings,
    },
}

/// Everything about a model but its numbers, constraint and family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which model.
    pub kind: Kind,
    /// Names of inputs; none for an unconditional density.
    pub inputs: Vec<String>,
    /// Names of outputs in the data, in the order of the variables of the constraint.
    pub outputs: Vec<String>,
    /// Of inputs.
    pub input_scaler: Scaler,
    /// Of outputs, for models that need it.
    pub output_scaler: Scaler,
    /// Whether numbers are doubles.
    pub doubles: bool,
}

/// Any model.
#[allow(clippy::large_enum_variant, reason = "a program has one of them, and modules do not go into boxes")]
#[derive(Module, Debug)]
pub enum Predictor {
    /// A layer on a network.
    Pal(PalModel),
    /// A mixture of Gaussians.
    Mixture(Mixture),
    /// A flow.
    Flow(Flow),
    /// A Gaussian under a relaxed constraint.
    Relaxed(Relaxed),
}

impl Plan {
    /// The precision of its numbers.
    pub fn dtype(&self) -> DType {
        if self.doubles { DType::F64 } else { DType::F32 }
    }

    /// An untrained model; the same seed gives the same numbers. Only a model with a layer needs a family.
    pub fn build(
        &self,
        constraint: &Constraint,
        family: Option<&Family>,
        device: &Device,
        seed: u64,
    ) -> Result<Predictor, ModelError> {
        device.seed(seed);
        let (inputs, dimension) = (self.inputs.len(), self.outputs.len());
        let mixture = |components: usize, hidden: &[usize]| {
            let settings = MixtureSettings { components, dimension };
            let network = Network::new(inputs, hidden, settings.num_params(), device);
            Mixture::new(network, settings, self.output_scaler.clone())
        };
        let built = match &self.kind {
            Kind::Pal { hidden, student_t } => {
                let missing = || ModelError::Constraint("a layer needs a compiled family".to_string());
                let layer = PalLayer::new(family.ok_or_else(missing)?, device, self.dtype())?;
                let network = |outputs| Network::new(inputs, hidden, outputs, device);
                Predictor::Pal(if *student_t {
                    let of_squares = || ModelError::Constraint("sums of squares have no head; splines do".to_string());
                    let head = StudentTHead::new(&layer).ok_or_else(of_squares)?;
                    PalModel::with_head(network(head.num_params()), head, layer)
                } else {
                    PalModel::new(network(layer.num_params()), layer)
                })
            }
            Kind::Mixture { components, hidden } => Predictor::Mixture(mixture(*components, hidden)),
            Kind::Flow { transforms, bins, hidden } => {
                let (transforms, bins, hidden) = (*transforms, *bins, hidden.clone());
                let settings = FlowSettings { dimension, inputs, transforms, bins, hidden };
                Predictor::Flow(Flow::new(settings, self.output_scaler.clone(), device))
            }
            Kind::Relaxed { hidden, relaxed } => {
                Predictor::Relaxed(Relaxed::new(mixture(1, hidden), constraint.clone(), relaxed.clone())?)
            }
        };
        // This also draws the numbers, which networks leave for later, while the seed is in effect.
        Ok(weights::cast(built, self.dtype()))
    }
}

impl Predictor {
    /// Begins near the data where that is possible; a flow begins as one Gaussian anyway.
    pub fn start(self, first: &Batch, points: &[f64], seed: u64) -> Result<Predictor, ModelError> {
        Ok(match self {
            Predictor::Pal(model) => Predictor::Pal(model.start(first, points, seed)?),
            Predictor::Mixture(model) => Predictor::Mixture(model.start(points, seed)),
            Predictor::Flow(model) => Predictor::Flow(model),
            Predictor::Relaxed(model) => Predictor::Relaxed(model.start(points, seed)),
        })
    }
}

impl Model for Predictor {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        match self {
            Predictor::Pal(model) => model.log_prob(batch),
            Predictor::Mixture(model) => model.log_prob(batch),
            Predictor::Flow(model) => model.log_prob(batch),
            Predictor::Relaxed(model) => model.log_prob(batch),
        }
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        match self {
            Predictor::Pal(model) => model.loss(batch),
            Predictor::Mixture(model) => model.loss(batch),
            Predictor::Flow(model) => model.loss(batch),
            Predictor::Relaxed(model) => model.loss(batch),
        }
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        match self {
            Predictor::Pal(model) => model.sample(inputs, count, seed),
            Predictor::Mixture(model) => model.sample(inputs, count, seed),
            Predictor::Flow(model) => model.sample(inputs, count, seed),
            Predictor::Relaxed(model) => model.sample(inputs, count, seed),
        }
    }
}
