//! Regions, their cells, and integrals over them.

use std::sync::{Arc, OnceLock};

use numpy::{PyArray1, PyReadonlyArray1};
use pal::density::Axis;
use pal::moments::{Exponents, Integral, Method, Moments};
use pal::number::to_f64;
use pal::region::{self, Cell, Status, Unbounded};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied, flags, fraction, some_number};
use crate::errors::{Report, unexpected};
use crate::family::Family;
use crate::flat::Flat;
use crate::polynomial::polynomial;
use crate::work::run;

/// A constraint made ready for decomposition. Cells are found once, when they are first needed.
#[pyclass(frozen, module = "pal._core")]
pub struct Region {
    pub region: pal::region::Region,
    cells: OnceLock<Arc<Vec<Cell>>>,
    /// Made when points are first projected.
    projection: OnceLock<region::Projection>,
    /// Made when points of a flat are first tested.
    membership: OnceLock<region::RegionMembership>,
}

/// Value, error bound, exact value, cells and simplices of an integral.
pub type Answer<'py> = (f64, f64, Option<Bound<'py, PyAny>>, usize, usize);

pub fn answer<'py>(py: Python<'py>, integral: &Integral) -> PyResult<Answer<'py>> {
    let exact = integral.exact.as_ref().map(|value| fraction(py, value)).transpose()?;
    Ok((integral.value, integral.error, exact, integral.cells, integral.simplices))
}

pub fn method(name: &str) -> PyResult<Method> {
    match name {
        "exact" => Ok(Method::Exact),
        "recurrence" => Ok(Method::Recurrence),
        "gasp" => Ok(Method::Gasp),
        other => Err(PyValueError::new_err(format!("methods are exact, recurrence and gasp, not {other}"))),
    }
}

impl Region {
    pub fn of(region: pal::region::Region) -> Region {
        Region { region, cells: OnceLock::new(), projection: OnceLock::new(), membership: OnceLock::new() }
    }

    fn all(&self, py: Python<'_>) -> PyResult<Arc<Vec<Cell>>> {
        if let Some(cells) = self.cells.get() {
            return Ok(cells.clone());
        }
        let found = run(py, "cutting into cells", || self.region.decompose())?;
        Ok(self.cells.get_or_init(|| Arc::new(found)).clone())
    }

    fn cell(&self, py: Python<'_>, index: usize) -> PyResult<Cell> {
        let cells = self.all(py)?;
        cells.get(index).cloned().ok_or_else(|| unexpected("a cell that does not exist was asked for"))
    }
}

#[pymethods]
impl Region {
    #[new]
    fn new(py: Python<'_>, constraint: &Bound<'_, Constraint>) -> PyResult<Region> {
        let constraint = constraint.get();
        let region = run(py, "preparing", || pal::region::Region::new(&constraint.0))?;
        Ok(Region::of(region))
    }

    #[getter]
    fn constraint(&self) -> Constraint {
        self.region.constraint().clone().into()
    }

    /// The same region with other free variables.
    fn with_free(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Region> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(Region::of(run(py, "looking for equalities", || self.region.with_free(&names))?))
    }

    /// The flat that the region is, if it has no volume and is not empty.
    fn flat(&self, py: Python<'_>) -> PyResult<Option<Flat>> {
        Ok(run(py, "looking for equalities", || self.region.flat())?.map(Flat))
    }

    /// Whether the region has a cell.
    fn has_volume(&self, py: Python<'_>) -> PyResult<bool> {
        run(py, "looking for cells", || Ok::<_, PyErr>(self.region.has_volume()))
    }

