//! The colours of a density: pale for low, dark for high, in even steps of lightness.
//!
//! The map runs through OKLab, in which equal distances look equal: lightness falls on a straight line while the hue
//! turns from cream over green and teal to indigo. In grey it is a plain ramp. Warm colours stay free for samples and
//! marks, and grey for what is forbidden.

use plotters::style::RGBColor;

use super::super::axis::{Direction, Ticks};

/// The number of colours of the map: those of an indexed image besides its transparent one.
pub const STEPS: usize = 255;

/// The colour of samples, visible on pale and on dark ground.
pub const SAMPLE: RGBColor = RGBColor(233, 88, 20);
/// The colour of the most likely point.
pub const MODE: RGBColor = RGBColor(214, 20, 62);

/// Lightness, chroma and hue in degrees at even distances along the map.
const STOPS: [[f64; 3]; 6] = [
    [0.985, 0.020, 105.0],
    [0.855, 0.075, 135.0],
    [0.725, 0.095, 170.0],
    [0.595, 0.095, 210.0],
    [0.465, 0.115, 248.0],
    [0.335, 0.120, 272.0],
];

/// The colour at a place from 0 (low) to 1 (high).
pub fn map(t: f64) -> RGBColor {
    let last = STOPS.len() - 1;
    let along = t.clamp(0.0, 1.0) * last as f64;
    let k = (along as usize).min(last - 1);
    let part = along - k as f64;
    let [l, c, h] = std::array::from_fn(|i| STOPS[k][i] + part * (STOPS[k + 1][i] - STOPS[k][i]));
    from_oklab(l, c * h.to_radians().cos(), c * h.to_radians().sin())
}

/// Converts OKLab to sRGB, by the standard matrices and the sRGB curve.
fn from_oklab(l: f64, a: f64, b: f64) -> RGBColor {
    let long = (l + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let middle = (l - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let short = (l - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    let red = 4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short;
    let green = -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short;
    let blue = -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short;
    let byte = |linear: f64| {
        let v = linear.clamp(0.0, 1.0);
        let curved = if v <= 0.0031308 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        (curved * 255.0).round() as u8
    };
    RGBColor(byte(red), byte(green), byte(blue))
}

/// A map from densities to places on the colour map, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColourScale {
    /// The density at the dark end.
    pub top: f64,
    /// Whether places are proportional to the square root of the density, so that low ones can be told apart.
    pub root: bool,
}

/// The square root is used if the largest density is more than this many times the mean.
const HUGE: f64 = 12.0;

impl ColourScale {
    /// A scale for values that are finite and not negative.
    pub fn new(values: impl Iterator<Item = f64> + Clone) -> ColourScale {
        let (mut least, mut most, mut sum, mut count) = (f64::INFINITY, 0.0f64, 0.0, 0.0);
        for value in values.clone() {
            least = least.min(value);
            most = most.max(value);
            count += 1.0;
        }
        if most <= 0.0 {
            return ColourScale { top: 1.0, root: false };
        }
        // Relative to the largest, so that the sum cannot overflow.
        for value in values {
            sum += value / most;
        }
        // A constant density is shown in the middle of the map: there is no high and low to tell apart.
        let top = if least > 0.999 * most { 2.0 * most } else { most };
        ColourScale { top: if top.is_finite() { top } else { most }, root: sum / count < 1.0 / HUGE }
    }

    pub fn place(&self, value: f64) -> f64 {
        let t = (value / self.top).clamp(0.0, 1.0);
        if self.root { t.sqrt() } else { t }
    }

    /// The step of the map, from 0 to `STEPS - 1`.
    pub fn step(&self, value: f64) -> usize {
        ((self.place(value) * STEPS as f64) as usize).min(STEPS - 1)
    }

    /// Densities with labels for a colour bar, at places that leave room for the labels.
    pub fn ticks(&self, length: f64, direction: Direction) -> Ticks {
        if !self.root {
            return Ticks::short(0.0, self.top, length, direction);
        }
        let mut ticks = Ticks::decades(self.top);
        let needed = if direction == Direction::Up { 24.0 } else { ticks.width() + 14.0 };
        let mut last = f64::INFINITY;
        ticks.marks.retain(|(value, _)| {
            let at = self.place(*value) * length;
            let keep = last - at >= needed && (*value == 0.0 || at >= needed);
            if keep {
                last = at;
            }
            keep
        });
        ticks
    }

    pub fn colour(step: usize) -> RGBColor {
        map((step as f64 + 0.5) / STEPS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_darkens_evenly_and_is_never_grey() {
        let grey = |c: RGBColor| 0.2126 * f64::from(c.0) + 0.7152 * f64::from(c.1) + 0.0722 * f64::from(c.2);
        for k in 1..STEPS {
            let (before, after) = (ColourScale::colour(k - 1), ColourScale::colour(k));
            let step = grey(before) - grey(after);
            assert!((-0.01..3.0).contains(&step), "{k}: {before:?} {after:?}");
            let all = [after.0, after.1, after.2];
            assert!(all.iter().max().unwrap() - all.iter().min().unwrap() >= 8, "{after:?}");
        }
        assert!(grey(map(0.0)) > 240.0 && grey(map(1.0)) < 75.0);
    }

    #[test]
    fn scales_fit_the_values() {
        let of = |values: &[f64]| ColourScale::new(values.iter().copied());
        assert_eq!(of(&[0.0, 0.0]), ColourScale { top: 1.0, root: false });
        assert_eq!(of(&[]), ColourScale { top: 1.0, root: false });
        assert_eq!(of(&[3.0, 3.0]), ColourScale { top: 6.0, root: false });
        assert_eq!(of(&[1.0, 3.0]), ColourScale { top: 3.0, root: false });
        let mut peak = vec![0.0; 100];
        peak[7] = 5e300;
        assert_eq!(of(&peak), ColourScale { top: 5e300, root: true });
        assert_eq!((of(&peak).step(5e300), of(&peak).step(0.0)), (STEPS - 1, 0));
    }
}
