//! `pal plot` on a model: a picture of a density.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pal::density::Density;
use pal::density::{Family, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Constraint, Formula, Var};
use pal::query::{ModeOptions, ModeStop};
use pal::region::Region;
use serde::Serialize;

use super::marginal::curve;
use crate::model_file::{self, Given, term};
use crate::numbers::{counted, finite};
use crate::picture::Piece;
use crate::picture::density::{DensityScene, render};
use crate::picture::file::Kind;
use crate::progress::Progress;

/// What a picture of a density can show.
#[derive(clap::Args)]
pub struct Options {
    /// Model: the row of its parameters
    #[arg(long, value_name = "R", default_value_t = 0, value_parser = parse_row)]
    row: usize,
    /// Model: draw so many samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: Option<u32>,
    /// Model: the seed of the samples
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Model: mark the most likely point
    #[arg(long)]
    mode: bool,
    /// Model: draw the marginal densities at the sides
    #[arg(long)]
    marginals: bool,
    /// Model: outline where an SMT-LIB term holds, and tell its probability
    #[arg(long = "where", value_name = "TERM")]
    term: Option<String>,
    #[command(flatten)]
    given: Given,
    /// Model: outline the cells of the region
    #[arg(long)]
    cells: bool,
}

fn parse_row(text: &str) -> Result<usize> {
    text.parse().context("give the number of one row, from 0 on")
}

