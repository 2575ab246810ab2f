//! What can be seen from a point of a map: the points whose whole segment from the viewer misses every obstacle.
//!
//! For a convex obstacle and a viewer outside, the hidden points are those between the two tangents and behind the edges
//! that face the viewer. For all obstacles together, the directions of corners divide the view into wedges; in each wedge
//! one edge is the nearest, and what is seen is the triangle between the viewer and that edge. The order of directions and
//! of edges is decided exactly, so that gaps as narrow as an ulp are gaps and touching obstacles leave none; only the
//! places where rays meet edges are rounded, with a bound on their errors, or are fractions.
//!
//! A viewer on the wall of an obstacle sees nothing in the directions into it, and everything else.

use std::cmp::Ordering;

use super::map::CellScalar;
use super::obstacles::{ObstacleCorner, Obstacles, compare, turn};
use super::window::{LocalFrame, Window};
use crate::formula::{Formula, Linear, Membership, Var};
use crate::number::Rational;
use crate::region::planar::{Corner, Doubt};

/// What a viewer sees of an obstacle or of the frame: an edge, or a wall right at the viewer.
#[derive(Clone, Copy, Debug)]
struct Sight {
    /// Corners such that the viewer turns to the left from the first one to the second one.
    from: u32,
    to: u32,
    /// Whether the viewer is on the obstacle and sees nothing between these directions.
    blocks: bool,
}

/// Where a viewer is with respect to a convex piece.
enum Standing {
    Inside,
    /// On its boundary; the piece is to the left of the first direction, and to the right of the second one.
    On([u32; 2]),
    /// Outside, with the numbers of the edges that face the viewer.
    Facing(Vec<usize>),
}

fn standing(corners: &[ObstacleCorner], piece: &[u32], viewer: &ObstacleCorner) -> Standing {
    let edge = |k: usize| [piece[k], piece[(k + 1) % piece.len()]];
    let side = |k: usize| {
        let [a, b] = edge(k).map(|corner| &corners[corner as usize]);
        turn(a, b, viewer)
    };
    let sides: Vec<Ordering> = (0..piece.len()).map(side).collect();
    let facing: Vec<usize> = (0..piece.len()).filter(|k| sides[*k].is_lt()).collect();
    if !facing.is_empty() {
        return Standing::Facing(facing);
    }
    let on: Vec<usize> = (0..piece.len()).filter(|k| sides[*k].is_eq()).collect();
    match on[..] {
        [] => Standing::Inside,
        [k] => Standing::On([edge(k)[1], edge(k)[0]]),
        // In a corner, where the edge before it ends and the edge after it begins.
        [first, second, ..] => {
            let (before, after) = if second == first + 1 { (first, second) } else { (second, first) };
            Standing::On([edge(after)[1], edge(before)[0]])
        }
    }
}

/// The largest relative error of operations with which ends of rays are known closely enough; float64 is not.
const ROUNDING_OF_RAYS: f64 = 1e-20;

/// Convex pieces, corner by corner.
type Pieces<N> = Vec<Vec<Corner<N>>>;

