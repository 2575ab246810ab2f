//! Well-known binary (WKB): what shapely, geopandas and PostGIS store.
//!
//! Both byte orders, altitudes and measures in both conventions (of the standard and of PostGIS), and the reference
//! system of PostGIS, which is skipped. Coordinates are float64 numbers and stand for exactly what they denote.

use super::{Polygon, PolygonError, Ring};
use crate::number::{NumberError, Rational, from_f64};

/// Collections may nest this deep.
const MAX_NESTING: usize = 32;

/// A problem in well-known binary.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WkbError {
    /// The bytes end too early, or go on after the geometry.
    #[error("byte {0}: {1}")]
    Format(usize, String),
    /// A coordinate is not finite.
    #[error("byte {0}: {1}")]
    Number(usize, NumberError),
    /// The points do not form a simple polygon.
    #[error("byte {0}: {1}")]
    Polygon(usize, PolygonError),
}

/// Reads the polygons of one geometry in well-known binary, given as bytes or as their hexadecimal digits.
///
/// ```
/// use pal::formula::parse_wkb;
/// let mut bytes = vec![1, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0];
/// for coordinate in [0.0f64, 0.0, 2.0, 0.0, 0.0, 3.0] {
///     bytes.extend(coordinate.to_le_bytes());
/// }
/// assert_eq!(parse_wkb(&bytes).unwrap()[0].area().to_string(), "3");
/// ```
pub fn parse_wkb(bytes: &[u8]) -> Result<Vec<Polygon>, WkbError> {
    let decoded = digits(bytes);
    let mut reader = WkbReader { bytes: decoded.as_deref().unwrap_or(bytes), at: 0 };
    let mut polygons = Vec::new();
    reader.geometry(0, &mut polygons)?;
    if reader.at < reader.bytes.len() {
        return Err(reader.wrong("the geometry ends before the bytes do"));
    }
    Ok(polygons)
}

/// The bytes that hexadecimal digits stand for; `None` for anything else. Binary text begins with the byte 0 or 1.
fn digits(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.is_empty() || text.len() % 2 == 1 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|k| u8::from_str_radix(&text[k..k + 2], 16).ok()).collect()
}

struct WkbReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl WkbReader<'_> {
    fn wrong(&self, message: &str) -> WkbError {
        WkbError::Format(self.at, message.to_string())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], WkbError> {
        let found = self.bytes.get(self.at..self.at + N).and_then(|part| <[u8; N]>::try_from(part).ok());
        let taken = found.ok_or_else(|| self.wrong("the bytes end in the middle of a geometry"))?;
        self.at += N;
        Ok(taken)
    }

    fn integer(&mut self, little: bool) -> Result<u32, WkbError> {
        self.take().map(if little { u32::from_le_bytes } else { u32::from_be_bytes })
    }

    fn coordinate(&mut self, little: bool) -> Result<Rational, WkbError> {
        let at = self.at;
        let value = self.take().map(if little { f64::from_le_bytes } else { f64::from_be_bytes })?;
        from_f64(value).map_err(|error| WkbError::Number(at, error))
    }

    fn geometry(&mut self, depth: usize, polygons: &mut Vec<Polygon>) -> Result<(), WkbError> {
        let start = self.at;
        let [order] = self.take()?;
        if order > 1 {
            self.at = start;
            return Err(self.wrong(&format!("a geometry begins with its byte order, 0 or 1, not {order}")));
        }
        let little = order == 1;
        let code = self.integer(little)?;
        // PostGIS sets the highest bits, the standard adds thousands.
        if code & 0x2000_0000 != 0 {
            self.integer(little)?;
        }
        let plain = code & 0x0fff_ffff;
        let flags = (code >> 30 & 1) + (code >> 31 & 1);
        let more = match plain / 1000 {
            1 | 2 => 1,
            3 => 2,
            _ => flags,
        };
        match plain % 1000 {
            3 => self.polygon(little, 2 + more as usize, polygons),
            6 | 7 if depth >= MAX_NESTING => {
                Err(self.wrong(&format!("collections nest more than {MAX_NESTING} deep; flatten them")))
            }
            6 | 7 => {
                for _ in 0..self.integer(little)? {
                    self.geometry(depth + 1, polygons)?;
                }
                Ok(())
            }
            other => {
                self.at = start;
                let names = ["", "a point", "a line", "", "a set of points", "a set of lines"];
                let name = names.get(other as usize).filter(|name| !name.is_empty());
                let name = name.map_or_else(|| format!("of type {other}"), |name| name.to_string());
                Err(self.wrong(&format!(
                    "this geometry is {name}; only polygons, multipolygons and collections of these enclose an area"
                )))
            }
        }
    }

    fn polygon(&mut self, little: bool, width: usize, polygons: &mut Vec<Polygon>) -> Result<(), WkbError> {
        let start = self.at;
        let mut rings = Vec::new();
        for _ in 0..self.integer(little)? {
            let at = self.at;
            let mut points = Vec::new();
            for _ in 0..self.integer(little)? {
                points.push([self.coordinate(little)?, self.coordinate(little)?]);
                // Altitudes and measures are skipped; they may be NaN.
                for _ in 2..width {
                    self.take::<8>()?;
                }
            }
            rings.push(Ring::new(points).map_err(|error| WkbError::Polygon(at, error))?);
        }
        if rings.is_empty() {
            return Ok(());
        }
        let outer = rings.remove(0);
        polygons.push(Polygon::new(outer, rings).map_err(|error| WkbError::Polygon(start, error))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square with sides of 2 at (10, 20), as `shapely.to_wkb(shapely.box(10, 20, 12, 22), hex=True)` writes it.
    const SQUARE: &str = "010300000001000000050000000000000000002840000000000000344000000000000028400000000000003640\
        000000000000244000000000000036400000000000002440000000000000344000000000000028400000000000003440";

    #[test]
    fn hexadecimal_digits_and_bytes_are_the_same() {
        let bytes = digits(SQUARE.as_bytes()).unwrap();
        for polygons in [parse_wkb(SQUARE.as_bytes()).unwrap(), parse_wkb(&bytes).unwrap()] {
            assert_eq!(polygons.len(), 1);
            assert_eq!(polygons[0].area().to_string(), "4");
        }
        let longer = parse_wkb(&[&bytes[..], &[0]].concat()).unwrap_err();
        assert_eq!(longer.to_string(), "byte 93: the geometry ends before the bytes do");
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let bytes = digits(SQUARE.as_bytes()).unwrap();
        for length in 0..bytes.len() {
            assert!(parse_wkb(&bytes[..length]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let _ = parse_wkb(&damaged);
            }
        }
        let mut point = vec![1, 1, 0, 0, 0];
        point.extend([0; 16]);
        assert!(parse_wkb(&point).unwrap_err().to_string().contains("this geometry is a point"));
    }
}
