//! `pal compile`: a family of densities on a constraint.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use pal::density::Conditioning;
use pal_burn::AnyFamily;
use serde::Serialize;

use crate::family::FamilyOptions;
use crate::input::Input;
use crate::model_file::check_output;
use crate::numbers::{bound, finite};
use crate::points::PointColumn;
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compile a family of densities on a constraint
///
/// Cuts the region into elements and computes the integrals that normalise its densities, whatever their parameters.
/// `pal model` reads the file and adds parameters. No density of the family has mass outside the constraint. A constraint
/// with Boolean variables, categories or integers makes a family over all of them together.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal compile map.geojson --family spline --knots 14 --components 8 -o map.safetensors\n  \
    pal compile region.smt2 --family sum-of-squares --degree 10 --components 4 --check -o region.safetensors\n  \
    pal compile region.smt2 --knots-at x=0,1,2.5 --knots-at y=0,1/3,1 -o region.safetensors\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The compiled family, a .safetensors file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    family: FamilyOptions,
    /// sum-of-squares: measure how well the basis of polynomials is conditioned
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    variables: Vec<String>,
    family: &'a str,
    parameters: usize,
    components: usize,
    cells: usize,
    elements: usize,
    /// The sets of cells on which the same assignments of the Boolean variables are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    conditioning: Option<ConditioningReport>,
    seconds: f64,
    output: String,
}

#[derive(Serialize)]
struct ConditioningReport {
    start: Option<f64>,
    basis: Option<f64>,
    orthonormality: Option<f64>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    args.family.check()?;
    if args.check {
        args.family.check_conditioning()?;
    }
    check_output(&args.output)?;
    let name = args.input.name();
    let region = args.input.region()?;
    let start = Instant::now();
    let compile = || -> Result<(AnyFamily, Option<Conditioning>)> {
        let _progress = Progress::waiting("compiling", !global.quiet);
        let family = args.family.compile(&region)?;
        let conditioning = if args.check { args.family.conditioning(family.base()) } else { None };
        Ok((family, conditioning))
    };
    let (compiled, conditioning) = compile().with_context(|| name.clone())?;
    let seconds = start.elapsed().as_secs_f64();
    output::replace(&args.output, &compiled.to_bytes().with_context(|| name.clone())?)?;
    let support = compiled.base().support();
    let report = Report {
        file: name,
        variables: PointColumn::of(compiled.constraint()).into_iter().map(|column| column.name).collect(),
        family: args.family.name(),
        parameters: compiled.num_params(),
        components: compiled.base().num_components(),
        cells: support.cells(),
        elements: support.elements(),
        parts: match &compiled {
            AnyFamily::Real(_) => None,
            AnyFamily::Mixed(family) => Some(family.support().num_parts()),
        },
        conditioning: conditioning.map(|c| ConditioningReport {
            start: known(c.start),
            basis: known(c.basis),
            orthonormality: finite(c.orthonormality),
        }),
        seconds,
        output: args.output.display().to_string(),
    };
    let mut out = output::stdout();
    if global.json {
        output::json_line(&mut out, &report)?;
    } else if !global.quiet {
        print(&mut out, &report, conditioning)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// A condition number, if float64 can tell it: beyond that the matrix may as well be singular.
fn known(condition: f64) -> Option<f64> {
    finite(condition).filter(|condition| *condition <= 1e16)
}

fn print(out: &mut impl Write, report: &Report, conditioning: Option<Conditioning>) -> Result<()> {
    writeln!(out, "file        {}", report.file)?;
    writeln!(out, "variables   {}", report.variables.join(", "))?;
    writeln!(out, "family      {}", report.family)?;
    writeln!(out, "parameters  {} per density", report.parameters)?;
    writeln!(out, "components  {}", report.components)?;
    writeln!(out, "cells       {}", report.cells)?;
    writeln!(out, "elements    {}", report.elements)?;
    if let Some(parts) = report.parts {
        writeln!(out, "parts       {parts}")?;
    }
    if let Some(Conditioning { start, basis, orthonormality }) = conditioning {
        let number = |condition: f64| known(condition).map_or("> 1e16".to_string(), bound);
        writeln!(out, "condition   {} at the start, {} in use", number(start), number(basis))?;
        writeln!(out, "orthonormal within {}", bound(orthonormality))?;
    }
    writeln!(out, "seconds     {:.3}", report.seconds)?;
    writeln!(out, "output      {}", report.output)?;
    Ok(())
}
