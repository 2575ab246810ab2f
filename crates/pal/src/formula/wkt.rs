//! Well-known text (WKT) of the Open Geospatial Consortium: `POLYGON ((0 0, 4 0, 4 3, 0 0))`.
//!
//! Polygons, multipolygons and collections of these, one after the other, in any case of letters; with altitudes and
//! measures (`Z`, `M`, `ZM`), which are ignored, and with a leading `SRID=..;` as PostGIS writes it. Numbers are taken
//! digit by digit: `0.1` is 1/10.

use super::{Polygon, PolygonError, Ring};
use crate::number::{Rational, parse_rational};

/// Collections may nest this deep.
const MAX_NESTING: usize = 32;

/// A problem in well-known text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct WktError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted in characters from 1.
    pub column: usize,
    /// What is wrong, and what would work.
    pub problem: WktProblem,
}

/// What is wrong with well-known text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WktProblem {
    /// The text is not what the format asks for.
    #[error("{0}")]
    Syntax(String),
    /// The points do not form a simple polygon.
    #[error(transparent)]
    Polygon(#[from] PolygonError),
}

/// Reads the polygons of well-known text, in the order of the text.
///
/// ```
/// use pal::formula::parse_wkt;
/// let polygons = parse_wkt("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))").unwrap();
/// assert_eq!(polygons[0].area().to_string(), "31/2");
/// assert!(parse_wkt("LINESTRING (0 0, 1 1)").is_err());
/// ```
pub fn parse_wkt(text: &str) -> Result<Vec<Polygon>, WktError> {
    let mut reader = WktReader { text, at: 0 };
    let mut polygons = Vec::new();
    while reader.peek().is_some() {
        reader.geometry(0, &mut polygons)?;
        reader.take(';');
    }
    Ok(polygons)
}

