//! Mixed families and densities: over real and Boolean variables.

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pal::density::{FileError, Precision, RowInput};
use pal::formula::{Category, Formula};
use pal::mixed::{self, MixedModel, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied};
use crate::density::{EntropyAnswer, EntropyOptions, Marginal, ModeAnswer, ModeOptions, entropy_answer, mode_answer};
use crate::errors::Report;
use crate::families;
use crate::family::names;
use crate::formula::{Formula as PyFormula, some_formula};
use crate::polynomial::polynomial;
use crate::region::Region;
use crate::work::{check_room, run};

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Values of Boolean variables, row by row, and the probability of each row.
type TableAnswer<'py> = (Vec<Vec<bool>>, FloatArray<'py>);

fn table_answer(py: Python<'_>, table: Table) -> TableAnswer<'_> {
    (table.values, array(py, table.probabilities))
}

fn pairs<T: Copy>(values: &[(String, T)]) -> Vec<(&str, T)> {
    values.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

/// The formulas of all values of a category, in their order.
#[pyfunction]
pub fn category_formulas(name: &str, values: Vec<String>) -> PyResult<Vec<PyFormula>> {
    let category = Category::new(name, &values).map_err(Report::report)?;
    let of = |value: &String| category.is(value).map(PyFormula);
    values.iter().map(of).collect::<Result<_, _>>().map_err(Report::report)
}

/// A family of densities over real and Boolean variables.
#[pyclass(frozen, module = "pal._core")]
pub struct MixedFamily(pub mixed::MixedFamily);

/// Up to this many points, the fused pass is not worth the watch for interrupts.
const SMALL_BATCH: usize = 2048;

impl MixedFamily {
    fn fused_rows<'py, T: Precision + Element + Copy>(
        &self,
        py: Python<'py>,
        params: &PyReadonlyArray1<'py, T>,
        points: &Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<T>>, Option<Bound<'py, PyArray1<T>>>)> {
        let (params, points) = (copied(params), copied(points));
        let input = if student_t { RowInput::StudentT } else { RowInput::Parameters };
        let work = || self.0.row_log_prob(input, &params, &points, with_gradient);
        let rows = if points.len() <= SMALL_BATCH * self.0.support().columns() {
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
impl MixedFamily {
    /// Compiles a family whose components are of the kind that the settings belong to.
    #[new]
    fn new(py: Python<'_>, region: &Bound<'_, Region>, settings: &Bound<'_, PyAny>) -> PyResult<MixedFamily> {
        let (region, settings) = (&region.get().region, families::read_settings(settings)?);
        run(py, "compiling", || mixed::MixedFamily::new(region, &settings)).map(MixedFamily)
    }

    /// Reads a file: a family, and the parameters of a model if it has any.
    #[staticmethod]
    fn read<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<(MixedFamily, Option<FloatArray<'py>>)> {
        let bytes = bytes.to_vec();
        let load = || match MixedModel::from_bytes(&bytes) {
            Ok(model) => Ok((model.family().clone(), Some(model.params().to_vec()))),
            Err(FileError::NoParams) => mixed::MixedFamily::from_bytes(&bytes).map(|family| (family, None)),
            Err(error) => Err(error),
        };
        let (family, params) = run(py, "loading", load)?;
        Ok((MixedFamily(family), params.map(|params| array(py, params))))
    }

    /// The content of a file: of the family, or of a model where there are parameters.
    #[pyo3(signature = (params))]
    fn write<'py>(&self, py: Python<'py>, params: Option<Input<'py>>) -> PyResult<Bound<'py, PyBytes>> {
        let params = params.map(|params| copied(&params));
        let save = || match params {
            Some(params) => MixedModel::new(self.0.clone(), params)?.to_bytes(),
            None => self.0.to_bytes(),
        };
        Ok(PyBytes::new(py, &run(py, "saving", save)?))
    }

    /// The settings, as an object of the class of the kind.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        families::show_settings(py, &self.0.base().kind().settings())
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.0.support().constraint().clone().into()
    }

    #[getter]
    fn variables(&self) -> Vec<String> {
        names(&self.0.support().constraint().reals)
    }

    #[getter]
    fn booleans(&self) -> Vec<String> {
        names(self.0.support().booleans())
    }

    /// Names and values of the categories.
    #[getter]
    fn categories(&self) -> Vec<(String, Vec<String>)> {
        let all = Category::all_of(self.0.support().constraint());
        all.iter().map(|category| (category.name().to_string(), category.values().to_vec())).collect()
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
    fn num_parts(&self) -> usize {
        self.0.support().num_parts()
    }

    fn random_params<'py>(&self, py: Python<'py>, rows: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        check_room(rows as f64 * self.0.num_params() as f64, "so many parameters")?;
        let draw = || Ok::<_, pal::density::DensityError>(self.0.random_params(rows, seed));
        Ok(array(py, run(py, "drawing", draw)?))
    }

    fn log_prob<'py>(&self, py: Python<'py>, params: Input<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, points) = (copied(&params), copied(&points));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob(&params, &points))?))
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

    /// The log-density of each point under its own row of parameters, and its gradient with respect to that row.
    fn log_prob_rows<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        points: Input<'py>,
    ) -> PyResult<(FloatArray<'py>, FloatArray<'py>)> {
        let (params, points) = (copied(&params), copied(&points));
        let (values, gradient) = run(py, "evaluating", || self.0.log_prob_rows(&params, &points))?;
        Ok((array(py, values), array(py, gradient)))
    }

    /// The log-density of each point under its own row of parameters, in float32, and, where asked for, its gradient
    /// with respect to that row. With `student_t`, rows begin with outputs of a network for the head of spline layers.
    fn log_prob_rows_f32<'py>(
        &self,
        py: Python<'py>,
        params: PyReadonlyArray1<'py, f32>,
        points: Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<f32>>>)> {
        self.fused_rows(py, &params, &points, student_t, with_gradient)
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
        self.fused_rows(py, &params, &points, student_t, with_gradient)
    }

    /// Whether points satisfy the constraint; values of Boolean variables other than 0 and 1 do not.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        Ok(PyArray1::from_vec(py, run(py, "testing points", || self.0.support().contains(&points))?))
    }

    /// The number of parameters of the family over the reals, which come first.
    #[getter]
    fn num_real_params(&self) -> usize {
        self.0.base().num_params()
    }

    /// The names of the free variables, where equalities hold on the constraint.
    #[getter]
    fn free(&self) -> Option<Vec<String>> {
        self.0.support().chart().map(|chart| names(&chart.free_variables()))
    }

    /// The middle of the box around the constraint.
    #[getter]
    fn centre<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.support().centre())
    }

    /// The probability of a condition under each parameter vector.
    fn probability<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (condition, params) = (some_formula(condition, "the condition")?, copied(&params));
        Ok(array(py, run(py, "integrating", || self.0.event(&condition)?.probability(&params))?))
    }

    fn densities<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Vec<MixedDensity>> {
        let params = copied(&params);
        let densities = run(py, "preparing", || self.0.densities(&params))?;
        Ok(densities.into_iter().map(MixedDensity).collect())
    }

    /// Rows of samples: `count` for each parameter vector, one after the other.
    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        let rows = params.len() as f64 / self.0.num_params() as f64;
        check_room(rows * count as f64 * self.0.support().columns() as f64, "so many samples")?;
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }

    /// One parameter vector that resembles points, which are divided among the components.
    fn start<'py>(&self, py: Python<'py>, clusters: Vec<Input<'py>>, seed: u64) -> PyResult<FloatArray<'py>> {
        let clusters: Vec<Vec<f64>> = clusters.iter().map(copied).collect();
        let start = || self.0.start(&clusters, &mut pal::random::Stream::new(seed, 0));
        Ok(array(py, run(py, "preparing", start)?))
    }
}

