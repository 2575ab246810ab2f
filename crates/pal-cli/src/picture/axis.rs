//! Round numbers along an axis.

/// Positions and labels of ticks.
pub struct Ticks(pub Vec<(f64, String)>);

impl Ticks {
    /// About `wanted` ticks at multiples of 1, 2 or 5 times a power of ten.
    pub fn new(low: f64, high: f64, wanted: f64) -> Ticks {
        let raw = (high - low) / wanted.max(2.0);
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw * 0.999).unwrap_or(10.0) * power;
        if !step.is_normal() {
            return Ticks(Vec::new());
        }
        let first = (low / step).ceil();
        let last = (high / step).floor();
        if last <= first && wanted < 20.0 {
            // One number does not tell a scale.
            return Ticks::new(low, high, wanted * 1.6);
        }
        let count = (last - first).clamp(0.0, 50.0) as usize;
        let values = (0..=count).map(|k| (first + k as f64) * step);
        Ticks(values.map(|value| (value, label(value, step))).collect())
    }

    /// Characters of the longest label.
    pub fn widest(&self) -> usize {
        self.0.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0)
    }
}

/// A tick value with as many decimals as its step has, and a true minus sign.
fn label(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0);
    let size = value.abs();
    let text = if size < step / 2.0 {
        "0".to_string()
    } else if decimals > 5.0 || size >= 1e7 {
        let digits = (size.log10().floor() - (step.log10() + 1e-9).floor()).clamp(0.0, 6.0) as usize;
        format!("{value:.digits$e}")
    } else {
        format!("{value:.0$}", decimals as usize)
    };
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        Ticks::new(low, high, 5.0).0.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(-1.08, 1.08), ["\u{2212}1.0", "\u{2212}0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(0.0, 120.0), ["0", "50", "100"]);
        assert_eq!(
            labels(0.0, 1e-7),
            ["0", "2e\u{2212}8", "4e\u{2212}8", "6e\u{2212}8", "8e\u{2212}8", "1.0e\u{2212}7"]
        );
        assert_eq!(labels(3e8, 5e8)[0], "3.0e8");
        assert_eq!(Ticks::new(-36.0, 42.0, 1.0).widest(), 3);
        assert!(labels(1.0, 1.0).is_empty());
    }
}
