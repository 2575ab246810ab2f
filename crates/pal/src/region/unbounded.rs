//! Naming a direction in which a region is unbounded.

use std::fmt;

use super::polytope::Polytope;
use crate::formula::{Linear, Var};
use crate::linear_algebra::first_dependency;
use crate::number::{Integer, Rational};

/// A region that reaches to infinity, with a direction along which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbounded {
    /// The variables, in coordinate order.
    pub variables: Vec<Var>,
    /// A direction `d` such that `y + t d` stays in the region for some `y` and all `t >= 0`; its largest entry is 1 in
    /// size.
    pub direction: Vec<Rational>,
}

impl fmt::Display for Unbounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.variables.iter().cloned().zip(self.direction.iter().cloned());
        let direction = Linear::new(terms, Rational::ZERO);
        write!(f, "the region is unbounded in direction {direction}; add bounds such as ")?;
        let moving = self.variables.iter().zip(&self.direction).find(|(_, d)| !d.is_zero());
        match moving {
            Some((var, d)) if d > &Rational::ZERO => write!(f, "{var} <= 1000"),
            Some((var, _)) => write!(f, "{var} >= -1000"),
            None => write!(f, "a box"),
        }
    }
}

impl std::error::Error for Unbounded {}

/// A recession direction of a cell that touches the hyperplanes standing for infinity.
pub(crate) fn direction(polytope: &Polytope, variables: &[Var]) -> Unbounded {
    let direction = line(polytope)
        .or_else(|| unbounded_edge(polytope))
        .expect("an unbounded cell that contains no line has a vertex and an edge that runs from one to infinity");
    Unbounded { variables: variables.to_vec(), direction: normalise(direction) }
}

/// A non-zero vector orthogonal to the normals of all facets that are not at infinity: the cell contains a whole line.
fn line(polytope: &Polytope) -> Option<Vec<Rational>> {
    let real = polytope.facets.iter().filter(|facet| !polytope.space.far.contains(&facet.plane));
    let normals = real.map(|facet| polytope.space.plane(facet.plane).normal.clone()).collect();
    let dependency = first_dependency(normals, polytope.dimension())?;
    let mut vector: Vec<Rational> = dependency.coefficients().map(|a| -a).chain([Rational::ONE]).collect();
    vector.resize(polytope.dimension(), Rational::ZERO);
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
