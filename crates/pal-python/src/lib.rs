//! The compiled half of the Python package `pal`: the module `pal._core`.
//!
//! It converts arguments, releases the interpreter while the library works, and turns errors into exceptions. Shapes of arrays, defaults and
//! documentation live in the Python half; points and parameters arrive here as flat arrays of doubles.

mod constraint;
mod convert;
mod density;
mod errors;
mod family;
mod formula;
mod polynomial;
mod region;
mod term;
mod work;

use pyo3::prelude::*;

/// The compiled half of the package; use `pal` instead.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::constraint::{Constraint, parse_geojson, parse_smtlib, polygon};
    #[pymodule_export]
    use crate::convert::rational;
    #[pymodule_export]
    use crate::density::{Density, Marginal};
    #[pymodule_export]
    use crate::family::Family;
    #[pymodule_export]
    use crate::formula::Formula;
    #[pymodule_export]
    use crate::polynomial::{Polynomial, Weight, solve};
    #[pymodule_export]
    use crate::region::Region;
    #[pymodule_export]
    use crate::term::Term;
}
