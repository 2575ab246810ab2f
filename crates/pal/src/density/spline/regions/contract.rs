//! The sums of the form of one row and their gradients, for a pack of components.

use super::super::form::BinForm;
use super::super::hermite::SQUARE;
use super::super::nodes::STEP;
use super::pack::{PACK, Pack};
use super::planar_form::PlanarForm;
use super::tables::{TABLE, TableEntries};
use crate::density::lanes::{Lanes, Real, Simd};

/// The constants of a grid that full bins need.
#[derive(Clone, Debug)]
pub(super) struct FullBins<T> {
    /// For each axis the widths of bins as fractions of the box.
    pub fractions: Vec<Vec<T>>,
    /// The mean of a square over a bin in values at its nodes: the weights of Lobatto's rule.
    pub weights: [T; SQUARE],
    /// Where the squares of every axis start.
    pub starts: Vec<usize>,
}

/// Memory for one evaluation.
pub(super) struct SumMemory<T> {
    /// For each axis the integrals over bins, and the derivatives with respect to them.
    integrals: [Vec<Pack<T>>; 2],
    derivatives: [Vec<Pack<T>>; 2],
    /// Squares and gradients for the general form.
    lanes: [Vec<Lanes<f64>>; 2],
}

impl<T: Real> SumMemory<T> {
    pub fn new() -> SumMemory<T> {
        let empty = || [Vec::new(), Vec::new()];
        SumMemory { integrals: empty(), derivatives: empty(), lanes: [Vec::new(), Vec::new()] }
    }
}

impl<T: Real> FullBins<T> {
    /// The integrals over a planar form. Where a gradient is given, the derivatives with respect to the squares are
    /// added to it.
    #[inline(always)]
    pub fn planar(
        &self,
        form: &PlanarForm,
        squares: &[Pack<T>],
        gradient: Option<&mut [Pack<T>]>,
        memory: &mut SumMemory<T>,
    ) -> Pack<T> {
        match &form.tables {
            TableEntries::Float64(tables) => {
                self.with_tables(form, tables, |entry: f64| T::from_f64(entry), squares, gradient, memory)
            }
            TableEntries::Float32(tables) => {
                self.with_tables(form, tables, |entry: f32| T::from_f64(f64::from(entry)), squares, gradient, memory)
            }
        }
    }

    #[inline(always)]
    fn with_tables<E: Copy>(
        &self,
        form: &PlanarForm,
        tables: &[E],
        convert: impl Fn(E) -> T,
        squares: &[Pack<T>],
        gradient: Option<&mut [Pack<T>]>,
        memory: &mut SumMemory<T>,
    ) -> Pack<T> {
        let SumMemory { integrals, derivatives, .. } = memory;
        for axis in [0, 1] {
            integrals[axis].clear();
            derivatives[axis].clear();
            derivatives[axis].resize(self.fractions[axis].len(), Pack::zero());
            for (bin, fraction) in self.fractions[axis].iter().enumerate() {
                let place = self.starts[axis] + bin * STEP;
                let mut sum = Pack::zero();
                for (square, weight) in squares[place..place + SQUARE].iter().zip(&self.weights) {
                    sum.add_times(*square, *weight);
                }
                integrals[axis].push(sum.times(*fraction));
            }
        }
        let mut total = Pack::zero();
        for run in &form.full {
            let (column, bins) = (usize::from(run.column), usize::from(run.first)..usize::from(run.end));
            let outer = integrals[0][column];
            let mut sum = Pack::zero();
            for (inner, derivative) in integrals[1][bins.clone()].iter().zip(&mut derivatives[1][bins]) {
                sum.add(*inner);
                derivative.add(outer);
            }
            total.add_product(outer, sum);
            derivatives[0][column].add(sum);
        }
        let Some(gradient) = gradient else {
            for ([i, j], table) in form.cut.iter().zip(tables.chunks_exact(TABLE)) {
                let (first, second) = self.places(*i, *j);
                for (x, row) in squares[first..first + SQUARE].iter().zip(table.chunks_exact(SQUARE)) {
                    let mut sum = Pack::zero();
                    for (y, entry) in squares[second..second + SQUARE].iter().zip(row) {
                        sum.add_times(*y, convert(*entry));
                    }
                    total.add_product(*x, sum);
                }
            }
            return total;
        };
        for ([i, j], table) in form.cut.iter().zip(tables.chunks_exact(TABLE)) {
            let (first, second) = self.places(*i, *j);
            let mut across = [Pack::zero(); SQUARE];
            for (k, row) in table.chunks_exact(SQUARE).enumerate() {
                let x = squares[first + k];
                let mut sum = Pack::zero();
                for ((y, entry), across) in squares[second..second + SQUARE].iter().zip(row).zip(&mut across) {
                    let entry = convert(*entry);
                    sum.add_times(*y, entry);
                    across.add_times(x, entry);
                }
                total.add_product(x, sum);
                gradient[first + k].add(sum);
            }
            for (gradient, across) in gradient[second..second + SQUARE].iter_mut().zip(across) {
                gradient.add(across);
            }
        }
        for axis in [0, 1] {
            for (bin, (derivative, fraction)) in derivatives[axis].iter().zip(&self.fractions[axis]).enumerate() {
                let place = self.starts[axis] + bin * STEP;
                let derivative = derivative.times(*fraction);
                for (gradient, weight) in gradient[place..place + SQUARE].iter_mut().zip(&self.weights) {
                    gradient.add_times(derivative, *weight);
                }
            }
        }
        total
    }

    #[inline(always)]
    fn places(&self, i: u16, j: u16) -> (usize, usize) {
        (self.starts[0] + usize::from(i) * STEP, self.starts[1] + usize::from(j) * STEP)
    }
}

/// The integrals over a form of any number of variables, in float64, and their derivatives where a gradient is given.
#[inline(always)]
pub(super) fn general<S: Simd, T: Real>(
    simd: S,
    form: &BinForm<f64>,
    squares: &[Pack<T>],
    gradient: Option<&mut [Pack<T>]>,
    memory: &mut SumMemory<T>,
) -> Pack<T> {
    let [lanes, derivatives] = &mut memory.lanes;
    lanes.clear();
    lanes.resize(squares.len(), Lanes::zero());
    for (lanes, pack) in lanes.iter_mut().zip(squares) {
        for (lane, x) in lanes.0.iter_mut().zip(pack.0) {
            *lane = x.to_f64();
        }
    }
    let mut work = form.plan().work();
    let total = match gradient {
        None => form.plan().integral(simd, &form.tables, lanes, &mut work),
        Some(gradient) => {
            derivatives.clear();
            derivatives.resize(squares.len(), Lanes::zero());
            let total = form.plan().integral_with_gradient(simd, &form.tables, lanes, derivatives, &mut work);
            for (pack, lanes) in gradient.iter_mut().zip(derivatives) {
                for (x, lane) in pack.0.iter_mut().zip(lanes.0) {
                    *x += T::from_f64(lane);
                }
            }
            total
        }
    };
    let mut pack = Pack::zero();
    for (x, lane) in pack.0.iter_mut().zip(&total.0[..PACK]) {
        *x = T::from_f64(*lane);
    }
    pack
}
