//! One mixed density: log-densities, masses, probabilities, conditioning and tables of Boolean variables.
//!
//! On a part g the reals have an ordinary density, the one with the weights `exp(l_m) P_m(A_g)` on the mesh of the part.
//! Queries are sums of those of such densities.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::diagram::{DiagramBuilder, Odds};
use super::support::MixedSupport;
use crate::density::cubature::MeshCubature;
use crate::density::weights::log_sum_exp;
use crate::density::{BinIndex, ChebyshevSeries, Density, Grid, Support};
use crate::formula::{Formula, Linear, Substitution};
use crate::number;
use crate::query::QueryError;

/// One density over real and Boolean variables: the member of a mixed family with one parameter vector, or what
/// conditioning makes of it.
#[derive(Clone)]
pub struct MixedDensity {
    pub(super) support: Arc<MixedSupport>,
    pub(super) functions: Arc<dyn ChebyshevSeries>,
    /// The logarithms of the weights of the components.
    pub(super) log_weights: Vec<f64>,
    /// For each component the probabilities of the Boolean variables.
    pub(super) odds: Arc<Vec<Odds>>,
    /// See [`MixedDensity::integrals`]; computed when first needed.
    integrals: OnceLock<Vec<Vec<f64>>>,
}

/// The probabilities of all values of some Boolean variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The variables, in the order that was asked for.
    pub variables: Vec<String>,
    /// One row of values for each combination, in the order of counting with the first variable as the highest digit.
    pub values: Vec<Vec<bool>>,
    /// The probability of each row; they sum to 1.
    pub probabilities: Vec<f64>,
}

/// The largest number of variables of a table.
const MAX_TABLE: usize = 16;

/// The number of points per parallel task.
const BLOCK: usize = 2048;

impl MixedDensity {
    pub(super) fn new(
        support: Arc<MixedSupport>,
        functions: Arc<dyn ChebyshevSeries>,
        log_weights: Vec<f64>,
        odds: Arc<Vec<Odds>>,
    ) -> MixedDensity {
        MixedDensity { support, functions, log_weights, odds, integrals: OnceLock::new() }
    }

    /// What the density lives on.
    pub fn support(&self) -> &Arc<MixedSupport> {
        &self.support
    }

    /// The log-density of each mixed point, given row by row: minus infinity outside the constraint and where the
    /// density is 0. A value of a Boolean variable other than 0 and 1 is an error.
    pub fn log_prob(&self, points: &[f64]) -> Result<Vec<f64>, QueryError> {
        let (reals, booleans) = self.support.split(points)?;
        Ok(self.log_prob_of(&reals, &booleans))
    }

    /// Log-densities from free coordinates.
    pub(super) fn log_prob_of(&self, reals: &[f64], booleans: &[bool]) -> Vec<f64> {
        let (n, k) = (self.support.base().dimension(), self.support.booleans().len());
        let grid = self.support.base().grid();
        let log_volume = self.support.log_measure();
        let mut result = vec![f64::NEG_INFINITY; reals.len() / n];
        result.par_chunks_mut(BLOCK).enumerate().for_each(|(block, out)| {
            crate::interrupt::checkpoint();
            let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
            for (at, out) in out.iter_mut().enumerate() {
                let at = block * BLOCK + at;
                let (point, assignment) = (&reals[at * n..(at + 1) * n], &booleans[at * k..(at + 1) * k]);
                if !self.support.base().membership().contains_with(point, assignment) {
                    continue;
                }
                grid.locate(point, &mut bin, &mut t);
                if Grid::in_bin(&t) {
                    let logs = (0..self.log_weights.len()).map(|m| self.log_term(m, &bin, &t, assignment));
                    *out = log_sum_exp(logs) - log_volume;
                }
            }
        });
        result
    }

    /// The logarithm of what one component contributes, relative to the volume of the box.
    fn log_term(&self, m: usize, bin: &[BinIndex], t: &[f64], assignment: &[bool]) -> f64 {
        match self.log_weights[m] + self.odds[m].log_of(assignment) {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            weight => weight + self.functions.log_value(m, bin, t),
        }
    }

    /// For each part the integrals of all components over its mesh, by cubature of positive terms.
    fn integrals(&self) -> &[Vec<f64>] {
        if let Some(known) = self.integrals.get() {
            return known;
        }
        // Computed before the cell is locked: a thread that waits for others may be given work that asks for the same.
        let all = self.support.parts.iter().map(|part| component_integrals(&*self.functions, &part.support));
        let all = all.collect();
        self.integrals.get_or_init(|| all)
    }

