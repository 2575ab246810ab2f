//! The layer on top of a network.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{Batch, Model, ModelError, doubles};
use crate::PalLayer;
use crate::network::Network;

/// A network with a [`PalLayer`].
#[derive(Module, Debug)]
pub struct PalModel {
    network: Network,
    #[module(skip)]
    layer: PalLayer,
}

impl PalModel {
    /// The network must have as many outputs as the layer has parameters.
    pub fn new(network: Network, layer: PalLayer) -> PalModel {
        PalModel { network, layer }
    }

    /// The layer.
    pub fn layer(&self) -> &PalLayer {
        &self.layer
    }

    /// Parameter vectors for rows of inputs, in doubles.
    pub fn params(&self, inputs: Option<Tensor<2>>) -> Vec<f64> {
        doubles(self.network.forward(inputs))
    }
}

impl Model for PalModel {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let points = self.layer.points(&batch.points)?;
        Ok(self.layer.log_prob(self.network.forward(batch.inputs.clone()), &points))
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let points = self.layer.points(&batch.points)?;
        Ok(self.layer.loss(self.network.forward(batch.inputs.clone()), &points))
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        let params = self.params(inputs.clone());
        let family = self.layer.compiled();
        Ok(match inputs {
            None => family.distribution(&params)?.sample(count, seed)?,
            Some(_) => family.sample(&params, 1, seed)?,
        })
    }
}
