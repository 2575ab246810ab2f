//! The fused pass of histogram mixtures: see [`crate::density::row_kernel`].
//!
//! One component of [`LANES`] rows goes through at a time, one row per lane. With the weights `h = exp(theta)` of the
//! bins along every axis, Z is a sum over bins, in runs of bins that differ along the last axis alone:
//!
//! ```text
//! Z  =  sum over runs  h_1[i_1] .. h_(n-1)[i_(n-1)]  sum over j  volume_j h_n[j],        d Z / d theta = h d Z / d h.
//! ```

use std::sync::Arc;

use super::HistogramMixture;
use super::form::VolumeForm;
use crate::density::grid::BinIndex;
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, Simd, dispatch};
use crate::density::occupied::OccupiedBins;
use crate::density::parts::{PartFactors, PartLanes};
use crate::density::row_kernel::{LocatedPoints, MixtureLanes, RowBlock, RowBlocks, RowInput, RowKernel};

/// A batch of at least this many components is divided between threads.
const PARALLEL: usize = 64;

/// What the fused pass of a family needs, in one precision.
#[derive(Clone, Debug)]
pub(super) struct HistogramKernel<T> {
    components: usize,
    /// What is added to every row of parameters.
    offset: Vec<T>,
    /// Where the weights of every axis start, and where those of the last one end.
    starts: Vec<usize>,
    /// Whether a bin of an axis holds a part of the constraint at all, axis by axis.
    in_use: Vec<bool>,
    runs: Vec<Run>,
    /// The leading places of all runs, and the last place with its volume of all bins.
    leading: Vec<usize>,
    last: Vec<(usize, T)>,
    occupied: Arc<OccupiedBins>,
    log_volume: f64,
    parts: Option<Arc<dyn PartFactors>>,
}

/// Bins of one part that differ along the last axis alone.
#[derive(Clone, Copy, Debug)]
struct Run {
    part: usize,
    /// Where the bins end in the list of all; they start where those of the run before end.
    end: usize,
}

struct HistogramMemory<T> {
    /// The logarithms of weights, the weights, and the derivatives with respect to the weights, of all axes.
    theta: Vec<Lanes<T>>,
    weights: Vec<Lanes<T>>,
    derivatives: Vec<Lanes<T>>,
    mixture: MixtureLanes,
    bins: Vec<BinIndex>,
    local: Vec<f64>,
    parts: PartLanes<T>,
    /// The integrals of a component over all parts.
    integrals: Vec<Lanes<T>>,
    /// Which component it is.
    component: usize,
}

impl<T: Real> HistogramKernel<T> {
    pub fn new(family: &HistogramMixture) -> HistogramKernel<T> {
        HistogramKernel::on_parts(family, &[&family.form], None)
    }

    /// The fused pass on a support in parts.
    pub fn on_parts(
        family: &HistogramMixture,
        forms: &[&VolumeForm],
        parts: Option<Arc<dyn PartFactors>>,
    ) -> HistogramKernel<T> {
        let mut starts = vec![0];
        for bins in family.bins() {
            starts.push(starts[starts.len() - 1] + bins);
        }
        let axes = starts.len() - 1;
        let mut kernel = HistogramKernel {
            components: family.settings.components,
            offset: family.offset.iter().map(|x| T::from_f64(*x)).collect(),
            in_use: vec![false; starts[axes]],
            starts,
            runs: Vec::new(),
            leading: Vec::new(),
            last: Vec::new(),
            occupied: family.occupied.clone(),
            log_volume: family.support.grid().log_volume(),
            parts,
        };
        for (part, form) in forms.iter().enumerate() {
            let mut before: Option<&[usize]> = None;
            for (places, volume) in form.bins_in_use() {
                let (last, leading) = places.split_last().expect("a region has at least one variable");
                if before != Some(leading) {
                    kernel.runs.push(Run { part, end: 0 });
                    kernel.leading.extend(leading);
                    before = Some(leading);
                }
                kernel.last.push((*last, T::from_f64(volume)));
                kernel.runs.last_mut().expect("a run has begun").end = kernel.last.len();
                places.iter().for_each(|place| kernel.in_use[*place] = true);
            }
        }
        kernel
    }

    /// The number of parameters of a component: its logit, then one per bin of every axis.
    fn per_component(&self) -> usize {
        1 + self.in_use.len()
    }

    /// The length of a row.
    fn row_len(&self) -> usize {
        self.per_component() * self.components + PartLanes::<T>::tail(self.parts.as_ref(), self.components)
    }

    fn memory(&self) -> HistogramMemory<T> {
        let (length, n) = (self.in_use.len(), self.starts.len() - 1);
        HistogramMemory {
            theta: vec![Lanes::zero(); length],
            weights: vec![Lanes::zero(); length],
            derivatives: vec![Lanes::zero(); length],
            mixture: MixtureLanes::new(self.components),
            bins: vec![BinIndex::default(); n],
            local: vec![0.0; n],
            parts: PartLanes::new(self.parts.as_ref(), self.components),
            integrals: vec![Lanes::zero(); self.parts.as_ref().map_or(1, |parts| parts.parts())],
            component: 0,
        }
    }