    /// For each part and component the mass, given values of some Boolean variables: the joint probability of the part,
    /// the component and these values.
    pub(super) fn masses(&self, fixed: &[Option<bool>]) -> Vec<Vec<f64>> {
        let of_component = |m: usize| {
            let values = fixed.iter().enumerate().filter_map(|(variable, value)| Some((variable, (*value)?)));
            let factor: f64 = values.map(|(variable, value)| self.odds[m].of(variable, value)).product();
            (self.support.diagram.probabilities(&self.odds[m], fixed), factor * self.log_weights[m].exp())
        };
        let components: Vec<_> = (0..self.log_weights.len()).map(of_component).collect();
        let parts = self.support.parts.iter().zip(self.integrals());
        let mass = |(part, integrals): (&super::support::MixedPart, &Vec<f64>)| {
            let terms = components.iter().zip(integrals);
            let product = |((sets, factor), integral): (&(Vec<f64>, f64), &f64)| {
                let set = sets[part.assignments.position()];
                if *integral == 0.0 || set == 0.0 { 0.0 } else { factor * set * integral }
            };
            terms.map(product).collect()
        };
        parts.map(mass).collect()
    }

    /// The integral of the density over its support: 1, before it was renormalised the mass of a condition.
    pub(super) fn total(&self) -> f64 {
        // Adding to 0 leaves no -0 behind where there are no parts.
        0.0 + self.masses(&[]).iter().flatten().sum::<f64>()
    }

    /// The same functions and weights on another support or with other factors, normalised; `None` if there is no mass.
    pub(super) fn normalised(mut self) -> Option<MixedDensity> {
        let total = self.total();
        self.log_weights.iter_mut().for_each(|w| *w -= total.ln());
        (total >= f64::MIN_POSITIVE && total.is_finite()).then_some(self)
    }

    /// The density with the same functions and weights on a part of its support, not normalised.
    pub(super) fn on(&self, support: Arc<MixedSupport>) -> MixedDensity {
        MixedDensity::new(support, self.functions.clone(), self.log_weights.clone(), self.odds.clone())
    }

    pub(super) fn restricted(&self, condition: &Formula) -> Result<MixedDensity, QueryError> {
        Ok(self.on(Arc::new(self.support.within(condition)?)))
    }

    /// The probability of a condition on real and Boolean variables.
    pub fn probability(&self, condition: &Formula) -> Result<f64, QueryError> {
        Ok(self.restricted(condition)?.total().clamp(0.0, 1.0))
    }

    /// The density given that a condition on real and Boolean variables holds: zero elsewhere.
    pub fn condition(&self, condition: &Formula) -> Result<MixedDensity, QueryError> {
        self.restricted(condition)?.normalised().ok_or(QueryError::Impossible)
    }

    /// The positions of Boolean variables by name.
    pub(super) fn positions(&self, names: &[&str]) -> Result<Vec<usize>, QueryError> {
        let mut positions = Vec::new();
        for name in names {
            let at = self.support.boolean(name).ok_or_else(|| {
                let names: Vec<String> = self.support.booleans().iter().map(|var| format!("`{var}`")).collect();
                QueryError::Variables(format!("there is no Boolean variable `{name}`; there is {}", names.join(", ")))
            })?;
            if positions.contains(&at) {
                return Err(QueryError::Variables(format!("`{name}` is named twice")));
            }
            positions.push(at);
        }
        if positions.len() > MAX_TABLE {
            return Err(QueryError::Variables(format!(
                "a table of {} variables has too many rows; ask for at most {MAX_TABLE}",
                positions.len()
            )));
        }
        Ok(positions)
    }

