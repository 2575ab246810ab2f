//! `pal compile`: a family of densities on a constraint.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use pal::density::{
    Basis, Compiled, Conditioning, Knots, MAX_SPLINE_DIMENSION, SosSettings, SplineMixture, SplineSettings, Subset,
    SumOfSquares,
};
use pal::number::{Rational, parse_rational};
use pal::region::Region;
use serde::Serialize;

use crate::input::Input;
use crate::model::{check_output, names};
use crate::numbers::{bound, finite};
use crate::progress::Progress;
use crate::{Global, Outcome, output};

/// Compile a family of densities on a constraint
///
/// Cuts the region into pieces and computes all that normalising a density takes, for any parameters. The file is read by
/// `pal model`, which adds parameters. Nothing outside the constraint has mass under any density of the family.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal compile map.geojson --family spline --knots 14 --mixtures 8 -o map.safetensors\n  \
    pal compile region.smt2 --family sos --degree 10 --components 4 --check -o region.safetensors\n  \
    pal compile region.smt2 --knots-at x=0,1,2.5 --knots-at y=0,1/3,1 -o region.safetensors\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The compiled family, a .safetensors file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Which densities
    #[arg(long, value_enum, default_value = "spline")]
    family: Family,
    /// spline: equally spaced knots per axis, ends included [default: 14, for four variables 6]
    #[arg(long, value_name = "K")]
    knots: Option<usize>,
    /// spline: exact positions of the knots of one variable, in place of --knots; may be repeated
    #[arg(long, value_name = "VAR=P,P,...", value_parser = parse_positions)]
    knots_at: Vec<Positions>,
    /// spline: components of the mixture [default: 8]
    #[arg(long, value_name = "M")]
    mixtures: Option<usize>,
    /// sos: total degree of the polynomials that are squared [default: 6]
    #[arg(long, value_name = "D")]
    degree: Option<u16>,
    /// sos: number of squares [default: 4]
    #[arg(long, value_name = "C")]
    components: Option<usize>,
    /// sos: the polynomials that coefficients refer to [default: orthonormal]
    #[arg(long, value_enum)]
    basis: Option<BasisName>,
    /// sos: take a random choice of so many members of the basis
    #[arg(long, value_name = "N")]
    terms: Option<usize>,
    /// sos: the seed of that choice [default: 0]
    #[arg(long, value_name = "S", requires = "terms")]
    terms_seed: Option<u64>,
    /// sos: measure how well the basis is conditioned
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Family {
    /// Mixtures of products of squared cubic splines
    Spline,
    /// Sums of squares of polynomials
    Sos,
}

#[derive(Clone, Copy, ValueEnum)]
enum BasisName {
    /// Orthonormal on the constraint
    Orthonormal,
    /// Orthonormal on the box around it
    Legendre,
    /// Monomials, for comparison
    Monomial,
}

#[derive(Clone)]
struct Positions {
    variable: String,
    positions: Vec<Rational>,
}

fn parse_positions(text: &str) -> Result<Positions> {
    let (name, list) = text.rsplit_once('=').context("give a variable and its knots, such as x=0,1,2.5")?;
    let positions = list.split(',').map(|part| parse_rational(part.trim())).collect::<Result<_, _>>()?;
    Ok(Positions { variable: name.trim().to_string(), positions })
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    variables: Vec<&'a str>,
    family: &'static str,
    parameters: usize,
    components: usize,
    cells: usize,
    elements: usize,
    conditioning: Option<Condition>,
    seconds: f64,
    output: String,
}

#[derive(Serialize)]
struct Condition {
    start: Option<f64>,
    basis: Option<f64>,
    orthonormality: Option<f64>,
}

