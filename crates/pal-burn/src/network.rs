//! Networks in front of a layer.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor};

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
