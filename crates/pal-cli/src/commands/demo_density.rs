//! The densities of `pal demo`: hills along the walkways of the campus, and waves on the star.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use pal::density::Density;
use pal::density::{Basis, Family, Knots, Model, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Constraint, Formula, real};
use pal::polynomial::Polynomial;
use pal::query::ModeOptions;
use pal::region::Region;
use serde::Serialize;

use super::demo::Named;
use super::marginal::curve;
use super::plot_density::{cells, values, within};
use crate::numbers::bound;
use crate::picture::density::{DensityScene, render};
use crate::picture::file::PictureFormat;
use crate::progress::Progress;
use crate::{Global, output};

const WIDTH: u32 = 1080;
const SAMPLES: usize = 2000;
const KNOTS: usize = 14;
/// The polynomials whose squares are added up on the star: ripples around its middle, weaker outwards, and waves across.
const WAVES: [&str; 2] = [
    "(1 - 0.006*(x^2 + y^2)) * (0.000032*(x^2 + y^2)^3 - 0.0048*(x^2 + y^2)^2 + 0.18*(x^2 + y^2) - 1)",
    "(0.0016*x^5 - 0.2*x^3 + 5*x)/18 + y/20",
];

/// Weight, middle and width of the hills on the campus.
const HILLS: [(f64, [f64; 2], [f64; 2]); 4] = [
    (0.34, [36.0, 62.0], [9.0, 9.0]),
    (0.26, [83.0, 47.0], [7.0, 10.0]),
    (0.24, [52.0, 20.0], [11.0, 6.0]),
    (0.16, [106.0, 24.0], [8.0, 9.0]),
];

#[derive(Serialize)]
struct Row {
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

/// A density, and what is asked about it.
struct Example<'a> {
    name: &'static str,
    title: &'static str,
    constraint: &'a Constraint,
    settings: Settings,
    params: fn(&Family) -> Result<Vec<f64>>,
    event: (&'static str, Formula),
    /// Drawn in the picture.
    samples: usize,
    marginals: bool,
}

/// Draws the densities, prints what is known about them, and returns where the model of the campus is.
pub fn present(regions: &[Named; 3], directory: &Path, out: &mut impl Write, global: Global) -> Result<PathBuf> {
    let [_, (_, _, campus), (_, _, star)] = regions;
    let examples = [
        Example {
            name: "campus",
            title: "Where people walk on the campus",
            constraint: campus,
            settings: Settings::Spline(SplineSettings { knots: Knots::Uniform(KNOTS), components: HILLS.len() }),
            params: |family| Ok(hills(family)),
            event: ("x < 60", real("x").lt(60)),
            samples: SAMPLES,
            marginals: true,
        },
        Example {
            name: "star",
            title: "Waves on a star",
            constraint: star,
            settings: Settings::SumOfSquares(SumOfSquaresSettings {
                degree: Some(8),
                components: WAVES.len(),
                basis: Basis::Orthonormal,
                subset: None,
            }),
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
        let family = Family::new(&Region::new(example.constraint)?, &example.settings)?;
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
            let Row { name, parameters, milliseconds, gap, .. } = row;
            writeln!(out, "{name:<9} {parameters:>10} {milliseconds:>8.1}  {event:<18} {mode:<18} {}", bound(gap))?;
        }
        out.flush()?;
    }
    Ok(path)
}

impl Example<'_> {
    fn row(&self, family: &Family, density: &Density, directory: &Path, start: Instant, global: Global) -> Result<Row> {
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
            density: &|points| values(density, points),
            samples: samples.chunks_exact(2).map(|p| [p[0], p[1]]).collect(),
            mode: Some(mode.point.clone()),
            marginals: if self.marginals { Some(vec![x?, y?]) } else { None },
            event: cells(&within(self.constraint, &self.event.1), &progress)?,
            event_text: Some(format!("{}, probability {probability:.4}", self.event.0)),
        };
        let path = directory.join(format!("{}-density.png", self.name));
        output::replace(&path, &render(&scene, PictureFormat::Png, WIDTH)?)?;
        Ok(Row {
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

/// Parameters of a spline mixture whose components are close to normal densities: the splines are their square roots.
fn hills(family: &Family) -> Vec<f64> {
    let mut params = Vec::with_capacity(family.num_params());
    for (weight, middle, width) in HILLS {
        params.push(weight.ln());
        for (axis, (middle, width)) in family.support().grid().axes().iter().zip(middle.into_iter().zip(width)) {
            let knots = axis.positions();
            let root = |y: &f64| (-((y - middle) / (2.0 * width)).powi(2)).exp();
            // Derivatives are per distance of the knots.
            let step = (knots[knots.len() - 1] - knots[0]) / (knots.len() - 1) as f64;
            params.extend(knots.iter().map(root));
            params.extend(knots.iter().map(|y| -(y - middle) / (2.0 * width * width) * root(y) * step));
        }
    }
    params
}

/// Parameters of a sum of squares of given polynomials: their inner products with the orthonormal basis, which are exact up to
/// rounding. The density `(b0 + b)^2 / 2` gives a polynomial `p` the expectation `(<b0 p b0> + <b p b>) / 2 + <b0 p b>`, and
/// `b0` is constant.
fn waves(family: &Family) -> Result<Vec<f64>> {
    let waves: Vec<Polynomial> = WAVES.iter().map(|text| Polynomial::parse(text)).collect::<Result<_, _>>()?;
    let per = family.num_params() / waves.len();
    let square = |member: usize, sign: f64| -> Vec<f64> {
        let mut part = vec![0.0; per];
        part[1] = 1.0;
        if member > 1 {
            part[member] = sign;
        }
        part.repeat(waves.len())
    };
    let rows: Vec<f64> = (1..per).flat_map(|member| [square(member, 1.0), square(member, -1.0)].concat()).collect();
    let values = family.expectation(&waves)?.values(&rows)?;
    let value = |member: usize, minus: usize, wave: usize| values[(2 * (member - 1) + minus) * waves.len() + wave];
    let coefficient = |member: usize, wave: usize| match member {
        0 => 0.0,
        1 => value(1, 0, wave),
        _ => (value(member, 0, wave) - value(member, 1, wave)) / 2.0,
    };
    Ok((0..waves.len()).flat_map(|wave| (0..per).map(move |member| coefficient(member, wave))).collect())
}
