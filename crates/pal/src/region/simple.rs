//! Volumes of simple polytopes as sums over vertices.
//!
//! Where exactly `n` facets meet in every vertex, for almost every vector c
//!
//! ```text
//! n! vol  =  sum over vertices v of  <c, v>^n / (|det A_v| prod_i gamma_i),    A_v^T gamma = c,
//! ```
//!
//! with the normals of the facets through v as the rows of A_v (Lawrence). The edge that leaves facet i leads to the
//! neighbour w_i, and `gamma_i = <c, v - w_i> / slack_i(w_i)`; along an edge the determinants change by a ratio of
//! slacks. So no linear system is solved: it takes inner products only.
//!
//! The terms are much larger than their sum, and their denominators have nothing to do with it. But a multiple of the
//! denominator of the sum is known, from the vertices: the sum is rounded to the nearest multiple of its inverse, which
//! is exact.
//!
//! Reference: J. Lawrence, Polytope volume computation, Mathematics of Computation 57 (1991).

use std::collections::HashMap;

use dashu_int::UBig;
use dashu_int::ops::UnsignedAbs;
use rayon::prelude::*;

use super::bits::Bits;
use super::polytope::Polytope;
use crate::interrupt::checkpoint;
use crate::linear_algebra::{determinant, lcm};
use crate::number::{Integer, Rational, bit_length};
use crate::random::Stream;

/// Bits beyond the binary point. Every term is off by less than one unit of the last of them.
const GUARD: usize = 64;

/// An edge at a vertex: where it leads, and the facet that it leaves.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    leaves: usize,
}

/// A simple polytope in integers.
struct SimplePolytope<'p> {
    polytope: &'p Polytope,
    /// Per facet `b` and `a` of `b + a . x >= 0`.
    rows: Vec<Vec<Integer>>,
    /// Per vertex its denominator and numerators.
    points: Vec<Vec<Integer>>,
    /// Per vertex its edges, in the order of the facets they leave.
    edges: Vec<Vec<Edge>>,
}

/// `n!` times the exact volume of a full-dimensional polytope; `None` unless exactly n facets meet in every vertex.
pub(super) fn exact_size(polytope: &Polytope) -> Option<Rational> {
    let n = polytope.dimension();
    if polytope.incidence.iter().any(|facets| facets.len() != n) {
        return None;
    }
    let simple = SimplePolytope::new(polytope);
    let determinants = simple.determinants();
    let denominator = simple.denominator();
    let mut stream = Stream::new(0, 0);
    // Almost every vector will do; the next one is drawn from a larger set.
    (8..).find_map(|bits: u32| {
        let vector: Vec<Integer> = (0..n).map(|_| Integer::from((stream.bits() >> (64 - bits.min(60))) + 1)).collect();
        simple.sum(&vector, &determinants, &denominator)
    })
}

impl<'p> SimplePolytope<'p> {
    fn new(polytope: &'p Polytope) -> Self {
        let outward = polytope.half_spaces();
        let row = |(a, b): &(Vec<Integer>, Integer)| [b.clone()].into_iter().chain(a.iter().map(|x| -x)).collect();
        let points = polytope.vertices.iter().map(|v| {
            let point = polytope.space.exact(v);
            [point.denominator.clone()].into_iter().chain(point.numerators.iter().cloned()).collect()
        });
        let points = points.collect();
        // Both ends of an edge lie on the n - 1 facets around it.
        let mut open: HashMap<Bits, usize> = HashMap::new();
        let mut ends: Vec<HashMap<usize, usize>> = vec![HashMap::new(); polytope.vertices.len()];
        for (v, facets) in polytope.incidence.iter().enumerate() {
            if v % 256 == 0 {
                checkpoint();
            }
            for leaving in facets.iter() {
                let mut around = facets.clone();
                around.remove(leaving);
                if let Some(w) = open.remove(&around) {
                    let other = polytope.incidence[w].iter().find(|f| !around.contains(*f));
                    ends[v].insert(leaving, w);
                    ends[w].insert(other.expect("a vertex lies on one facet more than an edge"), v);
                } else {
                    open.insert(around, v);
                }
            }
        }
        assert!(open.is_empty(), "every edge of a bounded polytope has two ends");
        let edges = polytope
            .incidence
            .iter()
            .zip(&ends)
            .map(|(facets, ends)| facets.iter().map(|leaves| Edge { to: ends[&leaves], leaves }).collect());
        SimplePolytope { polytope, rows: outward.iter().map(row).collect(), points, edges: edges.collect() }
    }

