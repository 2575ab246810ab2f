//! `pal plot`: a picture of a region and its cells.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::region::Region;
use serde::Serialize;

use crate::input::Input;
use crate::numbers::counted;
use crate::picture::file::{self, Kind};
use crate::picture::{Piece, Scene};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Draw a region over one or two variables
///
/// Shows what is forbidden (hatched), the cells in distinct colours, and axes of equal scale. An existing file is replaced only
/// when the picture is complete.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal plot region.smt2 -o region.png\n  \
    pal plot map.geojson --y-down --triangulate --title Campus -o map.svg\n  \
    pal plot map.geojson --knots 14 --width 1600 -o bins.png\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The picture: .png or .svg
    #[arg(long, short, value_name = "PICTURE")]
    output: PathBuf,
    /// Split the bounding box by K equally spaced knots per axis, ends included
    #[arg(long, value_name = "K")]
    knots: Option<usize>,
    /// Draw the triangulation of the cells too
    #[arg(long)]
    triangulate: bool,
    /// Width in pixels
    #[arg(long, value_name = "PX", default_value_t = 1080, value_parser = clap::value_parser!(u32).range(100..=4000))]
    width: u32,
    /// A line above the picture
    #[arg(long, value_name = "T")]
    title: Option<String>,
    /// Draw the region in one colour, without its cells
    #[arg(long)]
    no_cells: bool,
    /// The second variable grows downwards, as in images
    #[arg(long)]
    y_down: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    output: &'a str,
    cells: usize,
    width: u32,
    seconds: f64,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let start = Instant::now();
    let kind = Kind::of(&args.output)?;
    let region = args.input.region()?;
    let draw = || -> Result<(usize, Vec<u8>)> {
        let progress = Progress::new("drawing", !global.quiet);
        let mut scene = scene(&region, args.knots, args.triangulate, &progress)?;
        scene.title = args.title.clone();
        scene.show_cells = !args.no_cells;
        scene.y_down = args.y_down;
        Ok((scene.pieces.len(), file::render(&scene, kind, args.width)?))
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

/// The cells of a region as a scene.
pub fn scene(region: &Region, knots: Option<usize>, triangulate: bool, progress: &Progress) -> Result<Scene> {
    let mut scene = Scene::new(&region.constraint().reals)?;
    let split = knots.map(|count| region.with_uniform_knots(count)).transpose()?;
    scene.pieces = split.as_ref().unwrap_or(region).map_cells(|cell| {
        progress.step();
        Piece::new(&cell, triangulate)
    })?;
    if scene.pieces.is_empty() {
        let status = region.status_without_volume();
        bail!("nothing to draw: the region is {} and covers no area; `pal check` tells more", status.name());
    }
    Ok(scene)
}
