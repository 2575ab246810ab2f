//! What a density lives on: a constraint, exact membership in it, and its parts cut along a grid.
//!
//! ```text
//! support  =  union over parts of  { booleans = assignment } x { y in an element of the mesh }
//! ```
//!
//! A part fixes some Boolean variables and leaves the others free. Here there is exactly one part, and its assignment is
//! empty: where a constraint has Boolean variables, this is the support on its reals, and `mixed` divides it further. Nor
//! are there equalities: a family on a flat has a support in free coordinates, and its points are translated where they
//! come in and go out (see `flat`).

use std::sync::{Arc, OnceLock};

use super::error::DensityError;
use super::grid::{Axis, Grid};
use super::mesh::{Element, Mesh};
use crate::formula::{Constraint, Formula, Membership};
use crate::number::Rational;
use crate::random::Stream;
use crate::region::Region;

/// What a density lives on: a constraint cut along a grid.
#[derive(Clone, Debug)]
pub struct Support {
    constraint: Constraint,
    membership: Membership,
    part: Part,
    /// See [`Support::anchors`]; computed when first needed.
    anchors: OnceLock<Vec<Option<Vec<f64>>>>,
}

/// One part of a support: what is known of the Boolean variables, and where points may be.
#[derive(Clone, Debug)]
pub struct Part {
    /// One entry per Boolean variable of the constraint; `None` where both values are allowed.
    assignment: Vec<Option<bool>>,
    mesh: Arc<Mesh>,
}

impl Part {
    /// The value of each Boolean variable of the constraint, in the order of declaration; `None` where both are
    /// allowed.
    pub fn assignment(&self) -> &[Option<bool>] {
        &self.assignment
    }

    /// The elements in which points may be.
    pub fn mesh(&self) -> &Arc<Mesh> {
        &self.mesh
    }
}

/// How many float64 numbers there must be along every axis. Points are float64 numbers, so a density with fewer of them
/// along an axis would be that of a few points.
const MIN_NUMBERS: f64 = 256.0;

/// Exact ends of the region per axis.
pub(crate) type Ends = Vec<(Rational, Rational)>;

impl Support {
    /// The smallest box around the region.
    pub(crate) fn ends(region: &Region) -> Result<Ends, DensityError> {
        let constraint = region.constraint();
        if !constraint.booleans.is_empty() && !region.is_projected() {
            let names: Vec<&str> = constraint.booleans.iter().map(|var| var.name()).collect();
            return Err(DensityError::Booleans(names.join(", ")));
        }
        if constraint.reals.is_empty() {
            return Err(DensityError::NoVariables);
        }
        region.bounding_box()?.ok_or_else(|| DensityError::NoVolume(region.status_without_volume().name()))
    }

    /// The grid with the given edges per axis.
    pub(crate) fn make_grid(constraint: &Constraint, edges: Vec<Vec<Rational>>) -> Result<Arc<Grid>, DensityError> {
        let axes = edges.into_iter().zip(&constraint.reals).map(|(edges, var)| {
            let axis = Axis::new(edges).filter(|axis| axis.float64_spacing() * MIN_NUMBERS <= axis.length());
            axis.ok_or_else(|| DensityError::Scale(var.clone()))
        });
        Ok(Arc::new(Grid::new(axes.collect::<Result<_, _>>()?)))
    }

    /// Cuts a region along a grid; one with Boolean variables is projected onto the reals, and its parts are those of a
    /// mixed support.
    pub(crate) fn new(region: &Region, grid: &Arc<Grid>) -> Result<Support, DensityError> {
        let constraint = region.constraint().clone();
        let projection = (!constraint.booleans.is_empty()).then(|| region.onto_reals());
        let region = projection.as_ref().unwrap_or(region);
        let membership = constraint.membership()?;
        let part = Part { assignment: vec![None; constraint.booleans.len()], mesh: Arc::new(Mesh::new(region, grid)?) };
        Ok(Support { constraint, membership, part, anchors: OnceLock::new() })
    }

    /// The part of the support in which a further condition holds; it may be empty.
    pub(crate) fn within(&self, condition: &Formula) -> Result<Support, DensityError> {
        let formula = self.constraint.formula.clone() & condition.clone();
        let constraint = Constraint { formula, ..self.constraint.clone() };
        Support::new(&Region::new(&constraint)?, self.grid())
    }

    /// The same elements under a further condition on Boolean variables.
    pub(crate) fn with_assignments(&self, condition: &Formula) -> Result<Support, DensityError> {
        let formula = self.constraint.formula.clone() & condition.clone();
        let constraint = Constraint { formula, ..self.constraint.clone() };
        let membership = constraint.membership()?;
        Ok(Support { constraint, membership, part: self.part.clone(), anchors: OnceLock::new() })
    }

    /// Elements of this support on which a stronger constraint over the reals holds.
    pub(crate) fn of_elements(constraint: Constraint, mesh: Mesh) -> Result<Support, DensityError> {
        let membership = constraint.membership()?;
        let part = Part { assignment: vec![None; constraint.booleans.len()], mesh: Arc::new(mesh) };
        Ok(Support { constraint, membership, part, anchors: OnceLock::new() })
    }

    /// The constraint that the support satisfies.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The exact test of whether a point satisfies the constraint.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// The box around the region, cut into bins.
    pub fn grid(&self) -> &Arc<Grid> {
        &self.mesh().grid
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.constraint.reals.len()
    }

    /// The parts that the support consists of.
    pub fn parts(&self) -> &[Part] {
        std::slice::from_ref(&self.part)
    }

    /// The mesh of the only part. Whoever learns to work with several parts asks [`Support::parts`] instead.
    pub(crate) fn mesh(&self) -> &Arc<Mesh> {
        &self.part.mesh
    }

    /// The number of convex cells that the region was cut into.
    pub fn cells(&self) -> usize {
        self.parts().iter().map(|part| part.mesh.cells).sum()
    }

    /// The number of boxes and simplices that the cells were cut into.
    pub fn elements(&self) -> usize {
        self.parts().iter().map(|part| part.mesh.elements.len()).sum()
    }

    /// For each element a point of the constraint with float64 coordinates, in the element or next to it; `None` where
    /// no such point was found.
    pub(crate) fn anchors(&self) -> &[Option<Vec<f64>>] {
        // Not in parallel: while it waits, a thread might be given other work that asks for the anchors, and wait for
        // itself.
        self.anchors.get_or_init(|| self.mesh().elements.iter().map(|element| self.anchor(element)).collect())
    }

    fn anchor(&self, element: &Element) -> Option<Vec<f64>> {
        let n = self.dimension();
        let (mut t, mut point) = (element.shape.centre(), vec![0.0; n]);
        let grid = self.grid();
        grid.point_at(&element.bin, &t, &mut point);
        if self.membership.contains(&point) {
            return Some(point);
        }
        // The centre lies on an excluded hyperplane, or few float64 points lie in the element: try random points.
        let mut stream = Stream::new(0, 0);
        (0..256).find_map(|_| {
            let s: Vec<f64> = (0..n).map(|_| stream.unit()).collect();
            element.shape.map(&s, &mut t);
            grid.point_at(&element.bin, &t, &mut point);
            self.membership.contains(&point).then(|| point.clone())
        })
    }
}
