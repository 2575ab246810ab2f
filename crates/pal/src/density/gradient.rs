//! Derivatives with respect to parameters, from what a sum over points or an integral has to say about the components.
//!
//! A number that depends on the density has derivatives with respect to the weights `l_c` and the coefficients of the
//! components. [`Cotangents`] collects both over points, and [`Family::finish`] turns them into derivatives with
//! respect to parameters; that is where the dependence of the weights on the normaliser comes in.

use std::sync::Arc;

use super::cubature::MeshCubature;
use super::family::{CANCELLATION, Family, Row};
use super::functions::Differentiable;
use super::grid::{BinIndex, Grid};
use super::kind::{Expansion, FamilyKind, Form};
use super::support::Support;
use super::weights::log_sum_exp;

/// A compiled integral with what it is an integral of: a monomial in the coordinates of the box over a support.
#[derive(Clone, Copy)]
pub(crate) struct FormOn<'f> {
    pub form: &'f dyn Form,
    pub support: &'f Support,
    pub powers: &'f [u16],
}

/// Gradients summed over points.
pub(crate) struct Cotangents {
    /// The gradient with respect to `l_c`.
    pub weights: Vec<f64>,
    /// The gradient with respect to the coefficients.
    pub coefficients: Vec<f64>,
    functions: Option<Arc<dyn Differentiable>>,
}

impl Cotangents {
    pub fn new(row: &Row, family: &dyn FamilyKind) -> Cotangents {
        Cotangents {
            weights: vec![0.0; row.log_weights.len()],
            coefficients: vec![0.0; family.gradient_len()],
            functions: None,
        }
    }

    pub fn add(&mut self, other: &Cotangents) {
        self.weights.iter_mut().zip(&other.weights).for_each(|(a, b)| *a += b);
        self.coefficients.iter_mut().zip(&other.coefficients).for_each(|(a, b)| *a += b);
    }
}

impl Family {
    /// Adds the gradient of `sum_c cotangent_c log I_c` with respect to the coefficients, for the integrals over the
    /// whole support.
    pub(super) fn pull_back_integrals(&self, row: &Row, cotangent: &[f64], coefficients: &mut [f64]) {
        let scales = row.log_integrals.iter().zip(&row.expansion.log_scales);
        let integrals: Vec<f64> = scales.map(|(i, s)| (i - s).exp()).collect();
        let weights: Vec<f64> =
            integrals.iter().zip(cotangent).map(|(i, g)| if *i == 0.0 { 0.0 } else { g / i }).collect();
        let on = FormOn { form: self.kind().normaliser(), support: self.support(), powers: &[] };
        self.add_integral_gradient(on, &row.expansion, &integrals, &weights, coefficients);
    }

    /// Adds the gradient of `sum_c weights_c I_c` with respect to the coefficients, given the integrals without scales.
    /// Where digits have cancelled in an integral, its gradient comes from cubature as well.
    pub(crate) fn add_integral_gradient(
        &self,
        on: FormOn<'_>,
        expansion: &Expansion,
        integrals: &[f64],
        weights: &[f64],
        coefficients: &mut [f64],
    ) {
        let FormOn { form, support, powers } = on;
        let mut direct = weights.to_vec();
        for (c, weight) in direct.iter_mut().enumerate() {
            let integral = integrals[c];
            if *weight != 0.0
                && integral < CANCELLATION * form.largest_scale(1.0)
                && integral < CANCELLATION * form.scale(&expansion.coefficients, c)
            {
                *weight = 0.0;
            }
        }
        form.add_gradient(&expansion.coefficients, &direct, coefficients);
        if direct != weights {
            let rest: Vec<f64> = weights.iter().zip(&direct).map(|(w, d)| w - d).collect();
            let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
            let rules = MeshCubature::new(self.dimension(), self.kind().degree().times(extra));
            let functions = self.kind().functions(expansion);
            for element in &support.mesh().elements {
                rules.visit(element, |t, weight| {
                    let weight = weight * support.mesh().grid.monomial(&element.bin, t, powers);
                    let weights: Vec<f64> = rest.iter().map(|w| w * weight).collect();
                    functions.add_gradient(&element.bin, t, &weights, coefficients);
                });
            }
        }
    }

    /// Adds the derivative of `g log p(point)` at fixed integrals.
    pub(super) fn add_point(&self, row: &Row, point: &[f64], g: f64, sums: &mut Cotangents) {
        let n = point.len();
        let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
        self.support().grid().locate(point, &mut bin, &mut t);
        if !Grid::in_bin(&t) {
            return;
        }
        let functions = &sums.functions.get_or_insert_with(|| self.kind().functions(&row.expansion)).clone();
        let logs: Vec<f64> = row
            .log_weights
            .iter()
            .enumerate()
            .map(|(c, w)| if *w == f64::NEG_INFINITY { *w } else { w + functions.log_value(c, &bin, &t) })
            .collect();
        let total = log_sum_exp(logs.iter().copied());
        if total == f64::NEG_INFINITY {
            return;
        }
        // d log p = sum_c r_c d l_c + sum_c (exp(l_c) / p) d q_c
        let factors: Vec<f64> = row.log_weights.iter().map(|w| g * (w - total).exp()).collect();
        if factors.iter().any(|factor| !factor.is_finite()) {
            // The density is so small that it counts as 0, and a zero of the density contributes nothing.
            return;
        }
        sums.weights.iter_mut().zip(&logs).for_each(|(sum, log)| *sum += g * (log - total).exp());
        functions.add_gradient(&bin, &t, &factors, &mut sums.coefficients);
    }

    /// Adds the derivatives with respect to the parameters of one row.
    pub(crate) fn finish(&self, row: &Row, params: &[f64], mut sums: Cotangents, gradient: &mut [f64]) {
        let theta = self.theta(params);
        let mut integrals = vec![0.0; row.log_integrals.len()];
        self.kind().pull_back_weights(&theta, &row.log_integrals, &sums.weights, gradient, &mut integrals);
        self.pull_back_integrals(row, &integrals, &mut sums.coefficients);
        self.kind().pull_back(&theta, &sums.coefficients, gradient);
    }
}
