//! Sums of squares: settings and recipe.

use numpy::PyArray1;
use pal::density::{self, Basis, Settings, Subset, SumOfSquares};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::Kind;
use crate::convert::array;
use crate::work::run;

pub const KIND: Kind = Kind {
    read_settings: |object| Some(Settings::SumOfSquares(object.cast::<SumOfSquaresSettings>().ok()?.get().0)),
    show_settings: |py, settings| {
        let Settings::SumOfSquares(settings) = settings else { return None };
        Some(SumOfSquaresSettings(*settings).into_bound_py_any(py))
    },
    recipe,
    add_classes: |module| {
        module.add_class::<SumOfSquaresSettings>()?;
        module.add_class::<SumOfSquaresRecipe>()
    },
};

/// How a sum of squares is set up.
#[pyclass(frozen, eq, module = "pal._core")]
#[derive(PartialEq)]
pub struct SumOfSquaresSettings(density::SumOfSquaresSettings);

#[pymethods]
impl SumOfSquaresSettings {
    /// `terms` members of the basis are chosen by `seed`; `None` takes all of them.
    #[new]
    fn new(
        degree: u16,
        components: usize,
        basis: &str,
        terms: Option<usize>,
        seed: u64,
    ) -> PyResult<SumOfSquaresSettings> {
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
        Ok(SumOfSquaresSettings(density::SumOfSquaresSettings { degree: Some(degree), components, basis, subset }))
    }

    /// The settings of the library on a region with this many variables, where nothing else is asked for.
    #[staticmethod]
    fn default(dimension: usize) -> SumOfSquaresSettings {
        SumOfSquaresSettings(density::SumOfSquaresSettings::default().chosen(dimension))
    }

    /// The degree of the polynomials that are squared.
    #[getter]
    fn degree(&self) -> Option<u16> {
        self.0.degree
    }

    /// Squares in the sum.
    #[getter]
    fn components(&self) -> usize {
        self.0.components
    }

    /// The name of the basis.
    #[getter]
    fn basis(&self) -> &'static str {
        match self.0.basis {
            Basis::Orthonormal => "orthonormal",
            Basis::Legendre => "legendre",
            Basis::Monomial => "monomial",
        }
    }

    /// How many members of the basis are chosen at random; `None` for all of them.
    #[getter]
    fn terms(&self) -> Option<usize> {
        self.0.subset.as_ref().map(|subset| subset.terms)
    }

    /// The seed of that choice.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.subset.as_ref().map_or(0, |subset| subset.seed)
    }

    fn __repr__(&self) -> String {
        let subset = match &self.0.subset {
            Some(Subset { terms, seed }) => format!(", terms={terms}, seed={seed}"),
            None => String::new(),
        };
        let degree = self.0.degree.map_or("None".to_string(), |degree| degree.to_string());
        let (components, basis) = (self.0.components, self.basis());
        format!("SumOfSquaresSettings(degree={degree}, components={components}, basis=\"{basis}\"{subset})")
    }
}

/// Constants of a sum of squares: see `pal::density::SumOfSquaresRecipe`.
#[pyclass(frozen, get_all, module = "pal._core")]
pub struct SumOfSquaresRecipe {
    /// Squares in the sum.
    components: usize,
    /// The logarithm of the volume of the box.
    log_volume: f64,
    /// Features of a point, and coefficients of a square.
    size: usize,
    /// The degree of the polynomials that are squared.
    degree: u16,
    /// Whether parameters z stand for coefficients `sign(z) (sqrt(|z| + 0.1) - sqrt(0.1))` rather than for themselves.
    reparametrised: bool,
    /// The Gram matrix of the basis by rows; `None` for the identity.
    gram: Option<Py<PyArray1<f64>>>,
}

fn recipe<'py>(py: Python<'py>, family: &density::Family) -> Option<PyResult<Bound<'py, PyAny>>> {
    let kind = family.downcast::<SumOfSquares>()?;
    let make = || {
        let recipe = run(py, "preparing", || Ok::<_, PyErr>(kind.recipe()))?;
        SumOfSquaresRecipe {
            components: recipe.components,
            log_volume: recipe.log_volume,
            size: recipe.size,
            degree: recipe.degree,
            reparametrised: recipe.reparametrised,
            gram: recipe.gram.map(|gram| array(py, gram).unbind()),
        }
        .into_bound_py_any(py)
    };
    Some(make())
}
