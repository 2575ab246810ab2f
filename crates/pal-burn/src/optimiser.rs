//! Optimisers: Adam and schedule-free AdamW.
//!
//! Both update a parameter in one pass over plain numbers, which is several times faster on a CPU than a dozen tensor
//! operations.
//!
//! Schedule-free AdamW (Defazio et al., The road less scheduled, 2024; the optimiser of the PAL paper, Appendix E)
//! keeps a fast iterate z and an average x; gradients are taken in between, at `y = (1 - beta1) z + beta1 x`. The
//! module holds y while it is trained; [`Optimiser::averaged`] returns x, which is the result of training.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::weights::{Real, numbers, replaced};

/// The rule by which gradients change parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateRule {
    /// Adam with decoupled weight decay.
    Adam,
    /// Schedule-free AdamW.
    #[default]
    ScheduleFree,
}

/// An update rule and its constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptimiserSettings {
    /// The update rule.
    pub rule: UpdateRule,
    /// The step size, after warm-up.
    pub learning_rate: f64,
    /// Adam: the decay of the mean of gradients. Schedule-free: where gradients are taken between z (0) and x (1).
    pub beta1: f64,
    /// The decay of the mean of squared gradients.
    pub beta2: f64,
    /// Added to the root of the mean of squared gradients.
    pub epsilon: f64,
    /// The rate of decoupled weight decay.
    pub weight_decay: f64,
    /// The number of steps over which the learning rate grows from 0.
    pub warmup: u64,
}

impl Default for OptimiserSettings {
    fn default() -> OptimiserSettings {
        OptimiserSettings {
            rule: UpdateRule::default(),
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            warmup: 0,
        }
    }
}

/// An optimiser for parameters of type `T`, with its memory.
#[derive(Clone, Debug)]
pub struct Optimiser<T> {
    settings: OptimiserSettings,
    state: OptimiserState<T>,
}

/// What an optimiser remembers between steps: everything that must be stored to continue later.
#[derive(Clone, Debug)]
pub struct OptimiserState<T> {
    /// The number of steps so far.
    pub steps: u64,
    /// The sum of the squared learning rates so far, which weighs the iterates in the average x.
    pub average_weight: f64,
    /// For each tensor, Adam's mean of gradients or the fast iterate z, and the mean of squared gradients.
    pub memory: Vec<[Vec<T>; 2]>,
}

/// The number of parameters that one task updates.
const BLOCK: usize = 1 << 14;

/// The constants of one step.
#[derive(Clone, Copy)]
struct Step<T> {
    rate: T,
    beta1: T,
    beta2: T,
    correction1: T,
    correction2: T,
    epsilon: T,
    decay: T,
    /// The weight of the new z in the average x.
    average_step: T,
}

impl<T: Real> Optimiser<T> {
    /// Makes an optimiser that has not taken a step yet.
    pub fn new(settings: OptimiserSettings) -> Optimiser<T> {
        Optimiser { settings, state: OptimiserState { steps: 0, average_weight: 0.0, memory: Vec::new() } }
    }

    /// Updates the parameters of a module by their gradients. A parameter without a gradient stays as it is.
    pub fn step<M: Module>(&mut self, module: M, gradients: Gradients) -> M {
        let gradients = GradientsParams::from_grads(gradients, &module);
        let step = self.next();
        let rule = self.settings.rule;
        module.map(&mut Mover { memory: &mut self.state.memory, at: 0, gradients, step, rule })
    }

    fn next(&mut self) -> Step<T> {
        let (s, state) = (&self.settings, &mut self.state);
        state.steps += 1;
        let count = state.steps as f64;
        let warm = if s.warmup > 0 { (count / s.warmup as f64).min(1.0) } else { 1.0 };
        let rate = s.learning_rate * warm;
        state.average_weight += rate * rate;
        let average_step = if state.average_weight > 0.0 { rate * rate / state.average_weight } else { 1.0 };
        Step {
            rate: real(rate),
            beta1: real(s.beta1),
            beta2: real(s.beta2),
            correction1: real(1.0 - s.beta1.powf(count)),
            correction2: real(1.0 - s.beta2.powf(count)),
            epsilon: real(s.epsilon),
            decay: real(s.weight_decay),
            average_step: real(average_step),
        }
    }

