//! Histogram mixtures: settings and recipe.

use numpy::PyArray1;
use pal::density::{self, HistogramMixture, Knots, Settings};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::Kind;
use crate::convert::{array, fraction, some_number};
use crate::work::run;

pub const KIND: Kind = Kind {
    read_settings: |object| Some(Settings::Histogram(object.cast::<HistogramSettings>().ok()?.get().0.clone())),
    show_settings: |py, settings| {
        let Settings::Histogram(settings) = settings else { return None };
        Some(HistogramSettings(settings.clone()).into_bound_py_any(py))
    },
    recipe,
    add_classes: |module| {
        module.add_class::<HistogramSettings>()?;
        module.add_class::<HistogramRecipe>()
    },
};

/// How a histogram mixture is set up.
#[pyclass(frozen, eq, module = "pal._core")]
#[derive(PartialEq)]
pub struct HistogramSettings(density::HistogramSettings);

#[pymethods]
impl HistogramSettings {
    /// `bins` is a number of equally wide bins per variable, or the ends of the bins per variable.
    #[new]
    fn new(bins: &Bound<'_, PyAny>, components: usize) -> PyResult<HistogramSettings> {
        let knots = match bins.extract::<usize>() {
            Ok(count) => Knots::Uniform(count.saturating_add(1)),
            Err(_) => {
                let lists: Vec<Vec<Bound<'_, PyAny>>> = bins.extract()?;
                let list =
                    |list: &Vec<Bound<'_, PyAny>>| list.iter().map(|at| some_number(at, "the end of a bin")).collect();
                Knots::At(lists.iter().map(list).collect::<PyResult<_>>()?)
            }
        };
        Ok(HistogramSettings(density::HistogramSettings { knots, components }))
    }

    /// The settings of the library on a region with this many variables, where nothing else is asked for.
    #[staticmethod]
    fn default(dimension: usize) -> HistogramSettings {
        HistogramSettings(density::HistogramSettings::default().chosen(dimension))
    }

    /// A number of equally wide bins per variable, or the exact ends of the bins per variable.
    #[getter]
    fn bins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0.knots {
            Knots::Automatic => Ok(py.None().into_bound(py)),
            Knots::Uniform(count) => count.saturating_sub(1).into_bound_py_any(py),
            Knots::At(lists) => {
                let exact = |list: &Vec<_>| list.iter().map(|at| fraction(py, at)).collect::<PyResult<Vec<_>>>();
                lists.iter().map(exact).collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
            }
        }
    }

    /// Components of the mixture.
    #[getter]
    fn components(&self) -> usize {
        self.0.components
    }

    fn __repr__(&self) -> String {
        let bins = match &self.0.knots {
            Knots::Automatic => "None".to_string(),
            Knots::Uniform(count) => count.saturating_sub(1).to_string(),
            Knots::At(lists) => {
                let list = |list: &Vec<_>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                format!("[[{}]]", lists.iter().map(list).collect::<Vec<_>>().join("], ["))
            }
        };
        format!("HistogramSettings(bins={bins}, components={})", self.0.components)
    }
}

/// Constants of a histogram mixture: see `pal::density::HistogramRecipe`.
#[pyclass(frozen, get_all, module = "pal._core")]
pub struct HistogramRecipe {
    /// Components of the mixture.
    components: usize,
    /// The logarithm of the volume of the box.
    log_volume: f64,
    /// The number of bins along every axis.
    bins: Vec<usize>,
    /// The multilinear form of the normaliser in weights of bins, one index per axis, the last one running fastest.
    form: Py<PyArray1<f64>>,
}

fn recipe<'py>(py: Python<'py>, family: &density::Family) -> Option<PyResult<Bound<'py, PyAny>>> {
    family.downcast::<HistogramMixture>().map(|kind| {
        let recipe = run(py, "preparing", || Ok::<_, PyErr>(kind.recipe()))?;
        let (components, log_volume, bins) = (recipe.components, recipe.log_volume, recipe.bins);
        HistogramRecipe { components, log_volume, bins, form: array(py, recipe.form).unbind() }.into_bound_py_any(py)
    })
}
