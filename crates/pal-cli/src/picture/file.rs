//! From a scene to a file.
//!
//! Both formats are drawn on a finer grid than they are shown on: plotters places everything on whole pixels. The PNG
//! is then averaged down, which smooths all edges alike; the SVG keeps the fine grid as its coordinates.

use std::path::Path;
use std::sync::Once;

use anyhow::{Result, bail};
use base64::prelude::{BASE64_STANDARD, Engine};
use plotters::prelude::{BitMapBackend, DrawingBackend, IntoDrawingArea, SVGBackend};
use plotters::style::{FontStyle, WHITE, register_font};

use super::Scene;
use super::draw::Planned;
use super::layout::{Layout, WIDTH};
use super::page::{FONT, Page, PixelGrid, unexpected};

static SANS: &[u8] = include_bytes!("../../assets/PalSans.ttf");
static REGISTERED: Once = Once::new();

/// Pixels of the SVG's own grid per layout unit.
const SVG_GRID: f64 = 10.0;

/// The format of a picture, which the extension of the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    Png,
    Svg,
}

impl PictureFormat {
    pub fn of(path: &Path) -> Result<PictureFormat> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("png") => Ok(PictureFormat::Png),
            Some("svg") => Ok(PictureFormat::Svg),
            _ => bail!("{}: pictures are written as .png or .svg; choose one of these names", path.display()),
        }
    }
}

/// Something to draw on a page, in up to three layers.
///
/// What is drawn with plotters in one step needs [`Drawing::below`] only. Between the two layers of shapes a drawing
/// may have pixels of its own: for a PNG it paints them, for an SVG it gives them as images.
pub trait Drawing {
    fn height(&self) -> f64;

    fn below<B: DrawingBackend>(&self, page: &Page<B>) -> Result<()>;

    fn paint(&self, _canvas: &mut Canvas) {}

    fn images(&self) -> Result<Vec<Image>> {
        Ok(Vec::new())
    }

    fn above<B: DrawingBackend>(&self, _page: &Page<B>) -> Result<()> {
        Ok(())
    }
}

/// The fine pixels of a PNG.
pub struct Canvas<'a> {
    pub pixels: &'a mut [u8],
    pub width: usize,
    /// Pixels per layout unit.
    pub zoom: f64,
}

/// A PNG inside an SVG, with left, top, right and bottom on the page.
pub struct Image {
    pub png: Vec<u8>,
    pub place: [f64; 4],
}

/// The bytes of a picture `width` pixels wide.
pub fn render(scene: &Scene, kind: PictureFormat, width: u32) -> Result<Vec<u8>> {
    render_drawing(&Planned { scene, layout: Layout::new(scene)? }, kind, width)
}

pub fn render_drawing(drawing: &impl Drawing, kind: PictureFormat, width: u32) -> Result<Vec<u8>> {
    REGISTERED.call_once(|| {
        // It fails only for a font that cannot be read, and this one is part of the program.
        let _ = register_font(FONT, FontStyle::Normal, SANS);
    });
    match kind {
        PictureFormat::Png => png(drawing, width),
        PictureFormat::Svg => Ok(svg(drawing, width)?.into_bytes()),
    }
}

/// Fine pixels per pixel of a PNG.
pub fn factor(width: u32) -> u32 {
    if width <= 2000 { 3 } else { 2 }
}

fn svg(drawing: &impl Drawing, width: u32) -> Result<String> {
    let size = ((WIDTH * SVG_GRID).round() as u32, (drawing.height() * SVG_GRID).round() as u32);
    let grid = PixelGrid { zoom: SVG_GRID, lower: 0.0, vector: true };
    let (mut below, mut above) = (String::new(), String::new());
    {
        let area = SVGBackend::with_string(&mut below, size).into_drawing_area();
        area.fill(&WHITE).map_err(unexpected)?;
        drawing.below(&Page { area: &area, grid })?;
        area.present().map_err(unexpected)?;
    }
    {
        let area = SVGBackend::with_string(&mut above, size).into_drawing_area();
        drawing.above(&Page { area: &area, grid })?;
        area.present().map_err(unexpected)?;
    }
    // Both layers are whole documents; what is between the outermost tags of the second goes into the first.
    let start = above.find('>').map_or(0, |at| at + 1);
    let between = &above[start..above.rfind("</svg>").unwrap_or(above.len()).max(start)];
    let mut text = below.trim_end().trim_end_matches("</svg>").to_string();
    for image in drawing.images()? {
        let [left, top, right, bottom] = image.place.map(|length| length * SVG_GRID);
        text += &format!(
            "<image x=\"{left:.2}\" y=\"{top:.2}\" width=\"{:.2}\" height=\"{:.2}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{}\"/>\n",
            right - left,
            bottom - top,
            BASE64_STANDARD.encode(&image.png)
        );
    }
    text += between.trim_start();
    text += "</svg>\n";
    // The grid stays as the view box; the picture is shown at the width asked for.
    let fine = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let height = (drawing.height() * f64::from(width) / WIDTH).round();
    let shown = format!("width=\"{width}\" height=\"{height}\"");
    Ok(text.replacen(&fine, &shown, 1))
}

fn png(drawing: &impl Drawing, width: u32) -> Result<Vec<u8>> {
    let factor = factor(width);
    let height = (drawing.height() * f64::from(width) / WIDTH).round() as u32;
    let fine = (width * factor, height * factor);
    let mut pixels = vec![255u8; fine.0 as usize * fine.1 as usize * 3];
    let grid = PixelGrid { zoom: f64::from(fine.0) / WIDTH, lower: 0.16, vector: false };
    {
        let area = BitMapBackend::with_buffer(&mut pixels, fine).into_drawing_area();
        drawing.below(&Page { area: &area, grid })?;
        area.present().map_err(unexpected)?;
    }
    drawing.paint(&mut Canvas { pixels: &mut pixels, width: fine.0 as usize, zoom: grid.zoom });
    {
        let area = BitMapBackend::with_buffer(&mut pixels, fine).into_drawing_area();
        drawing.above(&Page { area: &area, grid })?;
        area.present().map_err(unexpected)?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&average(&pixels, width as usize, height as usize, factor as usize))?;
    writer.finish()?;
    Ok(bytes)
}

/// The mean colour of every `factor` by `factor` block of pixels.
fn average(fine: &[u8], width: usize, height: usize, factor: usize) -> Vec<u8> {
    let mut coarse = Vec::with_capacity(width * height * 3);
    let stride = width * factor * 3;
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let corner = y * factor * stride + x * factor * 3 + channel;
                let block =
                    (0..factor * factor).map(|k| u32::from(fine[corner + k / factor * stride + k % factor * 3]));
                coarse.push((block.sum::<u32>() / (factor * factor) as u32) as u8);
            }
        }
    }
    coarse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_averaged() {
        // Two blocks of 2 x 2: all 10, and 0/100 mixed.
        let row = [10, 10, 10, 10, 10, 10, 0, 0, 0, 100, 100, 100];
        let fine = [row, row].concat();
        assert_eq!(average(&fine, 2, 1, 2), [10, 10, 10, 50, 50, 50]);
    }

    #[test]
    fn formats_by_name() {
        assert_eq!(PictureFormat::of(Path::new("a.PNG")).unwrap(), PictureFormat::Png);
        assert!(PictureFormat::of(Path::new("a.pdf")).unwrap_err().to_string().contains(".png or .svg"));
        assert!(PictureFormat::of(Path::new("png")).is_err());
    }
}
