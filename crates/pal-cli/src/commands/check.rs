//! `pal check`: what kind of region a constraint describes.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::density::{HistogramSettings, Knots};
use pal::formula::{Category, Constraint, Var};
use pal::mixed::MixedFamily;
use pal::moments::Method;
use pal::number::{Rational, to_f64};
use pal::polynomial::Polynomial;
use pal::region::{Cell, DependentVariable, Flat, MAX_DIMENSION, Region, Satisfiability, Status, SurfaceMeasure};
use pal::wmi::{Piecewise, Problem, WmiError};
use serde::Serialize;

use crate::input::Input;
use crate::numbers::{ExactSum, brief, counted, finite, readable};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Tell what kind of region a constraint describes
///
/// Prints the variables in their order, the status, the number of cells, the exact volume and the bounding box. The
/// status is bounded, unbounded (with a ray), empty, lower-dimensional (with a witness point), or no-volume if the
/// search for a witness gave up. All of these are answers, with exit code 0. Of a flat, a region on which equalities
/// hold, it prints the dimension, the free variables, the equalities and the surface measure. Of a constraint with Boolean
/// variables it also prints categories and parts: sets of cells on which the same values are allowed. The volume is then
/// the sum over all values. A script of SMT-LIB with several check-sat commands is answered one by one. Constraints with
/// more than 14 real or 20 Boolean variables are not cut into cells: they are empty, or have a volume where independent
/// parts allow it, or are satisfiable, with a witness.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal check region.smt2\n  \
    pal check map.geojson --meaning walkable --json\n  \
    echo '(declare-const x Real) (assert (<= 0 x 1))' | pal check - --format smt2\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
}

/// All that was found out about a region.
struct Findings {
    status: Status,
    cells: Option<usize>,
    volume: Option<Rational>,
    bounding_box: Option<Extents>,
    flat: Option<FlatFindings>,
    /// Why a region with points and without volume is no flat.
    problem: Option<String>,
    /// The sets of cells on which the same assignments are allowed, where there are Boolean variables.
    parts: Option<usize>,
}

/// What was found out about a region without volume on which equalities hold.
struct FlatFindings {
    flat: Arc<Flat>,
    measure: Option<SurfaceMeasure>,
    /// Equalities that hold on the whole region.
    dependents: Vec<String>,
}

type Extents = Vec<(Rational, Rational)>;

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let questions = args.input.questions()?;
    let mut out = output::stdout();
    let several = questions.len() > 1;
    for (k, (line, constraint)) in questions.into_iter().enumerate() {
        let start = Instant::now();
        let findings = answer(&constraint, global).with_context(|| args.input.name())?;
        let line = line.filter(|_| several);
        if global.json {
            let report = report(&args.input.name(), line, &constraint, &findings, start.elapsed().as_secs_f64());
            output::json_line(&mut out, &report)?;
        } else {
            if k > 0 {
                writeln!(out)?;
            }
            print(&mut out, &args.input.name(), line, &constraint, &findings)?;
        }
        out.flush()?;
    }
    Ok(Outcome::Done)
}

/// Constraints with more Boolean variables than this are not cut into cells, of which there may be two for each.
const MANY_BOOLEANS: usize = 20;

/// Whether a constraint has too many variables to be cut into cells. Its integrals are those of its independent parts.
pub fn is_wide(constraint: &Constraint) -> bool {
    constraint.reals.len() > MAX_DIMENSION || constraint.booleans.len() > MANY_BOOLEANS
}

fn answer(constraint: &Constraint, global: Global) -> Result<Findings> {
    if is_wide(constraint) {
        return without_cells(constraint);
    }
    Ok(examine(&Region::new(constraint)?, &Progress::new("checking", !global.quiet)))
}

/// What can be found out without cells: whether there are solutions, and the volume if independent parts have one.
fn without_cells(constraint: &Constraint) -> Result<Findings> {
    let found = |status, volume| Findings {
        status,
        cells: None,
        volume,
        bounding_box: None,
        flat: None,
        problem: None,
        parts: None,
    };
    let point = match constraint.satisfiability()? {
        Satisfiability::Satisfiable { reals, .. } => reals,
        Satisfiability::Unsatisfiable => return Ok(found(Status::Empty, Some(Rational::ZERO))),
        Satisfiability::Undecided => bail!("undecided after many conflicts; fix some of the variables"),
    };
    let problem = Problem::new(constraint.clone(), &Piecewise::from(Polynomial::one()), Vec::new());
    Ok(match problem.solve(Method::Exact).map(|solution| solution.total.exact.unwrap_or_default()) {
        Ok(volume) if volume.is_zero() => found(Status::LowerDimensional(point), Some(volume)),
        Ok(volume) => found(Status::Bounded, Some(volume)),
        Err(WmiError::Unbounded(ray)) => found(Status::Unbounded(ray), None),
        Err(error) => {
            let problem = Some(format!("the volume is not known: {error}"));
            Findings { problem, ..found(Status::Satisfiable(point), None) }
        }
    })
}

