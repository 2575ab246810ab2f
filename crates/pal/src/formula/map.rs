//! Polygons of a map as a constraint over two variables: what all readers of maps share.

use super::{Constraint, Formula, Linear, Polygon, Var};
use crate::number::Rational;

/// What the polygons of a map mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// The polygons are obstacles: points inside `bounds` and in no polygon are allowed. Polygons are closed, so their
    /// edges are forbidden too.
    #[default]
    Forbidden,
    /// The points in the union of the polygons are allowed, within `bounds` where these are given.
    Walkable,
}

/// Why polygons do not make a map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Where obstacles are given, the area around them must be bounded.
    #[error("the map says what is forbidden but not where it ends: give bounds [x0, y0, x1, y1]")]
    NoBounds,
    /// The bounds enclose nothing.
    #[error("bounds [{0}] are empty: they are [x0, y0, x1, y1] with x0 < x1 and y0 < y1")]
    EmptyBounds(String),
}

/// The allowed points of a map, over the variables `x` and `y`. Obstacles and walkable polygons keep their order.
pub fn map_constraint(
    polygons: &[Polygon],
    meaning: Meaning,
    bounds: Option<&[Rational; 4]>,
) -> Result<Constraint, MapError> {
    let variables = Var::declare(["x", "y"]);
    let [x, y] = variables.clone().map(Linear::from);
    let polygons = polygons.iter().map(|polygon| polygon.to_formula(&x, &y));
    let formula = match meaning {
        Meaning::Forbidden => {
            let bounds = within(bounds.ok_or(MapError::NoBounds)?, &x, &y)?;
            Formula::all(std::iter::once(bounds).chain(polygons.map(|polygon| !polygon)))
        }
        Meaning::Walkable => {
            let bounds = bounds.map_or(Ok(Formula::yes()), |bounds| within(bounds, &x, &y))?;
            bounds & Formula::any(polygons)
        }
    };
    // Both coordinates count even where, as in an empty map, the formula mentions neither.
    Ok(Constraint { formula, reals: variables.to_vec(), booleans: Vec::new() })
}

fn within(bounds: &[Rational; 4], x: &Linear, y: &Linear) -> Result<Formula, MapError> {
    let [x0, y0, x1, y1] = bounds;
    if x0 >= x1 || y0 >= y1 {
        let shown: Vec<String> = bounds.iter().map(Rational::to_string).collect();
        return Err(MapError::EmptyBounds(shown.join(", ")));
    }
    Ok(x.between(x0.clone(), x1.clone()) & y.between(y0.clone(), y1.clone()))
}
