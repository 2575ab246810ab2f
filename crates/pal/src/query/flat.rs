//! Answers on flats: from the free coordinates, in which everything is computed, to all coordinates.

use std::sync::Arc;

use super::error::QueryError;
use super::marginal::Marginal;
use super::marginal::oblique::{NoMarginal, oblique_marginal};
use crate::density::{ComponentFunctions, Density};
use crate::formula::Var;
use crate::number::{self, Rational};
use crate::region::{Chart, DependentVariable};

/// The covariance matrix of all variables, from that of the free ones: `N cov N^T`.
pub(super) fn covariance_of_all(chart: &Chart, free: &[f64]) -> Vec<f64> {
    let (n, k, matrix) = (chart.variables().len(), chart.dimension(), chart.jacobian());
    let row = |i: usize| &matrix[i * k..(i + 1) * k];
    let entry = |a: &[f64], b: &[f64]| -> f64 {
        let terms = (0..k).flat_map(|i| (0..k).map(move |j| (i, j)));
        terms.map(|(i, j)| a[i] * free[i * k + j] * b[j]).sum()
    };
    let mut all = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let value = entry(row(i), row(j));
            let value = if i == j { value.max(0.0) } else { value };
            (all[i * n + j], all[j * n + i]) = (value, value);
        }
    }
    all
}

/// The standard deviations of all variables, from a covariance matrix of all of them and the deviations of free ones,
/// which do not underflow.
pub(super) fn deviations_of_all(chart: &Chart, covariance: &[f64], free: &[f64]) -> Vec<f64> {
    let n = chart.variables().len();
    let mut all: Vec<f64> = (0..n).map(|i| covariance[i * n + i].sqrt()).collect();
    chart.free().iter().zip(free).for_each(|(position, deviation)| all[*position] = *deviation);
    all
}

/// The dependent variable of a name, if it is one.
pub(super) fn dependent<'c>(chart: &'c Chart, name: &str) -> Option<&'c DependentVariable> {
    chart.dependents().iter().find(|dependent| chart.variables()[dependent.position].name() == name)
}

/// That a variable depends on others, where only free ones can be used, and what to do about it.
pub(super) fn not_free(chart: &Chart, dependent: &DependentVariable, what: &str) -> QueryError {
    let names: Vec<String> = chart.free_variables().iter().map(Var::to_string).collect();
    QueryError::Variables(format!(
        "`{name}` depends on the free variables {free} ({name} = {image}); {what}",
        name = chart.variables()[dependent.position],
        free = names.join(", "),
        image = chart.image(dependent),
    ))
}

impl Density {
    /// The marginal of a dependent variable.
    pub(super) fn dependent_marginal(
        &self,
        chart: &Chart,
        dependent: &DependentVariable,
    ) -> Result<Marginal, QueryError> {
        let functions: Arc<dyn ComponentFunctions> = self.functions.clone();
        let (constant, coefficients) = (&dependent.constant, &dependent.coefficients);
        oblique_marginal(self.support.mesh(), &functions, &self.weights, constant, coefficients).map_err(|problem| {
            match problem {
                NoMarginal::Mass => QueryError::Impossible,
                NoMarginal::Constant => {
                    let name = &chart.variables()[dependent.position];
                    QueryError::Variables(format!(
                        "`{name}` is {} on the whole constraint, so that it has no density",
                        chart.image(dependent)
                    ))
                }
                NoMarginal::Simplices => not_free(
                    chart,
                    dependent,
                    "its marginal would take too many simplices: compile a family in which it is free",
                ),
            }
        })
    }

    /// The density of the remaining variables given values of some free ones.
    pub(super) fn given_on_flat(&self, chart: &Chart, values: &[(&str, f64)]) -> Result<Density, QueryError> {
        let left = given_chart(chart, values)?;
        let remaining = self.in_free_coordinates().given(values)?;
        Ok(Density { chart: Some(Arc::new(left)), ..remaining })
    }
}

/// The chart of what is left when some free variables have values.
pub(crate) fn given_chart(chart: &Chart, values: &[(&str, f64)]) -> Result<Chart, QueryError> {
    if let Some(dependent) = values.iter().find_map(|(name, _)| dependent(chart, name)) {
        let what = "give values of free variables, or compile a family in which it is free";
        return Err(not_free(chart, dependent, what));
    }
    let free = chart.free_variables();
    let fixed = values.iter().filter_map(|(name, value)| {
        Some((free.iter().position(|var| var.name() == *name)?, number::from_f64(*value).ok()?))
    });
    Ok(chart.given(&fixed.collect::<Vec<(usize, Rational)>>()))
}