    /// The slack of a vertex at a facet, times the denominator of the vertex.
    fn slack(&self, facet: usize, vertex: usize) -> Integer {
        let products = self.rows[facet].iter().zip(&self.points[vertex]).filter(|(a, _)| !a.is_zero());
        products.fold(Integer::ZERO, |sum, (a, x)| sum + a * x)
    }

    /// `|det A_v|` for every vertex, from the first one along edges.
    fn determinants(&self) -> Vec<Integer> {
        let size = |a: Integer| if a < Integer::ZERO { -a } else { a };
        let mut known: Vec<Option<Integer>> = vec![None; self.points.len()];
        let first = self.polytope.incidence[0].iter().map(|f| self.rows[f][1..].to_vec()).collect();
        known[0] = Some(size(determinant(first)));
        let mut queue = vec![0];
        while let Some(v) = queue.pop() {
            let here = known[v].clone().expect("vertices in the queue are known");
            for edge in &self.edges[v] {
                let w = edge.to;
                if known[w].is_some() {
                    continue;
                }
                let back = self.edges[w].iter().find(|back| back.to == v).expect("an edge leads both ways").leaves;
                let above = here.clone() * self.slack(back, v) * &self.points[w][0];
                known[w] = Some(above / (&self.points[v][0] * self.slack(edge.leaves, w)));
                queue.push(w);
            }
        }
        known.into_iter().map(|det| det.expect("the graph of a polytope is connected")).collect()
    }

    /// A multiple of the denominator of `n! vol`, which is a sum of determinants of vertices: the product of their
    /// denominators, or the n-th power of the common one.
    fn denominator(&self) -> UBig {
        let n = self.polytope.dimension();
        let own: Vec<UBig> = self.points.iter().map(|point| point[0].clone().unsigned_abs()).collect();
        let bits: usize = own.iter().map(|d| bit_length(&Integer::from(d.clone())).saturating_sub(1)).sum();
        let mut common = UBig::ONE;
        for d in &own {
            common = lcm(&common, d);
            if bit_length(&Integer::from(common.clone())) * n > bits + 64 * n {
                return product(&own);
            }
        }
        common.pow(n)
    }

    /// The sum over vertices; `None` if the vector is orthogonal to an edge.
    fn sum(&self, vector: &[Integer], determinants: &[Integer], denominator: &UBig) -> Option<Rational> {
        let n = vector.len();
        let along =
            |point: &Vec<Integer>| vector.iter().zip(&point[1..]).fold(Integer::ZERO, |sum, (c, x)| sum + c * x);
        let along: Vec<Integer> = self.points.iter().map(along).collect();
        let scale = Integer::from(denominator.clone()) << GUARD;
        let term = |v: usize| -> Option<Integer> {
            checkpoint();
            let (mut above, mut below) = (along[v].pow(n), determinants[v].clone());
            for edge in &self.edges[v] {
                let w = edge.to;
                let step = &along[v] * &self.points[w][0] - &along[w] * &self.points[v][0];
                if step.is_zero() {
                    return None;
                }
                above *= self.slack(edge.leaves, w);
                below *= step;
            }
            Some(above * &scale / below)
        };
        let starts: Vec<usize> = (0..self.points.len()).step_by(64).collect();
        let partial = starts.par_iter().map(|start| {
            (*start..self.points.len().min(start + 64)).try_fold(Integer::ZERO, |sum, v| Some(sum + term(v)?))
        });
        let partial: Option<Vec<Integer>> = partial.collect();
        let total = partial?.into_iter().fold(Integer::ZERO, |sum, part| sum + part);
        let half = Integer::ONE << (GUARD - 1);
        let whole = (&total + half) >> GUARD;
        let off: Integer = total - (&whole << GUARD);
        let most = Integer::from(self.points.len());
        assert!(off <= most && off >= -most, "the sum over vertices is a multiple of the inverse of its denominator");
        Some(Rational::from_parts(whole, denominator.clone()))
    }
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