/// A condition on real and Boolean variables compiled on a family.
#[pyclass(frozen, module = "pal._core")]
pub struct MixedEvent(mixed::MixedEvent);

#[pymethods]
impl MixedEvent {
    #[new]
    fn new(py: Python<'_>, family: &Bound<'_, MixedFamily>, condition: &Bound<'_, PyAny>) -> PyResult<MixedEvent> {
        let (family, condition) = (&family.get().0, some_formula(condition, "the condition")?);
        run(py, "conditioning", || family.event(&condition)).map(MixedEvent)
    }

    /// Whether points satisfy the constraint and the condition.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        Ok(PyArray1::from_vec(py, run(py, "testing points", || self.0.support().contains(&points))?))
    }

    fn probability<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.probability(&params))?))
    }

    fn probability_vjp<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        cotangent: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (params, cotangent) = (copied(&params), copied(&cotangent));
        Ok(array(py, run(py, "integrating", || self.0.probability_vjp(&params, &cotangent))?))
    }
}

/// Expectations of polynomials, each times the indicator of a condition, compiled on a family.
#[pyclass(frozen, module = "pal._core")]
pub struct MixedExpectation(mixed::MixedExpectation);

#[pymethods]
impl MixedExpectation {
    #[new]
    fn new(
        py: Python<'_>,
        family: &Bound<'_, MixedFamily>,
        wanted: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<MixedExpectation> {
        let pair = |(polynomial, condition): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((self::polynomial(polynomial)?, some_formula(condition, "the condition")?))
        };
        let wanted = wanted.iter().map(pair).collect::<PyResult<Vec<_>>>()?;
        let family = &family.get().0;
        run(py, "compiling", || family.expectation(&wanted)).map(MixedExpectation)
    }

