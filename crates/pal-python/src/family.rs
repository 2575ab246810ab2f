//! Families of densities compiled on a region: questions about many parameter vectors at once.

use numpy::{PyArray1, PyReadonlyArray1};
use pal::density::{
    self, Basis, FileError, Knots, Model, Recipe, Settings, SplineSettings, Subset, SumOfSquaresSettings,
};
use pal::formula::Var;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::constraint::Constraint;
use crate::convert::{Doubles, array, doubles, flags, some_number};
use crate::density::{
    Density, EntropyAnswer, Marginal, ModeAnswer, entropy_answer, entropy_options, mode_answer, mode_options,
};
use crate::errors::Report;
use crate::formula::some_formula;
use crate::polynomial::polynomial;
use crate::region::Region;
use crate::work::run;

/// A family of densities compiled on a region.
#[pyclass(frozen, module = "pal._core")]
pub struct Family(pub density::Family);

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Points in the batch of a network, for which one thread is enough: calling others would take longer than the work.
const SMALL: usize = 2048;

#[pymethods]
impl Family {
    /// Squared cubic splines: a number of knots, or their positions per variable.
    #[staticmethod]
    fn spline(
        py: Python<'_>,
        region: &Bound<'_, Region>,
        knots: &Bound<'_, PyAny>,
        components: usize,
    ) -> PyResult<Family> {
        let knots = match knots.extract::<usize>() {
            Ok(count) => Knots::Uniform(count),
            Err(_) => {
                let lists: Vec<Vec<Bound<'_, PyAny>>> = knots.extract()?;
                let list = |list: &Vec<Bound<'_, PyAny>>| list.iter().map(|at| some_number(at, "a knot")).collect();
                Knots::At(lists.iter().map(list).collect::<PyResult<_>>()?)
            }
        };
        Family::compile(py, region, Settings::Spline(SplineSettings { knots, components }))
    }

    /// Sums of squares of polynomials; `terms` and `seed` choose some of the basis.
    #[staticmethod]
    #[pyo3(signature = (region, degree, components, basis, terms=None, seed=0))]
    fn sum_of_squares(
        py: Python<'_>,
        region: &Bound<'_, Region>,
        degree: u16,
        components: usize,
        basis: &str,
        terms: Option<usize>,
        seed: u64,
    ) -> PyResult<Family> {
        let basis = match basis {
            "orthonormal" => Basis::Orthonormal,
            "legendre" => Basis::Legendre,
            "monomial" => Basis::Monomial,
            other => {
                let message = format!("bases are orthonormal, legendre and monomial, not {other}");
                return Err(PyValueError::new_err(message));
            }
        };
        let subset = terms.map(|terms| Subset { terms, seed });
        Family::compile(py, region, Settings::SumOfSquares(SumOfSquaresSettings { degree, components, basis, subset }))
    }

    /// Reads a file: a family, and the parameters of a model if it has any.
    #[staticmethod]
    fn read<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<(Family, Option<Doubles<'py>>)> {
        let bytes = bytes.to_vec();
        let load = || match Model::from_bytes(&bytes) {
            Ok(model) => Ok((model.family().clone(), Some(model.params().to_vec()))),
            Err(FileError::NoParams) => density::Family::from_bytes(&bytes).map(|family| (family, None)),
            Err(error) => Err(error),
        };
        let (family, params) = run(py, "loading", load)?;
        Ok((Family(family), params.map(|params| array(py, params))))
    }

    /// The content of a file, of the family or with parameters of a model.
    #[pyo3(signature = (params=None))]
    fn write<'py>(&self, py: Python<'py>, params: Option<Input<'py>>) -> PyResult<Bound<'py, PyBytes>> {
        let params = params.map(|params| doubles(&params));
        let save = || match params {
            Some(params) => Model::new(self.0.clone(), params)?.to_bytes(),
            None => self.0.to_bytes(),
        };
        Ok(PyBytes::new(py, &run(py, "saving", save)?))
    }

