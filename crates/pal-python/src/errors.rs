//! Errors of the library as exceptions of `pal.errors`.

use pal::density::{DensityError, FileError};
use pal::formula::{
    CategoryError, GeoJsonError, MaskError, MembershipError, OrderError, PiShieldError, PolygonError, SmtError,
    SmtWriteError, TooManyPieces, WkbError, WktError,
};
use pal::moments::{ExponentsError, IntegrateError};
use pal::number::NumberError;
use pal::polynomial::{ParseError, PolynomialError};
use pal::query::{NotAProbability, QueryError};
use pal::region::{BatchError, BatchFileError, FlatError, ProjectionError, RegionError, Unbounded};
use pal::wmi::{ProblemError, TooManyCases, WmiError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::fraction;

/// An error that knows its exception.
pub trait Report {
    fn report(self) -> PyErr;
}

impl Report for PyErr {
    fn report(self) -> PyErr {
        self
    }
}

/// An exception of `pal.errors` with a message.
pub fn exception(class: &str, message: String) -> PyErr {
    Python::attach(|py| {
        let make = || -> PyResult<PyErr> {
            let class = py.import("pal.errors")?.getattr(class)?;
            Ok(PyErr::from_value(class.call1((message.clone(),))?))
        };
        make().unwrap_or_else(|error| error)
    })
}

/// An exception of `pal.errors` with a message and further attributes.
fn with(class: &str, message: String, attributes: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    let error = exception(class, message);
    Python::attach(|py| match attributes(py, error.value(py).as_any()) {
        Ok(()) => error,
        Err(other) => other,
    })
}

macro_rules! report {
    ($($error:ty => $class:literal),* $(,)?) => {$(
        impl Report for $error {
            fn report(self) -> PyErr {
                exception($class, self.to_string())
            }
        }
    )*};
}

report! {
    NumberError => "NumberError",
    PolynomialError => "PolynomialError",
    ExponentsError => "PolynomialError",
    MembershipError => "RegionError",
    MaskError => "ParseError",
    WkbError => "ParseError",
    OrderError => "RegionError",
    CategoryError => "RegionError",
    PolygonError => "RegionError",
    SmtWriteError => "FileError",
    ProblemError => "ParseError",
    ParseError => "ParseError",
    TooManyCases => "PolynomialError",
    TooManyPieces => "PolynomialError",
    NotAProbability => "QueryError",
    BatchError => "RegionError",
    FlatError => "RegionError",
    BatchFileError => "FileError",
}

impl Report for SmtError {
    fn report(self) -> PyErr {
        with("ParseError", self.to_string(), |_, error| {
            error.setattr("line", self.line)?;
            error.setattr("column", self.column)
        })
    }
}

impl Report for WktError {
    fn report(self) -> PyErr {
        with("ParseError", self.to_string(), |_, error| {
            error.setattr("line", self.line)?;
            error.setattr("column", self.column)
        })
    }
}

impl Report for PiShieldError {
    fn report(self) -> PyErr {
        with("ParseError", self.to_string(), |_, error| error.setattr("line", self.line))
    }
}

impl Report for GeoJsonError {
    fn report(self) -> PyErr {
        let message = self.to_string();
        match self {
            GeoJsonError::Json { line, column, .. }
            | GeoJsonError::Map { line, column, .. }
            | GeoJsonError::Polygon { line, column, .. } => with("ParseError", message, |_, error| {
                error.setattr("line", line)?;
                error.setattr("column", column)
            }),
            GeoJsonError::NoBounds | GeoJsonError::EmptyBounds(_) => exception("ParseError", message),
        }
    }
}

impl Report for Unbounded {
    fn report(self) -> PyErr {
        with("UnboundedError", self.to_string(), |py, error| {
            let ray = PyDict::new(py);
            for (var, along) in self.variables.iter().zip(&self.direction) {
                ray.set_item(var.name(), fraction(py, along)?)?;
            }
            error.setattr("direction", ray)
        })
    }
}

impl Report for RegionError {
    fn report(self) -> PyErr {
        match self {
            RegionError::Unbounded(ray) => ray.report(),
            other => exception("RegionError", other.to_string()),
        }
    }
}

impl Report for ProjectionError {
    fn report(self) -> PyErr {
        match self {
            ProjectionError::Unbounded(ray) => ray.report(),
            other => exception("RegionError", other.to_string()),
        }
    }
}

impl Report for IntegrateError {
    fn report(self) -> PyErr {
        match self {
            IntegrateError::Unbounded(ray) => ray.report(),
            other => exception("PolynomialError", other.to_string()),
        }
    }
}

impl Report for WmiError {
    fn report(self) -> PyErr {
        match self {
            WmiError::Unbounded(ray) => ray.report(),
            WmiError::Region(error) => error.report(),
            other => exception("PolynomialError", other.to_string()),
        }
    }
}

impl Report for DensityError {
    fn report(self) -> PyErr {
        match self {
            DensityError::Unbounded(ray) => ray.report(),
            DensityError::Region(error) => error.report(),
            DensityError::Flat(error) => error.report(),
            other => exception("DensityError", other.to_string()),
        }
    }
}

impl Report for QueryError {
    fn report(self) -> PyErr {
        match self {
            QueryError::Density(error) => error.report(),
            QueryError::Polynomial(error) => error.report(),
            other => exception("QueryError", other.to_string()),
        }
    }
}

impl Report for FileError {
    fn report(self) -> PyErr {
        let message = match &self {
            FileError::Density(_) => self.to_string(),
            // Their messages leave out the cause.
            FileError::Constraint(cause) => format!("{self}: {cause}"),
            FileError::Settings(cause) => format!("{self}: {cause}"),
            _ => self.to_string(),
        };
        exception("FileError", message)
    }
}

/// What should be impossible, said rather than guessed.
pub fn unexpected(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what}; this is a mistake in pal, please report it"))
}