    /// Whether points lie in the region, as densities on it see it.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        let known = self.membership.get();
        let test = || match known {
            Some(membership) => Ok(membership.contains_batch(&points)),
            None => {
                let made = self.region.point_membership()?;
                Ok::<_, pal::formula::MembershipError>(self.membership.get_or_init(|| made).contains_batch(&points))
            }
        };
        Ok(flags(py, run(py, "testing points", test)?))
    }

    /// The name of the status, and a ray or a point that proves it.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<(&'static str, Option<Vec<Bound<'py, PyAny>>>)> {
        let decide = || -> Result<Status, Unbounded> {
            Ok(match self.cells.get() {
                Some(cells) if !cells.is_empty() => Status::Bounded,
                Some(_) => self.region.status_without_volume(),
                None => self.region.status(),
            })
        };
        let status = run(py, "looking for cells", decide)?;
        let shown = match &status {
            Status::Unbounded(ray) => Some(&ray.direction),
            Status::LowerDimensional(point) => Some(point),
            _ => None,
        };
        let exact = |numbers: &Vec<_>| numbers.iter().map(|value| fraction(py, value)).collect::<PyResult<Vec<_>>>();
        Ok((status.name(), shown.map(exact).transpose()?))
    }

    /// The region as one convex polytope; `None` if it is not convex.
    fn convex(&self, py: Python<'_>) -> PyResult<Option<ConvexPolytope>> {
        Ok(run(py, "looking for facets", || self.region.convex())?.map(ConvexPolytope))
    }

    fn num_cells(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.all(py)?.len())
    }

    /// Splits all cells at positions per variable.
    fn with_knots(&self, py: Python<'_>, positions: Vec<Vec<Bound<'_, PyAny>>>) -> PyResult<Region> {
        let list =
            |list: &Vec<Bound<'_, PyAny>>| list.iter().map(|at| some_number(at, "a knot")).collect::<PyResult<_>>();
        let positions: Vec<Vec<_>> = positions.iter().map(list).collect::<PyResult<_>>()?;
        let region = run(py, "preparing", || self.region.with_knots(&positions))?;
        Ok(Region::of(region))
    }

    fn exact_volume<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cells = self.all(py)?;
        let sum = || -> Result<_, Unbounded> {
            Ok(cells.iter().fold(pal::number::Rational::ZERO, |sum, cell| sum + cell.exact_volume()))
        };
        let volume = run(py, "measuring", sum)?;
        fraction(py, &volume)
    }

    /// The nearest points of the region, for points given row by row.
    fn project<'py>(&self, py: Python<'py>, points: PyReadonlyArray1<'py, f64>) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        let known = self.projection.get();
        let project = || match known {
            Some(projection) => projection.nearest(&points),
            None => {
                let made = region::Projection::new(&self.region)?;
                self.projection.get_or_init(|| made).nearest(&points)
            }
        };
        Ok(array(py, run(py, "projecting", project)?))
    }

    /// Lower and upper ends per variable; none without volume.
    fn bounding_box<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>> {
        let ends = run(py, "measuring", || self.region.bounding_box())?;
        let pair = |(low, high): &(_, _)| Ok((fraction(py, low)?, fraction(py, high)?));
        ends.map(|ends| ends.iter().map(pair).collect()).transpose()
    }

    /// The vertices of a cell, row by row.
    fn cell_vertices<'py>(&self, py: Python<'py>, index: usize) -> PyResult<FloatArray<'py>> {
        let cell = self.cell(py, index)?;
        Ok(array(py, cell.polytope().vertices().iter().flat_map(|vertex| vertex.coordinates().to_vec()).collect()))
    }

    fn cell_exact_vertices<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let vertices = self.cell(py, index)?.polytope().exact_vertices();
        vertices.iter().map(|vertex| vertex.iter().map(|x| fraction(py, x)).collect()).collect()
    }

    /// Half-spaces `a . x <= b` of a cell with integer coefficients.
    fn cell_half_spaces<'py>(
        &self,
        py: Python<'py>,
        index: usize,
    ) -> PyResult<Vec<(Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>)>> {
        let exact = |value: &pal::number::Integer| fraction(py, &value.clone().into());
        let half_space = |(a, b): &(Vec<_>, _)| Ok((a.iter().map(exact).collect::<PyResult<_>>()?, exact(b)?));
        self.cell(py, index)?.polytope().half_spaces().iter().map(half_space).collect()
    }

    fn cell_exact_volume<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, &self.cell(py, index)?.exact_volume())
    }

    fn cell_booleans(&self, py: Python<'_>, index: usize) -> PyResult<Vec<Option<bool>>> {
        Ok(self.cell(py, index)?.booleans().to_vec())
    }

    /// The simplices of all cells, vertex by vertex, and the cell of each.
    fn simplices<'py>(&self, py: Python<'py>) -> PyResult<(FloatArray<'py>, Bound<'py, PyArray1<i64>>)> {
        let cells = self.all(py)?;
        let cut = || -> Result<(Vec<f64>, Vec<i64>), Unbounded> {
            let (mut corners, mut of) = (Vec::new(), Vec::new());
            for (index, cell) in cells.iter().enumerate() {
                let vertices = cell.polytope().vertices();
                for simplex in cell.polytope().triangulate() {
                    simplex.iter().for_each(|at| corners.extend_from_slice(vertices[*at].coordinates()));
                    of.push(index as i64);
                }
            }
            Ok((corners, of))
        };
        let (corners, of) = run(py, "triangulating", cut)?;
        Ok((array(py, corners), PyArray1::from_vec(py, of)))
    }

    fn integrate<'py>(&self, py: Python<'py>, polynomial: &Bound<'py, PyAny>, method: &str) -> PyResult<Answer<'py>> {
        let (integrand, method) = (self::polynomial(polynomial)?, self::method(method)?);
        let integral = run(py, "integrating", || pal::moments::integrate(&self.region, &integrand, method))?;
        answer(py, &integral)
    }

    /// Exponents, moments and bounds on their errors, up to a total degree.
    fn moments<'py>(
        &self,
        py: Python<'py>,
        degree: u16,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, FloatArray<'py>, FloatArray<'py>)> {
        let exponents = Exponents::total_degree(self.region.dimension(), degree).map_err(Report::report)?;
        let moments = run(py, "integrating", || Moments::compile(&self.region, &exponents))?;
        let flat = exponents.flat().iter().map(|e| i64::from(*e)).collect();
        let (values, errors) = (moments.values().to_vec(), moments.errors().to_vec());
        Ok((PyArray1::from_vec(py, flat), array(py, values), array(py, errors)))
    }
}

