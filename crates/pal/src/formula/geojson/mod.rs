//! GeoJSON maps as constraints over the reals `x` and `y`.
//!
//! The reader accepts a `FeatureCollection`, a `Feature` or a bare geometry. A geometry is a `Polygon` or a
//! `MultiPolygon`, with or without holes, or a `GeometryCollection` of these. Polygons may touch and overlap. Numbers
//! are taken from the text digit by digit: `0.1` is 1/10.
//!
//! - Features without geometry (`null`), and polygons whose `coordinates` are empty, are skipped.
//! - A third coordinate (altitude) is ignored, as RFC 7946 permits; in a `bbox` of six numbers, too.
//! - Rings may have either winding and need not repeat their first point. Coordinates are taken as plane coordinates:
//!   nothing wraps around at 180 degrees.
//! - A map without polygons leaves all of `bounds` where polygons are forbidden, and nothing where they are walkable.

mod document;

use super::{Constraint, Formula, Linear, Polygon, PolygonError, Ring, Var};
use crate::number::Rational;
use document::Document;

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

/// How to read a map.
#[derive(Clone, Debug, Default)]
pub struct GeoJsonOptions {
    /// What the polygons mean.
    pub meaning: Meaning,
    /// The rectangle `[x0, y0, x1, y1]` that allowed points lie in. It overrides the member `bounds` of the file, which
    /// overrides its `bbox`. A `bbox` is used for [`Meaning::Forbidden`] only: it restricts nothing, it merely says
    /// where the map ends.
    pub bounds: Option<[Rational; 4]>,
}

/// A problem in a GeoJSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeoJsonError {
    /// The text is not JSON.
    #[error("line {line}, column {column}: not JSON: {message}")]
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The text is JSON, but not a map of polygons.
    #[error("line {line}, column {column}: {place}: {message}")]
    Map {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// The feature, polygon and ring that the problem is in.
        place: String,
        /// What is wrong and what would work.
        message: String,
    },
    /// The points do not form a simple polygon.
    #[error("line {line}, column {column}: {place}: {error}")]
    Polygon {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted in characters from 1.
        column: usize,
        /// The feature, polygon and ring that the problem is in.
        place: String,
        /// What is wrong with the polygon.
        error: PolygonError,
    },
    /// Where obstacles are given, the area around them must be bounded.
    #[error(
        "the map says what is forbidden but not where it ends: give bounds [x0, y0, x1, y1] as an option, \
         or as a member `bounds` or `bbox` of the file"
    )]
    NoBounds,
    /// The bounds enclose nothing.
    #[error("bounds [{0}] are empty: they are [x0, y0, x1, y1] with x0 < x1 and y0 < y1")]
    EmptyBounds(String),
}

/// Reads a map over the variables `x` and `y`. Obstacles and walkable polygons keep the order of the file.
///
/// ```
/// use pal::formula::{parse_geojson, GeoJsonOptions};
/// let map = r#"{"type": "FeatureCollection", "bounds": [0, 0, 4, 4], "features": [{"type": "Feature", "geometry":
///     {"type": "Polygon", "coordinates": [[[1, 1], [3, 1], [2, 3], [1, 1]]]}}]}"#;
/// let free = parse_geojson(map, &GeoJsonOptions::default()).unwrap().membership().unwrap();
/// assert!(free.contains(&[0.5, 0.5]));
/// assert!(!free.contains(&[2.0, 2.0]) && !free.contains(&[2.0, 1.0]) && !free.contains(&[5.0, 0.5]));
/// ```
pub fn parse_geojson(text: &str, options: &GeoJsonOptions) -> Result<Constraint, GeoJsonError> {
    let document = Document::read(text)?;
    let mut polygons: Vec<Polygon> = Vec::new();
    document.for_each_polygon(|polygon| {
        let mut rings = Vec::with_capacity(polygon.rings.len());
        for (number, ring) in polygon.rings.into_iter().enumerate() {
            let place =
                || if number == 0 { "outer ring".into() } else { format!("ring {number} (hole {})", number - 1) };
            rings.push(Ring::new(ring).map_err(|error| polygon.place.refuse_ring(&place(), error))?);
        }
        let outer = rings.remove(0);
        polygons.push(Polygon::new(outer, rings).map_err(|error| polygon.place.refuse(error))?);
        Ok(())
    })?;
    let variables = Var::declare(["x", "y"]);
    let [x, y] = variables.clone().map(Linear::from);
    let own_bounds = match &options.bounds {
        Some(bounds) => Some(bounds.clone()),
        None => document.bounds()?,
    };
    let polygons = polygons.iter().map(|polygon| polygon.to_formula(&x, &y));
    let formula = match options.meaning {
        Meaning::Forbidden => {
            let bounds = match own_bounds {
                Some(bounds) => bounds,
                None => document.bbox()?.ok_or(GeoJsonError::NoBounds)?,
            };
            Formula::all(std::iter::once(within(&bounds, &x, &y)?).chain(polygons.map(|polygon| !polygon)))
        }
        Meaning::Walkable => {
            let bounds = own_bounds.map_or(Ok(Formula::yes()), |bounds| within(&bounds, &x, &y))?;
            bounds & Formula::any(polygons)
        }
    };
    // Both coordinates count even where, as in an empty map, the formula mentions neither.
    Ok(Constraint { formula, reals: variables.to_vec(), booleans: Vec::new() })
}

fn within(bounds: &[Rational; 4], x: &Linear, y: &Linear) -> Result<Formula, GeoJsonError> {
    let [x0, y0, x1, y1] = bounds;
    if x0 >= x1 || y0 >= y1 {
        let shown: Vec<String> = bounds.iter().map(Rational::to_string).collect();
        return Err(GeoJsonError::EmptyBounds(shown.join(", ")));
    }
    Ok(x.between(x0.clone(), x1.clone()) & y.between(y0.clone(), y1.clone()))
}