impl Window {
    /// What the centre sees of the map in the window, as triangles in local coordinates, not cut to the window.
    pub fn visible_pieces<N: CellScalar>(
        &self,
        obstacles: &Obstacles,
        membership: &Membership,
        ends: &[[Rational; 2]; 2],
    ) -> Result<Pieces<N>, Doubt> {
        if !membership.contains(&self.centre) {
            return Ok(Vec::new());
        }
        if !N::EXACT && N::ROUNDING > ROUNDING_OF_RAYS {
            return Err(Doubt);
        }
        let [low, high] = self.reach();
        let near = obstacles.near(low, high);
        if near.is_empty() && obstacles.frame_contains(low, high) {
            let corner = |[x, y]: [f64; 2]| {
                let at = [x * self.half_width[0], y * self.half_width[1]].map(N::from_float);
                Corner::new(at, [0.0; 2])
            };
            return Ok(vec![[[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]].map(corner).to_vec()]);
        }
        let viewer = ObstacleCorner::at([self.centre[0], self.centre[1]]);
        let view = View { obstacles, viewer: &viewer };
        let local = LocalFrame::<N>::new(self);
        let middle = || Corner::new([N::from_float(0.0), N::from_float(0.0)], [0.0; 2]);
        let narrow = self.half_width[0].min(self.half_width[1]);
        let triangle = |seen: &[RayEnd<N>; 2]| {
            let [p, q] = [0, 1].map(|k| local.corner(seen[k].away.clone(), seen[k].error));
            let known = |corner: &Corner<N>| corner.error.iter().all(|error| *error <= 1e-15 * narrow);
            if known(&p) && known(&q) { Ok(vec![middle(), p, q]) } else { Err(Doubt) }
        };
        self.within(view.triangles(&near).iter().map(triangle).collect::<Result<_, _>>()?, ends)
    }

    /// The formula of what the centre sees, in coordinates of the map. On the boundaries of shadows, which have no area,
    /// it is on the safe side: it holds nowhere there.
    pub fn visible_formula(&self, obstacles: &Obstacles, variables: &[Var]) -> Formula {
        let [low, high] = self.reach();
        let viewer = ObstacleCorner::at([self.centre[0], self.centre[1]]);
        let corner = |number: u32| &obstacles.corners[number as usize];
        let shadow = |piece: &Vec<u32>| {
            let edge = |k: usize| [piece[k], piece[(k + 1) % piece.len()]].map(corner);
            let [first, last, walls] = match standing(&obstacles.corners, piece, &viewer) {
                Standing::Inside => return Formula::yes(),
                Standing::On([from, to]) => [vec![corner(from)], vec![corner(to)], Vec::new()],
                Standing::Facing(edges) => {
                    // The edges are neighbours along the boundary; the tangents are where they begin and end.
                    let count = piece.len();
                    let begins = |k: &&usize| !edges.contains(&((**k + count - 1) % count));
                    let ends = |k: &&usize| !edges.contains(&((**k + 1) % count));
                    let start = edges.iter().find(begins).map(|k| edge(*k)[0]);
                    let end = edges.iter().find(ends).map(|k| edge(*k)[1]);
                    let walls = edges.iter().flat_map(|k| edge(*k)).collect();
                    [end.into_iter().collect(), start.into_iter().collect(), walls]
                }
            };
            let mut parts: Vec<Formula> = first.iter().map(|at| left_of(&viewer, at, variables)).collect();
            parts.extend(last.iter().map(|at| left_of(at, &viewer, variables)));
            parts.extend(walls.chunks(2).map(|wall| left_of(wall[0], wall[1], variables)));
            Formula::all(parts)
        };
        let near = obstacles.near(low, high);
        Formula::all(near.iter().map(|k| !shadow(&obstacles.pieces[*k as usize])).collect::<Vec<_>>())
    }
}

/// The points on the left of the line from one point to another, and those on it.
fn left_of(a: &ObstacleCorner, b: &ObstacleCorner, variables: &[Var]) -> Formula {
    let [dx, dy] = [0, 1].map(|j| &b.exact[j] - &a.exact[j]);
    let offset = &dy * &a.exact[0] - &dx * &a.exact[1];
    Linear::new([(variables[1].clone(), dx), (variables[0].clone(), -dy)], offset).ge(0)
}

/// Where a ray ends, as a difference to the viewer, and bounds on the errors.
#[derive(Clone, Debug)]
struct RayEnd<N> {
    away: [N; 2],
    error: [f64; 2],
}

/// The obstacles as a viewer sees them.
struct View<'v> {
    obstacles: &'v Obstacles,
    viewer: &'v ObstacleCorner,
}

