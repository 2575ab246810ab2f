//! What the parameters of a kernel mixture mean.
//!
//! A component has `4 + widths` numbers beside its logit: one logit for each width but the first, the place along both
//! axes, the logarithms of the scales along both axes before they are limited, and the direction. One more logit, the last
//! parameter of all, is that of the uniform part.
//!
//! ```text
//! weights      softmax of all logits; the uniform part has at least UNIFORM
//! place        c_j = REACH tanh((offset_j + GAIN o_j) / REACH)
//! scale        s_j = NARROWEST + (WIDEST - NARROWEST) sigmoid(offset + GAIN o_j)
//! factor       L = [[s_1, 0], [s_2 d, s_2]], with the direction d = GAIN o
//! ```
//!
//! All of this is in coordinates that run from -1 to 1 along both axes of the box around the region. Zeros are broad
//! kernels at places all over the box, with a uniform part.

use super::integral::{Kernel, KernelGradient};

/// The widths of the copies of every kernel, relative to its scales: a narrow bell with wide tails.
pub(super) const WIDTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// The least weight of the uniform part: every point of the region stays possible, and no normalising constant is so
/// small that it loses its digits.
pub(super) const UNIFORM: f64 = 1e-4;

/// How far from the centre of the box kernels may be placed.
const REACH: f64 = 1.5;
/// The limits of scales.
const NARROWEST: f64 = 0.01;
const WIDEST: f64 = 2.0;
/// The scale that a parameter of 0 stands for.
const SCALE_AT_ZERO: f64 = 0.3;
/// How far from the centre places at parameters of 0 are.
const SPREAD: f64 = 0.6;
/// The weight of the second to last widths relative to the first one, for parameters of 0.
const TAIL_AT_ZERO: f64 = 0.2;
/// The weight of the uniform part relative to all components together, for parameters of 0.
const UNIFORM_AT_ZERO: f64 = 0.3;

/// How far one unit of a parameter goes: with steps of the usual learning rates places, scales and weights then settle
/// within some thousand steps.
const GAIN: f64 = 2.0;

/// The number of parameters of a component.
pub(super) const PER_COMPONENT: usize = WIDTHS.len() + 5;

/// The parts of the parameters of a component.
const LOGIT: usize = 0;
const TAILS: usize = 1;
const PLACE: usize = WIDTHS.len();
const SCALE: usize = PLACE + 2;
const DIRECTION: usize = SCALE + 2;

/// The mixture that one row of parameters stands for.
#[derive(Clone, Debug)]
pub(crate) struct KernelRow {
    /// The kernels: all widths of the first component, then those of the second one, and so on.
    pub kernels: Vec<Kernel>,
    /// Their weights, which sum to 1 together with the uniform one.
    pub weights: Vec<f64>,
    /// The weight of the uniform part.
    pub uniform: f64,
    components: Vec<ComponentState>,
}

/// What the vector-Jacobian product needs of a component.
#[derive(Clone, Debug)]
struct ComponentState {
    /// The softmax of the logit.
    weight: f64,
    /// The softmax over widths.
    tails: [f64; WIDTHS.len()],
    kernel: Kernel,
    direction: f64,
    /// The derivatives of places and scales with respect to their parameters.
    place_slope: [f64; 2],
    scale_slope: [f64; 2],
}

/// The derivatives of one number with respect to a mixture.
pub(super) struct MixtureGradient {
    /// For each kernel its weight times the derivative with respect to its weight.
    pub weights: Vec<f64>,
    /// For each kernel the derivatives with respect to its place and factor.
    pub kernels: Vec<KernelGradient>,
    /// The derivative with respect to the weight of the uniform part.
    pub uniform: f64,
}

/// The constants that are added to parameters, so that zeros are a broad density.
pub(super) fn offset(components: usize) -> Vec<f64> {
    let mut offset = Vec::with_capacity(components * PER_COMPONENT + 1);
    let scale = SCALE_AT_ZERO - NARROWEST;
    let scale = (scale / (WIDEST - NARROWEST - scale)).ln();
    for component in 0..components {
        let mut numbers = [0.0; PER_COMPONENT];
        numbers[TAILS..PLACE].fill(TAIL_AT_ZERO.ln());
        // Places that fill the box evenly, however many there are: multiples of a number that is hard to approximate by
        // fractions, for two axes.
        for (j, step) in [0.754_877_666_246_692_7, 0.569_840_290_998_053_2].into_iter().enumerate() {
            let place = SPREAD * (2.0 * (0.5 + component as f64 * step).fract() - 1.0);
            numbers[PLACE + j] = REACH * (place / REACH).atanh();
        }
        numbers[SCALE..DIRECTION].fill(scale);
        offset.extend(numbers);
    }
    offset.push((components as f64 * UNIFORM_AT_ZERO).ln());
    offset
}

