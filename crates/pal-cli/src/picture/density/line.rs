//! A density over one variable: a filled curve.

use anyhow::Result;
use plotters::prelude::DrawingBackend;
use plotters::style::{Color, WHITE};

use super::super::file::Drawing;
use super::super::layout::{Layout, Margins, Vertical};
use super::super::page::Page;
use super::super::{Point, colours};
use super::DensityScene;
use super::colour::{self, SAMPLE};
use super::field::ask;
use super::parts::{self, LEGEND};

const HEIGHT: f64 = 270.0;
/// The fraction of the frame, below the axis, in which samples are drawn.
const RUG: f64 = 0.09;
/// The number of points of the curve along the axis.
const POINTS: f64 = 2400.0;
/// How far inside the end of an interval the density is evaluated there, as a fraction of the distance between two
/// points.
const INSET: f64 = 1e-3;
/// Columns of strokes for samples per page unit.
const COLUMNS: f64 = 2.0;

/// A scene with its layout and its curve.
pub struct LinePicture<'a> {
    scene: &'a DensityScene<'a>,
    layout: Layout,
    /// For each interval of the region, the curve over it, which begins and ends on the axis.
    curves: Vec<Vec<Point>>,
    mode: Option<Point>,
}

impl<'a> LinePicture<'a> {
    pub fn new(scene: &'a DensityScene) -> Result<LinePicture<'a>> {
        let intervals = merged(scene.cells.iter().map(|cell| cell.extent(0)).collect());
        let range = intervals.iter().fold(0.0, |sum, (low, high)| sum + (high - low));
        let mode = scene.mode.as_ref().and_then(|mode| mode.first().copied()).filter(|x| x.is_finite());
        let mut curves = Vec::new();
        for (low, high) in &intervals {
            let count = ((high - low) / range * POINTS).ceil().clamp(2.0, POINTS) as usize;
            let at = |k: usize| low + (high - low) * (k as f64).clamp(INSET, count as f64 - INSET) / count as f64;
            let mut xs: Vec<f64> = (0..=count).map(at).collect();
            // A peak may be narrower than the distance between points.
            xs.extend(mode.filter(|x| (low..=high).contains(&x)));
            xs.sort_by(f64::total_cmp);
            let values = ask(scene.density, &xs);
            let mut curve = vec![[*low, 0.0]];
            curve.extend(xs.iter().zip(values).map(|(x, value)| [*x, value]));
            curve.push([*high, 0.0]);
            curves.push(curve);
        }
        let most = curves.iter().flatten().fold(0.0f64, |m, p| m.max(p[1]));
        let top = if most > 0.0 && (most * 1.08).is_finite() { most * 1.08 } else { 1.0 };
        let low = if scene.samples.is_empty() { 0.0 } else { -top * RUG };
        let margins = Margins { top: parts::title_height(scene), right: 24.0, bottom: 58.0 + LEGEND };
        let vertical = Vertical::Free { low, high: top, height: HEIGHT, ticks: true };
        let layout = Layout::with(&scene.cells, &vertical, margins)?;
        let value = |x: f64| ask(scene.density, &[x]).first().copied().unwrap_or(0.0).min(top);
        Ok(LinePicture { scene, layout, curves, mode: mode.map(|x| [x, value(x)]) })
    }

    /// Between `low` and `high`, the outline of what is below a curve, on the page.
    fn under(&self, curve: &[Point], low: f64, high: f64) -> Vec<Point> {
        let mut part: Vec<Point> = curve.iter().filter(|p| (low..=high).contains(&p[0])).copied().collect();
        if let (Some(first), Some(last)) = (part.first().copied(), part.last().copied()) {
            part.insert(0, [first[0], 0.0]);
            part.push([last[0], 0.0]);
        }
        part.into_iter().map(|p| self.layout.place(p)).collect()
    }

    /// Samples as strokes, one per column: darker where there are more.
    fn rug<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        let [left, _, right, bottom] = self.layout.frame;
        let columns = ((right - left) * COLUMNS).ceil() as usize;
        let mut counts = vec![0u32; columns + 1];
        for sample in &self.scene.samples {
            let x = self.layout.place(*sample)[0];
            if (left..=right).contains(&x) {
                counts[((x - left) * COLUMNS) as usize] += 1;
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        // One sample is well seen among few; among many, the fullest column is the darkest.
        let single = (3.0 / f64::from(most.max(1))).clamp(0.01, 0.75);
        let top = self.layout.place([0.0, 0.0])[1] + 4.0;
        for (k, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let x = left + (k as f64 + 0.5) / COLUMNS;
            let opacity = 1.0 - (1.0 - single).powf(f64::from(*count));
            page.line([[x, top], [x, bottom - 4.0]], SAMPLE.mix(opacity), 0.8)?;
        }
        Ok(())
    }
}

impl Drawing for LinePicture<'_> {
    fn height(&self) -> f64 {
        self.layout.height
    }

    fn below<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        let (scene, layout) = (self.scene, &self.layout);
        let [left, top, right, bottom] = layout.frame;
        page.forbidden(layout.frame)?;
        let column = |x: f64| layout.place([x, 0.0])[0];
        for curve in &self.curves {
            let (from, to) = (column(curve[0][0]), column(curve[curve.len() - 1][0]));
            page.fill(&[[from, top], [to, top], [to, bottom], [from, bottom]], WHITE)?;
            page.fill(&curve.iter().map(|p| layout.place(*p)).collect::<Vec<_>>(), colour::map(0.62).mix(0.3))?;
            for x in [from, to] {
                page.line([[x, top], [x, bottom]], colours::BOUNDARY, 0.9)?;
            }
        }
        let intervals: Vec<(f64, f64)> = merged(scene.event.iter().map(|cell| cell.extent(0)).collect());
        for (low, high) in intervals.iter().copied() {
            for curve in &self.curves {
                page.fill(&self.under(curve, low, high), colour::map(0.62).mix(0.75))?;
            }
        }
        if scene.show_cells {
            for cell in &scene.cells {
                let x = column(cell.extent(0).1);
                page.line([[x, top], [x, bottom]], colours::CELL_EDGE.mix(0.7), 0.6)?;
            }
        }
        for curve in &self.curves {
            let places: Vec<Point> = curve.iter().map(|p| layout.place(*p)).collect();
            page.path(&places, colour::map(0.85), 1.6)?;
        }
        let zero = layout.place([0.0, 0.0])[1];
        page.line([[left, zero], [right, zero]], colours::INK, 0.8)?;
        self.rug(page)?;
        for x in intervals.iter().flat_map(|(low, high)| [column(*low), column(*high)]) {
            if (left..=right).contains(&x) {
                parts::dashed(page, &[[[x, zero], [x, top]]], 1.6)?;
            }
        }
        page.axes(layout, &scene.axes[0], Some("density"))?;
        if let Some(at) = self.mode.map(|mode| layout.place(mode)).filter(|at| (left..=right).contains(&at[0])) {
            parts::star(page, at, 9.0)?;
        }
        page.titles(scene.title.as_deref(), scene.subtitle.as_deref(), layout.frame)?;
        parts::legend(page, scene, (left + right) / 2.0, layout.height - LEGEND / 2.0 - 2.0)
    }
}

/// Sorts intervals and joins those that touch.
fn merged(mut intervals: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    intervals.retain(|(low, high)| low <= high);
    intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Vec<(f64, f64)> = Vec::new();
    for (low, high) in intervals {
        match found.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => found.push((low, high)),
        }
    }
    found
}
