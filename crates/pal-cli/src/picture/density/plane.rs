//! A density over two variables: a heat map with everything around it.

use anyhow::Result;
use plotters::prelude::DrawingBackend;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::super::axis::Direction;
use super::super::file::{Canvas, Drawing, Image, PictureFormat, factor};
use super::super::layout::{Layout, Margins, SMALL, Vertical, WIDTH};
use super::super::page::Page;
use super::super::{Point, colours};
use super::colour::{self, ColourScale, SAMPLE, STEPS};
use super::dots::{self, Dots};
use super::field::Field;
use super::parts::{self, LEGEND};
use super::{DensityScene, outline};

/// Pixels of the embedded images of an SVG per page unit.
const SVG_ZOOM: f64 = 1.5;
/// Pixels per page unit of a first, coarse picture that is only measured.
const COARSE: f64 = 0.2;
/// Up to this many samples, an SVG has a shape for each of them.
const SHAPES: usize = 2000;
/// The height of the panel of a marginal, and the gap between it and the frame.
const PANEL: f64 = 58.0;
const PANEL_GAP: f64 = 7.0;
/// The colour bar: its thickness, the gap before it, and the room of its name, in the middle of that.
const BAR: f64 = 13.0;
const BAR_GAP: f64 = 20.0;
const BAR_NAME: f64 = 32.0;
/// The gap between the colour bar and its labels.
const BAR_LABEL: f64 = 8.0;
/// The colour bar of a frame lower than this is below it.
const LOW: f64 = 150.0;
const LONGEST_BAR: f64 = 420.0;
/// The height of the row of a colour bar below the frame.
const BAR_ROW: f64 = 52.0;

/// A scene with its layout and the values of its density.
pub struct PlanePicture<'a> {
    scene: &'a DensityScene<'a>,
    layout: Layout,
    field: Field,
    scale: ColourScale,
    /// The samples on the page.
    samples: Vec<Point>,
    boundary: Vec<[Point; 2]>,
    /// The shorter side of the region on the page.
    thickness: f64,
    bar_below: bool,
}

