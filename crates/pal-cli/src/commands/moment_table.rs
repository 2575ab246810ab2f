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
use safetensors::tensor::{Dtype, TensorView};
use serde::Serialize;

use super::volume::note_no_volume;
use crate::numbers::{bound, counted};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// The methods that give all moments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Recurrence,
    Gasp,
}

impl Method {
    pub fn of(method: moments::Method) -> Result<Method> {
        match method {
            moments::Method::Recurrence => Ok(Method::Recurrence),
            moments::Method::Gasp => Ok(Method::Gasp),
            moments::Method::Exact => {
                bail!("--exact is for --poly; with --degree moments are doubles with error bounds")
            }
            moments::Method::Rejection { .. } => {
                bail!("--method rejection is for --poly; with --degree choose recurrence or gasp")
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Method::Recurrence => "recurrence",
            Method::Gasp => "gasp",
        }
    }
}

/// The moments of a region, and what it took.
struct Table {
    exponents: Exponents,
    moments: Vec<f64>,
    errors: Vec<f64>,
    cells: usize,
    simplices: usize,
    /// Moments by recurrence can be written with what vouches for them.
    compiled: Option<Moments>,
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
    method: Method,
    file: Option<&Path>,
    global: Global,
) -> Result<Outcome> {
    let start = Instant::now();
    let compute = || -> Result<(Region, Table, f64)> {
        let region = Region::new(constraint)?;
        let exponents = Exponents::total_degree(region.dimension(), degree)?;
        let table = match method {
            Method::Recurrence => by_recurrence(&region, exponents, global)?,
            Method::Gasp => by_cubature(&region, exponents, global)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        if let Some(at) = (0..table.moments.len()).find(|at| !(table.moments[*at] + table.errors[*at]).is_finite()) {
            let monomial = monomial(&constraint.reals, table.exponents.get(at))?;
            bail!("the moment of {monomial} is beyond the range of doubles; lower the degree or rescale the variables");
        }
        Ok((region, table, seconds))
    };
    let (region, table, seconds) = compute().with_context(|| name.to_string())?;
    if table.cells == 0 {
        note_no_volume(name, &region, global);
    }
    if let Some(path) = file {
        let bytes = table.bytes().with_context(|| name.to_string())?;
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
            count: table.exponents.len(),
            exponents: shown.then(|| table.exponents.iter().collect()),
            moments: shown.then_some(&table.moments),
            errors: shown.then_some(&table.errors),
            cells: table.cells,
            simplices: table.simplices,
            seconds,
            method: method.name(),
            file: name,
        };
        output::json_line(&mut out, &report)?;
    } else if let Some(path) = path {
        if !global.quiet {
            writeln!(out, "{path}: {}", counted(table.exponents.len(), "moment"))?;
        }
    } else {
        print(&mut out, &constraint.reals, &table)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn by_recurrence(region: &Region, exponents: Exponents, global: Global) -> Result<Table> {
    let _progress = Progress::waiting("integrating", !global.quiet);
    let compiled = Moments::compile(region, &exponents)?;
    Ok(Table {
        exponents,
        moments: compiled.values().to_vec(),
        errors: compiled.errors().to_vec(),
        cells: compiled.cells(),
        simplices: compiled.simplices(),
        compiled: Some(compiled),
    })
}

/// One integral after the other: cubature does not share work between monomials.
fn by_cubature(region: &Region, exponents: Exponents, global: Global) -> Result<Table> {
    let progress = Progress::of(exponents.len(), "integrating", !global.quiet);
    let (mut moments, mut errors, mut cells, mut simplices) = (Vec::new(), Vec::new(), 0, 0);
    for alpha in exponents.iter() {
        let monomial = monomial(&region.constraint().reals, alpha)?;
        let integral = moments::integrate(region, &monomial, moments::Method::Gasp)?;
        moments.push(integral.value);
        errors.push(integral.error);
        (cells, simplices) = (integral.cells, integral.simplices);
        progress.step();
    }
    Ok(Table { exponents, moments, errors, cells, simplices, compiled: None })
}

impl Table {
    /// The safetensors file. Moments by cubature have the same tensors, and their method as the only metadata.
    fn bytes(&self) -> Result<Vec<u8>> {
        if let Some(compiled) = &self.compiled {
            return Ok(compiled.to_bytes()?);
        }
        let doubles = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let (moments, errors) = (doubles(&self.moments), doubles(&self.errors));
        let exponents: Vec<u8> = self.exponents.flat().iter().flat_map(|a| a.to_le_bytes()).collect();
        let (m, n) = (self.exponents.len(), self.exponents.dimension());
        let tensors = [
            ("errors", TensorView::new(Dtype::F64, vec![m], &errors)?),
            ("exponents", TensorView::new(Dtype::U16, vec![m, n], &exponents)?),
            ("moments", TensorView::new(Dtype::F64, vec![m], &moments)?),
        ];
        let metadata = [("method".to_string(), Method::Gasp.name().to_string())].into();
        Ok(safetensors::serialize(tensors, Some(metadata))?)
    }
}

fn monomial(variables: &[Var], exponents: &[u16]) -> Result<Polynomial> {
    Ok(Polynomial::from_terms(variables, [(exponents.to_vec(), Rational::ONE)])?)
}

fn print(out: &mut impl Write, variables: &[Var], table: &Table) -> Result<()> {
    let names: Vec<String> = variables.iter().map(Var::to_string).collect();
    let widths: Vec<usize> = names.iter().map(|name| name.chars().count().max(3)).collect();
    for (name, width) in names.iter().zip(&widths) {
        write!(out, "{name:<width$}  ")?;
    }
    writeln!(out, "{:<24} error bound", "moment")?;
    for (at, exponents) in table.exponents.iter().enumerate() {
        for (exponent, width) in exponents.iter().zip(&widths) {
            write!(out, "{exponent:<width$}  ")?;
        }
        writeln!(out, "{:<24} {}", format!("{:?}", table.moments[at]), bound(table.errors[at]))?;
    }
    Ok(())
}
