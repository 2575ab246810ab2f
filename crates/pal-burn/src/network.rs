//! Networks in front of a layer: fully connected ones, and parameters that depend on no input.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor};

use crate::weights::{numbers, replaced};

/// A fully connected network (multilayer perceptron) with ReLU between its layers.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    /// Makes a randomly initialised network; `hidden` has the number of units of each hidden layer.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, device: &Device) -> Mlp {
        let sizes: Vec<usize> = [inputs].iter().chain(hidden).chain([&outputs]).copied().collect();
        Mlp { layers: sizes.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect() }
    }

    /// Returns the device and the precision of the weights.
    pub fn context(&self) -> (Device, DType) {
        let weight = self.layers[0].weight.val();
        (weight.device(), weight.dtype())
    }

    /// Returns one row of outputs per row of inputs.
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let mut x = inputs;
        for (k, layer) in self.layers.iter().enumerate() {
            x = layer.forward(if k == 0 { x } else { relu(x) });
        }
        x
    }
}

impl Mlp {
    /// Adds a constant to each output, by changing the biases of the last layer.
    #[must_use]
    pub fn shifted(mut self, by: &[f64]) -> Mlp {
        let shift = |values: &mut [f64]| values.iter_mut().zip(by).for_each(|(value, by)| *value += by);
        self.last(|_| (), shift);
        self
    }

    /// Multiplies each output by a factor, by changing the last layer.
    #[must_use]
    pub fn scaled(mut self, by: &[f64]) -> Mlp {
        let scale = |values: &mut [f64]| values.iter_mut().zip(by.iter().cycle()).for_each(|(value, by)| *value *= by);
        // The matrix of weights is stored row by row and has one column per output.
        self.last(scale, scale);
        self
    }

    /// Changes the weights and biases of the last layer.
    fn last(&mut self, weights: impl Fn(&mut [f64]), biases: impl Fn(&mut [f64])) {
        let last = self.layers.last_mut().expect("a network has at least one layer, between inputs and outputs");
        last.weight = changed(last.weight.clone(), weights);
        last.bias = last.bias.take().map(|bias| changed(bias, biases));
    }
}

fn changed<const D: usize>(param: Param<Tensor<D>>, change: impl Fn(&mut [f64])) -> Param<Tensor<D>> {
    param.map(|old| {
        let mut values: Vec<f64> = numbers(old.clone());
        change(&mut values);
        replaced(old, values)
    })
}

/// Outputs that are parameters themselves and depend on no input, as for an unconditional density.
#[derive(Module, Debug)]
pub struct Free {
    /// The outputs, as a matrix with one row.
    pub row: Param<Tensor<2>>,
}

/// What computes the parameters of a density.
#[derive(Module, Debug)]
pub enum Network {
    /// A network with inputs.
    Mlp(Mlp),
    /// Outputs without inputs.
    Free(Free),
}

impl Network {
    /// Makes a fully connected network, or a row of free parameters where the number of inputs is 0.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, device: &Device) -> Network {
        if inputs > 0 {
            return Network::Mlp(Mlp::new(inputs, hidden, outputs, device));
        }
        Network::Free(Free { row: Param::from_tensor(Tensor::zeros([1, outputs], device)) })
    }

    /// Moves the outputs to the given ones: a network gets them added to its outputs, free parameters are set to them.
    #[must_use]
    pub fn around(self, outputs: &[f64]) -> Network {
        match self {
            Network::Mlp(mlp) => Network::Mlp(mlp.shifted(outputs)),
            Network::Free(free) => {
                let set = |values: &mut [f64]| values.copy_from_slice(outputs);
                Network::Free(Free { row: changed(free.row, set) })
            }
        }
    }

    /// Multiplies each output by a factor.
    #[must_use]
    pub fn scaled(self, by: &[f64]) -> Network {
        match self {
            Network::Mlp(mlp) => Network::Mlp(mlp.scaled(by)),
            Network::Free(free) => {
                let scale = |values: &mut [f64]| values.iter_mut().zip(by).for_each(|(value, by)| *value *= by);
                Network::Free(Free { row: changed(free.row, scale) })
            }
        }
    }

    /// Returns one row of outputs per row of inputs; one row where there are no inputs.
    pub fn forward(&self, inputs: Option<Tensor<2>>) -> Tensor<2> {
        match (self, inputs) {
            (Network::Mlp(mlp), Some(inputs)) => mlp.forward(inputs),
            // Without inputs a network is evaluated at 0, the mean of scaled inputs.
            (Network::Mlp(mlp), None) => {
                let [inputs, _] = mlp.layers[0].weight.dims();
                let (device, dtype) = mlp.context();
                mlp.forward(Tensor::zeros([1, inputs], (&device, dtype)))
            }
            (Network::Free(free), _) => free.row.val(),
        }
    }
}
