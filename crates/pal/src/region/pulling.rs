//! Exact volumes over the faces that pulling reaches, in integers.
//!
//! The faces are those of [`super::lattice`], except that a face that is a simplex is not taken apart: a polytope with
//! simplicial facets needs no faces below them.
//!
//! Every face is measured in its own coordinates, those columns in which a basis of its directions has its pivots: the
//! first ones in which it can have them. Columns of a facet are then among those of the face, with one column c missing,
//! and the height of the apex over the facet is the entry in column c of the vector from the facet to the apex, reduced by
//! the basis of the facet. With vertices that are integers, after multiplication by a common denominator, every volume
//! times the factorial of the dimension is an integer, and so is all arithmetic (Bareiss).

use std::cmp::Ordering;
use std::collections::HashMap;

use dashu_int::UBig;
use dashu_int::ops::BitTest;
use rayon::prelude::*;

use super::bits::Bits;
use super::convert::{ExactScalar, Overflow};
use super::lattice::opposite_facets;
use super::polytope::Polytope;
use crate::interrupt::checkpoint;
use crate::linear_algebra::{common_denominator, lcm, numerators_over};
use crate::number::{Integer, Rational};

/// A face: its vertices, and by position in the level below its facets that avoid the first of them.
struct PulledFace {
    vertices: Bits,
    opposite: Vec<usize>,
}

/// A face that has been measured.
struct MeasuredFace<S> {
    apex: usize,
    basis: IntegerBasis<S>,
    /// `d!` times its volume in its own columns.
    size: Integer,
}

/// Directions of a face: `row k / pivot` is 1 in column k of `columns` and 0 in the others of them.
#[derive(Clone)]
struct IntegerBasis<S> {
    pivot: S,
    columns: Vec<usize>,
    rows: Vec<Vec<S>>,
}

/// Levels of faces by falling dimension, from the polytope itself to where all faces are simplices. `None` if there are
/// too many faces.
fn levels(polytope: &Polytope, most: usize) -> Option<Vec<Vec<PulledFace>>> {
    let count = polytope.vertices.len();
    let mut walls = vec![Bits::default(); polytope.facets.len()];
    for (v, facets) in polytope.incidence.iter().enumerate() {
        facets.iter().for_each(|f| walls[f].insert(v));
    }
    let mut levels = vec![vec![PulledFace { vertices: (0..count).collect(), opposite: Vec::new() }]];
    let mut faces = 1;
    for dimension in (1..=polytope.flat).rev() {
        let above = levels.last_mut().expect("the list begins with the polytope");
        let facets = |face: &PulledFace| {
            checkpoint();
            if face.vertices.len() == dimension + 1 { Vec::new() } else { opposite_facets(&face.vertices, &walls) }
        };
        let facets: Vec<Vec<(Bits, usize)>> = above.par_iter().with_min_len(16).map(facets).collect();
        let mut known: HashMap<Bits, usize> = HashMap::new();
        for (face, facets) in above.iter_mut().zip(facets) {
            for (facet, _) in facets {
                let next = known.len();
                face.opposite.push(*known.entry(facet).or_insert(next));
            }
        }
        faces += known.len();
        if faces > most {
            return None;
        }
        if known.is_empty() {
            break;
        }
        let mut below: Vec<(Bits, usize)> = known.into_iter().collect();
        below.par_sort_unstable_by_key(|(_, at)| *at);
        levels.push(below.into_iter().map(|(vertices, _)| PulledFace { vertices, opposite: Vec::new() }).collect());
    }
    Some(levels)
}

/// The faces together may have common denominators with this many bits, where those are long.
const LONG_BITS: usize = 1 << 22;
/// Denominators up to this length are short.
const SHORT_BITS: usize = 128;

/// `n!` times the exact volume of a full-dimensional polytope; `None` if its vertices have a long common denominator and
/// it has many faces, unless that does not matter.
pub(super) fn exact_size(polytope: &Polytope, patient: bool) -> Option<Rational> {
    let points = polytope.exact_vertices();
    let mut common = UBig::ONE;
    for point in &points {
        common = lcm(&common, &common_denominator(point));
        if common.bit_len() > LONG_BITS && !patient {
            return None;
        }
    }
    let any = patient || common.bit_len() <= SHORT_BITS;
    let levels = levels(polytope, if any { usize::MAX } else { LONG_BITS / common.bit_len() })?;
    let points: Vec<Vec<Integer>> = points.iter().map(|point| numerators_over(point, &common)).collect();
    let size = measure::<i64>(&levels, &points).or_else(|Overflow| measure::<Integer>(&levels, &points));
    let size = size.expect("integers of any size do not overflow");
    Some(Rational::from_parts(size, common.pow(polytope.dimension())))
}

