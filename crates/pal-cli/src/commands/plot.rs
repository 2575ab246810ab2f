//! `pal plot`: a picture of a region and its cells, or of a density.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::region::Region;
use serde::Serialize;

use super::plot_density;
use crate::input::Input;
use crate::model_file;
use crate::numbers::counted;
use crate::picture::file::{self, PictureFormat};
use crate::picture::{CellShape, Scene};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Draw a region or a density over one or two variables
///
/// A constraint is drawn with its cells in different colours, a model as a heat map; what is forbidden is hatched. The
/// first variable runs across, the second up, on axes of equal scale. An existing file is replaced only when the
/// picture is complete.
///
/// A model over Boolean variables and categories has a panel for each assignment of them with mass, the most probable
/// first and at most 12: the density given the assignment, whose probability is under the title. --given leaves fewer.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal plot region.smt2 -o region.png\n  \
    pal plot map.geojson --y-down --triangulate --title Campus -o map.svg\n  \
    pal plot map.geojson --knots 14 --width 1600 -o bins.png\n  \
    pal plot model.safetensors --samples 2000 --mode --marginals -o density.png\n  \
    pal plot model.safetensors --event \"(<= x y)\" --title Campus -o event.svg\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The picture: .png or .svg
    #[arg(long, short, value_name = "PICTURE")]
    output: PathBuf,
    /// Constraint: split the bounding box by K equally spaced knots per axis, ends included
    #[arg(long, value_name = "K")]
    knots: Option<usize>,
    /// Constraint: draw the triangulation of the cells too
    #[arg(long)]
    triangulate: bool,
    /// Width in pixels
    #[arg(long, value_name = "PX", default_value_t = 1080, value_parser = clap::value_parser!(u32).range(100..=4000))]
    width: u32,
    /// The title above the picture
    #[arg(long, value_name = "T")]
    title: Option<String>,
    /// Constraint: draw the region in one colour, without its cells
    #[arg(long)]
    no_cells: bool,
    /// Let the second variable grow downwards, as in images
    #[arg(long)]
    y_down: bool,
    #[command(flatten)]
    density: plot_density::DensityOptions,
}

#[derive(Serialize)]
struct Report<'a> {
    output: &'a str,
    cells: usize,
    width: u32,
    seconds: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let (file, of_constraint) = args.input.as_path();
    if model_file::is_named(file) {
        return run_density(args, file, of_constraint, global);
    }
    if let Some(option) = args.density.foreign() {
        bail!("{}: {option} is for models, .safetensors files made by `pal model`", args.input.name());
    }
    let start = Instant::now();
    let kind = PictureFormat::of(&args.output)?;
    let region = args.input.region()?;
    let draw = || -> Result<(usize, Vec<u8>)> {
        let progress = Progress::new("drawing", !global.quiet);
        let mut scene = scene(&region, args.knots, args.triangulate, &progress)?;
        scene.title = args.title.clone();
        scene.show_cells = !args.no_cells;
        scene.y_down = args.y_down;
        Ok((scene.cells.len(), file::render(&scene, kind, args.width)?))
    };
    let (cells, picture) = draw().with_context(|| args.input.name())?;
    output::replace(&args.output, &picture)?;
    let path = args.output.display().to_string();
    let mut out = output::stdout();
    if global.json {
        let seconds = start.elapsed().as_secs_f64();
        output::json_line(&mut out, &Report { output: &path, cells, width: args.width, seconds })?;
    } else if !global.quiet {
        writeln!(out, "{path}: {}", counted(cells, "cell"))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn run_density(args: &Args, file: &Path, of_constraint: Option<&str>, global: Global) -> Result<Outcome> {
    let kind = PictureFormat::of(&args.output)?;
    let options =
        [("--knots", args.knots.is_some()), ("--triangulate", args.triangulate), ("--no-cells", args.no_cells)];
    let foreign = options.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = of_constraint.or(foreign) {
        bail!("{}: {option} is for constraints, and this is a model", file.display());
    }
    let settings = plot_density::PictureSettings {
        title: args.title.clone(),
        y_down: args.y_down,
        width: args.width,
        kind,
        path: &args.output,
    };
    let progress = Progress::new("drawing", !global.quiet);
    let (report, picture) = plot_density::draw(file, &args.density, &settings, &progress)?;
    drop(progress);
    output::replace(&args.output, &picture)?;
    let mut out = output::stdout();
    if global.json {
        output::json_line(&mut out, &report)?;
    } else if !global.quiet {
        writeln!(out, "{}", report.line())?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Makes a scene of the cells of a region.
pub fn scene(region: &Region, knots: Option<usize>, triangulate: bool, progress: &Progress) -> Result<Scene> {
    let mut scene = Scene::new(&region.constraint().reals)?;
    let split = knots.map(|count| region.with_uniform_knots(count)).transpose()?;
    scene.cells = split.as_ref().unwrap_or(region).map_cells(|cell| {
        progress.step();
        CellShape::new(&cell, triangulate)
    })?;
    if scene.cells.is_empty() {
        let status = region.status_without_volume();
        bail!("nothing to draw: the region is {} and covers no area; `pal check` tells more", status.name());
    }
    Ok(scene)
}
