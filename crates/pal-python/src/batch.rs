//! Batches of regions, and their normalisers on the grid of a family.

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pal::density::{RegionForms as Forms, RegionPrecision, RowInput, TablePrecision};
use pal::formula::Var;
use pal::region::{self, BatchError, Status};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied, flags};
use crate::density::Density;
use crate::errors::Report;
use crate::family::{Family, names};
use crate::region::Region;
use crate::work::run;

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Up to this many rows, as in the batch of a network, no other threads are woken.
const SMALL_BATCH: usize = 2048;

fn indices(numbers: &PyReadonlyArray1<'_, i64>) -> Vec<usize> {
    // The Python half has checked that they are not negative.
    copied(numbers).into_iter().map(|index| usize::try_from(index).unwrap_or(usize::MAX)).collect()
}

/// A region whose cells are kept in a spatial index.
#[pyclass(frozen, module = "pal._core")]
pub struct RegionMap(region::RegionMap);

#[pymethods]
impl RegionMap {
    #[new]
    fn new(py: Python<'_>, region: &Bound<'_, Region>) -> PyResult<RegionMap> {
        let region = &region.get().region;
        run(py, "cutting into cells", || region::RegionMap::new(region)).map(RegionMap)
    }

    /// Windows of the map, from flat arrays; with `visible`, only what can be seen from their centres.
    #[pyo3(signature = (centres, half_width, headings, scales, visible))]
    fn windows(
        &self,
        py: Python<'_>,
        centres: Input<'_>,
        half_width: Input<'_>,
        headings: Option<Input<'_>>,
        scales: Option<Input<'_>>,
        visible: bool,
    ) -> PyResult<RegionBatch> {
        let (centres, half_width) = (copied(&centres), copied(&half_width));
        let (headings, scales) = (headings.map(|x| copied(&x)), scales.map(|x| copied(&x)));
        let (headings, scales) = (headings.as_deref(), scales.as_deref());
        let make = || match visible {
            true => self.0.visible_windows(&centres, &half_width, headings, scales),
            false => self.0.windows(&centres, &half_width, headings, scales),
        };
        py.detach(make).map(RegionBatch).map_err(Report::report)
    }

    /// Whether each segment is inside as a whole.
    fn contains_segments<'py>(
        &self,
        py: Python<'py>,
        starts: Input<'py>,
        ends: Input<'py>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (starts, ends) = (copied(&starts), copied(&ends));
        Ok(flags(py, py.detach(|| self.0.contains_segments(&starts, &ends)).map_err(Report::report)?))
    }
}

/// Regions over the same variables, one per row.
#[pyclass(frozen, module = "pal._core")]
pub struct RegionBatch(region::RegionBatch);

impl RegionBatch {
    /// The batch of the library.
    pub fn inner(&self) -> &region::RegionBatch {
        &self.0
    }
}

#[pymethods]
impl RegionBatch {
    #[new]
    fn new(py: Python<'_>, regions: Vec<Bound<'_, Region>>) -> PyResult<RegionBatch> {
        let regions: Vec<region::Region> = regions.iter().map(|region| region.get().region.clone()).collect();
        run(py, "preparing", || region::RegionBatch::new(&regions)).map(RegionBatch)
    }

    /// One union of sets `A y <= b` per row, from flat arrays.
    #[staticmethod]
    #[pyo3(signature = (variables, shape, normals, offsets, mask))]
    fn half_spaces(
        py: Python<'_>,
        variables: Vec<String>,
        shape: (usize, usize, usize),
        normals: Input<'_>,
        offsets: Input<'_>,
        mask: Option<PyReadonlyArray1<'_, bool>>,
    ) -> PyResult<RegionBatch> {
        let variables = Var::declare_all(&variables);
        let (normals, offsets, mask) = (copied(&normals), copied(&offsets), mask.map(|mask| copied(&mask)));
        let shape = [shape.0, shape.1, shape.2];
        let make = || region::RegionBatch::half_spaces(&variables, shape, &normals, &offsets, mask.as_deref());
        py.detach(make).map(RegionBatch).map_err(Report::report)
    }

    /// Reads a file.
    #[staticmethod]
    fn read(py: Python<'_>, bytes: &[u8]) -> PyResult<RegionBatch> {
        let bytes = bytes.to_vec();
        run(py, "loading", || region::RegionBatch::from_bytes(&bytes)).map(RegionBatch)
    }

