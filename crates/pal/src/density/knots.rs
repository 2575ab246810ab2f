//! Where the bins of a grid end.

use serde::{Deserialize, Serialize};

use super::error::DensityError;
use super::support::Ends;
use crate::formula::Constraint;
use crate::number::Rational;
use crate::region::MAX_KNOTS;

/// The positions along every axis at which the box around a constraint is cut into bins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knots {
    /// Equally spaced, as many as suit the number of variables.
    #[default]
    Automatic,
    /// This many equally spaced knots on every axis of the box around the constraint, ends included.
    Uniform(usize),
    /// Given positions per axis, increasing; the first and last must enclose the constraint.
    At(#[serde(with = "rational_text")] Vec<Vec<Rational>>),
}

impl Knots {
    /// The same knots with their number filled in where it is to be chosen automatically.
    pub(super) fn chosen(&self, automatic: usize) -> Knots {
        match self {
            Knots::Automatic => Knots::Uniform(automatic),
            given => given.clone(),
        }
    }

    /// How many knots there are, for people: `14 knots per axis, ` or `14 x 9 knots, `, less `fewer` per axis. Empty if
    /// the number is still to be chosen.
    pub(super) fn description(&self, noun: &str, fewer: usize) -> String {
        match self {
            Knots::Automatic => String::new(),
            Knots::Uniform(count) => format!("{} {noun}s per axis, ", count - fewer),
            Knots::At(lists) => {
                let counts: Vec<String> = lists.iter().map(|list| (list.len() - fewer).to_string()).collect();
                format!("{} {noun}s, ", counts.join(" x "))
            }
        }
    }
}

/// The exact knots of every axis. Their number must have been chosen.
pub(super) fn edges(constraint: &Constraint, knots: &Knots, ends: &Ends) -> Result<Vec<Vec<Rational>>, DensityError> {
    let fail = |message: String| Err(DensityError::Settings(message));
    match knots {
        Knots::Automatic => unreachable!("the number of knots is chosen before their positions"),
        Knots::Uniform(count) if *count < 2 || *count > MAX_KNOTS => {
            let noun = if *count == 1 { "knot" } else { "knots" };
            fail(format!("{count} {noun} per axis; give between 2 and {MAX_KNOTS}"))
        }
        Knots::Uniform(count) => Ok(ends.iter().map(|ends| equally_spaced(ends, *count)).collect()),
        Knots::At(lists) if lists.len() != ends.len() => {
            fail(format!("{} lists of knots for {} variables; give one list per variable", lists.len(), ends.len()))
        }
        Knots::At(lists) => {
            for ((list, (low, high)), var) in lists.iter().zip(ends).zip(&constraint.reals) {
                match (list.first(), list.last()) {
                    (Some(first), Some(last)) if list.len() >= 2 && first <= low && last >= high => {}
                    _ => {
                        return fail(format!(
                            "the knots along `{var}` must enclose the constraint, which runs from {low} to {high}"
                        ));
                    }
                }
                if list.windows(2).any(|pair| pair[0] >= pair[1]) {
                    return fail(format!("the knots along `{var}` must increase"));
                }
            }
            Ok(lists.clone())
        }
    }
}

/// At least two positions at equal distances; both ends are met exactly.
pub(super) fn equally_spaced((low, high): &(Rational, Rational), count: usize) -> Vec<Rational> {
    let step = (high - low) / Rational::from(count - 1);
    (0..count).map(|k| if k + 1 == count { high.clone() } else { low + &step * Rational::from(k) }).collect()
}

/// Exact numbers as text in files.
mod rational_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::number::{Rational, parse_rational};

    pub fn serialize<S: Serializer>(lists: &[Vec<Rational>], serializer: S) -> Result<S::Ok, S::Error> {
        let text: Vec<Vec<String>> = lists.iter().map(|list| list.iter().map(ToString::to_string).collect()).collect();
        text.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<Rational>>, D::Error> {
        let text = Vec::<Vec<String>>::deserialize(deserializer)?;
        let number = |text: &String| parse_rational(text).map_err(D::Error::custom);
        text.iter().map(|list| list.iter().map(number).collect()).collect()
    }
}
