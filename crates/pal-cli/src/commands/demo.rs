//! `pal demo`: regions decomposed, densities on them, and pictures of both, without any input file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use pal::formula::{Constraint, GeoJsonOptions, Polygon, Ring, Var, parse_geojson, reals};
use pal::number::{Rational, to_f64};
use pal::region::Region;
use pal::shapes;
use serde::Serialize;

use super::plot::scene;
use super::{demo_density, demo_fit};
use crate::numbers::{ExactSum, readable};
use crate::picture::Scene;
use crate::picture::file::{self, PictureFormat};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Decompose and draw three built-in regions, two densities, and a fit to simulated walkers
///
/// The regions are a square without a triangle, a campus map with buildings, ponds and hedges, and a seven-pointed
/// star. For each, pictures show the cells, their triangulation, and the cells split by knots. Then come a density on
/// the map and one on the star, with samples, a probability and the certified mode; and a density fitted to simulated
/// walkers on the map, compared with a mixture of Gaussians that does not know the map. Other commands can be tried on
/// the files of the map, the walkers and the models.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal demo\n  \
    pal demo -o pictures\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The directory for the pictures; it is made if it does not exist
    #[arg(long, short, value_name = "DIR", default_value = "out")]
    output: PathBuf,
}

/// A map of a campus: concave buildings, one with a court, some touching or overlapping.
pub const CAMPUS: &str = include_str!("../../assets/campus.geojson");
/// The number of knots per axis in the third picture.
const KNOTS: usize = 9;
const WIDTH: u32 = 1080;

/// Name, title and constraint of a region.
pub type Named = (&'static str, &'static str, Constraint);

/// What was found about one region.
#[derive(Serialize)]
struct RegionReport {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    atoms: usize,
    cells: usize,
    triangles: usize,
    area: f64,
    area_exact: String,
    milliseconds: f64,
    pictures: Vec<String>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let directory = &args.output;
    fs::create_dir_all(directory)
        .context("cannot make the directory")
        .with_context(|| directory.display().to_string())?;
    claim(directory).with_context(|| directory.display().to_string())?;
    let map = directory.join("campus.geojson");
    output::replace(&map, CAMPUS.as_bytes())?;
    let mut out = output::stdout();
    if !global.json {
        writeln!(out, "{:<9} {:>5} {:>6} {:>10} {:>8}  area", "region", "atoms", "cells", "triangles", "ms")?;
    }
    let regions = regions()?;
    for (name, title, constraint) in &regions {
        let (row, area) = present(name, title, constraint, directory, global)?;
        if global.json {
            output::json_line(&mut out, &row)?;
        } else {
            let RegionReport { name, atoms, cells, triangles, milliseconds, .. } = row;
            let area = readable(&area);
            writeln!(out, "{name:<9} {atoms:>5} {cells:>6} {triangles:>10} {milliseconds:>8.1}  {area}")?;
        }
        out.flush()?;
    }
    let model = demo_density::present(&regions, directory, &mut out, global)?;
    demo_fit::present(&regions[1].2, directory, &mut out, global)?;
    if !global.json && !global.quiet {
        writeln!(out, "\nPictures: {}", directory.join("*.png").display())?;
        writeln!(out, "Try next: pal check {}", map.display())?;
        writeln!(out, "          pal sample {} -n 10", model.display())?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The file that says that a directory is one of this command.
const MARK: &str = ".pal-demo";

/// Fails if the directory holds files that are not from this command: the demo replaces files of many names.
fn claim(directory: &Path) -> Result<()> {
    let mark = directory.join(MARK);
    let is_empty = fs::read_dir(directory).context("cannot read")?.next().is_none();
    // Earlier versions left no mark, but the map.
    let is_own = mark.is_file() || fs::read(directory.join("campus.geojson")).is_ok_and(|map| map == CAMPUS.as_bytes());
    ensure!(is_empty || is_own, "this directory has files that are not from an earlier `pal demo`; choose a new one");
    output::replace(&mark, b"Files of `pal demo`, which it may replace.\n")
}

/// Returns the built-in regions.
fn regions() -> Result<[Named; 3]> {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(-1, 1) & y.between(-1, 1);
    let triangle = x.ge(0) & y.ge(0) & (&x + &y).le(1);
    let outline = Polygon::new(Ring::new(shapes::star(7, 10.0))?, Vec::new())?;
    let star = outline.to_formula(&x, &y);
    let plane = |formula| Constraint { formula, reals: vec![Var::new("x"), Var::new("y")], booleans: Vec::new() };
    Ok([
        ("triangle", "A square without a triangle", plane(square & !triangle)),
        ("campus", "A campus with buildings, ponds and hedges", parse_geojson(CAMPUS, &GeoJsonOptions::default())?),
        ("star", "A seven-pointed star", plane(star)),
    ])
}

fn present(
    name: &'static str,
    title: &'static str,
    constraint: &Constraint,
    directory: &Path,
    global: Global,
) -> Result<(RegionReport, Rational)> {
    let progress = Progress::new(name, !global.quiet);
    let start = Instant::now();
    let region = Region::new(constraint)?;
    let found = region.map_cells(|cell| (cell.exact_volume(), cell.polytope().triangulate().len()))?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let (mut sum, mut triangles) = (ExactSum::default(), 0);
    for (area, count) in &found {
        sum.add(area.clone());
        triangles += count;
    }
    let views = [
        ("cells", format!("{title}: {} cells", found.len()), None, false),
        ("triangles", format!("{title}: {triangles} triangles"), None, true),
        ("knots", format!("{title}, split by {KNOTS} knots per axis"), Some(KNOTS), false),
    ];
    let mut pictures = Vec::new();
    for (view, title, knots, triangulate) in views {
        let path = directory.join(format!("{name}-{view}.png"));
        let scene = Scene { title: Some(title), ..scene(&region, knots, triangulate, &progress)? };
        output::replace(&path, &file::render(&scene, PictureFormat::Png, WIDTH)?)?;
        pictures.push(path.display().to_string());
    }
    let area = sum.total();
    let row = RegionReport {
        kind: "region",
        name,
        atoms: constraint.formula.atoms().len(),
        cells: found.len(),
        triangles,
        area: to_f64(&area),
        area_exact: area.to_string(),
        milliseconds,
        pictures,
    };
    Ok((row, area))
}