fn examine(region: &Region, progress: &Progress) -> Findings {
    let bounding_box = Mutex::new(None);
    let volumes = region.map_cells(|cell| {
        progress.step();
        let extents = extents(&cell);
        let mut known = bounding_box.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(match known.take() {
            None => extents,
            Some(known) => hull(known, extents),
        });
        drop(known);
        cell.exact_volume()
    });
    match volumes {
        Err(ray) => Findings {
            status: Status::Unbounded(ray),
            cells: None,
            volume: None,
            bounding_box: None,
            flat: None,
            problem: None,
            parts: None,
        },
        Ok(volumes) => {
            let cells = volumes.len();
            let status = if cells == 0 { region.status_without_volume() } else { Status::Bounded };
            let mut sum = ExactSum::default();
            volumes.into_iter().for_each(|volume| sum.add(volume));
            let bounding_box = bounding_box.into_inner().unwrap_or_else(PoisonError::into_inner);
            let (flat, problem) = match status {
                Status::LowerDimensional(_) => match region.flat() {
                    Ok(flat) => (flat, None),
                    Err(problem) => (None, Some(problem.to_string())),
                },
                _ => (None, None),
            };
            let flat = flat.map(FlatFindings::new);
            let parts = if cells > 0 { parts(region) } else { None };
            Findings { status, cells: Some(cells), volume: Some(sum.total()), bounding_box, flat, problem, parts }
        }
    }
}

/// The number of parts that densities over reals and Booleans have: cells on which the same assignments are allowed.
/// `None` without Boolean variables, and where there are no such densities.
fn parts(region: &Region) -> Option<usize> {
    let constraint = region.constraint();
    if constraint.booleans.is_empty() || constraint.reals.is_empty() {
        return None;
    }
    let coarse = HistogramSettings { knots: Knots::Uniform(2), components: 1 };
    MixedFamily::new(region, &coarse.into()).ok().map(|family| family.support().num_parts())
}

impl FlatFindings {
    fn new(flat: Arc<Flat>) -> FlatFindings {
        let chart = flat.chart();
        let equality = |d: &DependentVariable| format!("{} = {}", chart.variables()[d.position], chart.image(d));
        let dependents = chart.dependents().iter().map(equality).collect();
        FlatFindings { measure: flat.surface_measure().ok(), dependents, flat }
    }
}

fn extents(cell: &Cell) -> Extents {
    let mut vertices = cell.polytope().exact_vertices().into_iter();
    let first: Vec<Rational> = vertices.next().unwrap_or_default();
    let point = |vertex: Vec<Rational>| vertex.into_iter().map(|x| (x.clone(), x)).collect();
    vertices.fold(point(first), |known, vertex| hull(known, point(vertex)))
}

fn hull(a: Extents, b: Extents) -> Extents {
    a.into_iter().zip(b).map(|((low, high), (low2, high2))| (low.min(low2), high.max(high2))).collect()
}

#[derive(Serialize)]
struct Report {
    status: &'static str,
    variables: Vec<String>,
    booleans: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<CategoryReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    atoms: usize,
    cells: Option<usize>,
    volume: Option<f64>,
    volume_exact: Option<String>,
    bounding_box: Option<Vec<[f64; 2]>>,
    ray: Option<Vec<f64>>,
    witness: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flat: Option<FlatReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    file: String,
    seconds: f64,
}

#[derive(Serialize)]
struct CategoryReport {
    name: String,
    values: Vec<String>,
}

#[derive(Serialize)]
struct FlatReport {
    dimension: usize,
    free: Vec<String>,
    dependents: Vec<String>,
    surface_measure: Option<SurfaceReport>,
}

/// A surface measure: the exact volume of free coordinates times the root of the exact square of a factor.
#[derive(Serialize)]
pub struct SurfaceReport {
    value: Option<f64>,
    free_volume: String,
    square_factor: String,
}

impl SurfaceReport {
    pub fn new(measure: &SurfaceMeasure) -> SurfaceReport {
        SurfaceReport {
            value: finite(measure.value()),
            free_volume: measure.free_volume.to_string(),
            square_factor: measure.square_factor.to_string(),
        }
    }
}

/// A surface measure as text: its value, and how it is made of exact numbers.
pub fn surface_text(measure: &SurfaceMeasure) -> String {
    let (volume, factor) = (brief(&measure.free_volume), brief(&measure.square_factor));
    format!("{:?} = {volume} sqrt({factor})", measure.value())
}

fn names(variables: &[Var]) -> Vec<String> {
    variables.iter().map(Var::to_string).collect()
}

