//! Describes a ring by a formula, which follows its convex-deficiency tree.
//!
//! A polygon is its convex hull without its pockets. A pocket is bounded by a chain of the polygon's own edges and by
//! a *lid*, the hull edge that closes it; it is itself a simple polygon, so the description repeats inside it.
//!
//! Boundaries come out exactly because the pockets are not subtracted but intersected away with the *complement* of
//! their interior. With H(Q) the hull edges of Q other than its lid, and closed half-planes `in(e)`, `out(e)` on the
//! two sides of edge e,
//!
//! ```text
//! solid(Q)  = all of in(e)  for e in H(Q)  and  all of hollow(R) for the pockets R of Q
//! hollow(Q) = any of out(e) for e in H(Q)  or   any of solid(R)  for the pockets R of Q
//! ```
//!
//! where `solid` is the closed set and `hollow` the closed complement. Every half-plane is closed and there is no
//! negation, so the set is closed: the edges of the ring belong to it at every depth. Points of a lid do not: they lie
//! strictly inside every other hull edge of their pocket.
//!
//! A pocket does not repeat its lid: the hull around it says the same already. The formula therefore has one
//! literal for each edge and one for each pocket.

use super::points::Points;
use crate::formula::{Formula, Linear, Relation};
use crate::number::Rational;

/// Which of the two closed sets a ring separates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RingSide {
    /// The ring and what it encloses.
    Solid,
    /// The ring and what it does not enclose.
    Hollow,
}

/// A node of the tree, which is a polygon: its hull edges as literals, and the numbers of its pockets.
struct HullNode {
    side: RingSide,
    literals: Vec<Formula>,
    pockets: Vec<usize>,
}

/// The closed set on one side of a simple counterclockwise ring.
pub(super) fn ring_formula(corners: &[[Rational; 2]], side: RingSide, x: &Linear, y: &Linear) -> Formula {
    let points = Points::new(corners.iter().collect());
    // The lowest leftmost corner is a true corner of the hull: no straight run of hull edges passes it.
    let first = (0..corners.len()).min_by_key(|&k| points.rank(k)).unwrap_or(0);
    let mut chain: Vec<usize> = (first..corners.len()).chain(0..first).collect();
    chain.push(first);
    // Polygons are numbered instead of visited recursively, because the tree of a spiral is as deep as it has turns.
    let mut nodes: Vec<HullNode> = Vec::new();
    let mut chains = vec![(chain, side)];
    let mut next = 0;
    while next < chains.len() {
        let (chain, side) = std::mem::replace(&mut chains[next], (Vec::new(), side));
        let mut node = HullNode { side, literals: Vec::new(), pockets: Vec::new() };
        let mut previous: Option<[usize; 2]> = None;
        for (from, to) in hull_edges(&points, &chain) {
            let (a, b) = (chain[from], chain[to]);
            // Several edges and lids on one line are one literal.
            if previous.is_none_or(|[p, q]| points.turn(p, q, b).is_ne()) {
                node.literals.push(half_plane(points.point(a), points.point(b), side, x, y));
            }
            previous = Some([a, b]);
            if to > from + 1 {
                let pocket: Vec<usize> = chain[from..=to].iter().rev().copied().collect();
                node.pockets.push(chains.len());
                chains.push((pocket, side.other()));
            }
        }
        nodes.push(node);
        next += 1;
    }
    let mut done: Vec<Formula> = vec![Formula::yes(); nodes.len()];
    for (number, node) in nodes.into_iter().enumerate().rev() {
        let pockets = node.pockets.iter().map(|&pocket| std::mem::replace(&mut done[pocket], Formula::yes()));
        let parts: Vec<Formula> = node.literals.into_iter().chain(pockets).collect();
        done[number] = match node.side {
            RingSide::Solid => Formula::all(parts),
            RingSide::Hollow => Formula::any(parts),
        };
    }
    done.swap_remove(0)
}

impl RingSide {
    fn other(self) -> RingSide {
        match self {
            RingSide::Solid => RingSide::Hollow,
            RingSide::Hollow => RingSide::Solid,
        }
    }
}

/// The hull edges along a counterclockwise chain whose two ends are on the hull, as positions in the chain. A vertex
/// in the middle of a hull edge splits it, so that a pocket touches its lid in the two ends only.
fn hull_edges(points: &Points, chain: &[usize]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..chain.len()).collect();
    order.sort_unstable_by_key(|&k| (points.rank(chain[k]), k));
    // The first point of the ring is also the last point of its chain.
    order.dedup_by_key(|k| points.rank(chain[*k]));
    let mut on_hull = vec![false; chain.len()];
    let mut border: Vec<usize> = Vec::new();
    for upper in [false, true] {
        border.clear();
        for &k in &order {
            while let [.., a, b] = border[..]
                && points.turn(chain[a], chain[b], chain[k]).is_lt()
            {
                border.pop();
            }
            border.push(k);
        }
        border.iter().for_each(|&k| on_hull[k] = true);
        if !upper {
            order.reverse();
        }
    }
    on_hull[0] = true;
    on_hull[chain.len() - 1] = true;
    let corners: Vec<usize> = (0..chain.len()).filter(|&k| on_hull[k]).collect();
    corners.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// The closed half-plane on the left of `a -> b` for the solid side, and on its right for the hollow side.
fn half_plane(a: &[Rational; 2], b: &[Rational; 2], side: RingSide, x: &Linear, y: &Linear) -> Formula {
    let (dx, dy) = (&b[0] - &a[0], &b[1] - &a[1]);
    // This term is zero on the line and positive on its right.
    let mut right = x.scaled(&dy);
    right.add_scaled(y, &-&dx);
    right = right + (&dx * &a[1] - &dy * &a[0]);
    match side {
        RingSide::Solid => Formula::compare(&right, Relation::Le),
        RingSide::Hollow => Formula::compare(&-right, Relation::Le),
    }
}
