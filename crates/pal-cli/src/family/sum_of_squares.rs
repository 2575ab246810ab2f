//! Options of sums of squares.

use anyhow::Result;
use clap::ValueEnum;
use pal::density::{Basis, Conditioning, Family, Settings, Subset, SumOfSquares, SumOfSquaresSettings};
use pal::polynomial::Polynomial;
use pal::region::Region;

use super::{Kind, KindOptions, SharedOptions};

/// The options of sums of squares.
#[derive(clap::Args)]
pub struct SumOfSquaresOptions {
    #[arg(long, value_name = "D", help = degree_help())]
    degree: Option<u16>,
    /// sum-of-squares: the polynomials that coefficients refer to [default: orthonormal]
    #[arg(long, value_enum)]
    basis: Option<BasisName>,
    /// sum-of-squares: take this many members of the basis, chosen at random [default: all]
    #[arg(long, value_name = "N")]
    terms: Option<usize>,
    /// sum-of-squares: the seed of that choice [default: 0]
    #[arg(long, value_name = "S", requires = "terms")]
    terms_seed: Option<u64>,
}

fn degree_help() -> String {
    let chosen = |dimension: usize| SumOfSquaresSettings::default().chosen(dimension).degree;
    let degrees = (1..=5).filter_map(chosen).map(|degree| degree.to_string());
    format!(
        "sum-of-squares: total degree of the polynomials that are squared \
         [default: {} for 1, 2, 3, 4, and more variables]",
        degrees.collect::<Vec<_>>().join(", ")
    )
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

impl SumOfSquaresOptions {
    pub(super) const KIND: Kind = Kind {
        name: "sum-of-squares",
        about: "Sums of squares of polynomials",
        shared_options: &[],
        default_components: || SumOfSquaresSettings::default().components,
    };
}

impl KindOptions for SumOfSquaresOptions {
    fn options(&self) -> Vec<(&'static str, bool)> {
        vec![("--degree", self.degree.is_some()), ("--basis", self.basis.is_some()), ("--terms", self.terms.is_some())]
    }

    fn settings(&self, shared: &SharedOptions, _region: &Region, _student_t_head: bool) -> Result<Settings> {
        let defaults = SumOfSquaresSettings::default();
        let basis = self.basis.map(|basis| match basis {
            BasisName::Orthonormal => Basis::Orthonormal,
            BasisName::Legendre => Basis::Legendre,
            BasisName::Monomial => Basis::Monomial,
        });
        let settings = SumOfSquaresSettings {
            degree: self.degree.or(defaults.degree),
            components: shared.components.unwrap_or(defaults.components),
            basis: basis.unwrap_or(defaults.basis),
            subset: self.terms.map(|terms| Subset { terms, seed: self.terms_seed.unwrap_or(0) }).or(defaults.subset),
        };
        Ok(settings.into())
    }

    fn has_conditioning(&self) -> bool {
        true
    }

    fn conditioning(&self, family: &Family) -> Option<Conditioning> {
        family.downcast::<SumOfSquares>().map(SumOfSquares::conditioning)
    }
}

/// Returns parameters of the sum of the squares of given polynomials: their inner products with the orthonormal basis,
/// which are exact up to rounding. The density `(b0 + b)^2 / 2` gives a polynomial `p` the expectation `(<b0 p b0> + <b
/// p b>) / 2 + <b0 p b>`, and `b0` is constant.
pub fn squares_of(family: &Family, polynomials: &[Polynomial]) -> Result<Vec<f64>> {
    let count = polynomials.len();
    let per = family.num_params() / count;
    let square = |member: usize, sign: f64| -> Vec<f64> {
        let mut part = vec![0.0; per];
        part[1] = 1.0;
        if member > 1 {
            part[member] = sign;
        }
        part.repeat(count)
    };
    let rows: Vec<f64> = (1..per).flat_map(|member| [square(member, 1.0), square(member, -1.0)].concat()).collect();
    let values = family.expectation(polynomials)?.values(&family.params_of(&rows))?;
    let value = |member: usize, minus: usize, which: usize| values[(2 * (member - 1) + minus) * count + which];
    let coefficient = |member: usize, which: usize| match member {
        0 => 0.0,
        1 => value(1, 0, which),
        _ => (value(member, 0, which) - value(member, 1, which)) / 2.0,
    };
    let theta: Vec<f64> = (0..count).flat_map(|which| (0..per).map(move |member| coefficient(member, which))).collect();
    Ok(family.params_of(&theta))
}
