//! Values of some variables that are known, others for every parameter vector of a batch.
//!
//! With y for the variables that are given and x for the others,
//!
//! ```text
//! p(x | y)  =  p(x, y) / p(y),        p(y)  =  integral of p(x, y) over the x with (x, y) in the constraint
//! ```
//!
//! The slice of the constraint is made once for every different y, exactly. The integrals over it are sums of positive
//! terms, and have derivatives with respect to the parameters.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::batch::sample_each;
use super::error::QueryError;
use super::event::restrict;
use super::given::SlicedSupport;
use super::sample::check_memory;
use crate::density::cubature::MeshCubature;
use crate::density::gradient::Cotangents;
use crate::density::{Degree, Density, Differentiable, Family, Row};
use crate::formula::{Formula, Var};
use crate::interrupt::checkpoint;

/// Given values for every parameter vector of a batch, with the slices of the constraint at them.
pub struct GivenRows {
    family: Family,
    names: Vec<String>,
    /// The given values, row by row.
    values: Vec<f64>,
    slices: Vec<SlicedSupport>,
    /// For every row, which slice is that of its values.
    slice_of: Vec<usize>,
    /// The product of the lengths of the box along the given axes.
    extent: f64,
}

impl Family {
    /// Slices the constraint at values of some variables, given row by row in the order of `names`; where a condition
    /// holds besides, its part of the constraint.
    ///
    /// ```
    /// use pal::density::{Family, SumOfSquaresSettings};
    /// use pal::formula::{Formula, reals};
    /// use pal::region::Region;
    /// let [x, y] = reals(["x", "y"]);
    /// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
    /// let settings = SumOfSquaresSettings { degree: Some(1), components: 1, ..Default::default() };
    /// let family = Family::new(&triangle, &settings.into())?;
    /// // Uniform on the triangle: y has the density 2 (1 - y).
    /// let given = family.given_rows(&["y"], &[0.25, 0.5], &Formula::yes())?;
    /// let densities = given.moments(&[0.0; 8], &[vec![0]])?;
    /// assert!((densities[0] - 1.5).abs() < 1e-14 && (densities[1] - 1.0).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn given_rows(&self, names: &[&str], values: &[f64], condition: &Formula) -> Result<GivenRows, QueryError> {
        if self.flat().is_some() {
            let message = "the constraint has equalities: ask the family in free coordinates, \
                           Family::in_free_coordinates";
            return Err(QueryError::Variables(message.to_string()));
        }
        if names.is_empty() || !values.len().is_multiple_of(names.len()) {
            return Err(QueryError::Length { what: "given values", given: values.len(), wanted: names.len() });
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let name = format!("{} (row {})", names[at % names.len()], at / names.len());
            return Err(QueryError::Value(Var::new(&name), values[at]));
        }
        let whole = if condition.is_true() { None } else { Some(restrict(self.support(), condition)?) };
        let support = whole.as_ref().unwrap_or(self.support());
        let mut known: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let (mut slice_of, mut different) = (Vec::new(), Vec::new());
        for row in values.chunks(names.len()) {
            let key: Vec<u64> = row.iter().map(|value| value.to_bits()).collect();
            let slice = *known.entry(key).or_insert_with(|| {
                different.push(row);
                different.len() - 1
            });
            slice_of.push(slice);
        }
        let slice = |row: &&[f64]| {
            checkpoint();
            let pairs: Vec<(&str, f64)> = names.iter().copied().zip(row.iter().copied()).collect();
            SlicedSupport::new(support, &pairs)
        };
        let slices = different.par_iter().map(slice).collect::<Result<Vec<_>, _>>()?;
        let kept = slices.first().map_or(&[][..], |slice| slice.kept());
        let axes = self.support().grid().axes().iter().enumerate();
        let extent = axes.filter(|(axis, _)| !kept.contains(axis)).map(|(_, axis)| axis.length()).product();
        let names = names.iter().map(|name| name.to_string()).collect();
        Ok(GivenRows { family: self.clone(), names, values: values.to_vec(), slices, slice_of, extent })
    }
}

impl GivenRows {
    /// The number of rows of given values.
    pub fn len(&self) -> usize {
        self.slice_of.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.slice_of.is_empty()
    }