    /// The joint probabilities of all values of some Boolean variables.
    ///
    /// ```
    /// # use pal::density::HistogramSettings;
    /// # use pal::formula::{Formula, reals};
    /// # use pal::{mixed::MixedFamily, region::Region};
    /// let [x] = reals(["x"]);
    /// let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    /// let phi = x.between(0, 1) & (a | b);
    /// let family = MixedFamily::new(&Region::new(&phi.into())?, &HistogramSettings::default().into())?;
    /// let table = family.density(&vec![0.0; family.num_params()])?.table(&["a", "b"])?;
    /// assert_eq!(table.probabilities[0], 0.0);
    /// assert!(table.probabilities[1..].iter().all(|p| (p - 1.0 / 3.0).abs() < 1e-14));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn table(&self, names: &[&str]) -> Result<Table, QueryError> {
        let positions = self.positions(names)?;
        let mass = |values: &Vec<bool>| {
            let mut fixed = vec![None; self.support.booleans().len()];
            positions.iter().zip(values).for_each(|(at, value)| fixed[*at] = Some(*value));
            self.masses(&fixed).iter().flatten().sum::<f64>()
        };
        Ok(Table::new(names, mass))
    }

    /// The probabilities of all values of some Boolean variables given the values of all real ones: what a classifier
    /// would say.
    pub fn table_at(&self, point: &[f64], names: &[&str]) -> Result<Table, QueryError> {
        let positions = self.positions(names)?;
        let all = self.support.dimension();
        if point.len() != all {
            return Err(QueryError::Length { what: "values of real variables", given: point.len(), wanted: all });
        }
        let restricted;
        let (whole, point) = match self.support.chart() {
            None => (point, point),
            Some(chart) => {
                restricted = chart.restrict(point, f64::EPSILON);
                (point, &restricted[..])
            }
        };
        let nowhere = || {
            let reals = self.support.constraint().reals.iter().zip(whole);
            QueryError::NoDensity(reals.map(|(var, x)| format!("{var} = {x}")).collect::<Vec<_>>().join(", "))
        };
        if self.support.chart().is_some() && point.iter().any(|x| x.is_nan()) {
            return Err(nowhere());
        }
        let constraint = self.support.base().constraint();
        let n = point.len();
        let mut exact = Substitution::new();
        for (var, value) in constraint.reals.iter().zip(point) {
            let number = number::from_f64(*value).map_err(|_| QueryError::Value(var.clone(), *value))?;
            exact = exact.real(var.name(), Linear::from(number));
        }
        let mut builder = DiagramBuilder::new(constraint.booleans.len())?;
        let set = builder.of_formula(&constraint.formula.substitute(&exact), &constraint.booleans)?;
        let diagram = builder.finish();
        let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
        self.support.base().grid().locate(point, &mut bin, &mut t);
        let inside = Grid::in_bin(&t);
        let logs: Vec<f64> = (0..self.log_weights.len())
            .map(|m| match self.log_weights[m] {
                weight if inside && weight > f64::NEG_INFINITY => weight + self.functions.log_value(m, &bin, &t),
                _ => f64::NEG_INFINITY,
            })
            .collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mass = |values: &Vec<bool>| {
            let mut fixed = vec![None; constraint.booleans.len()];
            positions.iter().zip(values).for_each(|(at, value)| fixed[*at] = Some(*value));
            let of_component = |m: usize| {
                let factor: f64 =
                    positions.iter().zip(values).map(|(at, value)| self.odds[m].of(*at, *value)).product();
                (logs[m] - largest).exp() * factor * diagram.probabilities(&self.odds[m], &fixed)[set.position()]
            };
            (0..logs.len()).map(of_component).sum::<f64>()
        };
        let table = if largest == f64::NEG_INFINITY { None } else { Some(Table::new(names, mass)) };
        table.filter(|table| table.probabilities.iter().all(|p| p.is_finite())).ok_or_else(nowhere)
    }

    /// The density of the reals on every part with mass, with the probability of the part.
    pub(super) fn part_densities(&self, fixed: &[Option<bool>]) -> Vec<(f64, usize, Density)> {
        let masses = self.masses(fixed);
        let integrals = self.integrals();
        let mut parts = Vec::new();
        for (at, (part, masses)) in self.support.parts.iter().zip(&masses).enumerate() {
            let mass: f64 = masses.iter().sum();
            if mass < f64::MIN_POSITIVE {
                continue;
            }
            let log = |(m, joint): (usize, &f64)| match *joint {
                0.0 => f64::NEG_INFINITY,
                joint => joint.ln() - integrals[at][m].ln() - mass.ln(),
            };
            let log_weights = masses.iter().enumerate().map(log).collect();
            let chart = self.support.chart().cloned();
            parts.push((mass, at, Density::new(part.support.clone(), self.functions.clone(), log_weights, chart)));
        }
        parts
    }
}

impl Table {
    fn new(names: &[&str], mass: impl Fn(&Vec<bool>) -> f64) -> Table {
        let count = names.len();
        let row = |bits: usize| (0..count).map(|k| bits >> (count - 1 - k) & 1 == 1).collect();
        let values: Vec<Vec<bool>> = (0..1usize << count).map(row).collect();
        let masses: Vec<f64> = values.iter().map(mass).collect();
        let total: f64 = masses.iter().sum();
        let probabilities = masses.iter().map(|mass| mass / total).collect();
        Table { variables: names.iter().map(|name| name.to_string()).collect(), values, probabilities }
    }
}

/// The integrals of all components over the elements of a support, relative to the volume of the box.
fn component_integrals(functions: &dyn ChebyshevSeries, support: &Support) -> Vec<f64> {
    let cubature = MeshCubature::new(support.dimension(), functions.degree());
    let sums: Vec<Vec<f64>> = support
        .mesh()
        .elements
        .par_iter()
        .map(|element| {
            let (mut values, mut sums) = (vec![0.0; functions.components()], vec![0.0; functions.components()]);
            cubature.visit(element, |t, weight| {
                functions.values(&element.bin, t, &mut values);
                sums.iter_mut().zip(&values).for_each(|(sum, value)| *sum += weight * value);
            });
            sums
        })
        .collect();
    let mut total = vec![0.0; functions.components()];
    sums.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(sum, x)| *sum += x));
    total
}