struct WktReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> WktReader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char, place: &str) -> Result<(), WktError> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong(&format!("`{wanted}`"), place)) }
    }

    /// The letters or the number that comes next.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        self.peek();
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn error_at(&self, at: usize, problem: WktProblem) -> WktError {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        WktError { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, problem }
    }

    fn wrong(&mut self, wanted: &str, place: &str) -> WktError {
        let found: String = match self.peek() {
            None => "the end of the text".to_string(),
            Some(_) => format!("`{}`", self.rest().chars().take(12).collect::<String>()),
        };
        self.error_at(self.at, WktProblem::Syntax(format!("{place} needs {wanted} here, not {found}")))
    }

    fn geometry(&mut self, depth: usize, polygons: &mut Vec<Polygon>) -> Result<(), WktError> {
        self.peek();
        let start = self.at;
        let mut name = self.word(|c| c.is_ascii_alphabetic()).to_ascii_uppercase();
        if name == "SRID" && self.take('=') {
            self.word(|c| c.is_ascii_digit());
            self.expect(';', "the SRID")?;
            return self.geometry(depth, polygons);
        }
        // Altitudes and measures may be announced as a word of their own, or at the end of the name.
        for suffix in ["ZM", "Z", "M"] {
            if let Some(plain) = name.strip_suffix(suffix).filter(|plain| plain.ends_with("POLYGON")) {
                name = plain.to_string();
            }
        }
        let before = self.at;
        let flag = self.word(|c| c.is_ascii_alphabetic()).to_ascii_uppercase();
        let mut empty = flag == "EMPTY";
        match flag.as_str() {
            "Z" | "M" | "ZM" => {
                let after = self.at;
                empty = self.word(|c| c.is_ascii_alphabetic()).eq_ignore_ascii_case("EMPTY");
                self.at = if empty { self.at } else { after };
            }
            "" | "EMPTY" => {}
            _ => self.at = before,
        }
        match name.as_str() {
            _ if empty => Ok(()),
            "POLYGON" => self.polygon(polygons),
            "MULTIPOLYGON" => self.list("a multipolygon", |reader| reader.polygon(polygons)),
            "GEOMETRYCOLLECTION" if depth >= MAX_NESTING => {
                let message = format!("collections nest more than {MAX_NESTING} deep; flatten them");
                Err(self.error_at(start, WktProblem::Syntax(message)))
            }
            "GEOMETRYCOLLECTION" => self.list("a collection", |reader| reader.geometry(depth + 1, polygons)),
            "" => {
                self.at = start;
                Err(self.wrong("a name such as POLYGON", "a geometry"))
            }
            other => {
                let message = format!(
                    "{other} encloses no area; only POLYGON, MULTIPOLYGON and GEOMETRYCOLLECTION of these work"
                );
                Err(self.error_at(start, WktProblem::Syntax(message)))
            }
        }
    }

    fn list(&mut self, place: &str, mut item: impl FnMut(&mut Self) -> Result<(), WktError>) -> Result<(), WktError> {
        self.expect('(', place)?;
        loop {
            item(self)?;
            if !self.take(',') {
                return self.expect(')', place);
            }
        }
    }

    fn polygon(&mut self, polygons: &mut Vec<Polygon>) -> Result<(), WktError> {
        self.peek();
        let start = self.at;
        let mut rings = Vec::new();
        self.list("a polygon", |reader| {
            reader.peek();
            let (at, mut points) = (reader.at, Vec::new());
            reader.list("a ring", |reader| {
                points.push(reader.point()?);
                Ok(())
            })?;
            rings.push(Ring::new(points).map_err(|error| reader.error_at(at, error.into()))?);
            Ok(())
        })?;
        let outer = rings.remove(0);
        polygons.push(Polygon::new(outer, rings).map_err(|error| self.error_at(start, error.into()))?);
        Ok(())
    }

    /// A point; altitude and measure are read and ignored.
    fn point(&mut self) -> Result<[Rational; 2], WktError> {
        let point = [self.number()?, self.number()?];
        for _ in 0..2 {
            if !matches!(self.peek(), Some(',' | ')')) {
                self.number()?;
            }
        }
        Ok(point)
    }

    fn number(&mut self) -> Result<Rational, WktError> {
        self.peek();
        let start = self.at;
        let digits = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'));
        if digits.is_empty() {
            return Err(self.wrong("a number", "a point"));
        }
        parse_rational(digits).map_err(|error| self.error_at(start, WktProblem::Syntax(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas(text: &str) -> Vec<String> {
        parse_wkt(text).unwrap().iter().map(|polygon| polygon.area().to_string()).collect()
    }

    #[test]
    fn all_ways_of_writing_polygons() {
        assert_eq!(areas("polygon((0 0,1 0,1 0.1,0 0.1,0 0))"), ["1/10"]);
        assert_eq!(areas("SRID=4326;POLYGON Z ((0 0 9, 2 0 9, 2 1 9, 0 0 9))"), ["1"]);
        assert_eq!(areas("POLYGONZM((0 0 1 2, 2 0 1 2, 2 1 1 2))"), ["1"]);
        assert_eq!(
            areas("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1)), ((2 2, 4 2, 4 4), (3 2.5, 3.5 2.5, 3.5 3)))"),
            ["1", "15/8"]
        );
        let collection = "GEOMETRYCOLLECTION (POLYGON ((0 0, 1 0, 0 1)), MULTIPOLYGON EMPTY, POLYGON EMPTY)\n\
            POLYGON ((0 0, 1e1 0, 0 1))";
        assert_eq!(areas(collection), ["1/2", "5"]);
        assert_eq!(areas(" \n "), [] as [&str; 0]);
    }

    #[test]
    fn errors_name_the_place() {
        let message = |text: &str| parse_wkt(text).unwrap_err().to_string();
        assert_eq!(
            message("POLYGON ((0 0, 1 0, 0 1))\nPOINT (1 2)"),
            "line 2, column 1: POINT encloses no area; only POLYGON, MULTIPOLYGON and GEOMETRYCOLLECTION of these work"
        );
        assert_eq!(message("POLYGON (0 0, 1 0)"), "line 1, column 10: a ring needs `(` here, not `0 0, 1 0)`");
        assert_eq!(
            message("POLYGON ((0 0, 1 0, 1 x1))"),
            "line 1, column 23: `x1` is not a number; write an integer, a decimal such as 0.25 or a fraction such as 1/3"
        );
        assert_eq!(
            message("POLYGON ((0 0, 1 0, 1 1)"),
            "line 1, column 25: a polygon needs `)` here, not the end of the text"
        );
        assert!(message("POLYGON ((0 0, 2 2, 2 0, 0 2))").starts_with("line 1, column 10: "));
        assert!(message("17").contains("a name such as POLYGON"));
    }
}