impl Options {
    /// The first option that a picture of a constraint has no use for.
    pub fn foreign(&self) -> Option<&'static str> {
        let options = [
            ("--row", self.row > 0),
            ("--samples", self.samples.is_some()),
            ("--seed", self.seed > 0),
            ("--mode", self.mode),
            ("--marginals", self.marginals),
            ("--where", self.term.is_some()),
            ("--given", !self.given.is_empty()),
            ("--cells", self.cells),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// What is known about a picture of a density.
#[derive(Serialize)]
pub struct Report {
    pub output: String,
    pub row: usize,
    pub cells: usize,
    pub samples: usize,
    pub mode: Option<Vec<f64>>,
    pub probability: Option<f64>,
    pub width: u32,
    pub seconds: f64,
}

impl Report {
    /// The same as a line of text.
    pub fn line(&self) -> String {
        let mut line = format!("{}: density on {}", self.output, counted(self.cells, "cell"));
        if self.samples > 0 {
            line += &format!(", {}", counted(self.samples, "sample"));
        }
        if let Some(mode) = &self.mode {
            let numbers: Vec<String> = mode.iter().map(|value| format!("{value:.6}")).collect();
            line += &format!(", mode at ({})", numbers.join(", "));
        }
        if let Some(probability) = self.probability {
            line += &format!(", probability {probability:.6}");
        }
        line
    }
}

/// Letters of a condition that a legend has room for.
const LEGIBLE: usize = 28;

/// The frame of a picture.
pub struct Frame<'a> {
    pub title: Option<String>,
    pub y_down: bool,
    pub width: u32,
    pub kind: Kind,
    pub path: &'a Path,
}

/// Draws a row of a model; errors name the file.
pub fn draw(file: &Path, options: &Options, frame: &Frame, progress: &Progress) -> Result<(Report, Vec<u8>)> {
    let start = Instant::now();
    let model = model_file::load(file)?;
    let attempt = || -> Result<(Report, Vec<u8>)> {
        let row = model_file::Rows::One(options.row).of(&model)?.start;
        let density = options.given.fix(model.family().density(model_file::params(&model, row))?)?;
        let subtitle = frame.title.as_ref().map(|_| family_name(model.family()) + &options.given.text());
        let (mut report, picture) = options.picture(&density, subtitle, frame, progress)?;
        report.row = row;
        report.seconds = start.elapsed().as_secs_f64();
        Ok((report, picture))
    };
    attempt().with_context(|| file.display().to_string())
}

/// What a density is, in a few words and with the numbers that `pal compile` was given.
pub fn family_name(family: &Family) -> String {
    match family.family().settings() {
        Settings::Spline(SplineSettings { knots, components }) => {
            let knots = match knots {
                Knots::Uniform(count) => format!("{count} knots per axis, "),
                Knots::At(_) => String::new(),
            };
            format!("spline mixture: {knots}{}", counted(components, "component"))
        }
        Settings::SumOfSquares(SumOfSquaresSettings { degree, components, .. }) => {
            format!("sum of squares: degree {degree}, {}", counted(components, "component"))
        }
    }
}

/// The cells of a constraint as shapes.
pub fn pieces(constraint: &Constraint, progress: &Progress) -> Result<Vec<Piece>> {
    Ok(Region::new(constraint)?.map_cells(|cell| {
        progress.step();
        Piece::new(&cell, false)
    })?)
}

/// The part of a constraint where a condition holds.
pub fn within(constraint: &Constraint, condition: &Formula) -> Constraint {
    Constraint { formula: constraint.formula.clone() & condition.clone(), ..constraint.clone() }
}

/// Densities at points.
pub fn values(density: &Density, points: &[f64]) -> Vec<f64> {
    density.log_prob(points).into_iter().map(f64::exp).collect()
}

impl Options {
    fn picture(
        &self,
        density: &Density,
        subtitle: Option<String>,
        frame: &Frame,
        progress: &Progress,
    ) -> Result<(Report, Vec<u8>)> {
        let constraint = density.support().constraint();
        let n = density.dimension();
        ensure!(n <= 2, "a picture needs 1 or 2 variables, this density has {n}; fix the others with --given");
        ensure!(n == 2 || !self.marginals, "--marginals: over one variable the curve is the marginal; leave it out");
        let condition = self.term.as_ref().map(|text| term("--where", text, constraint)).transpose()?;
        let probability = condition.as_ref().map(|condition| density.probability(condition)).transpose()?;
        let samples = match self.samples {
            None => Vec::new(),
            Some(count) => density.sample(count as usize, self.seed)?,
        };
        let mode = if self.mode { Some(self.find_mode(density)?) } else { None };
        let marginals = match self.marginals {
            false => None,
            true => Some(
                constraint.reals.iter().map(|var| Ok(curve(&density.marginal(var.name())?))).collect::<Result<_>>()?,
            ),
        };
        let shapes = pieces(constraint, progress)?;
        let report = Report {
            output: frame.path.display().to_string(),
            row: self.row,
            cells: shapes.len(),
            samples: samples.len() / n,
            mode: mode.clone(),
            probability: probability.and_then(finite),
            width: frame.width,
            seconds: 0.0,
        };
        let scene = DensityScene {
            title: frame.title.clone(),
            subtitle,
            axes: constraint.reals.iter().map(Var::to_string).collect(),
            pieces: shapes,
            show_cells: self.cells,
            y_down: frame.y_down,
            density: &|points| values(density, points),
            samples: samples.chunks_exact(n).map(|p| [p[0], p.get(1).copied().unwrap_or(0.0)]).collect(),
            mode,
            marginals,
            query: match &condition {
                None => Vec::new(),
                Some(condition) => pieces(&within(constraint, condition), progress)?,
            },
            query_text: probability.zip(self.term.as_deref()).map(|(p, term)| {
                let name = if term.chars().count() <= LEGIBLE { term } else { "query" };
                format!("{name}, probability {p:.4}")
            }),
        };
        Ok((report, render(&scene, frame.kind, frame.width)?))
    }

    fn find_mode(&self, density: &Density) -> Result<Vec<f64>> {
        let found = density.mode(&ModeOptions { gap: 1e-4, ..ModeOptions::default() })?;
        // A star may be off by less than its size, but not in another place.
        if matches!(found.stop, ModeStop::NodeLimit | ModeStop::TimeLimit) && found.gap > 0.01 {
            bail!("--mode: the search reached its limit with a gap of {:.2}; `pal mode` has more options", found.gap);
        }
        Ok(found.point)
    }
}
