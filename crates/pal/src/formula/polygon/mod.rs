//! Polygons as formulas.
//!
//! Coordinates are rationals and every decision is exact: whether a ring is simple, where a hole lies, what belongs to
//! the set. The polygon is closed: its edges, and the edges of its holes, belong to it.
//!
//! Rings become formulas by their convex-deficiency tree (see [`Polygon::to_formula`]). It was chosen over the two
//! alternatives because its outermost literals are the convex hull, from which bounds are read off and by which
//! cells far from the polygon are decided at once. A convex partition by diagonals needs at least one new line for
//! every two reflex corners, while one lid covers a pocket however many it has. A formula over the edges alone
//! exists (Dobkin, Guibas, Hershberger and Snoeyink 1993), but has no hull to bound it by.

mod deficiency;
mod error;
mod holes;
mod meeting;
mod points;
mod ring;
#[cfg(test)]
mod tests;

pub use error::{Edge, PolygonError};
pub use ring::Ring;

use super::{Formula, Linear};
use crate::number::Rational;
use deficiency::{RingSide, ring_formula};

/// A simple polygon, which may have holes.
///
/// ```
/// use pal::formula::{reals, Polygon, Ring};
/// use pal::number::Rational;
/// let ring = |corners: [[i32; 2]; 4]| Ring::new(corners.map(|p| p.map(Rational::from)).to_vec()).unwrap();
/// let outer = ring([[0, 0], [4, 0], [4, 4], [0, 4]]);
/// let hole = ring([[1, 1], [3, 1], [3, 3], [1, 3]]);
/// let frame = Polygon::new(outer, vec![hole]).unwrap();
/// assert_eq!(frame.area(), Rational::from(12));
/// let [x, y] = reals(["x", "y"]);
/// let phi = frame.to_formula(&x, &y);
/// assert!(phi.contains(&[0.5, 2.0]) && phi.contains(&[1.0, 2.0]) && !phi.contains(&[2.0, 2.0]));
/// ```
#[derive(Clone, Debug)]
pub struct Polygon {
    outer: Ring,
    holes: Vec<Ring>,
}

impl Polygon {
    /// Checks that the holes lie inside the outer ring and apart from each other. Rings may touch in single points.
    pub fn new(outer: Ring, holes: Vec<Ring>) -> Result<Polygon, PolygonError> {
        holes::check(&outer, &holes)?;
        Ok(Polygon { outer, holes })
    }

    /// The corners of the outer ring in counterclockwise order.
    pub fn points(&self) -> &[[Rational; 2]] {
        self.outer.points()
    }

    /// The outer ring.
    pub fn outer(&self) -> &Ring {
        &self.outer
    }

    /// The holes, in the order in which they were given.
    pub fn holes(&self) -> &[Ring] {
        &self.holes
    }

    /// The exact area of the polygon, without the area of its holes.
    pub fn area(&self) -> Rational {
        self.holes.iter().fold(self.outer.area(), |area, hole| area - hole.area())
    }

    /// Whether the polygon is a convex set.
    pub fn is_convex(&self) -> bool {
        self.holes.is_empty() && self.outer.is_convex()
    }

    /// The closed polygon as a formula over the coordinates `x` and `y`: the outer hull without its pockets, each
    /// pocket without its own, and so on; and outside the interior of every hole.
    ///
    /// It has one literal for each edge and one for each pocket, all of them closed half-planes, and no negation.
    pub fn to_formula(&self, x: &Linear, y: &Linear) -> Formula {
        let outer = ring_formula(self.outer.points(), RingSide::Solid, x, y);
        let holes = self.holes.iter().map(|hole| ring_formula(hole.points(), RingSide::Hollow, x, y));
        Formula::all(std::iter::once(outer).chain(holes))
    }
}

impl From<Ring> for Polygon {
    fn from(outer: Ring) -> Self {
        Polygon { outer, holes: Vec::new() }
    }
}
