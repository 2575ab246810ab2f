//! Flats: constraints whose points all satisfy some equalities, such as shares that add up to 1.
//!
//! Such a region has no volume, but it is a full-dimensional region in fewer coordinates: the equalities are solved for
//! some variables, which depend on the others, and what remains of the constraint is an ordinary one over the *free*
//! variables. Everything about it is computed there. Lengths, areas and volumes in the space of all variables are the
//! *surface measure*: volumes of free coordinates times a constant factor (see [`Chart`]).
//!
//! ```
//! use pal::{formula::reals, region::Region};
//! let [a, b, c] = reals(["a", "b", "c"]);
//! let shares = (&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0);
//! let flat = Region::new(&shares.into())?.flat()?.expect("all points satisfy an equality");
//! assert_eq!(flat.to_string(), "flat of dimension 2 in 3 variables, free: a, b");
//! let measure = flat.surface_measure()?;
//! assert_eq!(measure.free_volume.to_string(), "1/2");
//! assert_eq!(measure.square_factor.to_string(), "3");
//! assert!((measure.value() - 3f64.sqrt() / 2.0).abs() < 1e-15);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chart;
mod hull;
mod membership;

use std::fmt;
use std::sync::Arc;

pub use chart::{Chart, DependentVariable};
use hull::{Equalities, equalities_of_faces, independent};
pub use membership::RegionMembership;

use super::{Region, RegionError, Unbounded};
use crate::formula::{Constraint, Formula, Linear, Var};
use crate::number::{self, Rational};

/// Why a region without volume is not a flat, or not one with the free variables that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlatError {
    /// Parts of the same dimension lie in different flats.
    #[error(
        "the region has no volume, and its parts of dimension {dimension} do not lie in one flat: one part lies in \
         {first}, another in {second}. Keep one of them, or give the parts volume by inequalities"
    )]
    Apart {
        /// The dimension of the parts.
        dimension: usize,
        /// The equalities of one part.
        first: String,
        /// The equalities of another part.
        second: String,
    },
    /// The search for the parts of a region without volume was given up.
    #[error(
        "the region has no volume, and the equalities that hold on it were not found within the limit of the search; \
         write them as equalities, such as x + y = 1"
    )]
    Undecided,
    /// The variables that were asked for cannot be the free ones.
    #[error("{0}")]
    Free(String),
    /// What remains of the constraint cannot be turned into a region.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// A region of lower dimension than there are variables, in the free coordinates of a chart.
#[derive(Clone, Debug)]
pub struct Flat {
    constraint: Constraint,
    chart: Arc<Chart>,
    region: Region,
}

/// The surface measure of a flat: `free_volume * sqrt(square_factor)`, which is irrational in general.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfaceMeasure {
    /// The exact volume in the free coordinates.
    pub free_volume: Rational,
    /// The exact square of the factor.
    pub square_factor: Rational,
}

impl SurfaceMeasure {
    /// The surface measure in float64.
    pub fn value(&self) -> f64 {
        number::to_f64(&self.free_volume) * number::to_f64(&self.square_factor).sqrt()
    }
}

impl Flat {
    /// The constraint over all variables.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// How the free coordinates determine all coordinates.
    pub fn chart(&self) -> &Arc<Chart> {
        &self.chart
    }

    /// What remains of the constraint over the free variables: a region with volume, unless the flat is a point.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The number of free variables.
    pub fn dimension(&self) -> usize {
        self.chart.dimension()
    }

    /// The region over all variables, with the free variables of this flat.
    pub fn whole(self: &Arc<Self>) -> Result<Region, RegionError> {
        Ok(Region { chosen: Some(self.clone()), ..Region::new(&self.constraint)? })
    }

    /// The surface measure; 1 for a point.
    pub fn surface_measure(&self) -> Result<SurfaceMeasure, Unbounded> {
        let free_volume = match self.dimension() {
            0 => Rational::ONE,
            _ => self.region.exact_volume().map_err(|ray| self.lifted(ray))?,
        };
        Ok(SurfaceMeasure { free_volume, square_factor: self.chart.square_factor().clone() })
    }

