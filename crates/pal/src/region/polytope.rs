//! Convex polytopes as vertices, facets and their incidence, cut by hyperplanes.
//!
//! Cutting keeps the vertices on each side and adds one vertex per edge that crosses. Two vertices span an edge if and
//! only if no third vertex lies on all the facets they share. Every facet of the result is a true facet: a facet
//! survives if and only if one of its vertices lies strictly on the side kept.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use super::bits::Bits;
use super::index::PlaneIndex;
use super::space::{ExactPoint, Hyperplane, Space, Vertex};
use crate::number::{Integer, Rational};

/// A side of a hyperplane `a . x = b`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Side {
    /// `a . x <= b`
    Below,
    /// `a . x >= b`
    Above,
}

/// A facet: the hyperplane it lies on and the side of it the polytope is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facet {
    pub plane: PlaneIndex,
    pub side: Side,
}

/// A closed bounded convex polytope.
///
/// Full-dimensional polytopes list exactly their facets. A slice by a hyperplane has smaller [`Polytope::flat`]
/// dimension and may list hyperplanes that touch it in less than a facet.
#[derive(Clone, Debug)]
pub struct Polytope {
    pub(crate) space: Arc<Space>,
    pub(crate) facets: Vec<Facet>,
    pub(crate) vertices: Vec<Arc<Vertex>>,
    /// For each vertex the facets it lies on.
    pub(crate) incidence: Vec<Bits>,
    pub(crate) flat: usize,
}

/// Where a polytope lies relative to a hyperplane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    /// On one closed side, with some vertex strictly there.
    On(Side),
    /// Inside the hyperplane.
    Within,
    /// Strictly on both sides.
    Cut,
}

impl Polytope {
    /// The box between the given hyperplanes `x_j = low_j` and `x_j = high_j`, `low_j < high_j`, stored in `space` at
    /// `planes[j]`.
    pub(crate) fn cuboid(space: Arc<Space>, planes: &[(PlaneIndex, PlaneIndex)]) -> Self {
        let n = planes.len();
        let end = |plane: PlaneIndex, axis: usize| {
            let h: &Hyperplane = space.plane(plane);
            Rational::from_parts_signed(h.offset.clone(), h.normal[axis].clone())
        };
        let ends: Vec<[Rational; 2]> =
            planes.iter().enumerate().map(|(j, (low, high))| [end(*low, j), end(*high, j)]).collect();
        let facets = planes
            .iter()
            .flat_map(|&(low, high)| {
                [Facet { plane: low, side: Side::Above }, Facet { plane: high, side: Side::Below }]
            })
            .collect();
        let (mut vertices, mut incidence) = (Vec::new(), Vec::new());
        for corner in 0..1usize << n {
            let pick = |j: usize| corner >> j & 1;
            let point: Vec<Rational> = (0..n).map(|j| ends[j][pick(j)].clone()).collect();
            let through = (0..n).map(|j| if pick(j) == 0 { planes[j].0 } else { planes[j].1 }).collect();
            vertices.push(Arc::new(Vertex::from_exact(ExactPoint::new(&point), through)));
            incidence.push((0..n).map(|j| 2 * j + pick(j)).collect());
        }
        Polytope { space, facets, vertices, incidence, flat: n }
    }

    /// The number of coordinates: the dimension of the space around it.
    pub fn dimension(&self) -> usize {
        self.space.dimension
    }

    /// The dimension of the polytope itself.
    pub fn flat(&self) -> usize {
        self.flat
    }

    /// The vertices, with coordinates in float64.
    pub fn vertices(&self) -> &[Arc<Vertex>] {
        &self.vertices
    }

    /// The exact coordinates of all vertices.
    pub fn exact_vertices(&self) -> Vec<Vec<Rational>> {
        self.vertices.iter().map(|v| self.space.exact(v).coordinates()).collect()
    }

    /// The exact coordinates of one of its vertices.
    pub fn exact_coordinates(&self, vertex: &Vertex) -> Vec<Rational> {
        self.space.exact(vertex).coordinates()
    }

    /// The facets as half-spaces `normal . x <= offset`, integers without a common divisor.
    pub fn half_spaces(&self) -> Vec<(Vec<Integer>, Integer)> {
        let outward = |facet: &Facet| {
            let plane = self.space.plane(facet.plane);
            match facet.side {
                Side::Below => (plane.normal.clone(), plane.offset.clone()),
                Side::Above => (plane.normal.iter().map(|a| -a).collect(), -&plane.offset),
            }
        };
        self.facets.iter().map(outward).collect()
    }

    /// The distance `|a . v - b|` of a vertex from the hyperplane of a facet, with `a` as in [`Polytope::half_spaces`],
    /// in float64 with a relative error of at most `tolerance`.
    pub(crate) fn slack(&self, vertex: usize, facet: usize, tolerance: f64) -> f64 {
        self.space.distance(self.facets[facet].plane, &self.vertices[vertex], tolerance)
    }

    /// The indices of the vertices on a facet.
    pub fn facet_vertices(&self, facet: usize) -> Vec<usize> {
        (0..self.vertices.len()).filter(|v| self.incidence[*v].contains(facet)).collect()
    }

    /// Whether a point lies in the closed polytope, exactly. A point with a NaN or an infinity lies in none.
    pub fn contains(&self, point: &[f64]) -> bool {
        let Ok(exact) = point.iter().map(|x| crate::number::from_f64(*x)).collect::<Result<Vec<_>, _>>() else {
            return false;
        };
        let probe = Vertex::from_exact(ExactPoint::new(&exact), SmallVec::new());
        point.len() == self.dimension()
            && self.facets.iter().all(|facet| match self.space.sign(facet.plane, &probe) {
                Ordering::Less => facet.side == Side::Below,
                Ordering::Greater => facet.side == Side::Above,
                Ordering::Equal => true,
            })
    }