fn softmax<const N: usize>(logits: [f64; N]) -> [f64; N] {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let values = logits.map(|logit| (logit - most).exp());
    let sum: f64 = values.iter().sum();
    values.map(|value| value / sum)
}

impl KernelRow {
    /// The mixture of one row of finite parameters with offsets that belong to them.
    pub fn new(params: &[f64], offset: &[f64]) -> KernelRow {
        let theta = |k: usize| GAIN * params[k] + offset[k];
        let last = params.len() - 1;
        let count = last / PER_COMPONENT;
        let logits = (0..count).map(|m| theta(m * PER_COMPONENT + LOGIT)).chain([theta(last)]);
        let most = logits.clone().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logits.map(|logit| (logit - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let mut row = KernelRow {
            kernels: Vec::with_capacity(count * WIDTHS.len()),
            weights: Vec::with_capacity(count * WIDTHS.len()),
            uniform: UNIFORM + (1.0 - UNIFORM) * weights[count],
            components: Vec::with_capacity(count),
        };
        for (m, weight) in weights[..count].iter().enumerate() {
            let at = m * PER_COMPONENT;
            let mut tails = [0.0; WIDTHS.len()];
            tails.iter_mut().enumerate().skip(1).for_each(|(k, tail)| *tail = theta(at + TAILS + k - 1));
            let tails = softmax(tails);
            let tanh = [0, 1].map(|j| (theta(at + PLACE + j) / REACH).tanh());
            let sigmoid = [0, 1].map(|j| 1.0 / (1.0 + (-theta(at + SCALE + j)).exp()));
            let scale = sigmoid.map(|s| NARROWEST + (WIDEST - NARROWEST) * s);
            let direction = theta(at + DIRECTION);
            let kernel = Kernel { place: tanh.map(|t| REACH * t), factor: [scale[0], scale[1] * direction, scale[1]] };
            for (width, tail) in WIDTHS.iter().zip(tails) {
                row.kernels.push(Kernel { place: kernel.place, factor: kernel.factor.map(|entry| width * entry) });
                row.weights.push((1.0 - UNIFORM) * weight * tail);
            }
            row.components.push(ComponentState {
                weight: *weight,
                tails,
                kernel,
                direction,
                place_slope: tanh.map(|t| 1.0 - t * t),
                scale_slope: sigmoid.map(|s| (WIDEST - NARROWEST) * s * (1.0 - s)),
            });
        }
        row
    }

    /// The vector-Jacobian product: writes the derivatives with respect to the parameters.
    pub fn pull_back(&self, from: &MixtureGradient, gradient: &mut [f64]) {
        let last = gradient.len() - 1;
        let softmax_uniform = (self.uniform - UNIFORM) / (1.0 - UNIFORM);
        let uniform = from.uniform * (self.uniform - UNIFORM);
        let total: f64 = from.weights.iter().sum::<f64>() + uniform;
        gradient[last] = uniform - softmax_uniform * total;
        for (m, component) in self.components.iter().enumerate() {
            let kernels = m * WIDTHS.len()..(m + 1) * WIDTHS.len();
            let out = &mut gradient[m * PER_COMPONENT..(m + 1) * PER_COMPONENT];
            let weights = &from.weights[kernels.clone()];
            let sum: f64 = weights.iter().sum();
            out[LOGIT] = sum - component.weight * total;
            for k in 1..WIDTHS.len() {
                out[TAILS + k - 1] = weights[k] - component.tails[k] * sum;
            }
            let (mut place, mut factor) = ([0.0; 2], [0.0; 3]);
            for (kernel, width) in from.kernels[kernels].iter().zip(WIDTHS) {
                place.iter_mut().zip(kernel.place).for_each(|(sum, part)| *sum += part);
                factor.iter_mut().zip(kernel.factor).for_each(|(sum, part)| *sum += width * part);
            }
            for j in 0..2 {
                out[PLACE + j] = place[j] * component.place_slope[j];
            }
            out[SCALE] = factor[0] * component.scale_slope[0];
            out[SCALE + 1] = (factor[2] + factor[1] * component.direction) * component.scale_slope[1];
            out[DIRECTION] = factor[1] * component.kernel.factor[2];
        }
        gradient.iter_mut().for_each(|part| *part *= GAIN);
    }
}