fn report(file: &str, line: Option<usize>, constraint: &Constraint, findings: &Findings, seconds: f64) -> Report {
    let ends = |(low, high): &(Rational, Rational)| [to_f64(low), to_f64(high)];
    Report {
        status: findings.status.name(),
        variables: names(&constraint.reals),
        booleans: names(&constraint.booleans),
        categories: Category::all_of(constraint)
            .iter()
            .map(|category| CategoryReport { name: category.name().to_string(), values: category.values().to_vec() })
            .collect(),
        parts: findings.parts,
        atoms: constraint.formula.atoms().len(),
        cells: findings.cells,
        volume: findings.volume.as_ref().map(to_f64),
        volume_exact: findings.volume.as_ref().map(Rational::to_string),
        bounding_box: findings.bounding_box.as_ref().map(|extents| extents.iter().map(ends).collect()),
        ray: match &findings.status {
            Status::Unbounded(ray) => Some(ray.direction.iter().map(to_f64).collect()),
            _ => None,
        },
        witness: match &findings.status {
            Status::LowerDimensional(point) | Status::Satisfiable(point) => {
                Some(point.iter().map(Rational::to_string).collect())
            }
            _ => None,
        },
        flat: findings.flat.as_ref().map(|found| FlatReport {
            dimension: found.flat.dimension(),
            free: names(&found.flat.chart().free_variables()),
            dependents: found.dependents.clone(),
            surface_measure: found.measure.as_ref().map(SurfaceReport::new),
        }),
        line,
        file: file.to_string(),
        seconds,
    }
}

fn counted_categories(count: usize) -> String {
    if count == 1 { "1 category".to_string() } else { format!("{count} categories") }
}

fn print(
    out: &mut impl Write,
    file: &str,
    line: Option<usize>,
    constraint: &Constraint,
    findings: &Findings,
) -> Result<()> {
    let list = |vars: &[Var]| if vars.is_empty() { "none".to_string() } else { names(vars).join(", ") };
    let along = |values: &[Rational]| {
        let parts = constraint.reals.iter().zip(values).map(|(var, value)| format!("{var} = {}", brief(value)));
        parts.collect::<Vec<_>>().join(", ")
    };
    match line {
        Some(line) => writeln!(out, "file       {file}, line {line}")?,
        None => writeln!(out, "file       {file}")?,
    }
    writeln!(out, "variables  {}", list(&constraint.reals))?;
    let categories = Category::all_of(constraint);
    let in_none = |var: &&Var| !categories.iter().any(|category| category.variables().contains(var));
    let alone: Vec<Var> = constraint.booleans.iter().filter(in_none).cloned().collect();
    writeln!(out, "booleans   {}", list(&alone))?;
    for (k, category) in categories.iter().enumerate() {
        let label = if k == 0 { "categories" } else { "" };
        writeln!(out, "{label:10} {}: {}", category.name(), category.values().join(", "))?;
    }
    writeln!(out, "atoms      {}", constraint.formula.atoms().len())?;
    writeln!(out, "status     {}", findings.status.name())?;
    match &findings.status {
        Status::Unbounded(ray) => {
            writeln!(out, "ray        {}", along(&ray.direction))?;
            writeln!(out, "note       {ray}")?;
        }
        Status::LowerDimensional(point) | Status::Satisfiable(point) if !point.is_empty() => {
            writeln!(out, "witness    {}", along(point))?;
        }
        _ => {}
    }
    if let Some(found) = &findings.flat {
        writeln!(out, "note       {}", found.flat)?;
        for (k, dependent) in found.dependents.iter().enumerate() {
            writeln!(out, "{:10} {dependent}", if k == 0 { "dependent" } else { "" })?;
        }
        match &found.measure {
            Some(_) if found.flat.dimension() == 0 => {}
            Some(measure) => writeln!(out, "surface    {}", surface_text(measure))?,
            None => writeln!(out, "surface    infinite")?,
        }
    }
    if let Some(problem) = &findings.problem {
        writeln!(out, "note       {problem}")?;
    }
    if let Some(cells) = findings.cells {
        writeln!(out, "cells      {cells}")?;
    }
    if let Some(parts) = findings.parts {
        let (booleans, groups) = (counted(alone.len(), "Boolean"), counted_categories(categories.len()));
        writeln!(out, "parts      {parts}, of {booleans} and {groups}")?;
    }
    if let Some(volume) = &findings.volume {
        writeln!(out, "volume     {}", readable(volume))?;
    }
    for (axis, (low, high)) in findings.bounding_box.iter().flatten().enumerate() {
        let label = if axis == 0 { "box" } else { "" };
        writeln!(out, "{label:10} {} in [{}, {}]", constraint.reals[axis], brief(low), brief(high))?;
    }
    Ok(())
}
