//! Log-densities of one point per parameter vector, and their gradients with respect to the parameters, in one pass:
//! what a training step of a network needs.
//!
//! Tensor frameworks can do the same with the recipe of a kind, by a dozen operations on large intermediate tensors. A
//! kernel does it row by row, without them, in float32 or float64. Both agree to rounding.

use std::fmt::Debug;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::grid::{BinIndex, Grid};
use super::kind::FamilyKind;
use super::lanes::{self, LaneWork, Lanes, Real, Simd};
use super::parts::{PartLanes, SupportParts};
use super::{DensityError, Family};

/// The logit of a component without mass: far below all others, but finite.
const NO_WEIGHT: f64 = -1e30;

/// Points in local coordinates of their bins.
#[derive(Clone, Debug)]
pub struct LocatedPoints {
    dimension: usize,
    bins: Vec<BinIndex>,
    local: Vec<f64>,
    /// Whether each point may have a positive density.
    inside: Vec<bool>,
    /// Truth values of Boolean variables, so many for each point.
    booleans: usize,
    assignments: Vec<bool>,
}

impl LocatedPoints {
    pub(crate) fn new(grid: &Grid, points: &[f64], inside: Vec<bool>) -> LocatedPoints {
        let n = grid.dimension();
        let (mut bins, mut local) = (vec![BinIndex::default(); points.len()], vec![0.0; points.len()]);
        let parts = points.chunks(n).zip(bins.chunks_mut(n)).zip(local.chunks_mut(n)).zip(&inside);
        for (((point, bin), t), _) in parts.filter(|(_, inside)| **inside) {
            grid.locate(point, bin, t);
        }
        LocatedPoints { dimension: n, bins, local, inside, booleans: 0, assignments: Vec::new() }
    }

    /// The same points with truth values of Boolean variables, row by row.
    pub(crate) fn with_assignments(self, booleans: usize, assignments: Vec<bool>) -> LocatedPoints {
        LocatedPoints { booleans, assignments, ..self }
    }

    /// The truth values of the Boolean variables of a point.
    pub(crate) fn assignment(&self, row: usize) -> &[bool] {
        &self.assignments[row * self.booleans..(row + 1) * self.booleans]
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// Whether a point may have a positive density.
    pub(crate) fn is_inside(&self, row: usize) -> bool {
        self.inside[row]
    }

    /// The bin and the local coordinate of a point along an axis; meaningless for points outside.
    pub(crate) fn at(&self, row: usize, axis: usize) -> (BinIndex, f64) {
        let at = row * self.dimension + axis;
        (self.bins[at], self.local[at])
    }

    /// The bin and the local coordinates of a point; meaningless for points outside.
    pub(crate) fn place(&self, row: usize) -> (&[BinIndex], &[f64]) {
        let at = row * self.dimension..(row + 1) * self.dimension;
        (&self.bins[at.clone()], &self.local[at])
    }
}

/// What the rows of a fused pass hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowInput {
    /// Parameters of the family.
    Parameters,
    /// Outputs of a network, from which a head makes splines: for every component its logit, then location, scale and
    /// tail of a Student t distribution along every axis.
    StudentT,
}

/// The fused pass of one kind of family in one precision.
pub trait RowKernel<T>: Send + Sync + Debug {
    /// The length of a row; `None` if this kind has no such head.
    fn width(&self, input: RowInput) -> Option<usize>;

    /// Computes the log-density of each point under its own row of parameters and, where asked for, its gradient with
    /// respect to that row. Points outside get minus infinity and a gradient of zero.
    ///
    /// Where a density vanishes inside the constraint, its logarithm is that of the smallest number at hand, and a
    /// component without mass takes no part: the same conventions as in the recipe.
    fn log_prob(
        &self,
        input: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
    );
}

/// The fused pass of a family in both precisions, each made when it is first needed.
#[derive(Clone, Debug)]
pub(crate) struct KernelPair<A, B> {
    pub f32: OnceLock<A>,
    pub f64: OnceLock<B>,
}

