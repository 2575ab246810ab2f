//! Supports in parts, as the fused pass sees them: factors that further numbers of a row give to the integrals over the
//! parts and to the value at a point.
//!
//! ```text
//! Z_m  =  sum over parts g of  P_mg I_mg,        value_m(point)  =  t_m q_m(point)
//! ```
//!
//! A row has the numbers of the reals first and then, component by component, those that the factors `P_mg` and `t_m`
//! depend on: logits of Boolean variables. How they depend on them is the affair of [`PartFactors`]; a kernel only asks
//! for factors, and hands back derivatives with respect to them.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::kind::Form;
use super::lanes::{LANES, Lanes, Real};
use super::row_kernel::LocatedPoints;

/// How the factors of one component depend on its logits, for one row per lane.
pub(crate) trait PartFactors: Debug + Send + Sync {
    /// The number of parts.
    fn parts(&self) -> usize;

    /// The number of logits of a component.
    fn logits(&self) -> usize;

    /// How many numbers [`PartFactors::factors`] keeps of a component for [`PartFactors::pull_back`], and how many the
    /// latter needs as scratch.
    fn memory(&self) -> [usize; 2];

    /// Computes the factors of all parts, divided by a number per lane so that the largest is 1. `truth` has a 0 or 1
    /// for each logit: the assignment of the point.
    fn factors(
        &self,
        logits: &[Lanes<f64>],
        truth: &[Lanes<f64>],
        kept: &mut [Lanes<f64>],
        factors: &mut [Lanes<f64>],
    ) -> FactorLogs;

    /// The derivatives with respect to the logits, from those with respect to the factors and to the logarithm of the
    /// value.
    fn pull_back(
        &self,
        truth: &[Lanes<f64>],
        kept: &[Lanes<f64>],
        by: PartCotangents<'_>,
        scratch: &mut [Lanes<f64>],
        gradient: &mut [Lanes<f64>],
    );
}

/// Logarithms, one per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactorLogs {
    /// Of the factor of the value at the point.
    pub value: Lanes<f64>,
    /// Of the number that the factors of parts were divided by.
    pub scale: Lanes<f64>,
}

/// Derivatives with respect to what [`PartFactors::factors`] computes.
pub(crate) struct PartCotangents<'c> {
    /// For each part, with respect to its factor.
    pub factors: &'c [Lanes<f64>],
    /// With respect to the logarithm of the value.
    pub log_value: Lanes<f64>,
}

/// The parts of a support: what a kind of family makes a fused pass on.
#[derive(Debug)]
pub struct SupportParts<'p> {
    /// The integrals over every part, compiled by the same family.
    pub(crate) forms: &'p [Box<dyn Form>],
    pub(crate) factors: Arc<dyn PartFactors>,
}

impl SupportParts<'_> {
    /// The forms of all parts, if they are of one type.
    pub(crate) fn forms_of<F: Form>(&self) -> Option<Vec<&F>> {
        self.forms.iter().map(|form| (&**form as &dyn Any).downcast_ref::<F>()).collect()
    }
}

/// Factors of some rows, one row per lane, and what a kernel finds out about them.
#[derive(Debug)]
pub(crate) struct PartLanes<T> {
    /// `None` for a support that is one part with factor 1.
    source: Option<Arc<dyn PartFactors>>,
    parts: usize,
    logits: usize,
    /// Component by component, the factors of all parts.
    factors: Vec<Lanes<T>>,
    /// For each component the logarithms of the factor of its value at the point, and of the scale of its factors.
    pub logs: Vec<FactorLogs>,
    /// Component by component, to be filled by the kernel: the integrals over all parts, each divided by the integral
    /// of the component.
    pub fractions: Vec<Lanes<T>>,
    /// For each component, to be filled by the kernel: the derivatives of the log-density with respect to the logarithm
    /// of its value, and to minus that of its integral.
    pub by_value: Vec<Lanes<f64>>,
    pub by_integral: Vec<Lanes<f64>>,
    truth: Vec<Lanes<f64>>,
    numbers: Vec<Lanes<f64>>,
    by_factor: Vec<Lanes<f64>>,
    kept: Vec<Lanes<f64>>,
    scratch: Vec<Lanes<f64>>,
}

