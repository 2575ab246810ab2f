//! Log-densities of one point per row, and their gradients, where every row has a region of its own.
//!
//! It is the fused pass of spline mixtures with other lanes: those of a register are components of one row instead of
//! rows, because no two rows share a form. The mathematics and the conventions are those of the pass for a fixed region.

use super::super::form::BinForm;
use super::super::hermite::{self, SQUARE};
use super::super::nodes::{self, STEP};
use super::super::student_t::StudentT;
use super::super::{MAX_SPLINE_DIMENSION, SplineMixture};
use super::contract::{FullBins, SumMemory, general};
use super::pack::{PACK, Pack};
use super::planar_form::PlanarForm;
use crate::density::grid::{BinIndex, Grid};
use crate::density::lanes::{LaneWork, Real, Simd, dispatch};
use crate::density::weights::{log_softmax, log_sum_exp};

/// The nodes of a bin that are not at its ends.
const INNER: usize = SQUARE - 2;
/// The logit of a component without mass: far below all others, but finite.
const NO_WEIGHT: f64 = -1e30;

/// The normaliser of one row.
#[derive(Debug)]
pub(super) enum RowForm {
    Planar(PlanarForm),
    /// For any number of variables, in values at nodes.
    General(Box<BinForm<f64>>),
}

/// What all rows share, in one precision.
#[derive(Clone, Debug)]
pub(super) struct RegionKernel<T> {
    pub components: usize,
    pub per_component: usize,
    offset: Vec<T>,
    /// For each axis the width of every bin divided by the mean width.
    stretch: Vec<Vec<T>>,
    /// The cubic Hermite basis at the inner nodes of a bin: the factors of both values and of both derivatives.
    basis: [[T; 4]; INNER],
    full: FullBins<T>,
    /// The number of squares of all axes.
    length: usize,
    log_volume: f64,
    pub head: StudentT<T>,
}

/// Memory that is used for one row after the other.
pub(super) struct PassMemory<T> {
    params: Vec<Pack<T>>,
    derivatives: Vec<Pack<T>>,
    nodes: Vec<Pack<T>>,
    squares: Vec<Pack<T>>,
    gradient: Vec<Pack<T>>,
    sums: SumMemory<T>,
    parts: Vec<ComponentPart>,
}

/// What is known of one component.
#[derive(Clone, Debug, Default)]
struct ComponentPart {
    logit: f64,
    integral: f64,
    log_value: f64,
}

/// A point in its bin.
pub(super) struct PlacedPoint {
    pub bin: [BinIndex; MAX_SPLINE_DIMENSION],
    pub local: [f64; MAX_SPLINE_DIMENSION],
}

impl PlacedPoint {
    pub fn new(grid: &Grid, point: &[f64]) -> PlacedPoint {
        let mut placed =
            PlacedPoint { bin: [BinIndex::default(); MAX_SPLINE_DIMENSION], local: [0.0; MAX_SPLINE_DIMENSION] };
        grid.locate(point, &mut placed.bin, &mut placed.local);
        placed
    }
}

impl<T: Real> RegionKernel<T> {
    pub fn new(family: &SplineMixture) -> RegionKernel<T> {
        let all = nodes::bin_nodes();
        let basis = std::array::from_fn(|k| hermite_basis(all[k + 1]).map(T::from_f64));
        let grid = family.support.grid();
        let (mut starts, mut length) = (Vec::new(), 0);
        for axis in grid.axes() {
            starts.push(length);
            length += STEP * axis.bins() + 1;
        }
        // The mean of a polynomial is the mean of its Bernstein coefficients.
        let from = nodes::bernstein();
        let weight = |node: usize| (0..SQUARE).map(|k| from[(k, node)]).sum::<f64>() / SQUARE as f64;
        let fractions = |axis: &crate::density::grid::Axis| {
            axis.bin_indices().map(|bin| T::from_f64(axis.width_fraction(bin))).collect()
        };
        RegionKernel {
            components: family.settings.components,
            per_component: family.params_per_component(),
            offset: family.offset.iter().map(|x| T::from_f64(*x)).collect(),
            stretch: family.stretch.iter().map(|axis| axis.iter().map(|x| T::from_f64(*x)).collect()).collect(),
            basis,
            full: FullBins {
                fractions: grid.axes().iter().map(fractions).collect(),
                weights: std::array::from_fn(|node| T::from_f64(weight(node))),
                starts,
            },
            length,
            log_volume: grid.log_volume(),
            head: StudentT::new(grid, family.settings.components),
        }
    }