impl<A, B> Default for KernelPair<A, B> {
    fn default() -> KernelPair<A, B> {
        KernelPair { f32: OnceLock::new(), f64: OnceLock::new() }
    }
}

/// Some consecutive rows of a fused pass, and where their results go.
pub(crate) struct RowBlock<'r, T> {
    /// The number of rows before these.
    pub first: usize,
    pub rows: &'r [T],
    pub log_prob: &'r mut [T],
    pub gradient: Option<&'r mut [T]>,
}

/// How the rows of a fused pass are divided.
pub(crate) struct RowBlocks {
    /// The length of a row.
    pub width: usize,
    /// The number of rows of a block.
    pub rows: usize,
    /// Whether there is enough work for several threads.
    pub parallel: bool,
}

impl RowBlocks {
    /// Does the work on all blocks, with memory that a thread uses for one block after the other.
    ///
    /// The calling thread works too instead of waiting until others have woken up: a training step is over in less time
    /// than that may take, above all where threads of a tensor framework wait for their next task in busy loops.
    pub fn run<T: Send + Sync, M>(
        &self,
        rows: &[T],
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
        memory: impl Fn() -> M + Sync,
        work: impl Fn(RowBlock<'_, T>, &mut M) + Sync,
    ) {
        let count = log_prob.len().div_ceil(self.rows);
        let gradients: Vec<Option<&mut [T]>> = match gradient {
            Some(gradient) => gradient.chunks_mut(self.width * self.rows).map(Some).collect(),
            None => (0..count).map(|_| None).collect(),
        };
        let blocks = log_prob.chunks_mut(self.rows).zip(gradients).zip(rows.chunks(self.width * self.rows));
        let blocks = blocks.enumerate().map(|(k, ((log_prob, gradient), rows))| {
            let first = k * self.rows;
            RowBlock { first, rows, log_prob, gradient }
        });
        // Each thread takes the next block when it is done with one.
        let blocks = Mutex::new(blocks);
        let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work_off = || {
            let mut own = None;
            while let Some(block) = next() {
                work(block, own.get_or_insert_with(&memory));
            }
        };
        let threads = if self.parallel { rayon::current_num_threads().min(count) } else { 1 };
        rayon::in_place_scope(|scope| {
            (1..threads).for_each(|_| scope.spawn(|_| work_off()));
            work_off();
        });
    }
}

/// What is known of the components of mixtures, with one row per lane.
#[derive(Clone, Debug)]
pub(crate) struct MixtureLanes {
    pub components: Vec<ComponentLanes>,
}

/// One component of one row per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComponentLanes {
    pub logit: Lanes<f64>,
    /// The integral Z of the component, relative to the volume of the box.
    pub integral: Lanes<f64>,
    /// The logarithm of the value at the point of the row, before it is normalised.
    pub log_value: Lanes<f64>,
}

impl MixtureLanes {
    pub fn new(components: usize) -> MixtureLanes {
        let zero = ComponentLanes { logit: Lanes::zero(), integral: Lanes::zero(), log_value: Lanes::zero() };
        MixtureLanes { components: vec![zero; components] }
    }

