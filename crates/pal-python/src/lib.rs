//! The compiled half of the Python package `pal`: the module `pal._core`.
//!
//! It converts arguments, releases the interpreter while the library works, and turns errors into exceptions. Shapes of
//! arrays, optional arguments and documentation live in the Python half; points and parameters arrive here as flat
//! arrays of float64.
//!
//! | module | what lives there |
//! |---|---|
//! | `convert` | exact numbers and arrays on their way in and out |
//! | `term`, `piecewise`, `formula`, `polynomial`, `constraint` | operators of terms and formulas, readers of files |
//! | `region` | cells, integrals, convex polytopes |
//! | `batch` | a region for each row of a batch |
//! | `family`, `density` | questions about many parameter vectors, and about one |
//! | `event` | questions about many parameter vectors with derivatives: entropies, moments on events, given values |
//! | `families` | settings and recipes, one module per kind of family |
//! | `mixed` | densities over real and Boolean variables |
//! | `kernel` | kernel mixtures, which have no grid |
//! | `network` | reading networks that the program trained |
//! | `files` | writing files |
//! | `work` | threads, signals, progress, memory |
//! | `errors` | errors of the library as exceptions |

// Documentation of classes is read by Python: lines that begin with `>>>` are examples, not quotations.
#![allow(clippy::doc_lazy_continuation)]

mod batch;
mod constraint;
mod convert;
mod density;
mod errors;
mod event;
mod families;
mod family;
mod files;
mod flat;
mod formula;
mod kernel;
mod mixed;
mod network;
mod piecewise;
mod polynomial;
mod region;
mod term;
mod work;

use pyo3::prelude::*;

/// The compiled half of the package; use `pal` instead.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::{RegionBatch, RegionForms, RegionMap};
    #[pymodule_export]
    use crate::constraint::{
        Constraint, mask_formula, parse_geojson, parse_pishield, parse_smtlib, parse_wkb, parse_wkt, png_mask, polygon,
    };
    #[pymodule_export]
    use crate::convert::rational;
    #[pymodule_export]
    use crate::density::{Density, EntropyOptions, Marginal, ModeOptions};
    #[pymodule_export]
    use crate::event::{Event, EventMoments, GivenRows};
    #[pymodule_export]
    use crate::family::Family;
    #[pymodule_export]
    use crate::files::write_file;
    #[pymodule_export]
    use crate::flat::Flat;
    #[pymodule_export]
    use crate::formula::Formula;
    #[pymodule_export]
    use crate::kernel::KernelFamily;
    #[pymodule_export]
    use crate::mixed::{MixedDensity, MixedEvent, MixedExpectation, MixedFamily, category_formulas};
    #[pymodule_export]
    use crate::network::read_network;
    #[pymodule_export]
    use crate::piecewise::{PiecewiseTerm, maximum, minimum};
    #[pymodule_export]
    use crate::polynomial::{Polynomial, Weight, solve};
    #[pymodule_export]
    use crate::region::{ConvexPolytope, Region};
    #[pymodule_export]
    use crate::term::Term;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::families::add_classes(module)
    }
}
