//! The fused pass of spline mixtures: see [`crate::density::row_kernel`].
//!
//! One component of [`LANES`] rows goes through at a time, one row per lane: from parameters to the values of its
//! splines at the nodes of every bin, their squares, the integral Z over the constraint and its gradient with respect
//! to the parameters. When all components of these rows are known, [`MixtureLanes::finish`] puts them together.

use std::sync::Arc;

use super::contract::FormWork;
use super::form::BinForm;
use super::hermite::{self, SQUARE};
use super::nodes::{self, STEP};
use super::parts::PartsForm;
use super::student_t::{HeadMemory, StudentT};
use super::{MAX_SPLINE_DIMENSION, SplineMixture};
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, Simd, dispatch, one_by_one};
use crate::density::parts::{PartFactors, PartLanes};
use crate::density::row_kernel::{LocatedPoints, MixtureLanes, RowBlock, RowBlocks, RowInput, RowKernel};

/// The nodes of a bin that are not at its ends.
const INNER: usize = SQUARE - 2;
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
    form: PartsForm<T>,
    log_volume: f64,
    per_component: usize,
    head: StudentT<T>,
    parts: Option<Arc<dyn PartFactors>>,
}

impl<T: Real> SplineKernel<T> {
    pub fn new(family: &SplineMixture) -> SplineKernel<T> {
        SplineKernel::on_parts(family, &[&family.form], None)
    }

    /// The fused pass on a support in parts.
    pub fn on_parts(
        family: &SplineMixture,
        forms: &[&BinForm<f64>],
        parts: Option<Arc<dyn PartFactors>>,
    ) -> SplineKernel<T> {
        let inner = &nodes::bin_nodes()[1..=INNER];
        let basis = std::array::from_fn(|k| hermite_basis(inner[k]).map(T::from_f64));
        SplineKernel {
            components: family.settings.components,
            offset: family.offset.iter().map(|x| T::from_f64(*x)).collect(),
            stretch: family.stretch.iter().map(|axis| axis.iter().map(|x| T::from_f64(*x)).collect()).collect(),
            basis,
            form: PartsForm::join(forms, family.support.grid(), nodes::form),
            log_volume: family.support.grid().log_volume(),
            per_component: family.params_per_component(),
            head: StudentT::new(family.support.grid(), family.settings.components),
            parts,
        }
    }

    /// The length of the part of a row that belongs to one component.
    fn row_part(&self, input: RowInput) -> usize {
        match input {
            RowInput::Parameters => self.per_component,
            RowInput::StudentT => self.head.per_component(),
        }
    }

    /// The length of a row.
    fn row_len(&self, input: RowInput) -> usize {
        self.row_part(input) * self.components + PartLanes::<T>::tail(self.parts.as_ref(), self.components)
    }

    fn memory(&self) -> Memory<T> {
        let squares = self.form.plan.length();
        Memory {
            params: vec![Lanes::zero(); self.per_component],
            derivatives: vec![Lanes::zero(); self.per_component],
            nodes: vec![Lanes::zero(); squares],
            squares: vec![Lanes::zero(); squares],
            gradient: vec![Lanes::zero(); squares],
            form: self.form.plan.work(),
            head: self.head.memory(),
            outputs: vec![Lanes::zero(); self.head.per_component() - 1],
            mixture: MixtureLanes::new(self.components),
            places: [None; LANES],
            parts: PartLanes::new(self.parts.as_ref(), self.components),
        }
    }

    /// Computes up to [`LANES`] rows.
    fn rows(&self, input: RowInput, block: RowBlock<'_, T>, points: &LocatedPoints, memory: &mut Memory<T>) {
        let RowBlock { first, rows, log_prob, mut gradient } = block;
        let part = self.row_part(input);
        let per = self.row_len(input);
        let count = log_prob.len();
        memory.parts.load(rows, per, points, first);
        for (lane, place) in memory.places.iter_mut().enumerate() {
            let inside = lane < count && points.is_inside(first + lane);
            *place = inside.then(|| self.place(points, first + lane));
        }
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
            let with_gradient = gradient.is_some();
            memory.form.parts.copy_from_slice(memory.parts.of(component));
            let (integrals, scales) = dispatch(Component { kernel: self, memory, with_gradient });
            self.values(component, &integrals, &scales, with_gradient, memory);
            let Some(gradient) = &mut gradient else { continue };
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
        dispatch(LogSquares(&mut memory.mixture));
        memory.mixture.finish(points, first, self.log_volume, log_prob, gradient, part, &mut memory.parts);
    }

