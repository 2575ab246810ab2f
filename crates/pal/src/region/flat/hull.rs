//! The equalities that hold on a whole constraint.
//!
//! Most of them can be read off the formula: a conjunction has the equalities of its parts, and those where `t <= 0`
//! meets `t >= 0`; a disjunction has the equalities that all of its parts imply, the intersection of the spaces that
//! their rows span. What this does not see (`x <= y`, `y <= z` and `z <= x` together) is found from the faces of the
//! arrangement of all hyperplanes that satisfy the formula.

use std::collections::{BTreeMap, HashMap};

use super::FlatError;
use crate::formula::{Connective, Formula, Node, Plane, Var};
use crate::linear_algebra::reduced_rows;
use crate::number::Rational;
use crate::region::Region;

/// Equalities `sum_j a_j y_j = b`, as independent rows of all a_j and b.
pub(super) type Equalities = Vec<Vec<Rational>>;

/// Equalities that a formula implies, as far as its structure shows them; `None` if that shows that nothing satisfies it.
pub(super) fn visible_equalities(formula: &Formula, variables: &[Var]) -> Option<Equalities> {
    let position: HashMap<&Var, usize> = variables.iter().enumerate().map(|(j, var)| (var, j)).collect();
    let n = variables.len();
    formula.to_nnf().fold(|formula, children: &[Option<Equalities>]| match formula.node() {
        Node::Constant(false) => None,
        Node::Connective(Connective::And, parts) => {
            let mut rows: Equalities = children.iter().cloned().collect::<Option<Vec<_>>>()?.concat();
            rows.extend(opposite_bounds(parts).map(|plane| row_of(plane, &position, n)));
            independent(&rows, n)
        }
        Node::Connective(Connective::Or, _) => {
            let mut possible = children.iter().flatten();
            let first = possible.next()?.clone();
            Some(possible.fold(first, |common, other| intersection(&common, other, n)))
        }
        _ => Some(Vec::new()),
    })
}

/// The hyperplanes that literals of a conjunction put the points on: below or on them, and above or on them.
fn opposite_bounds(parts: &[Formula]) -> impl Iterator<Item = &Plane> {
    let mut sides: BTreeMap<&Plane, [bool; 2]> = BTreeMap::new();
    for part in parts {
        let (atom, side) = match part.node() {
            Node::Atom(atom) => (Some(atom), 0),
            Node::Connective(Connective::Not, inner) => match inner[0].node() {
                Node::Atom(atom) => (Some(atom), 1),
                _ => (None, 1),
            },
            _ => (None, 0),
        };
        if let Some(plane) = atom.map(|atom| atom.plane()) {
            sides.entry(plane).or_default()[side] = true;
        }
    }
    sides.into_iter().filter(|(_, sides)| sides[0] && sides[1]).map(|(plane, _)| plane)
}

fn row_of(plane: &Plane, position: &HashMap<&Var, usize>, n: usize) -> Vec<Rational> {
    let mut row = vec![Rational::ZERO; n + 1];
    for (var, a) in plane.normal() {
        if let Some(j) = position.get(var) {
            row[*j] = Rational::from(a.clone());
        }
    }
    row[n] = Rational::from(plane.offset().clone());
    row
}

/// Independent equalities with the same meaning; `None` if they contradict each other.
pub(super) fn independent(rows: &[Vec<Rational>], n: usize) -> Option<Equalities> {
    let (pivots, contradictions) = reduced_rows(rows, 0..n);
    contradictions.is_empty().then(|| pivots.into_iter().map(|(_, row)| row).collect())
}

/// The rows that both lists span, by the method of Zassenhaus: in the echelon form of [[A, A], [B, 0]], rows that are 0
/// on the left span the intersection on the right.
fn intersection(a: &[Vec<Rational>], b: &[Vec<Rational>], n: usize) -> Equalities {
    let zeros = vec![Rational::ZERO; n + 1];
    let doubled = a.iter().map(|row| [row.clone(), row.clone()].concat());
    let single = b.iter().map(|row| [row.clone(), zeros.clone()].concat());
    let (_, rest) = reduced_rows(&doubled.chain(single).collect::<Vec<_>>(), 0..=n);
    let right: Vec<Vec<Rational>> = rest.into_iter().map(|row| row[n + 1..].to_vec()).collect();
    reduced_rows(&right, 0..=n).0.into_iter().map(|(_, row)| row).collect()
}

/// The equalities of the faces of largest dimension that satisfy the constraint of a region without volume. `None` if
/// nothing satisfies it. Faces of largest dimension that do not lie in one flat of that dimension are an error.
pub(super) fn equalities_of_faces(region: &Region) -> Result<Option<Equalities>, FlatError> {
    let n = region.dimension();
    let mut largest: Option<(usize, Equalities)> = None;
    let mut other: Option<Equalities> = None;
    let finished = region.visit_faces(|vertices| {
        let rows = hull(&vertices, n);
        let dimension = n - rows.len();
        match &largest {
            Some((most, _)) if dimension < *most => {}
            Some((most, known)) if dimension == *most => {
                if *known != rows {
                    other = Some(rows);
                }
            }
            _ => (largest, other) = (Some((dimension, rows)), None),
        }
    });
    if !finished {
        return Err(FlatError::Undecided);
    }
    match (largest, other) {
        (Some((dimension, first)), Some(second)) => {
            let text = |rows: &Equalities| describe(rows, region.variables());
            Err(FlatError::Apart { dimension, first: text(&first), second: text(&second) })
        }
        (largest, _) => Ok(largest.map(|(_, rows)| rows)),
    }
}

/// The equalities of the affine hull of points, in reduced form.
fn hull(points: &[Vec<Rational>], n: usize) -> Equalities {
    let Some(first) = points.first() else { return Vec::new() };
    let directions: Vec<Vec<Rational>> =
        points[1..].iter().map(|point| point.iter().zip(first).map(|(a, b)| a - b).collect()).collect();
    let (pivots, _) = reduced_rows(&directions, 0..n);
    let is_pivot = |j: usize| pivots.iter().any(|(column, _)| *column == j);
    // For every column without a pivot there is one normal vector: y_j minus what the pivots make of it.
    let normals = (0..n).filter(|j| !is_pivot(*j)).map(|j| {
        let mut row = vec![Rational::ZERO; n + 1];
        row[j] = Rational::ONE;
        pivots.iter().for_each(|(column, direction)| row[*column] = -&direction[j]);
        row[n] = row.iter().zip(first).fold(Rational::ZERO, |sum, (a, y)| sum + a * y);
        row
    });
    reduced_rows(&normals.collect::<Vec<_>>(), 0..n).0.into_iter().map(|(_, row)| row).collect()
}

/// Equalities as text: `x = 0 and y + z = 1`.
pub(super) fn describe(rows: &Equalities, variables: &[Var]) -> String {
    let equality = |row: &Vec<Rational>| {
        let term = crate::formula::Linear::new(variables.iter().cloned().zip(row.iter().cloned()), Rational::ZERO);
        format!("{term} = {}", crate::formula::Linear::from(row[variables.len()].clone()))
    };
    rows.iter().map(equality).collect::<Vec<_>>().join(" and ")
}
