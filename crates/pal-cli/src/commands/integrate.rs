//! `pal integrate`: the integral of a polynomial over a region, or all its moments up to a degree.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pal::formula::Var;
use pal::moments::{self, Integral, Method, SurfaceIntegral};
use pal::number::Rational;
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::wmi::Problem;
use serde::Serialize;

use super::check::is_wide;
use super::moment_table;
use super::volume::note_no_volume;
use crate::input::{self, ExpectedText, Input};
use crate::numbers::{bound, counted, finite, readable};
use crate::options::method::{self, MethodOptions};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Integrate a polynomial over a region
///
/// Computes the integral with a bound on its error, or as an exact fraction with --exact, summed over all assignments
/// of the Boolean variables. With --degree it computes the moments of all monomials up to that degree, with exponents
/// in the order of the variables, and writes them to a safetensors file if asked. A region without volume gives 0 and a
/// note, but where equalities hold on all of it, the integral is by surface measure, and a note says so. An unbounded region is an error.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal integrate region.smt2 --poly \"x^2*y\" --exact\n  \
    pal integrate map.geojson --poly-file density.txt --method gasp --json\n  \
    pal integrate region.smt2 --poly x --method rejection --samples 10000 --seed 1\n  \
    pal integrate region.smt2 --degree 4 -o moments.safetensors\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    integrand: IntegrandOptions,
    #[command(flatten)]
    method: MethodOptions,
    /// --degree: write the moments to this safetensors file
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["poly", "poly_file"])]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct IntegrandOptions {
    /// The polynomial, such as "3*x^2*y - 1/2"; numbers are exact
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    poly: Option<String>,
    /// A file with the polynomial
    #[arg(long, value_name = "PATH")]
    poly_file: Option<PathBuf>,
    /// All monomials up to this total degree
    #[arg(long, value_name = "D")]
    degree: Option<u16>,
}

/// The longest polynomial that is repeated, in characters; of longer ones only the size is told.
const READABLE: usize = 80;