    /// Returns the module with the parameters that training has arrived at: the average x of schedule-free AdamW, or
    /// for Adam the module itself.
    pub fn averaged<M: Module>(&self, module: M) -> M {
        match self.settings.rule {
            UpdateRule::Adam => module,
            UpdateRule::ScheduleFree => {
                let factor = real(1.0 - 1.0 / self.settings.beta1);
                module.map(&mut Averager { memory: self.state.memory.iter(), factor })
            }
        }
    }

    /// Returns the memory of the optimiser.
    pub fn state(&self) -> &OptimiserState<T> {
        &self.state
    }

    /// Continues from a state that [`Optimiser::state`] has returned.
    pub fn restore(settings: OptimiserSettings, state: OptimiserState<T>) -> Optimiser<T> {
        Optimiser { settings, state }
    }
}

/// Converts a constant to the precision of the parameters.
fn real<T: Real>(x: f64) -> T {
    T::from(x).expect("a float64 rounds to a float32")
}

struct Mover<'o, T> {
    memory: &'o mut Vec<[Vec<T>; 2]>,
    at: usize,
    gradients: GradientsParams,
    step: Step<T>,
    rule: UpdateRule,
}

impl<T: Real> ModuleMapper for Mover<'_, T> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let at = self.at;
        self.at += 1;
        let gradient = self.gradients.remove::<D>(param.id).map(numbers::<T, D>);
        param.map(|tensor| {
            let mut values: Vec<T> = numbers(tensor.clone());
            if self.memory.len() <= at {
                let first = match self.rule {
                    UpdateRule::Adam => vec![T::zero(); values.len()],
                    UpdateRule::ScheduleFree => values.clone(),
                };
                self.memory.push([first, vec![T::zero(); values.len()]]);
            }
            let Some(gradient) = gradient else { return tensor };
            let [first, second] = &mut self.memory[at];
            let (step, rule) = (self.step, self.rule);
            let blocks = values.par_chunks_mut(BLOCK).zip(gradient.par_chunks(BLOCK));
            blocks.zip(first.par_chunks_mut(BLOCK)).zip(second.par_chunks_mut(BLOCK)).for_each(
                |(((values, gradient), first), second)| match rule {
                    UpdateRule::Adam => step.adam(values, gradient, first, second),
                    UpdateRule::ScheduleFree => step.schedule_free(values, gradient, first, second),
                },
            );
            replaced(tensor, values)
        })
    }
}

impl<T: Real> Step<T> {
    fn adam(self, values: &mut [T], gradient: &[T], first: &mut [T], second: &mut [T]) {
        let one = T::one();
        for (((value, g), m), v) in values.iter_mut().zip(gradient).zip(first).zip(second) {
            *m = self.beta1 * *m + (one - self.beta1) * *g;
            *v = self.beta2 * *v + (one - self.beta2) * *g * *g;
            let root = (*v / self.correction2).sqrt() + self.epsilon;
            *value = *value - self.rate * (*m / self.correction1 / root + self.decay * *value);
        }
    }

    fn schedule_free(self, values: &mut [T], gradient: &[T], z: &mut [T], second: &mut [T]) {
        let one = T::one();
        let along = self.rate * (self.beta1 * (one - self.average_step) - one);
        for (((y, g), z), v) in values.iter_mut().zip(gradient).zip(z).zip(second) {
            *v = self.beta2 * *v + (one - self.beta2) * *g * *g;
            let root = (*v / self.correction2).sqrt() + self.epsilon;
            let direction = *g / root + self.decay * *y;
            *y = *y + self.average_step * (*z - *y) + along * direction;
            *z = *z - self.rate * direction;
        }
    }
}

struct Averager<'o, T> {
    memory: std::slice::Iter<'o, [Vec<T>; 2]>,
    factor: T,
}

impl<T: Real> ModuleMapper for Averager<'_, T> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Before the first step there is no memory, and all iterates are the same.
        let Some([z, _]) = self.memory.next() else { return param };
        let factor = self.factor;
        param.map(|tensor| {
            let mut values: Vec<T> = numbers(tensor.clone());
            values.iter_mut().zip(z).for_each(|(y, z)| *y = *y + factor * (*z - *y));
            replaced(tensor, values)
        })
    }
}
