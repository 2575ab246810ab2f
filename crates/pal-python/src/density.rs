//! One density: questions, and what conditioning makes of it.

use std::time::Duration;

use numpy::PyReadonlyArray1;
use pal::density;
use pal::query::{self, Entropy, Mode, ModeStop};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied};
use crate::errors::Report;
use crate::family::names;
use crate::formula::some_formula;
use crate::polynomial::polynomial;
use crate::work::{check_room, run};

/// The density of one parameter vector, or what conditioning made of it.
#[pyclass(frozen, module = "pal._core")]
pub struct Density(pub density::Density);

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Value, estimate of the error, whether it is within the tolerance.
pub type EntropyAnswer = (f64, f64, bool);
/// Point, log-density, bound, gap, nodes, why the search ended.
pub type ModeAnswer<'py> = (FloatArray<'py>, f64, f64, f64, usize, &'static str);

pub fn entropy_answer(entropy: &Entropy) -> EntropyAnswer {
    (entropy.value, entropy.error, entropy.converged)
}

/// When the computation of an entropy ends.
#[pyclass(frozen, module = "pal._core")]
pub struct EntropyOptions(pub query::EntropyOptions);

#[pymethods]
impl EntropyOptions {
    #[new]
    fn new(tolerance: f64) -> PyResult<EntropyOptions> {
        if tolerance.is_nan() || tolerance <= 0.0 {
            return Err(PyValueError::new_err(format!("the tolerance must be positive, not {tolerance}")));
        }
        Ok(EntropyOptions(query::EntropyOptions { tolerance, ..query::EntropyOptions::default() }))
    }

    /// The options of the library, where nothing else is asked for.
    #[staticmethod]
    fn default() -> EntropyOptions {
        EntropyOptions(query::EntropyOptions::default())
    }

    /// The absolute error that is small enough.
    #[getter]
    fn tolerance(&self) -> f64 {
        self.0.tolerance
    }
}

/// When the search for a mode ends.
#[pyclass(frozen, module = "pal._core")]
pub struct ModeOptions(pub query::ModeOptions);

#[pymethods]
impl ModeOptions {
    /// `None` for `nodes` or `seconds` means that there is no such limit.
    #[new]
    #[pyo3(signature = (gap, nodes, seconds))]
    fn new(gap: f64, nodes: Option<usize>, seconds: Option<f64>) -> PyResult<ModeOptions> {
        if gap.is_nan() || gap < 0.0 {
            return Err(PyValueError::new_err(format!("the gap must not be negative or NaN, but is {gap}")));
        }
        let wrong = |_| PyValueError::new_err("the time must be a number of seconds that is not negative");
        let time = seconds.map(|s| Duration::try_from_secs_f64(s).map_err(wrong)).transpose()?;
        Ok(ModeOptions(query::ModeOptions { gap, nodes, time }))
    }

    /// The options of the library, where nothing else is asked for.
    #[staticmethod]
    fn default() -> ModeOptions {
        ModeOptions(query::ModeOptions::default())
    }

    /// The relative gap between the density and its bound that is small enough.
    #[getter]
    fn gap(&self) -> f64 {
        self.0.gap
    }

    /// The largest number of nodes of the search.
    #[getter]
    fn nodes(&self) -> Option<usize> {
        self.0.nodes
    }

    /// The time limit.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.0.time.map(|time| time.as_secs_f64())
    }
}

