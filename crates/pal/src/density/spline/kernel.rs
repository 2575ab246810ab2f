//! The fused pass of spline mixtures: see [`crate::density::row_kernel`].
//!
//! One component of [`LANES`] rows goes through at a time, one row per lane: from parameters to the values of its
//! splines at the nodes of every bin, their squares, the integral Z over the constraint and its gradient with respect
//! to the parameters. When all components of these rows are known, so are the responsibilities
//! `r_m = exp(log w_m + log q_m - log Z_m - log p)`, and
//!
//! ```text
//! d log p  =  sum_m  r_m (d log q_m - d log Z_m)  +  (r_m - w_m) d logit_m.
//! ```

use rayon::prelude::*;

use super::contract::FormWork;
use super::form::BinForm;
use super::hermite::{self, SQUARE};
use super::nodes::{self, STEP};
use super::student_t::{HeadMemory, StudentT};
use super::{MAX_SPLINE_DIMENSION, SplineMixture};
use crate::density::grid::BinIndex;
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, dispatch, one_by_one};
use crate::density::row_kernel::{LocatedPoints, RowInput, RowKernel};
use crate::density::weights::{log_softmax, log_sum_exp};

/// The nodes of a bin that are not at its ends.
const INNER: usize = SQUARE - 2;
/// The logit of a component without mass: far below all others, but finite.
const NO_WEIGHT: f64 = -1e30;
/// A batch of at least this many components is divided between threads.
const PARALLEL: usize = 256;

/// What the fused pass of a family needs, in one precision.
#[derive(Clone, Debug)]
pub(super) struct SplineKernel<T> {
    components: usize,
    /// What is added to every row of parameters.
    offset: Vec<T>,
    /// For each axis the width of every bin divided by the mean width.
    stretch: Vec<Vec<T>>,
    /// The cubic Hermite basis at the inner nodes of a bin: the factors of both values and of both derivatives.
    basis: [[T; 4]; INNER],
    form: BinForm<T>,
    log_volume: f64,
    per_component: usize,
    head: StudentT<T>,
}

impl<T: Real> SplineKernel<T> {
    pub fn new(family: &SplineMixture) -> SplineKernel<T> {
        let inner = &nodes::bin_nodes()[1..=INNER];
        let basis = std::array::from_fn(|k| hermite_basis(inner[k]).map(T::from_f64));
        SplineKernel {
            components: family.settings.components,
            offset: family.offset.iter().map(|x| T::from_f64(*x)).collect(),
            stretch: family.stretch.iter().map(|axis| axis.iter().map(|x| T::from_f64(*x)).collect()).collect(),
            basis,
            form: nodes::form(&family.form),
            log_volume: family.support.grid().log_volume(),
            per_component: family.params_per_component(),
            head: StudentT::new(family.support.grid(), family.settings.components),
        }
    }

    /// The length of the part of a row that belongs to one component.
    fn row_part(&self, input: RowInput) -> usize {
        match input {
            RowInput::Parameters => self.per_component,
            RowInput::StudentT => self.head.per_component(),
        }
    }

    fn memory(&self) -> Memory<T> {
        let squares = self.form.plan().length();
        Memory {
            params: vec![Lanes::zero(); self.per_component],
            derivatives: vec![Lanes::zero(); self.per_component],
            nodes: vec![Lanes::zero(); squares],
            squares: vec![Lanes::zero(); squares],
            gradient: vec![Lanes::zero(); squares],
            form: self.form.plan().work(),
            head: self.head.memory(),
            outputs: vec![Lanes::zero(); self.head.per_component() - 1],
            parts: vec![Parts::default(); self.components * LANES],
        }
    }

