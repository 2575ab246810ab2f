//! What mixed densities live on: the projection of a constraint onto the reals, in parts on each of which the same
//! assignments of the Boolean variables are allowed.
//!
//! ```text
//! support  =  union over parts g of  A_g x mesh_g,        meshes of different parts have no volume in common
//! ```
//!
//! Cells of the projection with equal sets of assignments are one part, so the number of parts is bounded by the
//! hyperplanes of the constraint and not by the number of assignments.

use std::collections::HashMap;
use std::sync::Arc;

use super::diagram::{AssignmentDiagram, AssignmentSet, DiagramBuilder};
use crate::density::{DensityError, Support};
use crate::formula::{Constraint, Formula, Substitution, Var};

/// What mixed densities live on.
#[derive(Clone, Debug)]
pub struct MixedSupport {
    /// The projection onto the reals; its constraint is the mixed one.
    base: Arc<Support>,
    pub(super) diagram: AssignmentDiagram,
    pub(super) parts: Vec<MixedPart>,
}

/// The elements of a mesh on which the same assignments satisfy the constraint.
#[derive(Clone, Debug)]
pub(super) struct MixedPart {
    pub assignments: AssignmentSet,
    /// The elements. The constraint of this support is that of one of the assignments: it holds on all elements, and may
    /// hold beyond them.
    pub support: Arc<Support>,
}

impl MixedSupport {
    /// Divides the projection of a constraint into parts.
    pub(super) fn new(base: Arc<Support>) -> Result<MixedSupport, DensityError> {
        let constraint = base.constraint();
        let mut builder = DiagramBuilder::new(constraint.booleans.len())?;
        let mut order: Vec<AssignmentSet> = Vec::new();
        let mut cells: HashMap<AssignmentSet, Vec<usize>> = HashMap::new();
        for (cell, undecided) in base.mesh().undecided.iter().enumerate() {
            let set = match undecided {
                None => AssignmentSet::ALL,
                Some(skeleton) => builder.of_skeleton(skeleton)?,
            };
            cells
                .entry(set)
                .or_insert_with(|| {
                    order.push(set);
                    Vec::new()
                })
                .push(cell);
        }
        let diagram = builder.finish();
        let part = |set: &AssignmentSet| -> Result<MixedPart, DensityError> {
            let some = diagram.first(*set).unwrap_or_default();
            let formula = constraint.formula.substitute(&values(&constraint.booleans, &some));
            let reals = Constraint { formula, reals: constraint.reals.clone(), booleans: Vec::new() };
            let support = Support::of_elements(reals, base.mesh().of_cells(&cells[set]))?;
            Ok(MixedPart { assignments: *set, support: Arc::new(support) })
        };
        let parts = order.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        Ok(MixedSupport { base, diagram, parts })
    }

    /// The part of the support in which a further condition on reals and Boolean variables holds; it may be empty.
    pub(super) fn within(&self, condition: &Formula) -> Result<MixedSupport, DensityError> {
        MixedSupport::new(Arc::new(self.base.within(condition)?))
    }

    /// The projection onto the reals.
    pub(crate) fn base(&self) -> &Arc<Support> {
        &self.base
    }

    /// The constraint that the support satisfies.
    pub fn constraint(&self) -> &Constraint {
        self.base.constraint()
    }

    /// The number of real variables, whose values come first in every point.
    pub fn dimension(&self) -> usize {
        self.base.dimension()
    }

    /// The Boolean variables, in the order of their columns, which come after those of the reals.
    pub fn booleans(&self) -> &[Var] {
        &self.constraint().booleans
    }

    /// The number of numbers of a point: one for each real variable, then a 0 or 1 for each Boolean one.
    pub fn columns(&self) -> usize {
        self.dimension() + self.booleans().len()
    }

    /// The number of parts, which decides what a normaliser costs.
    pub fn num_parts(&self) -> usize {
        self.parts.len()
    }

    /// The volume of the projection onto the reals.
    pub fn base_volume(&self) -> f64 {
        let fraction: f64 = self.base.mesh().elements.iter().map(|element| element.volume).sum();
        fraction * self.base.grid().log_volume().exp()
    }

    /// All assignments that have volume, in the order of counting with the first variable as the highest digit; `None`
    /// if there are more than `most`.
    pub fn assignments(&self, most: usize) -> Option<Vec<Vec<bool>>> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(self.diagram.list(part.assignments, most)?);
            all.sort_unstable();
            all.dedup();
            if all.len() > most {
                return None;
            }
        }
        Some(all)
    }

    /// The position of a Boolean variable.
    pub(super) fn boolean(&self, name: &str) -> Option<usize> {
        self.booleans().iter().position(|var| var.name() == name)
    }

    /// Divides mixed points into reals and truth values, row by row.
    pub fn split(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        let (n, columns) = (self.dimension(), self.columns());
        if !points.len().is_multiple_of(columns) {
            let names = self.constraint().reals.iter().chain(self.booleans()).map(Var::name).collect::<Vec<_>>();
            return Err(DensityError::Points { given: points.len(), variables: names.join(", ") });
        }
        let rows = points.len() / columns;
        let (mut reals, mut booleans) = (Vec::with_capacity(rows * n), Vec::with_capacity(rows * (columns - n)));
        for (row, point) in points.chunks(columns).enumerate() {
            reals.extend_from_slice(&point[..n]);
            for (k, value) in point[n..].iter().enumerate() {
                if *value != 0.0 && *value != 1.0 {
                    let variable = self.booleans()[k].clone();
                    return Err(DensityError::BooleanValue { row, variable, value: *value });
                }
                booleans.push(*value == 1.0);
            }
        }
        Ok((reals, booleans))
    }
}

/// The substitution of truth values for the first variables of a list.
pub(super) fn values(booleans: &[Var], values: &[bool]) -> Substitution {
    let change =
        |change: Substitution, (var, value): (&Var, &bool)| change.boolean(var.name(), Formula::constant(*value));
    booleans.iter().zip(values).fold(Substitution::new(), change)
}