impl<'a> PlanePicture<'a> {
    pub fn new(scene: &'a DensityScene, kind: PictureFormat, width: u32) -> Result<PlanePicture<'a>> {
        let plan = |bar_below: bool, labels: f64| {
            let panel = if scene.marginals.is_some() { PANEL + PANEL_GAP } else { 0.0 };
            let margins = Margins {
                top: parts::title_height(scene) + panel,
                right: panel + if bar_below { 24.0 } else { BAR_GAP + BAR + BAR_LABEL + labels + BAR_NAME },
                bottom: 58.0 + LEGEND + if bar_below { BAR_ROW } else { 0.0 },
            };
            Layout::with(&scene.cells, &Vertical::Equal { down: scene.y_down }, margins)
        };
        // A coarse picture tells how wide the labels of the colour bar will be.
        let beside = plan(false, 0.0)?;
        let coarse = ColourScale::new(Field::new(&beside, &scene.cells, scene.density, COARSE, 1).covered());
        let length = (beside.frame[3] - beside.frame[1]).min(LONGEST_BAR);
        let beside = plan(false, coarse.ticks(length, Direction::Up).width())?;
        let bar_below = beside.frame[3] - beside.frame[1] < LOW;
        let layout = if bar_below { plan(true, 0.0)? } else { beside };
        let (zoom, fine) = match kind {
            PictureFormat::Png => (f64::from(width) / WIDTH, factor(width) as usize),
            PictureFormat::Svg => (SVG_ZOOM, 3),
        };
        let field = Field::new(&layout, &scene.cells, scene.density, zoom, fine);
        let scale = ColourScale::new(field.covered());
        let samples = dots::visible(&scene.samples, &layout);
        let boundary = outline::boundary(&scene.cells, &layout);
        let places = scene.cells.iter().flat_map(|cell| &cell.outline).map(|point| layout.place(*point));
        let around = places.fold([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY], |b, p| {
            [b[0].min(p[0]), b[1].min(p[1]), b[2].max(p[0]), b[3].max(p[1])]
        });
        let thickness = (around[2] - around[0]).min(around[3] - around[1]);
        Ok(PlanePicture { scene, layout, field, scale, samples, boundary, thickness, bar_below })
    }

    /// The frame, and the point at a place on the page, for tests.
    #[cfg(test)]
    pub fn frame(&self) -> [f64; 4] {
        self.layout.frame
    }

    #[cfg(test)]
    pub fn locate(&self, place: Point) -> Point {
        self.layout.locate(place)
    }

    /// The heat map as an indexed image, in which 0 is transparent.
    fn heat_image(&self) -> Result<Image> {
        let field = &self.field;
        let indices = field.inside.iter().zip(&field.values);
        let indices = indices.map(|(inside, value)| if *inside == 0 { 0 } else { 1 + self.scale.step(*value) as u8 });
        let mut palette = vec![255; 3];
        palette.extend((0..STEPS).map(ColourScale::colour).flat_map(|c| [c.0, c.1, c.2]));
        let png = indexed(field.width, field.height, &indices.collect::<Vec<u8>>(), palette, vec![0])?;
        let [left, top] = field.origin.map(|pixels| pixels as f64 / SVG_ZOOM);
        let (right, bottom) = (left + field.width as f64 / SVG_ZOOM, top + field.height as f64 / SVG_ZOOM);
        Ok(Image { png, place: [left, top, right, bottom] })
    }

    /// The dots as an image of one colour, in which the index is the opacity.
    fn dots_image(&self) -> Result<Image> {
        let [left, top, right, bottom] = self.layout.frame;
        let zoom = 2.0 * SVG_ZOOM;
        let size = [((right - left) * zoom).ceil() as usize, ((bottom - top) * zoom).ceil() as usize];
        let opacities = dots::opacities(&self.samples, Dots::new(self.scene.samples.len()), [left, top], zoom, size);
        let palette = [SAMPLE.0, SAMPLE.1, SAMPLE.2].repeat(256);
        let png = indexed(size[0], size[1], &opacities, palette, (0..=255).collect())?;
        Ok(Image { png, place: [left, top, left + size[0] as f64 / zoom, top + size[1] as f64 / zoom] })
    }

    /// Filled curves along the top and the right of the frame.
    fn marginals<B: DrawingBackend>(&self, page: &Page<B>, marginals: &[Vec<(f64, f64)>]) -> Result<()> {
        let [left, top, right, bottom] = self.layout.frame;
        for (axis, curve) in marginals.iter().enumerate().take(2) {
            let clean = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
            let most = curve.iter().fold(0.0f64, |m, (_, value)| m.max(clean(*value)));
            let (start, end) = if axis == 0 { (left, right) } else { (top, bottom) };
            let base = if axis == 0 { top - PANEL_GAP } else { right + PANEL_GAP };
            let point =
                |along: f64, height: f64| if axis == 0 { [along, base - height] } else { [base + height, along] };
            let height = |value: f64| if most > 0.0 { clean(value) / most * (PANEL - 4.0) } else { 0.0 };
            let along = |at: f64| self.layout.place([at, at])[axis].clamp(start, end);
            let finite = curve.iter().filter(|(at, _)| at.is_finite());
            let line: Vec<Point> = finite.map(|(at, value)| point(along(*at), height(*value))).collect();
            let (Some(first), Some(last)) = (line.first(), line.last()) else { continue };
            let foot = |p: &Point| if axis == 0 { [p[0], base] } else { [base, p[1]] };
            let outline: Vec<Point> =
                [foot(first)].into_iter().chain(line.iter().copied()).chain([foot(last)]).collect();
            page.fill(&outline, colour::map(0.62).mix(0.3))?;
            page.path(&outline, colour::map(0.8), 1.1)?;
            page.line([point(start, 0.0), point(end, 0.0)], colours::INK, 0.9)?;
            let name = &self.scene.axes[axis];
            if name.chars().count() <= 8 && end - start > 90.0 {
                let text = format!("p({name})");
                if axis == 0 {
                    page.text(&text, SMALL, [left - 8.0, base - PANEL / 2.0], (HPos::Right, VPos::Center), false)?;
                } else {
                    page.text(&text, SMALL, [base, top - 6.0], (HPos::Left, VPos::Bottom), false)?;
                }
            }
        }
        Ok(())
    }

    fn bar<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        let [left, top, right, bottom] = self.layout.frame;
        let panel = if self.scene.marginals.is_some() { PANEL + PANEL_GAP } else { 0.0 };
        let direction = if self.bar_below { Direction::Across } else { Direction::Up };
        let middle = (left + right) / 2.0;
        let length = if self.bar_below { 280.0 } else { (bottom - top).min(LONGEST_BAR) };
        // From the pale end: along the bar and across it.
        let point = |along: f64, across: f64| {
            if self.bar_below {
                [middle - length / 2.0 + along, bottom + 66.0 + across]
            } else {
                [right + panel + BAR_GAP + across, (top + bottom + length) / 2.0 - along]
            }
        };
        let steps = 128;
        for k in 0..steps {
            let from = length * k as f64 / steps as f64;
            let colour = colour::map((k as f64 + 0.5) / steps as f64);
            // Each rectangle reaches all the way to the dark end: side by side they would show their seams in an SVG.
            page.fill(&[point(from, 0.0), point(length, 0.0), point(length, BAR), point(from, BAR)], colour)?;
        }
        let corners = [point(0.0, 0.0), point(length, 0.0), point(length, BAR), point(0.0, BAR)];
        for k in 0..4 {
            page.line([corners[k], corners[(k + 1) % 4]], colours::INK, 0.8)?;
        }
        let ticks = self.scale.ticks(length, direction);
        for (value, label) in &ticks.marks {
            let at = self.scale.place(*value) * length;
            page.line([point(at, BAR), point(at, BAR + 4.0)], colours::INK, 0.8)?;
            let anchor = if self.bar_below { (HPos::Center, VPos::Top) } else { (HPos::Left, VPos::Center) };
            page.text(label, SMALL, point(at, BAR + BAR_LABEL), anchor, false)?;
        }
        let title = ticks.name("density") + if self.scale.root { ", square-root scale" } else { "" };
        if self.bar_below {
            page.text(&title, SMALL, point(length + 12.0, BAR / 2.0), (HPos::Left, VPos::Center), false)
        } else {
            let at = point(length / 2.0, BAR + BAR_LABEL + ticks.width() + BAR_NAME / 2.0);
            page.small_name(&title, (bottom - top).max(LOW), at, true)
        }
    }
}

