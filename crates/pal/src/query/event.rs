//! Probabilities of further constraints, and conditioning on them.

use std::sync::Arc;

use rayon::prelude::*;

use super::distribution::Distribution;
use super::error::QueryError;
use crate::density::rules::Rules;
use crate::density::{Compiled, Domain, Form};
use crate::formula::Formula;

/// A further constraint compiled on a family: its probability under many parameter vectors.
pub struct Event {
    family: Compiled,
    domain: Arc<Domain>,
    form: Box<dyn Form>,
}

impl Compiled {
    /// Compiles a condition over the variables of the constraint.
    ///
    /// ```
    /// use pal::density::{Compiled, Settings, SosSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = Region::new(&(x.between(0, 1) & y.between(0, 1)).into())?;
    /// let settings = SosSettings { degree: 1, components: 1, basis: Default::default(), subset: None };
    /// let family = Compiled::new(&square, &Settings::Sos(settings))?;
    /// // The first basis polynomial is constant: this density is uniform.
    /// let below = family.event(&x.le(&y))?.probability(&[0.0, 1.0, 0.0, 0.0])?;
    /// assert!((below[0] - 0.5).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn event(&self, condition: &Formula) -> Result<Event, QueryError> {
        let domain = restrict(self.domain(), condition)?;
        let form = self.family().form(&domain.mesh, &[])?;
        Ok(Event { family: self.clone(), domain: Arc::new(domain), form })
    }

    /// For tensor frameworks: the form of the integrals of `monomial q` over the part of the constraint where a condition holds, in place of the one in
    /// [`Compiled::recipe`]. The monomial is in the coordinates of the box (0 at its lower end, 1 at its upper end); no exponents mean 1.
    pub fn form_constants(&self, condition: &Formula, powers: &[u16]) -> Result<Vec<f64>, QueryError> {
        let n = self.dimension();
        if !powers.is_empty() && powers.len() != n {
            return Err(QueryError::Length { what: "exponents", given: powers.len(), wanted: n });
        }
        let domain = restrict(self.domain(), condition)?;
        Ok(self.family().form_constants(&domain.mesh, powers)?)
    }
}

/// Part of a domain, with a message of its own for Boolean variables.
fn restrict(domain: &Domain, condition: &Formula) -> Result<Domain, QueryError> {
    if let Some(var) = condition.boolean_variables().into_iter().next() {
        return Err(QueryError::Variables(format!(
            "the condition uses the Boolean variable `{var}`; densities are over reals"
        )));
    }
    Ok(domain.within(condition)?)
}

impl Event {
    /// Where it holds.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The probability of the condition under each parameter vector.
    pub fn probability(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let expansions: Vec<_> = rows.iter().map(|row| row.expansion.clone()).collect();
        let integrals = self.family.integrals(&*self.form, &self.domain, &[], &expansions);
        let parts = rows.iter().zip(integrals.chunks(self.family.num_components()));
        let probability = |(row, integrals): (&crate::density::Row, &[f64])| {
            let sum: f64 = row.weights().iter().zip(integrals).map(|(w, i)| if *i == 0.0 { 0.0 } else { w * i }).sum();
            sum.clamp(0.0, 1.0)
        };
        Ok(parts.map(probability).collect())
    }

    /// The densities given that the condition holds.
    pub fn condition(&self, params: &[f64]) -> Result<Vec<Distribution>, QueryError> {
        let densities = self.family.distributions(params)?;
        densities.into_iter().map(|density| density.on(self.domain.clone())).collect()
    }
}

impl Distribution {
    /// The probability of a condition over the variables of the density.
    pub fn probability(&self, condition: &Formula) -> Result<f64, QueryError> {
        let domain = restrict(&self.domain, condition)?;
        Ok(self.mass(&domain).clamp(0.0, 1.0))
    }

    /// The density given that a condition holds: zero elsewhere.
    pub fn condition(&self, condition: &Formula) -> Result<Distribution, QueryError> {
        self.on(Arc::new(restrict(&self.domain, condition)?))
    }

    /// The density restricted to a part of its domain.
    fn on(self: &Distribution, domain: Arc<Domain>) -> Result<Distribution, QueryError> {
        self.moved(domain, self.pieces.clone()).ok_or(QueryError::Impossible)
    }

    /// The integral over a part of the domain, by cubature: every term is positive.
    pub(super) fn mass(&self, domain: &Domain) -> f64 {
        self.integrals(domain, 0, 1, |_, _, out| out[0] = 1.0)[0]
    }

    /// The integrals of the density times several polynomials of so many degrees, given at local coordinates.
    pub(super) fn integrals(
        &self,
        domain: &Domain,
        extra: usize,
        count: usize,
        factors: impl Fn(&[u32], &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let rules = Rules::new(self.dimension(), self.pieces.degree().times(extra));
        let parts = domain.mesh.elements.par_iter().map(|element| {
            let (mut values, mut at_node) = (vec![0.0; self.weights.len()], vec![0.0; count]);
            let mut sums = vec![0.0; count];
            rules.visit(element, |t, weight| {
                self.pieces.values(&element.bin, t, &mut values);
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
