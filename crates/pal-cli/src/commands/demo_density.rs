//! The densities of `pal demo`: hills along the walkways of the campus, and waves on the star.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use pal::density::{Density, Family, Model};
use pal::formula::{Constraint, Formula, real};
use pal::polynomial::Polynomial;
use pal::query::ModeOptions;
use pal::region::Region;
use serde::Serialize;

use super::demo::Named;
use super::marginal::curve;
use super::plot_density::{cells, within};
use crate::family::{FamilyOptions, Gaussian, near_gaussians, squares_of};
use crate::numbers::bound;
use crate::picture::density::{DensityScene, render};
use crate::picture::file::PictureFormat;
use crate::progress::Progress;
use crate::{Global, output};

const WIDTH: u32 = 1080;
const SAMPLES: usize = 2000;
/// The polynomials whose squares are summed on the star: ripples around its middle, weaker outwards, and waves across
/// it.
const WAVES: [&str; 2] = [
    "(1 - 0.006*(x^2 + y^2)) * (0.000032*(x^2 + y^2)^3 - 0.0048*(x^2 + y^2)^2 + 0.18*(x^2 + y^2) - 1)",
    "(0.0016*x^5 - 0.2*x^3 + 5*x)/18 + y/20",
];

/// Weight, mean and standard deviation of the hills on the campus.
static HILLS: [(f64, [f64; 2], [f64; 2]); 4] = [
    (0.34, [36.0, 62.0], [9.0, 9.0]),
    (0.26, [83.0, 47.0], [7.0, 10.0]),
    (0.24, [52.0, 20.0], [11.0, 6.0]),
    (0.16, [106.0, 24.0], [8.0, 9.0]),
];

#[derive(Serialize)]
struct DensityReport {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    family: String,
    parameters: usize,
    event: &'static str,
    probability: f64,
    mode: Vec<f64>,
    log_density: f64,
    gap: f64,
    milliseconds: f64,
    pictures: Vec<String>,
}

/// The options of a family as they are typed.
#[derive(Parser)]
struct TypedFamily {
    #[command(flatten)]
    family: FamilyOptions,
}

/// A density, and what is asked about it.
struct Example<'a> {
    name: &'static str,
    title: &'static str,
    constraint: &'a Constraint,
    /// The options of the family, as they are typed.
    options: &'static [&'static str],
    params: fn(&Family) -> Result<Vec<f64>>,
    event: (&'static str, Formula),
    /// The number of samples in the picture.
    samples: usize,
    marginals: bool,
}

/// Draws the densities, prints a line about each, and returns the path of the model of the campus.
pub fn present(regions: &[Named; 3], directory: &Path, out: &mut impl Write, global: Global) -> Result<PathBuf> {
    let [_, (_, _, campus), (_, _, star)] = regions;
    let examples = [
        Example {
            name: "campus",
            title: "Where people walk on the campus",
            constraint: campus,
            options: &["--family", "spline", "--knots", "14", "--components", "4"],
            params: hills,
            event: ("x < 60", real("x").lt(60)),
            samples: SAMPLES,
            marginals: true,
        },
        Example {
            name: "star",
            title: "Waves on a star",
            constraint: star,
            options: &["--family", "sum-of-squares", "--degree", "8", "--components", "2"],
            params: waves,
            event: ("x + y < 0", (real("x") + real("y")).lt(0)),
            samples: 0,
            marginals: false,
        },
    ];
    if !global.json {
        writeln!(out, "\n{:<9} {:>10} {:>8}  {:<18} {:<18} gap", "density", "parameters", "ms", "probability", "mode")?;
    }
    let path = directory.join("campus-model.safetensors");
    for example in &examples {
        let start = Instant::now();
        let typed = TypedFamily::try_parse_from([&["pal"], example.options].concat())?;
        let family = typed.family.compile(&Region::new(example.constraint)?)?.base().clone();
        let model = Model::new(family.clone(), (example.params)(&family)?)?;
        let density = model.densities()?.pop().context("a model has a density")?;
        let row = example.row(&family, &density, directory, start, global)?;
        if example.name == "campus" {
            output::replace(&path, &model.to_bytes()?)?;
        }
        if global.json {
            output::json_line(out, &row)?;
        } else {
            let event = format!("{}: {:.4}", row.event, row.probability);
            let mode = format!("({:.3}, {:.3})", row.mode[0], row.mode[1]);
            let DensityReport { name, parameters, milliseconds, gap, .. } = row;
            writeln!(out, "{name:<9} {parameters:>10} {milliseconds:>8.1}  {event:<18} {mode:<18} {}", bound(gap))?;
        }
        out.flush()?;
    }
    Ok(path)
}

impl Example<'_> {
    fn row(
        &self,
        family: &Family,
        density: &Density,
        directory: &Path,
        start: Instant,
        global: Global,
    ) -> Result<DensityReport> {
        let progress = Progress::new(self.name, !global.quiet);
        let probability = density.probability(&self.event.1)?;
        let mode = density.mode(&ModeOptions::default())?;
        let samples = density.sample(self.samples, 1)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        let marginals = ["x", "y"].map(|name| density.marginal(name).map(|marginal| curve(&marginal)));
        let [x, y] = marginals;
        let scene = DensityScene {
            title: Some(self.title.to_string()),
            subtitle: Some(family.kind().description()),
            axes: vec!["x".to_string(), "y".to_string()],
            cells: cells(self.constraint, &progress)?,
            show_cells: false,
            y_down: false,
            density: &|points| density.log_prob(points).into_iter().map(f64::exp).collect(),
            samples: samples.chunks_exact(2).map(|p| [p[0], p[1]]).collect(),
            mode: Some(mode.point.clone()),
            marginals: if self.marginals { Some(vec![x?, y?]) } else { None },
            event: cells(&within(self.constraint, &self.event.1), &progress)?,
            event_text: Some(format!("{}, probability {probability:.4}", self.event.0)),
        };
        let path = directory.join(format!("{}-density.png", self.name));
        output::replace(&path, &render(&scene, PictureFormat::Png, WIDTH)?)?;
        Ok(DensityReport {
            kind: "density",
            name: self.name,
            family: family.kind().description(),
            parameters: family.num_params(),
            event: self.event.0,
            probability,
            log_density: mode.log_density,
            gap: mode.gap,
            mode: mode.point,
            milliseconds,
            pictures: vec![path.display().to_string()],
        })
    }
}

/// The hills as a mixture.
fn hills(family: &Family) -> Result<Vec<f64>> {
    let gaussian =
        |(weight, mean, deviation): &'static (f64, [f64; 2], [f64; 2])| Gaussian { weight: *weight, mean, deviation };
    Ok(near_gaussians(family, &HILLS.iter().map(gaussian).collect::<Vec<_>>()))
}

/// The sum of the squares of the waves.
fn waves(family: &Family) -> Result<Vec<f64>> {
    let waves: Vec<Polynomial> = WAVES.iter().map(|text| Polynomial::parse(text)).collect::<Result<_, _>>()?;
    squares_of(family, &waves)
}
