//! A network whose outputs are kernels: the conditional density of [`pal::kernel`].

use ::pal::kernel::{KernelFamily, log_prob_each};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::{Batch, BatchRegions, PredictorError, Trainable, to_f64_vec};
use crate::network::Network;

/// A network whose outputs are the parameters of a mixture of kernels on a region.
///
/// Log-densities and their gradients come from the library in one pass, in float64, whatever the precision and the device
/// of the weights.
#[derive(Module, Debug)]
pub struct KernelPredictor {
    network: Network,
    #[module(skip)]
    family: KernelFamily,
}

impl KernelPredictor {
    /// Puts a mixture of kernels on a network with as many outputs as the family has parameters.
    pub fn new(network: Network, family: KernelFamily) -> KernelPredictor {
        KernelPredictor { network, family }
    }

    /// Returns the family.
    pub fn family(&self) -> &KernelFamily {
        &self.family
    }

    /// Returns one parameter vector per row of inputs in float64, for queries; one vector where there are no inputs.
    pub fn params(&self, inputs: Option<Tensor<2>>) -> Vec<f64> {
        to_f64_vec(self.network.forward(inputs))
    }

    /// The family of every row, or one for all of them.
    fn families<'s>(&'s self, regions: Option<&'s BatchRegions>) -> Result<Vec<&'s KernelFamily>, PredictorError> {
        match regions {
            None => Ok(vec![&self.family]),
            Some(BatchRegions::Kernels(families)) => Ok(families.iter().collect()),
            Some(BatchRegions::Forms(_)) => {
                let reason = "the regions of these rows were compiled for splines; compile them for the kernels";
                Err(PredictorError::Unsuitable(reason.to_string()))
            }
        }
    }
}

impl Trainable for KernelPredictor {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        let families = self.families(batch.regions.as_ref())?;
        // One row of parameters belongs to all points where there are no inputs.
        let outputs = self.network.forward(batch.inputs.clone());
        let (count, width) = (batch.len(), self.family.num_params());
        let (device, dtype) = (outputs.device(), outputs.dtype());
        let constant = outputs.clone().detach();
        let params = to_f64_vec(constant.clone());
        let computed = log_prob_each(&families, &params, &batch.points, device.is_autodiff())?;
        let values = Tensor::<1>::from_data(TensorData::new(computed.log_prob, [count]), (&device, dtype));
        if computed.gradient.is_empty() {
            return Ok(values);
        }
        // The difference is exactly zero, so that the sum has these values and these gradients.
        let gradient = Tensor::<2>::from_data(TensorData::new(computed.gradient, [count, width]), (&device, dtype));
        Ok(values + ((outputs - constant) * gradient).sum_dim(1).squeeze_dim(1))
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        Ok(self.family.sample(&self.params(inputs), count, seed)?)
    }

    fn sample_on(
        &self,
        inputs: Option<Tensor<2>>,
        regions: Option<&BatchRegions>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<f64>, PredictorError> {
        let families = self.families(regions)?;
        if regions.is_none() {
            return self.sample(inputs, count, seed);
        }
        let params = self.params(inputs);
        let per = self.family.num_params();
        // One row of parameters belongs to all regions where there are no inputs.
        let row = |k: usize| if params.len() == per { &params[..] } else { &params[k * per..(k + 1) * per] };
        let draw = |(k, family): (usize, &&KernelFamily)| family.sample(row(k), count, seed.wrapping_add(k as u64));
        let parts: Vec<Vec<f64>> = families.iter().enumerate().map(draw).collect::<Result<_, _>>()?;
        Ok(parts.concat())
    }
}
