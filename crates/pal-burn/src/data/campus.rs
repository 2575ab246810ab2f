//! Walkers on a map: simulated people who go from place to place around obstacles.
//!
//! Places of interest are random free points. A walker starts at one of them and goes to another, downhill on a map of
//! walking distances, with a slight preference to stay away from walls and with some noise. Every position satisfies
//! the constraint exactly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pal::formula::{Constraint, Membership};
use pal::number::to_f64;
use pal::random::Stream;
use pal::region::Region;
use thiserror::Error;

use super::Position;

/// Why walkers cannot be simulated on a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WalkersError {
    /// The constraint does not have exactly two variables, or is unbounded.
    #[error("walkers need a map: a constraint with two bounded real variables")]
    NoMap,
    /// No point of the map is far enough from the walls.
    #[error("the map has no free place to walk")]
    NoRoom,
}

/// The number of squares per axis of the map of walking distances.
const SQUARES: usize = 120;
/// The number of places that people come from and go to.
const PLACES: usize = 48;

/// A map with simulated walkers.
#[derive(Debug)]
pub struct Walkers {
    membership: Membership,
    low: [f64; 2],
    size: [f64; 2],
    /// For each square the distance to the nearest wall, in squares; 0 for squares that are not free.
    room: Vec<u32>,
}

impl Walkers {
    /// Prepares a map: the free space is where the constraint, over two variables, holds.
    pub fn new(constraint: &Constraint) -> Result<Walkers, WalkersError> {
        let membership = constraint.membership().map_err(|_| WalkersError::NoMap)?;
        let region = Region::new(constraint).map_err(|_| WalkersError::NoMap)?;
        let bounds = region.bounding_box().map_err(|_| WalkersError::NoMap)?.ok_or(WalkersError::NoRoom)?;
        let [x, y] = &bounds[..] else { return Err(WalkersError::NoMap) };
        let (low, high) = ([&x.0, &y.0].map(to_f64), [&x.1, &y.1].map(to_f64));
        let size = [high[0] - low[0], high[1] - low[1]];
        let mut walkers = Walkers { membership, low, size, room: Vec::new() };
        let points: Vec<f64> = (0..SQUARES * SQUARES).flat_map(|square| walkers.centre(square)).collect();
        let free = walkers.membership.contains_batch(&points);
        walkers.room = rooms(&free);
        Ok(walkers)
    }

    fn centre(&self, square: usize) -> [f64; 2] {
        let at = [square % SQUARES, square / SQUARES];
        [0, 1].map(|j| self.low[j] + self.size[j] * (at[j] as f64 + 0.5) / SQUARES as f64)
    }

    fn square(&self, place: [f64; 2]) -> usize {
        let at = [0, 1].map(|j| {
            let position = (place[j] - self.low[j]) / self.size[j] * SQUARES as f64;
            (position.max(0.0) as usize).min(SQUARES - 1)
        });
        at[1] * SQUARES + at[0]
    }

    /// Simulates the tracks of the given number of people, with one position per unit of time.
    pub fn tracks(&self, people: usize, seed: u64) -> Result<Vec<Position>, WalkersError> {
        let mut stream = Stream::new(seed, 0);
        let open: Vec<usize> = (0..SQUARES * SQUARES).filter(|square| self.room[*square] >= 2).collect();
        if open.is_empty() {
            return Err(WalkersError::NoRoom);
        }
        let places: Vec<usize> = (0..PLACES).map(|_| open[(stream.unit() * open.len() as f64) as usize]).collect();
        let distances: Vec<Vec<f64>> = places.iter().map(|place| self.distances(*place)).collect();
        let mut positions = Vec::new();
        for person in 0..people {
            let mut stream = Stream::new(seed, 1 + person as u64);
            let pick = |stream: &mut Stream| (stream.unit() * PLACES as f64) as usize;
            let (from, mut to) = (pick(&mut stream), pick(&mut stream));
            while distances[to][places[from]].is_infinite() || (to == from && PLACES > 1) {
                if distances.iter().enumerate().all(|(to, d)| to == from || d[places[from]].is_infinite()) {
                    break;
                }
                to = pick(&mut stream);
            }
            let track = self.walk(places[from], &distances[to], &mut stream);
            positions.extend(track.into_iter().enumerate().map(|(time, place)| Position {
                track: format!("walker-{person}"),
                time: time as f64,
                place,
            }));
        }
        Ok(positions)
    }

