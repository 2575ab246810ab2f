//! Kernel mixtures: families without a grid, and their questions.

use numpy::PyReadonlyArray1;
use pal::kernel::{self, KernelSettings};
use pyo3::prelude::*;

use crate::batch::RegionBatch;
use crate::constraint::Constraint;
use crate::convert::{FloatArray, array, copied};
use crate::density::{EntropyAnswer, EntropyOptions, Marginal, ModeAnswer, ModeOptions, entropy_answer, mode_answer};
use crate::errors::Report;
use crate::family::names;
use crate::formula::some_formula;
use crate::polynomial::polynomial;
use crate::region::Region;
use crate::work::{check_room, run};

type Input<'py> = PyReadonlyArray1<'py, f64>;

/// Log-densities, and their gradients with respect to parameters and points where they were asked for.
type LogProbAnswer<'py> = (FloatArray<'py>, Option<FloatArray<'py>>, Option<FloatArray<'py>>);

/// Kernel mixtures on one region.
#[pyclass(frozen, module = "pal._core")]
pub struct KernelFamily(kernel::KernelFamily);

#[pymethods]
impl KernelFamily {
    #[new]
    fn new(py: Python<'_>, region: &Bound<'_, Region>, components: usize) -> PyResult<KernelFamily> {
        let region = &region.get().region;
        run(py, "compiling", || kernel::KernelFamily::new(region, &KernelSettings { components })).map(KernelFamily)
    }

    /// The number of components where nothing else is asked for.
    #[staticmethod]
    fn default_components() -> usize {
        KernelSettings::default().components
    }

    #[getter]
    fn components(&self) -> usize {
        self.0.settings().components
    }

    #[getter]
    fn num_params(&self) -> usize {
        self.0.num_params()
    }

    #[getter]
    fn variables(&self) -> Vec<String> {
        names(self.0.variables())
    }

    #[getter]
    fn constraint(&self, py: Python<'_>) -> PyResult<Constraint> {
        run(py, "preparing", || self.0.constraint()).map(Constraint::from)
    }

    #[getter]
    fn volume(&self) -> f64 {
        self.0.volume()
    }

    /// The same family given that a condition holds.
    fn within(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<KernelFamily> {
        let condition = some_formula(condition, "the condition")?;
        run(py, "conditioning", || self.0.within(&condition)).map(KernelFamily)
    }

    /// The same family on the region of every row.
    fn on_regions(&self, py: Python<'_>, regions: &Bound<'_, RegionBatch>) -> PyResult<Vec<KernelFamily>> {
        let regions = regions.get().inner();
        let rows = run(py, "compiling", || self.0.on_regions(regions))?;
        Ok(rows.into_iter().map(KernelFamily).collect())
    }

    /// Log-densities of one point per row, each on the region of its own family, or all on that of a single one. Whether
    /// points are inside may have been decided before.
    #[staticmethod]
    #[pyo3(signature = (families, params, points, with_gradient, inside))]
    fn log_prob_each<'py>(
        py: Python<'py>,
        families: Vec<Bound<'py, KernelFamily>>,
        params: Input<'py>,
        points: Input<'py>,
        with_gradient: bool,
        inside: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<LogProbAnswer<'py>> {
        let families: Vec<&kernel::KernelFamily> = families.iter().map(|family| &family.get().0).collect();
        let (params, points) = (copied(&params), copied(&points));
        let inside = inside.map(|flags| copied(&flags));
        let found = py.detach(|| match &inside {
            Some(inside) => kernel::log_prob_where(&families, &params, &points, inside, with_gradient),
            None => kernel::log_prob_each(&families, &params, &points, with_gradient),
        });
        let found = found.map_err(Report::report)?;
        let optional = |numbers: Vec<f64>| with_gradient.then(|| array(py, numbers));
        Ok((array(py, found.log_prob), optional(found.gradient), optional(found.point_gradient)))
    }

