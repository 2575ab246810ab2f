//! What the parameters of a kernel mixture mean.
//!
//! All components share a frame, with a place, scales and a direction of its own, and each has a place, scales and a
//! direction inside it. A network that knows roughly where the outputs are says so once, in the frame, and every row of
//! the data teaches it; when the frame shrinks, the steps of the components inside shrink with it.
//!
//! ```text
//! weights      softmax of all logits; the uniform part has at least UNIFORM
//! widths       softmax of the logits of a component's copies; the widest has at least TAIL
//! frame        F = [[f_1, 0], [f_2 e, f_2]] at the place c
//! component    G = [[s_1, 0], [s_2 d, s_2]] at the place p, in the frame
//! kernel       place c + F p, factor F G with NARROWEST added to its diagonal
//! ```
//!
//! All of this is in coordinates that run from -1 to 1 along both axes of the box around the region. Scales are logistic
//! functions, places and directions hyperbolic tangents of the parameters, so that they have limits. Zeros are a frame as
//! large as the box, with broad kernels at places all over it and a uniform part.
//!
//! Each kind of parameter has a gain, by which it is multiplied first. The usual optimisers change all outputs of a network
//! by about the same amount per step: weights need large changes, and places must come to rest to a fraction of a scale.
//!
//! A component has as many parameters as there are widths, and five more: its logit, one logit for each width but the first,
//! the place, the scales, the direction. After all components come the logit of the uniform part and the frame: place, scales,
//! direction.

use super::integral::{Kernel, KernelGradient};

/// The widths of the copies of every kernel, relative to its scales: a narrow bell with wide tails.
pub(super) const WIDTHS: [f64; 3] = [1.0, 2.0, 6.0];

/// The least weight of the uniform part: every point of the region stays possible, and no normalising constant is so
/// small that it loses its digits.
pub(super) const UNIFORM: f64 = 1e-3;
/// The least weight of the widest copy within a component. Likelihoods of rows that were not seen in training depend on
/// tails that the rows of the training would take away.
const TAIL: f64 = 0.03;

/// How far places reach from the centre of the box, and from the centre of the frame.
pub(super) const FRAME_REACH: f64 = 1.5;
pub(super) const REACH: f64 = 3.0;
/// How steep directions are at most.
pub(super) const STEEPEST: f64 = 8.0;
/// The limits of scales, of the frame and inside it, and what is added to the scales of kernels.
pub(super) const FRAME_SCALES: ScaleRange = ScaleRange { least: 0.03, most: 2.0, at_zero: 1.0 };
pub(super) const SCALES: ScaleRange = ScaleRange { least: 0.02, most: 2.0, at_zero: 0.4 };
pub(super) const NARROWEST: f64 = 0.004;

/// How far from the centre of the frame places at parameters of 0 are.
pub(super) const SPREAD: f64 = 0.6;
/// The weight of the second to last widths relative to the first one, for parameters of 0.
pub(super) const TAIL_AT_ZERO: f64 = 0.2;
/// The weight of the uniform part relative to all components together, for parameters of 0.
pub(super) const UNIFORM_AT_ZERO: f64 = 0.3;

/// The gains of parameters.
const LOGIT_GAIN: f64 = 12.0;
const TAIL_GAIN: f64 = 6.0;
pub(super) const PLACE_GAIN: f64 = 1.0;
pub(super) const SCALE_GAIN: f64 = 4.0;
pub(super) const DIRECTION_GAIN: f64 = 4.0;
pub(super) const FRAME_PLACE_GAIN: f64 = 1.0;
pub(super) const FRAME_SCALE_GAIN: f64 = 3.0;
pub(super) const FRAME_DIRECTION_GAIN: f64 = 3.0;

/// The number of parameters of a component.
const PER_COMPONENT: usize = WIDTHS.len() + 5;
/// The number of parameters after those of the components.
const SHARED: usize = 6;

/// The parts of the parameters of a component.
const LOGIT: usize = 0;
const TAILS: usize = 1;
const PLACE: usize = WIDTHS.len();
const SCALE: usize = PLACE + 2;
const DIRECTION: usize = SCALE + 2;

