//! Families of densities compiled on a region: questions about many parameter vectors at once.

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pal::density::{self, FileError, Model, Precision, RowInput};
use pal::formula::Var;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied, flags};
use crate::density::{
    Density, EntropyAnswer, EntropyOptions, Marginal, ModeAnswer, ModeOptions, entropy_answer, mode_answer,
};
use crate::errors::Report;
use crate::event::{InformationAnswer, information_answer};
use crate::families;
use crate::flat::Flat;
use crate::formula::some_formula;
use crate::polynomial::polynomial;
use crate::region::Region;
use crate::work::{check_room, run};

/// A family of densities compiled on a region.
#[pyclass(frozen, module = "pal._core")]
pub struct Family(pub density::Family);

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Up to this many points, as in the batch of a network, one thread is enough: waking others would take longer than the
/// work.
const SMALL_BATCH: usize = 2048;

impl Family {
    fn log_prob_rows<'py, T: Precision + Element + Copy>(
        &self,
        py: Python<'py>,
        params: &PyReadonlyArray1<'py, T>,
        points: &Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<T>>, Option<Bound<'py, PyArray1<T>>>)> {
        let (params, points) = (copied(params), copied(points));
        let input = if student_t { RowInput::StudentT } else { RowInput::Parameters };
        let work = || self.0.log_prob_rows(input, &params, &points, with_gradient);
        let rows = if points.len() <= SMALL_BATCH * self.0.variables().len() {
            py.detach(work).map_err(Report::report)?
        } else {
            run(py, "evaluating", work)?
        };
        let rows = rows.ok_or_else(|| PyValueError::new_err("this kind of family has no fused pass"))?;
        let gradient = rows.gradient.map(|gradient| PyArray1::from_vec(py, gradient));
        Ok((PyArray1::from_vec(py, rows.log_prob), gradient))
    }
}

#[pymethods]
impl Family {
    /// Compiles a family of the kind that the settings belong to.
    #[new]
    fn new(py: Python<'_>, region: &Bound<'_, Region>, settings: &Bound<'_, PyAny>) -> PyResult<Family> {
        let (region, settings) = (&region.get().region, families::read_settings(settings)?);
        run(py, "compiling", || density::Family::new(region, &settings)).map(Family)
    }

    /// Reads a file: a family, and the parameters of a model if it has any.
    #[staticmethod]
    fn read<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<(Family, Option<FloatArray<'py>>)> {
        let bytes = bytes.to_vec();
        let load = || match Model::from_bytes(&bytes) {
            Ok(model) if model.regions().is_some() => {
                let message = "the densities of this file have a region of their own for each row, which only the \
                               program `pal` reads";
                Err(FileError::Content(message.to_string()))
            }
            Ok(model) => Ok((model.family().clone(), Some(model.params().to_vec()))),
            Err(FileError::NoParams) => density::Family::from_bytes(&bytes).map(|family| (family, None)),
            Err(error) => Err(error),
        };
        let (family, params) = run(py, "loading", load)?;
        Ok((Family(family), params.map(|params| array(py, params))))
    }

    /// The content of a file: of the family, or of a model where there are parameters.
    #[pyo3(signature = (params))]
    fn write<'py>(&self, py: Python<'py>, params: Option<Input<'py>>) -> PyResult<Bound<'py, PyBytes>> {
        let params = params.map(|params| copied(&params));
        let save = || match params {
            Some(params) => Model::new(self.0.clone(), params)?.to_bytes(),
            None => self.0.to_bytes(),
        };
        Ok(PyBytes::new(py, &run(py, "saving", save)?))
    }

