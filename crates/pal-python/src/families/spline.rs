//! Spline mixtures: settings and recipe.

use numpy::PyArray1;
use pal::density::{self, Knots, Settings, SplineMixture};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use super::Kind;
use crate::convert::{array, fraction, some_number};
use crate::work::run;

pub const KIND: Kind = Kind {
    read_settings: |object| Some(Settings::Spline(object.cast::<SplineSettings>().ok()?.get().0.clone())),
    show_settings: |py, settings| {
        let Settings::Spline(settings) = settings else { return None };
        Some(SplineSettings(settings.clone()).into_bound_py_any(py))
    },
    recipe,
    add_classes: |module| {
        module.add_class::<SplineSettings>()?;
        module.add_class::<SplineRecipe>()?;
        module.add_class::<SplineAxis>()
    },
};

/// How a spline mixture is set up.
#[pyclass(frozen, eq, module = "pal._core")]
#[derive(PartialEq)]
pub struct SplineSettings(density::SplineSettings);

#[pymethods]
impl SplineSettings {
    /// `knots` is a number of equally spaced knots per variable, or the positions of the knots per variable.
    #[new]
    fn new(knots: &Bound<'_, PyAny>, components: usize) -> PyResult<SplineSettings> {
        let knots = match knots.extract::<usize>() {
            Ok(count) => Knots::Uniform(count),
            Err(_) => {
                let lists: Vec<Vec<Bound<'_, PyAny>>> = knots.extract()?;
                let list = |list: &Vec<Bound<'_, PyAny>>| list.iter().map(|at| some_number(at, "a knot")).collect();
                Knots::At(lists.iter().map(list).collect::<PyResult<_>>()?)
            }
        };
        Ok(SplineSettings(density::SplineSettings { knots, components }))
    }

    /// The settings of the library on a region with this many variables, where nothing else is asked for.
    #[staticmethod]
    fn default(dimension: usize) -> SplineSettings {
        SplineSettings(density::SplineSettings::default().chosen(dimension))
    }

    /// The settings of the library for networks that say where components are and how wide.
    #[staticmethod]
    fn for_heads(dimension: usize) -> SplineSettings {
        SplineSettings(density::SplineSettings::for_heads(dimension))
    }

    /// A number of equally spaced knots per variable, or the exact positions of the knots per variable.
    #[getter]
    fn knots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.0.knots {
            Knots::Automatic => Ok(py.None().into_bound(py)),
            Knots::Uniform(count) => count.into_bound_py_any(py),
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
        let knots = match &self.0.knots {
            Knots::Automatic => "None".to_string(),
            Knots::Uniform(count) => count.to_string(),
            Knots::At(lists) => {
                let list = |list: &Vec<_>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                format!("[[{}]]", lists.iter().map(list).collect::<Vec<_>>().join("], ["))
            }
        };
        format!("SplineSettings(knots={knots}, components={})", self.0.components)
    }
}

/// Constants of a spline mixture: see `pal::density::SplineRecipe`.
#[pyclass(frozen, get_all, module = "pal._core")]
pub struct SplineRecipe {
    /// Components of the mixture.
    components: usize,
    /// The logarithm of the volume of the box.
    log_volume: f64,
    /// Constants per variable.
    axes: Vec<Py<SplineAxis>>,
    /// The multilinear form of the normaliser in values at nodes, one index per axis, the last one running fastest;
    /// `None` if it would be too large.
    form: Option<Py<PyArray1<f64>>>,
}

/// One axis of a spline recipe.
#[pyclass(frozen, get_all, module = "pal._core")]
pub struct SplineAxis {
    /// Parameters along the axis: twice the number of knots.
    params: usize,
    /// Nodes along the axis, whose values determine the square of a spline.
    nodes: usize,
    /// The matrix that takes a spline to its values at the nodes, one row of nodes for each parameter.
    values: Py<PyArray1<f64>>,
    /// The knots, rounded to float64.
    knots: Py<PyArray1<f64>>,
    /// The low parts of the knots: what rounding them to float64 leaves.
    low_parts: Py<PyArray1<f64>>,
    /// The widths of the bins between consecutive knots.
    widths: Py<PyArray1<f64>>,
}

fn recipe<'py>(py: Python<'py>, family: &density::Family) -> Option<PyResult<Bound<'py, PyAny>>> {
    family.downcast::<SplineMixture>().map(|kind| {
        let recipe = run(py, "preparing", || Ok::<_, PyErr>(kind.recipe()))?;
        let keep = |values: Vec<f64>| array(py, values).unbind();
        let axis = |(constants, axis): (density::SplineAxis, &density::Axis)| {
            let widths = axis.bin_indices().map(|bin| axis.width(bin)).collect();
            Py::new(
                py,
                SplineAxis {
                    params: constants.params,
                    nodes: constants.nodes,
                    values: keep(constants.values),
                    knots: keep(axis.positions()),
                    low_parts: keep(axis.low_parts()),
                    widths: keep(widths),
                },
            )
        };
        let axes = recipe.axes.into_iter().zip(family.support().grid().axes()).map(axis).collect::<PyResult<_>>()?;
        let (components, log_volume) = (recipe.components, recipe.log_volume);
        SplineRecipe { components, log_volume, axes, form: recipe.form.map(keep) }.into_bound_py_any(py)
    })
}
