//! Means, covariances and expectations of other polynomials.

use std::collections::BTreeMap;

use super::error::QueryError;
use super::flat::{covariance_of_all, deviations_of_all};
use crate::density::Density;
use crate::density::cubature::MeshCubature;
use crate::density::{DensityError, Family, Form, Support};
use crate::formula::Var;
use crate::moments::in_free_variables;
use crate::number::{self, Rational};
use crate::polynomial::Polynomial;
use crate::region::Chart;

/// Expectations of polynomials, compiled on a family for many parameter vectors.
///
/// Everything is computed in coordinates that run from 0 to 1 over the box around the constraint, so that the
/// covariance of a region far from the origin loses no digits.
pub struct Expectation {
    family: Family,
    /// The terms of every polynomial: a factor and the position of the monomial in `forms`.
    terms: Vec<Vec<(f64, usize)>>,
    forms: Vec<(Vec<u16>, Box<dyn Form>)>,
}

/// Monomials in box coordinates with their factors.
pub(crate) type BoxTerms = Vec<(Vec<u16>, f64)>;

/// Rewrites a polynomial in the coordinates of the user as one in the coordinates of the box.
fn in_box(support: &Support, polynomial: &Polynomial) -> Result<BoxTerms, QueryError> {
    let reals = &support.constraint().reals;
    let axes = support.grid().axes().iter().zip(reals);
    let changes: BTreeMap<Var, (Rational, Rational)> = axes
        .map(|(axis, var)| {
            let (low, high) = (&axis.edges()[0], &axis.edges()[axis.bins()]);
            (var.clone(), (high - low, low.clone()))
        })
        .collect();
    let in_box = polynomial.affine(&changes)?.aligned(reals)?;
    Ok(in_box.into_iter().map(|(alpha, c)| (alpha, number::to_f64(&c))).collect())
}

/// A polynomial in all variables as one in the coordinates of the box, which are those of the free variables.
pub(crate) fn box_terms(
    support: &Support,
    chart: Option<&Chart>,
    polynomial: &Polynomial,
) -> Result<BoxTerms, QueryError> {
    match chart {
        None => in_box(support, polynomial),
        Some(chart) => in_box(support, &in_free_variables(chart, polynomial)?),
    }
}

impl Family {
    /// Compiles the expectations of polynomials in the variables of the constraint.
    pub fn expectation(&self, polynomials: &[Polynomial]) -> Result<Expectation, QueryError> {
        let (mut forms, mut known, mut terms) = (Vec::new(), BTreeMap::new(), Vec::new());
        for polynomial in polynomials {
            let mut list = Vec::new();
            let chart = self.flat().map(|flat| &**flat.chart());
            for (alpha, c) in box_terms(self.support(), chart, polynomial)? {
                let at = match known.get(&alpha) {
                    Some(at) => *at,
                    None => {
                        forms.push((alpha.clone(), self.kind().form(self.support().mesh(), &alpha)?));
                        known.insert(alpha, forms.len() - 1);
                        forms.len() - 1
                    }
                };
                list.push((c, at));
            }
            terms.push(list);
        }
        Ok(Expectation { family: self.clone(), terms, forms })
    }

    /// The mean of every variable under each parameter vector, row by row.
    pub fn mean(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let moments = self.box_moments(params, &first_powers(self.dimension()))?;
        let axes = self.support().grid().axes();
        let means = moments.iter().flat_map(|m| m.iter().zip(axes).map(|(m, axis)| axis.at_fraction(*m)));
        Ok(self.filled(means.collect()))
    }

    /// The covariance matrix under each parameter vector, row by row.
    pub fn covariance(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let n = self.dimension();
        let mut powers = first_powers(n);
        powers.extend(second_powers(n));
        let moments = self.box_moments(params, &powers)?;
        let axes = self.support().grid().axes();
        let lengths: Vec<f64> = axes.iter().map(|axis| axis.length()).collect();
        let of_free = moments.iter().map(|m| covariance_of(&m[..n], &m[n..], &lengths));
        Ok(match self.flat() {
            None => of_free.flatten().collect(),
            Some(flat) => of_free.flat_map(|free| covariance_of_all(flat.chart(), &free)).collect(),
        })
    }

    /// The standard deviation of every variable under each parameter vector, row by row. Unlike the root of a variance
    /// it does not underflow where the region is small.
    pub fn standard_deviation(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let moments = self.box_moments(params, &first_and_square_powers(self.dimension()))?;
        let of_free = moments.iter().map(|m| deviations(m, self.support()));
        let Some(flat) = self.flat() else { return Ok(of_free.flatten().collect()) };
        let (n, covariance) = (self.variables().len(), self.covariance(params)?);
        let rows = covariance.chunks(n * n).zip(of_free);
        Ok(rows.flat_map(|(covariance, free)| deviations_of_all(flat.chart(), covariance, &free)).collect())
    }

    /// Expectations of monomials in box coordinates, per parameter vector.
    fn box_moments(&self, params: &[f64], powers: &[Vec<u16>]) -> Result<Vec<Vec<f64>>, QueryError> {
        let forms: Result<Vec<_>, _> = powers
            .iter()
            .map(|powers| self.kind().form(self.support().mesh(), powers).map(|form| (powers.clone(), form)))
            .collect();
        Ok(self.form_values(params, &forms?)?)
    }