impl Drawing for PlanePicture<'_> {
    fn height(&self) -> f64 {
        self.layout.height
    }

    fn below<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        page.forbidden(self.layout.frame)
    }

    fn paint(&self, canvas: &mut Canvas) {
        let field = &self.field;
        let palette: Vec<[u8; 3]> = (0..STEPS).map(ColourScale::colour).map(|c| [c.0, c.1, c.2]).collect();
        for (k, (inside, value)) in field.inside.iter().zip(&field.values).enumerate() {
            let colour = palette[self.scale.step(*value)];
            let corner = [field.origin[0] + k % field.width, field.origin[1] + k / field.width];
            for bit in (0..field.factor * field.factor).filter(|bit| inside >> bit & 1 == 1) {
                let x = corner[0] * field.factor + bit % field.factor;
                let y = corner[1] * field.factor + bit / field.factor;
                // The last row of the frame may be rounded off the picture.
                if let Some(pixel) = canvas.pixels.get_mut(3 * (y * canvas.width + x)..).and_then(|p| p.get_mut(..3)) {
                    pixel.copy_from_slice(&colour);
                }
            }
        }
        dots::paint(&self.samples, Dots::new(self.scene.samples.len()), self.layout.frame, canvas);
    }

    fn images(&self) -> Result<Vec<Image>> {
        let mut images = vec![self.heat_image()?];
        if self.samples.len() > SHAPES {
            images.push(self.dots_image()?);
        }
        Ok(images)
    }

    fn above<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()> {
        let (scene, layout) = (self.scene, &self.layout);
        // The pixels of a PNG have the dots already.
        if page.vector() && self.samples.len() <= SHAPES {
            let dots = Dots::new(scene.samples.len());
            for place in &self.samples {
                if dots.ring > 0.0 {
                    page.dot(*place, plotters::style::WHITE.mix(0.75 * dots.opacity), 2.0 * (dots.radius + dots.ring))?;
                }
                page.dot(*place, SAMPLE.mix(dots.opacity), 2.0 * dots.radius)?;
            }
        }
        if scene.show_cells {
            for edge in scene.cells.iter().flat_map(|cell| cell.edges()) {
                page.line(edge.map(|p| layout.place(p)), colours::CELL_EDGE.mix(0.7), 0.6)?;
            }
        }
        // A very thin region must not disappear under its own edge.
        let width = (self.thickness / 8.0).clamp(0.25, 1.3);
        for edge in &self.boundary {
            page.line(*edge, colours::BOUNDARY, width)?;
            page.dot(edge[0], colours::BOUNDARY, width)?;
        }
        let event = outline::boundary(&scene.event, layout);
        let inner = outline::apart(&event, &self.boundary);
        // The edge of the region is there already, unless there is nothing else to show.
        for chain in outline::chained(if inner.is_empty() { event } else { inner }) {
            let lines: Vec<_> = chain.into_iter().filter_map(|edge| outline::clip(edge, layout.frame)).collect();
            parts::dashed(page, &lines, 1.8)?;
        }
        if let Some([x, y]) = scene.mode.as_deref() {
            let at = layout.place([*x, *y]);
            if !dots::visible(&[[*x, *y]], layout).is_empty() {
                parts::star(page, at, 9.0)?;
            }
        }
        page.axes(layout, &scene.axes[0], scene.axes.get(1).map(String::as_str))?;
        if let Some(marginals) = &scene.marginals {
            self.marginals(page, marginals)?;
        }
        self.bar(page)?;
        page.titles(scene.title.as_deref(), scene.subtitle.as_deref(), layout.frame)?;
        let middle = (layout.frame[0] + layout.frame[2]) / 2.0;
        parts::legend(page, scene, middle, layout.height - LEGEND / 2.0 - 2.0)
    }
}

/// A PNG of indices into a palette; `alpha` are the opacities of its first colours.
fn indexed(width: usize, height: usize, indices: &[u8], palette: Vec<u8>, alpha: Vec<u8>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_trns(alpha);
    encoder.set_compression(png::Compression::High);
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(indices)?;
    writer.finish()?;
    Ok(bytes)
}