    /// Walks from a square downhill on a map of distances.
    fn walk(&self, from: usize, distance: &[f64], stream: &mut Stream) -> Vec<[f64; 2]> {
        let stride = 0.012 * (0.7 + 0.6 * stream.unit());
        let mut place = self.centre(from);
        let mut track = vec![place];
        for _ in 0..400 {
            let here = self.square(place);
            if distance[here] < 2.0 {
                break;
            }
            // Of 16 random steps the one that leads furthest downhill.
            let mut best: Option<(f64, [f64; 2])> = None;
            for _ in 0..16 {
                let angle = std::f64::consts::TAU * stream.unit();
                let step = [angle.cos() * stride * self.size[0], angle.sin() * stride * self.size[1]];
                let next = [place[0] + step[0], place[1] + step[1]];
                let half = [place[0] + step[0] / 2.0, place[1] + step[1] / 2.0];
                let height = distance[self.square(next)] + 2.0 * stream.unit();
                let allowed = self.membership.contains(&next) && self.membership.contains(&half);
                if allowed && height.is_finite() && best.is_none_or(|(lowest, _)| height < lowest) {
                    best = Some((height, next));
                }
            }
            let Some((_, next)) = best else { break };
            place = next;
            track.push(place);
        }
        track
    }

    /// Returns the walking distance from every square to a target, where squares near walls count more (Dijkstra's
    /// method).
    fn distances(&self, target: usize) -> Vec<f64> {
        let mut distance = vec![f64::INFINITY; SQUARES * SQUARES];
        let mut queue = BinaryHeap::from([(Reverse(0u64), target)]);
        distance[target] = 0.0;
        while let Some((Reverse(bits), square)) = queue.pop() {
            let so_far = f64::from_bits(bits);
            if so_far > distance[square] {
                continue;
            }
            for (next, length) in neighbours(square) {
                if self.room[next] == 0 {
                    continue;
                }
                let cost = length * (1.0 + 0.3 / f64::from(self.room[next]).powi(2));
                if so_far + cost < distance[next] {
                    distance[next] = so_far + cost;
                    // The bit patterns of non-negative numbers are ordered like the numbers.
                    queue.push((Reverse(distance[next].to_bits()), next));
                }
            }
        }
        distance
    }
}

fn neighbours(square: usize) -> impl Iterator<Item = (usize, f64)> {
    let (x, y) = ((square % SQUARES) as i64, (square / SQUARES) as i64);
    let offsets = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))).filter(|offset| *offset != (0, 0));
    offsets.filter_map(move |(dx, dy)| {
        let (u, v, n) = (x + dx, y + dy, SQUARES as i64);
        let inside = (0..n).contains(&u) && (0..n).contains(&v);
        inside.then(|| ((v * n + u) as usize, ((dx * dx + dy * dy) as f64).sqrt()))
    })
}

/// Returns the number of steps from each square to the nearest one that is not free, or out of the map.
fn rooms(free: &[bool]) -> Vec<u32> {
    let mut room = vec![0; free.len()];
    let mut left: Vec<bool> = free.to_vec();
    let mut level = 0;
    loop {
        level += 1;
        let edge = |square: usize| {
            let (x, y) = (square % SQUARES, square / SQUARES);
            x == 0 || y == 0 || x + 1 == SQUARES || y + 1 == SQUARES
        };
        let shell: Vec<usize> = (0..free.len())
            .filter(|square| left[*square] && (edge(*square) || neighbours(*square).any(|(next, _)| !left[next])))
            .collect();
        if shell.is_empty() {
            return room;
        }
        for square in shell {
            room[square] = level;
            left[square] = false;
        }
    }
}
