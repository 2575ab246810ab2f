//! Drawing a scene on a page.
//!
//! The edge of the region is drawn first, as thick outlines of all cells; the cells then cover the inner half of these
//! lines and everything between two cells, so that only the true boundary stays thick.

use anyhow::Result;
use plotters::prelude::DrawingBackend;

use super::file::Drawing;
use super::layout::Layout;
use super::page::Page;
use super::{Point, Scene, colours};

/// The width of the boundary; the cells cover the inner half of it.
const BOUNDARY_WIDTH: f64 = 2.6;

/// A scene with its layout.
pub struct Planned<'a> {
    pub scene: &'a Scene,
    pub layout: Layout,
}

impl Drawing for Planned<'_> {
    fn height(&self) -> f64 {
        self.layout.height
    }

    fn below<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        page.forbidden(self.layout.frame)?;
        page.region(self.scene, &self.layout)?;
        page.axes(&self.layout, &self.scene.axes[0], self.scene.axes.get(1).map(String::as_str))?;
        page.titles(self.scene.title.as_deref(), None, self.layout.frame)
    }
}

impl<B: DrawingBackend> Page<'_, B> {
    fn region(&self, scene: &Scene, layout: &Layout) -> Result<()> {
        let on_page = |ends: [Point; 2]| ends.map(|p| layout.place(p));
        for cell in &scene.cells {
            for edge in cell.edges() {
                self.line(on_page(edge), colours::BOUNDARY, BOUNDARY_WIDTH)?;
                self.dot(layout.place(edge[0]), colours::BOUNDARY, BOUNDARY_WIDTH)?;
            }
        }
        let fills =
            if scene.show_cells { colours::choose(&scene.cells) } else { vec![colours::REGION; scene.cells.len()] };
        for (cell, fill) in scene.cells.iter().zip(fills) {
            let outline: Vec<Point> = cell.outline.iter().map(|p| layout.place(*p)).collect();
            self.fill(&outline, fill)?;
            // Closes the hairline gaps that rounding leaves between neighbours.
            for edge in cell.edges() {
                self.line(on_page(edge), fill, 0.5)?;
            }
        }
        for cell in &scene.cells {
            for edge in &cell.inner {
                self.line(on_page(*edge), colours::TRIANGLE_EDGE, 0.7)?;
            }
        }
        let (colour, width) = if scene.show_cells { (colours::CELL_EDGE, 0.9) } else { (colours::TRIANGLE_EDGE, 0.7) };
        for cell in scene.cells.iter().filter(|cell| scene.show_cells || !cell.inner.is_empty()) {
            for edge in cell.edges() {
                self.line(on_page(edge), colour, width)?;
            }
        }
        Ok(())
    }
}
