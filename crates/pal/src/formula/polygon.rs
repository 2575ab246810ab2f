//! Polygons as formulas.
use super::{Formula, Linear};
use crate::number::Rational;

/// A closed ring of points, without the repeated last one.
#[derive(Clone, Debug)]
pub struct Ring {
    points: Vec<[Rational; 2]>,
}

/// A simple polygon with holes.
#[derive(Clone, Debug)]
pub struct Polygon {
    outer: Ring,
    holes: Vec<Ring>,
}

/// Why a ring is not a simple polygon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolygonError {
    /// placeholder
    #[error("placeholder")]
    Placeholder,
}

impl Ring {
    /// Checks a ring.
    pub fn new(points: Vec<[Rational; 2]>) -> Result<Ring, PolygonError> {
        Ok(Ring { points })
    }
}

impl Polygon {
    /// Checks a polygon.
    pub fn new(outer: Ring, holes: Vec<Ring>) -> Result<Polygon, PolygonError> {
        Ok(Polygon { outer, holes })
    }
    /// The closed polygon as a formula over the coordinates `x`, `y`.
    pub fn to_formula(&self, _x: &Linear, _y: &Linear) -> Formula {
        let _ = (&self.outer.points, &self.holes);
        todo!()
    }
}
