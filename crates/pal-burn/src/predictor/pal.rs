//! A network with a [`PalLayer`] on top: the conditional density `p(y | x)` of the PAL paper, Eq. (PAL).

use ::pal::density::{Density, RegionForms};
use burn::module::Module;
use burn::tensor::Tensor;

use super::{Batch, BatchRegions, PredictorError, Trainable, to_f64_vec};
use crate::layer::{PalLayer, StudentTHead};
use crate::network::Network;
use crate::start;

/// A network whose outputs are the parameters of a [`PalLayer`], directly or through a [`StudentTHead`].
#[derive(Module, Debug)]
pub struct PalPredictor {
    network: Network,
    #[module(skip)]
    head: Option<StudentTHead>,
    #[module(skip)]
    layer: PalLayer,
}

impl PalPredictor {
    /// Puts a layer on a network with as many outputs as the layer has parameters.
    pub fn new(network: Network, layer: PalLayer) -> PalPredictor {
        PalPredictor { network, head: None, layer }
    }

    /// Puts a head and a layer on a network with as many outputs as the head asks for ([`StudentTHead::num_params`]).
    pub fn with_head(network: Network, head: StudentTHead, layer: PalLayer) -> PalPredictor {
        PalPredictor { network, head: Some(head), layer }
    }

    /// Returns the layer.
    pub fn layer(&self) -> &PalLayer {
        &self.layer
    }

    /// Moves the beginning of training near the data: with a head to one component per cluster of the points, without
    /// one to [`start::family_params`]. For raw monomials the outputs get the [`start::scales`] that fit the rows of
    /// `first`.
    pub fn start(self, first: &Batch, points: &[f64], seed: u64) -> Result<PalPredictor, PredictorError> {
        let PalPredictor { network, head, layer } = self;
        if let Some(head) = head {
            let network = network.around(&head.start(points, seed));
            return Ok(PalPredictor::with_head(network, head, layer));
        }
        if layer.family().kind().wants_scaled_start() {
            let network = match network {
                // Factors have nothing to work on where all parameters are 0.
                Network::Free(_) => network.around(&start::family_params(layer.family(), points, seed)?),
                Network::Mlp(_) => network,
            };
            let outputs = network.forward(first.inputs.clone());
            let (factors, _) = start::scales(&layer, outputs, &layer.points(&first.points)?);
            return Ok(PalPredictor::new(network.scaled(&factors), layer));
        }
        let params = start::family_params(layer.family(), points, seed)?;
        Ok(PalPredictor::new(network.around(&params), layer))
    }

    fn forward(&self, inputs: Option<Tensor<2>>) -> Tensor<2> {
        let outputs = self.network.forward(inputs);
        match &self.head {
            Some(head) => head.params(outputs),
            None => outputs,
        }
    }

    /// Returns log-densities of the points of a batch on the regions of their rows.
    fn log_prob_on(&self, batch: &Batch, regions: &RegionForms) -> Result<Tensor<1>, PredictorError> {
        let outputs = self.network.forward(batch.inputs.clone());
        let one_for_all = outputs.dims()[0] == 1 && batch.len() > 1;
        let outputs = if one_for_all { outputs.repeat_dim(0, batch.len()) } else { outputs };
        Ok(match &self.head {
            Some(head) => self.layer.log_prob_of_outputs_on(head, outputs, &batch.points, regions)?,
            None => self.layer.log_prob_on(outputs, &batch.points, regions)?,
        })
    }

    /// Returns one parameter vector per row of inputs in float64, for queries; one vector where there are no inputs.
    pub fn params(&self, inputs: Option<Tensor<2>>) -> Vec<f64> {
        to_f64_vec(self.forward(inputs))
    }
}

impl Trainable for PalPredictor {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        if let Some(regions) = forms(batch.regions.as_ref())? {
            return self.log_prob_on(batch, regions);
        }
        let points = self.layer.points(&batch.points)?;
        let outputs = self.network.forward(batch.inputs.clone());
        Ok(match &self.head {
            Some(head) => self.layer.log_prob_of_outputs(head, outputs, &points),
            None => self.layer.log_prob(outputs, &points),
        })
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        if let Some(regions) = forms(batch.regions.as_ref())? {
            return Ok(-self.log_prob_on(batch, regions)?.mean());
        }
        let points = self.layer.points(&batch.points)?;
        let outputs = self.network.forward(batch.inputs.clone());
        Ok(match &self.head {
            Some(head) => self.layer.loss_of_outputs(head, outputs, &points),
            None => self.layer.loss(outputs, &points),
        })
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        let params = self.params(inputs.clone());
        let family = self.layer.family();
        Ok(match inputs {
            None => family.density(&params)?.sample(count, seed)?,
            Some(_) => family.sample(&params, count, seed)?,
        })
    }

    fn sample_on(
        &self,
        inputs: Option<Tensor<2>>,
        regions: Option<&BatchRegions>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<f64>, PredictorError> {
        let Some(regions) = forms(regions)? else { return self.sample(inputs, count, seed) };
        let densities = regions.densities(&self.params(inputs))?;
        let draw = |(row, density): (usize, &Density)| {
            Ok(density.sampler()?.sample_from(row as u64 * count as u64, count, seed))
        };
        let parts = densities.iter().enumerate().map(draw).collect::<Result<Vec<_>, PredictorError>>()?;
        Ok(parts.concat())
    }
}

/// The regions of a batch as spline mixtures need them.
fn forms(regions: Option<&BatchRegions>) -> Result<Option<&RegionForms>, PredictorError> {
    match regions {
        None => Ok(None),
        Some(BatchRegions::Forms(forms)) => Ok(Some(forms)),
        Some(BatchRegions::Kernels(_)) => {
            let reason =
                "the regions of these rows were compiled for kernels; compile them for the family of the layer";
            Err(PredictorError::Unsuitable(reason.to_string()))
        }
    }
}
