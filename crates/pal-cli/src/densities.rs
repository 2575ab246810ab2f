//! Densities over real variables, on a grid or as kernels, or over real and Boolean ones: commands ask all of them the same
//! questions.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use pal::density::{Density, DensityError, FileError, Model, RegionForms};
use pal::formula::{Constraint, Formula, Var};
use pal::kernel::{KernelFamily, KernelModel};
use pal::mixed::{MixedDensity, MixedModel, Table as ProbabilityTable};
use pal::polynomial::Polynomial;
use pal::query::{Entropy, EntropyOptions, Marginal, Mode, ModeOptions, Sampler};
use pal::region::RegionBatch;
use pal_burn::AnyFamily;
use rayon::prelude::*;

use crate::points::{ColumnKind, PointColumn};

/// A model: a family with rows of parameters, each of which is one density.
pub enum AnyModel {
    Real(Model),
    Mixed(MixedModel),
    Kernel(KernelModel),
}

/// One density.
pub enum AnyDensity {
    Real(Density),
    Mixed(MixedDensity),
    Kernel(Box<KernelMixture>),
}

/// One mixture of kernels.
pub struct KernelMixture {
    family: KernelFamily,
    params: Vec<f64>,
    constraint: Constraint,
}

/// Known values of variables, in the terms of the library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownValues {
    pub reals: Vec<(String, f64)>,
    pub booleans: Vec<(String, bool)>,
}

impl AnyModel {
    pub fn new(family: AnyFamily, params: Vec<f64>) -> Result<AnyModel, DensityError> {
        Ok(match family {
            AnyFamily::Real(family) => AnyModel::Real(Model::new(family, params)?),
            AnyFamily::Mixed(family) => AnyModel::Mixed(MixedModel::new(family, params)?),
        })
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        match self {
            AnyModel::Real(model) => model.to_bytes(),
            AnyModel::Mixed(model) => model.to_bytes(),
            AnyModel::Kernel(model) => model.to_bytes(),
        }
    }

    /// The compiled family; kernels have none.
    pub fn family(&self) -> Option<AnyFamily> {
        match self {
            AnyModel::Real(model) => Some(model.family().clone().into()),
            AnyModel::Mixed(model) => Some(model.family().clone().into()),
            AnyModel::Kernel(_) => None,
        }
    }

    /// The regions of the rows, if each has its own.
    pub fn regions(&self) -> Option<&RegionBatch> {
        match self {
            AnyModel::Real(model) => model.regions().map(RegionForms::regions),
            AnyModel::Mixed(_) => None,
            AnyModel::Kernel(model) => model.regions(),
        }
    }

    /// The model if it is over real variables only, on a grid.
    pub fn as_real(&self) -> Option<&Model> {
        match self {
            AnyModel::Real(model) => Some(model),
            AnyModel::Mixed(_) | AnyModel::Kernel(_) => None,
        }
    }

    pub fn constraint(&self) -> &Constraint {
        match self {
            AnyModel::Real(model) => model.family().constraint(),
            AnyModel::Mixed(model) => model.family().support().constraint(),
            AnyModel::Kernel(model) => model.constraint(),
        }
    }

    pub fn num_params(&self) -> usize {
        match self {
            AnyModel::Real(model) => model.family().num_params(),
            AnyModel::Mixed(model) => model.family().num_params(),
            AnyModel::Kernel(model) => model.family().num_params(),
        }
    }

    pub fn rows(&self) -> usize {
        match self {
            AnyModel::Real(model) => model.rows(),
            AnyModel::Mixed(model) => model.params().len() / model.family().num_params(),
            AnyModel::Kernel(model) => model.rows(),
        }
    }

    /// The parameters of some rows.
    pub fn params(&self, rows: Range<usize>) -> &[f64] {
        let (all, width) = match self {
            AnyModel::Real(model) => (model.params(), model.family().num_params()),
            AnyModel::Mixed(model) => (model.params(), model.family().num_params()),
            AnyModel::Kernel(model) => (model.params(), model.family().num_params()),
        };
        &all[rows.start * width..rows.end * width]
    }

