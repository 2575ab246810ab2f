//! The fits of `pal demo`: a density of simulated walkers on the campus, and a mixture of Gaussians for comparison.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Parser;
use pal::formula::Constraint;
use serde::Serialize;

use super::plot_density::cells;
use super::{data, fit};
use crate::learn::{Data, Saved, Summary};
use crate::picture::Point;
use crate::picture::density::{DensityScene, render};
use crate::picture::file::PictureFormat;
use crate::progress::Progress;
use crate::{Global, output};

const WIDTH: u32 = 1080;
const SAMPLES: usize = 3000;
const PEOPLE: &str = "400";

/// Commands as they are typed.
#[derive(Parser)]
#[command(name = "pal")]
struct TypedCommand {
    #[command(subcommand)]
    command: Fits,
}

#[derive(clap::Subcommand)]
enum Fits {
    Fit(Box<fit::Args>),
    Data(data::Args),
}

/// Name, title and options of a fit.
const FITS: [(&str, &str, &[&str]); 2] = [
    (
        "fit",
        "Walkers on the campus: a density that stays on the map",
        &["--knots", "32", "--components", "24", "--learning-rate", "0.03"],
    ),
    ("gmm", "The same walkers: 50 Gaussians leak into the buildings", &["--baseline", "gmm", "--components", "50"]),
];

#[derive(Serialize)]
struct FitReport<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    command: String,
    picture: String,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Fits both models, prints their comparison and draws them.
pub fn present(campus: &Constraint, directory: &Path, out: &mut impl Write, global: Global) -> Result<()> {
    let file = |name: &str| directory.join(name).display().to_string();
    let (map, walkers) = (file("campus.geojson"), file("campus-walkers.csv"));
    let made = ["pal", "data", "campus", "--people", PEOPLE, "--seed", "1", "-o", &walkers];
    if let Fits::Data(args) = TypedCommand::try_parse_from(made)?.command {
        data::make(&args)?;
    }
    if !global.json {
        writeln!(out, "\n{:<9} {:>10} {:>8}  {:<20} mass outside", "fit", "parameters", "s", "test log-density")?;
    }
    for (name, title, options) in FITS {
        let model = file(&format!("campus-{name}.safetensors"));
        let words = [
            &["pal", "fit", "--constraint", &map, "--data", &walkers, "--group", "trajectory_id"],
            options,
            &["--epochs", "60", "--patience", "8", "--restart", "-o", &model],
        ]
        .concat();
        let Fits::Fit(args) = TypedCommand::try_parse_from(&words)?.command else { continue };
        let summary = fit::summary(*args, global)?.context("the fit was stopped")?;
        let saved = Saved::load(Path::new(&model))?;
        let picture = directory.join(format!("campus-{name}.png"));
        output::replace(&picture, &draw(&saved, campus, title, &summary, global)?)?;
        let row = FitReport {
            kind: "fit",
            name,
            command: words.join(" "),
            picture: picture.display().to_string(),
            summary: &summary,
        };
        if global.json {
            output::json_line(out, &row)?;
        } else {
            let likelihood = summary.test_ll.map_or(String::new(), |ll| format!("{ll:.4}"));
            let Summary { params, training_seconds, violation, outside, samples, .. } = &summary;
            let percent = 100.0 * violation;
            writeln!(
                out,
                "{:<9} {params:>10} {training_seconds:>8.1}  {likelihood:<20} {percent:.2} % \
                 ({outside} of {samples} samples)",
                summary.model
            )?;
        }
        out.flush()?;
    }
    Ok(())
}

fn draw(saved: &Saved, campus: &Constraint, title: &str, summary: &Summary, global: Global) -> Result<Vec<u8>> {
    let progress = Progress::new("drawing", !global.quiet);
    let data = |points: &[f64]| Data { inputs: Vec::new(), points: points.to_vec(), dimension: 2, regions: None };
    let density = |points: &[f64]| match saved.log_prob(&data(points)) {
        Ok(logs) => logs.into_iter().map(f64::exp).collect(),
        Err(_) => vec![0.0; points.len() / 2],
    };
    let samples: Vec<Point> = saved.sample(SAMPLES, 1)?.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
    let likelihood = summary.test_ll.map_or(String::new(), |ll| format!("test log-density {ll:.3}, "));
    let scene = DensityScene {
        title: Some(title.to_string()),
        subtitle: Some(format!("{likelihood}{:.2} % of the mass outside", 100.0 * summary.violation)),
        axes: vec!["x".to_string(), "y".to_string()],
        cells: cells(campus, &progress)?,
        show_cells: false,
        y_down: false,
        density: &density,
        samples,
        mode: None,
        marginals: None,
        event: Vec::new(),
        event_text: None,
    };
    render(&scene, PictureFormat::Png, WIDTH)
}