    /// Where the numbers that decide the value at a point are among the parameters of a component, and their factors.
    fn place(&self, points: &LocatedPoints, row: usize) -> ValueFactors {
        let (mut factors, mut start) = (ValueFactors::default(), 1);
        for (j, stretch) in self.stretch.iter().enumerate() {
            let knots = stretch.len() + 1;
            let (bin, t) = points.at(row, j);
            let width = stretch[bin.get()].to_f64();
            let [a, b, c, d] = hermite_basis(t);
            let at = (start + bin.get()) as u32;
            let derivatives = at + knots as u32;
            factors[j] = [(at, a), (at + 1, b), (derivatives, c * width), (derivatives + 1, d * width)];
            start += 2 * knots;
        }
        factors
    }

    /// The values of one component at the points of all rows. With gradient, goes on from the derivatives of its
    /// integral to those of the logarithm of its normalised value.
    fn values(
        &self,
        component: usize,
        integrals: &Lanes<T>,
        scales: &[Lanes<T>; MAX_SPLINE_DIMENSION],
        with_gradient: bool,
        memory: &mut Memory<T>,
    ) {
        // Where a factor is far below the rounding error of its spline, it counts as zero.
        let n = self.stretch.len();
        let least = T::TINY.powf(1.0 / n as f64);
        let Memory { params, derivatives, mixture, places, parts, form, .. } = memory;
        let whole = &mut mixture.components[component];
        for lane in 0..LANES {
            whole.logit.0[lane] = params[0].0[lane].to_f64();
            whole.integral.0[lane] = integrals.0[lane].to_f64();
        }
        if with_gradient {
            let factors = whole.integral.0.map(|z| T::from_f64(if z <= T::TINY { 0.0 } else { -1.0 / z }));
            dispatch(Scaled { numbers: derivatives, factors: Lanes(factors) });
            parts.keep(component, &form.integrals, Lanes(factors.map(|x| -x)));
        }
        whole.log_value = Lanes::splat(1.0);
        for (lane, place) in places.iter().enumerate() {
            let Some(factors) = place else { continue };
            let mut product = 1.0;
            for (factors, scale) in factors[..n].iter().zip(scales) {
                let value = |(at, factor): &(u32, f64)| params[*at as usize].0[lane].to_f64() * factor;
                let value: f64 = factors.iter().map(value).sum();
                let seen = value.abs() >= least;
                product *= if seen { value.abs() } else { least };
                if with_gradient && seen {
                    // The derivative of the logarithm of the square, in units of the parameters before scaling.
                    let scale = 2.0 * scale.0[lane].to_f64() / value;
                    for (at, factor) in factors {
                        derivatives[*at as usize].0[lane] += T::from_f64(factor * scale);
                    }
                }
            }
            whole.log_value.0[lane] = product;
        }
    }
}

/// The factors of both values and of both derivatives of a cubic Hermite spline at a local coordinate.
fn hermite_basis(t: f64) -> [f64; 4] {
    let [a, b, c, d] = hermite::basis(t);
    [a + b, c + d, b / 3.0, -c / 3.0]
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
    mixture: MixtureLanes,
    /// For each lane whose point is inside, what its value is made of.
    places: [Option<ValueFactors>; LANES],
    parts: PartLanes<T>,
}

/// For each axis the four parameters of a component that the value at a point depends on: their places and factors.
type ValueFactors = [[(u32, f64); 4]; MAX_SPLINE_DIMENSION];

/// The splines that the head makes for one component of all lanes.
struct HeadSplines<'k, T> {
    head: &'k StudentT<T>,
    memory: &'k mut Memory<T>,
}

impl<T: Real> LaneWork for HeadSplines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
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
    fn run<S: Simd>(self, _: S) {
        let Memory { head, derivatives, outputs, .. } = self.memory;
        self.head.pull_back(head, &derivatives[1..], outputs);
    }
}

/// Numbers times one factor per lane.
struct Scaled<'k, T> {
    numbers: &'k mut [Lanes<T>],
    factors: Lanes<T>,
}

impl<T: Real> LaneWork for Scaled<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for number in self.numbers {
            *number = *number * self.factors;
        }
    }
}

/// From magnitudes to logarithms of squares, for all components.
struct LogSquares<'k>(&'k mut MixtureLanes);

impl LaneWork for LogSquares<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for component in &mut self.0.components {
            component.log_value = component.log_value.ln().times(2.0);
        }
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
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Memory { params, derivatives, nodes, squares, gradient, form, .. } = self.memory;
        let mut scales = [Lanes::zero(); MAX_SPLINE_DIMENSION];
        let plan = &self.kernel.form.plan;
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
            return (plan.integral(simd, &self.kernel.form.tables, squares, form), scales);
        }
        gradient.fill(Lanes::zero());
        let integral = plan.integral_with_gradient(simd, &self.kernel.form.tables, squares, gradient, form);
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
        Some(self.row_len(input))
    }

    fn log_prob(
        &self,
        input: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    ) {
        let blocks =
            RowBlocks { width: self.row_len(input), rows: LANES, parallel: points.len() * self.components >= PARALLEL };
        blocks.run(rows, log_prob, gradient, || self.memory(), |block, memory| self.rows(input, block, points, memory));
    }
}