    /// The smallest and largest coordinate of the vertices along an axis, in float64.
    pub fn extent(&self, axis: usize) -> (f64, f64) {
        self.vertices
            .iter()
            .map(|v| v.coordinates()[axis])
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    }

    /// For every vertex, on which side of a hyperplane it lies, exactly.
    pub(crate) fn signs(&self, plane: PlaneIndex) -> Vec<Ordering> {
        self.vertices.iter().map(|v| self.space.sign(plane, v)).collect()
    }

    /// Like [`Polytope::signs`], but stops as soon as both sides have been seen.
    pub(crate) fn position(&self, plane: PlaneIndex) -> Position {
        let (mut below, mut above) = (false, false);
        for vertex in &self.vertices {
            match self.space.sign(plane, vertex) {
                Ordering::Less => below = true,
                Ordering::Greater => above = true,
                Ordering::Equal => {}
            }
            if below && above {
                return Position::Cut;
            }
        }
        match (below, above) {
            (true, _) => Position::On(Side::Below),
            (_, true) => Position::On(Side::Above),
            _ => Position::Within,
        }
    }

    /// Whether two vertices span an edge.
    fn adjacent(&self, u: usize, w: usize) -> bool {
        let (a, b) = (&self.incidence[u], &self.incidence[w]);
        if a.common_len(b) + 1 < self.flat {
            return false;
        }
        // At a simple vertex every choice of n - 1 of its n facets is an edge.
        if self.flat == self.dimension() && (a.len() == self.flat || b.len() == self.flat) {
            return true;
        }
        let common = a.intersection(b);
        !(0..self.vertices.len()).any(|z| z != u && z != w && common.is_subset(&self.incidence[z]))
    }

    /// New vertices where edges cross the hyperplane, with the facets they lie on (the hyperplane itself not counted).
    fn crossings(&self, plane: PlaneIndex, signs: &[Ordering]) -> Vec<(Arc<Vertex>, Bits)> {
        let on = |sign: Ordering| (0..signs.len()).filter(move |v| signs[*v] == sign);
        let mut new = Vec::new();
        for u in on(Ordering::Less) {
            for w in on(Ordering::Greater) {
                if self.adjacent(u, w) {
                    let common = self.incidence[u].intersection(&self.incidence[w]);
                    let through = common.iter().map(|f| self.facets[f].plane).chain([plane]).collect();
                    let vertex = self.space.cross(plane, &self.vertices[u], &self.vertices[w], through);
                    new.push((Arc::new(vertex), common));
                }
            }
        }
        new
    }

    /// Cuts the polytope in two by a hyperplane that has vertices strictly on both sides; builds only the sides wanted.
    pub(crate) fn cut(&self, plane: PlaneIndex, signs: &[Ordering], want: [bool; 2]) -> [Option<Polytope>; 2] {
        let crossings = self.crossings(plane, signs);
        let build = |side, wanted: bool| wanted.then(|| self.half(plane, side, signs, &crossings));
        [build(Side::Below, want[0]), build(Side::Above, want[1])]
    }

    fn half(&self, plane: PlaneIndex, side: Side, signs: &[Ordering], crossings: &[(Arc<Vertex>, Bits)]) -> Polytope {
        let inside = if side == Side::Below { Ordering::Less } else { Ordering::Greater };
        let mut kept = Bits::default();
        for (v, sign) in signs.iter().enumerate() {
            if *sign == inside {
                kept.extend_from(&self.incidence[v]);
            }
        }
        let mut new_index: Vec<Option<usize>> = vec![None; self.facets.len()];
        let mut facets = Vec::with_capacity(self.facets.len() + 1);
        for old in kept.iter() {
            new_index[old] = Some(facets.len());
            facets.push(self.facets[old]);
        }
        let unchanged = facets.len() == self.facets.len();
        let cap = facets.len();
        facets.push(Facet { plane, side });
        let remap = |old: &Bits, on_cap: bool| {
            let mut new =
                if unchanged { old.clone() } else { old.iter().filter_map(|facet| new_index[facet]).collect() };
            if on_cap {
                new.insert(cap);
            }
            new
        };
        let (mut vertices, mut incidence) = (Vec::new(), Vec::new());
        for (v, sign) in signs.iter().enumerate() {
            if *sign == inside || *sign == Ordering::Equal {
                vertices.push(self.vertices[v].clone());
                incidence.push(remap(&self.incidence[v], *sign == Ordering::Equal));
            }
        }
        for (vertex, common) in crossings {
            vertices.push(vertex.clone());
            incidence.push(remap(common, true));
        }
        Polytope { space: self.space.clone(), facets, vertices, incidence, flat: self.flat }
    }

    /// The intersection with a hyperplane that cuts the polytope: one dimension less.
    pub(crate) fn slice(&self, plane: PlaneIndex, signs: &[Ordering]) -> Polytope {
        let mut facets = self.facets.clone();
        let cap = facets.len();
        facets.push(Facet { plane, side: Side::Below });
        let old = (0..signs.len()).filter(|v| signs[*v] == Ordering::Equal);
        let old = old.map(|v| (self.vertices[v].clone(), self.incidence[v].clone()));
        let (vertices, incidence): (Vec<_>, Vec<Bits>) = old
            .chain(self.crossings(plane, signs))
            .map(|(vertex, mut bits)| {
                bits.insert(cap);
                (vertex, bits)
            })
            .unzip();
        Polytope { space: self.space.clone(), facets, vertices, incidence, flat: self.flat - 1 }
    }

    /// Whether the polytope touches the hyperplanes that stand for infinity.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.facets.iter().any(|facet| self.space.far.contains(&facet.plane))
    }
}
