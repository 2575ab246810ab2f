//! The kinds of families as Python sees them: for each kind a class of settings and a class of constants for tensor
//! frameworks.
//!
//! A new kind is a module here and one line in [`KINDS`]; everything else in this crate works with any family.

mod histogram;
mod spline;
mod sum_of_squares;

use pal::density::{self, Settings};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::unexpected;

/// What one kind of family hands to Python. Every function returns `None` for objects of other kinds.
pub struct Kind {
    /// The settings that an object of this kind's settings class holds.
    read_settings: fn(&Bound<'_, PyAny>) -> Option<Settings>,
    /// Settings as an object of this kind's class.
    show_settings: for<'py> fn(Python<'py>, &Settings) -> Option<PyResult<Bound<'py, PyAny>>>,
    /// The constants with which a tensor framework computes log-densities by itself.
    recipe: for<'py> fn(Python<'py>, &density::Family) -> Option<PyResult<Bound<'py, PyAny>>>,
    /// Adds the classes of this kind to the module.
    add_classes: fn(&Bound<'_, PyModule>) -> PyResult<()>,
}

/// One line per kind of family.
#[rustfmt::skip]
const KINDS: &[Kind] = &[
    spline::KIND,
    sum_of_squares::KIND,
    histogram::KIND,
];

/// The settings of any kind that an object of Python holds.
pub fn read_settings(object: &Bound<'_, PyAny>) -> PyResult<Settings> {
    KINDS.iter().find_map(|kind| (kind.read_settings)(object)).ok_or_else(|| {
        let name = object.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
        PyTypeError::new_err(format!("expected the settings of a family, not {name}"))
    })
}

/// The settings of any kind as an object of Python.
pub fn show_settings<'py>(py: Python<'py>, settings: &Settings) -> PyResult<Bound<'py, PyAny>> {
    let missing = || unexpected("a kind of family is missing in families/mod.rs");
    KINDS.iter().find_map(|kind| (kind.show_settings)(py, settings)).ok_or_else(missing)?
}

/// The recipe of a family as an object of the class of its kind.
pub fn recipe<'py>(py: Python<'py>, family: &density::Family) -> PyResult<Bound<'py, PyAny>> {
    let missing = || unexpected("a kind of family is missing in families/mod.rs");
    KINDS.iter().find_map(|kind| (kind.recipe)(py, family)).ok_or_else(missing)?
}

/// Adds the classes of all kinds to the module.
pub fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    KINDS.iter().try_for_each(|kind| (kind.add_classes)(module))
}
