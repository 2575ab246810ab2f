//! Moments of the part of a density where a condition holds, with derivatives with respect to the parameters.
//!
//! Probabilities, means and covariances of many densities are such integrals, each a sum over components of a weight
//! times a compiled [`Form`]. Tensor frameworks can compute them with the forms of
//! [`Family::normaliser_tensor`](crate::density::Family::normaliser_tensor), as long as these are not too large; here
//! no form is written out.

use std::sync::Arc;

use rayon::prelude::*;

use super::error::QueryError;
use super::event::restrict;
use crate::density::gradient::{Cotangents, FormOn};
use crate::density::{DensityError, Family, Form, Row, Support};
use crate::formula::Formula;

/// Monomials in the coordinates of the box, which run from 0 to 1, to be integrated over the part of the constraint
/// where a condition holds, under many parameter vectors.
pub struct EventMoments {
    family: Family,
    support: Arc<Support>,
    forms: Vec<(Vec<u16>, Box<dyn Form>)>,
}

impl Family {
    /// Compiles the moments of a condition: one for each list of exponents, of which there is one per free variable.
    ///
    /// ```
    /// use pal::density::{Family, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let settings = SumOfSquaresSettings { degree: Some(1), components: 1, ..Default::default() };
    /// let family = Family::new(&Region::new(&x.between(0, 4).into())?, &settings.into())?;
    /// // Uniform: half of the mass is below 2, with a mean of a quarter of the box there.
    /// let moments = family.event_moments(&x.le(2), &[vec![0], vec![1]])?;
    /// let values = moments.values(&[0.0; 3])?;
    /// assert!((values[0] - 0.5).abs() < 1e-14 && (values[1] - 0.125).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn event_moments(&self, condition: &Formula, powers: &[Vec<u16>]) -> Result<EventMoments, QueryError> {
        let n = self.dimension();
        if let Some(wrong) = powers.iter().find(|powers| powers.len() != n) {
            return Err(QueryError::Length { what: "exponents", given: wrong.len(), wanted: n });
        }
        let support = if condition.is_true() {
            self.support().clone()
        } else {
            Arc::new(restrict(self.support(), &self.in_free_variables(condition))?)
        };
        let compile = |powers: &Vec<u16>| -> Result<_, DensityError> {
            Ok((powers.clone(), self.kind().form(support.mesh(), powers)?))
        };
        let forms = powers.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        Ok(EventMoments { family: self.clone(), support, forms })
    }
}

impl EventMoments {
    /// The number of moments.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// Whether there are no moments.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The moments under each parameter vector, row by row.
    pub fn values(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        let integrals = self.integrals(&rows);
        let mut values = Vec::with_capacity(rows.len() * self.len());
        for (at, row) in rows.iter().enumerate() {
            let weights = row.weights();
            values.extend(integrals.iter().map(|all| terms(&weights, self.of_row(all, at)).sum::<f64>()));
        }
        Ok(values)
    }

    /// The vector-Jacobian product of [`EventMoments::values`] with respect to the parameters.
    pub fn vjp(&self, params: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, QueryError> {
        let (per, rows) = (self.family.num_params(), self.family.proper_rows(params)?);
        if cotangent.len() != rows.len() * self.len() {
            let wanted = rows.len() * self.len();
            return Err(QueryError::Length { what: "gradients of moments", given: cotangent.len(), wanted });
        }
        let integrals = self.integrals(&rows);
        let mut gradient = vec![0.0; params.len()];
        let parts = gradient.par_chunks_mut(per).zip(params.par_chunks(per)).zip(rows.par_iter()).enumerate();
        parts.for_each(|(at, ((gradient, params), row))| {
            let mut sums = Cotangents::new(row, self.family.kind());
            let weights = row.weights();
            let given = &cotangent[at * self.len()..(at + 1) * self.len()];
            for (((powers, form), all), g) in self.forms.iter().zip(&integrals).zip(given) {
                let integrals = self.of_row(all, at);
                // The derivative of exp(l_c) I_c with respect to l_c is itself.
                let each = terms(&weights, integrals);
                sums.weights.iter_mut().zip(each).for_each(|(sum, term)| *sum += g * term);
                let factors: Vec<f64> = weights.iter().map(|weight| g * weight).collect();
                let on = FormOn { form: &**form, support: &self.support, powers };
                self.family.add_integral_gradient(on, &row.expansion, integrals, &factors, &mut sums.coefficients);
            }
            self.family.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }

    /// For every form the integrals of all components of all rows.
    fn integrals(&self, rows: &[Row]) -> Vec<Vec<f64>> {
        let expansions: Vec<_> = rows.iter().map(|row| row.expansion.clone()).collect();
        let of = |(powers, form): &(Vec<u16>, Box<dyn Form>)| {
            self.family.integrals(&**form, &self.support, powers, &expansions)
        };
        self.forms.iter().map(of).collect()
    }

    fn of_row<'i>(&self, all: &'i [f64], row: usize) -> &'i [f64] {
        let components = self.family.num_components();
        &all[row * components..(row + 1) * components]
    }
}

/// The products of weights and integrals; one with an integral of 0 is 0 even where a weight is infinite.
fn terms<'t>(weights: &'t [f64], integrals: &'t [f64]) -> impl Iterator<Item = f64> + 't {
    weights.iter().zip(integrals).map(|(weight, integral)| if *integral == 0.0 { 0.0 } else { weight * integral })
}