    /// The settings, as an object of the class of the kind.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        families::show_settings(py, &self.0.kind().settings())
    }

    /// The settings as files have them, in JSON.
    #[getter]
    fn settings_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.kind().settings()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.0.constraint().clone().into()
    }

    /// The flat that the constraint is, where equalities hold on all of it.
    #[getter]
    fn flat(&self) -> Option<Flat> {
        self.0.flat().cloned().map(Flat)
    }

    /// The same densities over the free variables alone.
    fn in_free_coordinates(&self) -> Family {
        Family(self.0.in_free_coordinates())
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
        self.0.kind().num_features()
    }

    /// Ends of the bins per variable.
    #[getter]
    fn edges(&self) -> Vec<Vec<f64>> {
        self.0.support().grid().axes().iter().map(|axis| axis.positions()).collect()
    }

    /// What is added to every parameter vector.
    #[getter]
    fn offset<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.offset().to_vec())
    }

    fn random_params<'py>(&self, py: Python<'py>, rows: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        check_room(rows as f64 * self.0.num_params() as f64, "so many parameters")?;
        let draw = || Ok::<_, pal::density::DensityError>(self.0.random_params(rows, seed));
        Ok(array(py, run(py, "drawing", draw)?))
    }

    /// The constants with which a tensor framework computes log-densities by itself, as an object of the class of the
    /// kind.
    fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        families::recipe(py, &self.0)
    }

    /// The form of the integrals of a monomial in box coordinates over the part of the support where a condition holds,
    /// in the layout that the recipe has for the normaliser.
    fn normaliser_tensor<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        powers: Vec<u16>,
    ) -> PyResult<FloatArray<'py>> {
        let condition = some_formula(condition, "the condition")?;
        Ok(array(py, run(py, "integrating", || self.0.normaliser_tensor(&condition, &powers))?))
    }

    /// Partial derivatives of the features of points, of given orders, and which points are inside.
    fn features<'py>(
        &self,
        py: Python<'py>,
        points: Input<'py>,
        orders: Vec<u16>,
    ) -> PyResult<(FloatArray<'py>, Bound<'py, PyArray1<bool>>)> {
        let points = copied(&points);
        let work = || self.0.feature_derivatives(&points, &orders);
        let (features, inside) = if points.len() <= SMALL_BATCH * self.0.variables().len() {
            py.detach(work).map_err(Report::report)?
        } else {
            run(py, "evaluating", work)?
        };
        Ok((array(py, features), flags(py, inside)))
    }

    /// Which points may have a positive density.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        if points.len() <= SMALL_BATCH * self.0.variables().len() {
            return Ok(flags(py, py.detach(|| self.0.contains(&points))));
        }
        Ok(flags(py, run(py, "testing points", || Ok::<_, PyErr>(self.0.contains(&points)))?))
    }

    fn log_prob<'py>(&self, py: Python<'py>, params: Input<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, points) = (copied(&params), copied(&points));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob(&params, &points))?))
    }

    /// Whether there is a fused pass for this kind of family.
    #[getter]
    fn has_kernel(&self) -> bool {
        self.0.has_kernel()
    }

    /// The log-density of each point under its own row of parameters, in float32, and, where asked for, its gradient
    /// with respect to that row. With `student_t`, rows are outputs of a network for the head of spline layers.
    fn log_prob_rows_f32<'py>(
        &self,
        py: Python<'py>,
        params: PyReadonlyArray1<'py, f32>,
        points: Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<f32>>>)> {
        self.log_prob_rows(py, &params, &points, student_t, with_gradient)
    }

    /// The same in float64.
    fn log_prob_rows_f64<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        points: Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(FloatArray<'py>, Option<FloatArray<'py>>)> {
        self.log_prob_rows(py, &params, &points, student_t, with_gradient)
    }

    /// The gradient of a weighted sum of log-densities with respect to the parameters.
    fn log_prob_vjp<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        points: Input<'py>,
        cotangent: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (params, points, cotangent) = (copied(&params), copied(&points), copied(&cotangent));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob_vjp(&params, &points, &cotangent))?))
    }

    fn log_normaliser<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.log_normaliser(&params))?))
    }

    fn probability<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (condition, params) = (some_formula(condition, "the condition")?, copied(&params));
        Ok(array(py, run(py, "integrating", || self.0.event(&condition)?.probability(&params))?))
    }

    fn condition<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<Vec<Density>> {
        let (condition, params) = (some_formula(condition, "the condition")?, copied(&params));
        let densities = run(py, "conditioning", || self.0.event(&condition)?.condition(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn given<'py>(&self, py: Python<'py>, values: Vec<(String, f64)>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = copied(&params);
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let densities = run(py, "conditioning", || self.0.given(&values, &params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn densities<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = copied(&params);
        let densities = run(py, "preparing", || self.0.densities(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    fn mean<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.mean(&params))?))
    }

    fn covariance<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.covariance(&params))?))
    }

    fn expectation<'py>(
        &self,
        py: Python<'py>,
        polynomials: Vec<Bound<'py, PyAny>>,
        params: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let polynomials: Vec<_> = polynomials.iter().map(polynomial).collect::<PyResult<_>>()?;
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.expectation(&polynomials)?.values(&params))?))
    }

    fn entropies<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        options: &EntropyOptions,
    ) -> PyResult<Vec<EntropyAnswer>> {
        let params = copied(&params);
        let all = run(py, "integrating", || self.0.entropies(&params, &options.0))?;
        Ok(all.iter().map(entropy_answer).collect())
    }

    /// Entropies, with derivatives where they are asked for.
    fn information<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> PyResult<InformationAnswer<'py>> {
        let params = copied(&params);
        let found = run(py, "integrating", || self.0.information(&params, &options.0, with_gradient))?;
        Ok(information_answer(py, found))
    }

    /// Divergences from the densities of another family, row by row.
    fn divergence<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        other: &Bound<'py, Family>,
        other_params: Input<'py>,
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> PyResult<InformationAnswer<'py>> {
        let (params, other, of_other) = (copied(&params), &other.get().0, copied(&other_params));
        let work = || self.0.divergence(&params, other, &of_other, &options.0, with_gradient);
        let found = run(py, "integrating", work)?;
        Ok(information_answer(py, found))
    }

    /// Rows of samples: `count` for each parameter vector, one after the other.
    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        let rows = params.len() as f64 / self.0.num_params() as f64;
        check_room(rows * count as f64 * self.0.variables().len() as f64, "so many samples")?;
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }

    fn modes<'py>(&self, py: Python<'py>, params: Input<'py>, options: &ModeOptions) -> PyResult<Vec<ModeAnswer<'py>>> {
        let params = copied(&params);
        let modes = run(py, "searching", || self.0.modes(&params, &options.0))?;
        Ok(modes.into_iter().map(|mode| mode_answer(py, mode)).collect())
    }

    fn marginals<'py>(&self, py: Python<'py>, variable: &str, params: Input<'py>) -> PyResult<Vec<Marginal>> {
        let params = copied(&params);
        let marginals = run(py, "integrating", || self.0.marginals(variable, &params))?;
        Ok(marginals.into_iter().map(Marginal).collect())
    }
}

/// The names of variables.
pub fn names(vars: &[Var]) -> Vec<String> {
    vars.iter().map(|var| var.name().to_string()).collect()
}
