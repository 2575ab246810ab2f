//! Families and densities on flats: where points are translated between all coordinates and free ones.
//!
//! A kind of family is compiled in the free coordinates of a [`Flat`](crate::region::Flat), where its constraint is an ordinary one, and knows
//! nothing of the other variables. So do the queries. The translation is done once, at the boundary: in [`Family`] and
//! [`Density`], whose methods take points and formulas over all variables, and in
//!
//! ```text
//! log p(y)  =  log p(free coordinates of y)  -  log sqrt(det(N^T N)),
//! ```
//!
//! which makes densities per unit of surface measure (see [`Chart`]). A point belongs to the constraint if its free
//! coordinates satisfy what remains of it, exactly, and its dependent ones are their image up to rounding.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Density, DensityError, Family, Precision};
use crate::formula::{Constraint, Formula, Var};
use crate::region::{Chart, Region};

impl Family {
    /// Compiles a family in the free coordinates of a region without volume, if equalities hold on all of it.
    pub(crate) fn on_flat<E: From<DensityError>>(
        region: &Region,
        compile: impl FnOnce(&Region) -> Result<Family, E>,
    ) -> Result<Family, E> {
        let Some(flat) = region.flat_without_volume().map_err(DensityError::from)? else {
            return Err(DensityError::NoVolume(region.status_without_volume().name()).into());
        };
        if flat.dimension() == 0 {
            return Err(DensityError::Point.into());
        }
        // A direction of free coordinates is shown as one of all coordinates.
        if let Err(ray) = flat.region().bounding_box() {
            return Err(DensityError::from(flat.lifted(ray)).into());
        }
        Ok(compile(flat.region())?.with_flat(Some(flat)))
    }

    /// The constraint over all variables.
    pub fn constraint(&self) -> &Constraint {
        match self.flat() {
            Some(flat) => flat.constraint(),
            None => self.support().constraint(),
        }
    }

    /// All variables, in the order of the coordinates of points.
    pub fn variables(&self) -> &[Var] {
        &self.constraint().reals
    }

    /// The same densities over the free variables alone, per unit of volume of free coordinates; the family itself where
    /// its constraint has no equalities. Layers compute with it.
    ///
    /// ```
    /// use pal::density::{Family, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [a, b, c] = reals(["a", "b", "c"]);
    /// let shares = (&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0);
    /// let family = Family::new(&Region::new(&shares.into())?, &SumOfSquaresSettings::default().into())?;
    /// let uniform = vec![0.0; family.num_params()];
    /// // The triangle has the area sqrt(3) / 2, and free coordinates the area 1 / 2.
    /// assert!((family.log_prob(&uniform, &[0.25, 0.25, 0.5])?[0] - (2.0 / 3f64.sqrt()).ln()).abs() < 0.2);
    /// let free = family.in_free_coordinates();
    /// assert!((free.log_prob(&uniform, &[0.25, 0.25])?[0] - 2f64.ln()).abs() < 0.2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_free_coordinates(&self) -> Family {
        self.clone().with_flat(None)
    }

    /// Where the constraint has equalities: the family in free coordinates, and points in them.
    pub(super) fn in_free_points(&self, points: &[f64]) -> Result<Option<(Family, Vec<f64>)>, DensityError> {
        let Some(flat) = self.flat() else { return Ok(None) };
        self.check_points(points)?;
        Ok(Some((self.in_free_coordinates(), flat.chart().restrict(points, f64::EPSILON))))
    }

    /// The logarithm of the measure of the box: its volume, or its surface measure on a flat.
    pub fn log_box_measure(&self) -> f64 {
        let volume = self.support().grid().log_volume();
        self.flat().map_or(volume, |flat| volume + flat.chart().log_factor())
    }

    /// Log-densities per unit of surface measure, from those per unit of volume of free coordinates.
    pub(super) fn per_surface(&self, log_prob: Vec<f64>) -> Vec<f64> {
        match self.flat() {
            None => log_prob,
            Some(flat) => shifted(log_prob, flat.chart()),
        }
    }

    /// The same in the precision of a fused pass.
    pub(super) fn rows_per_surface<T: Precision>(&self, log_prob: Vec<T>) -> Vec<T> {
        let factor = self.flat().map_or(0.0, |flat| flat.chart().log_factor());
        log_prob.into_iter().map(|log_prob| T::from_f64(log_prob.to_f64() - factor)).collect()
    }

    /// A formula over all variables as one over the free variables.
    pub(crate) fn in_free_variables<'f>(&self, formula: &'f Formula) -> Cow<'f, Formula> {
        in_free_variables(self.flat().map(|flat| flat.chart()), formula)
    }

    /// Points with all coordinates, from points in free ones.
    pub(crate) fn filled(&self, points: Vec<f64>) -> Vec<f64> {
        match self.flat() {
            None => points,
            Some(flat) => flat.chart().fill(&points),
        }
    }
}

impl Density {
    /// The constraint over all variables.
    pub fn constraint(&self) -> Cow<'_, Constraint> {
        let remaining = self.support.constraint();
        let Some(chart) = &self.chart else { return Cow::Borrowed(remaining) };
        let formula = chart.equalities() & remaining.formula.clone();
        Cow::Owned(Constraint { formula, reals: chart.variables().to_vec(), booleans: Vec::new() })
    }

    /// All variables, in the order of the coordinates of points.
    pub fn variables(&self) -> &[Var] {
        self.chart.as_ref().map_or(&self.support.constraint().reals, |chart| chart.variables())
    }

    /// How free coordinates determine all coordinates, where the constraint has equalities.
    pub fn chart(&self) -> Option<&Arc<Chart>> {
        self.chart.as_ref()
    }

    /// The same density over the free variables alone, per unit of volume of free coordinates; the density itself where
    /// its constraint has no equalities.
    pub fn in_free_coordinates(&self) -> Density {
        Density { chart: None, ..self.clone() }
    }

    /// A formula over all variables as one over the free variables.
    pub(crate) fn in_free_variables<'f>(&self, formula: &'f Formula) -> Cow<'f, Formula> {
        in_free_variables(self.chart.as_ref(), formula)
    }

    /// Points with all coordinates, from points in free ones.
    pub(crate) fn filled(&self, points: Vec<f64>) -> Vec<f64> {
        match &self.chart {
            None => points,
            Some(chart) => chart.fill(&points),
        }
    }
}

/// Log-densities per unit of surface measure.
pub(super) fn shifted(mut log_prob: Vec<f64>, chart: &Chart) -> Vec<f64> {
    let factor = chart.log_factor();
    log_prob.iter_mut().for_each(|log_prob| *log_prob -= factor);
    log_prob
}

fn in_free_variables<'f>(chart: Option<&Arc<Chart>>, formula: &'f Formula) -> Cow<'f, Formula> {
    match chart {
        None => Cow::Borrowed(formula),
        Some(chart) => Cow::Owned(formula.substitute(&chart.substitution())),
    }
}
