//! The double description of a pointed cone: the half-spaces it is cut out by, and its extreme rays.
//!
//! A cone `row . y >= 0` is cut by one row after the other. Rays on the wrong side go; each pair of adjacent rays on
//! different sides leaves a new ray between them. Two rays are adjacent if and only if no third ray lies on all the rows
//! that are zero on both. A ray on exactly `d - 1` rows is simple: each choice of `d - 2` of them is an edge, so its
//! neighbours are found by looking up these choices.
//!
//! Reference: K. Fukuda, A. Prodon, Double description method revisited, Combinatorics and Computer Science (1996).

use std::cmp::Ordering;
use std::collections::HashMap;

use rayon::prelude::*;

use super::super::bits::Bits;
use super::scalar::{ExactScalar, Overflow};
use crate::interrupt::checkpoint;
use crate::linear_algebra::{primitive, reduced_rows};
use crate::number::{Integer, Rational};

/// A cone of dimension `d` in `d` coordinates.
#[derive(Clone, Debug)]
pub(crate) struct Cone<S> {
    dimension: usize,
    rows: Vec<Vec<S>>,
    pub rays: Vec<Vec<S>>,
    /// For each ray the rows that are zero on it, in the order of insertion.
    pub zeros: Vec<Bits>,
}

/// Why a row could not be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConeError {
    /// The cone that is left has a smaller dimension.
    Flat,
    /// More rays than allowed.
    TooMany,
    Overflow,
}

impl From<Overflow> for ConeError {
    fn from(_: Overflow) -> Self {
        ConeError::Overflow
    }
}

/// Pairs of rays compared one by one before the neighbours of simple rays are looked up instead.
const FEW_PAIRS: usize = 4096;

/// The positions of the first independent rows, and for each of them the ray on which it is positive and the others are
/// zero. `None` if fewer rows than columns are independent.
pub(crate) fn simplicial_cone(rows: &[Vec<Integer>]) -> Option<(Vec<usize>, Vec<Vec<Integer>>)> {
    let dimension = rows.first()?.len();
    let transposed: Vec<Vec<Rational>> =
        (0..dimension).map(|j| rows.iter().map(|row| row[j].clone().into()).collect()).collect();
    let (pivots, _) = reduced_rows(&transposed, 0..rows.len());
    let chosen: Vec<usize> = pivots.iter().map(|(column, _)| *column).collect();
    if chosen.len() < dimension {
        return None;
    }
    // The inverse: its columns are the rays.
    let with_unit = |(k, row): (usize, &usize)| {
        let unit = (0..dimension).map(move |j| Rational::from(usize::from(j == k)));
        rows[*row].iter().map(|a| Rational::from(a.clone())).chain(unit).collect::<Vec<_>>()
    };
    let matrix: Vec<Vec<Rational>> = chosen.iter().enumerate().map(with_unit).collect();
    let (solved, _) = reduced_rows(&matrix, 0..dimension);
    let ray = |k: usize| {
        let mut column = vec![Rational::ZERO; dimension];
        solved.iter().for_each(|(j, row)| column[*j] = row[dimension + k].clone());
        primitive(&column).0
    };
    Some((chosen, (0..dimension).map(ray).collect()))
}

impl<S: ExactScalar> Cone<S> {
    /// The cone of as many independent rows as there are coordinates, with its rays from [`simplicial_cone`].
    pub fn new(rows: &[Vec<Integer>], rays: &[Vec<Integer>]) -> Result<Self, Overflow> {
        let convert = |vectors: &[Vec<Integer>]| -> Result<Vec<Vec<S>>, Overflow> {
            vectors.iter().map(|v| v.iter().map(S::from_integer).collect()).collect()
        };
        let dimension = rows.len();
        let zeros = (0..dimension).map(|k| (0..dimension).filter(|j| *j != k).collect()).collect();
        Ok(Cone { dimension, rows: convert(rows)?, rays: convert(rays)?, zeros })
    }

    /// Values of a row on all rays.
    fn values(&self, row: &[S]) -> Result<Vec<S>, Overflow> {
        let value = |ray: &Vec<S>| S::dot(row, ray);
        self.rays.par_iter().with_min_len(512).map(value).collect()
    }

    /// Intersects with the half-space `row . y >= 0`.
    pub fn insert(&mut self, row: Vec<S>, most_rays: usize) -> Result<(), ConeError> {
        checkpoint();
        let number = self.rows.len();
        let values = self.values(&row)?;
        let on = |sign| (0..values.len()).filter(|r| values[*r].sign() == sign).collect::<Vec<usize>>();
        let (below, above) = (on(Ordering::Less), on(Ordering::Greater));
        if above.is_empty() {
            return Err(ConeError::Flat);
        }
        self.rows.push(row);
        for (zeros, value) in self.zeros.iter_mut().zip(&values) {
            if value.sign() == Ordering::Equal {
                zeros.insert(number);
            }
        }
        if below.is_empty() {
            return Ok(());
        }
        let pairs = self.crossing(&below, &above);
        if self.rays.len() - below.len() + pairs.len() > most_rays {
            return Err(ConeError::TooMany);
        }
        let between = |(low, high): &(usize, usize)| -> Result<(Vec<S>, Bits), Overflow> {
            // (row . high) low - (row . low) high is zero on the row and a sum of both with positive weights.
            let ray = S::combine(&values[*high], &self.rays[*low], &values[*low], &self.rays[*high])?;
            let mut zeros = self.zeros[*low].intersection(&self.zeros[*high]);
            zeros.insert(number);
            Ok((ray, zeros))
        };
        let new: Vec<(Vec<S>, Bits)> =
            pairs.par_iter().with_min_len(256).map(between).collect::<Result<_, Overflow>>()?;
        let kept = |r: &usize| values[*r].sign() != Ordering::Less;
        let old = std::mem::take(&mut self.rays).into_iter().zip(std::mem::take(&mut self.zeros)).enumerate();
        let old = old.filter(|(r, _)| kept(r)).map(|(_, ray)| ray);
        (self.rays, self.zeros) = old.chain(new).unzip();
        Ok(())
    }