#[derive(Serialize)]
struct Report {
    value: Option<f64>,
    exact: Option<String>,
    /// On a flat the exact number is the integral over the free variables, to be multiplied by the root of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    square_factor: Option<String>,
    error_bound: Option<f64>,
    cells: usize,
    /// Cells that took exact arithmetic, because float64 left too few certain digits.
    exact_cells: usize,
    simplices: usize,
    seconds: f64,
    method: &'static str,
    /// As text, or its size where the text is long.
    polynomial: String,
    file: String,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    let method = args.method.method()?;
    let name = args.input.name();
    if let Some(degree) = args.integrand.degree {
        let method = moment_table::TableMethod::of(method)?;
        let constraint = args.input.constraint()?;
        return moment_table::run(&name, &constraint, degree, method, args.output.as_deref(), global);
    }
    let constraint = args.input.constraint()?;
    let polynomial = args.integrand.polynomial(&constraint.reals)?;
    let start = Instant::now();
    let integrate = || -> Result<(Option<Region>, Integral)> {
        let _progress = Progress::waiting("integrating", !global.quiet);
        let (region, integral) = if is_wide(&constraint) && matches!(method, Method::Exact | Method::Recurrence) {
            let problem = Problem::new(constraint.clone(), &polynomial.clone().into(), Vec::new());
            (None, problem.solve(method)?.total)
        } else {
            let region = Region::new(&constraint)?;
            let integral = moments::integrate(&region, &polynomial, method)?;
            (Some(region), integral)
        };
        if !args.method.exact && !integral.value.is_finite() {
            bail!("the integral is beyond the range of float64; --exact gives it as a fraction");
        }
        Ok((region, integral))
    };
    let (region, mut integral) = integrate().with_context(|| name.clone())?;
    let seconds = start.elapsed().as_secs_f64();
    let surface = if let Some(region) = region.as_ref().filter(|region| integral.value == 0.0 && !region.has_volume()) {
        let on_flat = || -> Result<Option<SurfaceIntegral>> {
            let flat = region.flat().ok().flatten().filter(|flat| flat.dimension() > 0);
            let Some(flat) = flat else { return Ok(None) };
            if !global.quiet {
                output::note(&format!("{name}: {flat}; integrated by surface measure"));
            }
            Ok(Some(moments::surface_integral(&flat, &polynomial, method)?))
        };
        on_flat().with_context(|| name.clone())?
    } else {
        None
    };
    match &surface {
        // Exact numbers are those of the free variables.
        Some(surface) => {
            integral = Integral { value: surface.value(), error: surface.error(), ..surface.free.clone() };
        }
        None => {
            if let Some(region) = region.filter(|_| integral.value == 0.0) {
                note_no_volume(&name, &region, global);
            }
        }
    }
    let square_factor = surface.map(|surface| surface.square_factor);
    let mut out = output::stdout();
    // A value that happened to be computed exactly is only reported as exact if that was asked for.
    let exact = integral.exact.as_ref().filter(|_| args.method.exact);
    if global.json {
        let report = Report {
            value: finite(integral.value),
            exact: exact.map(Rational::to_string),
            square_factor: square_factor.as_ref().map(Rational::to_string),
            error_bound: finite(integral.error),
            cells: integral.cells,
            exact_cells: integral.exact_cells,
            simplices: integral.simplices,
            seconds,
            method: method::name(method),
            polynomial: shown(&polynomial),
            file: name,
        };
        output::json_line(&mut out, &report)?;
    } else {
        print(&mut out, &name, &polynomial, method, &integral, exact)?;
        if let Some(factor) = square_factor.filter(|_| exact.is_some()) {
            writeln!(out, "             times sqrt({}), by surface measure", readable(&factor))?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

impl IntegrandOptions {
    /// Reads the polynomial over these variables, from the argument or the file.
    fn polynomial(&self, variables: &[Var]) -> Result<Polynomial> {
        let Some(path) = &self.poly_file else {
            return Polynomial::parse_in(self.poly.as_deref().unwrap_or_default(), variables).context("--poly");
        };
        const WANTED: ExpectedText =
            ExpectedText { file: "a text file", content: "a polynomial, such as 3*x^2*y - 1/2" };
        let read = || -> Result<Polynomial> {
            let text = input::read(path, &WANTED)?;
            let parsed = Polynomial::parse_in(text.trim_end(), variables);
            parsed.map_err(|error| {
                let (line, column) = place(&text, error.column);
                anyhow::anyhow!("line {line}, column {column}: {}", error.problem)
            })
        };
        read().with_context(|| path.display().to_string())
    }
}

/// Returns the line and column of a character, all counted from 1.
fn place(text: &str, character: usize) -> (usize, usize) {
    let before = || text.chars().take(character.saturating_sub(1));
    let column = before().collect::<Vec<_>>().into_iter().rev().take_while(|c| *c != '\n').count();
    (before().filter(|c| *c == '\n').count() + 1, column + 1)
}

/// The polynomial as text, or its size if that is long.
fn shown(polynomial: &Polynomial) -> String {
    let text = polynomial.to_string();
    if text.len() <= READABLE {
        return text;
    }
    format!("{} of degree {}", counted(polynomial.len(), "term"), polynomial.degree().unwrap_or(0))
}

fn print(
    out: &mut impl Write,
    file: &str,
    polynomial: &Polynomial,
    method: Method,
    integral: &Integral,
    exact: Option<&Rational>,
) -> Result<()> {
    writeln!(out, "file         {file}")?;
    writeln!(out, "polynomial   {}", shown(polynomial))?;
    writeln!(out, "method       {}", method::name(method))?;
    match method {
        Method::Rejection { samples, .. } => writeln!(out, "samples      {samples}")?,
        _ => {
            writeln!(out, "cells        {}", integral.cells)?;
            if method == Method::Recurrence && integral.exact_cells > 0 {
                writeln!(out, "exactly      {}, for want of digits", counted(integral.exact_cells, "cell"))?;
            }
            writeln!(out, "simplices    {}", integral.simplices)?;
        }
    }
    writeln!(out, "value        {:?}", integral.value)?;
    match method {
        Method::Rejection { .. } => writeln!(out, "std error    {}", bound(integral.error))?,
        _ => writeln!(out, "error bound  {}", bound(integral.error))?,
    }
    if let Some(exact) = exact {
        writeln!(out, "exact        {}", readable(exact))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn places_in_text() {
        assert_eq!(place("x + y", 3), (1, 3));
        assert_eq!(place("ä +\n y", 6), (2, 2));
        assert_eq!(place("", 1), (1, 1));
        assert_eq!(place("x\n", 9), (2, 1));
    }
}
