//! From tracks to questions about the future: where will somebody be, given where they were at five moments?

use std::collections::BTreeMap;

use pal::random::Stream;

/// Past positions in a window, the present one included.
pub const PAST: usize = 5;

/// A position on a track.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Which track.
    pub track: String,
    /// When, in any unit that grows.
    pub time: f64,
    /// Where.
    pub place: [f64; 2],
}

/// How windows are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowSettings {
    /// Positions between two moments of a window.
    pub step: usize,
    /// Future positions drawn for each window.
    pub futures: usize,
    /// Positions closer than this to the one before are left out.
    pub min_distance: f64,
    /// Seed of the draws.
    pub seed: u64,
}

/// One row for each window and future: the track, `x0, y0` (now) to `x4, y4` (four steps ago), and the future `x, y`. Half of the futures are drawn from the
/// whole rest of the track, half from its next `step` positions.
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
                let rest = positions.len() - 1 - now;
                let reach = if future % 2 == 0 { rest } else { rest.min(settings.step) };
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
