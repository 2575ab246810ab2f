//! Volumes as sums over vertices.
//!
//! Where exactly `n` facets meet in every vertex, for almost every vector c
//!
//! ```text
//! n! vol  =  sum over vertices v of  <c, v>^n / (|det A_v| prod_i gamma_i),    A_v^T gamma = c,
//! ```
//!
//! with the outward normals of the facets through v as the rows of A_v (Lawrence). The edge that leaves facet i leads to
//! the neighbour w_i, and `gamma_i = <c, v - w_i> / slack_i(w_i)`; along an edge the determinants change by a ratio of
//! slacks. So no linear system is solved: it takes inner products only. A vertex on more facets has a term for each
//! simplex of a triangulation of its normals: the vertices that it falls apart into when the facets are moved a little.
//!
//! The terms are much larger than their sum, and their denominators have nothing to do with it. But a multiple of the
//! denominator of the sum is known, from the vertices: the sum is rounded to the nearest multiple of its inverse, which
//! is exact.
//!
//! Reference: J. Lawrence, Polytope volume computation, Mathematics of Computation 57 (1991).

use std::collections::HashMap;

use dashu_int::UBig;
use dashu_int::ops::{BitTest, UnsignedAbs};
use rayon::prelude::*;

use super::bits::Bits;
use super::lattice::opposite_facets;
use super::polytope::Polytope;
use crate::interrupt::checkpoint;
use crate::linear_algebra::{determinant, first_dependency, lcm};
use crate::number::{Integer, Rational};
use crate::random::Stream;

/// Bits beyond the binary point. Every term is off by less than one unit of the last of them.
const GUARD: usize = 64;

/// An edge at a vertex: where it leads, and the facet that it leaves.
#[derive(Clone, Copy)]
struct LeavingEdge {
    to: usize,
    leaves: usize,
}

/// What is summed at a vertex.
enum VertexTerms {
    /// Exactly n facets meet there: its edges, and `|det A_v|`.
    Simple { edges: Vec<LeavingEdge>, determinant: Integer },
    /// More facets meet there: sets of n of them whose normals triangulate all of them.
    Other(Vec<Vec<usize>>),
}

/// A polytope in integers.
struct VertexSum<'p> {
    polytope: &'p Polytope,
    /// Per facet `b` and `a` of `b + a . x >= 0`.
    rows: Vec<Vec<Integer>>,
    /// Per vertex its denominator and numerators.
    points: Vec<Vec<Integer>>,
    corners: Vec<VertexTerms>,
}

/// A sum may have this many terms for vertices on more than n facets.
const MOST_CONES: usize = 1 << 18;

/// `n!` times the exact volume of a full-dimensional polytope; `None` if vertices on many facets make too many terms.
pub(super) fn exact_size(polytope: &Polytope) -> Option<Rational> {
    let n = polytope.dimension();
    let sum = VertexSum::new(polytope)?;
    let denominator = sum.denominator();
    let mut stream = Stream::new(0, 0);
    // Almost every vector will do; the next one is drawn from a larger set.
    let mut vectors = (8..).map(|bits: u32| {
        let entry = |bits: u64| Integer::from(bits + 1);
        (0..n).map(|_| entry(stream.bits() >> (64 - bits.min(60)))).collect::<Vec<_>>()
    });
    vectors.find_map(|vector| sum.total(&vector, &denominator))
}

impl<'p> VertexSum<'p> {
    fn new(polytope: &'p Polytope) -> Option<Self> {
        let outward = polytope.half_spaces();
        let row = |(a, b): &(Vec<Integer>, Integer)| [b.clone()].into_iter().chain(a.iter().map(|x| -x)).collect();
        let points = polytope.vertices.iter().map(|v| {
            let point = polytope.space.exact(v);
            [point.denominator.clone()].into_iter().chain(point.numerators.iter().cloned()).collect()
        });
        let mut sum = VertexSum {
            polytope,
            rows: outward.iter().map(row).collect(),
            points: points.collect(),
            corners: Vec::new(),
        };
        let (edges, around) = sum.edges();
        let determinants = sum.determinants(&edges);
        let mut left = MOST_CONES;
        for ((edges, determinant), around) in edges.into_iter().zip(determinants).zip(around) {
            sum.corners.push(match determinant {
                Some(determinant) => VertexTerms::Simple { edges, determinant },
                None => {
                    let cones = triangulated(&around, polytope.dimension(), left)?;
                    left -= cones.len();
                    VertexTerms::Other(cones)
                }
            });
        }
        Some(sum)
    }

    fn is_simple(&self, v: usize) -> bool {
        self.polytope.incidence[v].len() == self.polytope.dimension()
    }

