//! `pal volume`: the exact volume of a region.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result};
use pal::formula::Constraint;
use pal::moments::Method;
use pal::number::{Rational, to_f64};
use pal::polynomial::Polynomial;
use pal::region::{Region, SurfaceMeasure};
use pal::wmi::{Answer, Problem};
use serde::Serialize;

use super::check::{SurfaceReport, is_wide, surface_text};
use crate::input::Input;
use crate::numbers::{ExactSum, finite, readable};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compute the exact volume of a region
///
/// The volume is an exact fraction: the sum over all cells and all assignments of the Boolean variables. A region
/// without volume has volume 0, and a note says why; where equalities hold on all of it, its surface measure follows. An unbounded region is an error.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal volume region.smt2\n  \
    pal volume map.geojson --meaning walkable --json\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The default; volumes are always exact
    #[arg(long, hide = true)]
    exact: bool,
}

#[derive(Serialize)]
struct Report {
    volume: Option<f64>,
    volume_exact: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface_measure: Option<SurfaceReport>,
    cells: usize,
    seconds: f64,
    file: String,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let name = args.input.name();
    let constraint = args.input.constraint()?;
    let start = Instant::now();
    if is_wide(&constraint) {
        let total = apart(constraint).with_context(|| name.clone())?;
        let (volume, seconds) = (total.exact.unwrap_or_default(), start.elapsed().as_secs_f64());
        return show(name, &volume, None, total.cells, seconds, global);
    }
    let measure = || -> Result<(Region, Vec<Rational>)> {
        let progress = Progress::new("measuring", !global.quiet);
        let region = Region::new(&constraint)?;
        let volumes = region.map_cells(|cell| {
            progress.step();
            cell.exact_volume()
        })?;
        Ok((region, volumes))
    };
    let (region, volumes) = measure().with_context(|| name.clone())?;
    let cells = volumes.len();
    let mut sum = ExactSum::default();
    volumes.into_iter().for_each(|volume| sum.add(volume));
    let total = sum.total();
    let seconds = start.elapsed().as_secs_f64();
    // A point has no length, area or volume.
    let flat = if cells == 0 { region.flat().ok().flatten().filter(|flat| flat.dimension() > 0) } else { None };
    let surface = flat.as_ref().map(|flat| flat.surface_measure()).transpose().with_context(|| name.clone())?;
    match &flat {
        Some(flat) if !global.quiet => output::note(&format!("{name}: {flat}; measured by surface measure")),
        None if cells == 0 => note_no_volume(&name, &region, global),
        _ => {}
    }
    show(name, &total, surface.as_ref(), cells, seconds, global)
}

/// The volume of a constraint with many variables, of which few belong together.
fn apart(constraint: Constraint) -> Result<Answer> {
    let problem = Problem::new(constraint, &Polynomial::one().into(), Vec::new());
    Ok(problem.solve(Method::Exact)?.total)
}

fn show(
    name: String,
    total: &Rational,
    surface: Option<&SurfaceMeasure>,
    cells: usize,
    seconds: f64,
    global: Global,
) -> Result<Outcome> {
    let mut out = output::stdout();
    if global.json {
        let volume = finite(to_f64(total));
        let (volume_exact, surface_measure) = (total.to_string(), surface.map(SurfaceReport::new));
        output::json_line(&mut out, &Report { volume, volume_exact, surface_measure, cells, seconds, file: name })?;
    } else {
        writeln!(out, "file       {name}")?;
        writeln!(out, "cells      {cells}")?;
        writeln!(out, "volume     {}", readable(total))?;
        if let Some(measure) = surface {
            writeln!(out, "surface    {}", surface_text(measure))?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Prints a note that says why every integral over a region is 0, if it has no volume.
pub fn note_no_volume(name: &str, region: &Region, global: Global) {
    if global.quiet || region.cells().next().is_some() {
        return;
    }
    let status = region.status_without_volume();
    output::note(&format!("{name}: the region is {}; every integral over it is 0", status.name()));
}
