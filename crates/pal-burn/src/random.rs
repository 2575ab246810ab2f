//! Normal random numbers from counter-based streams.

use pal::random::Stream;

/// A stream of standard normal numbers.
pub(crate) struct Normal {
    stream: Stream,
    spare: Option<f64>,
}

impl Normal {
    pub fn new(seed: u64, stream: u64) -> Normal {
        Normal { stream: Stream::new(seed, stream), spare: None }
    }

    /// Returns the next uniform number in (0, 1).
    pub fn unit(&mut self) -> f64 {
        self.stream.unit()
    }

    /// Returns the next standard normal number, by the method of Box and Muller.
    pub fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (radius, angle) = ((-2.0 * self.unit().ln()).sqrt(), std::f64::consts::TAU * self.unit());
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }
}