/// A convex region in coordinates that run from 0 to 1 over the box around it.
#[pyclass(frozen, module = "pal._core")]
pub struct ConvexPolytope(region::ConvexPolytope);

#[pymethods]
impl ConvexPolytope {
    /// The lower ends of the box.
    #[getter]
    fn low<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.low().iter().map(to_f64).collect())
    }

    /// The lengths of the box.
    #[getter]
    fn extent<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.extent().iter().map(to_f64).collect())
    }

    /// For every k the facets `a . t <= b` of the projection on the first k + 1 coordinates, as rows of a and b.
    #[getter]
    fn projections<'py>(&self, py: Python<'py>) -> Vec<FloatArray<'py>> {
        let row =
            |facet: &region::HalfSpace| facet.normal.iter().chain([&facet.offset]).map(to_f64).collect::<Vec<_>>();
        self.0.projections().iter().map(|level| array(py, level.iter().flat_map(row).collect())).collect()
    }

    /// For every coordinate k but the last, where the integral of a density of the family over all later coordinates is
    /// not one polynomial: rows of a constant and of the coefficients of the coordinates before k.
    fn breakpoints<'py>(&self, py: Python<'py>, family: &Bound<'py, Family>) -> PyResult<Vec<FloatArray<'py>>> {
        let axes = family.get().0.support().grid().axes();
        let inner = |axis: &Axis| axis.edges()[1..axis.bins()].to_vec();
        let knots: Vec<_> = axes.iter().map(inner).collect();
        let levels = run(py, "looking for breakpoints", || self.0.breakpoints(&knots))?;
        let row = |at: &region::Breakpoint| {
            [&at.constant].into_iter().chain(&at.coefficients).map(to_f64).collect::<Vec<_>>()
        };
        Ok(levels.iter().map(|level| array(py, level.iter().flat_map(row).collect())).collect())
    }
}
