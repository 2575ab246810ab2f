//! From tracks to rows of data about the future: where will somebody be, given where they were at five times?

use std::collections::BTreeMap;

use pal::random::Stream;

/// The number of past positions in a window, the present one included.
pub const PAST: usize = 5;

/// A position on a track.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// The name of the track.
    pub track: String,
    /// The time, in any unit.
    pub time: f64,
    /// The coordinates.
    pub place: [f64; 2],
}

/// How windows are cut from tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowSettings {
    /// The distance between successive times of a window, in positions of the track.
    pub step: usize,
    /// The number of future positions drawn for each window.
    pub futures: usize,
    /// Positions closer than this to the one before are left out.
    pub min_distance: f64,
    /// The seed of the draws.
    pub seed: u64,
}

/// Returns one row per window and future: the track, `x0, y0` (now) to `x4, y4` (four steps ago), and the future `x,
/// y`.
///
/// Half of the futures are drawn from all later positions of the track, half from its next `step` positions.
pub fn windows(positions: &[Position], settings: &WindowSettings) -> Vec<(String, [f64; 2 * PAST + 2])> {
    let mut tracks: BTreeMap<&str, Vec<&Position>> = BTreeMap::new();
    positions.iter().for_each(|position| tracks.entry(&position.track).or_default().push(position));
    let mut rows = Vec::new();
    let span = (PAST - 1) * settings.step;
    for (number, (track, mut positions)) in tracks.into_iter().enumerate() {
        positions.sort_by(|a, b| a.time.total_cmp(&b.time));
        let mut last: Option<[f64; 2]> = None;
        positions.retain(|position| {
            let [x, y] = position.place;
            let moved = last.is_none_or(|[u, v]| (x - u).hypot(y - v) >= settings.min_distance);
            if moved {
                last = Some(position.place);
            }
            moved
        });
        let mut stream = Stream::new(settings.seed, number as u64);
        for now in span..positions.len().saturating_sub(1) {
            for future in 0..settings.futures {
                let later = positions.len() - 1 - now;
                let reach = if future % 2 == 0 { later } else { later.min(settings.step) };
                let ahead = 1 + (stream.unit() * reach as f64) as usize;
                let mut row = [0.0; 2 * PAST + 2];
                for past in 0..PAST {
                    row[2 * past..2 * past + 2].copy_from_slice(&positions[now - past * settings.step].place);
                }
                row[2 * PAST..].copy_from_slice(&positions[now + ahead].place);
                rows.push((track.to_string(), row));
            }
        }
    }
    rows
}
