//! A page to draw on: lines, shapes and text in layout units, whatever the pixels below.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{Circle, DrawingArea, DrawingBackend, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::layout::{LARGE, Layout, SMALL, WIDTH};
use super::{Point, colours};

/// The family under which the bundled font is registered. Readers of an SVG use their own sans-serif font.
pub const FONT: &str = "sans-serif";

const TICK: f64 = 5.0;
const HATCH_SPACING: f64 = 9.0;
/// The width of a letter in font sizes, on average and a bit more.
const LETTER: f64 = 0.62;
/// Names are not set smaller than this.
const SMALLEST: f64 = 10.0;

/// A page on which lengths are in layout units.
pub struct Page<'a, B: DrawingBackend> {
    pub area: &'a DrawingArea<B, Shift>,
    pub grid: PixelGrid,
}

/// The pixels that a page is drawn on.
#[derive(Clone, Copy)]
pub struct PixelGrid {
    /// Pixels per layout unit.
    pub zoom: f64,
    /// How far centred text has to be lowered, in font sizes. Bitmaps centre the whole line, descenders included, which
    /// puts digits too high.
    pub lower: f64,
    /// Whether shapes stay shapes, as in an SVG.
    pub vector: bool,
}

pub fn unexpected(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

impl<B: DrawingBackend> Page<'_, B> {
    pub fn vector(&self) -> bool {
        self.grid.vector
    }

    fn pixel(&self, point: Point) -> (i32, i32) {
        ((point[0] * self.grid.zoom).round() as i32, (point[1] * self.grid.zoom).round() as i32)
    }

    pub fn line(&self, ends: [Point; 2], colour: impl Color, width: f64) -> Result<()> {
        let stroke = ((width * self.grid.zoom).round() as u32).max(1);
        let style = ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: stroke };
        let path = PathElement::new(ends.map(|p| self.pixel(p)).to_vec(), style);
        self.area.draw(&path).map_err(unexpected)
    }

    /// A line through many points.
    pub fn path(&self, points: &[Point], colour: impl Color, width: f64) -> Result<()> {
        if self.grid.vector {
            let stroke = ((width * self.grid.zoom).round() as u32).max(1);
            let style = ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: stroke };
            let path = PathElement::new(points.iter().map(|p| self.pixel(*p)).collect::<Vec<_>>(), style);
            return self.area.draw(&path).map_err(unexpected);
        }
        // In a bitmap the joints of a wide path can stick out as spikes.
        points.windows(2).try_for_each(|pair| self.line([pair[0], pair[1]], colour.to_rgba(), width))
    }

    /// Rounds off the corner where two lines meet.
    pub fn dot(&self, at: Point, colour: impl Color, width: f64) -> Result<()> {
        let radius = (width * self.grid.zoom / 2.0).round() as i32;
        self.area.draw(&Circle::new(self.pixel(at), radius, colour.filled())).map_err(unexpected)
    }

    pub fn fill(&self, outline: &[Point], colour: impl Color) -> Result<()> {
        let points: Vec<(i32, i32)> = outline.iter().map(|p| self.pixel(*p)).collect();
        self.area.draw(&Polygon::new(points, colour.filled())).map_err(unexpected)
    }

    pub fn text(&self, text: &str, size: f64, at: Point, anchor: (HPos, VPos), upwards: bool) -> Result<()> {
        self.coloured(text, size, at, anchor, upwards, colours::INK)
    }

    /// The length of a text on the page.
    pub fn text_width(&self, text: &str, size: f64) -> f64 {
        let style = TextStyle::from((FONT, size * 1.24 * self.grid.zoom).into_font());
        let measured = self.area.estimate_text_size(text, &style).map(|(width, _)| f64::from(width) / self.grid.zoom);
        measured.unwrap_or(text.chars().count() as f64 * LETTER * size)
    }

    fn coloured(
        &self,
        text: &str,
        size: f64,
        at: Point,
        (h, v): (HPos, VPos),
        upwards: bool,
        colour: RGBColor,
    ) -> Result<()> {
        let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let turn = if upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let font = (FONT, size * 1.24 * self.grid.zoom).into_font().transform(turn);
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(h, v));
        let lower = if matches!(v, VPos::Center) && !upwards { self.grid.lower * size } else { 0.0 };
        self.area.draw_text(&printable, &style, self.pixel([at[0], at[1] + lower])).map_err(unexpected)
    }

    /// A title or the name of an axis, centred; if it is too long for its room, it is set smaller and, if need be, cut.
    pub fn name(&self, text: &str, room: f64, at: Point, vertical: VPos, upwards: bool) -> Result<()> {
        let (text, size) = fitted(text, room, LARGE);
        self.text(&text, size, at, (HPos::Center, vertical), upwards)
    }

    /// The name of a panel, centred, in small letters; set smaller or cut like [`Page::name`].
    pub fn small_name(&self, text: &str, room: f64, at: Point, upwards: bool) -> Result<()> {
        let (text, size) = fitted(text, room, SMALL + 1.0);
        self.text(&text, size, at, (HPos::Center, VPos::Center), upwards)
    }

    /// Title and subtitle, centred above a frame.
    pub fn titles(&self, title: Option<&str>, subtitle: Option<&str>, frame: [f64; 4]) -> Result<()> {
        let middle = (frame[0] + frame[2]) / 2.0;
        let room = 2.0 * middle.min(WIDTH - middle) - 16.0;
        if let Some(title) = title {
            self.name(title, room, [middle, 22.0], VPos::Center, false)?;
        }
        if let Some(subtitle) = subtitle {
            let (text, size) = fitted(subtitle, room, SMALL);
            let at = [middle, if title.is_some() { 43.0 } else { 20.0 }];
            self.coloured(&text, size, at, (HPos::Center, VPos::Center), false, colours::MUTED)?;
        }
        Ok(())
    }

    /// The frame with its ticks and the names of both axes.
    pub fn axes(&self, layout: &Layout, x_name: &str, y_name: Option<&str>) -> Result<()> {
        let [left, top, right, bottom] = layout.frame;
        let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
        for k in 0..4 {
            self.line([corners[k], corners[(k + 1) % 4]], colours::INK, 1.0)?;
        }
        for (value, label) in &layout.x_ticks.marks {
            let x = layout.place([*value, 0.0])[0];
            self.line([[x, bottom], [x, bottom + TICK]], colours::INK, 1.0)?;
            self.text(label, SMALL, [x, bottom + TICK + 5.0], (HPos::Center, VPos::Top), false)?;
        }
        for (value, label) in &layout.y_ticks.marks {
            let y = layout.place([0.0, *value])[1];
            self.line([[left - TICK, y], [left, y]], colours::INK, 1.0)?;
            self.text(label, SMALL, [left - TICK - 4.0, y], (HPos::Right, VPos::Center), false)?;
        }
        let middle = (left + right) / 2.0;
        let room = 2.0 * middle.min(WIDTH - middle) - 16.0;
        self.name(&layout.x_ticks.name(x_name), room, [middle, bottom + 28.0], VPos::Top, false)?;
        if let Some(name) = y_name {
            let name = layout.y_ticks.name(name);
            // One or two letters read best upright.
            let upwards = name.chars().count() > 2;
            let at = [(left - layout.y_ticks.width() - 26.0).clamp(12.0, WIDTH), (top + bottom) / 2.0];
            let room = if upwards { 2.0 * (at[1].min(layout.height - at[1])) - 8.0 } else { 2.0 * LARGE };
            self.name(&name, room, at, VPos::Center, upwards)?;
        }
        Ok(())
    }

    /// Shades and hatches the frame; the region is drawn over it later.
    pub fn forbidden(&self, frame: [f64; 4]) -> Result<()> {
        let [left, top, right, bottom] = frame;
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
}

/// Returns a text and its size, at most `largest`, that fit into the room: the text is set smaller and, if need be,
/// cut.
fn fitted(text: &str, room: f64, largest: f64) -> (String, f64) {
    let count = text.chars().count() as f64;
    let size = (room / (count * LETTER)).clamp(SMALLEST, largest);
    if count * LETTER * size <= room * 1.001 {
        return (text.to_string(), size);
    }
    let fits = (room / (size * LETTER)) as usize;
    (text.chars().take(fits.saturating_sub(1)).chain(['\u{2026}']).collect(), size)
}