    /// Adjacent pairs of a ray below and one above, in a fixed order.
    fn crossing(&self, below: &[usize], above: &[usize]) -> Vec<(usize, usize)> {
        let simple = |r: &usize| self.zeros[*r].len() + 1 == self.dimension;
        let (simple_below, other_below): (Vec<usize>, Vec<usize>) = below.iter().copied().partition(simple);
        let (simple_above, other_above): (Vec<usize>, Vec<usize>) = above.iter().copied().partition(simple);
        let mut pairs = if simple_below.len() * simple_above.len() > FEW_PAIRS {
            self.looked_up(&simple_below, &simple_above)
        } else {
            self.compared(&simple_below, &simple_above)
        };
        pairs.extend(self.compared(&simple_below, &other_above));
        pairs.extend(self.compared(&other_below, &simple_above));
        pairs.extend(self.adjacent(&other_below, &other_above));
        pairs
    }

    /// Pairs of which one ray is simple, compared one by one.
    fn compared(&self, below: &[usize], above: &[usize]) -> Vec<(usize, usize)> {
        let wanted = self.dimension - 2;
        let of = |low: &usize| {
            checkpoint();
            let zeros = &self.zeros[*low];
            let met = above.iter().filter(|high| zeros.common_len(&self.zeros[**high]) >= wanted);
            met.map(|high| (*low, *high)).collect::<Vec<_>>()
        };
        below.par_iter().with_min_len(1 + (1 << 16) / (above.len() + 1)).flat_map_iter(of).collect()
    }

    /// Pairs of simple rays, by the edges that they are ends of.
    fn looked_up(&self, below: &[usize], above: &[usize]) -> Vec<(usize, usize)> {
        let edges = |r: usize| {
            let zeros = &self.zeros[r];
            zeros.iter().map(move |leaving| {
                let mut edge = zeros.clone();
                edge.remove(leaving);
                edge
            })
        };
        let (few, many, flipped) =
            if below.len() <= above.len() { (below, above, false) } else { (above, below, true) };
        let known: HashMap<Bits, usize> = few.iter().flat_map(|r| edges(*r).map(|edge| (edge, *r))).collect();
        let met = |r: &usize| {
            checkpoint();
            let ends = edges(*r).filter_map(|edge| known.get(&edge).copied());
            ends.map(|other| if flipped { (*r, other) } else { (other, *r) }).collect::<Vec<_>>()
        };
        many.par_iter().with_min_len(256).flat_map_iter(met).collect()
    }

    /// Pairs of rays that are not simple: no third ray may lie on all the rows they share.
    fn adjacent(&self, below: &[usize], above: &[usize]) -> Vec<(usize, usize)> {
        if below.is_empty() || above.is_empty() {
            return Vec::new();
        }
        let words = self.rays.len().div_ceil(64);
        let mut columns = vec![vec![0u64; words]; self.rows.len()];
        for (r, zeros) in self.zeros.iter().enumerate() {
            zeros.iter().for_each(|row| columns[row][r / 64] |= 1 << (r % 64));
        }
        let wanted = self.dimension - 2;
        let of = |low: &usize| {
            let mut scratch = vec![0u64; words];
            let mut met = Vec::new();
            for high in above {
                let (a, b) = (&self.zeros[*low], &self.zeros[*high]);
                if a.common_len(b) >= wanted && only_these_two(&a.intersection(b), &columns, &mut scratch) {
                    met.push((*low, *high));
                }
            }
            checkpoint();
            met
        };
        below.par_iter().with_min_len(1 + (1 << 12) / above.len()).flat_map_iter(of).collect()
    }
}

/// Whether exactly two rays lie on all of these rows.
fn only_these_two(rows: &Bits, columns: &[Vec<u64>], scratch: &mut [u64]) -> bool {
    let mut rows = rows.iter();
    match rows.next() {
        Some(first) => scratch.copy_from_slice(&columns[first]),
        None => return scratch.is_empty(),
    }
    for row in rows {
        let mut left = 0;
        for (a, b) in scratch.iter_mut().zip(&columns[row]) {
            *a &= b;
            left += a.count_ones();
        }
        if left == 2 {
            return true;
        }
    }
    scratch.iter().map(|word| word.count_ones()).sum::<u32>() == 2
}
