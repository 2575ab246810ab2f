//! Pictures of regions in one and two dimensions, as PNG or SVG.
//!
//! A [`Scene`] says what to show, [`layout`] where it goes on the page, [`draw`] draws it on a [`page`] of plotters,
//! and [`mod@file`] makes the bytes of a file.

mod axis;
mod colours;
pub mod density;
mod draw;
pub mod file;
mod layout;
mod page;
pub mod panels;

use anyhow::{Result, bail};
use pal::formula::Var;
use pal::region::{Cell, Polytope};

/// A point of the picture's plane, in the coordinates of the constraint.
pub type Point = [f64; 2];

/// What a picture shows.
pub struct Scene {
    pub title: Option<String>,
    /// The names of the one or two variables.
    pub axes: Vec<String>,
    pub cells: Vec<CellShape>,
    /// Whether cells are coloured and outlined; otherwise only the region is.
    pub show_cells: bool,
    /// Whether the second variable grows downwards, as in images.
    pub y_down: bool,
}

/// The shape of one cell: a convex polygon.
pub struct CellShape {
    outline: Vec<Point>,
    /// Segments inside the polygon: the triangulation.
    inner: Vec<[Point; 2]>,
}

impl Scene {
    /// Makes a scene over the given variables, without cells yet.
    pub fn new(variables: &[Var]) -> Result<Scene> {
        if !(1..=2).contains(&variables.len()) {
            bail!(
                "a picture needs a constraint over 1 or 2 real variables, this one has {}; \
                 `pal cells` lists cells in any dimension; to draw a slice, put constants in place of the other \
                 variables",
                variables.len()
            );
        }
        let axes = variables.iter().map(Var::to_string).collect();
        Ok(Scene { title: None, axes, cells: Vec::new(), show_cells: true, y_down: false })
    }
}

impl CellShape {
    /// Makes the shape of a cell in one or two dimensions, with the inner edges of its triangulation if asked.
    pub fn new(cell: &Cell, triangulate: bool) -> CellShape {
        let polytope = cell.polytope();
        let points: Vec<Point> = polytope.vertices().iter().map(|v| planar(v.coordinates())).collect();
        if polytope.dimension() < 2 {
            let (low, high) = polytope.extent(0);
            return CellShape { outline: vec![[low, 0.0], [high, 0.0], [high, 1.0], [low, 1.0]], inner: Vec::new() };
        }
        let ring = ring(polytope);
        let at = |k: usize| ring.iter().position(|v| *v == k).unwrap_or(0);
        let beside = |a: usize, b: usize| (at(a) + 1) % ring.len() == at(b) || (at(b) + 1) % ring.len() == at(a);
        let mut inner = Vec::new();
        if triangulate {
            for triangle in polytope.triangulate() {
                for (a, b) in [(0, 1), (1, 2), (0, 2)].map(|(a, b)| (triangle[a], triangle[b])) {
                    if !beside(a, b) {
                        inner.push([points[a], points[b]]);
                    }
                }
            }
        }
        CellShape { outline: ring.iter().map(|v| points[*v]).collect(), inner }
    }

    /// Smallest and largest coordinate along an axis.
    fn extent(&self, axis: usize) -> (f64, f64) {
        let values = self.outline.iter().map(|p| p[axis]);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    }

    fn edges(&self) -> impl Iterator<Item = [Point; 2]> + '_ {
        let next = self.outline.iter().cycle().skip(1);
        self.outline.iter().zip(next).map(|(a, b)| [*a, *b])
    }
}

fn planar(coordinates: &[f64]) -> Point {
    match coordinates {
        [x, y, ..] => [*x, *y],
        [x] => [*x, 0.0],
        [] => [0.0, 0.0],
    }
}

/// Returns the vertices of a polygon in order around it, from incidence alone: every facet joins two of them.
fn ring(polygon: &Polytope) -> Vec<usize> {
    let mut edges: Vec<Vec<usize>> = (0..polygon.half_spaces().len()).map(|f| polygon.facet_vertices(f)).collect();
    let mut ring = vec![0];
    while let Some(found) = edges.iter().position(|edge| edge.contains(&ring[ring.len() - 1])) {
        let edge = edges.swap_remove(found);
        match edge.iter().find(|v| **v != ring[ring.len() - 1]) {
            Some(next) if *next != ring[0] => ring.push(*next),
            _ => break,
        }
    }
    ring
}
