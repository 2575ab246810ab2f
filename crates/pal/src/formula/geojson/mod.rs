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

use super::{Constraint, MapError, Meaning, Polygon, PolygonError, Ring, map_constraint};
use crate::number::Rational;
use document::Document;

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
    let bounds = match (&options.bounds, options.meaning) {
        (Some(bounds), _) => Some(bounds.clone()),
        (None, Meaning::Walkable) => document.bounds()?,
        (None, Meaning::Forbidden) => match document.bounds()? {
            Some(bounds) => Some(bounds),
            None => document.bbox()?,
        },
    };
    map_constraint(&polygons, options.meaning, bounds.as_ref()).map_err(|error| match error {
        MapError::NoBounds => GeoJsonError::NoBounds,
        MapError::EmptyBounds(shown) => GeoJsonError::EmptyBounds(shown),
    })
}
