//! Questions about many parameter vectors with derivatives: entropies and divergences, moments on events, and values
//! that are given per row.

use numpy::{PyArray1, PyReadonlyArray1};
use pal::query::{self, Information};
use pyo3::prelude::*;

use crate::convert::{FloatArray, array, copied, flags};
use crate::density::{Density, EntropyOptions};
use crate::family::Family;
use crate::formula::some_formula;
use crate::work::run;

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Values, estimates of errors, whether these are within the tolerance, and derivatives with respect to the parameters
/// of both densities.
pub type InformationAnswer<'py> =
    (FloatArray<'py>, FloatArray<'py>, Bound<'py, PyArray1<bool>>, Option<FloatArray<'py>>, Option<FloatArray<'py>>);

pub fn information_answer(py: Python<'_>, information: Information) -> InformationAnswer<'_> {
    let Information { values, errors, converged, gradient, other_gradient } = information;
    let optional = |numbers: Option<Vec<f64>>| numbers.map(|numbers| array(py, numbers));
    (array(py, values), array(py, errors), flags(py, converged), optional(gradient), optional(other_gradient))
}

/// A formula compiled on a family.
#[pyclass(frozen, module = "pal._core")]
pub struct Event(pub query::Event);

#[pymethods]
impl Event {
    #[new]
    fn new(py: Python<'_>, family: &Bound<'_, Family>, condition: &Bound<'_, PyAny>) -> PyResult<Event> {
        let (family, condition) = (&family.get().0, some_formula(condition, "the condition")?);
        run(py, "conditioning", || family.event(&condition)).map(Event)
    }

    fn probability<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.probability(&params))?))
    }

    /// Entropies given the event, with derivatives where they are asked for.
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

    /// Divergences of the densities given the event from those of another family.
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

    /// Rows of samples given the event: `count` for each parameter vector, one after the other.
    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }
}

/// Moments of the part of densities where a condition holds.
#[pyclass(frozen, module = "pal._core")]
pub struct EventMoments(query::EventMoments);

#[pymethods]
impl EventMoments {
    #[new]
    fn new(
        py: Python<'_>,
        family: &Bound<'_, Family>,
        condition: &Bound<'_, PyAny>,
        powers: Vec<Vec<u16>>,
    ) -> PyResult<EventMoments> {
        let (family, condition) = (&family.get().0, some_formula(condition, "the condition")?);
        run(py, "integrating", || family.event_moments(&condition, &powers)).map(EventMoments)
    }

    /// The moments under each parameter vector, row by row.
    fn values<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.values(&params))?))
    }

    /// The gradient of a weighted sum of moments with respect to the parameters.
    fn vjp<'py>(&self, py: Python<'py>, params: Input<'py>, cotangent: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, cotangent) = (copied(&params), copied(&cotangent));
        Ok(array(py, run(py, "integrating", || self.0.vjp(&params, &cotangent))?))
    }
}

/// Values of some variables that are given, others for every parameter vector.
#[pyclass(frozen, module = "pal._core")]
pub struct GivenRows(query::GivenRows);

#[pymethods]
impl GivenRows {
    #[new]
    fn new(
        py: Python<'_>,
        family: &Bound<'_, Family>,
        names: Vec<String>,
        values: Input<'_>,
        condition: &Bound<'_, PyAny>,
    ) -> PyResult<GivenRows> {
        let (family, condition) = (&family.get().0, some_formula(condition, "the condition")?);
        let values = copied(&values);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        run(py, "conditioning", || family.given_rows(&names, &values, &condition)).map(GivenRows)
    }

    /// Integrals over the slices, row by row: see `GivenRows::moments` of the library.
    fn moments<'py>(&self, py: Python<'py>, params: Input<'py>, powers: Vec<Vec<u16>>) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "integrating", || self.0.moments(&params, &powers))?))
    }

    /// The gradient of a weighted sum of these with respect to the parameters.
    fn moments_vjp<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        powers: Vec<Vec<u16>>,
        cotangent: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (params, cotangent) = (copied(&params), copied(&cotangent));
        Ok(array(py, run(py, "integrating", || self.0.moments_vjp(&params, &powers, &cotangent))?))
    }

    /// The density of the other variables for each row.
    fn densities<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = copied(&params);
        let densities = run(py, "conditioning", || self.0.densities(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }

    /// Rows of samples of the other variables: `count` for each parameter vector, one after the other.
    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }
}
