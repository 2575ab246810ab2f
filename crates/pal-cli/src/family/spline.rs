//! Options of spline mixtures.

use anyhow::Result;
use pal::density::{Family, MAX_SPLINE_DIMENSION, Settings, SplineSettings};
use pal::region::Region;

use super::knots_at::{chosen_count, knots};
use super::{KNOTS_AT, Kind, KindOptions, SharedOptions};

/// The options of spline mixtures.
#[derive(clap::Args)]
pub struct SplineOptions {
    #[arg(long, value_name = "K", help = knots_help())]
    knots: Option<usize>,
}

fn knots_help() -> String {
    let [few, many] = [1, MAX_SPLINE_DIMENSION].map(|n| chosen_count(&SplineSettings::default().chosen(n).knots));
    let plane = chosen_count(&SplineSettings::for_heads(2).knots);
    format!(
        "spline: equally spaced knots per axis, ends included \
         [default: {few}, and {many} for {MAX_SPLINE_DIMENSION} variables; \
         for networks {plane} in one or two variables]"
    )
}

impl SplineOptions {
    pub(super) const KIND: Kind = Kind {
        name: "spline",
        about: "Mixtures of products of squared cubic splines",
        shared_options: &[KNOTS_AT],
        default_components: || SplineSettings::default().components,
    };
}

impl KindOptions for SplineOptions {
    fn options(&self) -> Vec<(&'static str, bool)> {
        vec![("--knots", self.knots.is_some())]
    }

    fn settings(&self, shared: &SharedOptions, region: &Region, student_t_head: bool) -> Result<Settings> {
        let n = region.dimension();
        let defaults = if student_t_head { SplineSettings::for_heads(n) } else { SplineSettings::default().chosen(n) };
        let settings = SplineSettings {
            knots: knots(&shared.knots_at, self.knots, &defaults.knots, region)?,
            components: shared.components.unwrap_or(defaults.components),
        };
        Ok(settings.into())
    }

    fn max_dimension(&self) -> Option<usize> {
        Some(MAX_SPLINE_DIMENSION)
    }

    fn has_student_t_head(&self) -> bool {
        true
    }

    fn has_row_regions(&self) -> bool {
        true
    }
}

/// A product of normal densities, with its weight in a mixture.
pub struct Gaussian<'a> {
    pub weight: f64,
    pub mean: &'a [f64],
    pub deviation: &'a [f64],
}

/// Returns parameters of a spline mixture whose components are close to normal densities: the splines, which are
/// squared, are their square roots.
pub fn near_gaussians(family: &Family, components: &[Gaussian]) -> Vec<f64> {
    let mut theta = Vec::with_capacity(family.num_params());
    for Gaussian { weight, mean, deviation } in components {
        theta.push(weight.ln());
        let parameters = mean.iter().zip(*deviation);
        for (axis, (mean, deviation)) in family.support().grid().axes().iter().zip(parameters) {
            let knots = axis.positions();
            let root = |y: &f64| (-((y - mean) / (2.0 * deviation)).powi(2)).exp();
            // Derivatives are with respect to the mean distance of the knots.
            let step = (knots[knots.len() - 1] - knots[0]) / (knots.len() - 1) as f64;
            theta.extend(knots.iter().map(root));
            theta.extend(knots.iter().map(|y| -(y - mean) / (2.0 * deviation * deviation) * root(y) * step));
        }
    }
    family.params_of(&theta)
}
