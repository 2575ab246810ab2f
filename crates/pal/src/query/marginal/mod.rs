//! Exact marginal densities.
//!
//! The marginal of one variable is a piecewise polynomial, with breaks at the projections of the vertices of the region
//! and of the edges of bins:
//!
//! ```text
//! p(y_j) = integral of p over the slice of the region at y_j
//! ```
//!
//! Its pieces are found from slices (`slices`), and with them the distribution function, quantiles and moments are
//! closed forms. The joint marginal of several variables is a polynomial between the projections of all faces, which
//! are too many to list: it is computed point by point (`joint`).

#[cfg(test)]
pub(in crate::query) mod case;
pub(crate) mod joint;
pub(in crate::query) mod mixture;
pub(in crate::query) mod oblique;
pub(crate) mod slices;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::slices::UnnormalisedPiece;
use super::univariate::Univariate;
use crate::density::gauss::Gauss;
use crate::density::{Axis, BinIndex, Grid};

/// The exact marginal density of one variable: a piecewise polynomial.
#[derive(Clone, Debug)]
pub struct Marginal {
    grid: Arc<Grid>,
    axis: usize,
    pieces: Vec<PolynomialPiece>,
    total: f64,
}

/// Ends of pieces that are closer than this in local coordinates count as one.
const SAME_END: f64 = 1e-13;

/// One polynomial piece with what evaluation needs.
#[derive(Clone, Debug)]
struct PolynomialPiece {
    bin: BinIndex,
    /// The ends in local coordinates of the bin.
    t: (f64, f64),
    /// The positions of the ends, rounded.
    y: (f64, f64),
    /// The distribution function at both ends.
    p: (f64, f64),
    /// The density in the units of the user, with the piece as [0, 1].
    curve: Univariate,
}

/// One polynomial piece of a marginal density.
///
/// With `s = (y - low) / (high - low)` the density is the sum of `legendre[k] P_k(2 s - 1)` over the Legendre
/// polynomials P_k.
#[derive(Clone, Debug, PartialEq)]
pub struct MarginalPiece {
    /// The position where the piece begins.
    pub low: f64,
    /// The position where the piece ends.
    pub high: f64,
    /// The Legendre coefficients.
    pub legendre: Vec<f64>,
}

/// A probability outside [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a probability: quantiles are defined from 0 to 1")]
pub struct NotAProbability(pub f64);

impl Marginal {
    /// Normalises pieces that are given in the order of the axis. `None` if they have no mass.
    fn new(grid: &Arc<Grid>, axis: usize, unnormalised: Vec<UnnormalisedPiece>) -> Option<Marginal> {
        let line = &grid.axes()[axis];
        let masses = unnormalised.iter().map(|piece| {
            let gauss = Gauss::with_points(piece.values.len());
            let mean: f64 = piece.values.iter().zip(&gauss.weights).map(|(value, weight)| value * weight).sum();
            mean * (piece.high - piece.low) * line.width_fraction(piece.bin)
        });
        let masses: Vec<f64> = masses.collect();
        let total: f64 = masses.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let scale = 1.0 / (total * line.length());
        let mut sum = 0.0;
        let mut pieces = Vec::with_capacity(unnormalised.len());
        for (mut piece, mass) in unnormalised.into_iter().zip(masses) {
            piece.values.iter_mut().for_each(|value| *value *= scale);
            let curve = Univariate::from_values(&piece.values);
            let before = f64::min(sum / total, 1.0);
            sum += mass;
            let t = (on_edge(piece.low), on_edge(piece.high));
            let y = (line.global(piece.bin, t.0), line.global(piece.bin, t.1));
            pieces.push(PolynomialPiece { bin: piece.bin, t, y, p: (before, f64::min(sum / total, 1.0)), curve });
        }
        pieces.last_mut()?.p.1 = 1.0;
        Some(Marginal { grid: grid.clone(), axis, pieces, total })
    }

    /// The marginal on a grid of one bin, from pieces in its local coordinates: both ends, and values at Gauss nodes.
    pub(crate) fn of_one_bin(grid: &Arc<Grid>, axis: usize, pieces: Vec<(f64, f64, Vec<f64>)>) -> Option<Marginal> {
        let piece = |(low, high, values)| UnnormalisedPiece { bin: BinIndex::default(), low, high, values };
        Marginal::new(grid, axis, pieces.into_iter().map(piece).collect())
    }

