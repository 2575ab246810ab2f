//! Putting a scene on a page.
//!
//! The edge of the region is drawn first, as thick outlines of all cells; the cells then cover the inner half of these
//! lines and everything between two cells, so that only the true boundary stays thick.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{Circle, DrawingArea, DrawingBackend, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle, WHITE};

use super::layout::{LARGE, Layout, SMALL, WIDTH};
use super::{Point, Scene, colours};

/// The family under which the bundled font is registered. Readers of an SVG use their own sans-serif font.
pub const FONT: &str = "sans-serif";

const HATCH_SPACING: f64 = 9.0;
const TICK: f64 = 5.0;
/// The width of a letter in font sizes, on average and a bit more.
const LETTER: f64 = 0.62;
/// Names are not set smaller than this.
const SMALLEST: f64 = 10.0;
/// Twice what is seen of it.
const BOUNDARY_WIDTH: f64 = 2.6;

/// A page on which lengths are in layout units.
struct Page<'a, B: DrawingBackend> {
    area: &'a DrawingArea<B, Shift>,
    grid: Grid,
}

/// The pixels that a page is drawn on.
#[derive(Clone, Copy)]
pub struct Grid {
    /// Pixels per layout unit.
    pub zoom: f64,
    /// How far centred text has to be lowered, in font sizes. Bitmaps centre the whole line, descenders included, which puts
    /// digits too high.
    pub lower: f64,
}

/// Draws a scene on an area with the given grid.
pub fn draw<B: DrawingBackend>(area: &DrawingArea<B, Shift>, scene: &Scene, layout: &Layout, grid: Grid) -> Result<()> {
    let page = Page { area, grid };
    area.fill(&WHITE).map_err(unexpected)?;
    page.forbidden(layout)?;
    page.region(scene, layout)?;
    page.axes(scene, layout)?;
    if let Some(title) = &scene.title {
        let middle = (layout.frame[0] + layout.frame[2]) / 2.0;
        let room = 2.0 * middle.min(WIDTH - middle) - 16.0;
        page.name(title, room, [middle, 22.0], VPos::Center, false)?;
    }
    area.present().map_err(unexpected)
}

