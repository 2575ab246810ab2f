//! Several pictures on one page, in rows from left to right.

use std::io::Cursor;

use anyhow::{Context, Result};

use super::file::PictureFormat;

/// The bytes of a picture that is one of several. All have the same width.
pub struct Panel(pub Vec<u8>);

/// A picture of panels, `across` of them side by side.
pub fn tiled(panels: &[Panel], across: usize, kind: PictureFormat) -> Result<Vec<u8>> {
    if let [only] = panels {
        return Ok(only.0.clone());
    }
    match kind {
        PictureFormat::Png => png(panels, across),
        PictureFormat::Svg => svg(panels, across),
    }
}

/// Where panels of some heights begin, and the height of all rows: each row is as high as its highest panel.
fn row_tops(heights: &[usize], across: usize) -> (Vec<usize>, usize) {
    let (mut tops, mut top) = (Vec::new(), 0);
    for row in heights.chunks(across) {
        tops.push(top);
        top += row.iter().max().copied().unwrap_or(0);
    }
    (tops, top)
}

fn png(panels: &[Panel], across: usize) -> Result<Vec<u8>> {
    let mut pictures = Vec::new();
    for Panel(bytes) in panels {
        let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info()?;
        let mut pixels = vec![0; reader.output_buffer_size().context("a picture that is too large")?];
        let info = reader.next_frame(&mut pixels)?;
        pictures.push((info.width as usize, info.height as usize, pixels));
    }
    let heights: Vec<usize> = pictures.iter().map(|(_, height, _)| *height).collect();
    let (tops, height) = row_tops(&heights, across);
    let side = pictures.iter().map(|(width, ..)| *width).max().unwrap_or(0);
    let width = side * across;
    let mut page = vec![255u8; 3 * width * height];
    for (k, (own, rows, pixels)) in pictures.iter().enumerate() {
        let (left, top) = (k % across * side, tops[k / across]);
        for y in 0..*rows {
            let at = 3 * ((top + y) * width + left);
            page[at..at + 3 * own].copy_from_slice(&pixels[3 * y * own..3 * (y + 1) * own]);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&page)?;
    writer.finish()?;
    Ok(bytes)
}

/// Documents inside a document: each has a view box of its own.
fn svg(panels: &[Panel], across: usize) -> Result<Vec<u8>> {
    let texts = panels.iter().map(|Panel(bytes)| std::str::from_utf8(bytes)).collect::<Result<Vec<&str>, _>>()?;
    let size = |text: &str, name: &str| -> Result<usize> {
        let from = text.find(&format!("{name}=\"")).context("a picture without a size")? + name.len() + 2;
        let length = text[from..].find('"').context("a picture without a size")?;
        Ok(text[from..from + length].parse::<f64>()?.round() as usize)
    };
    let heights = texts.iter().map(|text| size(text, "height")).collect::<Result<Vec<_>>>()?;
    let widths = texts.iter().map(|text| size(text, "width")).collect::<Result<Vec<_>>>()?;
    let (tops, height) = row_tops(&heights, across);
    let side = widths.into_iter().max().unwrap_or(0);
    let width = side * across;
    let mut page = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\"/>\n"
    );
    for (k, text) in texts.iter().enumerate() {
        let place = format!("<svg x=\"{}\" y=\"{}\" ", k % across * side, tops[k / across]);
        page += &text.replacen("<svg ", &place, 1);
    }
    page += "</svg>\n";
    Ok(page.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_high_as_their_highest_panel() {
        assert_eq!(row_tops(&[3, 5, 4], 2), (vec![0, 5], 9));
        assert_eq!(row_tops(&[3], 3), (vec![0], 3));
    }

    #[test]
    fn documents_go_side_by_side() {
        let panel = |height: usize| {
            Panel(format!("<svg width=\"10\" height=\"{height}\" viewBox=\"0 0 1 1\">x</svg>").into_bytes())
        };
        let page = String::from_utf8(svg(&[panel(4), panel(6), panel(2)], 2).unwrap()).unwrap();
        assert!(page.starts_with("<svg width=\"20\" height=\"8\""), "{page}");
        for place in ["<svg x=\"0\" y=\"0\" ", "<svg x=\"10\" y=\"0\" ", "<svg x=\"0\" y=\"6\" "] {
            assert!(page.contains(place), "{page}");
        }
    }
}
