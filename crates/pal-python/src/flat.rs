//! Flats: regions on which equalities hold, in free coordinates.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pal::moments::surface_integral;
use pal::region::{self, Unbounded};
use pyo3::prelude::*;

use crate::convert::{FloatArray, array, copied, fraction};
use crate::family::names;
use crate::polynomial::polynomial;
use crate::region::{Region, method};
use crate::work::run;

/// A region of lower dimension than there are variables, and how its free coordinates determine all coordinates.
#[pyclass(frozen, module = "pal._core")]
pub struct Flat(pub Arc<region::Flat>);

type Input<'py> = PyReadonlyArray1<'py, f64>;
/// The position of a dependent variable, its constant, and its coefficients.
type Dependent<'py> = (usize, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>);
/// Value, error bound, exact integral over free coordinates and exact square of the factor.
type SurfaceAnswer<'py> = (f64, f64, Option<Bound<'py, PyAny>>, Bound<'py, PyAny>);

#[pymethods]
impl Flat {
    /// The positions of the free variables among all variables.
    #[getter]
    fn free(&self) -> Vec<usize> {
        self.0.chart().free().to_vec()
    }

    /// The names of the free variables.
    #[getter]
    fn free_names(&self) -> Vec<String> {
        names(&self.0.chart().free_variables())
    }

    #[getter]
    fn dependents<'py>(&self, py: Python<'py>) -> PyResult<Vec<Dependent<'py>>> {
        let dependents = self.0.chart().dependents().iter();
        dependents
            .map(|dependent| {
                let coefficients = dependent.coefficients.iter().map(|a| fraction(py, a)).collect::<PyResult<_>>()?;
                Ok((dependent.position, fraction(py, &dependent.constant)?, coefficients))
            })
            .collect()
    }

    /// The logarithm of the factor between volumes of free coordinates and surface measure.
    #[getter]
    fn log_factor(&self) -> f64 {
        self.0.chart().log_factor()
    }

    /// The derivatives of all coordinates with respect to the free ones, row by row.
    #[getter]
    fn jacobian<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.chart().jacobian())
    }

    /// What remains of the constraint, over the free variables.
    fn region(&self) -> Region {
        Region::of(self.0.region().clone())
    }

    /// Points with all coordinates from free coordinates.
    fn fill<'py>(&self, py: Python<'py>, free: Input<'py>) -> FloatArray<'py> {
        array(py, self.0.chart().fill(&copied(&free)))
    }

    /// Free coordinates of points; NaN where they are off the flat.
    fn restrict<'py>(&self, py: Python<'py>, points: Input<'py>, epsilon: f64) -> FloatArray<'py> {
        array(py, self.0.chart().restrict(&copied(&points), epsilon))
    }

    /// The surface measure in float64, the exact volume of free coordinates, and the exact square of the factor.
    fn surface_measure<'py>(&self, py: Python<'py>) -> PyResult<(f64, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let measure = run(py, "measuring", || -> Result<_, Unbounded> { self.0.surface_measure() })?;
        Ok((measure.value(), fraction(py, &measure.free_volume)?, fraction(py, &measure.square_factor)?))
    }

    fn integrate<'py>(
        &self,
        py: Python<'py>,
        polynomial: &Bound<'py, PyAny>,
        method: &str,
    ) -> PyResult<SurfaceAnswer<'py>> {
        let (integrand, method) = (self::polynomial(polynomial)?, self::method(method)?);
        let integral = run(py, "integrating", || surface_integral(&self.0, &integrand, method))?;
        let exact = integral.free.exact.as_ref().map(|value| fraction(py, value)).transpose()?;
        Ok((integral.value(), integral.error(), exact, fraction(py, &integral.square_factor)?))
    }
}
