//! Samples as translucent dots, smaller and fainter the more there are.

use super::super::Point;
use super::super::file::Canvas;
use super::super::layout::Layout;
use super::colour::SAMPLE;

/// The size and opacity of the dots of a picture.
#[derive(Clone, Copy)]
pub struct Dots {
    /// The radius in page units.
    pub radius: f64,
    pub opacity: f64,
    /// The width of a pale ring around each dot, which sets it off from dark ground.
    pub ring: f64,
}

impl Dots {
    pub fn new(count: usize) -> Dots {
        let crowd = 300.0 / count.max(1) as f64;
        Dots {
            radius: (2.3 * crowd.powf(0.25)).clamp(0.55, 2.5),
            opacity: (0.9 * crowd.powf(0.42)).clamp(0.05, 0.9),
            ring: if count <= 600 { 0.6 } else { 0.0 },
        }
    }

    /// The fraction of a pixel that a dot covers, at some distance from its middle; lengths are in pixels.
    fn coverage(radius: f64, distance: f64) -> f64 {
        (radius + 0.5 - distance).clamp(0.0, 1.0)
    }
}

/// The samples that lie in the frame, on the page.
pub fn visible(samples: &[Point], layout: &Layout) -> Vec<Point> {
    let [left, top, right, bottom] = layout.frame;
    let on_page = samples.iter().map(|point| layout.place(*point));
    on_page.filter(|[x, y]| (left..=right).contains(x) && (top..=bottom).contains(y)).collect()
}

/// Calls `touch` with column, row and coverage of every pixel of a dot.
fn splat(at: Point, radius: f64, size: [usize; 2], mut touch: impl FnMut(usize, usize, f64)) {
    let range = |middle: f64, end: usize| {
        let from = (middle - radius - 1.0).floor().max(0.0) as usize;
        from..((middle + radius + 1.0).ceil().max(0.0) as usize).min(end)
    };
    for y in range(at[1], size[1]) {
        for x in range(at[0], size[0]) {
            let covered = Dots::coverage(radius, (x as f64 + 0.5 - at[0]).hypot(y as f64 + 0.5 - at[1]));
            if covered > 0.0 {
                touch(x, y, covered);
            }
        }
    }
}

/// Blends the dots into the pixels of a PNG.
pub fn paint(places: &[Point], dots: Dots, frame: [f64; 4], canvas: &mut Canvas) {
    let (zoom, width) = (canvas.zoom, canvas.width);
    let height = canvas.pixels.len() / (3 * width).max(1);
    let mut blend = |x: usize, y: usize, colour: [u8; 3], opacity: f64| {
        let start = 3 * (y * width + x);
        for (pixel, ink) in canvas.pixels[start..start + 3].iter_mut().zip(colour) {
            *pixel = (f64::from(*pixel) + opacity * (f64::from(ink) - f64::from(*pixel))).round() as u8;
        }
    };
    let ink = [SAMPLE.0, SAMPLE.1, SAMPLE.2];
    if dots.ring > 0.0 {
        for place in places {
            let at = place.map(|length| length * zoom);
            let ring = (dots.radius + dots.ring) * zoom;
            splat(at, ring, [width, height], |x, y, part| blend(x, y, [255; 3], 0.75 * dots.opacity * part));
            splat(at, dots.radius * zoom, [width, height], |x, y, part| blend(x, y, ink, dots.opacity * part));
        }
        return;
    }
    // Faint dots are combined first: blended one by one, they would be lost to rounding.
    let [left, top, right, bottom] = frame.map(|length| (length * zoom).max(0.0) as usize);
    let size = [(right + 1).min(width) - left, (bottom + 1).min(height) - top];
    let corner = [left as f64 / zoom, top as f64 / zoom];
    for (k, opacity) in opacities(places, dots, corner, zoom, size).into_iter().enumerate() {
        if opacity > 0 {
            blend(left + k % size[0], top + k / size[0], ink, f64::from(opacity) / 255.0);
        }
    }
}

/// How opaque the dots together make every pixel from `corner` on, from 0 to 255, at `zoom` pixels per unit. An SVG
/// gets this as an image: many single dots would take megabytes.
pub fn opacities(places: &[Point], dots: Dots, corner: Point, zoom: f64, size: [usize; 2]) -> Vec<u8> {
    let mut clear = vec![1.0f32; size[0] * size[1]];
    for place in places {
        let at = [(place[0] - corner[0]) * zoom, (place[1] - corner[1]) * zoom];
        let radius = dots.radius * zoom;
        splat(at, radius, size, |x, y, covered| clear[y * size[0] + x] *= 1.0 - (dots.opacity * covered) as f32);
    }
    clear.into_iter().map(|clear| ((1.0 - clear) * 255.0).round() as u8).collect()
}