/// The parts of what comes after all components.
const UNIFORM_LOGIT: usize = 0;
const FRAME_PLACE: usize = 1;
const FRAME_SCALE: usize = 3;
const FRAME_DIRECTION: usize = 5;

/// The number of parameters of a mixture.
pub(super) fn num_params(components: usize) -> usize {
    components * PER_COMPONENT + SHARED
}

/// The mixture that one row of parameters stands for.
#[derive(Clone, Debug)]
pub(crate) struct KernelRow {
    /// The kernels: all widths of the first component, then those of the second one, and so on.
    pub kernels: Vec<Kernel>,
    /// Their weights, which sum to 1 together with the uniform one.
    pub weights: Vec<f64>,
    /// The weight of the uniform part.
    pub uniform: f64,
    frame: Frame,
    /// The frames of components, and what their weights come from.
    inner: Vec<Frame>,
    shares: ComponentShares,
}

/// For each component the softmax of its logit, and the softmax over widths.
#[derive(Clone, Debug)]
pub(super) struct ComponentShares(Vec<(f64, [f64; WIDTHS.len()])>);

/// A place, scales and a direction, with their derivatives with respect to the parameters.
#[derive(Clone, Debug)]
struct Frame {
    place: [Limited; 2],
    scale: [Limited; 2],
    direction: Limited,
}

/// A function of one parameter, with its derivative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited {
    pub value: f64,
    pub slope: f64,
}

/// The limits of scales, and the scale that a parameter of 0 stands for.
pub(super) struct ScaleRange {
    least: f64,
    most: f64,
    at_zero: f64,
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

/// The constants that are added to parameters times their gains, so that zeros are a broad density.
pub(super) fn offset(components: usize) -> Vec<f64> {
    let mut offset = Vec::with_capacity(num_params(components));
    for component in 0..components {
        let mut numbers = [0.0; PER_COMPONENT];
        numbers[TAILS..PLACE].fill(TAIL_AT_ZERO.ln());
        // Places that fill the box evenly, however many there are: multiples of a number that is hard to approximate by
        // fractions, for two axes.
        for (j, step) in [0.754_877_666_246_692_7, 0.569_840_290_998_053_2].into_iter().enumerate() {
            let place = SPREAD * (2.0 * (0.5 + component as f64 * step).fract() - 1.0);
            numbers[PLACE + j] = REACH * (place / REACH).atanh();
        }
        numbers[SCALE..DIRECTION].fill(SCALES.offset());
        offset.extend(numbers);
    }
    let mut shared = [0.0; SHARED];
    shared[UNIFORM_LOGIT] = (components as f64 * UNIFORM_AT_ZERO).ln();
    shared[FRAME_SCALE..FRAME_DIRECTION].fill(FRAME_SCALES.offset());
    offset.extend(shared);
    offset
}

fn softmax<const N: usize>(logits: [f64; N]) -> [f64; N] {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let values = logits.map(|logit| (logit - most).exp());
    let sum: f64 = values.iter().sum();
    values.map(|value| value / sum)
}

impl ScaleRange {
    pub fn offset(&self) -> f64 {
        ((self.at_zero - self.least) / (self.most - self.at_zero)).ln()
    }

    /// The scale of a parameter with its gain and offset.
    pub fn at(&self, theta: f64, gain: f64) -> Limited {
        let sigmoid = 1.0 / (1.0 + (-theta).exp());
        let range = self.most - self.least;
        Limited { value: self.least + range * sigmoid, slope: gain * range * sigmoid * (1.0 - sigmoid) }
    }
}

impl Limited {
    /// `limit tanh(theta / limit)`.
    pub fn new(theta: f64, limit: f64, gain: f64) -> Limited {
        let tanh = (theta / limit).tanh();
        Limited { value: limit * tanh, slope: gain * (1.0 - tanh * tanh) }
    }
}

impl Frame {
    /// The kernel that has the numbers of a component inside this frame.
    fn kernel(&self, inner: &Frame) -> Kernel {
        let [f1, f2] = self.scale.map(|scale| scale.value);
        let [s1, s2] = inner.scale.map(|scale| scale.value);
        let (e, d) = (self.direction.value, inner.direction.value);
        let [p1, p2] = inner.place.map(|place| place.value);
        Kernel {
            place: [self.place[0].value + f1 * p1, self.place[1].value + f2 * (p2 + e * p1)],
            factor: [f1 * s1 + NARROWEST, f2 * (e * s1 + s2 * d), f2 * s2 + NARROWEST],
        }
    }

