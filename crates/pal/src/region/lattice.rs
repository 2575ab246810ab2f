//! The part of a polytope's face lattice that pulling reaches.
//!
//! A face is decomposed by pulling its first vertex, the apex: the face is the union of the pyramids from the apex over
//! those facets of it that do not contain the apex. Facets of a face are its largest proper intersections with facets
//! of the polytope, so no coordinates are looked at. Faces are shared: what takes n! simplices for a cube takes at most
//! 3^n faces here.

use std::collections::HashMap;

use super::bits::Bits;
use super::polytope::Polytope;
use crate::interrupt::checkpoint;
use crate::linear_algebra::{determinant, primitive, regular_columns};
use crate::number::{Integer, Rational};

/// One face.
#[derive(Clone, Debug)]
pub(crate) struct Face {
    /// The vertex that is pulled: the first one.
    pub apex: usize,
    /// Its dimension.
    pub dimension: usize,
    /// Its facets that do not contain the apex, by position in the lattice; all of them come before the face itself.
    pub opposite: Vec<usize>,
    /// For each of these a facet of the polytope that cuts it out of the face.
    pub walls: Vec<usize>,
}

/// Faces in an order in which a face comes after its facets; the last is the polytope.
#[derive(Clone, Debug)]
pub(crate) struct Lattice {
    pub faces: Vec<Face>,
}

/// A face while its level is being built; `opposite` counts within the level below.
struct Draft {
    vertices: Bits,
    opposite: Vec<usize>,
    walls: Vec<usize>,
}

impl Draft {
    fn new(vertices: Bits) -> Draft {
        Draft { vertices, opposite: Vec::new(), walls: Vec::new() }
    }
}

impl Lattice {
    pub fn new(polytope: &Polytope) -> Lattice {
        let count = polytope.vertices.len();
        let walls: Vec<Bits> = (0..polytope.facets.len())
            .map(|f| (0..count).filter(|v| polytope.incidence[*v].contains(f)).collect())
            .collect();
        // Level by level from the polytope down, then reversed.
        let mut levels: Vec<Vec<Draft>> = vec![vec![Draft::new((0..count).collect())]];
        for _ in 0..polytope.flat {
            let mut known: HashMap<Bits, usize> = HashMap::new();
            let mut below: Vec<Draft> = Vec::new();
            for face in levels.last_mut().expect("the list begins with the polytope") {
                checkpoint();
                for (facet, wall) in opposite_facets(&face.vertices, &walls) {
                    let at = *known.entry(facet).or_insert_with_key(|facet| {
                        below.push(Draft::new(facet.clone()));
                        below.len() - 1
                    });
                    face.opposite.push(at);
                    face.walls.push(wall);
                }
            }
            levels.push(below);
        }
        let mut faces = Vec::new();
        let mut start_below = 0;
        for (dimension, level) in levels.iter().rev().enumerate() {
            let start = faces.len();
            for face in level {
                let opposite = face.opposite.iter().map(|at| start_below + at).collect();
                let apex = face.vertices.first().expect("every face has a vertex");
                faces.push(Face { apex, dimension, opposite, walls: face.walls.clone() });
            }
            start_below = start;
        }
        Lattice { faces }
    }

    /// How many simplices the pulling triangulation has.
    pub fn simplex_count(&self) -> f64 {
        let mut counts: Vec<f64> = Vec::with_capacity(self.faces.len());
        for face in &self.faces {
            let sum: f64 = face.opposite.iter().map(|at| counts[*at]).sum();
            counts.push(if face.dimension == 0 { 1.0 } else { sum });
        }
        *counts.last().expect("the polytope itself is a face")
    }

    /// The longest chain of additions on the way from vertices to the polytope, if every face adds up its facets one by
    /// one.
    pub fn longest_sum(&self) -> usize {
        let mut longest: Vec<usize> = Vec::with_capacity(self.faces.len());
        for face in &self.faces {
            let below = face.opposite.iter().map(|at| longest[*at]).max().unwrap_or(0);
            longest.push(below + face.opposite.len());
        }
        *longest.last().expect("the polytope itself is a face")
    }

    /// How many faces are in use at the same time, if a face is forgotten once the last face above it has been done.
    pub fn most_in_use(&self) -> usize {
        let mut uses = vec![0usize; self.faces.len()];
        self.faces.iter().flat_map(|face| &face.opposite).for_each(|facet| uses[*facet] += 1);
        let (mut in_use, mut most) = (0, 0);
        for face in &self.faces {
            in_use += 1;
            most = most.max(in_use);
            for facet in &face.opposite {
                uses[*facet] -= 1;
                in_use -= usize::from(uses[*facet] == 0);
            }
        }
        most
    }

