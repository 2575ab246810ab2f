//! The layer on top of a network.

use burn::module::Module;
use burn::tensor::Tensor;

use pal::density::{Recipe, SumOfSquaresRecipe};

use super::{Batch, Model, ModelError, doubles};
use crate::layer::{PalLayer, StudentTHead};
use crate::network::Network;
use crate::start;

/// A network with a [`PalLayer`].
#[derive(Module, Debug)]
pub struct PalModel {
    network: Network,
    #[module(skip)]
    head: Option<StudentTHead>,
    #[module(skip)]
    layer: PalLayer,
}

impl PalModel {
    /// The network must have as many outputs as the layer has parameters.
    pub fn new(network: Network, layer: PalLayer) -> PalModel {
        PalModel { network, head: None, layer }
    }

    /// The network must have as many outputs as the bumps have parameters.
    pub fn with_head(network: Network, head: StudentTHead, layer: PalLayer) -> PalModel {
        PalModel { network, head: Some(head), layer }
    }

    /// The layer.
    pub fn layer(&self) -> &PalLayer {
        &self.layer
    }

    /// Begins near the data: with a bump for each cluster of the points, or at their [`start::family_params`], or for a family of raw polynomials
    /// with the [`start::scales`] of the first rows.
    pub fn start(self, first: &Batch, points: &[f64], seed: u64) -> Result<PalModel, ModelError> {
        let PalModel { network, head, layer } = self;
        if let Some(head) = head {
            let network = network.around(&head.start(points, seed));
            return Ok(PalModel::with_head(network, head, layer));
        }
        if let Recipe::SumOfSquares(SumOfSquaresRecipe { damped: true, .. }) = layer.compiled().recipe() {
            let network = match network {
                // Factors have nothing to work on where all parameters are 0.
                Network::Free(_) => network.around(&start::family_params(layer.compiled(), points, seed)?),
                Network::Mlp(_) => network,
            };
            let outputs = network.forward(first.inputs.clone());
            let (factors, _) = start::scales(&layer, outputs, &layer.points(&first.points)?);
            return Ok(PalModel::new(network.scaled(&factors), layer));
        }
        let params = start::family_params(layer.compiled(), points, seed)?;
        Ok(PalModel::new(network.around(&params), layer))
    }

    fn forward(&self, inputs: Option<Tensor<2>>) -> Tensor<2> {
        let outputs = self.network.forward(inputs);
        match &self.head {
            Some(head) => head.params(outputs),
            None => outputs,
        }
    }

    /// Parameter vectors for rows of inputs, in doubles.
    pub fn params(&self, inputs: Option<Tensor<2>>) -> Vec<f64> {
        doubles(self.forward(inputs))
    }
}

impl Model for PalModel {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let points = self.layer.points(&batch.points)?;
        Ok(self.layer.log_prob(self.forward(batch.inputs.clone()), &points))
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let points = self.layer.points(&batch.points)?;
        Ok(self.layer.loss(self.forward(batch.inputs.clone()), &points))
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        let params = self.params(inputs.clone());
        let family = self.layer.compiled();
        Ok(match inputs {
            None => family.density(&params)?.sample(count, seed)?,
            Some(_) => family.sample(&params, count, seed)?,
        })
    }
}