    /// The settings as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.family().settings()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.0.support().constraint().clone().into()
    }

    #[getter]
    fn num_params(&self) -> usize {
        self.0.num_params()
    }

    #[getter]
    fn num_components(&self) -> usize {
        self.0.num_components()
    }

    #[getter]
    fn num_features(&self) -> usize {
        self.0.family().num_features()
    }

    /// Ends of the bins per variable.
    #[getter]
    fn edges(&self) -> Vec<Vec<f64>> {
        self.0.support().grid().axes().iter().map(|axis| axis.positions()).collect()
    }

    fn random_params<'py>(&self, py: Python<'py>, rows: usize, seed: u64) -> Doubles<'py> {
        array(py, self.0.random_params(rows, seed))
    }

    /// Constants of the recipe for tensor frameworks.
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        match run(py, "preparing", || Ok::<_, PyErr>(self.0.recipe()))? {
            Recipe::Spline(recipe) => {
                dict.set_item("family", "spline")?;
                dict.set_item("components", recipe.components)?;
                dict.set_item("log_volume", recipe.log_volume)?;
                dict.set_item("params", recipe.axes.iter().map(|axis| axis.params).collect::<Vec<_>>())?;
                dict.set_item("nodes", recipe.axes.iter().map(|axis| axis.nodes).collect::<Vec<_>>())?;
                let axes = self.0.support().grid().axes();
                let rests: Vec<_> = axes.iter().map(|axis| array(py, axis.low_parts())).collect();
                dict.set_item("rests", rests)?;
                let widths = axes.iter().map(|axis| axis.bin_indices().map(|bin| axis.width(bin)).collect());
                dict.set_item("widths", widths.map(|widths| array(py, widths)).collect::<Vec<_>>())?;
                let alike = recipe.axes.windows(2).all(|pair| pair[0].values == pair[1].values);
                dict.set_item("alike", alike)?;
                let values: Vec<_> = recipe.axes.into_iter().map(|axis| array(py, axis.values)).collect();
                dict.set_item("values", values)?;
                dict.set_item("form", array(py, recipe.form))?;
            }
            Recipe::SumOfSquares(recipe) => {
                dict.set_item("family", "sum-of-squares")?;
                dict.set_item("components", recipe.components)?;
                dict.set_item("size", recipe.size)?;
                dict.set_item("damped", recipe.damped)?;
                dict.set_item("log_volume", recipe.log_volume)?;
                dict.set_item("gram", recipe.gram.map(|gram| array(py, gram)))?;
            }
        }
        Ok(dict)
    }

    /// The form of a condition and a monomial in box coordinates, in the layout of the recipe.
    fn form_constants<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        powers: Vec<u16>,
    ) -> PyResult<Doubles<'py>> {
        let condition = some_formula(condition, "the condition")?;
        Ok(array(py, run(py, "integrating", || self.0.form_constants(&condition, &powers))?))
    }

    /// Partial derivatives of the features of points, of given orders, and which points are inside.
    fn features<'py>(
        &self,
        py: Python<'py>,
        points: Input<'py>,
        orders: Vec<u16>,
    ) -> PyResult<(Doubles<'py>, Bound<'py, PyArray1<bool>>)> {
        let points = doubles(&points);
        let work = || self.0.feature_derivatives(&points, &orders);
        let (features, inside) = if points.len() <= SMALL * self.0.dimension() {
            py.detach(work).map_err(Report::report)?
        } else {
            run(py, "evaluating", work)?
        };
        Ok((array(py, features), flags(py, inside)))
    }

    /// Which points may have a positive density.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = doubles(&points);
        if points.len() <= SMALL * self.0.dimension() {
            return Ok(flags(py, py.detach(|| self.0.contains(&points))));
        }
        Ok(flags(py, run(py, "testing points", || Ok::<_, PyErr>(self.0.contains(&points)))?))
    }

    fn log_prob<'py>(&self, py: Python<'py>, params: Input<'py>, points: Input<'py>) -> PyResult<Doubles<'py>> {
        let (params, points) = (doubles(&params), doubles(&points));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob(&params, &points))?))
    }

    /// The gradient of a weighted sum of log-densities with respect to the parameters.
    fn log_prob_vjp<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        points: Input<'py>,
        cotangent: Input<'py>,
    ) -> PyResult<Doubles<'py>> {
        let (params, points, cotangent) = (doubles(&params), doubles(&points), doubles(&cotangent));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob_vjp(&params, &points, &cotangent))?))
    }

    fn log_normaliser<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Doubles<'py>> {
        let params = doubles(&params);
        Ok(array(py, run(py, "integrating", || self.0.log_normaliser(&params))?))
    }

    fn probability<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<Doubles<'py>> {
        let (condition, params) = (some_formula(condition, "the condition")?, doubles(&params));
        Ok(array(py, run(py, "integrating", || self.0.event(&condition)?.probability(&params))?))
    }

    fn condition<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<Vec<Density>> {
        let (condition, params) = (some_formula(condition, "the condition")?, doubles(&params));
        let densities = run(py, "conditioning", || self.0.event(&condition)?.condition(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn given<'py>(&self, py: Python<'py>, values: Vec<(String, f64)>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = doubles(&params);
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let densities = run(py, "conditioning", || self.0.given(&values, &params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn densities<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = doubles(&params);
        let densities = run(py, "preparing", || self.0.densities(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn mean<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Doubles<'py>> {
        let params = doubles(&params);
        Ok(array(py, run(py, "integrating", || self.0.mean(&params))?))
    }

    fn covariance<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Doubles<'py>> {
        let params = doubles(&params);
        Ok(array(py, run(py, "integrating", || self.0.covariance(&params))?))
    }

    fn expectation<'py>(
        &self,
        py: Python<'py>,
        polynomials: Vec<Bound<'py, PyAny>>,
        params: Input<'py>,
    ) -> PyResult<Doubles<'py>> {
        let polynomials: Vec<_> = polynomials.iter().map(polynomial).collect::<PyResult<_>>()?;
        let params = doubles(&params);
        Ok(array(py, run(py, "integrating", || self.0.expectation(&polynomials)?.values(&params))?))
    }

    fn entropies<'py>(&self, py: Python<'py>, params: Input<'py>, tolerance: f64) -> PyResult<Vec<EntropyAnswer>> {
        let (params, options) = (doubles(&params), entropy_options(tolerance)?);
        let all = run(py, "integrating", || self.0.entropies(&params, &options))?;
        Ok(all.iter().map(entropy_answer).collect())
    }

    /// Rows of samples: `count` for each parameter vector, one after the other.
    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<Doubles<'py>> {
        let params = doubles(&params);
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }

    fn modes<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        gap: f64,
        nodes: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<Vec<ModeAnswer<'py>>> {
        let (params, options) = (doubles(&params), mode_options(gap, nodes, seconds)?);
        let modes = run(py, "searching", || self.0.modes(&params, &options))?;
        Ok(modes.into_iter().map(|mode| mode_answer(py, mode)).collect())
    }

    fn marginals<'py>(&self, py: Python<'py>, variable: &str, params: Input<'py>) -> PyResult<Vec<Marginal>> {
        let params = doubles(&params);
        let marginals = run(py, "integrating", || self.0.marginals(variable, &params))?;
        Ok(marginals.into_iter().map(Marginal).collect())
    }
}

impl Family {
    fn compile(py: Python<'_>, region: &Bound<'_, Region>, settings: Settings) -> PyResult<Family> {
        let region = &region.get().region;
        run(py, "compiling", || density::Family::new(region, &settings)).map(Family)
    }
}

/// An axis of a density by the name of its variable.
pub fn names(vars: &[Var]) -> Vec<String> {
    vars.iter().map(|var| var.name().to_string()).collect()
}