    fn form_values(
        &self,
        params: &[f64],
        forms: &[(Vec<u16>, Box<dyn Form>)],
    ) -> Result<Vec<Vec<f64>>, crate::density::DensityError> {
        let rows = self.proper_rows(params)?;
        let expansions: Vec<_> = rows.iter().map(|row| row.expansion.clone()).collect();
        let components = self.num_components();
        let mut values = vec![Vec::with_capacity(forms.len()); rows.len()];
        for (powers, form) in forms {
            let integrals = self.integrals(&**form, self.support(), powers, &expansions);
            for ((row, values), integrals) in rows.iter().zip(&mut values).zip(integrals.chunks(components)) {
                let weighted = row.weights();
                values.push(weighted.iter().zip(integrals).map(|(w, i)| if *i == 0.0 { 0.0 } else { w * i }).sum());
            }
        }
        Ok(values)
    }
}

/// The exponents of single coordinates.
fn first_powers(n: usize) -> Vec<Vec<u16>> {
    (0..n).map(|j| (0..n).map(|k| u16::from(k == j)).collect()).collect()
}

/// The exponents of products of two coordinates: the lower triangle, row by row.
fn second_powers(n: usize) -> Vec<Vec<u16>> {
    let pair = |i: usize, j: usize| (0..n).map(|k| u16::from(k == i) + u16::from(k == j)).collect();
    (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| pair(i, j)).collect()
}

/// The exponents of single coordinates, then of their squares.
fn first_and_square_powers(n: usize) -> Vec<Vec<u16>> {
    let squares = first_powers(n).into_iter().map(|powers| powers.into_iter().map(|power| 2 * power).collect());
    first_powers(n).into_iter().chain(squares).collect()
}

/// Standard deviations from the moments of [`first_and_square_powers`].
fn deviations(moments: &[f64], support: &Support) -> Vec<f64> {
    let (first, squares) = moments.split_at(moments.len() / 2);
    let axes = support.grid().axes();
    let variances = first.iter().zip(squares).map(|(first, square)| (square - first * first).max(0.0));
    variances.zip(axes).map(|(variance, axis)| variance.sqrt() * axis.length()).collect()
}

/// The covariance matrix from first and second moments in box coordinates, given the lengths of the axes.
fn covariance_of(first: &[f64], second: &[f64], lengths: &[f64]) -> Vec<f64> {
    let n = first.len();
    let mut matrix = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let value = (second[i * (i + 1) / 2 + j] - first[i] * first[j]) * lengths[i] * lengths[j];
            let value = if i == j { value.max(0.0) } else { value };
            (matrix[i * n + j], matrix[j * n + i]) = (value, value);
        }
    }
    matrix
}

impl Expectation {
    /// The expectations under each parameter vector, row by row.
    pub fn values(&self, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let moments = self.family.form_values(params, &self.forms)?;
        let of = |moments: &Vec<f64>| {
            let sums = self.terms.iter().map(|terms| terms.iter().map(|(c, at)| c * moments[*at]).sum::<f64>());
            sums.collect::<Vec<f64>>()
        };
        Ok(moments.iter().flat_map(of).collect())
    }
}

impl Density {
    /// The expectation of a polynomial in the variables of the density.
    pub fn expectation(&self, polynomial: &Polynomial) -> Result<f64, QueryError> {
        let terms = box_terms(&self.support, self.chart.as_deref(), polynomial)?;
        let powers: Vec<Vec<u16>> = terms.iter().map(|(alpha, _)| alpha.clone()).collect();
        let extra = powers.iter().map(|powers| powers.iter().map(|p| usize::from(*p)).sum()).max().unwrap_or(0);
        if !MeshCubature::feasible(self.dimension(), self.functions.degree().times(extra)) {
            let message = format!("a polynomial of degree {extra} needs too many cubature nodes");
            return Err(DensityError::Settings(message).into());
        }
        Ok(terms.iter().zip(self.box_moments(&powers)).map(|((_, c), moment)| c * moment).sum())
    }

    /// The mean of every variable.
    pub fn mean(&self) -> Vec<f64> {
        let axes = self.support.grid().axes();
        let moments = self.box_moments(&first_powers(self.dimension()));
        self.filled(moments.iter().zip(axes).map(|(m, axis)| axis.at_fraction(*m)).collect())
    }

    /// The covariance matrix, row by row.
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.dimension();
        let mut powers = first_powers(n);
        powers.extend(second_powers(n));
        let moments = self.box_moments(&powers);
        let lengths: Vec<f64> = self.support.grid().axes().iter().map(|axis| axis.length()).collect();
        let of_free = covariance_of(&moments[..n], &moments[n..], &lengths);
        match &self.chart {
            None => of_free,
            Some(chart) => covariance_of_all(chart, &of_free),
        }
    }

    /// The standard deviation of every variable. Unlike the root of a variance it does not underflow where the region
    /// is small.
    pub fn standard_deviation(&self) -> Vec<f64> {
        let moments = self.box_moments(&first_and_square_powers(self.dimension()));
        let of_free = deviations(&moments, &self.support);
        match &self.chart {
            None => of_free,
            Some(chart) => deviations_of_all(chart, &self.covariance(), &of_free),
        }
    }

    /// Expectations of monomials in box coordinates.
    fn box_moments(&self, powers: &[Vec<u16>]) -> Vec<f64> {
        let extra = powers.iter().map(|powers| powers.iter().map(|p| usize::from(*p)).sum()).max().unwrap_or(0);
        let grid = self.support.grid();
        self.integrals(&self.support, extra, powers.len(), |bin, t, out| {
            out.iter_mut().zip(powers).for_each(|(out, powers)| *out = grid.monomial(bin, t, powers));
        })
    }
}