    /// The vector-Jacobian product of [`Frame::kernel`]: the derivatives with respect to the parameters of place, scales
    /// and direction, of the component and of the frame.
    fn pull_back(&self, inner: &Frame, from: &KernelGradient) -> [[f64; 5]; 2] {
        let [f1, f2] = self.scale.map(|scale| scale.value);
        let [s1, s2] = inner.scale.map(|scale| scale.value);
        let (e, d) = (self.direction.value, inner.direction.value);
        let [p1, p2] = inner.place.map(|place| place.value);
        let ([x, y], [a, b, c]) = (from.place, from.factor);
        let of_inner = [x * f1 + y * f2 * e, y * f2, a * f1 + b * f2 * e, (c + b * d) * f2, b * f2 * s2];
        let of_frame =
            [x, y, x * p1 + a * s1, y * (p2 + e * p1) + b * (e * s1 + s2 * d) + c * s2, (y * p1 + b * s1) * f2];
        [inner.times_slopes(of_inner), self.times_slopes(of_frame)]
    }

    fn times_slopes(&self, mut gradient: [f64; 5]) -> [f64; 5] {
        let all = [self.place[0], self.place[1], self.scale[0], self.scale[1], self.direction];
        gradient.iter_mut().zip(all).for_each(|(part, number)| *part *= number.slope);
        gradient
    }
}

impl KernelRow {
    /// The mixture of one row of finite parameters with offsets that belong to them.
    pub fn new(params: &[f64], offset: &[f64]) -> KernelRow {
        let theta = |k: usize, gain: f64| gain * params[k] + offset[k];
        let shared = params.len() - SHARED;
        let count = shared / PER_COMPONENT;
        let (weights, uniform, shares) = ComponentShares::new(&theta, count, PER_COMPONENT);
        let frame = Frame {
            place: [0, 1].map(|j| {
                Limited::new(theta(shared + FRAME_PLACE + j, FRAME_PLACE_GAIN), FRAME_REACH, FRAME_PLACE_GAIN)
            }),
            scale: [0, 1].map(|j| FRAME_SCALES.at(theta(shared + FRAME_SCALE + j, FRAME_SCALE_GAIN), FRAME_SCALE_GAIN)),
            direction: Limited::new(
                theta(shared + FRAME_DIRECTION, FRAME_DIRECTION_GAIN),
                STEEPEST,
                FRAME_DIRECTION_GAIN,
            ),
        };
        let mut row = KernelRow {
            kernels: Vec::with_capacity(count * WIDTHS.len()),
            weights,
            uniform,
            inner: Vec::with_capacity(count),
            shares,
            frame,
        };
        for m in 0..count {
            let at = m * PER_COMPONENT;
            let inner = Frame {
                place: [0, 1].map(|j| Limited::new(theta(at + PLACE + j, PLACE_GAIN), REACH, PLACE_GAIN)),
                scale: [0, 1].map(|j| SCALES.at(theta(at + SCALE + j, SCALE_GAIN), SCALE_GAIN)),
                direction: Limited::new(theta(at + DIRECTION, DIRECTION_GAIN), STEEPEST, DIRECTION_GAIN),
            };
            let kernel = row.frame.kernel(&inner);
            for width in WIDTHS {
                row.kernels.push(Kernel { place: kernel.place, factor: kernel.factor.map(|entry| width * entry) });
            }
            row.inner.push(inner);
        }
        row
    }

