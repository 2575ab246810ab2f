//! The queries of one density about its shape: marginals, distribution function, entropy and mode.

use super::entropy::{self, Entropy, EntropyOptions};
use super::error::QueryError;
use super::flat::{dependent, not_free};
use super::marginal::Marginal;
use super::marginal::joint::joint_density;
use super::marginal::slices::Slices;
use super::mode::{self, Mode, ModeOptions, ModeProblem};
use crate::density::{Density, DensityError};

impl Density {
    /// The exact marginal density of one variable, with its distribution function and quantiles.
    ///
    /// ```
    /// use pal::density::{Family, Settings, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
    /// let settings = SumOfSquaresSettings { degree: Some(1), components: 1, basis: Default::default(), subset: None };
    /// let family = Family::new(&triangle, &Settings::SumOfSquares(settings))?;
    /// // Uniform on the triangle: x has density 2 (1 - x).
    /// let marginal = family.density(&[0.0; 4])?.marginal("x")?;
    /// assert!((marginal.density(0.25) - 1.5).abs() < 1e-14);
    /// assert!((marginal.quantile(0.75)? - 0.5).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn marginal(&self, variable: &str) -> Result<Marginal, QueryError> {
        if let Some(chart) = &self.chart
            && let Some(dependent) = dependent(chart, variable)
        {
            return self.dependent_marginal(chart, dependent);
        }
        let axis = self.axis(variable)?;
        let slices = Slices::new(self.support.mesh(), axis, self.functions.degree());
        slices.marginal(&*self.functions, &self.weights).ok_or(QueryError::Impossible)
    }

    /// The joint marginal density of some variables at points, which are given row by row in the order of the
    /// variables. With all variables it is the density itself; on a flat the variables must be free, and with all of
    /// these it is the density per unit of volume of free coordinates.
    pub fn marginal_density(&self, variables: &[&str], points: &[f64]) -> Result<Vec<f64>, QueryError> {
        if let Some(chart) = &self.chart {
            if let Some(dependent) = variables.iter().find_map(|name| dependent(chart, name)) {
                return Err(not_free(chart, dependent, "joint marginals are those of free variables"));
            }
            return self.in_free_coordinates().marginal_density(variables, points);
        }
        let axes: Vec<usize> = variables.iter().map(|name| self.axis(name)).collect::<Result<_, _>>()?;
        if let Some(k) = (0..axes.len()).find(|k| axes[..*k].contains(&axes[*k])) {
            return Err(QueryError::Variables(format!("`{}` is named twice", variables[k])));
        }
        if axes.is_empty() || !points.len().is_multiple_of(axes.len()) {
            return Err(DensityError::Points { given: points.len(), variables: variables.join(", ") }.into());
        }
        if axes.len() == self.dimension() {
            let n = axes.len();
            let mut ordered = vec![0.0; points.len()];
            for (from, to) in points.chunks(n).zip(ordered.chunks_mut(n)) {
                axes.iter().zip(from).for_each(|(axis, x)| to[*axis] = *x);
            }
            return Ok(self.log_prob(&ordered).iter().map(|log| log.exp()).collect());
        }
        Ok(joint_density(self.support.mesh(), &*self.functions, &self.weights, &axes, points))
    }

    /// The probability that each of some variables is at most a given value.
    pub fn cdf(&self, values: &[(&str, f64)]) -> Result<f64, QueryError> {
        let mut condition = crate::formula::Formula::yes();
        for (name, value) in values {
            if !self.variables().iter().any(|var| var.name() == *name) {
                self.axis(name)?;
            }
            match *value {
                f64::INFINITY => continue,
                f64::NEG_INFINITY => return Ok(0.0),
                _ => {}
            }
            let bound = crate::number::from_f64(*value)
                .map_err(|_| QueryError::Value(crate::formula::Var::new(name), *value))?;
            condition = condition & crate::formula::real(name).le(bound);
        }
        self.probability(&condition)
    }

    /// The differential entropy in nats, with an estimate of its error.
    pub fn entropy(&self, options: &EntropyOptions) -> Entropy {
        let mut entropy = entropy::entropy(self.support.mesh(), &*self.functions, &self.weights, options);
        if let Some(chart) = &self.chart {
            entropy.value += chart.log_factor();
        }
        entropy
    }

    /// The point of largest density, with an upper bound of the density of all points of the constraint.
    pub fn mode(&self, options: &ModeOptions) -> Result<Mode, QueryError> {
        let membership = self.support.membership();
        let problem = ModeProblem {
            mesh: self.support.mesh(),
            functions: &*self.functions,
            weights: &self.weights,
            contains: &|point| membership.contains(point),
        };
        let mut mode = mode::search(&problem, options).ok_or(QueryError::NoFloat64Point(1.0))?;
        let volume = self.support.grid().log_volume();
        mode.log_density -= volume;
        mode.log_upper -= volume;
        if let Some(chart) = &self.chart {
            mode.log_density -= chart.log_factor();
            mode.log_upper -= chart.log_factor();
            mode.point = chart.fill(&mode.point);
        }
        Ok(mode)
    }
}