    /// The edges of simple vertices, in the order of the facets they leave; for each other vertex the sets of facets
    /// around its edges.
    fn edges(&self) -> (Vec<Vec<LeavingEdge>>, Vec<Vec<Bits>>) {
        let incidence = &self.polytope.incidence;
        let (simple, other): (Vec<usize>, Vec<usize>) = (0..incidence.len()).partition(|v| self.is_simple(*v));
        let mut edges: Vec<Vec<LeavingEdge>> = vec![Vec::new(); incidence.len()];
        let mut around: Vec<Vec<Bits>> = vec![Vec::new(); incidence.len()];
        // Both ends of an edge lie on the n - 1 facets around it.
        let mut open: HashMap<Bits, LeavingEdge> = HashMap::new();
        for (count, v) in simple.iter().enumerate() {
            if count % 256 == 0 {
                checkpoint();
            }
            for leaves in incidence[*v].iter() {
                let mut edge = incidence[*v].clone();
                edge.remove(leaves);
                match open.remove(&edge) {
                    Some(end) => {
                        edges[*v].push(LeavingEdge { to: end.to, leaves });
                        edges[end.to].push(LeavingEdge { to: *v, leaves: end.leaves });
                    }
                    None => {
                        open.insert(edge, LeavingEdge { to: *v, leaves });
                    }
                }
            }
        }
        for (edge, end) in open {
            let far = other.iter().find(|w| edge.is_subset(&incidence[**w]));
            let far = *far.expect("every edge of a bounded polytope has two ends");
            edges[end.to].push(LeavingEdge { to: far, leaves: end.leaves });
            around[far].push(edge);
        }
        for (k, v) in other.iter().enumerate() {
            checkpoint();
            for w in &other[..k] {
                let common = incidence[*v].intersection(&incidence[*w]);
                let third = |z: usize| z != *v && z != *w && common.is_subset(&incidence[z]);
                if common.len() + 1 >= self.polytope.dimension() && !(0..incidence.len()).any(third) {
                    around[*v].push(common.clone());
                    around[*w].push(common);
                }
            }
        }
        edges.iter_mut().for_each(|edges| edges.sort_unstable_by_key(|edge| edge.leaves));
        around.iter_mut().for_each(|edges| edges.sort_unstable());
        (edges, around)
    }

    /// The slack of a vertex at a facet, times the denominator of the vertex.
    fn slack(&self, facet: usize, vertex: usize) -> Integer {
        let products = self.rows[facet].iter().zip(&self.points[vertex]).filter(|(a, _)| !a.is_zero());
        products.fold(Integer::ZERO, |sum, (a, x)| sum + a * x)
    }

    /// The size of the determinant of the normals of some facets.
    fn normal_determinant(&self, facets: impl Iterator<Item = usize>) -> Integer {
        let det = determinant(facets.map(|f| self.rows[f][1..].to_vec()).collect());
        if det < Integer::ZERO { -det } else { det }
    }

    /// `|det A_v|` for every simple vertex, from one to the next along edges.
    fn determinants(&self, edges: &[Vec<LeavingEdge>]) -> Vec<Option<Integer>> {
        let mut known: Vec<Option<Integer>> = vec![None; self.points.len()];
        for start in (0..self.points.len()).filter(|v| self.is_simple(*v)) {
            if known[start].is_some() {
                continue;
            }
            known[start] = Some(self.normal_determinant(self.polytope.incidence[start].iter()));
            let mut queue = vec![start];
            while let Some(v) = queue.pop() {
                let here = known[v].clone().expect("vertices in the queue are known");
                for edge in edges[v].iter().filter(|edge| self.is_simple(edge.to)) {
                    let w = edge.to;
                    if known[w].is_some() {
                        continue;
                    }
                    let back = edges[w].iter().find(|back| back.to == v).expect("an edge leads both ways").leaves;
                    let above = here.clone() * self.slack(back, v) * &self.points[w][0];
                    known[w] = Some(above / (&self.points[v][0] * self.slack(edge.leaves, w)));
                    queue.push(w);
                }
            }
        }
        known
    }

    /// A multiple of the denominator of `n! vol`, which is a sum of determinants of vertices: the product of their
    /// denominators, or the n-th power of the common one.
    fn denominator(&self) -> UBig {
        let n = self.polytope.dimension();
        let own: Vec<UBig> = self.points.iter().map(|point| point[0].clone().unsigned_abs()).collect();
        let bits: usize = own.iter().map(|d| d.bit_len().saturating_sub(1)).sum();
        let mut common = UBig::ONE;
        for d in &own {
            common = lcm(&common, d);
            if common.bit_len() * n > bits + 64 * n {
                return product(&own);
            }
        }
        common.pow(n)
    }

