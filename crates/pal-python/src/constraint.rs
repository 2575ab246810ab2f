//! Formulas with their variables, and the files and shapes that they come from.

use std::sync::OnceLock;

use numpy::{PyArray1, PyReadonlyArray1};
use pal::formula::{GeoJsonOptions, Meaning, Membership, MembershipError, Polygon, Ring, Var, reals, write_smtlib};
use pal::number::Rational;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{copied, flags, some_number};
use crate::errors::{Report, exception};
use crate::formula::{Formula, some_formula};
use crate::work::run;

/// A formula over a declared, ordered list of variables.
#[pyclass(frozen, module = "pal._core")]
pub struct Constraint(pub pal::formula::Constraint, OnceLock<Membership>);

impl From<pal::formula::Constraint> for Constraint {
    fn from(constraint: pal::formula::Constraint) -> Self {
        Constraint(constraint, OnceLock::new())
    }
}

#[pymethods]
impl Constraint {
    /// The formula over the given variables, or over those that occur in it, in the order of their declaration.
    #[new]
    #[pyo3(signature = (formula, reals, booleans))]
    fn new(
        formula: &Bound<'_, PyAny>,
        reals: Option<Vec<String>>,
        booleans: Option<Vec<String>>,
    ) -> PyResult<Constraint> {
        let formula = some_formula(formula, "the constraint")?;
        let mut constraint = match reals {
            Some(names) => pal::formula::Constraint::over(formula, &names).map_err(Report::report)?,
            None => pal::formula::Constraint::new(formula),
        };
        if let Some(names) = booleans {
            constraint.booleans = Var::declare_all(&names);
        }
        Ok(constraint.into())
    }

    /// The same constraint with its real variables in another order.
    fn with_order(&self, names: Vec<String>) -> PyResult<Constraint> {
        self.0.clone().with_order(&names).map(Constraint::from).map_err(Report::report)
    }

    #[getter]
    fn formula(&self) -> Formula {
        Formula(self.0.formula.clone())
    }

    #[getter]
    fn reals(&self) -> Vec<String> {
        self.0.reals.iter().map(|var| var.name().to_string()).collect()
    }

    #[getter]
    fn booleans(&self) -> Vec<String> {
        self.0.booleans.iter().map(|var| var.name().to_string()).collect()
    }

    /// The script that `parse_smtlib` reads back.
    fn to_smtlib(&self) -> PyResult<String> {
        write_smtlib(&self.0).map_err(Report::report)
    }

    /// Reads one term over the variables.
    fn parse_term(&self, text: &str) -> PyResult<Formula> {
        pal::formula::parse_smtlib_term(text, &self.0).map(Formula).map_err(Report::report)
    }

    /// Exact membership of points, given row by row.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        if let Some(var) = self.0.booleans.first() {
            return Err(exception(
                "RegionError",
                format!(
                    "whether a point is inside depends on the Boolean variable `{var}`; substitute a value for it first"
                ),
            ));
        }
        let points = copied(&points);
        let test = || -> Result<Vec<bool>, MembershipError> {
            // Compiled when it is first needed.
            let test = match self.1.get() {
                Some(test) => test,
                None => {
                    let compiled = self.0.membership()?;
                    self.1.get_or_init(|| compiled)
                }
            };
            Ok(test.contains_batch(&points))
        };
        let inside = run(py, "testing points", test)?;
        Ok(flags(py, inside))
    }
}

/// The conjunction of the asserts of an SMT-LIB script.
#[pyfunction]
pub fn parse_smtlib(text: &str) -> PyResult<Constraint> {
    pal::formula::parse_smtlib(text).map(Constraint::from).map_err(Report::report)
}