    /// The integrals of `p(x, y)` times monomials over all x, at the given y of each row: one for each list of
    /// exponents, of which there is one per variable that is not given. Monomials are in coordinates that run from 0 to
    /// 1 over the box. With exponents of 0 the integral is the density of the given values.
    pub fn moments(&self, params: &[f64], powers: &[Vec<u16>]) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        self.check_powers(powers)?;
        let parts = rows.par_iter().enumerate().map(|(at, row)| {
            let functions = self.family.kind().functions(&row.expansion);
            let mut sums = vec![0.0; powers.len()];
            let weights = row.weights();
            self.visit(at, powers, &*functions, |_, _, values, factors| {
                let density: f64 = weights.iter().zip(values).map(|(w, q)| w * q).sum();
                sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += density * factor);
            });
            sums
        });
        Ok(parts.collect::<Vec<_>>().concat())
    }

    /// The vector-Jacobian product of [`GivenRows::moments`] with respect to the parameters.
    pub fn moments_vjp(&self, params: &[f64], powers: &[Vec<u16>], cotangent: &[f64]) -> Result<Vec<f64>, QueryError> {
        let (rows, per) = (self.rows(params)?, self.family.num_params());
        self.check_powers(powers)?;
        if cotangent.len() != rows.len() * powers.len() {
            let wanted = rows.len() * powers.len();
            return Err(QueryError::Length { what: "gradients of moments", given: cotangent.len(), wanted });
        }
        let mut gradient = vec![0.0; params.len()];
        let parts = gradient.par_chunks_mut(per).zip(params.par_chunks(per)).zip(rows.par_iter()).enumerate();
        parts.for_each(|(at, ((gradient, params), row))| {
            let functions = self.family.kind().functions(&row.expansion);
            let mut sums = Cotangents::new(row, self.family.kind());
            let weights = row.weights();
            let given = &cotangent[at * powers.len()..(at + 1) * powers.len()];
            let mut scaled = vec![0.0; weights.len()];
            self.visit(at, powers, &*functions, |bin, t, values, factors| {
                let g: f64 = given.iter().zip(factors).map(|(g, factor)| g * factor).sum();
                scaled.iter_mut().zip(&weights).for_each(|(scaled, weight)| *scaled = g * weight);
                sums.weights.iter_mut().zip(values.iter().zip(&scaled)).for_each(|(sum, (q, w))| *sum += q * w);
                functions.add_gradient(bin, t, &scaled, &mut sums.coefficients);
            });
            self.family.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }

    /// The density of the other variables for each row.
    pub fn densities(&self, params: &[f64]) -> Result<Vec<Density>, QueryError> {
        let rows = self.rows(params)?;
        let make = |(at, row): (usize, &Row)| {
            self.family.density_of(row).on_slice_of_row(&self.slices[self.slice_of[at]], || self.describe(at))
        };
        rows.par_iter().enumerate().map(make).collect()
    }

    /// Draws `count` independent samples of the other variables for each row, row by row.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let kept = self.family.dimension() - self.names.len();
        check_memory(self.len().saturating_mul(count), kept)?;
        sample_each(&self.densities(params)?, count, seed)
    }

    fn rows(&self, params: &[f64]) -> Result<Vec<Row>, QueryError> {
        let rows = self.family.proper_rows(params)?;
        if rows.len() != self.len() {
            let wanted = self.len() * self.family.num_params();
            return Err(QueryError::Length { what: "parameters", given: params.len(), wanted });
        }
        Ok(rows)
    }

    fn check_powers(&self, powers: &[Vec<u16>]) -> Result<(), QueryError> {
        let wanted = self.family.dimension() - self.names.len();
        match powers.iter().find(|powers| powers.len() != wanted) {
            Some(wrong) => Err(QueryError::Length { what: "exponents", given: wrong.len(), wanted }),
            None => Ok(()),
        }
    }

    /// Visits the nodes of the slice of a row: bin and local coordinates in all variables, the values of all components
    /// there, and the weight of the node times each monomial.
    fn visit(
        &self,
        row: usize,
        powers: &[Vec<u16>],
        functions: &dyn Differentiable,
        mut visit: impl FnMut(&[crate::density::BinIndex], &[f64], &[f64], &[f64]),
    ) {
        let (slice, n) = (&self.slices[self.slice_of[row]], self.family.dimension());
        let Degree { total, axis } = functions.degree();
        let kept = slice.kept().len();
        let extra = powers.iter().map(|powers| powers.iter().map(|p| usize::from(*p)).sum()).max().unwrap_or(0);
        let degree = Degree { total: total.min(axis * kept), axis }.times(extra);
        let cubature = MeshCubature::new(kept, degree);
        let grid = slice.support().grid();
        let (mut values, mut factors) = (vec![0.0; functions.components()], vec![0.0; powers.len()]);
        for element in &slice.support().mesh().elements {
            cubature.visit(element, |t, weight| {
                let (mut bin, mut full) = slice.full(&element.bin, t);
                functions.enter(&mut bin[..n], &mut full[..n]);
                functions.values(&bin[..n], &full[..n], &mut values);
                factors.iter_mut().zip(powers).for_each(|(factor, powers)| {
                    *factor = weight / self.extent * grid.monomial(&element.bin, t, powers);
                });
                visit(&bin[..n], &full[..n], &values, &factors);
            });
        }
    }

    /// The given values of a row, for messages.
    fn describe(&self, row: usize) -> String {
        let values = &self.values[row * self.names.len()..(row + 1) * self.names.len()];
        let text: Vec<String> =
            self.names.iter().zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
        format!("{} (row {row})", text.join(", "))
    }
}
