//! Options of histogram mixtures.

use anyhow::{Result, ensure};
use pal::density::{HistogramSettings, Settings};
use pal::region::Region;

use super::knots_at::{chosen_count, knots};
use super::{KNOTS_AT, Kind, KindOptions, SharedOptions};

/// The options of histogram mixtures.
#[derive(clap::Args)]
pub struct HistogramOptions {
    #[arg(long, value_name = "B", help = bins_help())]
    bins: Option<usize>,
}

fn bins_help() -> String {
    let bins = |dimension: usize| chosen_count(&HistogramSettings::default().chosen(dimension).knots) - 1;
    let counts = (1..=7).map(|dimension| bins(dimension).to_string());
    format!(
        "histogram: bins per axis, all of the same width [default: {} for 1 to 6 and more variables]",
        counts.collect::<Vec<_>>().join(", ")
    )
}

impl HistogramOptions {
    pub(super) const KIND: Kind = Kind {
        name: "histogram",
        about: "Mixtures of histograms: constant on every bin of a grid",
        shared_options: &[KNOTS_AT],
        default_components: || HistogramSettings::default().components,
    };
}

impl KindOptions for HistogramOptions {
    fn options(&self) -> Vec<(&'static str, bool)> {
        vec![("--bins", self.bins.is_some())]
    }

    fn settings(&self, shared: &SharedOptions, region: &Region, _student_t_head: bool) -> Result<Settings> {
        ensure!(self.bins != Some(0), "--bins 0: give at least one bin per axis");
        let defaults = HistogramSettings::default();
        // Bins lie between knots, of which there is one more.
        let count = self.bins.map(|bins| bins.saturating_add(1));
        let automatic = defaults.chosen(region.dimension()).knots;
        let settings = HistogramSettings {
            knots: knots(&shared.knots_at, count, &automatic, region)?,
            components: shared.components.unwrap_or(defaults.components),
        };
        Ok(settings.into())
    }
}
