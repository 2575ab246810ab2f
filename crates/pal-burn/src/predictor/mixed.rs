//! A network with a [`MixedLayer`] on top: the conditional density of reals, Booleans and categories together.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{Batch, PredictorError, Trainable, to_f64_vec};
use crate::layer::MixedLayer;
use crate::network::Network;
use crate::start;

/// A network whose outputs are the parameters of a [`MixedLayer`].
#[derive(Module, Debug)]
pub struct MixedPredictor {
    network: Network,
    #[module(skip)]
    layer: MixedLayer,
}

impl MixedPredictor {
    /// Puts a layer on a network with as many outputs as the layer has parameters.
    pub fn new(network: Network, layer: MixedLayer) -> MixedPredictor {
        MixedPredictor { network, layer }
    }

    /// Returns the layer.
    pub fn layer(&self) -> &MixedLayer {
        &self.layer
    }

    /// Moves the beginning of training near the data, to [`start::mixed_params`].
    pub fn start(self, points: &[f64], seed: u64) -> Result<MixedPredictor, PredictorError> {
        let params = start::mixed_params(self.layer.family(), points, seed)?;
        Ok(MixedPredictor { network: self.network.around(&params), layer: self.layer })
    }

    /// Returns one parameter vector per row of inputs in float64, for queries; one vector where there are no inputs.
    pub fn params(&self, inputs: Option<Tensor<2>>) -> Vec<f64> {
        to_f64_vec(self.network.forward(inputs))
    }

    /// Fails if rows have regions of their own.
    fn check(batch: &Batch) -> Result<(), PredictorError> {
        match batch.regions {
            None => Ok(()),
            Some(_) => {
                let reason = "a network over Boolean variables has one constraint for all rows";
                Err(PredictorError::Unsuitable(reason.to_string()))
            }
        }
    }
}

impl Trainable for MixedPredictor {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        MixedPredictor::check(batch)?;
        Ok(self.layer.log_prob(self.network.forward(batch.inputs.clone()), &batch.points)?)
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        MixedPredictor::check(batch)?;
        Ok(self.layer.loss(self.network.forward(batch.inputs.clone()), &batch.points)?)
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        Ok(self.layer.family().sample(&self.params(inputs), count, seed)?)
    }
}
