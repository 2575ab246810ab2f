//! GeoJSON maps as constraints.
use super::Constraint;
use crate::number::Rational;

/// What the polygons of a map mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// Obstacles: allowed is what lies inside `bounds` and in no polygon.
    #[default]
    Forbidden,
    /// Allowed is the union of the polygons (within `bounds`, where given).
    Walkable,
}

/// How to read a map.
#[derive(Clone, Debug, Default)]
pub struct GeoJsonOptions {
    /// What the polygons mean.
    pub meaning: Meaning,
    /// `[x0, y0, x1, y1]`; overrides the `bounds` (or `bbox`) member of the file.
    pub bounds: Option<[Rational; 4]>,
}

/// A problem in a GeoJSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeoJsonError {
    /// placeholder
    #[error("placeholder")]
    Placeholder,
}

/// Reads a map over the variables `x` and `y`.
pub fn parse_geojson(_text: &str, _options: &GeoJsonOptions) -> Result<Constraint, GeoJsonError> {
    todo!()
}