    /// The content of a file.
    fn write<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, "saving", || self.0.to_bytes())?))
    }

    #[getter]
    fn variables(&self) -> Vec<String> {
        names(self.0.variables())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Some rows, which must exist.
    fn select(&self, rows: PyReadonlyArray1<'_, i64>) -> PyResult<RegionBatch> {
        self.0.select(&indices(&rows)).map(RegionBatch).map_err(Report::report)
    }

    /// These rows, and then those of other batches.
    fn concatenate(&self, others: Vec<Bound<'_, RegionBatch>>) -> PyResult<RegionBatch> {
        let others: Vec<region::RegionBatch> = others.iter().map(|other| other.get().0.clone()).collect();
        self.0.concatenate(&others).map(RegionBatch).map_err(Report::report)
    }

    fn constraint(&self, row: usize) -> PyResult<Constraint> {
        self.0.constraint(row).map(Constraint::from).map_err(Report::report)
    }

    /// The name of the status of every row.
    fn statuses(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let statuses = run(py, "looking for cells", || Ok::<_, PyErr>(self.0.statuses()))?;
        Ok(statuses.iter().map(Status::name).collect())
    }

    fn volumes<'py>(&self, py: Python<'py>) -> PyResult<FloatArray<'py>> {
        Ok(array(py, run(py, "measuring", || Ok::<_, PyErr>(self.0.volumes()))?))
    }

    /// Points of the map, one per row, in local coordinates.
    fn to_local<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        Ok(array(py, py.detach(|| self.0.to_local(&points)).map_err(Report::report)?))
    }

    /// Points in local coordinates, one per row, as points of the map.
    fn to_map<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let points = copied(&points);
        Ok(array(py, py.detach(|| self.0.to_map(&points)).map_err(Report::report)?))
    }

    /// Whether each point is in the region of its own row.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        let work = || self.0.contains(&points);
        let inside = if self.0.len() <= SMALL_BATCH {
            py.detach(work).map_err(Report::report)?
        } else {
            run(py, "testing points", work)?
        };
        Ok(flags(py, inside))
    }
}

/// The regions of a batch compiled on the grid of a family.
#[pyclass(frozen, module = "pal._core")]
pub struct RegionForms(Forms);

impl RegionForms {
    fn log_prob<'py, T: RegionPrecision + Element + Copy>(
        &self,
        py: Python<'py>,
        params: &PyReadonlyArray1<'py, T>,
        points: &Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<T>>, Option<Bound<'py, PyArray1<T>>>)> {
        let (params, points) = (copied(params), copied(points));
        let input = if student_t { RowInput::StudentT } else { RowInput::Parameters };
        let work = || self.0.log_prob_rows(input, &params, &points, with_gradient);
        let rows = if self.0.len() <= SMALL_BATCH {
            py.detach(work).map_err(Report::report)?
        } else {
            run(py, "evaluating", work)?
        };
        let gradient = rows.gradient.map(|gradient| PyArray1::from_vec(py, gradient));
        Ok((PyArray1::from_vec(py, rows.log_prob), gradient))
    }
}

#[pymethods]
impl RegionForms {
    /// Compiles regions; with `single`, for log-densities in float32 only.
    #[new]
    fn new(
        py: Python<'_>,
        family: &Bound<'_, Family>,
        regions: &Bound<'_, RegionBatch>,
        single: bool,
    ) -> PyResult<RegionForms> {
        let (family, regions) = (&family.get().0, &regions.get().0);
        let precision = if single { TablePrecision::Float32 } else { TablePrecision::Float64 };
        run(py, "compiling", || family.on_regions_with(regions, precision)).map(RegionForms)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn regions(&self) -> RegionBatch {
        RegionBatch(self.0.regions().clone())
    }

    /// The memory that the normalisers of all rows take, in bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Some rows, which must exist, without compiling them again.
    fn select(&self, rows: PyReadonlyArray1<'_, i64>) -> PyResult<RegionForms> {
        let selected: Result<Forms, BatchError> = self.0.select(&indices(&rows));
        selected.map(RegionForms).map_err(Report::report)
    }

    /// The volume of each row inside the box of the grid.
    fn volumes<'py>(&self, py: Python<'py>) -> FloatArray<'py> {
        array(py, self.0.volumes())
    }

    /// Whether each point may have a positive density on the region of its own row.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let points = copied(&points);
        Ok(flags(py, py.detach(|| self.0.contains(&points)).map_err(Report::report)?))
    }

    /// The log-density of each point under its own row of parameters and on its own region, in float32, and, where
    /// asked for, its gradient with respect to that row. With `student_t`, rows are outputs of a network for the head
    /// of spline layers.
    fn log_prob_f32<'py>(
        &self,
        py: Python<'py>,
        params: PyReadonlyArray1<'py, f32>,
        points: Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<f32>>>)> {
        self.log_prob(py, &params, &points, student_t, with_gradient)
    }

    /// The same in float64.
    fn log_prob_f64<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        points: Input<'py>,
        student_t: bool,
        with_gradient: bool,
    ) -> PyResult<(FloatArray<'py>, Option<FloatArray<'py>>)> {
        self.log_prob(py, &params, &points, student_t, with_gradient)
    }

    /// One density for each row and its parameter vector.
    fn densities<'py>(&self, py: Python<'py>, params: Input<'py>) -> PyResult<Vec<Density>> {
        let params = copied(&params);
        let densities = run(py, "compiling", || self.0.densities(&params))?;
        Ok(densities.into_iter().map(Density).collect())
    }
}
