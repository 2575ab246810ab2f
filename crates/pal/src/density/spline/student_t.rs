//! Splines from three numbers per axis and component, for the fused pass: the head that networks speak through.
//!
//! To say where something will be, a network that gives the values at the knots themselves has to raise a few of them
//! and lower all others, and has to learn that for every location anew. With this head it says so in a location m, a
//! scale w and a tail a. In coordinates in which the axis runs from -1 to 1, the outputs o_1, o_2, o_3 of component k
//! along axis j are
//!
//! ```text
//! m = o_1 + d_kj,        w = 0.35 h(m) + 2 sigmoid(2 o_2 - log 3),        a = 0.6 + softplus(o_3 + log(e^1.4 - 1)),
//! ```
//!
//! and the spline at the knot p gets the value and the derivative of
//!
//! ```text
//! s(p) = (1 + u^2 / a)^(-a / 2),        u = (p - m) / w,        s'(p) = -s(p) u / (w (1 + u^2 / a)).
//! ```
//!
//! Where nothing cuts it off, s^2 is the density of Student's t distribution with 2 a - 1 degrees of freedom. h(m) is
//! the distance of the knots around m: linear between knots, where it is the mean of the bins on both sides. d_kj tells
//! components apart from the start: `frac(1/2 + (k + 1) g^-(j + 1)) - 1/2` with the root g > 1 of g^(n + 1) = g + 1.

use crate::density::grid::Grid;
use crate::density::lanes::{LANES, Lanes, Real};

use shape::{MAX_SCALE, MIN_SCALE, MIN_TAIL, SCALE_GAIN, ZERO_SCALE, ZERO_TAIL};

/// The constants of the head, for those who compute it by tensor operations.
pub mod shape {
    /// The least scale, in distances of knots: a narrower component would fall between two knots and be seen by neither.
    pub const MIN_SCALE: f64 = 0.35;
    /// The largest scale, in half lengths of the axis.
    pub const MAX_SCALE: f64 = 2.0;
    /// The scale of the output 0, in half lengths of the axis.
    pub const ZERO_SCALE: f64 = 0.5;
    /// How fast the logarithm of a small scale grows with its output.
    pub const SCALE_GAIN: f64 = 2.0;
    /// The least tail: the square of s has an integral over the real line only for a > 1/2.
    pub const MIN_TAIL: f64 = 0.6;
    /// The tail of the output 0.
    pub const ZERO_TAIL: f64 = 2.0;

    /// Where an output of 0 places one of the components on one of so many axes, in half lengths of the axis from its
    /// middle: M. Roberts' generalisation of the golden ratio, whose points fill a box evenly, however many there are.
    pub fn place(component: usize, axis: usize, axes: usize) -> f64 {
        let root = (0..64).fold(2.0f64, |root, _| (1.0 + root).powf(1.0 / (axes + 1) as f64));
        let step = root.powi(-(axis as i32 + 1));
        (0.5 + (component + 1) as f64 * step).fract() - 0.5
    }
}

/// The number of outputs per axis and component.
pub(super) const PER_AXIS: usize = 3;

/// The constants of the head of a family.
#[derive(Clone, Debug)]
pub(super) struct StudentT<T> {
    axes: Vec<HeadAxis<T>>,
    /// The places `d_kj` of the components, axis by axis.
    places: Vec<Vec<f64>>,
}

#[derive(Clone, Debug)]
struct HeadAxis<T> {
    /// The knots, from -1 to 1.
    knots: Vec<T>,
    /// The same in float64.
    positions: Vec<f64>,
    /// The distance of knots at every knot.
    distances: Vec<f64>,
    /// Whether all of them are the same up to rounding.
    uniform: bool,
    /// The mean distance of knots, which derivatives are in units of.
    mean: T,
}

/// What the derivatives of one component need, lane by lane.
#[derive(Clone, Debug)]
pub(super) struct HeadMemory<T> {
    /// The outputs of all axes, one number per lane; the places of the components are added to those for locations.
    outputs: Vec<Lanes<T>>,
    axes: Vec<AxisMemory<T>>,
    /// The logarithms of `1 + u^2 / a`, and the values, at the knots of all axes.
    logs: Vec<Lanes<T>>,
    values: Vec<Lanes<T>>,
}

#[derive(Clone, Debug)]
struct AxisMemory<T> {
    location: Lanes<T>,
    scale: Lanes<T>,
    tail: Lanes<T>,
    /// The derivatives of the scale with respect to the location and to its output, and of the tail to its output.
    scale_by_location: Lanes<T>,
    scale_by_output: Lanes<T>,
    tail_by_output: Lanes<T>,
}

