//! The family that a layer needs: over real variables, or mixed.

use ::pal::density::{DensityError, Family, FileError};
use ::pal::formula::{Constraint, Formula};
use ::pal::mixed::MixedFamily;
use ::pal::query::QueryError;

/// A family of densities over real variables, or over real and Boolean ones.
#[derive(Clone, Debug)]
pub enum AnyFamily {
    /// Over real variables.
    Real(Family),
    /// Over real and Boolean variables.
    Mixed(MixedFamily),
}

impl From<Family> for AnyFamily {
    fn from(family: Family) -> AnyFamily {
        AnyFamily::Real(family)
    }
}

impl From<MixedFamily> for AnyFamily {
    fn from(family: MixedFamily) -> AnyFamily {
        AnyFamily::Mixed(family)
    }
}

impl AnyFamily {
    /// Returns the family over real variables: itself, or the one whose components a mixed family has.
    pub fn base(&self) -> &Family {
        match self {
            AnyFamily::Real(family) => family,
            AnyFamily::Mixed(family) => family.base(),
        }
    }

    /// Returns the family if it is over real variables only.
    pub fn as_real(&self) -> Option<&Family> {
        match self {
            AnyFamily::Real(family) => Some(family),
            AnyFamily::Mixed(_) => None,
        }
    }

    /// Returns the constraint that the densities satisfy.
    pub fn constraint(&self) -> &Constraint {
        match self {
            AnyFamily::Real(family) => family.constraint(),
            AnyFamily::Mixed(family) => family.support().constraint(),
        }
    }

    /// Returns the number of parameters of one density.
    pub fn num_params(&self) -> usize {
        match self {
            AnyFamily::Real(family) => family.num_params(),
            AnyFamily::Mixed(family) => family.num_params(),
        }
    }

    /// Returns random parameter vectors, row by row, with independent standard normal entries.
    pub fn random_params(&self, rows: usize, seed: u64) -> Vec<f64> {
        match self {
            AnyFamily::Real(family) => family.random_params(rows, seed),
            AnyFamily::Mixed(family) => family.random_params(rows, seed),
        }
    }

    /// Returns the log-density of each point, under one parameter vector or its own.
    pub fn log_prob(&self, params: &[f64], points: &[f64]) -> Result<Vec<f64>, DensityError> {
        match self {
            AnyFamily::Real(family) => family.log_prob(params, points),
            AnyFamily::Mixed(family) => family.log_prob(params, points),
        }
    }

    /// Returns the probability of a condition under each parameter vector.
    pub fn probability(&self, condition: &Formula, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        match self {
            AnyFamily::Real(family) => family.event(condition)?.probability(params),
            AnyFamily::Mixed(family) => family.event(condition)?.probability(params),
        }
    }

    /// Returns the content of a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        match self {
            AnyFamily::Real(family) => family.to_bytes(),
            AnyFamily::Mixed(family) => family.to_bytes(),
        }
    }
}
