//! Naming a direction in which a region is unbounded.

use std::fmt;

use super::polytope::Polytope;
use crate::formula::{Linear, Var};
use crate::number::{Integer, Rational};

/// A region that reaches to infinity, with a direction along which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbounded {
    /// The variables, in coordinate order.
    pub variables: Vec<Var>,
    /// A direction `d` such that `y + t d` stays in the region for some `y` and all `t >= 0`; its largest entry is 1 in size.
    pub direction: Vec<Rational>,
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.variables.iter().cloned().zip(self.direction.iter().cloned());
        let direction = Linear::new(terms, Rational::ZERO);
        write!(f, "the region is unbounded in direction {direction}; add bounds such as ")?;
        let moving = self.variables.iter().zip(&self.direction).find(|(_, d)| !d.is_zero());
        match moving {
            Some((var, d)) if d > &Rational::ZERO => write!(f, "(<= {var} 1000)"),
            Some((var, _)) => write!(f, "(>= {var} (- 1000))"),
            None => write!(f, "a box"),
        }
    }
}

impl std::error::Error for Unbounded {}

/// A recession direction of a cell that touches the hyperplanes standing for infinity.
pub(crate) fn direction(polytope: &Polytope, variables: &[Var]) -> Unbounded {
    let walls = real_walls(polytope);
    let direction = null_vector(&walls, polytope.dimension())
        .or_else(|| unbounded_edge(polytope))
        .unwrap_or_else(|| vec![Rational::ZERO; polytope.dimension()]);
    Unbounded { variables: variables.to_vec(), direction: normalise(direction) }
}

/// Normals of the facets that are not at infinity.
fn real_walls(polytope: &Polytope) -> Vec<Vec<Rational>> {
    let real = polytope.facets.iter().filter(|facet| !polytope.space.far.contains(&facet.plane));
    real.map(|facet| polytope.space.plane(facet.plane).normal.iter().cloned().map(Rational::from).collect()).collect()
}

/// A non-zero vector orthogonal to all rows: the cell contains a whole line.
fn null_vector(rows: &[Vec<Rational>], dimension: usize) -> Option<Vec<Rational>> {
    let mut rows = rows.to_vec();
    let mut pivots: Vec<usize> = Vec::new();
    for column in 0..dimension {
        let rank = pivots.len();
        let Some(found) = (rank..rows.len()).find(|i| !rows[*i][column].is_zero()) else { continue };
        rows.swap(rank, found);
        let scale = Rational::ONE / &rows[rank][column];
        let pivot: Vec<Rational> = rows[rank].iter().map(|a| a * &scale).collect();
        for row in rows.iter_mut() {
            let factor = row[column].clone();
            row.iter_mut().zip(&pivot).for_each(|(a, p)| *a -= &factor * p);
        }
        rows[rank] = pivot;
        pivots.push(column);
    }
    let free = (0..dimension).find(|column| !pivots.contains(column))?;
    let mut vector = vec![Rational::ZERO; dimension];
    vector[free] = Rational::ONE;
    for (row, column) in pivots.iter().enumerate() {
        vector[*column] = -&rows[row][free];
    }
    Some(vector)
}

/// An edge of the true cell that runs to infinity: one end is a true vertex, the other lies at infinity, and all
/// facets they share are true ones.
fn unbounded_edge(polytope: &Polytope) -> Option<Vec<Rational>> {
    let is_far = |f: usize| polytope.space.far.contains(&polytope.facets[f].plane);
    let far: Vec<bool> = polytope.incidence.iter().map(|facets| facets.iter().any(is_far)).collect();
    for u in (0..far.len()).filter(|u| !far[*u]) {
        for w in (0..far.len()).filter(|w| far[*w]) {
            let common = polytope.incidence[u].intersection(&polytope.incidence[w]);
            let edge = common.len() + 1 >= polytope.flat
                && !(0..far.len()).any(|z| z != u && z != w && common.is_subset(&polytope.incidence[z]));
            if edge {
                let from = polytope.space.exact(&polytope.vertices[u]).coordinates();
                let to = polytope.space.exact(&polytope.vertices[w]).coordinates();
                return Some(to.iter().zip(&from).map(|(a, b)| a - b).collect());
            }
        }
    }
    None
}

fn normalise(direction: Vec<Rational>) -> Vec<Rational> {
    let size = |a: &Rational| if a < &Rational::ZERO { -a } else { a.clone() };
    let largest = direction.iter().map(size).max().unwrap_or(Rational::ZERO);
    if largest.is_zero() {
        return direction;
    }
    direction.iter().map(|a| a / &largest).collect()
}

/// A number larger in size than any coordinate of any point where hyperplanes of the list meet: by Cramer's rule a
/// coordinate is a determinant of n rows divided by a non-zero integer, and a determinant is at most the product of
/// the rows' absolute sums.
pub(crate) fn beyond_all_vertices<'a>(
    rows: impl Iterator<Item = (&'a [Integer], &'a Integer)>,
    dimension: usize,
) -> Integer {
    let mut bits: Vec<usize> = rows
        .map(|(normal, offset)| {
            let size = |a: &Integer| if a < &Integer::ZERO { -a } else { a.clone() };
            crate::number::bit_length(&normal.iter().chain([offset]).fold(Integer::ZERO, |sum, a| sum + size(a)))
        })
        .collect();
    bits.sort_unstable_by(|a, b| b.cmp(a));
    Integer::ONE << (bits.iter().take(dimension).sum::<usize>() + 1)
}