    /// The densities of some rows, given that a condition holds.
    pub fn densities(&self, rows: Range<usize>, condition: Option<&Formula>) -> Result<Vec<AnyDensity>> {
        match self {
            AnyModel::Real(model) => {
                Ok(real_densities(model, rows, condition)?.into_iter().map(AnyDensity::Real).collect())
            }
            AnyModel::Mixed(model) => {
                let (family, params) = (model.family(), self.params(rows.clone()));
                let densities = match condition {
                    None => family.densities(params)?,
                    Some(condition) => {
                        let event = family.event(condition).context("--condition")?;
                        let of = |(row, params)| {
                            let given = event.condition(params).with_context(|| format!("--condition, row {row}"))?;
                            given.into_iter().next().context("one row of parameters makes one density")
                        };
                        rows.zip(params.chunks(family.num_params())).map(of).collect::<Result<_>>()?
                    }
                };
                Ok(densities.into_iter().map(AnyDensity::Mixed).collect())
            }
            AnyModel::Kernel(model) => {
                let mixture = |row: usize| -> Result<AnyDensity> {
                    let mut family = model.row_family(row).clone();
                    if let Some(condition) = condition {
                        family = family.within(condition).with_context(|| format!("--condition, row {row}"))?;
                        let message = "the condition has probability 0 under this density";
                        ensure!(family.volume() > 0.0, "--condition, row {row}: {message}");
                    }
                    let (constraint, params) = (family.constraint()?, self.params(row..row + 1).to_vec());
                    Ok(AnyDensity::Kernel(Box::new(KernelMixture { family, params, constraint })))
                };
                rows.into_par_iter().map(mixture).collect()
            }
        }
    }
}

fn real_densities(model: &Model, rows: Range<usize>, condition: Option<&Formula>) -> Result<Vec<Density>> {
    let family = model.family();
    if model.regions().is_some() {
        // Every row has its own mesh, so that there is nothing to prepare for all of them.
        let density = |row: usize| -> Result<Density> {
            let density = model.density(row).with_context(|| format!("row {row}"))?;
            match condition {
                None => Ok(density),
                Some(formula) => density.condition(formula).with_context(|| format!("--condition, row {row}")),
            }
        };
        return rows.into_par_iter().map(density).collect();
    }
    let event = condition.map(|formula| family.event(formula).context("--condition")).transpose()?;
    let width = family.num_params();
    let density = |row: usize| -> Result<Density> {
        let params = &model.params()[row * width..(row + 1) * width];
        let Some(event) = &event else { return Ok(family.density(params)?) };
        let conditioned = event.condition(params).with_context(|| format!("--condition, row {row}"))?;
        conditioned.into_iter().next().context("one row of parameters makes one density")
    };
    rows.map(density).collect()
}

/// The largest number of Boolean variables whose values the library takes at a time.
const AT_A_TIME: usize = 16;

impl AnyDensity {
    /// The constraint of the density, over the variables that are left.
    pub fn constraint(&self) -> Constraint {
        match self {
            AnyDensity::Real(density) => (*density.constraint()).clone(),
            AnyDensity::Mixed(density) => density.support().constraint().clone(),
            AnyDensity::Kernel(mixture) => mixture.constraint.clone(),
        }
    }

    /// The columns of its points.
    pub fn columns(&self) -> Vec<PointColumn> {
        match self {
            AnyDensity::Real(density) => {
                crate::points::numbers(&density.variables().iter().map(Var::name).collect::<Vec<_>>())
            }
            AnyDensity::Mixed(density) => PointColumn::of(density.support().constraint()),
            AnyDensity::Kernel(mixture) => PointColumn::of(&mixture.constraint),
        }
    }

    /// The names of the numbers of its points.
    pub fn number_names(&self) -> Vec<String> {
        let constraint = self.constraint();
        match self {
            AnyDensity::Real(density) => density.variables().iter().map(Var::to_string).collect(),
            AnyDensity::Mixed(_) | AnyDensity::Kernel(_) => {
                constraint.reals.iter().chain(&constraint.booleans).map(Var::to_string).collect()
            }
        }
    }

    /// The variables that are real.
    pub fn reals(&self) -> Vec<Var> {
        match self {
            AnyDensity::Real(density) => density.variables().to_vec(),
            AnyDensity::Mixed(density) => density.support().constraint().reals.clone(),
            AnyDensity::Kernel(mixture) => mixture.constraint.reals.clone(),
        }
    }

