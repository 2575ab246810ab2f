//! What can be wrong with a polygon, in the coordinates of the input.

use std::fmt;

use crate::number::Rational;

/// An edge of a ring as the user wrote it: edge `k` runs from point `k` of the list to the next different one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The position of the first end in the list given to [`Ring::new`](super::Ring::new), from 0.
    pub index: usize,
    /// The point at which the edge starts.
    pub from: [Rational; 2],
    /// The point at which the edge ends.
    pub to: [Rational; 2],
}

/// Why points do not form a simple polygon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolygonError {
    /// The ring has fewer than three distinct points, so it encloses nothing.
    #[error("a ring needs at least 3 distinct points, this one has {distinct}")]
    TooFewPoints {
        /// The number of distinct points.
        distinct: usize,
    },
    /// All points lie on one line.
    #[error("all {distinct} points of the ring lie on one line, so it encloses no area")]
    ZeroArea {
        /// The number of distinct points.
        distinct: usize,
    },
    /// Two edges of a ring meet elsewhere than in the end they share.
    #[error("{first} meets {second}; a ring must not cross, touch or overlap itself: split it into simple polygons")]
    SelfIntersection {
        /// The edge that comes first in the list.
        first: Box<Edge>,
        /// The other edge.
        second: Box<Edge>,
    },
    /// An edge of a hole crosses or runs along an edge of the outer ring.
    #[error(
        "{edge} of hole {hole} {how} {outer} of the outer ring; a hole may touch the outer ring in single points only"
    )]
    HoleMeetsOuter {
        /// The number of the hole, counted from 0.
        hole: usize,
        /// The hole's edge.
        edge: Box<Edge>,
        /// The outer ring's edge.
        outer: Box<Edge>,
        /// How the edges meet: the first one `crosses` or `runs along` the second.
        how: &'static str,
    },
    /// Part of a hole lies outside the outer ring.
    #[error("hole {hole} leaves the outer ring at {}; a hole must lie inside it", show_point(at))]
    HoleOutside {
        /// The number of the hole, counted from 0.
        hole: usize,
        /// A point of the hole's boundary that is outside.
        at: Box<[Rational; 2]>,
    },
    /// Edges of two holes cross or run along each other.
    #[error("{edge} of hole {hole} {how} {other_edge} of hole {other}; merge the two holes into one ring")]
    HolesMeet {
        /// The number of the hole, counted from 0.
        hole: usize,
        /// The edge of the first hole.
        edge: Box<Edge>,
        /// The number of the other hole, counted from 0.
        other: usize,
        /// The other hole's edge.
        other_edge: Box<Edge>,
        /// How the edges meet: the first one `crosses` or `runs along` the second.
        how: &'static str,
    },
    /// One hole reaches into another.
    #[error(
        "hole {hole} lies inside hole {other} at {}; holes must not overlap: merge them into one ring",
        show_point(at)
    )]
    HolesOverlap {
        /// The number of the hole, counted from 0.
        hole: usize,
        /// The number of the hole that it reaches into, counted from 0.
        other: usize,
        /// A point of the first hole's boundary that lies in the other.
        at: Box<[Rational; 2]>,
    },
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edge {} from {} to {}", self.index, show_point(&self.from), show_point(&self.to))
    }
}

fn show_point([x, y]: &[Rational; 2]) -> String {
    format!("({}, {})", show_coordinate(x), show_coordinate(y))
}

/// A short decimal where there is an exact one, since that is what maps are written in; a fraction otherwise.
fn show_coordinate(value: &Rational) -> String {
    let mut scaled = value.clone();
    for digits in 0..=18 {
        if scaled.denominator().is_one() {
            let text = scaled.numerator().to_string();
            let (sign, magnitude) = text.strip_prefix('-').map_or(("", text.as_str()), |m| ("-", m));
            let padded = format!("{magnitude:0>width$}", width = digits + 1);
            let (whole, fraction) = padded.split_at(padded.len() - digits);
            return if digits == 0 { text } else { format!("{sign}{whole}.{fraction}") };
        }
        scaled *= Rational::from(10);
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::parse_rational;

    #[test]
    fn coordinates_read_like_the_input() {
        for text in ["0", "-3", "6.185", "-0.05", "12.5", "1/3", "0.000000000000000001"] {
            assert_eq!(show_coordinate(&parse_rational(text).unwrap()), text);
        }
    }
}
