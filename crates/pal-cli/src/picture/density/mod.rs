//! Pictures of densities on regions over one or two variables.
//!
//! A [`DensityScene`] says what to show. Over two variables it becomes a heat map ([`plane`]) of a [`field`] of pixels,
//! over one a curve ([`line`]). [`colour`] is the map of colours, [`outline`] finds the edge of the region, [`dots`]
//! paints samples, [`parts`] has what both share.

mod colour;
mod dots;
mod field;
mod line;
mod outline;
mod parts;
mod plane;
#[cfg(test)]
mod tests;

use anyhow::{Result, bail, ensure};

use super::file::{PictureFormat, render_drawing};
use super::{CellShape, Point};

/// A function from many points, row by row, to their densities, 0 outside the region.
pub type DensityFunction<'a> = dyn Fn(&[f64]) -> Vec<f64> + Sync + 'a;

/// What a picture of a density shows.
pub struct DensityScene<'a> {
    pub title: Option<String>,
    /// A line below the title, such as the family of the density.
    pub subtitle: Option<String>,
    /// The names of the one or two variables.
    pub axes: Vec<String>,
    /// The cells of the region.
    pub cells: Vec<CellShape>,
    /// Whether thin outlines of the cells are drawn over the density.
    pub show_cells: bool,
    /// Whether the second variable grows downwards, as in images.
    pub y_down: bool,
    /// Called with many points at once, from several threads. Values that are not finite, or negative, are drawn as 0.
    pub density: &'a DensityFunction<'a>,
    /// Samples of the density; over one variable the second coordinates are not used.
    pub samples: Vec<Point>,
    /// The most likely point.
    pub mode: Option<Vec<f64>>,
    /// For each variable, positions and densities of its marginal; over one variable there is none.
    pub marginals: Option<Vec<Vec<(f64, f64)>>>,
    /// The cells of an event, whose outline is drawn.
    pub event: Vec<CellShape>,
    /// What the legend says about the event.
    pub event_text: Option<String>,
}

/// The bytes of a picture `width` pixels wide.
pub fn render(scene: &DensityScene, kind: PictureFormat, width: u32) -> Result<Vec<u8>> {
    ensure!(!scene.cells.is_empty(), "nothing to draw: the region covers no area");
    if let Some(mode) = &scene.mode {
        ensure!(mode.len() == scene.axes.len(), "a mode of {} coordinates on {} axes", mode.len(), scene.axes.len());
    }
    match scene.axes.len() {
        1 => render_drawing(&line::LinePicture::new(scene)?, kind, width),
        2 => render_drawing(&plane::PlanePicture::new(scene, kind, width)?, kind, width),
        other => {
            bail!("a picture of a density needs 1 or 2 variables, this one has {other}; ask for marginals instead")
        }
    }
}