    /// The sum over vertices; `None` if the vector is orthogonal to an edge.
    fn total(&self, vector: &[Integer], denominator: &UBig) -> Option<Rational> {
        let along =
            |point: &Vec<Integer>| vector.iter().zip(&point[1..]).fold(Integer::ZERO, |sum, (c, x)| sum + c * x);
        let along: Vec<Integer> = self.points.iter().map(along).collect();
        let scale = Integer::from(denominator.clone()) << GUARD;
        let starts: Vec<usize> = (0..self.points.len()).step_by(64).collect();
        let partial = starts.par_iter().map(|start| {
            let mut block = (*start..self.points.len().min(start + 64)).map(|v| {
                checkpoint();
                self.terms(v, vector, &along, &scale)
            });
            block.try_fold((Integer::ZERO, 0), |(sum, count), part| {
                let (terms, more) = part?;
                Some((sum + terms, count + more))
            })
        });
        let partial: Option<Vec<(Integer, usize)>> = partial.collect();
        let sum = partial?.into_iter().fold((Integer::ZERO, 0), |(sum, count), (s, c)| (sum + s, count + c));
        let (total, terms) = sum;
        let half = Integer::ONE << (GUARD - 1);
        let whole = (&total + half) >> GUARD;
        let off: Integer = total - (&whole << GUARD);
        let most = Integer::from(terms);
        assert!(off <= most && off >= -most, "the sum over vertices is a multiple of the inverse of its denominator");
        Some(Rational::from_parts(whole, denominator.clone()))
    }

    /// The terms of one vertex, each multiplied by the scale and rounded, and how many there are.
    fn terms(&self, v: usize, vector: &[Integer], along: &[Integer], scale: &Integer) -> Option<(Integer, usize)> {
        let n = vector.len();
        let power = along[v].pow(n);
        match &self.corners[v] {
            VertexTerms::Simple { edges, determinant } => {
                let (mut above, mut below) = (power, determinant.clone());
                for edge in edges {
                    let w = edge.to;
                    let step = &along[v] * &self.points[w][0] - &along[w] * &self.points[v][0];
                    if step.is_zero() {
                        return None;
                    }
                    above *= self.slack(edge.leaves, w);
                    below *= step;
                }
                Some((above * scale / below, 1))
            }
            VertexTerms::Other(cones) => {
                let mut sum = Integer::ZERO;
                for cone in cones {
                    // gamma = numerators / denominator for inward normals; outward ones have the other sign.
                    let system = (0..n).map(|j| {
                        let column = cone.iter().map(|f| -&self.rows[*f][j + 1]);
                        column.chain([vector[j].clone()]).collect()
                    });
                    let gamma = first_dependency(system.collect(), n + 1)?;
                    if gamma.numerators.len() < n || gamma.numerators.iter().any(Integer::is_zero) {
                        return None;
                    }
                    let below = self.normal_determinant(cone.iter().copied()) * self.points[v][0].pow(n);
                    let below = gamma.numerators.iter().fold(below, |product, g| product * g);
                    sum += &power * gamma.denominator.pow(n) * scale / below;
                }
                Some((sum, cones.len()))
            }
        }
    }
}

/// The facets at a vertex, given as those around each of its edges, in sets of n whose normals are the simplices of a
/// triangulation: the dual of [`super::lattice`], with facets for vertices and edges for facets. `None` if there are more
/// than `most` simplices.
fn triangulated(around: &[Bits], n: usize, most: usize) -> Option<Vec<Vec<usize>>> {
    let mut all = Bits::default();
    around.iter().for_each(|edge| all.extend_from(edge));
    let mut simplices = Vec::new();
    let mut stack = vec![(all, Vec::new())];
    while let Some((face, mut apexes)) = stack.pop() {
        checkpoint();
        if face.len() + apexes.len() == n {
            apexes.extend(face.iter());
            if simplices.len() == most {
                return None;
            }
            simplices.push(apexes);
            continue;
        }
        apexes.push(face.first().expect("every cone has a ray"));
        stack.extend(opposite_facets(&face, around).into_iter().map(|(facet, _)| (facet, apexes.clone())));
    }
    Some(simplices)
}

/// The product, by halves.
fn product(factors: &[UBig]) -> UBig {
    match factors {
        [] => UBig::ONE,
        [one] => one.clone(),
        _ => {
            let (a, b) = factors.split_at(factors.len() / 2);
            product(a) * product(b)
        }
    }
}