    /// The marginal of a mixture of densities on the same grid, with their weights: between neighbouring ends of pieces of
    /// any of them it is one polynomial.
    pub(crate) fn sum(parts: &[(f64, Marginal)]) -> Option<Marginal> {
        let first = &parts.first()?.1;
        let length = first.line().length();
        let mut by_bin: BTreeMap<BinIndex, Vec<(f64, &PolynomialPiece)>> = BTreeMap::new();
        for (weight, marginal) in parts {
            marginal.pieces.iter().for_each(|piece| by_bin.entry(piece.bin).or_default().push((*weight, piece)));
        }
        let mut pieces = Vec::new();
        for (bin, summands) in by_bin {
            let mut ends: Vec<f64> = summands.iter().flat_map(|(_, piece)| [piece.t.0, piece.t.1]).collect();
            ends.sort_unstable_by(f64::total_cmp);
            ends.dedup_by(|next, kept| *next - *kept <= SAME_END);
            for pair in ends.windows(2) {
                let (low, high) = (pair[0], pair[1]);
                let middle = (low + high) / 2.0;
                let here = summands.iter().filter(|(_, piece)| piece.t.0 < middle && middle < piece.t.1);
                let here: Vec<_> = here.collect();
                let Some(nodes) = here.iter().map(|(_, piece)| piece.curve.legendre().len()).max() else { continue };
                let gauss = Gauss::with_points(nodes);
                let value = |s: &f64| -> f64 {
                    let t = low + s * (high - low);
                    let terms = here.iter().map(|(weight, piece)| {
                        let fraction = ((t - piece.t.0) / (piece.t.1 - piece.t.0)).clamp(0.0, 1.0);
                        weight * length * piece.curve.value(fraction)
                    });
                    terms.sum()
                };
                pieces.push(UnnormalisedPiece { bin, low, high, values: gauss.nodes.iter().map(value).collect() });
            }
        }
        Marginal::new(&first.grid, first.axis, pieces)
    }

    fn line(&self) -> &Axis {
        &self.grid.axes()[self.axis]
    }

    /// The mass before normalisation, which is 1 up to rounding for a normalised density.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The smallest interval that contains all pieces. There may be gaps inside.
    pub fn support(&self) -> (f64, f64) {
        let ends = self.pieces.first().zip(self.pieces.last());
        let (first, last) = ends.expect("a marginal with mass has pieces");
        (first.y.0, last.y.1)
    }

    /// The last piece that begins at or before a position.
    fn piece_at(&self, y: f64) -> Option<&PolynomialPiece> {
        let after = self.pieces.partition_point(|piece| piece.y.0 <= y);
        after.checked_sub(1).map(|index| &self.pieces[index])
    }

    /// The density at a position, which is 0 outside the support. Pieces are closed; where two meet, the right one
    /// counts.
    pub fn density(&self, y: f64) -> f64 {
        match self.piece_at(y) {
            Some(piece) if y <= piece.y.1 => piece.curve.value(piece.fraction(self.line(), y)),
            _ => 0.0,
        }
    }

    /// The distribution function: the probability of values up to a position. NaN for a position that is NaN.
    pub fn cdf(&self, y: f64) -> f64 {
        if y.is_nan() {
            return f64::NAN;
        }
        match self.piece_at(y) {
            Some(piece) if y < piece.y.1 => {
                let (before, after) = piece.p;
                let mass = piece.curve.integral();
                let fraction = if mass > 0.0 { piece.curve.cdf(piece.fraction(self.line(), y)) / mass } else { 0.0 };
                (before + (after - before) * fraction).clamp(before, after)
            }
            Some(piece) => piece.p.1,
            None => 0.0,
        }
    }

    /// The quantile function: the smallest position where [`Marginal::cdf`] reaches a probability. 0 and 1 give the
    /// ends of the support.
    pub fn quantile(&self, p: f64) -> Result<f64, NotAProbability> {
        if !(0.0..=1.0).contains(&p) {
            return Err(NotAProbability(p));
        }
        let (low, high) = self.support();
        if p == 0.0 {
            return Ok(low);
        }
        let index = self.pieces.partition_point(|piece| piece.p.1 < p);
        match self.pieces.get(index) {
            Some(piece) if p < 1.0 => {
                let (before, after) = piece.p;
                let s = piece.curve.inverse((p - before) / (after - before));
                let t = piece.t.0 + s * (piece.t.1 - piece.t.0);
                Ok(self.line().global(piece.bin, t).clamp(piece.y.0, piece.y.1))
            }
            _ => Ok(high),
        }
    }