    /// The log-densities of some rows from their components: with the responsibilities
    /// `r_m = exp(log w_m + log q_m - log Z_m - log p)`,
    ///
    /// ```text
    /// d log p  =  sum_m  r_m (d log q_m - d log Z_m)  +  (r_m - w_m) d logit_m.
    /// ```
    ///
    /// `gradient` has the derivatives of the logarithms of normalised components, row by row, `length` numbers per
    /// component beginning with one for the logit, and gets those of the log-densities; numbers that factors of parts
    /// depend on come after them. A component without mass takes no part, and rows whose point is outside get minus
    /// infinity and a gradient of zero.
    #[allow(clippy::too_many_arguments)]
    pub fn finish<T: Real>(
        &mut self,
        points: &LocatedPoints,
        first: usize,
        log_volume: f64,
        log_prob: &mut [T],
        gradient: Option<&mut [T]>,
        length: usize,
        parts: &mut PartLanes<T>,
    ) {
        for (component, logs) in self.components.iter_mut().zip(&parts.logs) {
            component.log_value = component.log_value + logs.value - logs.scale;
        }
        let total = lanes::dispatch(Finish { components: &mut self.components, tiny: T::TINY });
        for (lane, log_prob) in log_prob.iter_mut().enumerate() {
            let inside = points.is_inside(first + lane);
            *log_prob = T::from_f64(if inside { total.0[lane] - log_volume } else { f64::NEG_INFINITY });
        }
        let Some(gradient) = gradient else { return };
        let width = gradient.len() / log_prob.len();
        for (m, component) in self.components.iter().enumerate() {
            (parts.by_value[m], parts.by_integral[m]) = (component.log_value, component.log_value);
        }
        parts.pull_back(gradient, width, points, first);
        for (lane, row) in gradient.chunks_mut(width).enumerate() {
            if !points.is_inside(first + lane) {
                row.fill(T::default());
                continue;
            }
            for (part, component) in row.chunks_mut(length).zip(&self.components) {
                let responsibility = T::from_f64(component.log_value.0[lane]);
                part.iter_mut().for_each(|x| *x = *x * responsibility);
                part[0] = T::from_f64(component.logit.0[lane]);
            }
        }
    }
}

/// The log-densities relative to the volume of the box. Responsibilities replace the logarithms of values, and the
/// derivatives with respect to logits the logits.
struct Finish<'c> {
    components: &'c mut [ComponentLanes],
    /// The largest integral that counts as zero.
    tiny: f64,
}

impl LaneWork for Finish<'_> {
    type Output = Lanes<f64>;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Lanes<f64> {
        let least = Lanes::splat(f64::MIN);
        let tiny = self.tiny;
        let mut largest = least;
        for component in &mut *self.components {
            component.logit = component.logit.where_at_most(component.integral, tiny, NO_WEIGHT);
            largest = largest.max(component.logit);
        }
        let mut sum = Lanes::zero();
        for component in &*self.components {
            sum += (component.logit - largest).exp();
        }
        let normaliser = largest + sum.ln();
        largest = least;
        for component in &mut *self.components {
            let integral = component.integral.where_at_most(component.integral, tiny, 1.0);
            component.logit = component.logit - normaliser;
            component.log_value = component.logit + component.log_value - integral.ln();
            largest = largest.max(component.log_value);
        }
        sum = Lanes::zero();
        for component in &*self.components {
            sum += (component.log_value - largest).exp();
        }
        let total = largest + sum.ln();
        for component in &mut *self.components {
            component.log_value = (component.log_value - total).exp();
            let derivative = component.log_value - component.logit.exp();
            component.logit = derivative.where_at_most(component.integral, tiny, 0.0);
        }
        total
    }
}

/// float32 or float64, as the precision of a kernel.
pub trait Precision: Real {
    /// The kernel of a kind on a support in parts, if it has one; made when it is first needed.
    fn part_kernel<'k, 'p>(
        kernels: &'k PartKernels,
        kind: &dyn FamilyKind,
        parts: &dyn Fn() -> SupportParts<'p>,
    ) -> Option<&'k dyn RowKernel<Self>>;

    /// The kernel of a kind in this precision, if it has one.
    fn kernel(kind: &dyn FamilyKind) -> Option<&dyn RowKernel<Self>>;
}

/// A fused pass, if a kind of family has one.
type SomeKernel<T> = Option<Box<dyn RowKernel<T>>>;

/// The fused pass of a kind on a support in parts, in both precisions.
#[derive(Debug, Default)]
pub struct PartKernels(KernelPair<SomeKernel<f32>, SomeKernel<f64>>);

impl Precision for f32 {
    fn part_kernel<'k, 'p>(
        kernels: &'k PartKernels,
        kind: &dyn FamilyKind,
        parts: &dyn Fn() -> SupportParts<'p>,
    ) -> Option<&'k dyn RowKernel<f32>> {
        kernels.0.f32.get_or_init(|| kind.kernel_on_parts_f32(&parts())).as_deref()
    }

    fn kernel(kind: &dyn FamilyKind) -> Option<&dyn RowKernel<f32>> {
        kind.kernel_f32()
    }
}