impl View<'_> {
    fn corner(&self, number: u32) -> &ObstacleCorner {
        &self.obstacles.corners[number as usize]
    }

    /// The triangles between the viewer and what it sees, each as the two ends away from the viewer, counterclockwise.
    fn triangles<N: CellScalar>(&self, near: &[u32]) -> Vec<[RayEnd<N>; 2]> {
        let Some(sights) = self.sights(near) else { return Vec::new() };
        let directions = Directions::new(self, &sights);
        let nearest = self.nearest(&sights, &directions);
        let count = nearest.len();
        let mut triangles = Vec::new();
        // Runs of wedges with the same edge; the first one begins where the wedge before it has another edge.
        let Some(first) = (0..count).find(|w| nearest[*w] != nearest[(w + count - 1) % count]) else {
            return triangles;
        };
        let mut w = 0;
        while w < count {
            let sight = nearest[(first + w) % count];
            let run = (w..count).take_while(|k| nearest[(first + k) % count] == sight).count();
            let ends = [(first + w) % count, (first + w + run) % count];
            if let Some(sight) = sight.map(|k| sights[k]).filter(|sight| !sight.blocks) {
                triangles.push(ends.map(|rank| self.ray_end(&sight, rank, &directions)));
            }
            w += run;
        }
        triangles
    }

    /// What the viewer sees of the pieces and of the frame; `None` if it is inside of an obstacle.
    fn sights(&self, near: &[u32]) -> Option<Vec<Sight>> {
        let mut sights = Vec::new();
        for piece in near.iter().map(|k| &self.obstacles.pieces[*k as usize]) {
            match standing(&self.obstacles.corners, piece, self.viewer) {
                Standing::Inside => return None,
                Standing::On([from, to]) => sights.push(Sight { from, to, blocks: true }),
                Standing::Facing(edges) => {
                    let edge = |k: usize| Sight { from: piece[(k + 1) % piece.len()], to: piece[k], blocks: false };
                    sights.extend(edges.into_iter().map(edge));
                }
            }
        }
        let frame = &self.obstacles.frame;
        for k in 0..frame.len() {
            let [from, to] = [frame[k], frame[(k + 1) % frame.len()]];
            if turn(self.corner(from), self.corner(to), self.viewer).is_gt() {
                sights.push(Sight { from, to, blocks: false });
            }
        }
        Some(sights)
    }

    /// For each wedge between neighbouring directions what is seen there first.
    fn nearest(&self, sights: &[Sight], directions: &Directions) -> Vec<Option<usize>> {
        let count = directions.distinct.len();
        let mut nearest: Vec<Option<usize>> = vec![None; count];
        for (k, sight) in sights.iter().enumerate() {
            let (mut w, end) = (directions.rank(sight.from), directions.rank(sight.to));
            while w != end {
                let closer = match nearest[w] {
                    None => true,
                    Some(other) => self.is_closer(sight, &sights[other]),
                };
                if closer {
                    nearest[w] = Some(k);
                }
                w = (w + 1) % count;
            }
        }
        nearest
    }

    /// Whether one sight hides another one, where both are in the same wedge. Edges do not cross each other.
    fn is_closer(&self, sight: &Sight, other: &Sight) -> bool {
        if sight.blocks || other.blocks {
            return sight.blocks;
        }
        let sides = |line: &Sight, of: &Sight| {
            [of.from, of.to].map(|at| turn(self.corner(line.from), self.corner(line.to), self.corner(at)))
        };
        // The viewer is on the left of both.
        let others = sides(sight, other);
        if others.iter().all(|side| side.is_le()) {
            return true;
        }
        if others.iter().all(|side| side.is_ge()) {
            return false;
        }
        sides(other, sight).iter().all(|side| side.is_ge())
    }

    /// Where the ray in a direction meets an edge.
    fn ray_end<N: CellScalar>(&self, sight: &Sight, rank: usize, directions: &Directions) -> RayEnd<N> {
        for end in [sight.from, sight.to] {
            if directions.rank(end) == rank {
                return self.away(end);
            }
        }
        let [d, a, b] = [directions.distinct[rank], sight.from, sight.to].map(|corner| self.away::<N>(corner));
        let along = [0, 1].map(|j| b.away[j].minus(&a.away[j]));
        let cross = |p: &[N; 2], q: &[N; 2]| p[0].times(&q[1]).minus(&p[1].times(&q[0]));
        let (above, below) = (cross(&a.away, &along), cross(&d.away, &along));
        let t = above.over(&below);
        let away = [0, 1].map(|j| t.times(&d.away[j]));
        if N::EXACT {
            return RayEnd { away, error: [0.0; 2] };
        }
        let size = |v: &[N; 2]| v[0].rounded().abs() + v[1].rounded().abs();
        let wrong = a.error.iter().chain(&b.error).chain(&d.error).fold(0.0, |sum, e| sum + e);
        let product = |v: f64| 2.0 * wrong * (v + size(&along) + wrong) + 16.0 * N::ROUNDING * v * size(&along);
        let errors = [product(size(&a.away)), product(size(&d.away))];
        let (t, below) = (t.rounded().abs(), below.rounded().abs());
        // A ray that is almost parallel to the edge is in doubt.
        let divided = if below > 4.0 * errors[1] { 2.0 * (errors[0] + t * errors[1]) / below } else { f64::NAN };
        let error = size(&d.away) * (divided + 16.0 * N::ROUNDING * t) + 2.0 * t * wrong;
        RayEnd { away, error: [1.01 * error + f64::MIN_POSITIVE; 2] }
    }

    /// A corner as a difference to the viewer.
    fn away<N: CellScalar>(&self, corner: u32) -> RayEnd<N> {
        let [x, y] = N::coordinates(self.corner(corner));
        let parts = [(x, self.viewer.near[0]), (y, self.viewer.near[1])].map(|((at, error), viewer)| {
            let (away, rounding) = at.minus_float(viewer);
            (away, error + rounding)
        });
        let error = [parts[0].1, parts[1].1];
        RayEnd { away: parts.map(|part| part.0), error }
    }
}

