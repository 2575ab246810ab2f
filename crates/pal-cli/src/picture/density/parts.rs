//! Parts of pictures of densities besides the density: titles, legend, marks, dashed lines.

use std::f64::consts::PI;

use anyhow::Result;
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, WHITE};

use super::super::layout::{SMALL, WIDTH};
use super::super::page::Page;
use super::super::{Point, colours};
use super::DensityScene;
use super::colour::{MODE, SAMPLE};
use super::dots::Dots;
use crate::numbers::counted;

/// The height of the legend's row.
pub const LEGEND: f64 = 30.0;
const ICON: f64 = 24.0;
const GAP: f64 = 24.0;

/// Space above the frame for title and subtitle.
pub fn title_height(scene: &DensityScene) -> f64 {
    match (&scene.title, &scene.subtitle) {
        (None, None) => 18.0,
        (Some(_), None) | (None, Some(_)) => 44.0,
        (Some(_), Some(_)) => 64.0,
    }
}

/// The entries of a legend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LegendEntry<'a> {
    Forbidden,
    Samples(usize),
    Mode,
    Event(&'a str),
}

impl LegendEntry<'_> {
    fn text(self) -> String {
        match self {
            LegendEntry::Forbidden => "forbidden".to_string(),
            LegendEntry::Samples(count) => counted(count, "sample"),
            LegendEntry::Mode => "mode".to_string(),
            LegendEntry::Event(text) => text.to_string(),
        }
    }
}

/// A star with a pale edge.
pub fn star<B: DrawingBackend>(page: &Page<B>, at: Point, radius: f64) -> Result<()> {
    let ring = |outer: f64, inner: f64| -> Vec<Point> {
        let corner = |k: usize| {
            let (r, angle) = (if k.is_multiple_of(2) { outer } else { inner }, PI * (k as f64 / 5.0 - 0.5));
            [at[0] + r * angle.cos(), at[1] + r * angle.sin()]
        };
        (0..10).map(corner).collect()
    };
    page.fill(&ring(radius * 1.5, radius * 0.75), WHITE)?;
    page.fill(&ring(radius, radius * 0.42), MODE)
}

/// A dashed line on a pale one, so that it is visible on dark and on bright ground.
pub fn dashed<B: DrawingBackend>(page: &Page<B>, lines: &[[Point; 2]], width: f64) -> Result<()> {
    for line in lines {
        page.line(*line, WHITE.mix(0.8), width + 1.8)?;
    }
    // The dashes go on around corners.
    let (dash, gap) = (7.0, 4.5);
    let mut phase = 0.0;
    for [a, b] in lines {
        let length = (b[0] - a[0]).hypot(b[1] - a[1]);
        let at = |t: f64| [a[0] + t / length * (b[0] - a[0]), a[1] + t / length * (b[1] - a[1])];
        let mut start = -phase;
        while start < length {
            let (from, to) = (start.max(0.0), (start + dash).min(length));
            if from < to {
                page.line([at(from), at(to)], colours::INK, width)?;
            }
            start += dash + gap;
        }
        phase = (phase + length) % (dash + gap);
    }
    Ok(())
}

/// The legend: a row that tells what the marks mean, centred at `middle`.
pub fn legend<B: DrawingBackend>(page: &Page<B>, scene: &DensityScene, middle: f64, y: f64) -> Result<()> {
    let samples = scene.samples.len();
    let shown = [
        (LegendEntry::Forbidden, true),
        (LegendEntry::Samples(samples), samples > 0),
        (LegendEntry::Mode, scene.mode.is_some()),
        (LegendEntry::Event(scene.event_text.as_deref().unwrap_or("event")), !scene.event.is_empty()),
    ];
    let entries: Vec<LegendEntry> = shown.into_iter().filter(|(_, shown)| *shown).map(|(entry, _)| entry).collect();
    let icons = entries.len() as f64 * (ICON + 7.0 + GAP) - GAP;
    let texts: f64 = entries.iter().map(|entry| page.text_width(&entry.text(), SMALL)).sum();
    // A long row is set smaller.
    let size = SMALL * ((WIDTH - 24.0 - icons) / texts).min(1.0);
    let total = icons + texts * size / SMALL;
    // Under the frame, or in the middle of the page where it is wider.
    let middle = if total / 2.0 + 12.0 > middle.min(WIDTH - middle) { WIDTH / 2.0 } else { middle };
    let mut x = middle - total / 2.0;
    for entry in entries {
        let icon = [x + ICON / 2.0, y];
        match entry {
            LegendEntry::Forbidden => {
                let [left, top, right, bottom] = [x + 2.0, y - 6.5, x + ICON - 2.0, y + 6.5];
                page.forbidden([left, top, right, bottom])?;
                let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
                for k in 0..4 {
                    page.line([corners[k], corners[(k + 1) % 4]], colours::BOUNDARY, 0.8)?;
                }
            }
            LegendEntry::Samples(count) if scene.axes.len() == 1 => {
                for k in 0..3.min(count) {
                    let x = icon[0] + 5.0 * (k as f64 - 1.0);
                    page.line([[x, y - 6.0], [x, y + 6.0]], SAMPLE, 1.0)?;
                }
            }
            LegendEntry::Samples(count) => {
                // Large enough to be found.
                page.dot(icon, SAMPLE, 2.0 * Dots::new(count).radius.max(1.6))?;
            }
            LegendEntry::Mode => star(page, icon, 7.0)?,
            LegendEntry::Event(_) => dashed(page, &[[[x, y], [x + ICON, y]]], 1.8)?,
        }
        page.text(&entry.text(), size, [x + ICON + 7.0, y], (HPos::Left, VPos::Center), false)?;
        x += ICON + 7.0 + page.text_width(&entry.text(), size) + GAP;
    }
    Ok(())
}