    /// A direction of free coordinates as one of all coordinates.
    pub fn lifted(&self, ray: Unbounded) -> Unbounded {
        let mut direction = vec![Rational::ZERO; self.chart.variables().len()];
        self.chart.free().iter().zip(&ray.direction).for_each(|(position, d)| direction[*position] = d.clone());
        for dependent in self.chart.dependents() {
            let terms = dependent.coefficients.iter().zip(&ray.direction);
            direction[dependent.position] = terms.fold(Rational::ZERO, |sum, (a, d)| sum + a * d);
        }
        Unbounded { variables: self.chart.variables().to_vec(), direction }
    }
}

impl fmt::Display for Flat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize| if number == 1 { "1 variable".to_string() } else { format!("{number} variables") };
        write!(f, "flat of dimension {} in {}", self.dimension(), count(self.chart.variables().len()))?;
        let free: Vec<String> = self.chart.free_variables().iter().map(Var::to_string).collect();
        if free.is_empty() { Ok(()) } else { write!(f, ", free: {}", free.join(", ")) }
    }
}

impl Region {
    /// Whether the region has a cell, and with it a volume, be it infinite.
    pub fn has_volume(&self) -> bool {
        self.cells().next().is_some()
    }

    /// The flat that the region is, if it has no volume and is not empty. All of its parts of largest dimension must lie
    /// in one flat; parts of smaller dimension have no surface measure and do not count.
    ///
    /// The variables that are declared first are free where that is possible; [`Region::with_free`] chooses others.
    pub fn flat(&self) -> Result<Option<Arc<Flat>>, FlatError> {
        match &self.chosen {
            Some(flat) => Ok(Some(flat.clone())),
            None if self.has_volume() => Ok(None),
            None => self.flat_without_volume(),
        }
    }

    /// Like [`Region::flat`], for a region that is known to have no cells.
    pub(crate) fn flat_without_volume(&self) -> Result<Option<Arc<Flat>>, FlatError> {
        if let Some(flat) = &self.chosen {
            return Ok(Some(flat.clone()));
        }
        let Some(rows) = equalities(&self.constraint)? else { return Ok(None) };
        let order: Vec<usize> = (0..self.dimension()).collect();
        Ok(flat_of(&self.constraint, &rows, &order)?.map(Arc::new))
    }

    /// The same region with other free variables. All of its points must satisfy equalities, and as many variables as
    /// the flat has dimensions must be named.
    ///
    /// ```
    /// use pal::{formula::reals, region::Region};
    /// let [a, b, c] = reals(["a", "b", "c"]);
    /// let shares = (&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0);
    /// let region = Region::new(&shares.into())?.with_free(&["a", "c"])?;
    /// assert_eq!(region.flat()?.unwrap().to_string(), "flat of dimension 2 in 3 variables, free: a, c");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_free(&self, names: &[&str]) -> Result<Region, FlatError> {
        let variables = &self.constraint.reals;
        let mut wanted = Vec::new();
        for name in names {
            match variables.iter().position(|var| var.name() == *name) {
                None => {
                    let known: Vec<&str> = variables.iter().map(Var::name).collect();
                    let message = format!("there is no variable `{name}` to be free; there is {}", known.join(", "));
                    return Err(FlatError::Free(message));
                }
                Some(j) if wanted.contains(&j) => {
                    return Err(FlatError::Free(format!("`{name}` is named twice among the free variables")));
                }
                Some(j) => wanted.push(j),
            }
        }
        let full =
            || FlatError::Free("no equality holds on the whole region, so that all variables are free".to_string());
        if self.has_volume() {
            return Err(full());
        }
        let rows = equalities(&self.constraint)?.ok_or_else(|| {
            FlatError::Free("the region is empty, so that there is nothing to choose free variables for".to_string())
        })?;
        // Those that are wanted come first and are solved for last.
        let others = (0..variables.len()).filter(|j| !wanted.contains(j));
        let order: Vec<usize> = wanted.iter().copied().chain(others).collect();
        let flat = flat_of(&self.constraint, &rows, &order)?.ok_or_else(full)?;
        let chart = flat.chart();
        if let Some(j) = wanted.iter().find(|j| !chart.free().contains(j)) {
            let dependent = chart.dependents().iter().find(|dependent| dependent.position == *j);
            let image = dependent.map(|dependent| chart.image(dependent).to_string()).unwrap_or_default();
            return Err(FlatError::Free(format!(
                "{} cannot all be free: {} = {image} holds on the whole region",
                names.join(", "),
                variables[*j]
            )));
        }
        if wanted.len() != chart.dimension() {
            return Err(FlatError::Free(format!(
                "the region is a flat of dimension {}: name as many free variables, not {}",
                chart.dimension(),
                wanted.len()
            )));
        }
        Ok(Region { chosen: Some(Arc::new(flat)), ..self.clone() })
    }
}