pub fn run(args: &Args, global: Global) -> Result<Outcome> {
    args.check_options()?;
    check_output(&args.output)?;
    let name = args.input.name();
    let region = args.input.region()?;
    let start = Instant::now();
    let compile = || -> Result<(Compiled, Option<Conditioning>)> {
        let _progress = Progress::waiting("compiling", !global.quiet);
        args.compile(&region)
    };
    let (compiled, conditioning) = compile().with_context(|| name.clone())?;
    let seconds = start.elapsed().as_secs_f64();
    output::replace(&args.output, &compiled.to_bytes().with_context(|| name.clone())?)?;
    let domain = compiled.domain();
    let report = Report {
        file: name,
        variables: names(domain.constraint()),
        family: match args.family {
            Family::Spline => "spline",
            Family::Sos => "sos",
        },
        parameters: compiled.num_params(),
        components: compiled.num_components(),
        cells: domain.cells(),
        elements: domain.elements(),
        conditioning: conditioning.map(|c| Condition {
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

impl Args {
    /// Options of the other family are mistakes, not noise.
    fn check_options(&self) -> Result<()> {
        let of_splines = [
            ("--knots", self.knots.is_some()),
            ("--knots-at", !self.knots_at.is_empty()),
            ("--mixtures", self.mixtures.is_some()),
        ];
        let of_squares = [
            ("--degree", self.degree.is_some()),
            ("--components", self.components.is_some()),
            ("--basis", self.basis.is_some()),
            ("--terms", self.terms.is_some()),
            ("--check", self.check),
        ];
        let (foreign, other, instead) = match self.family {
            Family::Spline => (&of_squares[..], "sos", "--knots, --knots-at and --mixtures"),
            Family::Sos => (&of_splines[..], "spline", "--degree, --components, --basis, --terms and --check"),
        };
        if let Some((option, _)) = foreign.iter().find(|(_, given)| *given) {
            bail!("{option} is for --family {other}; this family has {instead}");
        }
        Ok(())
    }

    fn compile(&self, region: &Region) -> Result<(Compiled, Option<Conditioning>)> {
        if self.family == Family::Spline {
            let n = region.dimension();
            ensure!(
                n <= MAX_SPLINE_DIMENSION,
                "--family spline is for 1 to {MAX_SPLINE_DIMENSION} variables, the constraint has {n}; use --family sos"
            );
            let settings = SplineSettings { knots: self.knots(region)?, mixtures: self.mixtures.unwrap_or(8) };
            return Ok((SplineMixture::compile(region, &settings)?.into(), None));
        }
        let settings = SosSettings {
            degree: self.degree.unwrap_or(6),
            components: self.components.unwrap_or(4),
            basis: match self.basis {
                None | Some(BasisName::Orthonormal) => Basis::Orthonormal,
                Some(BasisName::Legendre) => Basis::Legendre,
                Some(BasisName::Monomial) => Basis::Monomial,
            },
            subset: self.terms.map(|terms| Subset { terms, seed: self.terms_seed.unwrap_or(0) }),
        };
        let family = SumOfSquares::compile(region, &settings)?;
        let conditioning = self.check.then(|| family.conditioning());
        Ok((family.into(), conditioning))
    }

    /// Equally spaced knots, but for the variables that have their own.
    fn knots(&self, region: &Region) -> Result<Knots> {
        // In four dimensions the form has as many entries as the fourth power of the knots.
        let count = self.knots.unwrap_or(if region.dimension() < MAX_SPLINE_DIMENSION { 14 } else { 6 });
        if self.knots_at.is_empty() {
            return Ok(Knots::Uniform(count));
        }
        let variables = names(region.constraint());
        for (k, Positions { variable, .. }) in self.knots_at.iter().enumerate() {
            let known = variables.join(", ");
            ensure!(variables.contains(&variable.as_str()), "--knots-at: no variable `{variable}`; there is {known}");
            let twice = self.knots_at[..k].iter().any(|earlier| earlier.variable == *variable);
            ensure!(!twice, "--knots-at: `{variable}` is given twice");
        }
        let own = |name: &str| self.knots_at.iter().find(|own| own.variable == name).map(|own| own.positions.clone());
        if let Some(all) = variables.iter().map(|name| own(name)).collect() {
            return Ok(Knots::At(all));
        }
        ensure!((2..=10_000).contains(&count), "{count} knots per axis; give between 2 and 10000");
        let ends = region.bounding_box()?.context("the region has no volume; `pal check` tells more")?;
        let spaced = |(low, high): &(Rational, Rational)| -> Vec<Rational> {
            let step = (high - low) / Rational::from(count - 1);
            (0..count).map(|k| low + &step * Rational::from(k)).collect()
        };
        Ok(Knots::At(
            variables.iter().zip(&ends).map(|(name, ends)| own(name).unwrap_or_else(|| spaced(ends))).collect(),
        ))
    }
}

/// A condition number, where doubles can tell it: beyond that the matrix may as well be singular.
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
    if let Some(Conditioning { start, basis, orthonormality }) = conditioning {
        let number = |condition: f64| known(condition).map_or("> 1e16".to_string(), bound);
        writeln!(out, "condition   {} at the start, {} in use", number(start), number(basis))?;
        writeln!(out, "orthonormal within {}", bound(orthonormality))?;
    }
    writeln!(out, "seconds     {:.3}", report.seconds)?;
    writeln!(out, "output      {}", report.output)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knots_are_exact() {
        let found = parse_positions("wind speed=0, 0.1,1/3").unwrap();
        assert_eq!(found.variable, "wind speed");
        assert_eq!(found.positions, ["0", "1/10", "1/3"].map(|text| parse_rational(text).unwrap()));
        assert!(parse_positions("x").is_err() && parse_positions("x=0,,1").is_err());
    }
}
