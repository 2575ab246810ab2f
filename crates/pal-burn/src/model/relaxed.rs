//! One Gaussian with a relaxed constraint, in the manner of DeepSeaProbLog.
//!
//! The loss is minus the log-density plus the cross entropy of satisfying the constraint, `-log E[s(y)]` over samples y of the Gaussian, where s is the
//! constraint with `sigmoid(multiplier * margin)` in place of every inequality. The multiplier grows during training, `end tanh(alpha step)`, from a
//! given start. Nothing keeps mass from leaving the constraint.

use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Tensor, TensorData};
use pal::formula::{Connective, Constraint, Formula, Node, Relation};
use pal::number::to_f64;
use serde::{Deserialize, Serialize};

use super::mixture::{Mixture, Parts};
use super::{Batch, Model, ModelError};
use crate::random::Normal;

/// How the constraint is relaxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelaxedSettings {
    /// The multiplier at the start.
    pub start: f64,
    /// The multiplier in the end.
    pub end: f64,
    /// How fast it grows with the steps.
    pub alpha: f64,
    /// Samples per input.
    pub samples: usize,
    /// Seed of the samples.
    pub seed: u64,
}

impl Default for RelaxedSettings {
    fn default() -> RelaxedSettings {
        RelaxedSettings { start: 0.1, end: 5.0, alpha: 1e-4, samples: 50, seed: 0 }
    }
}

/// A Gaussian whose parameters come from a network, with a penalty on mass outside.
#[derive(Module, Debug)]
pub struct Relaxed {
    gaussian: Mixture,
    #[module(skip)]
    constraint: Constraint,
    #[module(skip)]
    settings: RelaxedSettings,
}

impl Relaxed {
    /// The mixture must have one component, and the constraint real variables only.
    pub fn new(gaussian: Mixture, constraint: Constraint, settings: RelaxedSettings) -> Result<Relaxed, ModelError> {
        if !constraint.formula.boolean_variables().is_empty() {
            return Err(ModelError::Constraint("a relaxed constraint cannot have Boolean variables".to_string()));
        }
        Ok(Relaxed { gaussian, constraint, settings })
    }

    /// Begins with a Gaussian at the points.
    #[must_use]
    pub fn start(self, points: &[f64], seed: u64) -> Relaxed {
        Relaxed { gaussian: self.gaussian.start(points, seed), ..self }
    }

    fn multiplier(&self, step: u64) -> f64 {
        let RelaxedSettings { start, end, alpha, .. } = self.settings;
        start + (end - start) * (alpha * step as f64).tanh()
    }

    /// Samples as one column per coordinate, in the scale of the data, with gradients with respect to the Gaussian.
    fn coordinates(&self, parts: &Parts, step: u64) -> Vec<Tensor<2>> {
        let (rows, n, samples) = (parts.logits.dims()[0], parts.means.len(), self.settings.samples);
        let (device, dtype) = (parts.logits.device().without_autodiff(), parts.logits.dtype());
        let mut normal = Normal::new(self.settings.seed, step);
        let mut offsets: Vec<Tensor<2>> = Vec::with_capacity(n);
        for j in 0..n {
            let noise: Vec<f64> = (0..rows * samples).map(|_| normal.next()).collect();
            let mut d = Tensor::<2>::from_data(TensorData::new(noise, [rows, samples]), (&device, dtype));
            for (i, offset) in offsets.iter().enumerate() {
                d = d - parts.lower[j * j.saturating_sub(1) / 2 + i].clone() * offset.clone();
            }
            offsets.push(d * (-parts.logs[j].clone()).exp());
        }
        let scaler = self.gaussian.scaler();
        let place =
            |(j, offset): (usize, Tensor<2>)| (offset + parts.means[j].clone()) * scaler.deviation[j] + scaler.mean[j];
        offsets.into_iter().enumerate().map(place).collect()
    }

    /// The degree to which samples satisfy the constraint, between 0 and 1.
    fn satisfaction(&self, coordinates: &[Tensor<2>], multiplier: f64) -> Tensor<2> {
        let reals = &self.constraint.reals;
        let ones = coordinates[0].ones_like();
        self.constraint.formula.fold(|formula: &Formula, parts: &[Tensor<2>]| match formula.node() {
            Node::Constant(value) => ones.clone() * f64::from(u8::from(*value)),
            // Refused at the start.
            Node::Bool(_) => ones.clone(),
            Node::Atom(atom) => {
                let plane = atom.plane();
                let terms = plane.normal().iter().map(|(var, c)| {
                    (reals.iter().position(|real| real == var), to_f64(&pal::number::Rational::from(c.clone())))
                });
                let terms: Vec<(usize, f64)> = terms.filter_map(|(at, c)| at.map(|at| (at, c))).collect();
                // Margins are distances, whatever the size of the coefficients.
                let length = terms.iter().map(|(_, c)| c * c).sum::<f64>().sqrt();
                let offset = to_f64(&pal::number::Rational::from(plane.offset().clone())) / length;
                let mut value = ones.clone() * -offset;
                for (at, c) in terms {
                    value = value + coordinates[at].clone() * (c / length);
                }
                let soft = |margin: Tensor<2>| sigmoid(margin * multiplier);
                match atom.relation() {
                    Relation::Le | Relation::Lt => soft(-value),
                    Relation::Eq => soft(-value.clone()) * soft(value) * 4.0,
                }
            }
            Node::Connective(Connective::And, _) => product(parts.iter().cloned(), &ones),
            Node::Connective(Connective::Or, _) => {
                ones.clone() - product(parts.iter().map(|part| ones.clone() - part.clone()), &ones)
            }
            Node::Connective(Connective::Not, _) => ones.clone() - parts[0].clone(),
            Node::Connective(Connective::Iff, _) => {
                let (a, b) = (parts[0].clone(), parts[1].clone());
                ones.clone() - a.clone() - b.clone() + a * b * 2.0
            }
            Node::Connective(Connective::Ite, _) => {
                let (condition, yes, no) = (parts[0].clone(), parts[1].clone(), parts[2].clone());
                no.clone() + condition * (yes - no)
            }
        })
    }
}

fn product(parts: impl Iterator<Item = Tensor<2>>, ones: &Tensor<2>) -> Tensor<2> {
    parts.reduce(|a, b| a * b).unwrap_or_else(|| ones.clone())
}

impl Model for Relaxed {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        self.gaussian.log_prob(batch)
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, ModelError> {
        let parts = self.gaussian.parts(batch.inputs.clone());
        let coordinates = self.coordinates(&parts, batch.step);
        let satisfied = self.satisfaction(&coordinates, self.multiplier(batch.step)).mean_dim(1);
        let entropy = -satisfied.clamp_min(1e-12).log().mean();
        Ok(entropy - self.gaussian.log_prob(batch)?.mean())
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, ModelError> {
        self.gaussian.sample(inputs, count, seed)
    }
}
