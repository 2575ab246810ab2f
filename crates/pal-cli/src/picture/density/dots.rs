//! Samples as translucent dots, smaller and fainter the more there are.

use super::super::Point;
use super::super::file::Canvas;
use super::super::layout::Layout;
use super::colour::SAMPLE;

/// The look of the dots of a picture.
#[derive(Clone, Copy)]
pub struct Dots {
    /// In page units.
    pub radius: f64,
    pub opacity: f64,
    /// The width of a pale ring around each, which tells few dots from dark ground.
    pub ring: f64,
}

impl Dots {
    pub fn new(count: usize) -> Dots {
        let crowd = 300.0 / count.max(1) as f64;
        Dots {
            radius: (2.3 * crowd.powf(0.25)).clamp(0.55, 2.5),
            opacity: (0.9 * crowd.powf(0.2)).clamp(0.2, 0.9),
            ring: if count <= 600 { 0.6 } else { 0.0 },
        }
    }

    /// How much of a dot covers a pixel at some distance from its middle, both in pixels.
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
pub fn paint(places: &[Point], dots: Dots, canvas: &mut Canvas) {
    let (zoom, width) = (canvas.zoom, canvas.width);
    let size = [width, canvas.pixels.len() / (3 * width).max(1)];
    let mut blend = |place: &Point, radius: f64, colour: [u8; 3], opacity: f64| {
        splat(place.map(|length| length * zoom), radius * zoom, size, |x, y, covered| {
            let start = 3 * (y * width + x);
            for (pixel, ink) in canvas.pixels[start..start + 3].iter_mut().zip(colour) {
                let mixed = f64::from(*pixel) + opacity * covered * (f64::from(ink) - f64::from(*pixel));
                *pixel = mixed.round() as u8;
            }
        });
    };
    for place in places {
        if dots.ring > 0.0 {
            blend(place, dots.radius + dots.ring, [255; 3], 0.75 * dots.opacity);
        }
        blend(place, dots.radius, [SAMPLE.0, SAMPLE.1, SAMPLE.2], dots.opacity);
    }
}

/// How opaque the dots together make every pixel of a frame, from 0 to 255, at `zoom` pixels per unit: for an SVG, in which
/// many single dots would take megabytes.
pub fn opacities(places: &[Point], dots: Dots, frame: [f64; 4], zoom: f64, size: [usize; 2]) -> Vec<u8> {
    let mut clear = vec![1.0f32; size[0] * size[1]];
    for place in places {
        let at = [(place[0] - frame[0]) * zoom, (place[1] - frame[1]) * zoom];
        let radius = dots.radius * zoom;
        splat(at, radius, size, |x, y, covered| clear[y * size[0] + x] *= 1.0 - (dots.opacity * covered) as f32);
    }
    clear.into_iter().map(|clear| ((1.0 - clear) * 255.0).round() as u8).collect()
}
