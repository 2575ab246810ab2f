//! From a scene to a file.
//!
//! Both formats are drawn on a finer grid than they are shown on: plotters places everything on whole pixels. The PNG is then
//! averaged down, which smooths all edges alike; the SVG keeps the fine grid as its coordinates.

use std::path::Path;
use std::sync::Once;

use anyhow::{Result, bail};
use plotters::prelude::{BitMapBackend, IntoDrawingArea, SVGBackend};
use plotters::style::{FontStyle, register_font};

use super::Scene;
use super::draw::{FONT, Grid, draw};
use super::layout::{Layout, WIDTH};

static SANS: &[u8] = include_bytes!("../../assets/PalSans.ttf");
static REGISTERED: Once = Once::new();

/// Pixels of the SVG's own grid per layout unit.
const SVG_GRID: f64 = 10.0;

/// The kind of picture, told by the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Png,
    Svg,
}

impl Kind {
    pub fn of(path: &Path) -> Result<Kind> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("png") => Ok(Kind::Png),
            Some("svg") => Ok(Kind::Svg),
            _ => bail!("{}: pictures are written as .png or .svg; choose one of these names", path.display()),
        }
    }
}

/// The bytes of a picture `width` pixels wide.
pub fn render(scene: &Scene, kind: Kind, width: u32) -> Result<Vec<u8>> {
    REGISTERED.call_once(|| {
        // It fails for a font that cannot be read only, and this one is part of the program.
        let _ = register_font(FONT, FontStyle::Normal, SANS);
    });
    let layout = Layout::new(scene)?;
    match kind {
        Kind::Png => png(scene, &layout, width),
        Kind::Svg => Ok(svg(scene, &layout, width)?.into_bytes()),
    }
}

fn svg(scene: &Scene, layout: &Layout, width: u32) -> Result<String> {
    let size = ((WIDTH * SVG_GRID).round() as u32, (layout.height * SVG_GRID).round() as u32);
    let mut text = String::new();
    draw(
        &SVGBackend::with_string(&mut text, size).into_drawing_area(),
        scene,
        layout,
        Grid { zoom: SVG_GRID, lower: 0.0 },
    )?;
    // The grid stays as the view box; the picture is shown at the width asked for.
    let fine = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let height = (layout.height * f64::from(width) / WIDTH).round();
    Ok(text.replacen(&fine, &format!("width=\"{width}\" height=\"{height}\""), 1))
}

fn png(scene: &Scene, layout: &Layout, width: u32) -> Result<Vec<u8>> {
    let factor: u32 = if width <= 2000 { 3 } else { 2 };
    let height = (layout.height * f64::from(width) / WIDTH).round() as u32;
    let fine = (width * factor, height * factor);
    let mut pixels = vec![255u8; fine.0 as usize * fine.1 as usize * 3];
    let grid = Grid { zoom: f64::from(fine.0) / WIDTH, lower: 0.16 };
    draw(&BitMapBackend::with_buffer(&mut pixels, fine).into_drawing_area(), scene, layout, grid)?;
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
    fn kinds_by_name() {
        assert_eq!(Kind::of(Path::new("a.PNG")).unwrap(), Kind::Png);
        assert!(Kind::of(Path::new("a.pdf")).unwrap_err().to_string().contains(".png or .svg"));
        assert!(Kind::of(Path::new("png")).is_err());
    }
}
