//! The structure of a GeoJSON text: which polygons it holds and where they stand in it.
//!
//! Values are kept as slices of the text and taken apart only where they matter. That keeps every digit of a number,
//! gives the line and column of whatever is wrong, and never recurses into data that is not looked at.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::value::RawValue;

use super::GeoJsonError;
use crate::formula::PolygonError;
use crate::json::Members;
use crate::number::{Rational, parse_rational};

/// Collections may nest this deep. RFC 7946 advises against nesting them at all.
const MAX_NESTING: usize = 32;

type JsonMembers<'a> = BTreeMap<String, &'a RawValue>;

/// A text that is known to be JSON with an object at the top.
pub(super) struct Document<'a> {
    text: &'a str,
    root: JsonValue<'a>,
    members: JsonMembers<'a>,
}

/// One polygon as the text gives it: the points of its rings, the outer one first. There is at least one ring.
pub(super) struct PolygonText<'a> {
    pub(super) rings: Vec<Vec<[Rational; 2]>>,
    pub(super) place: JsonValue<'a>,
}

/// A value of the text, with its place in words.
#[derive(Clone)]
pub(super) struct JsonValue<'a> {
    text: &'a str,
    raw: &'a str,
    name: Rc<str>,
}

impl<'a> Document<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, GeoJsonError> {
        // Some editors start a file with a byte order mark, which JSON does not know.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
            let described = error.to_string();
            let message = described.rfind(" at line ").map_or(described.as_str(), |end| &described[..end]);
            // The reader counts columns in bytes, and has none for an empty text.
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
            let column = line.char_indices().take_while(|(at, _)| *at < error.column()).count().max(1);
            GeoJsonError::Json { line: error.line(), column, message: message.to_string() }
        })?;
        let root = JsonValue { text, raw: raw.get(), name: "the map".into() };
        let members = root.members("a GeoJSON object")?;
        Ok(Document { text, root, members })
    }

    /// The member `bounds`, which is not part of the GeoJSON standard.
    pub(super) fn bounds(&self) -> Result<Option<[Rational; 4]>, GeoJsonError> {
        self.corners("bounds", "[x0, y0, x1, y1]", |list| <[Rational; 4]>::try_from(list).ok())
    }

    /// The standard member `bbox`, whose corners may carry altitudes.
    pub(super) fn bbox(&self) -> Result<Option<[Rational; 4]>, GeoJsonError> {
        self.corners("bbox", "[x0, y0, x1, y1] or [x0, y0, z0, x1, y1, z1]", |list| match list.len() {
            6 => <[Rational; 6]>::try_from(list).ok().map(|[x0, y0, _, x1, y1, _]| [x0, y0, x1, y1]),
            _ => <[Rational; 4]>::try_from(list).ok(),
        })
    }

    fn corners(
        &self,
        name: &str,
        form: &str,
        pick: impl Fn(Vec<Rational>) -> Option<[Rational; 4]>,
    ) -> Result<Option<[Rational; 4]>, GeoJsonError> {
        let Some(raw) = self.members.get(name) else { return Ok(None) };
        let value = self.value(raw, format!("member `{name}`"));
        let list = value.items(form)?.iter().map(JsonValue::number).collect::<Result<Vec<_>, _>>()?;
        let count = list.len();
        pick(list).map(Some).ok_or_else(|| value.error(format!("needs the form {form}, but has {count} numbers")))
    }

    fn value(&self, raw: &'a RawValue, name: String) -> JsonValue<'a> {
        JsonValue { text: self.text, raw: raw.get(), name: name.into() }
    }

    /// Calls `visit` with every polygon, in the order of the file.
    pub(super) fn for_each_polygon(
        &self,
        mut visit: impl FnMut(PolygonText<'a>) -> Result<(), GeoJsonError>,
    ) -> Result<(), GeoJsonError> {
        if self.root.kind(&self.members)? != "FeatureCollection" {
            return self.root.visit_object(&self.members, 0, &mut visit);
        }
        let features = self.root.member(&self.members, "features")?.items("a list of features")?;
        for (number, mut feature) in features.into_iter().enumerate() {
            feature.name = format!("feature {number}").into();
            let members = feature.members("a Feature object")?;
            if let Some(id) = members.get("id").filter(|id| id.get() != "null") {
                feature.name = format!("feature {number} (id {})", id.get()).into();
            }
            feature.visit_object(&members, 0, &mut visit)?;
        }
        Ok(())
    }
}

impl<'a> JsonValue<'a> {
    /// Visits the polygons of a `Feature` or a geometry.
    fn visit_object(
        &self,
        members: &JsonMembers<'a>,
        depth: usize,
        visit: &mut impl FnMut(PolygonText<'a>) -> Result<(), GeoJsonError>,
    ) -> Result<(), GeoJsonError> {
        match self.kind(members)?.as_str() {
            "Feature" if depth == 0 => {
                let geometry = self.member(members, "geometry")?;
                if geometry.raw == "null" {
                    return Ok(());
                }
                geometry.visit_object(&geometry.members("a geometry object or null")?, 1, visit)
            }
            "Polygon" => self.visit_polygon(&self.member(members, "coordinates")?, visit),
            "MultiPolygon" => {
                let polygons = self.member(members, "coordinates")?.items("a list of polygons")?;
                for (number, mut polygon) in polygons.into_iter().enumerate() {
                    polygon.name = format!("{}, polygon {number}", self.name).into();
                    polygon.visit_polygon(&polygon, visit)?;
                }
                Ok(())
            }
            "GeometryCollection" if depth >= MAX_NESTING => {
                Err(self.error(format!("geometry collections nest more than {MAX_NESTING} deep; flatten them")))
            }
            "GeometryCollection" => {
                let geometries = self.member(members, "geometries")?.items("a list of geometries")?;
                for (number, mut geometry) in geometries.into_iter().enumerate() {
                    geometry.name = format!("{}, geometry {number}", self.name).into();
                    geometry.visit_object(&geometry.members("a geometry object")?, depth + 1, visit)?;
                }
                Ok(())
            }
            other => Err(self.error(format!(
                "is a {other}, which encloses no area; only Polygon, MultiPolygon and GeometryCollections of these work"
            ))),
        }
    }

    fn visit_polygon(
        &self,
        coordinates: &JsonValue<'a>,
        visit: &mut impl FnMut(PolygonText<'a>) -> Result<(), GeoJsonError>,
    ) -> Result<(), GeoJsonError> {
        let mut rings = Vec::new();
        for (number, mut ring) in coordinates.items("a list of rings")?.into_iter().enumerate() {
            ring.name = format!("{}, ring {number}", self.name).into();
            let points = ring.items("a list of points")?;
            let points: Result<Vec<_>, _> = points.iter().enumerate().map(|(k, point)| point.position(k)).collect();
            rings.push(points?);
        }
        if rings.is_empty() {
            return Ok(());
        }
        visit(PolygonText { rings, place: self.clone() })
    }

    /// Point `number` of a ring. Its name is made up only where it is needed, for a message.
    fn position(&self, number: usize) -> Result<[Rational; 2], GeoJsonError> {
        let named = || self.named(format!("{}, point {number}", self.name));
        self.coordinates().or_else(|_| named().coordinates())
    }

    fn coordinates(&self) -> Result<[Rational; 2], GeoJsonError> {
        let numbers = self.items("a point [x, y]")?;
        let [x, y, altitudes @ ..] = &numbers[..] else {
            return Err(self.error(format!("needs the form [x, y], but has {} numbers", numbers.len())));
        };
        // Altitudes are ignored, but they must be numbers.
        altitudes.iter().try_for_each(|altitude| altitude.number().map(|_| ()))?;
        Ok([x.number()?, y.number()?])
    }

    fn number(&self) -> Result<Rational, GeoJsonError> {
        if !self.raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Err(self.error(format!("needs a number, not {}", shorten(self.raw))));
        }
        parse_rational(self.raw).map_err(|error| self.error(error.to_string()))
    }

    fn members(&self, wanted: &str) -> Result<JsonMembers<'a>, GeoJsonError> {
        self.check_opening('{', wanted)?;
        // The text is known to be JSON, so that a name that occurs twice is all that can be wrong.
        let members: Members<&RawValue> = serde_json::from_str(self.raw).map_err(|error| {
            let described = error.to_string();
            let end = described.rfind(" at line ").unwrap_or(described.len());
            self.error(format!("cannot be read: {}", &described[..end]))
        })?;
        Ok(members.0.into_iter().collect())
    }

    fn items(&self, wanted: &str) -> Result<Vec<JsonValue<'a>>, GeoJsonError> {
        self.check_opening('[', wanted)?;
        let wrong = |_| self.error(format!("needs {wanted}, not {}", shorten(self.raw)));
        let items: Vec<&RawValue> = serde_json::from_str(self.raw).map_err(wrong)?;
        Ok(items.into_iter().map(|item| JsonValue { raw: item.get(), ..self.clone() }).collect())
    }

    fn member(&self, members: &JsonMembers<'a>, name: &str) -> Result<JsonValue<'a>, GeoJsonError> {
        let raw = members.get(name).ok_or_else(|| self.error(format!("has no member `{name}`")))?;
        Ok(JsonValue { raw: raw.get(), ..self.clone() })
    }

    fn kind(&self, members: &JsonMembers<'a>) -> Result<String, GeoJsonError> {
        let kind = self.member(members, "type")?;
        let wrong = || kind.error(format!("needs a text as its `type`, not {}", shorten(kind.raw)));
        serde_json::from_str(kind.raw).map_err(|_| wrong())
    }

    fn check_opening(&self, opening: char, wanted: &str) -> Result<(), GeoJsonError> {
        match self.raw.starts_with(opening) {
            true => Ok(()),
            false => Err(self.error(format!("needs {wanted}, not {}", shorten(self.raw)))),
        }
    }

    fn named(&self, name: String) -> JsonValue<'a> {
        JsonValue { name: name.into(), ..self.clone() }
    }

    fn error(&self, message: String) -> GeoJsonError {
        let (line, column) = self.position_in_text();
        GeoJsonError::Map { line, column, place: self.name.to_string(), message }
    }

    /// The error for the polygon at this place of the text.
    pub(super) fn refuse(&self, error: PolygonError) -> GeoJsonError {
        let (line, column) = self.position_in_text();
        GeoJsonError::Polygon { line, column, place: self.name.to_string(), error }
    }

    /// The error for one ring of the polygon at this place of the text.
    pub(super) fn refuse_ring(&self, ring: &str, error: PolygonError) -> GeoJsonError {
        self.named(format!("{}, {ring}", self.name)).refuse(error)
    }

    fn position_in_text(&self) -> (usize, usize) {
        // The value is a slice of the text, so the distance of their addresses is where it starts.
        let offset = (self.raw.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// The beginning of a value, for messages.
fn shorten(raw: &str) -> String {
    const LENGTH: usize = 30;
    match raw.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} ..", &raw[..end]),
        None => raw.to_string(),
    }
}