impl<T: Real> StudentT<T> {
    pub fn new(grid: &Grid, components: usize) -> StudentT<T> {
        let n = grid.dimension();
        let place = |axis: usize| (0..components).map(|k| shape::place(k, axis, n)).collect();
        let axis = |positions: Vec<f64>| {
            let (low, high) = (positions[0], positions[positions.len() - 1]);
            let positions: Vec<f64> =
                positions.iter().map(|edge| ((edge - low) - (high - edge)) / (high - low)).collect();
            let bins: Vec<f64> = positions.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let inner = bins.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
            let distances: Vec<f64> = [bins[0]].into_iter().chain(inner).chain([bins[bins.len() - 1]]).collect();
            let knots = positions.iter().map(|p| T::from_f64(*p)).collect();
            let uniform = distances.iter().all(|distance| (distance / distances[0] - 1.0).abs() < 1e-12);
            HeadAxis { knots, positions, distances, uniform, mean: T::from_f64(2.0 / bins.len() as f64) }
        };
        StudentT {
            axes: grid.axes().iter().map(|line| axis(line.positions())).collect(),
            places: (0..n).map(place).collect(),
        }
    }

    /// The number of outputs of one component: its logit, then three per axis.
    pub fn per_component(&self) -> usize {
        1 + PER_AXIS * self.axes.len()
    }

    pub fn memory(&self) -> HeadMemory<T> {
        let knots = self.axes.iter().map(|axis| axis.knots.len()).sum();
        let zero = Lanes::zero();
        let axis = AxisMemory {
            location: zero,
            scale: zero,
            tail: zero,
            scale_by_location: zero,
            scale_by_output: zero,
            tail_by_output: zero,
        };
        let outputs = vec![zero; PER_AXIS * self.axes.len()];
        HeadMemory { outputs, axes: vec![axis; self.axes.len()], logs: vec![zero; knots], values: vec![zero; knots] }
    }

    /// Takes the outputs of one component, after its logit, into one lane.
    pub fn place(&self, component: usize, lane: usize, outputs: &[T], memory: &mut HeadMemory<T>) {
        memory.outputs.iter_mut().zip(&outputs[1..]).for_each(|(lanes, output)| lanes.0[lane] = *output);
        for (location, places) in memory.outputs.iter_mut().step_by(PER_AXIS).zip(&self.places) {
            location.0[lane] += T::from_f64(places[component]);
        }
    }

    /// Location, scale and tail from the outputs.
    #[inline(always)]
    fn locate(&self, memory: &mut HeadMemory<T>) {
        let HeadMemory { outputs, axes, .. } = memory;
        let zero_scale = Lanes::splat(T::from_f64((ZERO_SCALE / (MAX_SCALE - ZERO_SCALE)).ln()));
        let zero_tail = Lanes::splat(T::from_f64((ZERO_TAIL - MIN_TAIL).exp_m1().ln()));
        for (j, (axis, memory)) in self.axes.iter().zip(axes).enumerate() {
            let outputs = &outputs[j * PER_AXIS..(j + 1) * PER_AXIS];
            memory.location = outputs[0];
            let (distance, growth) = axis.distances(memory.location);
            let scale = outputs[1].times(T::from_f64(SCALE_GAIN)) + zero_scale;
            let (fraction, derivative, _) = sigmoid(scale);
            memory.scale = distance.times(T::from_f64(MIN_SCALE)) + fraction.times(T::from_f64(MAX_SCALE));
            memory.scale_by_location = growth.times(T::from_f64(MIN_SCALE));
            memory.scale_by_output = derivative.times(T::from_f64(MAX_SCALE * SCALE_GAIN));
            let tail = outputs[2] + zero_tail;
            let (fraction, _, softplus) = sigmoid(tail);
            memory.tail = Lanes::splat(T::from_f64(MIN_TAIL)) + softplus;
            memory.tail_by_output = fraction;
        }
    }

    /// Values and derivatives at all knots, axis by axis, from the outputs in the memory.
    #[inline(always)]
    pub fn splines(&self, memory: &mut HeadMemory<T>, splines: &mut [Lanes<T>]) {
        self.locate(memory);
        let (one, half) = (T::from_f64(1.0), T::from_f64(-0.5));
        let (mut start, mut at) = (0, 0);
        for (axis, place) in self.axes.iter().zip(&memory.axes) {
            let count = axis.knots.len();
            let exponent = place.tail.times(half);
            let inverse = place.scale.reciprocal();
            let inverse_tail = place.tail.reciprocal();
            let mut largest = Lanes::splat(T::from_f64(-1e30));
            for (knot, log) in axis.knots.iter().zip(&mut memory.logs[start..start + count]) {
                let u = (Lanes::splat(*knot) - place.location) * inverse;
                *log = (Lanes::splat(one) + u * u * inverse_tail).ln();
                largest = largest.max(exponent * *log);
            }
            for (k, knot) in axis.knots.iter().enumerate() {
                let u = (Lanes::splat(*knot) - place.location) * inverse;
                let q = u * u * inverse_tail;
                // Densities do not depend on the size of s, so that the largest value may be 1.
                let value = (exponent * memory.logs[start + k] - largest).exp();
                memory.values[start + k] = value;
                splines[at + k] = value;
                let derivative = value * u * inverse * (Lanes::splat(one) + q).reciprocal();
                splines[at + count + k] = derivative.times(-axis.mean);
            }
            start += count;
            at += 2 * count;
        }
    }