pub fn mode_answer(py: Python<'_>, mode: Mode) -> ModeAnswer<'_> {
    let stop = match mode.stop {
        ModeStop::Certified => "certified",
        ModeStop::NodeLimit => "node-limit",
        ModeStop::TimeLimit => "time-limit",
        ModeStop::Precision => "precision",
    };
    (array(py, mode.point), mode.log_density, mode.log_upper, mode.gap, mode.nodes, stop)
}

#[pymethods]
impl Density {
    #[getter]
    fn variables(&self) -> Vec<String> {
        names(self.0.variables())
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.0.constraint().into_owned().into()
    }

    fn log_prob<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        Ok(array(py, run(py, "evaluating", || Ok::<_, PyErr>(self.0.log_prob(&points)))?))
    }

    fn probability(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<f64> {
        let condition = some_formula(condition, "the condition")?;
        run(py, "integrating", || self.0.probability(&condition))
    }

    fn condition(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<Density> {
        let condition = some_formula(condition, "the condition")?;
        run(py, "conditioning", || self.0.condition(&condition)).map(Density)
    }

    fn given(&self, py: Python<'_>, values: Vec<(String, f64)>) -> PyResult<Density> {
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        run(py, "conditioning", || self.0.given(&values)).map(Density)
    }

    /// The same density over the free variables alone.
    fn in_free_coordinates(&self) -> Density {
        Density(self.0.in_free_coordinates())
    }

    /// The number of free coordinates.
    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn cdf(&self, py: Python<'_>, values: Vec<(String, f64)>) -> PyResult<f64> {
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        run(py, "integrating", || self.0.cdf(&values))
    }

    fn marginal(&self, py: Python<'_>, variable: &str) -> PyResult<Marginal> {
        run(py, "integrating", || self.0.marginal(variable)).map(Marginal)
    }

    fn marginal_density<'py>(
        &self,
        py: Python<'py>,
        variables: Vec<String>,
        points: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        Ok(array(py, run(py, "integrating", || self.0.marginal_density(&variables, &points))?))
    }

    fn mean<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        Ok(array(py, run(py, "integrating", || Ok::<_, PyErr>(self.0.mean()))?))
    }

    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        Ok(array(py, run(py, "integrating", || Ok::<_, PyErr>(self.0.covariance()))?))
    }

    fn expectation(&self, py: Python<'_>, polynomial: &Bound<'_, PyAny>) -> PyResult<f64> {
        let polynomial = self::polynomial(polynomial)?;
        run(py, "integrating", || self.0.expectation(&polynomial))
    }

    fn entropy(&self, py: Python<'_>, options: &EntropyOptions) -> PyResult<EntropyAnswer> {
        run(py, "integrating", || Ok::<_, PyErr>(entropy_answer(&self.0.entropy(&options.0))))
    }

    fn sample<'py>(&self, py: Python<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        check_room(count as f64 * self.0.variables().len() as f64, "so many samples")?;
        Ok(array(py, run(py, "sampling", || self.0.sample(count, seed))?))
    }

    /// Samples from rows of given uniform numbers, one more than there are variables.
    fn transform<'py>(&self, py: Python<'py>, uniforms: Input<'py>) -> PyResult<FloatArray<'py>> {
        let uniforms = copied(&uniforms);
        Ok(array(py, run(py, "sampling", || self.0.sampler()?.transform(&uniforms))?))
    }

    fn mode<'py>(&self, py: Python<'py>, options: &ModeOptions) -> PyResult<ModeAnswer<'py>> {
        let mode = run(py, "searching", || self.0.mode(&options.0))?;
        Ok(mode_answer(py, mode))
    }
}

/// The exact marginal of one variable.
#[pyclass(frozen, module = "pal._core")]
pub struct Marginal(pub pal::query::Marginal);

#[pymethods]
impl Marginal {
    #[getter]
    fn support(&self) -> (f64, f64) {
        self.0.support()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    #[getter]
    fn variance(&self) -> f64 {
        self.0.variance()
    }

    fn density<'py>(&self, py: Python<'py>, at: Input<'py>) -> FloatArray<'py> {
        array(py, at.as_array().iter().map(|y| self.0.density(*y)).collect())
    }

    fn cdf<'py>(&self, py: Python<'py>, at: Input<'py>) -> FloatArray<'py> {
        array(py, at.as_array().iter().map(|y| self.0.cdf(*y)).collect())
    }

    fn quantile<'py>(&self, py: Python<'py>, p: Input<'py>) -> PyResult<FloatArray<'py>> {
        let all: Result<Vec<f64>, _> = p.as_array().iter().map(|p| self.0.quantile(*p)).collect();
        Ok(array(py, all.map_err(Report::report)?))
    }

    /// Low end, high end and Legendre coefficients of every piece.
    fn pieces<'py>(&self, py: Python<'py>) -> Vec<(f64, f64, FloatArray<'py>)> {
        self.0.pieces().map(|piece| (piece.low, piece.high, array(py, piece.legendre))).collect()
    }

    /// Points to draw the density through, pair by pair.
    fn polyline<'py>(&self, py: Python<'py>, inside: usize) -> FloatArray<'py> {
        array(py, self.0.polyline(inside).into_iter().flat_map(|(y, density)| [y, density]).collect())
    }
}
