//! Probabilities of further formulas, and conditioning on them (PAL paper, Section 5).
//!
//! The probability of `gamma` under a density on `phi` is `I_(phi and gamma) / I_phi`, where I is the integral of the
//! unnormalised density over a set. The set `phi and gamma` is cut along the grid of the density, so that the
//! components are polynomials on its elements too.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::batch::{few_samples, sample_each};
use super::error::QueryError;
use super::rows::RowSampler;
use super::sample::check_memory;
use crate::density::Density;
use crate::density::cubature::MeshCubature;
use crate::density::{BinIndex, ChebyshevSeries, Family, Form, PatchSearch, Row, Support};
use crate::formula::Formula;

/// A formula compiled on a family, whose probability is asked under many parameter vectors.
pub struct Event {
    family: Family,
    condition: Formula,
    support: Arc<Support>,
    form: Box<dyn Form>,
    /// See [`Event::patches`]; made when first needed.
    patches: OnceLock<Option<Box<dyn PatchSearch>>>,
}

impl Family {
    /// Compiles a formula over the variables of the constraint, to ask for its probability or to condition on it.
    ///
    /// ```
    /// use pal::density::{Family, Settings, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = Region::new(&(x.between(0, 1) & y.between(0, 1)).into())?;
    /// let settings = SumOfSquaresSettings { degree: Some(1), components: 1, basis: Default::default(), subset: None };
    /// let family = Family::new(&square, &Settings::SumOfSquares(settings))?;
    /// // The first basis polynomial is constant: this density is uniform.
    /// let below = family.event(&x.le(&y))?.probability(&[0.0; 4])?;
    /// assert!((below[0] - 0.5).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn event(&self, condition: &Formula) -> Result<Event, QueryError> {
        let support = restrict(self.support(), &self.in_free_variables(condition))?;
        let form = self.kind().form(support.mesh(), &[])?;
        let (support, condition) = (Arc::new(support), condition.clone());
        Ok(Event { family: self.clone(), condition, support, form, patches: OnceLock::new() })
    }

    /// For tensor frameworks: the form of the integrals of `monomial q` over the part of the constraint where a
    /// condition holds, in place of the one in the recipe of its kind. The monomial is in coordinates that run from 0
    /// to 1 over the box; no exponents mean the monomial 1.
    pub fn normaliser_tensor(&self, condition: &Formula, powers: &[u16]) -> Result<Vec<f64>, QueryError> {
        let n = self.dimension();
        if !powers.is_empty() && powers.len() != n {
            return Err(QueryError::Length { what: "exponents", given: powers.len(), wanted: n });
        }
        let support = restrict(self.support(), &self.in_free_variables(condition))?;
        Ok(self.kind().normaliser_tensor(support.mesh(), powers)?)
    }
}

/// The part of a support where a condition over reals holds.
pub(super) fn restrict(support: &Support, condition: &Formula) -> Result<Support, QueryError> {
    if let Some(var) = condition.boolean_variables().into_iter().next() {
        return Err(QueryError::Variables(format!(
            "the condition uses the Boolean variable `{var}`; densities are over reals"
        )));
    }
    Ok(support.within(condition)?)
}

impl Event {
    /// The family that the formula was compiled on.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The part of the support where the formula holds.
    pub fn support(&self) -> &Arc<Support> {
        &self.support
    }

    /// The probability of the formula under each parameter vector.
    pub fn probability(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let parts = self.component_probabilities(&self.family.proper_rows(params)?);
        Ok(parts.iter().map(|part| part.iter().sum::<f64>().clamp(0.0, 1.0)).collect())
    }

    /// What every component contributes to the probability of the formula, for each row.
    pub(super) fn component_probabilities(&self, rows: &[Row]) -> Vec<Vec<f64>> {
        let expansions: Vec<_> = rows.iter().map(|row| row.expansion.clone()).collect();
        let integrals = self.family.integrals(&*self.form, &self.support, &[], &expansions);
        let parts = rows.iter().zip(integrals.chunks(self.family.num_components()));
        let products = |(row, integrals): (&Row, &[f64])| {
            let terms = row.weights().into_iter().zip(integrals).map(|(w, i)| if *i == 0.0 { 0.0 } else { w * i });
            terms.collect()
        };
        parts.map(products).collect()
    }