    /// The density of the other variables.
    pub fn given(self, known: &KnownValues) -> Result<AnyDensity> {
        let reals: Vec<(&str, f64)> = known.reals.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        match self {
            AnyDensity::Real(density) if !reals.is_empty() => Ok(AnyDensity::Real(density.given(&reals)?)),
            AnyDensity::Mixed(mut density) => {
                for some in known.booleans.chunks(AT_A_TIME) {
                    let some: Vec<(&str, bool)> = some.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                    density = density.given(&[], &some)?;
                }
                if !reals.is_empty() {
                    density = density.given(&reals, &[])?;
                }
                Ok(AnyDensity::Mixed(density))
            }
            AnyDensity::Kernel(_) if !reals.is_empty() => {
                bail!("kernels have no densities given values of variables; those of --family spline have")
            }
            unchanged => Ok(unchanged),
        }
    }

    pub fn log_prob(&self, points: &[f64]) -> Result<Vec<f64>> {
        match self {
            AnyDensity::Real(density) => Ok(density.log_prob(points)),
            AnyDensity::Mixed(density) => Ok(density.log_prob(points)?),
            AnyDensity::Kernel(mixture) => Ok(mixture.family.log_prob(&mixture.params, points)?),
        }
    }

    pub fn probability(&self, event: &Formula) -> Result<f64> {
        match self {
            AnyDensity::Real(density) => Ok(density.probability(event)?),
            AnyDensity::Mixed(density) => Ok(density.probability(event)?),
            AnyDensity::Kernel(mixture) => {
                let event = mixture.family.within(event)?;
                only(mixture.family.probability(&event, &mixture.params)?)
            }
        }
    }

    pub fn marginal(&self, variable: &str) -> Result<Marginal> {
        match self {
            AnyDensity::Real(density) => Ok(density.marginal(variable)?),
            AnyDensity::Mixed(density) => Ok(density.marginal(variable)?),
            AnyDensity::Kernel(mixture) => {
                let names = || mixture.constraint.reals.iter().map(Var::name).collect::<Vec<_>>();
                let axis = names().iter().position(|name| *name == variable);
                let axis = axis.with_context(|| format!("no variable {variable}; there are {}", names().join(", ")))?;
                only(mixture.family.marginals(&mixture.params, axis)?)
            }
        }
    }

    pub fn marginal_density(&self, variables: &[&str], points: &[f64]) -> Result<Vec<f64>> {
        match self {
            AnyDensity::Real(density) => Ok(density.marginal_density(variables, points)?),
            AnyDensity::Mixed(density) => Ok(density.marginal_density(variables, points)?),
            AnyDensity::Kernel(_) => bail!("kernels have marginals of one variable, and densities of both"),
        }
    }

    /// The probabilities of all values of some Boolean variables and categories: rows of numbers, 0 or 1 for each Boolean
    /// variable, then the probability. With `at`, given the values of all real variables.
    pub fn table(&self, columns: &[PointColumn], at: Option<&[f64]>) -> Result<Vec<f64>> {
        let AnyDensity::Mixed(density) = self else { bail!("this density has real variables only") };
        let names: Vec<String> = columns.iter().flat_map(PointColumn::variables).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let ([column], None) = (columns, at) {
            return Ok(single_table(density, column));
        }
        let table: ProbabilityTable = match at {
            None => density.table(&names)?,
            Some(point) => density.table_at(point, &names)?,
        };
        // A category has exactly one of its values; the other rows have probability 0.
        let proper = |row: &[f64]| {
            let mut at = 0;
            columns.iter().all(|column| {
                let own = &row[at..at + column.positions().len()];
                at += own.len();
                column.kind == ColumnKind::Boolean || own.iter().sum::<f64>() == 1.0
            })
        };
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for (values, probability) in table.values.iter().zip(&table.probabilities) {
            let row: Vec<f64> = values.iter().map(|value| f64::from(u8::from(*value))).collect();
            if proper(&row) {
                rows.push([&row[..], &[*probability]].concat());
            }
        }
        // The library counts in binary, which lists the labels of a category backwards.
        if columns.iter().any(|column| column.kind != ColumnKind::Boolean) {
            let key = |row: &Vec<f64>| -> Vec<usize> {
                let mut at = 0;
                let place = |column: &PointColumn| {
                    let own = &row[at..at + column.positions().len()];
                    at += own.len();
                    own.iter().position(|value| *value == 1.0).map_or(0, |k| k + 1)
                };
                columns.iter().map(place).collect()
            };
            rows.sort_by_key(key);
        }
        Ok(rows.concat())
    }