fn measure<S: ExactScalar>(levels: &[Vec<PulledFace>], points: &[Vec<Integer>]) -> Result<Integer, Overflow> {
    let points: Vec<Vec<S>> =
        points.iter().map(|point| point.iter().map(S::from_integer).collect()).collect::<Result<_, _>>()?;
    let mut below: Vec<MeasuredFace<S>> = Vec::new();
    for level in levels.iter().rev() {
        let measured = |face: &PulledFace| {
            checkpoint();
            if face.opposite.is_empty() { face.measure_simplex(&points) } else { face.measure(&below, &points) }
        };
        below = level.par_iter().with_min_len(16).map(measured).collect::<Result<_, _>>()?;
    }
    Ok(below.pop().expect("the polytope itself is a face").size)
}

impl PulledFace {
    fn measure_simplex<S: ExactScalar>(&self, points: &[Vec<S>]) -> Result<MeasuredFace<S>, Overflow> {
        let apex = self.apex();
        let mut basis = IntegerBasis::empty()?;
        for v in self.vertices.iter().skip(1) {
            basis = basis.extended(&difference(&points[v], &points[apex])?)?;
        }
        let size = basis.pivot.to_integer();
        Ok(MeasuredFace { apex, basis, size: magnitude(size) })
    }

    /// The sum of the pyramids over the facets opposite to the apex.
    fn measure<S: ExactScalar>(
        &self,
        below: &[MeasuredFace<S>],
        points: &[Vec<S>],
    ) -> Result<MeasuredFace<S>, Overflow> {
        let apex = self.apex();
        let mut size = Integer::ZERO;
        let mut basis: Option<IntegerBasis<S>> = None;
        for facet in self.opposite.iter().map(|at| &below[*at]) {
            let up = difference(&points[apex], &points[facet.apex])?;
            let height = match &basis {
                None => basis.insert(facet.basis.extended(&up)?).pivot.clone(),
                Some(basis) => {
                    let missing = basis.columns.iter().find(|c| !facet.basis.columns.contains(c));
                    facet.basis.reduced(&up, *missing.expect("a facet has one column less"))?
                }
            };
            size += magnitude(height.to_integer()) * &facet.size / magnitude(facet.basis.pivot.to_integer());
        }
        let basis = basis.expect("a face that is no simplex has facets that avoid its first vertex");
        Ok(MeasuredFace { apex, basis, size })
    }

    fn apex(&self) -> usize {
        self.vertices.first().expect("every face has a vertex")
    }
}

fn difference<S: ExactScalar>(a: &[S], b: &[S]) -> Result<Vec<S>, Overflow> {
    let one = S::from_integer(&Integer::ONE)?;
    a.iter().zip(b).map(|(x, y)| S::minor(&one, x, &one, y, &one)).collect()
}

fn magnitude(a: Integer) -> Integer {
    if a < Integer::ZERO { -a } else { a }
}

impl<S: ExactScalar> IntegerBasis<S> {
    /// The basis of a point.
    fn empty() -> Result<Self, Overflow> {
        Ok(IntegerBasis { pivot: S::from_integer(&Integer::ONE)?, columns: Vec::new(), rows: Vec::new() })
    }

    /// The pivot times the entry of a vector in a column, once multiples of the rows have made it 0 in all columns of the
    /// basis.
    fn reduced(&self, vector: &[S], column: usize) -> Result<S, Overflow> {
        let taken = S::dot_pairs(self.columns.iter().zip(&self.rows).map(|(c, row)| (&vector[*c], &row[column])))?;
        let one = S::from_integer(&Integer::ONE)?;
        S::minor(&self.pivot, &vector[column], &one, &taken, &one)
    }

    /// The basis with one direction more.
    fn extended(&self, vector: &[S]) -> Result<Self, Overflow> {
        let reduced = (0..vector.len()).map(|column| self.reduced(vector, column));
        let reduced: Vec<S> = reduced.collect::<Result<_, _>>()?;
        let column = reduced.iter().position(|x| x.sign() != Ordering::Equal);
        let column = column.expect("an apex never lies in the span of its opposite facet");
        let pivot = reduced[column].clone();
        let cleared = |row: &Vec<S>| -> Result<Vec<S>, Overflow> {
            row.iter().zip(&reduced).map(|(x, y)| S::minor(x, &pivot, &row[column], y, &self.pivot)).collect()
        };
        let mut rows: Vec<Vec<S>> = self.rows.iter().map(cleared).collect::<Result<_, _>>()?;
        rows.push(reduced);
        let columns = self.columns.iter().copied().chain([column]).collect();
        Ok(IntegerBasis { pivot, columns, rows })
    }
}