    /// Computes up to [`LANES`] rows, of which the first is `first`.
    fn rows(&self, input: RowInput, rows: &[T], points: &Rows<'_>, out: &mut Output<'_, T>, memory: &mut Memory<T>) {
        let part = self.row_part(input);
        let per = part * self.components;
        let count = out.log_prob.len();
        for (component, offset) in self.offset.chunks(self.per_component).enumerate() {
            for lane in 0..LANES {
                // Lanes without a row repeat the last one.
                let start = lane.min(count - 1) * per + component * part;
                let row = &rows[start..start + part];
                match input {
                    RowInput::Parameters => {
                        let both = row.iter().zip(offset);
                        memory.params.iter_mut().zip(both).for_each(|(lanes, (x, y))| lanes.0[lane] = *x + *y);
                    }
                    RowInput::StudentT => {
                        memory.params[0].0[lane] = row[0];
                        self.head.place(component, lane, row, &mut memory.head);
                    }
                }
            }
            if input == RowInput::StudentT {
                dispatch(HeadSplines { head: &self.head, memory });
            }
            let with_gradient = out.gradient.is_some();
            let (integrals, scales) = dispatch(Component { kernel: self, memory, with_gradient });
            for lane in 0..count {
                let part = &mut memory.parts[lane * self.components + component];
                part.logit = memory.params[0].0[lane].to_f64();
                part.integral = integrals.0[lane].to_f64();
                part.log_value = 0.0;
                part.factors = Default::default();
                if points.is_inside(lane) {
                    self.evaluate(points, lane, &memory.params, &scales, part);
                }
            }
            let Some(gradient) = &mut out.gradient else { continue };
            self.add_values(component, count, memory);
            if input == RowInput::StudentT {
                dispatch(HeadGradient { head: &self.head, memory });
            }
            let derivatives = match input {
                RowInput::Parameters => &memory.derivatives[1..],
                RowInput::StudentT => &memory.outputs,
            };
            for lane in 0..count {
                let start = lane * per + component * part;
                let row = &mut gradient[start + 1..start + part];
                row.iter_mut().zip(derivatives).for_each(|(x, lanes)| *x = lanes.0[lane]);
            }
        }
        for lane in 0..count {
            let parts = &memory.parts[lane * self.components..(lane + 1) * self.components];
            let gradient = out.gradient.as_mut().map(|gradient| &mut gradient[lane * per..(lane + 1) * per]);
            out.log_prob[lane] = match points.is_inside(lane) {
                true => T::from_f64(self.finish(parts, part, gradient)),
                false => {
                    gradient.into_iter().for_each(|row| row.fill(T::default()));
                    T::from_f64(f64::NEG_INFINITY)
                }
            };
        }
    }

    /// From the derivatives of the integral of a component to those of the logarithm of its normalised value.
    fn add_values(&self, component: usize, count: usize, memory: &mut Memory<T>) {
        let mut factors = Lanes::zero();
        for lane in 0..count {
            let integral = memory.parts[lane * self.components + component].integral;
            factors.0[lane] = T::from_f64(if integral <= T::TINY { 0.0 } else { -1.0 / integral });
        }
        for derivative in &mut memory.derivatives {
            *derivative = *derivative * factors;
        }
        for lane in 0..count {
            let part = &memory.parts[lane * self.components + component];
            for (place, factor) in part.factors[..self.stretch.len()].iter().flatten() {
                memory.derivatives[*place as usize].0[lane] += T::from_f64(*factor);
            }
        }
    }

    /// The value of one component at the point of a row, and what its gradient needs.
    fn evaluate(
        &self,
        points: &Rows<'_>,
        lane: usize,
        params: &[Lanes<T>],
        scales: &[Lanes<T>; MAX_SPLINE_DIMENSION],
        part: &mut Parts,
    ) {
        // Where a factor is far below the rounding error of its spline, it counts as zero.
        let least = T::TINY.powf(1.0 / self.stretch.len() as f64);
        let (mut start, mut product) = (1, 1.0);
        for (j, stretch) in self.stretch.iter().enumerate() {
            let knots = stretch.len() + 1;
            let (bin, t) = points.at(lane, j);
            let width = stretch[bin.get()].to_f64();
            let [a, b, c, d] = hermite_basis(t);
            let at = start + bin.get();
            let factors = [(at, a), (at + 1, b), (at + knots, c * width), (at + knots + 1, d * width)];
            let value: f64 = factors.iter().map(|(place, factor)| params[*place].0[lane].to_f64() * factor).sum();
            let seen = value.abs() >= least;
            product *= if seen { value.abs() } else { least };
            // The derivative of the logarithm of the square, in units of the parameters before they were scaled.
            let scale = if seen { 2.0 * scales[j].0[lane].to_f64() / value } else { 0.0 };
            part.factors[j] = factors.map(|(place, factor)| (place as u32, factor * scale));
            start += 2 * knots;
        }
        part.log_value = 2.0 * product.ln();
    }

