//! Cells and simplices as text and as JSON lines.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use pal::formula::{Constraint, Linear};
use pal::number::{Integer, Rational, to_f64};
use pal::region::Cell;
use serde::Serialize;

use crate::numbers::{brief, counted, json_integer, readable};
use crate::output::json_line;

/// How cells are printed, and the constraint whose variables are named.
pub struct Style<'a> {
    pub json: bool,
    pub exact: bool,
    pub constraint: &'a Constraint,
}

/// One simplex of a cell: indices of vertices of the cell.
pub struct Simplex<'a> {
    pub index: usize,
    pub cell: usize,
    pub corners: &'a [usize],
}

/// What was listed, and why the list ends.
#[derive(Serialize)]
pub struct CellSummary {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub cells: usize,
    pub simplices: Option<usize>,
    pub volume: f64,
    pub volume_exact: String,
    pub stop: &'static str,
    pub seconds: f64,
}

#[derive(Serialize)]
struct HalfSpace {
    normal: Vec<serde_json::Value>,
    offset: serde_json::Value,
}

#[derive(Serialize)]
struct CellLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: usize,
    vertices: Vec<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vertices_exact: Option<Vec<Vec<String>>>,
    half_spaces: Vec<HalfSpace>,
    facets: Vec<Vec<usize>>,
    bin: Option<&'a [u32]>,
    booleans: BTreeMap<&'a str, Option<bool>>,
    volume: f64,
    volume_exact: String,
}

#[derive(Serialize)]
struct SimplexLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: usize,
    cell: usize,
    corners: &'a [usize],
    vertices: Vec<&'a [f64]>,
}

impl Style<'_> {
    pub fn cell(&self, out: &mut impl Write, index: usize, cell: &Cell, volume: &Rational) -> Result<()> {
        let polytope = cell.polytope();
        let facets = (0..polytope.half_spaces().len()).map(|facet| polytope.facet_vertices(facet));
        let booleans = || self.constraint.booleans.iter().map(|var| var.name()).zip(cell.booleans().iter().copied());
        if self.json {
            let exact =
                || polytope.exact_vertices().iter().map(|v| v.iter().map(Rational::to_string).collect()).collect();
            let half_space = |(normal, offset): (Vec<Integer>, Integer)| HalfSpace {
                normal: normal.iter().map(json_integer).collect(),
                offset: json_integer(&offset),
            };
            let line = CellLine {
                kind: "cell",
                index,
                vertices: polytope.vertices().iter().map(|v| v.coordinates()).collect(),
                vertices_exact: self.exact.then(exact),
                half_spaces: polytope.half_spaces().into_iter().map(half_space).collect(),
                facets: facets.collect(),
                bin: (!cell.bin().is_empty()).then(|| cell.bin()),
                booleans: booleans().collect(),
                volume: to_f64(volume),
                volume_exact: volume.to_string(),
            };
            return json_line(out, &line);
        }
        write!(out, "cell {index}: volume {}", readable(volume))?;
        if !cell.bin().is_empty() {
            write!(out, ", bin {:?}", cell.bin())?;
        }
        for (name, value) in booleans() {
            match value {
                Some(value) => write!(out, ", {name} = {value}")?,
                None => write!(out, ", {name} either way")?,
            }
        }
        writeln!(out)?;
        for (v, (vertex, exact)) in polytope.vertices().iter().zip(polytope.exact_vertices()).enumerate() {
            let text = |(x, exact): (&f64, &Rational)| if self.exact { exact.to_string() } else { shorter(*x, exact) };
            let point: Vec<String> = vertex.coordinates().iter().zip(&exact).map(text).collect();
            writeln!(out, "  vertex {v}  ({})", point.join(", "))?;
        }
        for ((normal, offset), on) in polytope.half_spaces().into_iter().zip(facets) {
            writeln!(out, "  facet {on:?}  {}", self.inequality(&normal, &offset))?;
        }
        Ok(())
    }

    /// `2 x - y <= 3`
    fn inequality(&self, normal: &[Integer], offset: &Integer) -> String {
        let terms = self.constraint.reals.iter().cloned().zip(normal.iter().cloned().map(Rational::from));
        format!("{} <= {offset}", Linear::new(terms, Rational::ZERO))
    }

    pub fn simplex(&self, out: &mut impl Write, simplex: &Simplex, cell: &Cell) -> Result<()> {
        if !self.json {
            writeln!(out, "  simplex {}  {:?}", simplex.index, simplex.corners)?;
            return Ok(());
        }
        let vertices = cell.polytope().vertices();
        let line = SimplexLine {
            kind: "simplex",
            index: simplex.index,
            cell: simplex.cell,
            corners: simplex.corners,
            vertices: simplex.corners.iter().map(|v| vertices[*v].coordinates()).collect(),
        };
        json_line(out, &line)
    }

    pub fn summary(&self, out: &mut impl Write, summary: &CellSummary, volume: &Rational) -> Result<()> {
        if self.json {
            return json_line(out, summary);
        }
        write!(out, "{}", counted(summary.cells, "cell"))?;
        if let Some(simplices) = summary.simplices {
            write!(out, ", {simplices} {}", if simplices == 1 { "simplex" } else { "simplices" })?;
        }
        writeln!(out, ", volume {}, {}", readable(volume), summary.stop)?;
        Ok(())
    }
}

/// The fraction if it is short, else the decimal.
fn shorter(x: f64, exact: &Rational) -> String {
    let text = brief(exact);
    if text.starts_with('~') { x.to_string() } else { text }
}
