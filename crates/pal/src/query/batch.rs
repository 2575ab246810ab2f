//! Queries for many parameter vectors of a family at once.

use rayon::prelude::*;

use super::entropy::{Entropy, EntropyOptions};
use super::error::QueryError;
use super::flat::dependent;
use super::marginal::Marginal;
use super::marginal::slices::Slices;
use super::mode::{Mode, ModeOptions};
use super::rows::RowSampler;
use super::sample::check_memory;
use crate::density::{Density, Family};

/// Why there is a first density.
const AT_LEAST_ONE: &str = "an empty list of parameters was refused";

/// To draw a sample without preparation costs about as much as to prepare this many elements.
const FEW: usize = 8;

/// Whether to draw samples without preparation: with many samples of each density it pays to know the masses of all
/// elements.
pub(super) fn few_samples(count: usize, elements: usize) -> bool {
    count <= 1 || count.saturating_mul(FEW) < elements
}

/// Draws `count` samples of each density.
pub(super) fn sample_each(densities: &[Density], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
    let draw = |(row, density): (usize, &Density)| {
        let sampler = density.sampler()?;
        Ok(sampler.sample_from(row as u64 * count as u64, count, seed))
    };
    let parts: Vec<Vec<f64>> = densities.par_iter().enumerate().map(draw).collect::<Result<_, QueryError>>()?;
    Ok(parts.concat())
}

impl Family {
    /// Draws `count` independent samples for each parameter vector, row by row. The same seed gives the same samples
    /// for any number of threads.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        check_memory((params.len() / self.num_params()).saturating_mul(count), self.variables().len())?;
        if few_samples(count, self.support().elements()) {
            return Ok(self.filled(RowSampler::new(self).sample(params, count, seed)?));
        }
        sample_each(&self.densities(params)?, count, seed)
    }

    /// The mode under each parameter vector.
    pub fn modes(&self, params: &[f64], options: &ModeOptions) -> Result<Vec<Mode>, QueryError> {
        self.densities(params)?.par_iter().map(|density| density.mode(options)).collect()
    }

    /// The differential entropy under each parameter vector.
    pub fn entropies(&self, params: &[f64], options: &EntropyOptions) -> Result<Vec<Entropy>, QueryError> {
        Ok(self.densities(params)?.par_iter().map(|density| density.entropy(options)).collect())
    }

    /// The exact marginals of one variable under each parameter vector.
    pub fn marginals(&self, variable: &str, params: &[f64]) -> Result<Vec<Marginal>, QueryError> {
        let densities = self.densities(params)?;
        let first = densities.first().expect(AT_LEAST_ONE);
        if let Some(flat) = self.flat()
            && dependent(flat.chart(), variable).is_some()
        {
            return densities.par_iter().map(|density| density.marginal(variable)).collect();
        }
        // The slices depend on the support only, which all densities share.
        let slices = Slices::new(self.support().mesh(), first.axis(variable)?, self.kind().degree());
        let marginal = |density: &Density| slices.marginal(&*density.functions, &density.weights);
        densities.iter().map(|density| marginal(density).ok_or(QueryError::Impossible)).collect()
    }

    /// The joint marginal density of some variables at points: one row of densities for each parameter vector.
    pub fn marginal_density(&self, variables: &[&str], params: &[f64], points: &[f64]) -> Result<Vec<f64>, QueryError> {
        let densities = self.densities(params)?;
        let parts = densities.iter().map(|density| density.marginal_density(variables, points));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The density of the remaining variables given values of some, for each parameter vector. The constraint is cut
    /// once for all of them.
    pub fn given(&self, values: &[(&str, f64)], params: &[f64]) -> Result<Vec<Density>, QueryError> {
        let densities = self.densities(params)?;
        if self.flat().is_some() {
            return densities.iter().map(|density| density.given(values)).collect();
        }
        let first = densities.first().expect(AT_LEAST_ONE);
        let slice = first.slice_support(values)?;
        densities.iter().map(|density| density.on_slice(&slice, values)).collect()
    }
}
