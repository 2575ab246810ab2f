//! The boundary of a region in the plane, as closed chains of edges in a tree of boxes.
//!
//! Edges run with the region on their left. Where two cells touch, their edges run in opposite directions along the same
//! line; such parts cancel, in exact arithmetic, so that only walls are left. Coordinates are those of the box around the
//! region: from -1 to 1 along both axes, rounded once.

use std::collections::BTreeMap;

use crate::number::{self, Rational};

type ExactPoint = [Rational; 2];

/// Closed chains of edges with the region on their left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundary {
    /// The corners of all chains; the first corner of a chain is also its last one.
    corners: Vec<[f64; 2]>,
    nodes: Vec<BoundaryNode>,
}

/// A stretch of a chain and the box around it.
#[derive(Clone, Debug)]
struct BoundaryNode {
    centre: [f64; 2],
    extent: [f64; 2],
    /// The first and the last corner.
    ends: [u32; 2],
    /// Where the nodes go on after this one and all that it consists of.
    next: u32,
    /// Whether edges are to be looked at one by one.
    is_leaf: bool,
}

/// The most edges of a leaf.
const LEAF: usize = 4;

/// How coordinates of the box become those of a kernel: `u = inverse (v - place)`, with a lower triangular `inverse`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelView {
    pub place: [f64; 2],
    /// The entries 11, 21 and 22.
    pub inverse: [f64; 3],
}

impl KernelView {
    #[inline(always)]
    pub fn to_kernel(self, v: [f64; 2]) -> [f64; 2] {
        let (x, y) = (v[0] - self.place[0], v[1] - self.place[1]);
        [x * self.inverse[0], x * self.inverse[1] + y * self.inverse[2]]
    }
}

/// Receives what a kernel sees of a boundary.
pub(crate) trait EdgeVisitor {
    /// An edge that may meet the square [-1, 1]^2, between points in coordinates of the kernel.
    fn edge(&mut self, from: [f64; 2], to: [f64; 2]);
    /// A stretch of edges to the right of the square, from one height to another.
    fn right(&mut self, from: f64, to: f64);
}

impl Boundary {
    /// The boundary of convex polygons with disjoint interiors, given counterclockwise, in a box with these ends.
    pub fn new(polygons: &[Vec<ExactPoint>], ends: &[(Rational, Rational)]) -> Boundary {
        let two = Rational::from(2);
        let to_box = |point: &ExactPoint| {
            [0, 1].map(|j| {
                let (low, high) = &ends[j];
                number::to_f64(&((&point[j] * &two - low - high) / (high - low)))
            })
        };
        let mut boundary = Boundary::default();
        for chain in chains(walls(polygons)) {
            boundary.push(&chain.iter().map(to_box).collect::<Vec<_>>());
        }
        boundary
    }

    /// Adds a chain of edges.
    pub fn push(&mut self, chain: &[[f64; 2]]) {
        let first = self.corners.len();
        self.corners.extend_from_slice(chain);
        self.build(first, self.corners.len() - 1);
    }

    /// Adds the nodes for the edges between two corners.
    fn build(&mut self, first: usize, last: usize) {
        let at = self.nodes.len();
        let (mut low, mut high) = (self.corners[first], self.corners[first]);
        for corner in &self.corners[first..=last] {
            for j in 0..2 {
                low[j] = low[j].min(corner[j]);
                high[j] = high[j].max(corner[j]);
            }
        }
        let is_leaf = last - first <= LEAF;
        self.nodes.push(BoundaryNode {
            centre: [0, 1].map(|j| 0.5 * (low[j] + high[j])),
            extent: [0, 1].map(|j| 0.5 * (high[j] - low[j])),
            ends: [first as u32, last as u32],
            next: 0,
            is_leaf,
        });
        if !is_leaf {
            let middle = first + (last - first) / 2;
            self.build(first, middle);
            self.build(middle, last);
        }
        self.nodes[at].next = self.nodes.len() as u32;
    }

    /// Shows all edges that a kernel may see to a visitor, and what lies to the right of it. Edges to its left, above
    /// and below are left out: they contribute nothing to its integral.
    #[inline(always)]
    pub fn visit(&self, view: KernelView, visitor: &mut impl EdgeVisitor) {
        let size = [view.inverse[0].abs(), view.inverse[1].abs(), view.inverse[2].abs()];
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            let u = view.to_kernel(node.centre);
            let reach = [node.extent[0] * size[0], node.extent[0] * size[1] + node.extent[1] * size[2]];
            if u[0] + reach[0] <= -1.0 || u[1].abs() - reach[1] >= 1.0 {
                at = node.next as usize;
                continue;
            }
            let [first, last] = node.ends.map(|end| end as usize);
            if u[0] - reach[0] >= 1.0 {
                let height = |corner: usize| view.to_kernel(self.corners[corner])[1];
                visitor.right(height(first), height(last));
                at = node.next as usize;
                continue;
            }
            at += 1;
            if node.is_leaf {
                let mut from = view.to_kernel(self.corners[first]);
                for corner in &self.corners[first + 1..=last] {
                    let to = view.to_kernel(*corner);
                    visitor.edge(from, to);
                    from = to;
                }
            }
        }
    }
}

