//! Where things go on the page.
//!
//! Lengths on the page are in units of which the picture is 720 wide, whatever its width in pixels: a larger picture
//! is the same picture with more detail.

use anyhow::{Result, bail};

use super::axis::Ticks;
use super::{Point, Scene};

/// The width of every page.
pub const WIDTH: f64 = 720.0;
/// The size of tick labels.
pub const SMALL: f64 = 13.0;
/// The size of names and titles.
pub const LARGE: f64 = 16.0;

/// Empty space around the region, as a fraction of its larger side: there one sees that it is forbidden.
const MARGIN: f64 = 0.035;
const TALLEST: f64 = 900.0;
const FLATTEST: f64 = 60.0;
/// The height of the strip that shows a region in one dimension.
const STRIP: f64 = 70.0;

/// The plan of a page.
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

impl Layout {
    pub fn new(scene: &Scene) -> Result<Layout> {
        let extent = |axis: usize| {
            let all = scene.pieces.iter().map(|piece| piece.extent(axis));
            all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 0.0))
        };
        let (x, y) = (extent(0), extent(1));
        let (width, height) = (x.1 - x.0, y.1 - y.0);
        if !(width.is_normal() && height.is_normal()) {
            bail!("the region is too small, too large or too far away to be drawn in double precision");
        }
        let flat = scene.axes.len() < 2;
        let margin = if flat { MARGIN * width } else { MARGIN * width.max(height) };
        let (left, right) = (x.0 - margin, x.1 + margin);
        let top_margin = if scene.title.is_some() { 46.0 } else { 18.0 };
        let bottom_margin = 58.0;
        // The labels of the vertical axis decide how much room is left for the rest; their number does not change them much.
        let labels = if flat { 0 } else { Ticks::new(y.0 - margin, y.1 + margin, 6.0).widest() };
        let left_margin = if flat { 36.0 } else { 50.0 + labels as f64 * SMALL * 0.64 };
        let right_margin = 24.0;
        let room = WIDTH - left_margin - right_margin;

        let mut unit = room / (right - left);
        let (low, high, down);
        if flat {
            (low, high, down) = (-0.35, 1.35, STRIP);
        } else {
            unit = unit.min(TALLEST / (height + 2.0 * margin));
            // A very flat region gets a taller frame than it needs, rather than unequal axes.
            let extra = ((FLATTEST / unit - height) / 2.0).max(margin);
            (low, high) = (y.0 - extra, y.1 + extra);
            down = unit * (high - low);
        }
        let across = unit * (right - left);
        // A tall region leaves room at both sides.
        let frame_left = left_margin + (room - across) / 2.0;
        let vertical = down / (high - low);
        Ok(Layout {
            height: top_margin + down + bottom_margin,
            frame: [frame_left, top_margin, frame_left + across, top_margin + down],
            x_ticks: Ticks::new(left, right, across / 85.0),
            y_ticks: if flat { Ticks(Vec::new()) } else { Ticks::new(low, high, down / 65.0) },
            origin: [left, if scene.y_down { low } else { high }],
            scale: [unit, if scene.y_down { vertical } else { -vertical }],
        })
    }

    /// Where a point of the plane lies on the page.
    pub fn place(&self, point: Point) -> Point {
        [
            self.frame[0] + (point[0] - self.origin[0]) * self.scale[0],
            self.frame[1] + (point[1] - self.origin[1]) * self.scale[1],
        ]
    }
}