    /// The log-density of a row from its components. `gradient` has the derivatives of the logarithms of normalised
    /// components, `length` numbers each, and gets those of the log-density.
    fn finish(&self, parts: &[Parts], length: usize, gradient: Option<&mut [T]>) -> f64 {
        let empty = |part: &Parts| part.integral <= T::TINY;
        let logits: Vec<f64> = parts.iter().map(|part| if empty(part) { NO_WEIGHT } else { part.logit }).collect();
        let log_weights = log_softmax(&logits);
        let terms = parts
            .iter()
            .zip(&log_weights)
            .map(|(part, weight)| weight + part.log_value - if empty(part) { 0.0 } else { part.integral.ln() });
        let terms: Vec<f64> = terms.collect();
        let total = log_sum_exp(terms.iter().copied());
        let Some(gradient) = gradient else { return total - self.log_volume };
        let rows = gradient.chunks_mut(length).zip(parts).zip(terms.iter().zip(&log_weights));
        for ((row, part), (term, log_weight)) in rows {
            let responsibility = (term - total).exp();
            let factor = T::from_f64(responsibility);
            row.iter_mut().for_each(|x| *x = *x * factor);
            row[0] = T::from_f64(if empty(part) { 0.0 } else { responsibility - log_weight.exp() });
        }
        total - self.log_volume
    }
}

/// The factors of both values and of both derivatives of a cubic Hermite spline at a local coordinate.
fn hermite_basis(t: f64) -> [f64; 4] {
    let [a, b, c, d] = hermite::basis(t);
    [a + b, c + d, b / 3.0, -c / 3.0]
}

/// The points of some rows.
struct Rows<'p> {
    points: &'p LocatedPoints,
    first: usize,
}

impl Rows<'_> {
    fn is_inside(&self, lane: usize) -> bool {
        self.points.is_inside(self.first + lane)
    }

    fn at(&self, lane: usize, axis: usize) -> (BinIndex, f64) {
        self.points.at(self.first + lane, axis)
    }
}

/// Where results go: some rows of them.
struct Output<'o, T> {
    log_prob: &'o mut [T],
    gradient: Option<&'o mut [T]>,
}

/// Memory that is used for one component after the other.
struct Memory<T> {
    params: Vec<Lanes<T>>,
    derivatives: Vec<Lanes<T>>,
    nodes: Vec<Lanes<T>>,
    squares: Vec<Lanes<T>>,
    gradient: Vec<Lanes<T>>,
    form: FormWork<T>,
    head: HeadMemory<T>,
    /// The derivatives with respect to the outputs that the head made splines of.
    outputs: Vec<Lanes<T>>,
    parts: Vec<Parts>,
}

/// What is known of one component of one row.
#[derive(Clone, Debug, Default)]
struct Parts {
    logit: f64,
    integral: f64,
    log_value: f64,
    /// For each axis the derivatives of the logarithm of the value, with their places among the parameters.
    factors: [[(u32, f64); 4]; MAX_SPLINE_DIMENSION],
}

/// The splines that the head makes for one component of all lanes.
struct HeadSplines<'k, T> {
    head: &'k StudentT<T>,
    memory: &'k mut Memory<T>,
}

impl<T: Real> LaneWork for HeadSplines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.head.splines(&mut self.memory.head, &mut self.memory.params[1..]);
    }
}

/// From derivatives with respect to splines to those with respect to the outputs that they were made of.
struct HeadGradient<'k, T> {
    head: &'k StudentT<T>,
    memory: &'k mut Memory<T>,
}

impl<T: Real> LaneWork for HeadGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Memory { head, derivatives, outputs, .. } = self.memory;
        self.head.pull_back(head, &derivatives[1..], outputs);
    }
}

/// One component of all lanes: scales its parameters, and computes the integral and its derivatives with respect to
/// the parameters before they were scaled. Returns the integrals and, for each axis, the factor of the parameters.
struct Component<'k, T> {
    kernel: &'k SplineKernel<T>,
    memory: &'k mut Memory<T>,
    with_gradient: bool,
}

