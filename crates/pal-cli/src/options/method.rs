//! Options that say how to integrate.

use std::num::NonZeroU64;

use anyhow::{Result, bail};
use clap::ValueEnum;
use pal::moments::Method;

/// How to integrate.
#[derive(clap::Args)]
pub struct MethodOptions {
    /// Compute exact fractions instead of float64 with an error bound
    #[arg(long)]
    pub exact: bool,
    /// How to integrate [default: recurrence]
    #[arg(long, value_enum, visible_alias = "integrator")]
    method: Option<Integrator>,
    /// Rejection: number of samples [default: 1000000]
    #[arg(long, value_name = "N")]
    samples: Option<NonZeroU64>,
    /// Rejection: the seed of the samples [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Integrator {
    /// All moments of a cell by recurrence; float64 with an error bound, and exact for cells where the bound is poor
    Recurrence,
    /// Cubature on the simplices of the cells; float64 with an error bound
    Gasp,
    /// Samples in the bounding box; an estimate with its standard error
    Rejection,
}

const SAMPLES: u64 = 1_000_000;

impl MethodOptions {
    /// Returns the method that was chosen, or an error if the options contradict each other.
    pub fn method(&self) -> Result<Method> {
        let integrator = self.method.unwrap_or(Integrator::Recurrence);
        if self.exact && integrator != Integrator::Recurrence {
            bail!("--exact goes with the recurrence only; gasp and rejection compute in float64");
        }
        if (self.samples.is_some() || self.seed.is_some()) && integrator != Integrator::Rejection {
            bail!("--samples and --seed are for rejection; choose it with --method rejection");
        }
        Ok(match integrator {
            Integrator::Recurrence if self.exact => Method::Exact,
            Integrator::Recurrence => Method::Recurrence,
            Integrator::Gasp => Method::Gasp,
            Integrator::Rejection => Method::Rejection {
                samples: self.samples.map_or(SAMPLES, NonZeroU64::get),
                seed: self.seed.unwrap_or_default(),
            },
        })
    }
}

/// The name of a method in reports.
pub fn name(method: Method) -> &'static str {
    match method {
        Method::Recurrence => "recurrence",
        Method::Exact => "exact",
        Method::Gasp => "gasp",
        Method::Rejection { .. } => "rejection",
    }
}
