//! Round numbers along an axis.
//!
//! Labels stay short however small or far away the numbers are: what is common to all of them, an amount to add and a
//! power of ten, goes into the name of the axis. Labels under `(x - 1) / 1e-9` are the values of that expression.

use super::layout::SMALL;

/// Ticks along one axis.
#[derive(Debug, Default)]
pub struct Ticks {
    /// Positions and labels.
    pub marks: Vec<(f64, String)>,
    /// What is subtracted from all labels, as text: `" \u{2212} 1"`.
    shift: String,
    /// The labels are to be multiplied by this power of ten.
    exponent: i32,
}

/// The direction of an axis, which says how much room its labels need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Across,
    Up,
}

impl Direction {
    /// The distance between ticks that looks best, in page units.
    fn ideal(self) -> f64 {
        if self == Direction::Across { 85.0 } else { 65.0 }
    }

    /// The distance between ticks that their labels need, in page units.
    fn needed(self, ticks: &Ticks) -> f64 {
        if self == Direction::Across { ticks.width() + 10.0 } else { SMALL + 5.0 }
    }
}

/// Labels outside this range of powers of ten would have too many digits.
const READABLE: (i32, i32) = (-5, 7);
/// The same range for labels that have little room.
const SHORT: (i32, i32) = (-2, 4);

impl Ticks {
    /// Ticks for an axis of the given length on the page: labels do not touch, on a very short axis one is left.
    pub fn new(low: f64, high: f64, length: f64, direction: Direction) -> Ticks {
        Ticks::choose(low, high, length, direction, READABLE)
    }

    /// Ticks like [`Ticks::new`] with labels of at most four characters, for numbers that are not negative.
    pub fn short(low: f64, high: f64, length: f64, direction: Direction) -> Ticks {
        Ticks::choose(low, high, length, direction, SHORT)
    }

    fn choose(low: f64, high: f64, length: f64, direction: Direction, digits: (i32, i32)) -> Ticks {
        let at = |step: f64| Ticks::with_step(low, high, step, digits);
        let fits = |ticks: &Ticks, step: f64| step / (high - low) * length >= direction.needed(ticks);
        let mut step = round_up((high - low) / (length / direction.ideal()).max(2.0));
        let mut ticks = at(step);
        // A single tick does not show the scale.
        while ticks.marks.len() < 2 && step.is_normal() {
            let finer = round_up(step / 2.6);
            let more = at(finer);
            if !fits(&more, finer) {
                break;
            }
            (step, ticks) = (finer, more);
        }
        while ticks.marks.len() > 1 && !fits(&ticks, step) {
            step = round_up(step * 1.5);
            let fewer = at(step);
            if fewer.marks.is_empty() {
                let middle = ticks.marks.len() / 2;
                ticks.marks = ticks.marks.drain(middle..).take(1).collect();
                break;
            }
            ticks = fewer;
        }
        ticks
    }

    /// Ticks for scales that are not linear, from the top down: 1, 2 and 5 times four powers of ten up to `high`, and
    /// 0.
    pub fn decades(high: f64) -> Ticks {
        if !high.is_normal() {
            return Ticks::default();
        }
        let order = high.log10().floor() as i32;
        let exponent = if (SHORT.0..SHORT.1).contains(&order) { 0 } else { order };
        let steps = (order - 3..=order).rev().flat_map(|k| [5.0, 2.0, 1.0].map(|m| (m * 10f64.powi(k), 10f64.powi(k))));
        let below = steps.filter(|(value, _)| *value <= high).chain([(0.0, 1.0)]);
        let marks = below.map(|(value, step)| (value, label(value, step, exponent))).collect();
        Ticks { marks, shift: String::new(), exponent }
    }

    /// All multiples of a step, at most fifty.
    fn with_step(low: f64, high: f64, step: f64, digits: (i32, i32)) -> Ticks {
        if !(step.is_normal() && low.is_finite() && high.is_finite()) {
            return Ticks::default();
        }
        let (base, shift) = shift(low, high, step);
        let (first, last) = (((low - base) / step).ceil(), ((high - base) / step).floor());
        if last < first {
            return Ticks::default();
        }
        let count = (last - first).min(50.0) as usize;
        let values: Vec<f64> = (0..=count).map(|k| (first + k as f64) * step).collect();
        let largest = values.iter().fold(step, |m, v| m.max(v.abs()));
        let order = |value: f64| (value.log10() + 1e-9).floor() as i32;
        let long = order(largest) >= digits.1 || order(step) < digits.0;
        let exponent = if long { order(largest) } else { 0 };
        let marks = values.iter().map(|value| (base + value, label(*value, step, exponent))).collect();
        Ticks { marks, shift, exponent }
    }

    /// What the labels say, given the name of the variable.
    pub fn name(&self, variable: &str) -> String {
        let power = format!("1e{}", self.exponent).replace('-', "\u{2212}");
        match (self.shift.is_empty(), self.exponent == 0) {
            (true, true) => variable.to_string(),
            (true, false) => format!("{variable} / {power}"),
            (false, true) => format!("{variable}{}", self.shift),
            (false, false) => format!("({variable}{}) / {power}", self.shift),
        }
    }

