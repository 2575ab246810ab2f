//! `--knots-at`: exact positions of the knots of single variables.

use anyhow::{Context, Result, ensure};
use pal::density::Knots;
use pal::number::{Rational, parse_rational};
use pal::region::Region;

use crate::model_file::names;

/// The knots of one variable.
#[derive(Clone)]
pub struct KnotsAt {
    variable: String,
    positions: Vec<Rational>,
}

pub fn parse(text: &str) -> Result<KnotsAt> {
    let (name, list) = text.rsplit_once('=').context("give a variable and its knots, such as x=0,1,2.5")?;
    let positions = list.split(',').map(|part| parse_rational(part.trim())).collect::<Result<_, _>>()?;
    Ok(KnotsAt { variable: name.trim().to_string(), positions })
}

/// Returns how many knots the library chose for every axis.
pub fn chosen_count(knots: &Knots) -> usize {
    match knots {
        Knots::Uniform(count) => *count,
        Knots::Automatic | Knots::At(_) => unreachable!("knots that the library chooses are equally spaced"),
    }
}

/// Returns the knots of all variables: those given one by one, and `count` equally spaced ones along the others. Without
/// a count the library's choice stands, which is `automatic`.
pub fn knots(given: &[KnotsAt], count: Option<usize>, automatic: &Knots, region: &Region) -> Result<Knots> {
    if given.is_empty() {
        return Ok(count.map_or_else(|| automatic.clone(), Knots::Uniform));
    }
    let variables = names(region.constraint());
    for (k, KnotsAt { variable, .. }) in given.iter().enumerate() {
        let known = variables.join(", ");
        ensure!(variables.contains(&variable.as_str()), "--knots-at: no variable `{variable}`; there is {known}");
        let twice = given[..k].iter().any(|earlier| earlier.variable == *variable);
        ensure!(!twice, "--knots-at: `{variable}` is given twice");
    }
    let own = |name: &str| given.iter().find(|own| own.variable == name).map(|own| own.positions.clone());
    if let Some(all) = variables.iter().map(|name| own(name)).collect() {
        return Ok(Knots::At(all));
    }
    let count = count.unwrap_or_else(|| chosen_count(automatic));
    ensure!((2..=10_000).contains(&count), "{count} knots per axis; give between 2 and 10000");
    let ends = region.bounding_box()?.context("the region has no volume; `pal check` tells more")?;
    let spaced = |(low, high): &(Rational, Rational)| -> Vec<Rational> {
        let step = (high - low) / Rational::from(count - 1);
        (0..count).map(|k| low + &step * Rational::from(k)).collect()
    };
    let axes = variables.iter().zip(&ends);
    Ok(Knots::At(axes.map(|(name, ends)| own(name).unwrap_or_else(|| spaced(ends))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knots_are_exact() {
        let found = parse("wind speed=0, 0.1,1/3").unwrap();
        assert_eq!(found.variable, "wind speed");
        assert_eq!(found.positions, ["0", "1/10", "1/3"].map(|text| parse_rational(text).unwrap()));
        assert!(parse("x").is_err() && parse("x=0,,1").is_err());
    }
}
