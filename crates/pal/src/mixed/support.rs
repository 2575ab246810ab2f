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
use crate::region::Chart;

/// What mixed densities live on.
#[derive(Clone, Debug)]
pub struct MixedSupport {
    /// The projection onto the reals, in free coordinates where equalities hold on the whole constraint; its constraint
    /// is the mixed one.
    base: Arc<Support>,
    /// How free coordinates determine all of them, where there are equalities.
    chart: Option<Arc<Chart>>,
    /// The constraint over all variables.
    constraint: Constraint,
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
    pub(super) fn new(base: Arc<Support>, chart: Option<Arc<Chart>>) -> Result<MixedSupport, DensityError> {
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
        let constraint = whole(&base, chart.as_deref());
        Ok(MixedSupport { base, chart, constraint, diagram, parts })
    }

    /// The part of the support in which a further condition on reals and Boolean variables holds; it may be empty.
    pub(super) fn within(&self, condition: &Formula) -> Result<MixedSupport, DensityError> {
        if let Some(support) = self.within_assignments(condition)? {
            return Ok(support);
        }
        let condition = match &self.chart {
            None => condition.clone(),
            Some(chart) => condition.substitute(&chart.substitution()),
        };
        MixedSupport::new(Arc::new(self.base.within(&condition)?), self.chart.clone())
    }

    /// The same for a condition on Boolean variables alone: parts keep their meshes, and nothing is cut. `None` if the
    /// condition mentions reals. Parts may be left without assignments.
    pub(super) fn within_assignments(&self, condition: &Formula) -> Result<Option<MixedSupport>, DensityError> {
        if !condition.real_variables().is_empty() {
            return Ok(None);
        }
        let mut builder = DiagramBuilder::over(&self.diagram);
        let set = builder.of_formula(condition, &self.base.constraint().booleans)?;
        let part = |part: &MixedPart| -> Result<MixedPart, DensityError> {
            let assignments = builder.intersection(part.assignments, set)?;
            Ok(MixedPart { assignments, support: part.support.clone() })
        };
        let parts = self.parts.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        let base = Arc::new(self.base.with_assignments(condition)?);
        let constraint = whole(&base, self.chart.as_deref());
        Ok(Some(MixedSupport { base, chart: self.chart.clone(), constraint, diagram: builder.finish(), parts }))
    }

    /// How free coordinates determine all coordinates, where equalities hold on the whole constraint.
    pub fn chart(&self) -> Option<&Arc<Chart>> {
        self.chart.as_ref()
    }

    /// The same support in free coordinates, without the dependent variables.
    pub(super) fn in_free_coordinates(&self) -> MixedSupport {
        let base = self.base.clone();
        MixedSupport { chart: None, constraint: base.constraint().clone(), base, ..self.clone() }
    }

    /// The logarithm of the measure of the box: its volume, or its surface measure on a flat.
    pub(super) fn log_measure(&self) -> f64 {
        self.base.grid().log_volume() + self.chart.as_ref().map_or(0.0, |chart| chart.log_factor())
    }

    /// Real coordinates of points, from free ones.
    pub(super) fn filled(&self, free: Vec<f64>) -> Vec<f64> {
        match &self.chart {
            None => free,
            Some(chart) => chart.fill(&free),
        }
    }

    /// The projection onto the reals.
    pub(crate) fn base(&self) -> &Arc<Support> {
        &self.base
    }

    /// The constraint that the support satisfies.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The number of real variables, whose values come first in every point.
    pub fn dimension(&self) -> usize {
        self.constraint.reals.len()
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

    /// The volume of the projection onto the reals; its surface measure where equalities hold on it.
    pub fn base_volume(&self) -> f64 {
        let fraction: f64 = self.base.mesh().elements.iter().map(|element| element.volume).sum();
        fraction * self.log_measure().exp()
    }

    /// Whether mixed points, given row by row, satisfy the constraint, exactly; where it has equalities, up to rounding
    /// of the dependent variables. Values of Boolean variables other than 0 and 1 do not.
    pub fn contains(&self, points: &[f64]) -> Result<Vec<bool>, DensityError> {
        let (n, k, columns) = (self.dimension(), self.booleans().len(), self.columns());
        let truth = |point: &[f64]| point[n..].iter().all(|value| *value == 0.0 || *value == 1.0);
        let proper: Vec<bool> = points.chunks_exact(columns).map(truth).collect();
        let rounded: Vec<f64> = points
            .chunks(columns)
            .flat_map(|point| point.iter().enumerate().map(|(j, x)| if j < n || *x == 1.0 { *x } else { 0.0 }))
            .collect();
        let (reals, booleans) = self.split(&rounded)?;
        let free = self.base.dimension();
        let inside = |(at, proper): (usize, bool)| {
            let (point, assignment) = (&reals[at * free..(at + 1) * free], &booleans[at * k..(at + 1) * k]);
            proper && self.base.membership().contains_with(point, assignment)
        };
        Ok(proper.into_iter().enumerate().map(inside).collect())
    }

    /// The middle of the box around the constraint, in all real variables.
    pub fn centre(&self) -> Vec<f64> {
        self.filled(self.base.grid().axes().iter().map(|axis| axis.at_fraction(0.5)).collect())
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

    /// Divides mixed points into reals and truth values, row by row. Where equalities hold on the constraint, the reals
    /// are the free ones, and NaN for points that do not satisfy the equalities.
    pub fn split(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        let (reals, booleans) = self.divide(points)?;
        let free = match &self.chart {
            None => reals,
            Some(chart) => chart.restrict(&reals, f64::EPSILON),
        };
        Ok((free, booleans))
    }

    /// The same for points that are taken to satisfy the equalities.
    pub(super) fn split_all(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        let (reals, booleans) = self.divide(points)?;
        let free = match &self.chart {
            None => reals,
            Some(chart) => chart.restrict_all(&reals),
        };
        Ok((free, booleans))
    }

    fn divide(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
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

/// The constraint of a support over all variables.
fn whole(base: &Support, chart: Option<&Chart>) -> Constraint {
    let remaining = base.constraint();
    match chart {
        None => remaining.clone(),
        Some(chart) => Constraint {
            formula: chart.equalities() & remaining.formula.clone(),
            reals: chart.variables().to_vec(),
            booleans: remaining.booleans.clone(),
        },
    }
}

/// The substitution of truth values for the first variables of a list.
pub(super) fn values(booleans: &[Var], values: &[bool]) -> Substitution {
    let change =
        |change: Substitution, (var, value): (&Var, &bool)| change.boolean(var.name(), Formula::constant(*value));
    booleans.iter().zip(values).fold(Substitution::new(), change)
}