    pub fn memory(&self) -> PassMemory<T> {
        let packs = |length: usize| vec![Pack::zero(); length];
        PassMemory {
            params: packs(self.per_component),
            derivatives: packs(self.per_component),
            nodes: packs(self.length),
            squares: packs(self.length),
            gradient: packs(self.length),
            sums: SumMemory::new(),
            parts: vec![ComponentPart::default(); self.components.next_multiple_of(PACK)],
        }
    }

    /// The log-density of a point inside the region of the row, and its gradient with respect to the parameters, to which
    /// the offset of the family is still to be added or not.
    pub fn row(
        &self,
        form: &RowForm,
        params: &[T],
        with_offset: bool,
        point: &PlacedPoint,
        mut gradient: Option<&mut [T]>,
        memory: &mut PassMemory<T>,
    ) -> f64 {
        for first in (0..self.components).step_by(PACK) {
            let gradient = gradient.as_deref_mut();
            let work = PackWork { kernel: self, form, params, with_offset, point, first, gradient, memory };
            dispatch(work);
        }
        self.finish(&memory.parts[..self.components], gradient)
    }

    /// The log-density of a row from its components. `gradient` has the derivatives of the logarithms of normalised
    /// components and gets those of the log-density.
    fn finish(&self, parts: &[ComponentPart], gradient: Option<&mut [T]>) -> f64 {
        let empty = |part: &ComponentPart| part.integral <= T::TINY;
        let logits: Vec<f64> = parts.iter().map(|part| if empty(part) { NO_WEIGHT } else { part.logit }).collect();
        let log_weights = log_softmax(&logits);
        let term = |(part, weight): (&ComponentPart, &f64)| {
            weight + part.log_value - if empty(part) { 0.0 } else { part.integral.ln() }
        };
        let terms: Vec<f64> = parts.iter().zip(&log_weights).map(term).collect();
        let total = log_sum_exp(terms.iter().copied());
        let Some(gradient) = gradient else { return total - self.log_volume };
        let rows = gradient.chunks_mut(self.per_component).zip(parts).zip(terms.iter().zip(&log_weights));
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

/// A pack of components of one row: their integrals and values and, where asked for, the gradients of the logarithms of
/// their normalised values.
struct PackWork<'k, T> {
    kernel: &'k RegionKernel<T>,
    form: &'k RowForm,
    params: &'k [T],
    with_offset: bool,
    point: &'k PlacedPoint,
    first: usize,
    gradient: Option<&'k mut [T]>,
    memory: &'k mut PassMemory<T>,
}

impl<T: Real> LaneWork for PackWork<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PackWork { kernel, form, params: row, with_offset, point, first, gradient: out, memory } = self;
        let PassMemory { params, derivatives, nodes, squares, gradient, sums, parts } = memory;
        let per = kernel.per_component;
        let count = PACK.min(kernel.components - first);
        for lane in 0..PACK {
            // Lanes without a component repeat the last one.
            let start = (first + lane.min(count - 1)) * per;
            let (own, offset) = (&row[start..start + per], &kernel.offset[start..start + per]);
            for ((pack, x), y) in params.iter_mut().zip(own).zip(offset) {
                pack.0[lane] = if with_offset { *x + *y } else { *x };
            }
        }
        let mut scales = [Pack::zero(); MAX_SPLINE_DIMENSION];
        let mut start = 1;
        for ((stretch, scale), place) in kernel.stretch.iter().zip(&mut scales).zip(&kernel.full.starts) {
            let knots = stretch.len() + 1;
            *scale = normalise(&mut params[start..start + 2 * knots]);
            let (values, knot_derivatives) = params[start..start + 2 * knots].split_at(knots);
            for (bin, width) in stretch.iter().enumerate() {
                let corners = [
                    values[bin],
                    values[bin + 1],
                    knot_derivatives[bin].times(*width),
                    knot_derivatives[bin + 1].times(*width),
                ];
                let place = place + bin * STEP;
                nodes[place] = corners[0];
                for (node, basis) in nodes[place + 1..=place + INNER].iter_mut().zip(&kernel.basis) {
                    let mut value = Pack::zero();
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
            *square = node.product(*node);
        }
        let with_gradient = out.is_some();
        if with_gradient {
            gradient.fill(Pack::zero());
        }
        let wanted = with_gradient.then_some(&mut gradient[..]);
        let integral = match form {
            RowForm::Planar(form) => kernel.full.planar(form, squares, wanted, sums),
            RowForm::General(form) => general(simd, form, squares, wanted, sums),
        };
        for (lane, part) in parts[first..first + PACK].iter_mut().enumerate() {
            part.logit = params[0].0[lane].to_f64();
            part.integral = integral.0[lane].to_f64();
        }
        let parts = &mut parts[first..first + PACK];
        let Some(out) = out else {
            evaluate(kernel, point, params, &scales, parts, |_, _, _| {});
            return;
        };
        // From the integral to minus its logarithm, and from squares to values at nodes.
        let mut factor = Pack::zero();
        for (x, part) in factor.0.iter_mut().zip(&*parts) {
            *x = T::from_f64(if part.integral <= T::TINY { 0.0 } else { -2.0 / part.integral });
        }
        for (gradient, node) in gradient.iter_mut().zip(&*nodes) {
            *gradient = gradient.product(*node).product(factor);
        }
        derivatives.fill(Pack::zero());
        let mut start = 1;
        for ((stretch, scale), place) in kernel.stretch.iter().zip(&scales).zip(&kernel.full.starts) {
            let knots = stretch.len() + 1;
            let (values, knot_derivatives) = derivatives[start..start + 2 * knots].split_at_mut(knots);
            for (bin, width) in stretch.iter().enumerate() {
                let place = place + bin * STEP;
                let mut corners = [Pack::zero(); 4];
                for (derivative, basis) in gradient[place + 1..=place + INNER].iter().zip(&kernel.basis) {
                    for (corner, factor) in corners.iter_mut().zip(basis) {
                        corner.add_times(*derivative, *factor);
                    }
                }
                corners[0].add(gradient[place]);
                values[bin].add(corners[0]);
                values[bin + 1].add(corners[1]);
                knot_derivatives[bin].add_times(corners[2], *width);
                knot_derivatives[bin + 1].add_times(corners[3], *width);
            }
            values[knots - 1].add(gradient[place + stretch.len() * STEP]);
            for derivative in &mut derivatives[start..start + 2 * knots] {
                *derivative = derivative.product(*scale);
            }
            start += 2 * knots;
        }
        evaluate(kernel, point, params, &scales, parts, |lane, place, factor| {
            derivatives[place].0[lane] += T::from_f64(factor);
        });
        for lane in 0..count {
            let start = (first + lane) * per;
            for (x, pack) in out[start..start + per].iter_mut().zip(&*derivatives) {
                *x = pack.0[lane];
            }
        }
    }
}

/// The values of a pack of components at the point, and what their gradients need: `add` gets the component, the place
/// of a parameter, and the derivative of the logarithm of the value with respect to it.
#[inline(always)]
fn evaluate<T: Real>(
    kernel: &RegionKernel<T>,
    point: &PlacedPoint,
    params: &[Pack<T>],
    scales: &[Pack<T>; MAX_SPLINE_DIMENSION],
    parts: &mut [ComponentPart],
    mut add: impl FnMut(usize, usize, f64),
) {
    // Where a factor is far below the rounding error of its spline, it counts as zero.
    let least = T::TINY.powf(1.0 / kernel.stretch.len() as f64);
    let mut products = [1.0; PACK];
    let mut start = 1;
    for (j, stretch) in kernel.stretch.iter().enumerate() {
        let knots = stretch.len() + 1;
        let (bin, t) = (point.bin[j].get(), point.local[j]);
        let width = stretch[bin].to_f64();
        let [a, b, c, d] = hermite_basis(t);
        let at = start + bin;
        let factors = [(at, a), (at + 1, b), (at + knots, c * width), (at + knots + 1, d * width)];
        for (lane, product) in products.iter_mut().enumerate() {
            let value: f64 = factors.iter().map(|(place, factor)| params[*place].0[lane].to_f64() * factor).sum();
            let seen = value.abs() >= least;
            *product *= if seen { value.abs() } else { least };
            if seen {
                // In units of the parameters before they were scaled.
                let scale = 2.0 * scales[j].0[lane].to_f64() / value;
                factors.iter().for_each(|(place, factor)| add(lane, *place, factor * scale));
            }
        }
        start += 2 * knots;
    }
    for (part, product) in parts.iter_mut().zip(products) {
        part.log_value = 2.0 * product.ln();
    }
}

/// Divides the values and derivatives of splines by the mean of their sizes, and returns one over that: densities do
/// not depend on the scale of a spline, and squares must neither overflow nor underflow.
#[inline(always)]
fn normalise<T: Real>(numbers: &mut [Pack<T>]) -> Pack<T> {
    // Divided before they are added: the sum of finite numbers need not be finite.
    let part = T::from_f64(1.0 / numbers.len() as f64);
    let mut scale = Pack::zero();
    for x in &*numbers {
        scale.add_times(x.abs(), part);
    }
    let (one, least) = (T::from_f64(1.0), T::from_f64(T::TINY));
    for x in &mut scale.0 {
        *x = one / if *x < least { least } else { *x };
    }
    for x in numbers {
        *x = x.product(scale);
    }
    scale
}
