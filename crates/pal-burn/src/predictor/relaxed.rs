//! One Gaussian under a relaxed constraint, in the manner of DeepSeaProbLog (PAL paper, Appendix E.3, Eq. DSP-Loss). A
//! baseline: nothing keeps its mass inside the constraint.
//!
//! The loss is the negative log-density plus the cross entropy of satisfying the constraint, `-log E[s(y)]` over
//! samples y of the Gaussian, where s is the constraint with `sigmoid(multiplier * margin)` in place of every
//! inequality. During training the multiplier grows like `start + (end - start) tanh(alpha step)`.

use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Tensor, TensorData};
use pal::formula::{Connective, Constraint, Formula, Node, Relation};
use pal::number::to_f64;
use pal::random::Stream;
use serde::{Deserialize, Serialize};

use super::mixture::{Gaussians, Mixture};
use super::{Batch, PredictorError, Trainable};

/// How the constraint is relaxed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelaxedSettings {
    /// The multiplier before the first step.
    pub start: f64,
    /// The multiplier that training tends to.
    pub end: f64,
    /// The rate at which the multiplier grows with the steps.
    pub alpha: f64,
    /// The number of samples per row of inputs that estimate the probability of the constraint.
    pub samples: usize,
    /// The seed of these samples.
    pub seed: u64,
}

impl Default for RelaxedSettings {
    fn default() -> RelaxedSettings {
        RelaxedSettings { start: 0.1, end: 5.0, alpha: 1e-4, samples: 50, seed: 0 }
    }
}

/// A Gaussian whose parameters come from a network, trained with a penalty on mass outside the constraint.
#[derive(Module, Debug)]
pub struct Relaxed {
    gaussian: Mixture,
    #[module(skip)]
    constraint: Constraint,
    #[module(skip)]
    settings: RelaxedSettings,
}

impl Relaxed {
    /// Adds the penalty to a mixture with one component; the constraint must have real variables only.
    pub fn new(
        gaussian: Mixture,
        constraint: Constraint,
        settings: RelaxedSettings,
    ) -> Result<Relaxed, PredictorError> {
        if !constraint.formula.boolean_variables().is_empty() {
            return Err(PredictorError::Unsuitable("a relaxed constraint cannot have Boolean variables".to_string()));
        }
        Ok(Relaxed { gaussian, constraint, settings })
    }

    /// Shifts the outputs of the network so that training begins with the Gaussian fitted to the points.
    #[must_use]
    pub fn start(self, points: &[f64], seed: u64) -> Relaxed {
        Relaxed { gaussian: self.gaussian.start(points, seed), ..self }
    }

    fn multiplier(&self, step: u64) -> f64 {
        let RelaxedSettings { start, end, alpha, .. } = self.settings;
        start + (end - start) * (alpha * step as f64).tanh()
    }

    /// Draws samples with gradients with respect to the Gaussian (the reparametrisation trick), in the units of the
    /// data: one tensor per coordinate, with one row per row of inputs and one column per sample.
    fn coordinates(&self, gaussian: &Gaussians, step: u64) -> Vec<Tensor<2>> {
        let (rows, n, samples) = (gaussian.logits.dims()[0], gaussian.means.len(), self.settings.samples);
        let (device, dtype) = (gaussian.logits.device().without_autodiff(), gaussian.logits.dtype());
        let mut stream = Stream::new(self.settings.seed, step);
        let mut offsets: Vec<Tensor<2>> = Vec::with_capacity(n);
        for j in 0..n {
            let noise: Vec<f64> = (0..rows * samples).map(|_| stream.normal()).collect();
            let mut d = Tensor::<2>::from_data(TensorData::new(noise, [rows, samples]), (&device, dtype));
            for (i, offset) in offsets.iter().enumerate() {
                d = d - gaussian.lower[j * j.saturating_sub(1) / 2 + i].clone() * offset.clone();
            }
            offsets.push(d * (-gaussian.log_diagonal[j].clone()).exp());
        }
        let scaler = self.gaussian.scaler();
        let unscale = |(j, offset): (usize, Tensor<2>)| {
            (offset + gaussian.means[j].clone()) * scaler.deviation[j] + scaler.mean[j]
        };
        offsets.into_iter().enumerate().map(unscale).collect()
    }

    /// Returns the degree to which each sample satisfies the relaxed constraint, between 0 and 1.
    fn satisfaction(&self, coordinates: &[Tensor<2>], multiplier: f64) -> Tensor<2> {
        let reals = &self.constraint.reals;
        let ones = coordinates[0].ones_like();
        self.constraint.formula.fold(|formula: &Formula, parts: &[Tensor<2>]| match formula.node() {
            Node::Constant(value) => ones.clone() * f64::from(u8::from(*value)),
            Node::Bool(_) => unreachable!("a relaxed constraint has no Boolean variables, as `new` checks"),
            Node::Atom(atom) => {
                let plane = atom.plane();
                let terms = plane.normal().iter().map(|(var, c)| {
                    let at = reals.iter().position(|real| real == var);
                    let at = at.expect("a constraint lists every variable of its formula");
                    (at, to_f64(&pal::number::Rational::from(c.clone())))
                });
                let terms: Vec<(usize, f64)> = terms.collect();
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

impl Trainable for Relaxed {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        self.gaussian.log_prob(batch)
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        let gaussian = self.gaussian.gaussians(batch.inputs.clone());
        let coordinates = self.coordinates(&gaussian, batch.step);
        let satisfied = self.satisfaction(&coordinates, self.multiplier(batch.step)).mean_dim(1);
        let entropy = -satisfied.clamp_min(1e-12).log().mean();
        Ok(entropy - self.gaussian.log_prob(batch)?.mean())
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        self.gaussian.sample(inputs, count, seed)
    }
}