/// The directions of corners around a viewer, counterclockwise.
struct Directions {
    /// One corner for each direction.
    distinct: Vec<u32>,
    /// Corners in increasing order, each with the number of its direction.
    ranks: Vec<(u32, usize)>,
}

impl Directions {
    fn new(view: &View<'_>, sights: &[Sight]) -> Directions {
        let mut corners: Vec<u32> = sights.iter().flat_map(|sight| [sight.from, sight.to]).collect();
        corners.sort_unstable();
        corners.dedup();
        // The upper half of the plane comes first, with the direction to the right and without that to the left.
        let lower = |corner: u32| {
            let at = view.corner(corner);
            let side = compare(at, view.viewer, 1).then_with(|| compare(at, view.viewer, 0));
            !side.is_gt()
        };
        let mut order: Vec<(bool, u32)> = corners.iter().map(|corner| (lower(*corner), *corner)).collect();
        let compared = |a: &(bool, u32), b: &(bool, u32)| {
            a.0.cmp(&b.0).then_with(|| turn(view.viewer, view.corner(b.1), view.corner(a.1)))
        };
        order.sort_by(compared);
        let (mut distinct, mut ranks): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        for (k, entry) in order.iter().enumerate() {
            if k == 0 || compared(&order[k - 1], entry).is_ne() {
                distinct.push(entry.1);
            }
            ranks.push((entry.1, distinct.len() - 1));
        }
        ranks.sort_unstable();
        Directions { distinct, ranks }
    }

    /// The number of the direction of a corner.
    fn rank(&self, corner: u32) -> usize {
        let at = self.ranks.partition_point(|(other, _)| *other < corner);
        self.ranks[at].1
    }
}