    /// The width of the longest label on the page.
    pub fn width(&self) -> f64 {
        let letters = self.marks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        letters as f64 * SMALL * 0.64
    }
}

/// The next number that is 1, 2 or 5 times a power of ten.
pub fn round_up(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw * 0.999).unwrap_or(10.0) * power
}

/// An amount to subtract from all numbers, if they would need too many digits to be told apart, and its text.
fn shift(low: f64, high: f64, step: f64) -> (f64, String) {
    if low.abs().max(high.abs()) / step < 0.9e6 {
        return (0.0, String::new());
    }
    let order = (high - low).log10().ceil();
    let unit = 10f64.powf(order);
    // A round number on the axis itself, if there is one.
    let count = if (low / unit).ceil() * unit <= high { (low / unit).ceil() } else { (low / unit).floor() };
    // Decimals are divided by a integer power of ten, so that 0.3 comes out as 0.3.
    let base = if order < 0.0 { count / 10f64.powf(-order) } else { count * unit };
    if base == 0.0 {
        return (0.0, String::new());
    }
    let size = base.abs();
    let text = if size < 1e15 && order > -16.0 {
        format!("{size:.0$}", (-order).max(0.0) as usize)
    } else {
        format!("{size:e}")
    };
    let text = if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    (base, format!(" {} {text}", if base > 0.0 { '\u{2212}' } else { '+' }))
}

/// A tick value over a power of ten, with as many decimals as its step has, and a true minus sign.
fn label(value: f64, step: f64, exponent: i32) -> String {
    if value.abs() < step / 2.0 {
        return "0".to_string();
    }
    let scale = 10f64.powi(exponent);
    let decimals = (-((step / scale).log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
    format!("{:.decimals$}", value / scale).replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        labelled(&Ticks::new(low, high, 425.0, Direction::Across))
    }

    fn labelled(ticks: &Ticks) -> Vec<String> {
        ticks.marks.iter().map(|(_, label)| label.clone()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(-1.08, 1.08), ["\u{2212}1.0", "\u{2212}0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(0.0, 120.0), ["0", "50", "100"]);
        assert!(labels(1.0, 1.0).is_empty() && labels(0.0, f64::INFINITY).is_empty());
    }

    #[test]
    fn what_labels_have_in_common_goes_into_the_name() {
        let named = |low: f64, high: f64| {
            let ticks = Ticks::new(low, high, 425.0, Direction::Across);
            (ticks.name("x"), labelled(&ticks).join(" "))
        };
        assert_eq!(named(0.0, 1e-7), ("x / 1e\u{2212}7".into(), "0 0.2 0.4 0.6 0.8 1.0".into()));
        assert_eq!(named(3e8, 5e8), ("x / 1e8".into(), "3.0 3.5 4.0 4.5 5.0".into()));
        assert_eq!(named(1.0, 1.0 + 1e-9), ("(x \u{2212} 1) / 1e\u{2212}9".into(), "0 0.2 0.4 0.6 0.8 1.0".into()));
        assert!(named(-0.3 - 1e-8, -0.3 + 1e-8).0.starts_with("(x + 0.3) / 1e"));
        assert_eq!(named(5_800_003.0, 5_800_012.0).0, "x \u{2212} 5800010");
        assert_eq!(named(5_800_000.0, 5_801_000.0).0, "x");
    }

    #[test]
    fn labels_never_touch() {
        for length in [1.0, 8.0, 20.0, 33.0, 60.0, 90.0, 150.0, 1000.0] {
            for (low, high) in [(0.0, 1.0), (-123.4, -100.0), (0.95, 1.02), (1e6, 3e6), (1.0, 1.0 + 1e-12), (-3.0, 7e9)]
            {
                for direction in [Direction::Across, Direction::Up] {
                    for ticks in [Ticks::new(low, high, length, direction), Ticks::short(low, high, length, direction)]
                    {
                        assert!(!ticks.marks.is_empty());
                        for pair in ticks.marks.windows(2) {
                            let apart = (pair[1].0 - pair[0].0) / (high - low) * length;
                            assert!(apart > direction.needed(&ticks) * 0.99, "{length} {low} {high} {ticks:?}");
                        }
                    }
                }
            }
        }
        let decades = Ticks::decades(660_000.0);
        assert_eq!(labelled(&decades)[..5], ["5", "2", "1", "0.5", "0.2"]);
        assert_eq!((decades.name("p"), decades.marks[12].0), ("p / 1e5".into(), 0.0));
        assert_eq!(labelled(&Ticks::decades(0.3))[..3], ["0.2", "0.1", "0.05"]);
        let ticks = Ticks::short(0.0, 1.7e-12, 300.0, Direction::Up);
        assert!(ticks.width() < 4.0 * SMALL && ticks.name("density") == "density / 1e\u{2212}12");
    }
}
