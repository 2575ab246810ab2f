//! Neighbouring cells in the plane as one, where they are convex together: fewer pieces to cut.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use crate::interrupt::checkpoint;
use crate::number::Rational;

type Point = [Rational; 2];

/// Polygons that cover the same set, with disjoint interiors still, in counter-clockwise order. Two of them that share
/// an edge are joined if their union is convex, for as long as there are such pairs.
pub(super) fn merged(polygons: Vec<Vec<Point>>) -> Vec<Vec<Point>> {
    let mut numbers: BTreeMap<Point, usize> = BTreeMap::new();
    let mut rings: Vec<Option<Vec<usize>>> = Vec::new();
    for mut polygon in polygons {
        if twice_area(&polygon) < Rational::ZERO {
            polygon.reverse();
        }
        let number = |point: Point| {
            let next = numbers.len();
            *numbers.entry(point).or_insert(next)
        };
        rings.push(Some(polygon.into_iter().map(number).collect()));
    }
    let mut points: Vec<Point> = vec![Point::default(); numbers.len()];
    numbers.into_iter().for_each(|(point, number)| points[number] = point);
    let mut owners: HashMap<(usize, usize), usize> = HashMap::new();
    for (at, ring) in rings.iter().enumerate() {
        owners.extend(edges(ring.as_deref().unwrap_or_default()).map(|edge| (edge, at)));
    }
    for at in 0..rings.len() {
        while let Some((other, ring)) = rings[at].as_ref().and_then(|ring| join(at, ring, &rings, &owners, &points)) {
            checkpoint();
            for gone in [at, other] {
                edges(rings[gone].as_deref().unwrap_or_default()).for_each(|edge| {
                    owners.remove(&edge);
                });
            }
            owners.extend(edges(&ring).map(|edge| (edge, at)));
            rings[other] = None;
            rings[at] = Some(ring);
        }
    }
    let corners = |ring: Vec<usize>| ring.into_iter().map(|number| points[number].clone()).collect();
    rings.into_iter().flatten().map(corners).collect()
}

/// A neighbour of a polygon that is convex together with it, and the ring of both.
fn join(
    at: usize,
    ring: &[usize],
    rings: &[Option<Vec<usize>>],
    owners: &HashMap<(usize, usize), usize>,
    points: &[Point],
) -> Option<(usize, Vec<usize>)> {
    edges(ring).enumerate().find_map(|(k, (p, q))| {
        let other = *owners.get(&(q, p))?;
        let neighbour = rings[other].as_ref().filter(|_| other != at)?;
        let start = neighbour.iter().position(|number| *number == p)?;
        // From q around this polygon to p, and from there around the other one back to q.
        let here = (1..=ring.len()).map(|step| ring[(k + step) % ring.len()]);
        let there = (1..neighbour.len() - 1).map(|step| neighbour[(start + step) % neighbour.len()]);
        let whole: Vec<usize> = here.chain(there).collect();
        let turn = |place: usize| {
            let corner = |offset: usize| &points[whole[(place + offset + whole.len() - 1) % whole.len()]];
            let (a, b, c) = (corner(0), corner(1), corner(2));
            ((&b[0] - &a[0]) * (&c[1] - &b[1]) - (&b[1] - &a[1]) * (&c[0] - &b[0])).cmp(&Rational::ZERO)
        };
        // The corners where both meet.
        let meeting = [0, ring.len() - 1];
        let turns = meeting.map(turn);
        if turns.contains(&Ordering::Less) {
            return None;
        }
        let straight = |place: usize| meeting.iter().zip(&turns).any(|(m, t)| *m == place && *t == Ordering::Equal);
        let kept = whole.iter().enumerate().filter(|(place, _)| !straight(*place)).map(|(_, number)| *number);
        Some((other, kept.collect()))
    })
}

fn edges(ring: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    (0..ring.len()).map(|k| (ring[k], ring[(k + 1) % ring.len()]))
}

fn twice_area(polygon: &[Point]) -> Rational {
    let next = polygon.iter().cycle().skip(1);
    polygon.iter().zip(next).fold(Rational::ZERO, |sum, (p, q)| sum + &p[0] * &q[1] - &p[1] * &q[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(corners: &[(i64, i64)]) -> Vec<Point> {
        corners.iter().map(|(x, y)| [Rational::from(*x), Rational::from(*y)]).collect()
    }

    #[test]
    fn neighbours_are_joined_where_they_are_convex_together() {
        // Four unit squares, one of them given clockwise, and a triangle that would make a corner.
        let squares = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let mut all: Vec<_> = squares.map(|(x, y)| polygon(&[(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)])).to_vec();
        all[2].reverse();
        all.push(polygon(&[(2, 0), (3, 1), (2, 2)]));
        let joined = merged(all);
        let areas: Vec<Rational> = joined.iter().map(|polygon| twice_area(polygon)).collect();
        // The square of four; the triangle shares its edge only once the corners between squares are gone.
        assert_eq!(areas, [Rational::from(10)]);
        assert_eq!(joined[0].len(), 5);
        let apart = vec![polygon(&[(0, 0), (2, 0), (2, 1), (0, 1)]), polygon(&[(0, 1), (1, 1), (1, 2), (0, 2)])];
        assert_eq!(merged(apart).len(), 2);
        let bent = vec![polygon(&[(0, 0), (2, 0), (2, 2), (0, 2)]), polygon(&[(2, 0), (4, -3), (4, 5), (2, 2)])];
        assert_eq!(merged(bent).len(), 2);
    }
}