    /// How many pairs of a face and an opposite facet there are.
    pub fn pair_count(&self) -> usize {
        self.faces.iter().map(|face| face.opposite.len()).sum()
    }
}

/// Heights of apexes over facets, exactly, in units in which every face's own basis spans volume one.
#[derive(Clone, Debug)]
pub(crate) struct ExactHeights {
    /// One for every pair of a face and an opposite facet, face by face.
    pub heights: Vec<Rational>,
    /// The volume, times `n!`, that the polytope's basis spans.
    pub unit: Rational,
    /// The vertices.
    pub points: Vec<Vec<Rational>>,
}

impl Lattice {
    /// For a face F with basis B_F and a facet G of it with basis B_G, the height of the apex over G is |det T| where
    /// `[apex - g; B_G] = T B_F`: a ratio of two determinants over any columns in which B_F is regular. The basis of a
    /// face is that of its first opposite facet with one vector more. Vectors of a basis are integers without a common
    /// divisor, which keeps the determinants short.
    pub fn exact_heights(&self, polytope: &Polytope) -> ExactHeights {
        let points: Vec<Vec<Rational>> = polytope.exact_vertices();
        let mut bases: Vec<FaceBasis> = Vec::with_capacity(self.faces.len());
        let mut heights = Vec::new();
        for face in &self.faces {
            checkpoint();
            let mut basis = FaceBasis::default();
            for (k, facet) in face.opposite.iter().enumerate() {
                let foot = &points[self.faces[*facet].apex];
                let (up, length) =
                    primitive(&points[face.apex].iter().zip(foot).map(|(a, b)| a - b).collect::<Vec<_>>());
                let rows: Vec<Vec<Integer>> = [up].into_iter().chain(bases[*facet].rows.iter().cloned()).collect();
                if k == 0 {
                    basis = FaceBasis::new(rows);
                    heights.push(length);
                } else {
                    let minor = rows.iter().map(|row| basis.columns.iter().map(|c| row[*c].clone()).collect());
                    let ratio = Rational::from_parts_signed(determinant(minor.collect()), basis.determinant.clone());
                    heights.push(if ratio < Rational::ZERO { -ratio * length } else { ratio * length });
                }
            }
            bases.push(basis);
        }
        let spanned = bases.pop().expect("the polytope itself is a face").determinant;
        let unit = Rational::from(if spanned < Integer::ZERO { -spanned } else { spanned });
        ExactHeights { heights, unit, points }
    }
}

/// A basis of the directions of a face, with columns in which it is regular and its determinant there.
struct FaceBasis {
    rows: Vec<Vec<Integer>>,
    columns: Vec<usize>,
    determinant: Integer,
}

/// The basis of a point: no vectors, and an empty product for a determinant.
impl Default for FaceBasis {
    fn default() -> Self {
        FaceBasis { rows: Vec::new(), columns: Vec::new(), determinant: Integer::ONE }
    }
}

impl FaceBasis {
    fn new(rows: Vec<Vec<Integer>>) -> FaceBasis {
        let (columns, determinant) =
            regular_columns(&rows).expect("an apex never lies in the span of its opposite facet");
        FaceBasis { rows, columns, determinant }
    }
}

/// The facets of a face that do not contain its first vertex, each with a wall that cuts it out.
pub(super) fn opposite_facets(face: &Bits, walls: &[Bits]) -> Vec<(Bits, usize)> {
    let size = face.len();
    let mut proper: Vec<(Bits, usize)> = Vec::new();
    for (number, wall) in walls.iter().enumerate() {
        let common = face.common_len(wall);
        if common == 0 || common == size {
            continue;
        }
        let met = face.intersection(wall);
        if proper.iter().any(|(p, _)| met.is_subset(p)) {
            continue;
        }
        proper.retain(|(p, _)| !p.is_subset(&met));
        proper.push((met, number));
    }
    let apex = face.first();
    proper.retain(|(p, _)| apex.is_some_and(|a| !p.contains(a)));
    proper
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;
    use crate::shapes;

    #[test]
    fn a_cube_has_few_faces_and_many_simplices() {
        for (n, factorial) in [(1, 1.0), (2, 2.0), (3, 6.0), (4, 24.0), (5, 120.0), (6, 720.0)] {
            let cells = Region::new(&shapes::cube(n)).unwrap().decompose().unwrap();
            let lattice = Lattice::new(cells[0].polytope());
            assert_eq!(lattice.simplex_count(), factorial);
            assert_eq!(cells[0].polytope().triangulate().len() as f64, factorial);
            assert!(lattice.faces.len() <= 3usize.pow(n as u32));
        }
    }
}
