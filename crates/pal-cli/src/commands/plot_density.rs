//! `pal plot` on a model: a picture of a density.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use pal::density::Density;
use pal::formula::{Constraint, Formula, Var};
use pal::query::{ModeOptions, ModeStop};
use pal::region::Region;
use serde::Serialize;
use serde_json::Value;

use super::marginal::curve;
use super::plot_panels::{self, PanelReport};
use crate::densities::AnyDensity;
use crate::model_file;
use crate::numbers::{counted, finite};
use crate::options::condition::parse_term;
use crate::options::{GivenOptions, RowChoice, RowOption};
use crate::picture::CellShape;
use crate::picture::Point;
use crate::picture::density::{DensityFunction, DensityScene, render};
use crate::picture::file::PictureFormat;
use crate::progress::Progress;

/// Options for pictures of densities.
#[derive(clap::Args)]
pub struct DensityOptions {
    #[command(flatten)]
    row: RowOption,
    /// Model: draw this many samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub samples: Option<u32>,
    /// Model: the seed of the samples
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Model: mark the most likely point
    #[arg(long)]
    pub mode: bool,
    /// Model: draw the marginal densities at the sides
    #[arg(long)]
    marginals: bool,
    /// Model: outline an event, an SMT-LIB term such as "(<= x 1)", and tell its probability
    #[arg(long, value_name = "TERM")]
    pub event: Option<String>,
    #[command(flatten)]
    given: GivenOptions,
    /// Model: outline the cells of the region
    #[arg(long)]
    cells: bool,
}

impl DensityOptions {
    /// Returns the first of these options that was given, if any: pictures of constraints have no use for them.
    pub fn foreign(&self) -> Option<&'static str> {
        let options = [
            ("--row", self.row.is_given()),
            ("--samples", self.samples.is_some()),
            ("--seed", self.seed > 0),
            ("--mode", self.mode),
            ("--marginals", self.marginals),
            ("--event", self.event.is_some()),
            ("--given", !self.given.is_empty()),
            ("--cells", self.cells),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// What a picture of a density shows.
#[derive(Serialize)]
pub struct Report {
    pub output: String,
    pub row: usize,
    pub cells: usize,
    pub samples: usize,
    pub mode: Option<Vec<Value>>,
    pub probability: Option<f64>,
    /// The panels of a picture over Boolean variables, the most probable first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<PanelReport>,
    pub width: u32,
    pub seconds: f64,
}

impl Report {
    /// The report as a line of text.
    pub fn line(&self) -> String {
        let mut line = format!("{}: density on {}", self.output, counted(self.cells, "cell"));
        if !self.panels.is_empty() {
            line += &format!(" in {}", counted(self.panels.len(), "panel"));
        }
        if self.samples > 0 {
            line += &format!(", {}", counted(self.samples, "sample"));
        }
        if let Some(mode) = &self.mode {
            let shown = |value: &Value| match (value.as_f64(), value.as_str()) {
                (Some(number), _) => format!("{number:.6}"),
                (None, Some(label)) => label.to_string(),
                (None, None) => value.to_string(),
            };
            let numbers: Vec<String> = mode.iter().map(shown).collect();
            line += &format!(", mode at ({})", numbers.join(", "));
        }
        if let Some(probability) = self.probability {
            line += &format!(", probability {probability:.6}");
        }
        line
    }
}

/// Characters of an event that a legend has room for.
const LEGIBLE: usize = 28;

/// What a picture looks like, whatever it shows, and where it goes.
pub struct PictureSettings<'a> {
    pub title: Option<String>,
    pub y_down: bool,
    pub width: u32,
    pub kind: PictureFormat,
    pub path: &'a Path,
}

/// Draws a row of a model; errors name the file.
pub fn draw(
    file: &Path,
    options: &DensityOptions,
    settings: &PictureSettings,
    progress: &Progress,
) -> Result<(Report, Vec<u8>)> {
    let start = Instant::now();
    let model = model_file::load(file)?;
    let attempt = || -> Result<(Report, Vec<u8>)> {
        let rows = options.row.or_first();
        ensure!(rows != RowChoice::All, "--row all: a picture shows one density; give the number of its row");
        let row = rows.of(&model)?.start;
        let mut densities = model.densities(row..row + 1, None)?;
        let density = densities.pop().context("one row of parameters makes one density")?;
        let family = model.family().context("kernels are drawn in Python: pal.plot.density")?;
        let described = family.base().kind().description() + &options.given.text();
        let (mut report, picture) = match options.given.fix(density)? {
            AnyDensity::Real(density) => {
                let subtitle = settings.title.as_ref().map(|_| described);
                options.picture(&density, subtitle, settings, progress)?
            }
            AnyDensity::Mixed(density) => plot_panels::picture(options, &density, settings, progress)?,
            AnyDensity::Kernel(_) => unreachable!("a density of kernels has no family"),
        };
        report.row = row;
        report.seconds = start.elapsed().as_secs_f64();
        Ok((report, picture))
    };
    attempt().with_context(|| file.display().to_string())
}

/// Returns the cells of a constraint as shapes.
pub fn cells(constraint: &Constraint, progress: &Progress) -> Result<Vec<CellShape>> {
    Ok(Region::new(constraint)?.map_cells(|cell| {
        progress.step();
        CellShape::new(&cell, false)
    })?)
}

/// Returns the constraint together with an event.
pub fn within(constraint: &Constraint, event: &Formula) -> Constraint {
    Constraint { formula: constraint.formula.clone() & event.clone(), ..constraint.clone() }
}

/// Returns the densities at points; 0 where there is none.
pub fn values(density: &AnyDensity, points: &[f64]) -> Vec<f64> {
    let logs = density.log_prob(points);
    let count = points.len() / density.number_names().len().max(1);
    logs.map_or_else(|_| vec![0.0; count], |logs| logs.into_iter().map(f64::exp).collect())
}

/// Returns points over one or two variables as places in the plane.
pub fn on_page(points: &[f64], n: usize) -> Vec<Point> {
    points.chunks_exact(n).map(|p| [p[0], p.get(1).copied().unwrap_or(0.0)]).collect()
}

/// What is drawn on top of a density and around it.
pub struct Marks {
    pub title: Option<String>,
    pub subtitle: Option<String>,
    pub samples: Vec<Point>,
    pub mode: Option<Vec<f64>>,
    /// The event whose outline is drawn, over the variables of the picture.
    pub event: Option<Formula>,
    /// The probability of the event.
    pub probability: Option<f64>,
}

impl DensityOptions {
    fn picture(
        &self,
        density: &Density,
        subtitle: Option<String>,
        settings: &PictureSettings,
        progress: &Progress,
    ) -> Result<(Report, Vec<u8>)> {
        let (whole, density) = (density, &density.in_free_coordinates());
        let all = whole.constraint();
        let n = density.dimension();
        self.check_dimension(n)?;
        let event = self.event.as_ref().map(|text| parse_term("--event", text, &all)).transpose()?;
        let probability = event.as_ref().map(|event| whole.probability(event)).transpose()?;
        // On a flat the picture is one of the free variables.
        let event =
            event.map(|event| whole.chart().map_or(event.clone(), |chart| event.substitute(&chart.substitution())));
        let samples = match self.samples {
            None => Vec::new(),
            Some(count) => density.sample(count as usize, self.seed)?,
        };
        let density = AnyDensity::Real(density.clone());
        let mode = if self.mode { Some(self.find_mode(&density)?) } else { None };
        let marks = Marks {
            title: settings.title.clone(),
            subtitle,
            samples: on_page(&samples, n),
            mode: mode.clone(),
            event,
            probability,
        };
        let values = |points: &[f64]| values(&density, points);
        let scene = self.scene(&density, &values, marks, settings, progress)?;
        let report = Report {
            output: settings.path.display().to_string(),
            row: 0,
            cells: scene.cells.len(),
            samples: samples.len() / n,
            mode: mode.map(|point| point.into_iter().map(Value::from).collect()),
            probability: probability.and_then(finite),
            panels: Vec::new(),
            width: settings.width,
            seconds: 0.0,
        };
        Ok((report, render(&scene, settings.kind, settings.width)?))
    }

