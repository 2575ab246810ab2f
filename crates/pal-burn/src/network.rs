//! Networks in front of a layer.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor};

use crate::weights::{numbers, replaced};

/// A fully connected network with ReLU between its layers.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    /// With the given numbers of inputs, hidden units and outputs.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, device: &Device) -> Mlp {
        let sizes: Vec<usize> = [inputs].iter().chain(hidden).chain([&outputs]).copied().collect();
        Mlp { layers: sizes.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect() }
    }

    /// Where its numbers are, and in which precision.
    pub fn context(&self) -> (Device, DType) {
        let weight = self.layers[0].weight.val();
        (weight.device(), weight.dtype())
    }

    /// One row of outputs for each row of inputs.
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let mut x = inputs;
        for (k, layer) in self.layers.iter().enumerate() {
            x = layer.forward(if k == 0 { x } else { relu(x) });
        }
        x
    }
}

impl Mlp {
    /// The network with outputs shifted to be around given ones.
    #[must_use]
    pub fn shifted(mut self, by: &[f64]) -> Mlp {
        let shift = |values: &mut [f64]| values.iter_mut().zip(by).for_each(|(value, by)| *value += by);
        self.last(|_| (), shift);
        self
    }

    /// The network with every output times a factor.
    #[must_use]
    pub fn scaled(mut self, by: &[f64]) -> Mlp {
        let scale = |values: &mut [f64]| values.iter_mut().zip(by.iter().cycle()).for_each(|(value, by)| *value *= by);
        // Weights lie row by row, with one column for each output.
        self.last(scale, scale);
        self
    }

    /// Changes the numbers of the last layer.
    fn last(&mut self, weights: impl Fn(&mut [f64]), biases: impl Fn(&mut [f64])) {
        let Some(last) = self.layers.last_mut() else { return };
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

/// Parameters that depend on nothing: an unconditional density.
#[derive(Module, Debug)]
pub struct Free {
    /// One row.
    pub row: Param<Tensor<2>>,
}

/// What produces parameters.
#[derive(Module, Debug)]
pub enum Network {
    /// From inputs.
    Mlp(Mlp),
    /// From nothing.
    Free(Free),
}

impl Network {
    /// A network with inputs, or a row of parameters where there are none.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, device: &Device) -> Network {
        if inputs > 0 {
            return Network::Mlp(Mlp::new(inputs, hidden, outputs, device));
        }
        Network::Free(Free { row: Param::from_tensor(Tensor::zeros([1, outputs], device)) })
    }

    /// The network with outputs around given ones.
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

    /// The network with every output times a factor.
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

    /// One row for each row of inputs, or one row where there are none.
    pub fn forward(&self, inputs: Option<Tensor<2>>) -> Tensor<2> {
        match (self, inputs) {
            (Network::Mlp(mlp), Some(inputs)) => mlp.forward(inputs),
            // A network without inputs is asked at 0: its biases answer.
            (Network::Mlp(mlp), None) => {
                let [inputs, _] = mlp.layers[0].weight.dims();
                let (device, dtype) = mlp.context();
                mlp.forward(Tensor::zeros([1, inputs], (&device, dtype)))
            }
            (Network::Free(free), _) => free.row.val(),
        }
    }
}
