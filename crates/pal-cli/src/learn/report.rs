//! The result of a training, as text or JSON.

use std::io::Write;

use anyhow::Result;
use pal_burn::Stop;
use serde::Serialize;

use crate::{Global, output};

/// The mean of numbers; minus infinity if any of them is.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Numbers of rows.
#[derive(Serialize)]
pub struct Counts {
    pub train: usize,
    pub validation: usize,
    pub test: usize,
    pub dropped: usize,
}

/// The result of a training.
#[derive(Serialize)]
pub struct Summary {
    pub model: &'static str,
    /// Half of the widths of windows, where points are in the local coordinates of a window for each row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<Vec<f64>>,
    /// Mean log-densities, in nats. Local coordinates have the unit of the map, so that those of windows are those of the
    /// map too.
    pub train_ll: Option<f64>,
    pub val_ll: Option<f64>,
    pub test_ll: Option<f64>,
    /// The fraction of samples outside the constraint.
    pub violation: f64,
    pub outside: usize,
    pub samples: usize,
    /// The number of parameters that were trained.
    pub params: usize,
    pub epochs: usize,
    pub best_epoch: usize,
    pub stop: Stop,
    pub rows: Counts,
    pub seed: u64,
    pub seconds: f64,
    pub training_seconds: f64,
    pub output: String,
}

impl Summary {
    pub fn print(&self, global: Global) -> Result<()> {
        let mut out = output::stdout();
        if global.json {
            output::json_line(&mut out, self)?;
        } else if !global.quiet {
            let Counts { train, validation, test, dropped } = &self.rows;
            let stop = match self.stop {
                Stop::Epochs => "all epochs done",
                Stop::Patience => "no better validation any more",
                Stop::Asked => "stopped; --resume goes on",
            };
            writeln!(out, "model       {}, {} parameters", self.model, self.params)?;
            writeln!(out, "rows        {train} train, {validation} validation, {test} test, {dropped} left out")?;
            if let Some(half_width) = &self.half_width {
                let widths: Vec<String> = half_width.iter().map(f64::to_string).collect();
                writeln!(out, "windows     half width {}; log-densities per unit of the map", widths.join(", "))?;
            }
            writeln!(out, "epochs      {}, the best was {} ({stop})", self.epochs, self.best_epoch)?;
            for (name, value) in [("train", self.train_ll), ("validation", self.val_ll), ("test", self.test_ll)] {
                if let Some(value) = value {
                    writeln!(out, "{name:<11} {value:.4} mean log-density")?;
                }
            }
            writeln!(out, "violation   {} of {} samples outside", self.outside, self.samples)?;
            writeln!(out, "seconds     {:.1}", self.seconds)?;
            writeln!(out, "output      {}", self.output)?;
        }
        Ok(out.flush()?)
    }
}