impl<T: Real> PartLanes<T> {
    pub fn new(source: Option<&Arc<dyn PartFactors>>, components: usize) -> PartLanes<T> {
        let (parts, logits) = source.map_or((1, 0), |source| (source.parts(), source.logits()));
        let [kept, scratch] = source.map_or([0, 0], |source| source.memory());
        let zeros = |count: usize| vec![Lanes::zero(); count];
        PartLanes {
            source: source.cloned(),
            parts,
            logits,
            factors: vec![Lanes::splat(T::from_f64(1.0)); components * parts],
            logs: vec![FactorLogs { value: Lanes::zero(), scale: Lanes::zero() }; components],
            fractions: vec![Lanes::zero(); components * parts],
            by_value: zeros(components),
            by_integral: zeros(components),
            truth: zeros(logits),
            numbers: zeros(logits),
            by_factor: zeros(parts),
            kept: zeros(kept * components),
            scratch: zeros(scratch),
        }
    }

    /// The number of numbers at the end of a row that the factors of all components depend on.
    pub fn tail(source: Option<&Arc<dyn PartFactors>>, components: usize) -> usize {
        source.map_or(0, |source| source.logits() * components)
    }

    /// The factors of the parts for one component.
    pub fn of(&self, component: usize) -> &[Lanes<T>] {
        &self.factors[component * self.parts..(component + 1) * self.parts]
    }

    /// Keeps the integrals of a component over all parts, given one over the integral over all of them.
    #[inline(always)]
    pub fn keep(&mut self, component: usize, integrals: &[Lanes<T>], reciprocal: Lanes<T>) {
        let own = &mut self.fractions[component * self.parts..(component + 1) * self.parts];
        for (fraction, integral) in own.iter_mut().zip(integrals) {
            *fraction = *integral * reciprocal;
        }
    }

    /// Computes the factors of up to [`LANES`] rows of a given width.
    pub fn load(&mut self, rows: &[T], width: usize, points: &LocatedPoints, first: usize) {
        let Some(source) = &self.source else { return };
        let count = rows.len() / width;
        for lane in 0..LANES {
            // Lanes without a row repeat the last one.
            let row = lane.min(count - 1);
            for (truth, value) in self.truth.iter_mut().zip(points.assignment(first + row)) {
                truth.0[lane] = f64::from(u8::from(*value));
            }
        }
        let components = self.logs.len();
        let (start, kept) = (width - components * self.logits, self.kept.len() / components);
        for component in 0..components {
            for lane in 0..LANES {
                let at = lane.min(count - 1) * width + start + component * self.logits;
                let row = &rows[at..at + self.logits];
                self.numbers.iter_mut().zip(row).for_each(|(lanes, x)| lanes.0[lane] = x.to_f64());
            }
            let kept = &mut self.kept[component * kept..(component + 1) * kept];
            self.logs[component] = source.factors(&self.numbers, &self.truth, kept, &mut self.by_factor);
            let own = &mut self.factors[component * self.parts..(component + 1) * self.parts];
            for (factor, exact) in own.iter_mut().zip(&self.by_factor) {
                factor.0 = std::array::from_fn(|lane| T::from_f64(exact.0[lane]));
            }
        }
    }

    /// Writes the derivatives of the log-densities with respect to the logits, for rows whose point is inside.
    pub fn pull_back(&mut self, gradient: &mut [T], width: usize, points: &LocatedPoints, first: usize) {
        let Some(source) = &self.source else { return };
        let components = self.logs.len();
        let (start, kept) = (width - components * self.logits, self.kept.len() / components);
        for component in 0..components {
            let own = &self.fractions[component * self.parts..(component + 1) * self.parts];
            let by = self.by_integral[component];
            for (by_factor, fraction) in self.by_factor.iter_mut().zip(own) {
                by_factor.0 = std::array::from_fn(|lane| -by.0[lane] * fraction.0[lane].to_f64());
            }
            let by = PartCotangents { factors: &self.by_factor, log_value: self.by_value[component] };
            let kept = &self.kept[component * kept..(component + 1) * kept];
            source.pull_back(&self.truth, kept, by, &mut self.scratch, &mut self.numbers);
            for (lane, row) in gradient.chunks_mut(width).enumerate().filter(|(lane, _)| points.is_inside(first + lane))
            {
                let at = start + component * self.logits;
                let row = &mut row[at..at + self.logits];
                row.iter_mut().zip(&self.numbers).for_each(|(x, lanes)| *x = T::from_f64(lanes.0[lane]));
            }
        }
    }
}