    /// The expectations under each parameter vector, row by row.
    fn values<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.values(&params))?))
    }

    fn values_vjp<'py>(&self, py: Python<'py>, params: Input<'py>, cotangent: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, cotangent) = (copied(&params), copied(&cotangent));
        Ok(array(py, run(py, "integrating", || self.0.values_vjp(&params, &cotangent))?))
    }
}

/// The mixed density of one parameter vector, or what conditioning made of it.
#[pyclass(frozen, module = "pal._core")]
pub struct MixedDensity(mixed::MixedDensity);

#[pymethods]
impl MixedDensity {
    #[getter]
    fn variables(&self) -> Vec<String> {
        names(&self.0.support().constraint().reals)
    }

    #[getter]
    fn booleans(&self) -> Vec<String> {
        names(self.0.support().booleans())
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.0.support().constraint().clone().into()
    }

    fn log_prob<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        Ok(array(py, run(py, "evaluating", || self.0.log_prob(&points))?))
    }

    fn probability(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<f64> {
        let condition = some_formula(condition, "the condition")?;
        run(py, "integrating", || self.0.probability(&condition))
    }

    /// The names of the free variables, where equalities hold on the constraint.
    #[getter]
    fn free(&self) -> Option<Vec<String>> {
        self.0.support().chart().map(|chart| names(&chart.free_variables()))
    }

    fn condition(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<MixedDensity> {
        let condition = some_formula(condition, "the condition")?;
        run(py, "conditioning", || self.0.condition(&condition)).map(MixedDensity)
    }

    fn given(
        &self,
        py: Python<'_>,
        reals: Vec<(String, f64)>,
        booleans: Vec<(String, bool)>,
    ) -> PyResult<MixedDensity> {
        run(py, "conditioning", || self.0.given(&pairs(&reals), &pairs(&booleans))).map(MixedDensity)
    }

    fn table<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<TableAnswer<'py>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(table_answer(py, run(py, "integrating", || self.0.table(&names))?))
    }

    /// The table given the values of all reals.
    fn table_at<'py>(&self, py: Python<'py>, point: Input<'py>, names: Vec<String>) -> PyResult<TableAnswer<'py>> {
        let point = copied(&point);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(table_answer(py, run(py, "evaluating", || self.0.table_at(&point, &names))?))
    }

    fn marginal(&self, py: Python<'_>, variable: &str) -> PyResult<Marginal> {
        run(py, "integrating", || self.0.marginal(variable)).map(Marginal)
    }

    fn mean<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        Ok(array(py, run(py, "integrating", || Ok::<_, PyErr>(self.0.mean()))?))
    }

    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        Ok(array(py, run(py, "integrating", || Ok::<_, PyErr>(self.0.covariance()))?))
    }

    /// The expectation of a polynomial times the indicator of a condition.
    #[pyo3(signature = (polynomial, condition))]
    fn expectation(
        &self,
        py: Python<'_>,
        polynomial: &Bound<'_, PyAny>,
        condition: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<f64> {
        let polynomial = self::polynomial(polynomial)?;
        let condition = match condition {
            Some(condition) => some_formula(condition, "the condition")?,
            None => Formula::yes(),
        };
        run(py, "integrating", || self.0.expectation(&polynomial, &condition))
    }

    fn entropy(&self, py: Python<'_>, options: &EntropyOptions) -> PyResult<EntropyAnswer> {
        Ok(entropy_answer(&run(py, "integrating", || self.0.entropy(&options.0))?))
    }

    fn sample<'py>(&self, py: Python<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        check_room(count as f64 * self.0.support().columns() as f64, "so many samples")?;
        Ok(array(py, run(py, "sampling", || self.0.sample(count, seed))?))
    }

    fn mode<'py>(&self, py: Python<'py>, options: &ModeOptions) -> PyResult<ModeAnswer<'py>> {
        let mode = run(py, "searching", || self.0.mode(&options.0))?;
        Ok(mode_answer(py, mode))
    }
}
