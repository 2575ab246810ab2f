//! Philox4x32-10, a counter-based random number generator.
//!
//! Any block of any stream can be computed at once, in any order and on any thread, which is what makes results
//! independent of the number of threads. Fixed here rather than taken from a library, so that a seed means the same
//! numbers forever.
//!
//! Reference: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.

const ROUNDS: usize = 10;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The random block at a counter.
fn block(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [a, b] =
            [u64::from(MULTIPLIERS[0]) * u64::from(counter[0]), u64::from(MULTIPLIERS[1]) * u64::from(counter[2])];
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// One stream of random numbers.
pub struct Stream {
    key: [u32; 2],
    stream: u64,
    next: u64,
    spare: Option<u64>,
}

impl Stream {
    /// The stream of this number for a seed; streams of one seed are independent of each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        Stream { key: [seed as u32, (seed >> 32) as u32], stream, next: 0, spare: None }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let counter = [self.next as u32, (self.next >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        let [a, b, c, d] = block(counter, self.key).map(u64::from);
        self.next += 1;
        self.spare = Some(c | d << 32);
        a | b << 32
    }

    /// Uniform in (0, 1), the middle of one of 2^52 equal parts: neither end is favoured.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A standard normal number, from two uniform ones by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_authors() {
        let all = u32::MAX;
        assert_eq!(block([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(block([all; 4], [all; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let (counter, key) = ([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]);
        assert_eq!(block(counter, key), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn numbers_are_uniform_and_streams_differ() {
        let draw = |stream| {
            let mut stream = Stream::new(7, stream);
            (0..10_000).map(|_| stream.unit()).collect::<Vec<f64>>()
        };
        let (a, b) = (draw(0), draw(1));
        assert_ne!(a, b);
        let mean = a.iter().sum::<f64>() / 1e4;
        let square = a.iter().map(|x| x * x).sum::<f64>() / 1e4;
        // Standard deviations of the two means are 0.0029 and 0.0030.
        assert!((mean - 0.5).abs() < 0.013 && (square - 1.0 / 3.0).abs() < 0.013, "{mean} {square}");
        assert!(a.iter().all(|x| *x > 0.0 && *x < 1.0));
    }

    #[test]
    fn normal_numbers_have_the_moments_of_the_normal_distribution() {
        let mut stream = Stream::new(11, 3);
        let numbers: Vec<f64> = (0..100_000).map(|_| stream.normal()).collect();
        let mean = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / 1e5;
        // The k-th moment has variance (m_2k - m_k^2) / 1e5, with m_2 = 1, m_4 = 3, m_6 = 15, m_8 = 105: five of its
        // standard deviations are allowed.
        for (power, want, deviation) in [(1, 0.0, 1.0f64), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let off = (mean(power) - want).abs();
            assert!(off < 5.0 * (deviation / 1e5).sqrt(), "moment {power} is off by {off}");
        }
        let within = numbers.iter().filter(|x| x.abs() < 1.959_963_984_540_054).count() as f64 / 1e5;
        assert!((within - 0.95).abs() < 5.0 * (0.95 * 0.05 / 1e5f64).sqrt(), "{within}");
    }
}