    /// Log-densities of many points under one row of parameters.
    fn log_prob<'py>(&self, py: Python<'py>, params: Input<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, points) = (copied(&params), copied(&points));
        Ok(array(py, run(py, "evaluating", || self.0.log_prob(&params, &points))?))
    }

    /// Whether the constraint contains each point.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> Bound<'py, numpy::PyArray1<bool>> {
        let points = copied(&points);
        let inside = py.detach(|| points.chunks_exact(2).map(|point| self.0.contains(point)).collect());
        crate::convert::flags(py, inside)
    }

    fn probability<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, KernelFamily>,
        params: Input<'py>,
        with_gradient: bool,
    ) -> PyResult<(FloatArray<'py>, Option<FloatArray<'py>>)> {
        let (event, params) = (&event.get().0, copied(&params));
        if with_gradient {
            let (values, gradient) = run(py, "integrating", || self.0.probability_with_gradient(event, &params))?;
            return Ok((array(py, values), Some(array(py, gradient))));
        }
        Ok((array(py, run(py, "integrating", || self.0.probability(event, &params))?), None))
    }

    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        let rows = params.len() as f64 / self.0.num_params() as f64;
        check_room(rows * count as f64 * 2.0, "so many samples")?;
        Ok(array(py, run(py, "sampling", || self.0.sample(&params, count, seed))?))
    }

    /// One sample of each row on the region of its own family.
    #[staticmethod]
    fn sample_each<'py>(
        py: Python<'py>,
        families: Vec<Bound<'py, KernelFamily>>,
        params: Input<'py>,
        seed: u64,
    ) -> PyResult<FloatArray<'py>> {
        let families: Vec<&kernel::KernelFamily> = families.iter().map(|family| &family.get().0).collect();
        let params = copied(&params);
        Ok(array(py, run(py, "sampling", || kernel::sample_each(&families, &params, seed))?))
    }

    /// The means of all rows, and their covariance matrices, row by row.
    fn mean_and_covariance<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
    ) -> PyResult<(FloatArray<'py>, FloatArray<'py>)> {
        let params = copied(&params);
        let found = run(py, "integrating", || self.0.mean_and_covariance(&params))?;
        let means = found.iter().flat_map(|(mean, _)| *mean).collect();
        Ok((array(py, means), array(py, found.iter().flat_map(|(_, covariance)| *covariance).collect())))
    }

    fn expectation<'py>(
        &self,
        py: Python<'py>,
        integrand: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (integrand, params) = (polynomial(integrand)?, copied(&params));
        Ok(array(py, run(py, "integrating", || self.0.expectation(&params, std::slice::from_ref(&integrand)))?))
    }

    fn marginals<'py>(&self, py: Python<'py>, axis: usize, params: Input<'py>) -> PyResult<Vec<Marginal>> {
        let params = copied(&params);
        let marginals = run(py, "integrating", || self.0.marginals(&params, axis))?;
        Ok(marginals.into_iter().map(Marginal).collect())
    }

    fn modes<'py>(&self, py: Python<'py>, params: Input<'py>, options: &ModeOptions) -> PyResult<Vec<ModeAnswer<'py>>> {
        let params = copied(&params);
        let modes = run(py, "searching", || self.0.modes(&params, &options.0))?;
        Ok(modes.into_iter().map(|mode| mode_answer(py, mode)).collect())
    }

    /// The entropies of all rows, and their gradients where they are asked for.
    fn entropies<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
        options: &EntropyOptions,
        with_gradient: bool,
    ) -> PyResult<(Vec<EntropyAnswer>, Option<FloatArray<'py>>)> {
        let params = copied(&params);
        if with_gradient {
            let (found, gradient) = run(py, "integrating", || self.0.entropies_with_gradient(&params, &options.0))?;
            return Ok((found.iter().map(entropy_answer).collect(), Some(array(py, gradient))));
        }
        let found = run(py, "integrating", || self.0.entropies(&params, &options.0))?;
        Ok((found.iter().map(entropy_answer).collect(), None))
    }
}
