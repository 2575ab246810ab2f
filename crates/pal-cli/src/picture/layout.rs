//! Where things are drawn on the page.
//!
//! Lengths on the page are in units of which every picture is 720 wide: a picture with more pixels shows the same with
//! more detail.

use anyhow::{Result, bail};

use super::axis::{Direction, Ticks};
use super::{CellShape, Point, Scene};

/// The width of every page.
pub const WIDTH: f64 = 720.0;
/// The size of tick labels.
pub const SMALL: f64 = 13.0;
/// The size of names and titles.
pub const LARGE: f64 = 16.0;

/// The empty space around the region, as a fraction of its larger side: it shows that what is outside is forbidden.
const MARGIN: f64 = 0.035;
const TALLEST: f64 = 900.0;
const FLATTEST: f64 = 60.0;
/// The height of the strip that shows a region in one dimension.
const STRIP: f64 = 70.0;

/// The layout of a page.
pub struct Layout {
    pub height: f64,
    /// Left, top, right and bottom of the frame on the page.
    pub frame: [f64; 4],
    pub x_ticks: Ticks,
    pub y_ticks: Ticks,
    /// The coordinates at the left and top of the frame, and page units per coordinate along both axes.
    origin: Point,
    scale: Point,
}

/// Space around the frame.
#[derive(Clone, Copy)]
pub struct Margins {
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Margins {
    /// Margins with room for a title above, if there is one, and for the names of ticks and axis below.
    pub fn new(titled: bool) -> Margins {
        Margins { top: if titled { 46.0 } else { 18.0 }, right: 24.0, bottom: 58.0 }
    }
}

/// What the vertical axis shows.
pub enum Vertical {
    /// The second variable, on the same scale as the first.
    Equal { down: bool },
    /// Something else from `low` to `high`, `height` page units tall.
    Free { low: f64, high: f64, height: f64, ticks: bool },
}

impl Layout {
    pub fn new(scene: &Scene) -> Result<Layout> {
        let vertical = if scene.axes.len() < 2 {
            Vertical::Free { low: -0.35, high: 1.35, height: STRIP, ticks: false }
        } else {
            Vertical::Equal { down: scene.y_down }
        };
        Layout::with(&scene.cells, &vertical, Margins::new(scene.title.is_some()))
    }

    /// Lays out a frame around cells.
    pub fn with(cells: &[CellShape], vertical: &Vertical, margins: Margins) -> Result<Layout> {
        let extent = |axis: usize| {
            let all = cells.iter().map(|cell| cell.extent(axis));
            all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 0.0))
        };
        let (x, y) = (extent(0), extent(1));
        let (width, height) = (x.1 - x.0, y.1 - y.0);
        if !(width.is_normal() && height.is_normal()) {
            bail!("the region is too small, too large or too far away to be drawn in float64");
        }
        let margin = match vertical {
            Vertical::Equal { .. } => MARGIN * width.max(height),
            Vertical::Free { .. } => MARGIN * width,
        };
        // The width of the labels of the vertical axis decides how much room is left; it hardly depends on their
        // number.
        let left_margin = match vertical {
            Vertical::Equal { .. } => 50.0 + Ticks::new(y.0 - margin, y.1 + margin, 400.0, Direction::Up).width(),
            Vertical::Free { ticks: false, .. } => 36.0,
            Vertical::Free { low, high, height, .. } => {
                50.0 + Ticks::short(*low, *high, *height, Direction::Up).width()
            }
        };
        let room = WIDTH - left_margin - margins.right;
        let mut unit = room / (width + 2.0 * margin);
        let (mut left, mut right) = (x.0 - margin, x.1 + margin);
        let (low, high, down, y_ticks, y_down);
        match vertical {
            Vertical::Free { low: from, high: to, height, ticks } => {
                (low, high, down) = (*from, *to, *height);
                y_ticks = if *ticks { Ticks::short(low.max(0.0), high, down, Direction::Up) } else { Ticks::default() };
                y_down = false;
            }
            Vertical::Equal { down: downwards } => {
                unit = unit.min(TALLEST / (height + 2.0 * margin));
                // A very flat or very thin region gets a larger frame than it needs, rather than unequal axes.
                let around = |size: f64| ((FLATTEST / unit - size) / 2.0).max(margin);
                (left, right) = (x.0 - around(width), x.1 + around(width));
                (low, high) = (y.0 - around(height), y.1 + around(height));
                down = unit * (high - low);
                y_ticks = Ticks::new(low, high, down, Direction::Up);
                y_down = *downwards;
            }
        }
        let across = unit * (right - left);
        // A tall region leaves room at both sides.
        let frame_left = left_margin + (room - across) / 2.0;
        let vertical = down / (high - low);
        Ok(Layout {
            height: margins.top + down + margins.bottom,
            frame: [frame_left, margins.top, frame_left + across, margins.top + down],
            x_ticks: Ticks::new(left, right, across, Direction::Across),
            y_ticks,
            origin: [left, if y_down { low } else { high }],
            scale: [unit, if y_down { vertical } else { -vertical }],
        })
    }

    /// Where a point of the plane lies on the page.
    pub fn place(&self, point: Point) -> Point {
        [
            self.frame[0] + (point[0] - self.origin[0]) * self.scale[0],
            self.frame[1] + (point[1] - self.origin[1]) * self.scale[1],
        ]
    }

    /// The point of the plane that lies there on the page.
    pub fn locate(&self, place: Point) -> Point {
        [
            self.origin[0] + (place[0] - self.frame[0]) / self.scale[0],
            self.origin[1] + (place[1] - self.frame[1]) / self.scale[1],
        ]
    }
}