/// The equalities that a formula implies, as far as its structure shows them: terms without constant and their values.
/// `None` if that shows that nothing satisfies it.
pub(crate) fn visible_equalities(formula: &Formula) -> Option<Vec<(Linear, Rational)>> {
    let variables = formula.real_variables();
    let rows = hull::visible_equalities(formula, &variables)?;
    let term = |row: &Vec<Rational>| Linear::new(variables.iter().cloned().zip(row.iter().cloned()), Rational::ZERO);
    Some(rows.iter().map(|row| (term(row), row[variables.len()].clone())).collect())
}

/// The constraint in the free coordinates of the chart that solves equalities; `None` if they contradict each other.
fn flat_of(constraint: &Constraint, rows: &Equalities, order: &[usize]) -> Result<Option<Flat>, FlatError> {
    let Some(chart) = Chart::solve(&constraint.reals, rows, order) else { return Ok(None) };
    let formula = constraint.formula.substitute(&chart.substitution());
    let remaining = Constraint { formula, reals: chart.free_variables(), booleans: constraint.booleans.clone() };
    let region = Region::new(&remaining)?;
    Ok(Some(Flat { constraint: constraint.clone(), chart: Arc::new(chart), region }))
}

/// The equalities that hold on all parts of largest dimension of a constraint without volume; `None` if nothing
/// satisfies it.
fn equalities(constraint: &Constraint) -> Result<Option<Equalities>, FlatError> {
    let n = constraint.reals.len();
    let order: Vec<usize> = (0..n).collect();
    let mut rows: Equalities = Vec::new();
    loop {
        let Some(flat) = flat_of(constraint, &rows, &order)? else { return Ok(None) };
        let remaining = flat.region().constraint();
        if remaining.reals.is_empty() {
            // A point: nothing is left to be found, and without Boolean variables the formula is a truth value.
            return Ok((!remaining.formula.is_false()).then_some(rows));
        }
        let visible = hull::visible_equalities(&remaining.formula, &remaining.reals);
        let more = match visible {
            None => return Ok(None),
            Some(more) if !more.is_empty() => more,
            Some(_) if flat.region().has_volume() => return Ok(Some(rows)),
            Some(_) => match equalities_of_faces(flat.region())? {
                None => return Ok(None),
                Some(more) if more.is_empty() => return Ok(Some(rows)),
                Some(more) => more,
            },
        };
        // In terms of all variables: the others do not occur.
        rows.extend(more.into_iter().map(|row| {
            let mut lifted = vec![Rational::ZERO; n + 1];
            flat.chart().free().iter().zip(&row).for_each(|(position, a)| lifted[*position] = a.clone());
            lifted[n] = row[row.len() - 1].clone();
            lifted
        }));
        match independent(&rows, n) {
            Some(reduced) => rows = reduced,
            None => return Ok(None),
        }
    }
}