    pub fn mode(&self, options: &ModeOptions) -> Result<Mode> {
        match self {
            AnyDensity::Real(density) => Ok(density.mode(options)?),
            AnyDensity::Mixed(density) => Ok(density.mode(options)?),
            AnyDensity::Kernel(mixture) => only(mixture.family.modes(&mixture.params, options)?),
        }
    }

    pub fn mean(&self) -> Vec<f64> {
        match self {
            AnyDensity::Real(density) => density.mean(),
            AnyDensity::Mixed(density) => density.mean(),
            AnyDensity::Kernel(mixture) => mixture.mean_and_covariance().0,
        }
    }

    pub fn covariance(&self) -> Vec<f64> {
        match self {
            AnyDensity::Real(density) => density.covariance(),
            AnyDensity::Mixed(density) => density.covariance(),
            AnyDensity::Kernel(mixture) => mixture.mean_and_covariance().1,
        }
    }

    pub fn standard_deviation(&self) -> Vec<f64> {
        match self {
            AnyDensity::Real(density) => density.standard_deviation(),
            AnyDensity::Mixed(density) => {
                let (covariance, n) = (density.covariance(), density.support().columns());
                (0..n).map(|k| covariance[k * (n + 1)].max(0.0).sqrt()).collect()
            }
            AnyDensity::Kernel(mixture) => {
                let covariance = mixture.mean_and_covariance().1;
                [0, 3].map(|k| covariance[k].max(0.0).sqrt()).to_vec()
            }
        }
    }

    pub fn expectation(&self, polynomial: &Polynomial) -> Result<f64> {
        match self {
            AnyDensity::Real(density) => Ok(density.expectation(polynomial)?),
            AnyDensity::Mixed(density) => Ok(density.expectation(polynomial, &Formula::yes())?),
            AnyDensity::Kernel(mixture) => {
                only(mixture.family.expectation(&mixture.params, std::slice::from_ref(polynomial))?)
            }
        }
    }

    pub fn entropy(&self, options: &EntropyOptions) -> Result<Entropy> {
        match self {
            AnyDensity::Real(density) => Ok(density.entropy(options)),
            AnyDensity::Mixed(density) => Ok(density.entropy(options)?),
            AnyDensity::Kernel(mixture) => only(mixture.family.entropies(&mixture.params, options)?),
        }
    }

    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>> {
        match self {
            AnyDensity::Real(density) => Ok(density.sample(count, seed)?),
            AnyDensity::Mixed(density) => Ok(density.sample(count, seed)?),
            AnyDensity::Kernel(mixture) => Ok(mixture.family.sample(&mixture.params, count, seed)?),
        }
    }

    /// The density prepared for sampling in parts; `None` where samples are drawn all at once.
    pub fn sampler(&self) -> Result<Option<Sampler>> {
        match self {
            AnyDensity::Real(density) => Ok(Some(density.sampler()?)),
            AnyDensity::Mixed(_) | AnyDensity::Kernel(_) => Ok(None),
        }
    }
}

impl KernelMixture {
    fn mean_and_covariance(&self) -> (Vec<f64>, Vec<f64>) {
        let found = self.family.mean_and_covariance(&self.params);
        let found =
            found.ok().and_then(|mut found| found.pop()).expect("the uniform part has mass wherever there is volume");
        (found.0.to_vec(), found.1.to_vec())
    }
}

/// The answer for the only row.
fn only<T>(mut answers: Vec<T>) -> Result<T> {
    answers.pop().context("one row of parameters has one answer")
}

/// The probabilities of the values of one variable.
fn single_table(density: &MixedDensity, column: &PointColumn) -> Vec<f64> {
    let mean = density.mean();
    let of = |k: usize| mean[column.positions()[k]].clamp(0.0, 1.0);
    match &column.kind {
        ColumnKind::Boolean => vec![0.0, 1.0 - of(0), 1.0, of(0)],
        ColumnKind::Number => Vec::new(),
        ColumnKind::Label(labels) => {
            let row = |k: usize| {
                let values = (0..labels.len()).map(move |other| f64::from(u8::from(other == k)));
                values.chain([of(k)]).collect::<Vec<f64>>()
            };
            (0..labels.len()).flat_map(row).collect()
        }
    }
}
