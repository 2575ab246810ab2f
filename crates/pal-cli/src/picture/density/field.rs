//! A density on the pixels of a frame.
//!
//! Which pixels belong to the region is decided on a finer grid than that of the values, by the cells as polygons: so
//! the edge of the region is sharp, and a pixel outside never has a value. A pixel at the edge is evaluated at a point
//! inside.

use rayon::prelude::*;

use super::super::layout::Layout;
use super::super::{CellShape, Point};
use super::DensityFunction;

/// Points per call of the density.
const BATCH: usize = 1 << 15;
/// A small overlap, in fine pixels, so that neighbouring cells leave no gap.
const OVERLAP: f64 = 1e-6;

/// Values on a grid of pixels.
pub struct Field {
    /// The pixel at the left and top, counted from the corner of the page.
    pub origin: [usize; 2],
    pub width: usize,
    pub height: usize,
    /// Fine pixels per pixel, along both axes.
    pub factor: usize,
    /// For each pixel, one bit for each of its fine pixels that belongs to the region, row by row.
    pub inside: Vec<u16>,
    /// The density at each pixel; 0 where no bit is set.
    pub values: Vec<f64>,
}

impl Field {
    /// Evaluates a density on pixels of which there are `zoom` per page unit, each cut into `factor` by `factor` fine
    /// ones.
    pub fn new(layout: &Layout, cells: &[CellShape], density: &DensityFunction, zoom: f64, factor: usize) -> Field {
        let [left, top, right, bottom] = layout.frame.map(|length| length * zoom);
        let origin = [left.floor().max(0.0) as usize, top.floor().max(0.0) as usize];
        let (width, height) = (right.ceil() as usize - origin[0], bottom.ceil() as usize - origin[1]);
        let size = width * height;
        let mut field = Field { origin, width, height, factor, inside: vec![0; size], values: vec![0.0; size] };
        let fine = zoom * factor as f64;
        let corner = origin.map(|pixels| (pixels * factor) as f64);
        for cell in cells {
            let place = |point: &Point| {
                let [x, y] = layout.place(*point);
                [x * fine - corner[0], y * fine - corner[1]]
            };
            field.cover(&cell.outline.iter().map(place).collect::<Vec<_>>());
        }
        field.evaluate(layout, density, fine);
        field
    }

    /// Marks the fine pixels whose middles lie in a convex polygon, given in fine pixels.
    fn cover(&mut self, outline: &[Point]) {
        let extent = outline.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p[1]), b.max(p[1])));
        let rows = (self.height * self.factor) as f64;
        let first = (extent.0 - 0.5 - OVERLAP).ceil().max(0.0);
        let last = (extent.1 - 0.5 + OVERLAP).floor().min(rows - 1.0);
        // Also for an outline without points, whose extent is infinite.
        if first > last {
            return;
        }
        for row in first as usize..=last as usize {
            let y = (row as f64 + 0.5).clamp(extent.0, extent.1);
            let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
            for (k, a) in outline.iter().enumerate() {
                let b = outline[(k + 1) % outline.len()];
                if (a[1] <= y && y <= b[1]) || (b[1] <= y && y <= a[1]) {
                    let ends = if a[1] == b[1] {
                        [a[0], b[0]]
                    } else {
                        [a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]); 2]
                    };
                    from = from.min(ends[0]).min(ends[1]);
                    to = to.max(ends[0]).max(ends[1]);
                }
            }
            let from = (from - 0.5 - OVERLAP).ceil().max(0.0);
            let to = (to - 0.5 + OVERLAP).floor().min((self.width * self.factor) as f64 - 1.0);
            if from <= to {
                for column in from as usize..=to as usize {
                    let bit = row % self.factor * self.factor + column % self.factor;
                    self.inside[row / self.factor * self.width + column / self.factor] |= 1 << bit;
                }
            }
        }
    }

    fn evaluate(&mut self, layout: &Layout, density: &DensityFunction, fine: f64) {
        // For every set of fine pixels, the member that is nearest to the middle of the pixel.
        let factor = self.factor;
        let from_middle = |bit: usize| {
            let off = |k: usize| (2 * k + 1).abs_diff(factor).pow(2);
            off(bit % factor) + off(bit / factor)
        };
        let nearest: Vec<usize> = (0..1usize << (factor * factor))
            .map(|set| {
                (0..factor * factor).filter(|bit| set >> bit & 1 == 1).min_by_key(|bit| from_middle(*bit)).unwrap_or(0)
            })
            .collect();
        let (inside, width, origin) = (&self.inside, self.width, self.origin);
        self.values.par_chunks_mut(BATCH).enumerate().for_each(|(batch, values)| {
            let covered = |k: &usize| inside[batch * BATCH + k] != 0;
            let wanted: Vec<usize> = (0..values.len()).filter(covered).collect();
            let mut points = Vec::with_capacity(2 * wanted.len());
            for k in &wanted {
                let pixel = batch * BATCH + k;
                let bit = nearest[usize::from(inside[pixel])];
                let x = ((origin[0] + pixel % width) * factor + bit % factor) as f64 + 0.5;
                let y = ((origin[1] + pixel / width) * factor + bit / factor) as f64 + 0.5;
                points.extend(layout.locate([x / fine, y / fine]));
            }
            for (k, value) in wanted.iter().zip(ask(density, &points)) {
                values[*k] = value;
            }
        });
    }

    /// The values of all pixels that touch the region.
    pub fn covered(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.inside.iter().zip(&self.values).filter(|(inside, _)| **inside != 0).map(|(_, value)| *value)
    }
}

/// Returns the densities at points, with 0 for values that are not finite or negative.
pub fn ask(density: &DensityFunction, points: &[f64]) -> Vec<f64> {
    if points.is_empty() {
        return Vec::new();
    }
    let mut values = density(points);
    for value in &mut values {
        if !(value.is_finite() && *value > 0.0) {
            *value = 0.0;
        }
    }
    values
}