    /// The mean of the variable.
    pub fn mean(&self) -> f64 {
        self.support().0 + self.mean_and_variance().0
    }

    /// The variance of the variable.
    pub fn variance(&self) -> f64 {
        self.mean_and_variance().1
    }

    /// The mean as a distance from the lower end of the support, and the variance.
    ///
    /// Distances come from widths of bins and not from rounded positions, so that a support far from the origin costs
    /// the variance no digits.
    fn mean_and_variance(&self) -> (f64, f64) {
        let line = self.line();
        let mut start = 0.0;
        let starts: Vec<f64> = line
            .bin_indices()
            .map(|bin| {
                let before = start;
                start += line.width(bin);
                before
            })
            .collect();
        let place = |piece: &PolynomialPiece| starts[piece.bin.get()] + piece.t.0 * line.width(piece.bin);
        let origin = self.pieces.first().map(place).expect("a marginal with mass has pieces");
        let parts = self.pieces.iter().filter_map(|piece| {
            let [mass, first, second] = piece.curve.moments();
            let length = (piece.t.1 - piece.t.0) * line.width(piece.bin);
            let (mean, square) = (first / mass, second / mass);
            let spread = (square - mean * mean) * length * length;
            (mass > 0.0).then(|| (piece.p.1 - piece.p.0, place(piece) - origin + length * mean, spread))
        });
        let parts: Vec<(f64, f64, f64)> = parts.collect();
        let mean: f64 = parts.iter().map(|(mass, mean, _)| mass * mean).sum();
        let variance = parts.iter().map(|(mass, at, spread)| mass * (spread + (at - mean) * (at - mean)));
        (mean, variance.sum())
    }

    /// All pieces from low to high. Between the end of one and the beginning of the next the density is 0.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = MarginalPiece> + '_ {
        self.pieces.iter().map(|piece| MarginalPiece {
            low: piece.y.0,
            high: piece.y.1,
            legendre: piece.curve.legendre(),
        })
    }

    /// Points of a polyline to plot the density: both ends of every piece and `inside` points between them. It comes
    /// down to 0 at the ends of the support and in gaps that are wider than rounding errors.
    pub fn polyline(&self, inside: usize) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let (low, high) = self.support();
        // The ends of neighbouring pieces are rounded one by one.
        let rounding = 8.0 * f64::EPSILON * low.abs().max(high.abs()).max(high - low);
        for piece in &self.pieces {
            let end = points.last().map(|last| last.0);
            if end.is_none_or(|end| piece.y.0 - end > rounding) {
                points.extend(end.map(|end| (end, 0.0)));
                points.push((piece.y.0, 0.0));
            }
            for k in 0..=inside + 1 {
                let s = k as f64 / (inside + 1) as f64;
                let t = piece.t.0 + s * (piece.t.1 - piece.t.0);
                let y = self.line().global(piece.bin, t).clamp(piece.y.0, piece.y.1);
                points.push((y, piece.curve.value(s)));
            }
        }
        points.extend(self.pieces.last().map(|last| (last.y.1, 0.0)));
        points
    }
}

/// Rounds a local coordinate next to an edge of its bin to the edge: pieces must neither overlap nor leave the region.
fn on_edge(t: f64) -> f64 {
    if t > 1.0 - 4.0 * f64::EPSILON { 1.0 } else { t.max(0.0) }
}

impl PolynomialPiece {
    /// The fraction of the piece below a position.
    fn fraction(&self, line: &Axis, y: f64) -> f64 {
        // The rounded ends stand for the exact ones, from which they may differ by a rounding.
        if y >= self.y.1 {
            return 1.0;
        }
        if y <= self.y.0 {
            return 0.0;
        }
        ((line.local(self.bin, y) - self.t.0) / (self.t.1 - self.t.0)).clamp(0.0, 1.0)
    }
}