    /// From derivatives with respect to values and derivatives at the knots to those with respect to the outputs.
    #[inline(always)]
    pub fn pull_back(&self, memory: &HeadMemory<T>, splines: &[Lanes<T>], outputs: &mut [Lanes<T>]) {
        let (one, half) = (T::from_f64(1.0), T::from_f64(0.5));
        let (mut start, mut at) = (0, 0);
        for ((axis, place), outputs) in self.axes.iter().zip(&memory.axes).zip(outputs.chunks_exact_mut(PER_AXIS)) {
            let count = axis.knots.len();
            let inverse = place.scale.reciprocal();
            let inverse_tail = place.tail.reciprocal();
            let (mut by_location, mut by_scale, mut by_tail) = (Lanes::zero(), Lanes::zero(), Lanes::zero());
            for (k, knot) in axis.knots.iter().enumerate() {
                let (log, value) = (memory.logs[start + k], memory.values[start + k]);
                let u = (Lanes::splat(*knot) - place.location) * inverse;
                let q = u * u * inverse_tail;
                let part = (Lanes::splat(one) + q).reciprocal();
                // s' = -mean s d, and d log s is d, u d and (q / (1 + q) - log(1 + q)) / 2 by location, scale and tail.
                let d = u * inverse * part;
                let of_derivative = splines[at + count + k].times(-axis.mean) * value;
                let of_log = splines[at + k] * value + of_derivative * d;
                let d_by_u = (Lanes::splat(one) - q) * part * part * inverse;
                by_location += of_log * d - of_derivative * d_by_u * inverse;
                by_scale += of_log * u * d - of_derivative * (d_by_u * u + d) * inverse;
                by_tail += of_log * (q * part - log).times(half);
                by_tail += of_derivative * d * q * part * inverse_tail;
            }
            outputs[0] = by_location + by_scale * place.scale_by_location;
            outputs[1] = by_scale * place.scale_by_output;
            outputs[2] = by_tail * place.tail_by_output;
            start += count;
            at += 2 * count;
        }
    }
}

impl<T: Real> HeadAxis<T> {
    /// The distance of knots around a location and its derivative, lane by lane.
    #[inline(always)]
    fn distances(&self, location: Lanes<T>) -> (Lanes<T>, Lanes<T>) {
        let (mut distance, mut growth) = (Lanes::splat(T::from_f64(self.distances[0])), Lanes::zero());
        if !self.uniform {
            for ((location, distance), growth) in location.0.iter().zip(&mut distance.0).zip(&mut growth.0) {
                let (at, by) = self.distance(location.to_f64());
                (*distance, *growth) = (T::from_f64(at), T::from_f64(by));
            }
        }
        (distance, growth)
    }

    /// The distance of knots around a location, and its derivative.
    fn distance(&self, location: f64) -> (f64, f64) {
        let above = self.positions.partition_point(|p| *p <= location);
        let last = self.positions.len() - 1;
        if above == 0 || above > last {
            return (self.distances[above.min(last)], 0.0);
        }
        let growth =
            (self.distances[above] - self.distances[above - 1]) / (self.positions[above] - self.positions[above - 1]);
        (self.distances[above - 1] + growth * (location - self.positions[above - 1]), growth)
    }
}

/// The sigmoid of numbers, its derivative, and its antiderivative log(1 + exp(x)).
#[inline(always)]
fn sigmoid<T: Real>(x: Lanes<T>) -> (Lanes<T>, Lanes<T>, Lanes<T>) {
    let one = Lanes::splat(T::from_f64(1.0));
    let small = (Lanes::zero() - x.abs()).exp();
    let inverse = (one + small).reciprocal();
    let low = small * inverse;
    // 1 / (1 + e) from 0 on, and e / (1 + e) below.
    let mut value = inverse;
    for k in 0..LANES {
        value.0[k] = if x.0[k] < T::default() { low.0[k] } else { value.0[k] };
    }
    (value, low * inverse, x.max(Lanes::zero()) + (one + small).ln())
}
