//! The density of the remaining variables given values of some real and Boolean ones.

use std::sync::Arc;

use super::density::MixedDensity;
use super::diagram::Odds;
use super::support::{MixedSupport, values};
use crate::density::{DensityError, Support};
use crate::formula::{Constraint, Var};
use crate::query::{QueryError, SlicedSupport, fixed_coordinates, given_chart};
use crate::region::Region;

impl MixedDensity {
    /// The density of the remaining variables given exact values of some real and some Boolean ones. At least one real
    /// variable must stay free; for values of all of them, see [`MixedDensity::table_at`].
    ///
    /// ```
    /// # use pal::density::HistogramSettings;
    /// # use pal::formula::{Formula, reals};
    /// # use pal::{mixed::MixedFamily, region::Region};
    /// let [x] = reals(["x"]);
    /// let wet = Formula::boolean("wet");
    /// let phi = x.between(0, 4) & (!wet | x.le(1));
    /// let family = MixedFamily::new(&Region::new(&phi.into())?, &HistogramSettings::default().into())?;
    /// let density = family.density(&vec![0.0; family.num_params()])?;
    /// assert_eq!(density.given(&[], &[("wet", true)])?.probability(&x.le(1))?, 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn given(&self, reals: &[(&str, f64)], booleans: &[(&str, bool)]) -> Result<MixedDensity, QueryError> {
        let density = self.given_booleans(booleans)?;
        let density = if reals.is_empty() { density } else { density.given_reals(reals)? };
        density.normalised().ok_or_else(|| {
            let reals = reals.iter().map(|(name, value)| format!("{name} = {value}"));
            let text: Vec<String> =
                reals.chain(booleans.iter().map(|(name, value)| format!("{name} = {value}"))).collect();
            QueryError::NoDensity(text.join(", "))
        })
    }

    fn given_booleans(&self, booleans: &[(&str, bool)]) -> Result<MixedDensity, QueryError> {
        if booleans.is_empty() {
            return Ok(self.clone());
        }
        let names: Vec<&str> = booleans.iter().map(|(name, _)| *name).collect();
        let positions = self.positions(&names)?;
        let constraint = self.support.base().constraint();
        let vars: Vec<Var> = positions.iter().map(|at| constraint.booleans[*at].clone()).collect();
        let fixed: Vec<bool> = booleans.iter().map(|(_, value)| *value).collect();
        let kept: Vec<usize> = (0..constraint.booleans.len()).filter(|at| !positions.contains(at)).collect();
        let smaller = Constraint {
            formula: constraint.formula.substitute(&values(&vars, &fixed)),
            reals: constraint.reals.clone(),
            booleans: kept.iter().map(|at| constraint.booleans[*at].clone()).collect(),
        };
        let region = Region::new(&smaller).map_err(DensityError::from)?;
        let base = Arc::new(Support::new(&region, self.support.base().grid())?);
        let support = MixedSupport::new(base, self.support.chart().cloned())?;
        let weight = |(weight, odds): (&f64, &Odds)| {
            let factors = positions.iter().zip(&fixed).map(|(at, value)| odds.of(*at, *value).ln());
            weight + factors.sum::<f64>()
        };
        let log_weights = self.log_weights.iter().zip(&*self.odds).map(weight).collect();
        let keep = |odds: &Odds| Odds {
            yes: kept.iter().map(|at| odds.yes[*at]).collect(),
            no: kept.iter().map(|at| odds.no[*at]).collect(),
        };
        let odds = Arc::new(self.odds.iter().map(keep).collect());
        Ok(MixedDensity::new(Arc::new(support), self.functions.clone(), log_weights, odds))
    }

    fn given_reals(&self, reals: &[(&str, f64)]) -> Result<MixedDensity, QueryError> {
        let chart = match self.support.chart() {
            None => None,
            Some(chart) => Some(Arc::new(given_chart(chart, reals)?)),
        };
        let slice = SlicedSupport::new(self.support.base(), reals)?;
        let functions = fixed_coordinates(self.functions.clone(), &slice, self.support.base().dimension())?;
        let support = Arc::new(MixedSupport::new(slice.support().clone(), chart)?);
        Ok(MixedDensity::new(support, functions, self.log_weights.clone(), self.odds.clone()))
    }
}
