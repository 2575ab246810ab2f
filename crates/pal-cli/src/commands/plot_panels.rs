//! `pal plot` on a model over real and Boolean variables: a panel for each assignment that has mass.

use anyhow::{Context, Result, ensure};
use pal::formula::{Formula, Substitution, Var};
use pal::mixed::MixedDensity;
use serde::Serialize;
use serde_json::Value;

use super::plot_density::{DensityOptions, Marks, PictureSettings, Report, on_page, values};
use crate::densities::{AnyDensity, KnownValues};
use crate::numbers::finite;
use crate::options::condition::parse_term;
use crate::picture::density::render;
use crate::picture::panels::{Panel, tiled};
use crate::points::{Field, PointColumn};
use crate::progress::Progress;

/// The largest number of panels of a picture, which the help of `pal plot` tells.
const MAX_PANELS: usize = 12;
/// The largest number of assignments whose probabilities are compared.
const MAX_ASSIGNMENTS: usize = 256;

/// What a panel shows.
#[derive(Serialize)]
pub struct PanelReport {
    /// The values of the Boolean variables and categories.
    pub values: serde_json::Map<String, Value>,
    pub probability: Option<f64>,
}

/// An assignment with its probability and the density of the reals given it.
struct Assigned {
    values: Vec<bool>,
    probability: f64,
    density: AnyDensity,
}

/// Draws a panel for each assignment with mass, the most probable first.
pub fn picture(
    options: &DensityOptions,
    density: &MixedDensity,
    settings: &PictureSettings,
    progress: &Progress,
) -> Result<(Report, Vec<u8>)> {
    let constraint = density.support().constraint();
    let (n, columns) = (constraint.reals.len(), PointColumn::of(constraint));
    options.check_dimension(n)?;
    let event = options.event.as_ref().map(|text| parse_term("--event", text, constraint)).transpose()?;
    let probability = event.as_ref().map(|event| density.probability(event)).transpose()?;
    let mode = match options.mode {
        true => Some(options.find_mode(&AnyDensity::Mixed(density.clone()))?),
        false => None,
    };
    let samples = match options.samples {
        None => Vec::new(),
        Some(count) => density.sample(count as usize, options.seed)?,
    };
    let width = density.support().columns();
    let all = assigned(density)?;
    let (mut panels, mut reports, mut cells) = (Vec::new(), Vec::new(), 0);
    let across = panels_across(all.len().min(MAX_PANELS));
    for Assigned { values: assignment, probability, density } in all.into_iter().take(MAX_PANELS) {
        let numbers: Vec<f64> = assignment.iter().map(|value| f64::from(u8::from(*value))).collect();
        let point = [&vec![0.0; n][..], &numbers].concat();
        let is_here = |row: &&[f64]| row[n..] == numbers[..];
        let here: Vec<f64> = samples.chunks(width).filter(is_here).flat_map(|row| &row[..n]).copied().collect();
        let own_event = event.as_ref().map(|event| event.substitute(&fixed(&constraint.booleans, &assignment)));
        let marks = Marks {
            title: Some(title(settings.title.as_deref(), &columns, &point)),
            subtitle: Some(format!("probability {probability:.4}")),
            samples: on_page(&here, n),
            mode: mode.as_ref().filter(|mode| mode[n..] == numbers[..]).map(|mode| mode[..n].to_vec()),
            probability: own_event.as_ref().map(|event| density.probability(event)).transpose()?,
            event: own_event.filter(|event| event.as_constant() != Some(false)),
        };
        let shown = |points: &[f64]| values(&density, points);
        let scene = options.scene(&density, &shown, marks, settings, progress)?;
        cells += scene.cells.len();
        panels.push(Panel(render(&scene, settings.kind, settings.width / across as u32)?));
        reports.push(PanelReport { values: fields(&columns, &point), probability: finite(probability) });
    }
    let report = Report {
        output: settings.path.display().to_string(),
        row: 0,
        cells,
        samples: samples.len() / width,
        mode: mode.map(|point| columns.iter().map(|column| column.field(&point).coordinate()).collect()),
        probability: probability.and_then(finite),
        panels: reports,
        width: settings.width,
        seconds: 0.0,
    };
    Ok((report, tiled(&panels, across, settings.kind)?))
}

/// How many panels are side by side.
fn panels_across(count: usize) -> usize {
    match count {
        0 | 1 => 1,
        2..=4 => 2,
        _ => 3,
    }
}

/// The assignments that have mass, the most probable first.
fn assigned(density: &MixedDensity) -> Result<Vec<Assigned>> {
    let support = density.support();
    let all = support.assignments(MAX_ASSIGNMENTS).with_context(|| {
        format!("the Boolean variables have more than {MAX_ASSIGNMENTS} assignments; fix some of them with --given")
    })?;
    let names: Vec<String> = support.booleans().iter().map(Var::to_string).collect();
    let mut assigned = Vec::new();
    for values in all {
        let event = Formula::all(support.booleans().iter().zip(&values).map(|(var, value)| {
            let literal = Formula::from(var.clone());
            if *value { literal } else { !literal }
        }));
        let probability = density.probability(&event)?;
        if probability > 0.0 {
            let booleans = names.iter().cloned().zip(values.iter().copied()).collect();
            let known = KnownValues { reals: Vec::new(), booleans };
            let given = AnyDensity::Mixed(density.clone()).given(&known)?;
            assigned.push(Assigned { values, probability, density: given });
        }
    }
    ensure!(!assigned.is_empty(), "nothing to draw: no assignment has mass");
    assigned.sort_by(|a, b| b.probability.total_cmp(&a.probability).then_with(|| a.values.cmp(&b.values)));
    Ok(assigned)
}

fn fixed(booleans: &[Var], values: &[bool]) -> Substitution {
    let change =
        |change: Substitution, (var, value): (&Var, &bool)| change.boolean(var.name(), Formula::constant(*value));
    booleans.iter().zip(values).fold(Substitution::new(), change)
}

/// `mode = walk, not wet`, with the title of the whole picture in front.
fn title(whole: Option<&str>, columns: &[PointColumn], point: &[f64]) -> String {
    let value = |column: &PointColumn| match column.field(point) {
        Field::Number(_) => None,
        Field::Boolean(true) => Some(column.name.clone()),
        Field::Boolean(false) => Some(format!("not {}", column.name)),
        Field::Label(label) => Some(format!("{} = {label}", column.name)),
    };
    let values = columns.iter().filter_map(value).collect::<Vec<_>>().join(", ");
    match whole {
        None => values,
        Some(title) => format!("{title}: {values}"),
    }
}

fn fields(columns: &[PointColumn], point: &[f64]) -> serde_json::Map<String, Value> {
    let discrete = columns.iter().filter(|column| !column.is_number());
    discrete.map(|column| (column.name.clone(), column.field(point).json())).collect()
}
