//! The value of a density at a point: the weighted sum of its components.

use crate::density::BinIndex;
use crate::density::functions::ComponentFunctions;

/// `sum_c weights_c q_c` relative to the volume of the box, with memory for the values of the components.
pub(in crate::query) struct Mixture<'a> {
    functions: &'a dyn ComponentFunctions,
    weights: &'a [f64],
    values: Vec<f64>,
}

impl<'a> Mixture<'a> {
    pub fn new(functions: &'a dyn ComponentFunctions, weights: &'a [f64]) -> Mixture<'a> {
        Mixture { functions, weights, values: vec![0.0; functions.components()] }
    }

    /// The sum at local coordinates of a bin.
    pub fn value(&mut self, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.functions.values(bin, t, &mut self.values);
        self.values.iter().zip(self.weights).map(|(q, w)| w * q).sum()
    }
}
