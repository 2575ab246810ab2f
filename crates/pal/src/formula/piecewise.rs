//! Terms made of linear ones by `min`, `max` and absolute values.
//!
//! Sums distribute over both, and a negative factor turns one into the other, so that every such term is a tree of
//! minima and maxima with linear terms at its leaves. Comparisons then need no case distinctions: `max(s, t) <= 0` is
//! `s <= 0 & t <= 0`, and `abs(x) + abs(y) <= 1` is a convex polygon with four atoms.

use std::fmt;

use super::{Formula, Linear, Relation};
use crate::number::Rational;

/// The largest number of linear terms in one [`PiecewiseLinear`].
pub const MAX_PIECES: usize = 4096;

/// A sum of minima and maxima of too many terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "written out, this term has {0} linear pieces, more than {MAX_PIECES}; introduce a variable for a part of it, \
     such as t with t >= x and t >= -x for abs(x)"
)]
pub struct TooManyPieces(usize);

/// A continuous piecewise linear term: minima and maxima of linear terms.
///
/// ```
/// use pal::formula::{PiecewiseLinear, reals};
/// let [x, y] = reals(["x", "y"]);
/// let sum = PiecewiseLinear::abs(&x).plus(&PiecewiseLinear::abs(&y))?;
/// let diamond = sum.le(&1.into())?;
/// assert_eq!(diamond.atoms().len(), 4);
/// assert!(diamond.contains(&[0.5, -0.5]) && !diamond.contains(&[0.5, -0.75]));
/// # Ok::<(), pal::formula::TooManyPieces>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PiecewiseLinear(ExtremumTree);