    /// Computes up to [`LANES`] rows.
    fn rows(&self, block: RowBlock<'_, T>, points: &LocatedPoints, memory: &mut HistogramMemory<T>) {
        let RowBlock { first, rows, log_prob, mut gradient } = block;
        let per = self.per_component();
        let width = self.row_len();
        let count = log_prob.len();
        memory.parts.load(rows, width, points, first);
        for (component, offset) in self.offset.chunks(per).enumerate() {
            for lane in 0..LANES {
                // Lanes without a row repeat the last one.
                let start = lane.min(count - 1) * width + component * per;
                let both = rows[start + 1..start + per].iter().zip(&offset[1..]);
                memory.theta.iter_mut().zip(both).for_each(|(lanes, (x, y))| lanes.0[lane] = *x + *y);
                memory.mixture.components[component].logit.0[lane] = (rows[start] + offset[0]).to_f64();
            }
            memory.component = component;
            let integrals = dispatch(HistogramIntegral { kernel: self, memory, with_gradient: gradient.is_some() });
            let HistogramMemory { theta, derivatives, mixture, bins, local, parts, integrals: by_part, .. } =
                &mut *memory;
            let whole = &mut mixture.components[component];
            whole.log_value = Lanes::zero();
            for lane in 0..LANES {
                whole.integral.0[lane] = integrals.0[lane].to_f64();
            }
            let reciprocal = |z: f64| T::from_f64(if z <= T::TINY { 0.0 } else { 1.0 / z });
            parts.keep(component, by_part, Lanes(whole.integral.0.map(reciprocal)));
            for lane in 0..count {
                let (integral, log_value) = (whole.integral.0[lane], &mut whole.log_value.0[lane]);
                if !points.is_inside(first + lane) {
                    continue;
                }
                let (bin, t) = points.place(first + lane);
                bins.copy_from_slice(bin);
                local.copy_from_slice(t);
                self.occupied.enter(bins, local);
                let factor = T::from_f64(if integral <= T::TINY { 0.0 } else { -1.0 / integral });
                let start = lane * width + component * per;
                let mut row = gradient.as_mut().map(|gradient| &mut gradient[start + 1..start + per]);
                if let Some(row) = &mut row {
                    row.iter_mut().zip(&*derivatives).for_each(|(x, lanes)| *x = lanes.0[lane] * factor);
                }
                for (start, bin) in self.starts.iter().zip(&*bins) {
                    *log_value += theta[start + bin.get()].0[lane].to_f64();
                    if let Some(row) = &mut row {
                        row[start + bin.get()] += T::from_f64(1.0);
                    }
                }
            }
        }
        memory.mixture.finish(points, first, self.log_volume, log_prob, gradient, per, &mut memory.parts);
    }
}

/// One component of all lanes: weights, the integral, and its derivatives with respect to the logarithms of weights.
/// These are made relative to the largest weight of their axis, which no density depends on.
struct HistogramIntegral<'k, T> {
    kernel: &'k HistogramKernel<T>,
    memory: &'k mut HistogramMemory<T>,
    with_gradient: bool,
}

impl<T: Real> LaneWork for HistogramIntegral<'_, T> {
    type Output = Lanes<T>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Lanes<T> {
        let HistogramKernel { starts, in_use, runs, leading, last, .. } = self.kernel;
        let HistogramMemory { theta, weights, derivatives, parts, integrals, component, .. } = self.memory;
        let factors = parts.of(*component);
        for axis in starts.windows(2) {
            let mut largest = Lanes::splat(T::from_f64(-1e30));
            for place in axis[0]..axis[1] {
                if in_use[place] {
                    largest = largest.max(theta[place]);
                }
            }
            for place in axis[0]..axis[1] {
                if in_use[place] {
                    theta[place] = theta[place] - largest;
                    weights[place] = theta[place].exp();
                }
            }
        }
        let n = starts.len() - 1;
        if self.with_gradient {
            derivatives.fill(Lanes::zero());
        }
        integrals.fill(Lanes::zero());
        let mut start = 0;
        for (k, run) in runs.iter().enumerate() {
            let leading = &leading[k * (n - 1)..(k + 1) * (n - 1)];
            let mut product = Lanes::splat(T::from_f64(1.0));
            for place in leading {
                product = product * weights[*place];
            }
            let mut sum = Lanes::zero();
            for (place, volume) in &last[start..run.end] {
                sum.add_times(weights[*place], *volume);
            }
            integrals[run.part].add_product(product, sum);
            if self.with_gradient {
                product = product * factors[run.part];
                let whole = product * sum;
                for place in leading {
                    derivatives[*place] += whole;
                }
                for (place, volume) in &last[start..run.end] {
                    derivatives[*place].add_times(product * weights[*place], *volume);
                }
            }
            start = run.end;
        }
        let mut total = Lanes::zero();
        for (factor, integral) in factors.iter().zip(&*integrals) {
            total.add_product(*factor, *integral);
        }
        total
    }
}

impl<T: Real> RowKernel<T> for HistogramKernel<T> {
    fn width(&self, input: RowInput) -> Option<usize> {
        (input == RowInput::Parameters).then(|| self.row_len())
    }

    fn log_prob(
        &self,
        _: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    ) {
        let blocks =
            RowBlocks { width: self.row_len(), rows: LANES, parallel: points.len() * self.components >= PARALLEL };
        blocks.run(rows, log_prob, gradient, || self.memory(), |block, memory| self.rows(block, points, memory));
    }
}