    /// The patches of the part where the formula holds, if the kind of family knows their masses.
    pub(super) fn patches(&self) -> Result<Option<&dyn PatchSearch>, QueryError> {
        if self.patches.get().is_none() {
            // Made before the cell is locked: a thread that waits for others here may be given work that asks for the
            // same.
            let made = self.family.kind().patches_within(self.support.mesh())?;
            return Ok(self.patches.get_or_init(|| made).as_deref());
        }
        Ok(self.patches.get().and_then(|known| known.as_deref()))
    }

    /// Draws `count` independent samples for each parameter vector, given that the formula holds, row by row. The same
    /// seed gives the same samples for any number of threads.
    ///
    /// ```
    /// use pal::density::{Family, SplineSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = Region::new(&(x.between(0, 1) & y.between(0, 1)).into())?;
    /// let family = Family::new(&square, &SplineSettings::default().into())?;
    /// let event = family.event(&x.le(&y))?;
    /// let samples = event.sample(&family.random_params(10, 1), 3, 7)?;
    /// assert!(samples.len() == 60 && samples.chunks(2).all(|point| point[0] <= point[1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let width = self.family.variables().len();
        check_memory((params.len() / self.family.num_params()).saturating_mul(count), width)?;
        if few_samples(count, self.support.elements()) {
            return Ok(self.family.filled(RowSampler::within(self)?.sample(params, count, seed)?));
        }
        sample_each(&self.condition(params)?, count, seed)
    }

    /// The density given that the formula holds, for each parameter vector.
    pub fn condition(&self, params: &[f64]) -> Result<Vec<Density>, QueryError> {
        let densities = self.family.densities(params)?;
        let given = |density: Density| density.restricted_to(self.support.clone());
        densities.into_iter().map(|density| given(density).map_err(|error| error.explained(&self.condition))).collect()
    }
}

impl Density {
    /// The density with given components on another support, normalised there. `None` if its mass is 0, or too small to
    /// divide by.
    pub(super) fn renormalised(&self, support: Arc<Support>, functions: Arc<dyn ChebyshevSeries>) -> Option<Density> {
        let mut density = Density { support, functions, ..self.clone() };
        let mass = density.mass(&density.support);
        density.weights.iter_mut().for_each(|w| *w /= mass);
        density.log_weights.iter_mut().for_each(|w| *w -= mass.ln());
        (mass >= f64::MIN_POSITIVE && density.weights.iter().all(|w| w.is_finite())).then_some(density)
    }

    /// The probability of a condition over the variables of the density.
    pub fn probability(&self, condition: &Formula) -> Result<f64, QueryError> {
        let support = restrict(&self.support, &self.in_free_variables(condition))?;
        Ok(self.mass(&support).clamp(0.0, 1.0))
    }

    /// The density given that a condition holds: zero elsewhere.
    pub fn condition(&self, condition: &Formula) -> Result<Density, QueryError> {
        let support = restrict(&self.support, &self.in_free_variables(condition))?;
        self.restricted_to(Arc::new(support)).map_err(|error| error.explained(condition))
    }

    /// The density restricted to a part of its support.
    pub(super) fn restricted_to(&self, support: Arc<Support>) -> Result<Density, QueryError> {
        self.renormalised(support, self.functions.clone()).ok_or(QueryError::Impossible)
    }

    /// The integral of the density over a part of the support, by cubature of positive terms.
    pub(super) fn mass(&self, support: &Support) -> f64 {
        self.integrals(support, 0, 1, |_, _, out| out[0] = 1.0)[0]
    }

    /// The integrals of the density times `count` polynomials of at most the degree `extra`, which `factors` computes
    /// at local coordinates of a bin.
    pub(super) fn integrals(
        &self,
        support: &Support,
        extra: usize,
        count: usize,
        factors: impl Fn(&[BinIndex], &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let cubature = MeshCubature::new(self.dimension(), self.functions.degree().times(extra));
        let parts = support.mesh().elements.par_iter().map(|element| {
            let (mut values, mut at_node) = (vec![0.0; self.weights.len()], vec![0.0; count]);
            let mut sums = vec![0.0; count];
            cubature.visit(element, |t, weight| {
                self.functions.values(&element.bin, t, &mut values);
                let density: f64 = self.weights.iter().zip(&values).map(|(w, q)| w * q).sum();
                factors(&element.bin, t, &mut at_node);
                sums.iter_mut().zip(&at_node).for_each(|(sum, factor)| *sum += weight * density * factor);
            });
            sums
        });
        let parts: Vec<Vec<f64>> = parts.collect();
        let mut total = vec![0.0; count];
        parts.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(t, x)| *t += x));
        total
    }
}
