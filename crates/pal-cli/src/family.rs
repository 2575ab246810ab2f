//! Options that say which family of densities is compiled on a region.

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use pal::density::{
    Basis, Compile, Conditioning, Family, Knots, MAX_SPLINE_DIMENSION, SplineMixture, SplineSettings, Subset,
    SumOfSquares, SumOfSquaresSettings,
};
use pal::number::{Rational, parse_rational};
use pal::region::Region;

use crate::model_file::names;

/// A family and what it looks like.
#[derive(clap::Args)]
pub struct FamilyArgs {
    /// Which densities
    #[arg(long, value_enum, default_value = "spline")]
    family: FamilyName,
    /// spline: equally spaced knots per axis, ends included [default: 14, for four variables 6]
    #[arg(long, value_name = "K")]
    knots: Option<usize>,
    /// spline: exact positions of the knots of one variable, in place of --knots; may be repeated
    #[arg(long, value_name = "VAR=P,P,...", value_parser = parse_positions)]
    knots_at: Vec<Positions>,
    /// sum-of-squares: total degree of the polynomials that are squared [default: 6]
    #[arg(long, value_name = "D")]
    degree: Option<u16>,
    /// Components of the mixture, or squares in the sum [default: 8 for splines, 4 for sums of squares]
    #[arg(long, value_name = "C")]
    pub components: Option<usize>,
    /// sum-of-squares: the polynomials that coefficients refer to [default: orthonormal]
    #[arg(long, value_enum)]
    basis: Option<BasisName>,
    /// sum-of-squares: take a random choice of so many members of the basis
    #[arg(long, value_name = "N")]
    terms: Option<usize>,
    /// sum-of-squares: the seed of that choice [default: 0]
    #[arg(long, value_name = "S", requires = "terms")]
    terms_seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FamilyName {
    /// Mixtures of products of squared cubic splines
    Spline,
    /// Sums of squares of polynomials
    SumOfSquares,
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

impl FamilyArgs {
    /// Options of the other family are mistakes, not noise.
    pub fn check(&self) -> Result<()> {
        let of_splines = [("--knots", self.knots.is_some()), ("--knots-at", !self.knots_at.is_empty())];
        let of_squares =
            [("--degree", self.degree.is_some()), ("--basis", self.basis.is_some()), ("--terms", self.terms.is_some())];
        let (foreign, other, instead) = match self.family {
            FamilyName::Spline => (&of_squares[..], "sum-of-squares", "--knots, --knots-at and --components"),
            FamilyName::SumOfSquares => (&of_splines[..], "spline", "--degree, --components, --basis and --terms"),
        };
        if let Some((option, _)) = foreign.iter().find(|(_, given)| *given) {
            bail!("{option} is for --family {other}; this family has {instead}");
        }
        Ok(())
    }

    /// Options of families mean nothing to models for comparison, but for the number of components of mixtures.
    pub fn check_baseline(&self, mixture: bool) -> Result<()> {
        let given = [
            ("--knots", self.knots.is_some()),
            ("--knots-at", !self.knots_at.is_empty()),
            ("--degree", self.degree.is_some()),
            ("--components", self.components.is_some() && !mixture),
            ("--basis", self.basis.is_some()),
            ("--terms", self.terms.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{option} is for densities on the constraint, not for this --baseline");
        }
        ensure!(self.components.is_none_or(|count| (1..=10_000).contains(&count)), "--components: give 1 to 10000");
        Ok(())
    }

    /// All that was chosen, to tell one choice from another.
    pub fn text(&self) -> String {
        let (family, basis) = (self.name(), self.basis.map(|basis| basis as u8));
        let at: Vec<String> = self.knots_at.iter().map(|own| format!("{}={:?}", own.variable, own.positions)).collect();
        let counts = [self.knots, self.components, self.terms];
        format!("{family} {counts:?} {:?} {basis:?} {:?} {at:?}", self.degree, self.terms_seed)
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self.family {
            FamilyName::Spline => "spline",
            FamilyName::SumOfSquares => "sum-of-squares",
        }
    }

    pub fn is_spline(&self) -> bool {
        self.family == FamilyName::Spline
    }

    /// The family on a region; for sums of squares with its conditioning, if that is wanted.
    pub fn compile(&self, region: &Region, conditioned: bool) -> Result<(Family, Option<Conditioning>)> {
        if self.family == FamilyName::Spline {
            let n = region.dimension();
            ensure!(
                n <= MAX_SPLINE_DIMENSION,
                "--family spline is for 1 to {MAX_SPLINE_DIMENSION} variables, the constraint has {n}; use --family sum-of-squares"
            );
            let settings = SplineSettings { knots: self.knots(region)?, components: self.components.unwrap_or(8) };
            return Ok((SplineMixture::compile(region, &settings)?.into(), None));
        }
        let settings = SumOfSquaresSettings {
            degree: Some(self.degree.unwrap_or(6)),
            components: self.components.unwrap_or(4),
            basis: match self.basis {
                None | Some(BasisName::Orthonormal) => Basis::Orthonormal,
                Some(BasisName::Legendre) => Basis::Legendre,
                Some(BasisName::Monomial) => Basis::Monomial,
            },
            subset: self.terms.map(|terms| Subset { terms, seed: self.terms_seed.unwrap_or(0) }),
        };
        let family = SumOfSquares::compile(region, &settings)?;
        let conditioning = conditioned.then(|| family.conditioning());
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