    /// Returns the scene of a density over one or two real variables and nothing else.
    pub fn scene<'a>(
        &self,
        density: &AnyDensity,
        values: &'a DensityFunction<'a>,
        marks: Marks,
        settings: &PictureSettings,
        progress: &Progress,
    ) -> Result<DensityScene<'a>> {
        let constraint = density.constraint();
        let marginals = match self.marginals {
            false => None,
            true => Some(
                constraint.reals.iter().map(|var| Ok(curve(&density.marginal(var.name())?))).collect::<Result<_>>()?,
            ),
        };
        Ok(DensityScene {
            title: marks.title,
            subtitle: marks.subtitle,
            axes: constraint.reals.iter().map(Var::to_string).collect(),
            cells: cells(&constraint, progress)?,
            show_cells: self.cells,
            y_down: settings.y_down,
            density: values,
            samples: marks.samples,
            mode: marks.mode,
            marginals,
            event: match &marks.event {
                None => Vec::new(),
                Some(event) => cells(&within(&constraint, event), progress)?,
            },
            event_text: marks.probability.zip(self.event.as_deref()).map(|(p, event)| {
                let name = if event.chars().count() <= LEGIBLE { event } else { "event" };
                format!("{name}, probability {p:.4}")
            }),
        })
    }

    /// Fails if a density over so many real variables has no such picture.
    pub fn check_dimension(&self, n: usize) -> Result<()> {
        ensure!(n <= 2, "a picture needs 1 or 2 variables, this density has {n}; fix the others with --given");
        ensure!(n == 2 || !self.marginals, "--marginals: over one variable the curve is the marginal; leave it out");
        Ok(())
    }

    pub fn find_mode(&self, density: &AnyDensity) -> Result<Vec<f64>> {
        let found = density.mode(&ModeOptions { gap: 1e-4, ..ModeOptions::default() })?;
        // The star may be off by less than its size, but not be at another place.
        if matches!(found.stop, ModeStop::NodeLimit | ModeStop::TimeLimit) && found.gap > 0.01 {
            bail!("--mode: the search reached its limit with a gap of {:.2}; `pal mode` has more options", found.gap);
        }
        Ok(found.point)
    }
}