    /// The vector-Jacobian product: writes the derivatives with respect to the parameters.
    pub fn pull_back(&self, from: &MixtureGradient, gradient: &mut [f64]) {
        self.shares.pull_back([self.uniform, from.uniform], &from.weights, PER_COMPONENT, gradient);
        let (of_components, of_shared) = gradient.split_at_mut(self.inner.len() * PER_COMPONENT);
        of_shared[FRAME_PLACE..].fill(0.0);
        for (m, (inner, out)) in self.inner.iter().zip(of_components.chunks_mut(PER_COMPONENT)).enumerate() {
            let kernels = m * WIDTHS.len()..(m + 1) * WIDTHS.len();
            let mut of_kernel = KernelGradient::default();
            for (kernel, width) in from.kernels[kernels].iter().zip(WIDTHS) {
                of_kernel.place.iter_mut().zip(kernel.place).for_each(|(sum, part)| *sum += part);
                of_kernel.factor.iter_mut().zip(kernel.factor).for_each(|(sum, part)| *sum += width * part);
            }
            let [of_inner, of_frame] = self.frame.pull_back(inner, &of_kernel);
            out[PLACE..].copy_from_slice(&of_inner);
            of_shared[FRAME_PLACE..].iter_mut().zip(of_frame).for_each(|(sum, part)| *sum += part);
        }
    }
}

impl ComponentShares {
    /// The weights of all kernels and of the uniform part. A component has `per` parameters, of which the first ones are
    /// its logit and those of its widths; after all components comes the logit of the uniform part. `theta` is a
    /// parameter with a gain and its offset.
    pub fn new(theta: &impl Fn(usize, f64) -> f64, count: usize, per: usize) -> (Vec<f64>, f64, ComponentShares) {
        // The logit of the uniform part is at the place of that of one more component.
        let logits = (0..=count).map(|m| theta(m * per + LOGIT, LOGIT_GAIN));
        let most = logits.clone().fold(f64::NEG_INFINITY, f64::max);
        let mut softmax_weights: Vec<f64> = logits.map(|logit| (logit - most).exp()).collect();
        let sum: f64 = softmax_weights.iter().sum();
        softmax_weights.iter_mut().for_each(|weight| *weight /= sum);
        let (mut weights, mut shares) = (Vec::with_capacity(count * WIDTHS.len()), Vec::with_capacity(count));
        for (m, weight) in softmax_weights[..count].iter().enumerate() {
            let mut tails = [0.0; WIDTHS.len()];
            let logits = tails.iter_mut().enumerate().skip(1);
            logits.for_each(|(k, tail)| *tail = theta(m * per + TAILS + k - 1, TAIL_GAIN));
            let tails = softmax(tails);
            let share = |(k, tail): (usize, &f64)| (1.0 - UNIFORM) * weight * ((1.0 - TAIL) * tail + least_tail(k));
            weights.extend(tails.iter().enumerate().map(share));
            shares.push((*weight, tails));
        }
        (weights, UNIFORM + (1.0 - UNIFORM) * softmax_weights[count], ComponentShares(shares))
    }

    /// The vector-Jacobian product: writes the derivatives with respect to all logits, given the weight of the uniform
    /// part and the derivative with respect to it, and for each kernel its weight times that with respect to its weight.
    pub fn pull_back(&self, [uniform, of_uniform]: [f64; 2], of_weights: &[f64], per: usize, gradient: &mut [f64]) {
        let softmax_uniform = (uniform - UNIFORM) / (1.0 - UNIFORM);
        let of_uniform = of_uniform * (uniform - UNIFORM);
        let total: f64 = of_weights.iter().sum::<f64>() + of_uniform;
        gradient[self.0.len() * per + UNIFORM_LOGIT] = LOGIT_GAIN * (of_uniform - softmax_uniform * total);
        let components = self.0.iter().zip(gradient.chunks_mut(per)).zip(of_weights.chunks(WIDTHS.len()));
        for (((weight, tails), out), of_weights) in components {
            out[LOGIT] = LOGIT_GAIN * (of_weights.iter().sum::<f64>() - weight * total);
            // What is left of the derivatives where the least weight of a width takes no part.
            let mut parts = [0.0; WIDTHS.len()];
            for (k, part) in parts.iter_mut().enumerate() {
                let chosen = (1.0 - TAIL) * tails[k];
                *part = if chosen > 0.0 { of_weights[k] * chosen / (chosen + least_tail(k)) } else { 0.0 };
            }
            let sum: f64 = parts.iter().sum();
            for k in 1..WIDTHS.len() {
                out[TAILS + k - 1] = TAIL_GAIN * (parts[k] - tails[k] * sum);
            }
        }
    }
}

/// The weight that a width has whatever the parameters are.
fn least_tail(width: usize) -> f64 {
    if width + 1 == WIDTHS.len() { TAIL } else { 0.0 }
}