#[derive(Clone, Debug, PartialEq)]
enum ExtremumTree {
    Leaf(Linear),
    Extremum(Extremum, Vec<ExtremumTree>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extremum {
    Min,
    Max,
}

impl From<Linear> for PiecewiseLinear {
    fn from(term: Linear) -> Self {
        PiecewiseLinear(ExtremumTree::Leaf(term))
    }
}

impl From<i64> for PiecewiseLinear {
    fn from(constant: i64) -> Self {
        Linear::from(constant).into()
    }
}

impl PiecewiseLinear {
    /// The absolute value of a linear term.
    pub fn abs(term: &Linear) -> PiecewiseLinear {
        PiecewiseLinear(ExtremumTree::Extremum(
            Extremum::Max,
            vec![ExtremumTree::Leaf(term.clone()), ExtremumTree::Leaf(-term)],
        ))
    }

    /// The smallest of some terms; `None` if there are none.
    pub fn min(terms: Vec<PiecewiseLinear>) -> Option<Result<PiecewiseLinear, TooManyPieces>> {
        Self::extremum(Extremum::Min, terms)
    }

    /// The largest of some terms; `None` if there are none.
    pub fn max(terms: Vec<PiecewiseLinear>) -> Option<Result<PiecewiseLinear, TooManyPieces>> {
        Self::extremum(Extremum::Max, terms)
    }

    fn extremum(which: Extremum, terms: Vec<PiecewiseLinear>) -> Option<Result<PiecewiseLinear, TooManyPieces>> {
        let tree = match ExtremumTree::extremum(which, terms.into_iter().map(|term| term.0)) {
            ExtremumTree::Extremum(_, parts) if parts.is_empty() => return None,
            tree => tree,
        };
        Some(PiecewiseLinear(tree).sized())
    }

    /// The linear term, if there is only one piece.
    pub fn as_linear(&self) -> Option<&Linear> {
        match &self.0 {
            ExtremumTree::Leaf(term) => Some(term),
            ExtremumTree::Extremum(..) => None,
        }
    }

    /// Whether the term is a maximum, and what it is the maximum or minimum of; the linear term, if it is one.
    pub fn parts(&self) -> Result<(bool, Vec<PiecewiseLinear>), &Linear> {
        match &self.0 {
            ExtremumTree::Leaf(term) => Err(term),
            ExtremumTree::Extremum(which, parts) => {
                Ok((*which == Extremum::Max, parts.iter().cloned().map(PiecewiseLinear).collect()))
            }
        }
    }

    /// The sum of two terms.
    pub fn plus(&self, other: &PiecewiseLinear) -> Result<PiecewiseLinear, TooManyPieces> {
        let pieces = self.0.pieces().saturating_mul(other.0.pieces());
        if pieces > MAX_PIECES {
            return Err(TooManyPieces(pieces));
        }
        Ok(PiecewiseLinear(self.0.plus(&other.0)))
    }

    /// The term `self * factor`.
    pub fn scaled(&self, factor: &Rational) -> PiecewiseLinear {
        PiecewiseLinear(self.0.scaled(factor))
    }

    /// The formula `self <= other`.
    pub fn le(&self, other: &PiecewiseLinear) -> Result<Formula, TooManyPieces> {
        Ok(self.minus(other)?.0.compare(Relation::Le))
    }

    /// The formula `self < other`.
    pub fn lt(&self, other: &PiecewiseLinear) -> Result<Formula, TooManyPieces> {
        Ok(self.minus(other)?.0.compare(Relation::Lt))
    }

    /// The formula `self = other`.
    pub fn equals(&self, other: &PiecewiseLinear) -> Result<Formula, TooManyPieces> {
        Ok(self.le(other)? & other.le(self)?)
    }

    fn minus(&self, other: &PiecewiseLinear) -> Result<PiecewiseLinear, TooManyPieces> {
        self.plus(&other.scaled(&Rational::from(-1)))
    }

    fn sized(self) -> Result<PiecewiseLinear, TooManyPieces> {
        let pieces = self.0.pieces();
        if pieces > MAX_PIECES { Err(TooManyPieces(pieces)) } else { Ok(self) }
    }
}

// The depth of a tree is at most the number of its leaves, which is limited, so that recursion is safe.
impl ExtremumTree {
    fn extremum(which: Extremum, terms: impl Iterator<Item = ExtremumTree>) -> ExtremumTree {
        let mut parts = Vec::new();
        for term in terms {
            match term {
                // The minimum of minima is one minimum.
                ExtremumTree::Extremum(inner, children) if inner == which => parts.extend(children),
                other => parts.push(other),
            }
        }
        match parts.len() {
            1 => parts.swap_remove(0),
            _ => ExtremumTree::Extremum(which, parts),
        }
    }

    fn pieces(&self) -> usize {
        match self {
            ExtremumTree::Leaf(_) => 1,
            ExtremumTree::Extremum(_, parts) => parts.iter().map(ExtremumTree::pieces).sum(),
        }
    }

    fn plus(&self, other: &ExtremumTree) -> ExtremumTree {
        match (self, other) {
            (ExtremumTree::Leaf(a), ExtremumTree::Leaf(b)) => ExtremumTree::Leaf(a + b),
            (ExtremumTree::Extremum(which, parts), term) | (term, ExtremumTree::Extremum(which, parts)) => {
                ExtremumTree::extremum(*which, parts.iter().map(|part| part.plus(term)))
            }
        }
    }

    fn scaled(&self, factor: &Rational) -> ExtremumTree {
        match self {
            ExtremumTree::Leaf(term) => ExtremumTree::Leaf(term.scaled(factor)),
            ExtremumTree::Extremum(which, parts) => {
                let which = match (which, factor < &Rational::ZERO) {
                    (Extremum::Min, true) => Extremum::Max,
                    (Extremum::Max, true) => Extremum::Min,
                    (same, false) => *same,
                };
                ExtremumTree::Extremum(which, parts.iter().map(|part| part.scaled(factor)).collect())
            }
        }
    }

    /// The formula `self relation 0`, for `<` and `<=`.
    fn compare(&self, relation: Relation) -> Formula {
        match self {
            ExtremumTree::Leaf(term) => Formula::compare(term, relation),
            ExtremumTree::Extremum(Extremum::Max, parts) => {
                Formula::all(parts.iter().map(|part| part.compare(relation)))
            }
            ExtremumTree::Extremum(Extremum::Min, parts) => {
                Formula::any(parts.iter().map(|part| part.compare(relation)))
            }
        }
    }
}

impl fmt::Display for PiecewiseLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ExtremumTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtremumTree::Leaf(term) => write!(f, "{term}"),
            ExtremumTree::Extremum(which, parts) => {
                f.write_str(if *which == Extremum::Min { "min(" } else { "max(" })?;
                for (k, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if k == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    /// The value at a point, by the definition of minima and maxima.
    fn value(tree: &ExtremumTree, point: &[f64]) -> f64 {
        match tree {
            ExtremumTree::Leaf(term) => {
                let at = |name: &str| point[if name == "x" { 0 } else { 1 }];
                let terms = term.terms().map(|(var, a)| a.to_f64().value() * at(var.name()));
                terms.sum::<f64>() + term.constant().to_f64().value()
            }
            ExtremumTree::Extremum(Extremum::Min, parts) => {
                parts.iter().map(|p| value(p, point)).fold(f64::INFINITY, f64::min)
            }
            ExtremumTree::Extremum(Extremum::Max, parts) => {
                parts.iter().map(|p| value(p, point)).fold(f64::NEG_INFINITY, f64::max)
            }
        }
    }

    #[test]
    fn sums_and_comparisons_mean_what_their_values_say() {
        let [x, y] = reals(["x", "y"]);
        let least = PiecewiseLinear::min(vec![x.clone().into(), (2 * &y - 1).into(), 3.into()]).unwrap().unwrap();
        let size = PiecewiseLinear::abs(&(&x - &y));
        let sum = size.plus(&least.scaled(&Rational::from(-2))).unwrap();
        let formula = sum.le(&1.into()).unwrap();
        let strict = sum.lt(&1.into()).unwrap();
        let equal = sum.equals(&1.into()).unwrap();
        let (mut inside, mut on) = (0, 0);
        for i in -16..=16 {
            for j in -16..=16 {
                // Quarters, so that all values are exact.
                let point = [f64::from(i) / 4.0, f64::from(j) / 4.0];
                let expected = (point[0] - point[1]).abs() - 2.0 * point[0].min(2.0 * point[1] - 1.0).min(3.0);
                assert_eq!(value(&sum.0, &point), expected);
                assert_eq!(formula.contains(&point), expected <= 1.0);
                assert_eq!(strict.contains(&point), expected < 1.0);
                assert_eq!(equal.contains(&point), expected == 1.0);
                inside += usize::from(expected <= 1.0);
                on += usize::from(expected == 1.0);
            }
        }
        assert!(inside > 100 && on > 5, "{inside} inside, {on} on the border");
        assert_eq!(PiecewiseLinear::abs(&x).to_string(), "max(x, -x)");
        assert!(PiecewiseLinear::min(vec![]).is_none());
    }

    #[test]
    fn terms_that_would_explode_are_refused() {
        let [x] = reals(["x"]);
        let mut sum = PiecewiseLinear::abs(&x);
        let error = loop {
            match sum.plus(&PiecewiseLinear::abs(&x)) {
                Ok(larger) => sum = larger,
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("8192 linear pieces"), "{error}");
    }
}