impl Precision for f64 {
    fn part_kernel<'k, 'p>(
        kernels: &'k PartKernels,
        kind: &dyn FamilyKind,
        parts: &dyn Fn() -> SupportParts<'p>,
    ) -> Option<&'k dyn RowKernel<f64>> {
        kernels.0.f64.get_or_init(|| kind.kernel_on_parts_f64(&parts())).as_deref()
    }

    fn kernel(kind: &dyn FamilyKind) -> Option<&dyn RowKernel<f64>> {
        kind.kernel_f64()
    }
}

/// Log-densities of one point per row, with gradients where they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLogProb<T> {
    /// The log-density of each point.
    pub log_prob: Vec<T>,
    /// The derivatives of each log-density with respect to its own row of parameters, row by row.
    pub gradient: Option<Vec<T>>,
}

impl Family {
    /// Whether there is a fused pass for this kind of family: see [`Family::log_prob_rows`].
    pub fn has_kernel(&self) -> bool {
        f64::kernel(self.kind()).is_some()
    }

    /// The log-density of each point under its own row of parameters, or of outputs of a network that go through a
    /// head, with its gradient with respect to that row in the same pass; `None` if the kind of family has no such pass.
    ///
    /// ```
    /// use pal::density::{Family, RowInput, SplineSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let family = Family::new(&Region::new(&x.between(0, 1).into())?, &SplineSettings::default().into())?;
    /// let params = family.random_params(2, 1);
    /// let rows = family.log_prob_rows(RowInput::Parameters, &params, &[0.25, 0.5], true)?.unwrap();
    /// let gradient = family.log_prob_vjp(&params, &[0.25, 0.5], &[1.0, 1.0])?;
    /// assert!(rows.gradient.unwrap().iter().zip(&gradient).all(|(a, b)| (a - b).abs() < 1e-9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_prob_rows<T: Precision>(
        &self,
        input: RowInput,
        rows: &[T],
        points: &[f64],
        with_gradient: bool,
    ) -> Result<Option<RowLogProb<T>>, DensityError> {
        if let Some((family, points)) = self.in_free_points(points)? {
            let found = family.log_prob_rows(input, rows, &points, with_gradient)?;
            return Ok(found.map(|found| RowLogProb { log_prob: self.rows_per_surface(found.log_prob), ..found }));
        }
        let Some(kernel) = T::kernel(self.kind()) else { return Ok(None) };
        let Some(per) = kernel.width(input) else { return Ok(None) };
        let n = self.dimension();
        self.check_points(points)?;
        let count = points.len() / n;
        check_rows(rows, per, count)?;
        let located = LocatedPoints::new(self.support().grid(), points, self.contains(points));
        Ok(Some(RowLogProb::compute(kernel, input, rows, &located, with_gradient)))
    }
}

/// Whether there is one row of finite numbers for each point.
pub(crate) fn check_rows<T: Real>(rows: &[T], per: usize, points: usize) -> Result<(), DensityError> {
    if rows.len() != points * per {
        return Err(DensityError::Length { what: "parameters", given: rows.len(), wanted: per });
    }
    match rows.iter().position(|x| !x.to_f64().is_finite()) {
        Some(at) => Err(DensityError::Parameter { row: at / per, column: at % per, value: rows[at].to_f64() }),
        None => Ok(()),
    }
}

impl<T: Real> RowLogProb<T> {
    /// The fused pass on rows that were checked.
    pub(crate) fn compute(
        kernel: &dyn RowKernel<T>,
        input: RowInput,
        rows: &[T],
        points: &LocatedPoints,
        with_gradient: bool,
    ) -> RowLogProb<T> {
        let mut log_prob = vec![T::default(); points.len()];
        let mut gradient = with_gradient.then(|| vec![T::default(); rows.len()]);
        kernel.log_prob(input, rows, points, &mut log_prob, gradient.as_deref_mut());
        RowLogProb { log_prob, gradient }
    }
}
