//! The Student t head in front of rows with regions of their own: from outputs of a network to splines, and back.

use super::super::student_t::{HeadMemory, StudentT};
use super::kernel::{PassMemory, PlacedPoint, RegionKernel, RowForm};
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, Simd, dispatch};

/// Memory that is used for one row after the other.
pub(super) struct HeadRowMemory<T> {
    head: HeadMemory<T>,
    /// The splines of all components of a row, and the derivatives with respect to them.
    theta: Vec<T>,
    derivatives: Vec<T>,
    /// The same for the components of one block of lanes, and the derivatives with respect to outputs.
    splines: Vec<Lanes<T>>,
    outputs: Vec<Lanes<T>>,
}

impl<T: Real> HeadRowMemory<T> {
    pub fn new(head: &StudentT<T>, components: usize, per_component: usize) -> HeadRowMemory<T> {
        HeadRowMemory {
            head: head.memory(),
            theta: vec![T::default(); components * per_component],
            derivatives: vec![T::default(); components * per_component],
            splines: vec![Lanes::zero(); per_component - 1],
            outputs: vec![Lanes::zero(); head.per_component() - 1],
        }
    }
}

/// The splines of the components in all lanes.
struct Splines<'h, T> {
    head: &'h StudentT<T>,
    memory: &'h mut HeadRowMemory<T>,
}

impl<T: Real> LaneWork for Splines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let HeadRowMemory { head, splines, .. } = self.memory;
        self.head.splines(head, splines);
    }
}

/// The derivatives with respect to the outputs in all lanes.
struct PullBack<'h, T> {
    head: &'h StudentT<T>,
    memory: &'h mut HeadRowMemory<T>,
}

impl<T: Real> LaneWork for PullBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let HeadRowMemory { head, splines, outputs, .. } = self.memory;
        self.head.pull_back(head, splines, outputs);
    }
}

impl<T: Real> RegionKernel<T> {
    /// The log-density of a point inside the region of the row, and its gradient with respect to outputs of a network.
    pub fn head_row(
        &self,
        form: &RowForm,
        outputs: &[T],
        point: &PlacedPoint,
        gradient: Option<&mut [T]>,
        memory: (&mut PassMemory<T>, &mut HeadRowMemory<T>),
    ) -> f64 {
        let (pass, memory) = memory;
        let (part, per) = (self.head.per_component(), self.per_component);
        for first in (0..self.components).step_by(LANES) {
            self.place(first, outputs, memory);
            for (component, own) in outputs.chunks(part).enumerate().skip(first).take(LANES) {
                let theta = &mut memory.theta[component * per..(component + 1) * per];
                theta[0] = own[0];
                let lane = component - first;
                theta[1..].iter_mut().zip(&memory.splines).for_each(|(x, lanes)| *x = lanes.0[lane]);
            }
        }
        let HeadRowMemory { theta, derivatives, .. } = memory;
        let wanted = gradient.is_some().then_some(&mut derivatives[..]);
        let log_prob = self.row(form, theta, false, point, wanted, pass);
        let Some(gradient) = gradient else { return log_prob };
        for first in (0..self.components).step_by(LANES) {
            if self.components > LANES {
                // What the head remembers is that of the last block.
                self.place(first, outputs, memory);
            }
            let count = LANES.min(self.components - first);
            for lane in 0..LANES {
                let component = first + lane.min(count - 1);
                let own = &memory.derivatives[component * per + 1..(component + 1) * per];
                memory.splines.iter_mut().zip(own).for_each(|(lanes, x)| lanes.0[lane] = *x);
            }
            dispatch(PullBack { head: &self.head, memory });
            for lane in 0..count {
                let out = &mut gradient[(first + lane) * part..(first + lane + 1) * part];
                out[0] = memory.derivatives[(first + lane) * per];
                out[1..].iter_mut().zip(&memory.outputs).for_each(|(x, lanes)| *x = lanes.0[lane]);
            }
        }
        log_prob
    }

    /// Computes the splines of a block of components.
    fn place(&self, first: usize, outputs: &[T], memory: &mut HeadRowMemory<T>) {
        let part = self.head.per_component();
        for lane in 0..LANES {
            // Lanes without a component repeat the last one.
            let component = (first + lane).min(self.components - 1);
            self.head.place(component, lane, &outputs[component * part..(component + 1) * part], &mut memory.head);
        }
        dispatch(Splines { head: &self.head, memory });
    }
}