/// A line in the plane: `y = slope x + offset`, or vertical.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WallLine {
    Slanted { slope: Rational, offset: Rational },
    Vertical { x: Rational },
}

impl WallLine {
    fn through(p: &ExactPoint, q: &ExactPoint) -> WallLine {
        if p[0] == q[0] {
            return WallLine::Vertical { x: p[0].clone() };
        }
        let slope = (&q[1] - &p[1]) / (&q[0] - &p[0]);
        let offset = &p[1] - &slope * &p[0];
        WallLine::Slanted { slope, offset }
    }

    /// Where a point of the line lies along it.
    fn position(&self, point: &ExactPoint) -> Rational {
        point[usize::from(matches!(self, WallLine::Vertical { .. }))].clone()
    }

    fn point(&self, position: &Rational) -> ExactPoint {
        match self {
            WallLine::Slanted { slope, offset } => [position.clone(), slope * position + offset],
            WallLine::Vertical { x } => [x.clone(), position.clone()],
        }
    }
}

/// The edges of polygons, without the parts that two of them share.
fn walls(polygons: &[Vec<ExactPoint>]) -> Vec<[ExactPoint; 2]> {
    // For each line how the number of edges that run upwards along it, less that of those that run downwards, changes.
    let mut lines: BTreeMap<WallLine, BTreeMap<Rational, i64>> = BTreeMap::new();
    for polygon in polygons {
        for (k, p) in polygon.iter().enumerate() {
            let q = &polygon[(k + 1) % polygon.len()];
            let line = WallLine::through(p, q);
            let (from, to) = (line.position(p), line.position(q));
            let changes = lines.entry(line).or_default();
            *changes.entry(from).or_default() += 1;
            *changes.entry(to).or_default() -= 1;
        }
    }
    let mut walls = Vec::new();
    for (line, changes) in &lines {
        let (mut count, mut start) = (0, None);
        for (position, change) in changes.iter().filter(|(_, change)| **change != 0) {
            if let (Some(start), true) = (start, count != 0) {
                let (low, high) = (line.point(start), line.point(position));
                walls.push(if count > 0 { [low, high] } else { [high, low] });
            }
            count += change;
            start = Some(position);
        }
    }
    walls
}

/// Edges put together to closed chains. As many edges begin at every corner as end there.
fn chains(edges: Vec<[ExactPoint; 2]>) -> Vec<Vec<ExactPoint>> {
    let mut after: BTreeMap<ExactPoint, Vec<ExactPoint>> = BTreeMap::new();
    for [from, to] in edges {
        after.entry(from).or_default().push(to);
    }
    let mut chains = Vec::new();
    while let Some((start, _)) = after.iter().find(|(_, ends)| !ends.is_empty()) {
        let mut chain = vec![start.clone()];
        while let Some(next) = after.get_mut(&chain[chain.len() - 1]).and_then(Vec::pop) {
            chain.push(next);
        }
        after.retain(|_, ends| !ends.is_empty());
        chains.push(chain);
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polygon(corners: &[(i64, i64)]) -> Vec<ExactPoint> {
        corners.iter().map(|(x, y)| [Rational::from(*x), Rational::from(*y)]).collect()
    }

    #[test]
    fn shared_edges_cancel_and_walls_stay() {
        // A ring of four rectangles around a hole, with corners in the middle of edges of others.
        let ring = [
            polygon(&[(0, 0), (3, 0), (3, 1), (0, 1)]),
            polygon(&[(0, 1), (1, 1), (1, 3), (0, 3)]),
            polygon(&[(2, 1), (3, 1), (3, 2), (2, 2)]),
            polygon(&[(1, 2), (3, 2), (3, 3), (1, 3)]),
        ];
        let walls = walls(&ring);
        // Four outer walls and the four of the hole.
        assert_eq!(walls.len(), 8);
        let chains = chains(walls);
        assert_eq!(chains.len(), 2);
        assert!(chains.iter().all(|chain| chain.len() == 5 && chain[0] == chain[4]));
        let area = |chain: &[ExactPoint]| {
            let twice = chain.windows(2).map(|pair| &pair[0][0] * &pair[1][1] - &pair[0][1] * &pair[1][0]);
            twice.fold(Rational::ZERO, |sum, term| sum + term)
        };
        let mut areas: Vec<Rational> = chains.iter().map(|chain| area(chain)).collect();
        areas.sort();
        assert_eq!(areas, [Rational::from(-2), Rational::from(18)]);
    }
}