/// The free space of a GeoJSON map, over the variables `x` and `y`.
#[pyfunction]
#[pyo3(signature = (text, meaning, bounds))]
pub fn parse_geojson(text: &str, meaning: &str, bounds: Option<Vec<Bound<'_, PyAny>>>) -> PyResult<Constraint> {
    let meaning = match meaning {
        "forbidden" => Meaning::Forbidden,
        "walkable" => Meaning::Walkable,
        other => {
            return Err(PyValueError::new_err(format!("polygons are \"forbidden\" or \"walkable\", not \"{other}\"")));
        }
    };
    let bounds = match bounds {
        None => None,
        Some(ends) => {
            let ends: Vec<Rational> = ends.iter().map(|end| some_number(end, "a bound")).collect::<PyResult<_>>()?;
            let count = ends.len();
            let wrong =
                |_| PyValueError::new_err(format!("bounds are four numbers x0, y0, x1, y1; {count} were given"));
            Some(<[Rational; 4]>::try_from(ends).map_err(wrong)?)
        }
    };
    pal::formula::parse_geojson(text, &GeoJsonOptions { meaning, bounds }).map(Constraint::from).map_err(Report::report)
}

/// The polygons of well-known text as a formula over two variables: their union.
#[pyfunction]
pub fn parse_wkt(text: &str, x: &str, y: &str) -> PyResult<Formula> {
    union(&pal::formula::parse_wkt(text).map_err(Report::report)?, x, y)
}

/// The polygons of well-known binary, or of its hexadecimal digits, as a formula over two variables: their union.
#[pyfunction]
pub fn parse_wkb(content: &[u8], x: &str, y: &str) -> PyResult<Formula> {
    union(&pal::formula::parse_wkb(content).map_err(Report::report)?, x, y)
}

/// Requirements of PiShield.
#[pyfunction]
pub fn parse_pishield(text: &str) -> PyResult<Constraint> {
    pal::formula::parse_pishield(text).map(Constraint::from).map_err(Report::report)
}

/// The width and the obstacle pixels of a PNG file.
#[pyfunction]
pub fn png_mask<'py>(py: Python<'py>, content: &[u8], threshold: f64) -> PyResult<(usize, Bound<'py, PyArray1<bool>>)> {
    let mask = pal::formula::Mask::from_png(content, threshold).map_err(Report::report)?;
    Ok((mask.width, flags(py, mask.obstacles)))
}

/// Polygons that cover the obstacle pixels of a picture, as a formula over two variables: their union.
#[pyfunction]
pub fn mask_formula(
    py: Python<'_>,
    width: usize,
    obstacles: PyReadonlyArray1<'_, bool>,
    tolerance: f64,
    x: &str,
    y: &str,
) -> PyResult<Formula> {
    let mask = pal::formula::Mask { width, obstacles: copied(&obstacles) };
    let polygons = run(py, "tracing outlines", || pal::formula::mask_polygons(&mask, tolerance))?;
    union(&polygons, x, y)
}

fn union(polygons: &[Polygon], x: &str, y: &str) -> PyResult<Formula> {
    let [x, y] = reals([x, y]);
    Ok(Formula(pal::formula::Formula::any(polygons.iter().map(|polygon| polygon.to_formula(&x, &y)))))
}

type Corners<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// A simple polygon with holes as a formula over two variables.
#[pyfunction]
pub fn polygon(outer: Corners<'_>, holes: Vec<Corners<'_>>, x: &str, y: &str) -> PyResult<Formula> {
    let ring = |corners: &Corners<'_>| -> PyResult<Ring> {
        let corner = |(x, y): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<[Rational; 2]> {
            Ok([some_number(x, "a coordinate")?, some_number(y, "a coordinate")?])
        };
        let points = corners.iter().map(corner).collect::<PyResult<_>>()?;
        Ring::new(points).map_err(Report::report)
    };
    let [x, y] = reals([x, y]);
    let polygon = Polygon::new(ring(&outer)?, holes.iter().map(ring).collect::<PyResult<_>>()?);
    Ok(Formula(polygon.map_err(Report::report)?.to_formula(&x, &y)))
}
