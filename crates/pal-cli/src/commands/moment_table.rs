//! `pal integrate --degree`: the moments of all monomials up to a degree, as a table, as JSON or as a safetensors file.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::formula::{Constraint, Var};
use pal::moments::{self, Exponents, Moments};
use pal::number::Rational;
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::wmi::MomentsFile;
use serde::Serialize;

use super::volume::note_no_volume;
use crate::numbers::{bound, counted};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// The methods that compute all moments together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TableMethod {
    Recurrence,
    Gasp,
}

impl TableMethod {
    pub fn of(method: moments::Method) -> Result<TableMethod> {
        match method {
            moments::Method::Recurrence => Ok(TableMethod::Recurrence),
            moments::Method::Gasp => Ok(TableMethod::Gasp),
            moments::Method::Exact => {
                bail!("--exact is for --poly; with --degree moments are float64 with error bounds")
            }
            moments::Method::Rejection { .. } => {
                bail!("--method rejection is for --poly; with --degree choose recurrence or gasp")
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            TableMethod::Recurrence => "recurrence",
            TableMethod::Gasp => "gasp",
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    variables: Vec<String>,
    degree: u16,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    exponents: Option<Vec<&'a [u16]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moments: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<&'a [f64]>,
    cells: usize,
    simplices: usize,
    seconds: f64,
    method: &'static str,
    file: &'a str,
}

pub fn run(
    name: &str,
    constraint: &Constraint,
    degree: u16,
    method: TableMethod,
    file: Option<&Path>,
    global: Global,
) -> Result<Outcome> {
    let start = Instant::now();
    let compute = || -> Result<(Region, Moments, f64)> {
        let _progress = Progress::waiting("integrating", !global.quiet);
        let region = Region::new(constraint)?;
        let exponents = Exponents::total_degree(region.dimension(), degree)?;
        let table = match method {
            TableMethod::Recurrence => Moments::compile(&region, &exponents)?,
            TableMethod::Gasp => Moments::by_cubature(&region, &exponents)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let finite = |at: &usize| (table.values()[*at] + table.errors()[*at]).is_finite();
        if let Some(at) = (0..table.values().len()).find(|at| !finite(at)) {
            let monomial = monomial(&constraint.reals, table.exponents().get(at))?;
            bail!("the moment of {monomial} is beyond the range of float64; lower the degree or rescale the variables");
        }
        Ok((region, table, seconds))
    };
    let (region, table, seconds) = compute().with_context(|| name.to_string())?;
    if table.cells() == 0 {
        note_no_volume(name, &region, global);
    }
    if let Some(path) = file {
        let content = MomentsFile { constraint: constraint.clone(), moments: table.clone() };
        let bytes = content.to_bytes().with_context(|| name.to_string())?;
        output::replace(path, &bytes)?;
    }
    let path = file.map(|path| path.display().to_string());
    let mut out = output::stdout();
    if global.json {
        let shown = path.is_none();
        let report = Report {
            output: path,
            variables: constraint.reals.iter().map(Var::to_string).collect(),
            degree,
            count: table.exponents().len(),
            exponents: shown.then(|| table.exponents().iter().collect()),
            moments: shown.then_some(table.values()),
            errors: shown.then_some(table.errors()),
            cells: table.cells(),
            simplices: table.simplices(),
            seconds,
            method: method.name(),
            file: name,
        };
        output::json_line(&mut out, &report)?;
    } else if let Some(path) = path {
        if !global.quiet {
            writeln!(out, "{path}: {}", counted(table.exponents().len(), "moment"))?;
        }
    } else {
        print(&mut out, &constraint.reals, &table)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn monomial(variables: &[Var], exponents: &[u16]) -> Result<Polynomial> {
    Ok(Polynomial::from_terms(variables, [(exponents.to_vec(), Rational::ONE)])?)
}

fn print(out: &mut impl Write, variables: &[Var], table: &Moments) -> Result<()> {
    let names: Vec<String> = variables.iter().map(Var::to_string).collect();
    let widths: Vec<usize> = names.iter().map(|name| name.chars().count().max(3)).collect();
    for (name, width) in names.iter().zip(&widths) {
        write!(out, "{name:<width$}  ")?;
    }
    writeln!(out, "{:<24} error bound", "moment")?;
    for (at, exponents) in table.exponents().iter().enumerate() {
        for (exponent, width) in exponents.iter().zip(&widths) {
            write!(out, "{exponent:<width$}  ")?;
        }
        writeln!(out, "{:<24} {}", format!("{:?}", table.values()[at]), bound(table.errors()[at]))?;
    }
    Ok(())
}