fn unexpected(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

impl<B: DrawingBackend> Page<'_, B> {
    fn pixel(&self, point: Point) -> (i32, i32) {
        ((point[0] * self.grid.zoom).round() as i32, (point[1] * self.grid.zoom).round() as i32)
    }

    fn line(&self, ends: [Point; 2], colour: RGBColor, width: f64) -> Result<()> {
        let stroke = ((width * self.grid.zoom).round() as u32).max(1);
        let style = ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: stroke };
        let path = PathElement::new(ends.map(|p| self.pixel(p)).to_vec(), style);
        self.area.draw(&path).map_err(unexpected)
    }

    /// Rounds off the corner where two lines meet.
    fn dot(&self, at: Point, colour: RGBColor, width: f64) -> Result<()> {
        let radius = (width * self.grid.zoom / 2.0).round() as i32;
        self.area.draw(&Circle::new(self.pixel(at), radius, colour.filled())).map_err(unexpected)
    }

    fn fill(&self, outline: &[Point], colour: RGBColor) -> Result<()> {
        let points: Vec<(i32, i32)> = outline.iter().map(|p| self.pixel(*p)).collect();
        self.area.draw(&Polygon::new(points, colour.filled())).map_err(unexpected)
    }

    fn text(&self, text: &str, size: f64, at: Point, (h, v): (HPos, VPos), upwards: bool) -> Result<()> {
        let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let turn = if upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let font = (FONT, size * 1.24 * self.grid.zoom).into_font().transform(turn);
        let style = TextStyle::from(font).color(&colours::INK).pos(Pos::new(h, v));
        let lower = if matches!(v, VPos::Center) && !upwards { self.grid.lower * size } else { 0.0 };
        self.area.draw_text(&printable, &style, self.pixel([at[0], at[1] + lower])).map_err(unexpected)
    }

    /// A title or the name of an axis, centred; one that is too long for its room is set smaller, and cut if it must be.
    fn name(&self, text: &str, room: f64, at: Point, vertical: VPos, upwards: bool) -> Result<()> {
        let count = text.chars().count() as f64;
        let size = (room / (count * LETTER)).clamp(SMALLEST, LARGE);
        let fits = (room / (size * LETTER)) as usize;
        if count * LETTER * size <= room * 1.001 {
            return self.text(text, size, at, (HPos::Center, vertical), upwards);
        }
        let cut: String = text.chars().take(fits.saturating_sub(1)).chain(['\u{2026}']).collect();
        self.text(&cut, size, at, (HPos::Center, vertical), upwards)
    }

    /// The whole frame, shaded and hatched; what is allowed covers it later.
    fn forbidden(&self, layout: &Layout) -> Result<()> {
        let [left, top, right, bottom] = layout.frame;
        let ends = [self.pixel([left, top]), self.pixel([right, bottom])];
        self.area.draw(&Rectangle::new(ends, colours::FORBIDDEN.filled())).map_err(unexpected)?;
        // Lines x + y = c, clipped to the frame.
        let mut c = left + top + HATCH_SPACING / 2.0;
        while c < right + bottom {
            let from = [(c - top).min(right), (c - right).max(top)];
            let to = [(c - bottom).max(left), (c - left).min(bottom)];
            self.line([from, to], colours::HATCH, 0.8)?;
            c += HATCH_SPACING;
        }
        Ok(())
    }

    fn region(&self, scene: &Scene, layout: &Layout) -> Result<()> {
        let on_page = |ends: [Point; 2]| ends.map(|p| layout.place(p));
        for piece in &scene.pieces {
            for edge in piece.edges() {
                self.line(on_page(edge), colours::BOUNDARY, BOUNDARY_WIDTH)?;
                self.dot(layout.place(edge[0]), colours::BOUNDARY, BOUNDARY_WIDTH)?;
            }
        }
        let fills =
            if scene.show_cells { colours::choose(&scene.pieces) } else { vec![colours::REGION; scene.pieces.len()] };
        for (piece, fill) in scene.pieces.iter().zip(fills) {
            let outline: Vec<Point> = piece.outline.iter().map(|p| layout.place(*p)).collect();
            self.fill(&outline, fill)?;
            // Closes the hairline gaps that rounding leaves between neighbours.
            for edge in piece.edges() {
                self.line(on_page(edge), fill, 0.5)?;
            }
        }
        for piece in &scene.pieces {
            for edge in &piece.inner {
                self.line(on_page(*edge), colours::TRIANGLE_EDGE, 0.7)?;
            }
        }
        let (colour, width) = if scene.show_cells { (colours::CELL_EDGE, 0.9) } else { (colours::TRIANGLE_EDGE, 0.7) };
        for piece in scene.pieces.iter().filter(|piece| scene.show_cells || !piece.inner.is_empty()) {
            for edge in piece.edges() {
                self.line(on_page(edge), colour, width)?;
            }
        }
        Ok(())
    }

    fn axes(&self, scene: &Scene, layout: &Layout) -> Result<()> {
        let [left, top, right, bottom] = layout.frame;
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
        for k in 0..4 {
            self.line([corners[k], corners[(k + 1) % 4]], colours::INK, 1.0)?;
        }
        for (value, label) in &layout.x_ticks.0 {
            let x = layout.place([*value, 0.0])[0];
            self.line([[x, bottom], [x, bottom + TICK]], colours::INK, 1.0)?;
            self.text(label, SMALL, [x, bottom + TICK + 5.0], (HPos::Center, VPos::Top), false)?;
        }
        for (value, label) in &layout.y_ticks.0 {
            let y = layout.place([0.0, *value])[1];
            self.line([[left - TICK, y], [left, y]], colours::INK, 1.0)?;
            self.text(label, SMALL, [left - TICK - 4.0, y], (HPos::Right, VPos::Center), false)?;
        }
        let middle = (left + right) / 2.0;
        let room = 2.0 * middle.min(WIDTH - middle) - 16.0;
        self.name(&scene.axes[0], room, [middle, layout.height - 30.0], VPos::Top, false)?;
        if let Some(name) = scene.axes.get(1) {
            let aside = layout.y_ticks.widest() as f64 * SMALL * 0.64 + 26.0;
            // One or two letters read best upright.
            let upwards = name.chars().count() > 2;
            let at = [(left - aside).clamp(12.0, WIDTH), (top + bottom) / 2.0];
            let room = if upwards { layout.height - 40.0 } else { 2.0 * LARGE };
            self.name(name, room, at, VPos::Center, upwards)?;
        }
        Ok(())
    }
}