impl<T: Real> LaneWork for Component<'_, T> {
    type Output = (Lanes<T>, [Lanes<T>; MAX_SPLINE_DIMENSION]);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Memory { params, derivatives, nodes, squares, gradient, form, .. } = self.memory;
        let mut scales = [Lanes::zero(); MAX_SPLINE_DIMENSION];
        let plan = self.kernel.form.plan();
        let mut start = 1;
        for ((stretch, scale), first) in self.kernel.stretch.iter().zip(&mut scales).zip(plan.starts()) {
            let knots = stretch.len() + 1;
            *scale = normalise(&mut params[start..start + 2 * knots]);
            let (values, knot_derivatives) = params[start..start + 2 * knots].split_at(knots);
            for (bin, width) in one_by_one(stretch).iter().enumerate() {
                let values = one_by_one(values);
                let corners = [
                    values[bin],
                    values[bin + 1],
                    knot_derivatives[bin].times(*width),
                    knot_derivatives[bin + 1].times(*width),
                ];
                let place = first + bin * STEP;
                nodes[place] = corners[0];
                for (node, basis) in nodes[place + 1..=place + INNER].iter_mut().zip(&self.kernel.basis) {
                    let mut value = Lanes::zero();
                    for (corner, factor) in corners.iter().zip(basis) {
                        value.add_times(*corner, *factor);
                    }
                    *node = value;
                }
                nodes[place + STEP] = corners[1];
            }
            start += 2 * knots;
        }
        for (square, node) in squares.iter_mut().zip(&*nodes) {
            let node = one_by_one(node);
            *square = *node * *node;
        }
        if !self.with_gradient {
            return (plan.integral(&self.kernel.form.tables, squares, form), scales);
        }
        gradient.fill(Lanes::zero());
        let integral = plan.integral_with_gradient(&self.kernel.form.tables, squares, gradient, form);
        // From squares to values at nodes.
        let two = T::from_f64(2.0);
        for (gradient, node) in gradient.iter_mut().zip(&*nodes) {
            let node = one_by_one(node);
            *gradient = (*gradient * *node).times(two);
        }
        derivatives.fill(Lanes::zero());
        let mut start = 1;
        for ((stretch, scale), first) in self.kernel.stretch.iter().zip(&scales).zip(plan.starts()) {
            let knots = stretch.len() + 1;
            let (values, knot_derivatives) = derivatives[start..start + 2 * knots].split_at_mut(knots);
            for (bin, width) in stretch.iter().enumerate() {
                let place = one_by_one(first + bin * STEP);
                let mut corners = [Lanes::zero(); 4];
                for (derivative, basis) in gradient[place + 1..=place + INNER].iter().zip(&self.kernel.basis) {
                    for (corner, factor) in corners.iter_mut().zip(basis) {
                        corner.add_times(*derivative, *factor);
                    }
                }
                values[bin] += corners[0] + gradient[place];
                values[bin + 1] += corners[1];
                knot_derivatives[bin].add_times(corners[2], *width);
                knot_derivatives[bin + 1].add_times(corners[3], *width);
            }
            values[knots - 1] += gradient[first + stretch.len() * STEP];
            for derivative in &mut derivatives[start..start + 2 * knots] {
                let derivative = one_by_one(derivative);
                *derivative = *derivative * *scale;
            }
            start += 2 * knots;
        }
        (integral, scales)
    }
}

/// Divides the values and derivatives of splines by the mean of their sizes, and returns one over that: densities do
/// not depend on the scale of a spline, and squares must neither overflow nor underflow.
#[inline(always)]
fn normalise<T: Real>(numbers: &mut [Lanes<T>]) -> Lanes<T> {
    // Divided before they are added: the sum of finite numbers need not be finite.
    let part = T::from_f64(1.0 / numbers.len() as f64);
    let mut size = Lanes::zero();
    for x in &*numbers {
        size.add_times(one_by_one(x).abs(), part);
    }
    let (one, least) = (T::from_f64(1.0), T::from_f64(T::TINY));
    let mut scale = size;
    for x in &mut scale.0 {
        *x = one / if *x < least { least } else { *x };
    }
    for x in numbers {
        let x = one_by_one(x);
        *x = *x * scale;
    }
    scale
}

impl<T: Real> RowKernel<T> for SplineKernel<T> {
    fn width(&self, input: RowInput) -> Option<usize> {
        Some(self.row_part(input) * self.components)
    }

    fn log_prob(
        &self,
        input: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    ) {
        let per = self.row_part(input) * self.components;
        let blocks = log_prob.len().div_ceil(LANES);
        let gradients: Vec<Option<&mut [T]>> = match gradient {
            Some(gradient) => gradient.chunks_mut(per * LANES).map(Some).collect(),
            None => (0..blocks).map(|_| None).collect(),
        };
        let work = |memory: &mut Memory<T>, (k, ((log_prob, gradient), rows)): (usize, ((&mut [T], _), &[T]))| {
            let points = Rows { points, first: k * LANES };
            self.rows(input, rows, &points, &mut Output { log_prob, gradient }, memory);
        };
        if blocks > 1 && points.len() * self.components >= PARALLEL {
            let parts = log_prob.par_chunks_mut(LANES).zip(gradients).zip(rows.par_chunks(per * LANES));
            parts.enumerate().for_each_init(|| self.memory(), work);
        } else {
            let mut memory = self.memory();
            let parts = log_prob.chunks_mut(LANES).zip(gradients).zip(rows.chunks(per * LANES));
            parts.enumerate().for_each(|part| work(&mut memory, part));
        }
    }
}
