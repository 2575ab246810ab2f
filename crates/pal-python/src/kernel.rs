//! Kernel mixtures: families without a grid, and their questions.

use numpy::PyReadonlyArray1;
use pal::kernel::{self, KernelSettings};
use pal::query::QueryError;
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
pub struct KernelFamily(Kernels);

/// Kernel mixtures in the plane, or in one or three variables.
enum Kernels {
    Plane(kernel::KernelFamily),
    General(kernel::GeneralKernelFamily),
}

/// The same question to either kind.
macro_rules! either {
    ($kernels:expr, $family:ident => $answer:expr) => {
        match $kernels {
            Kernels::Plane($family) => $answer,
            Kernels::General($family) => $answer,
        }
    };
}

impl KernelFamily {
    /// The family, for questions that have answers in the plane only.
    fn plane(&self, what: &str) -> PyResult<&kernel::KernelFamily> {
        match &self.0 {
            Kernels::Plane(family) => Ok(family),
            Kernels::General(family) => {
                let message = format!(
                    "{what} of kernels are there for two variables, and the constraint has {}; densities of a SplineLayer \
                     have them for any number of variables",
                    family.dimension()
                );
                Err(QueryError::Variables(message).report())
            }
        }
    }
}

/// Families of one kind.
fn planes<'f>(families: &'f [Bound<'_, KernelFamily>], what: &str) -> PyResult<Vec<&'f kernel::KernelFamily>> {
    families.iter().map(|family| family.get().plane(what)).collect()
}

#[pymethods]
impl KernelFamily {
    #[new]
    fn new(py: Python<'_>, region: &Bound<'_, Region>, components: usize) -> PyResult<KernelFamily> {
        let region = &region.get().region;
        let settings = KernelSettings { components };
        if region.dimension() == 2 {
            let family = run(py, "compiling", || kernel::KernelFamily::new(region, &settings))?;
            return Ok(KernelFamily(Kernels::Plane(family)));
        }
        let family = run(py, "compiling", || kernel::GeneralKernelFamily::new(region, &settings))?;
        Ok(KernelFamily(Kernels::General(family)))
    }

    /// The number of components where nothing else is asked for.
    #[staticmethod]
    fn default_components() -> usize {
        KernelSettings::default().components
    }

    #[getter]
    fn components(&self) -> usize {
        either!(&self.0, family => family.settings().components)
    }

    #[getter]
    fn num_params(&self) -> usize {
        either!(&self.0, family => family.num_params())
    }

    #[getter]
    fn variables(&self) -> Vec<String> {
        names(either!(&self.0, family => family.variables()))
    }

    #[getter]
    fn constraint(&self, py: Python<'_>) -> PyResult<Constraint> {
        run(py, "preparing", || either!(&self.0, family => family.constraint())).map(Constraint::from)
    }

    #[getter]
    fn volume(&self) -> f64 {
        either!(&self.0, family => family.volume())
    }

    /// The same family given that a condition holds.
    fn within(&self, py: Python<'_>, condition: &Bound<'_, PyAny>) -> PyResult<KernelFamily> {
        let condition = some_formula(condition, "the condition")?;
        let kernels = match &self.0 {
            Kernels::Plane(family) => Kernels::Plane(run(py, "conditioning", || family.within(&condition))?),
            Kernels::General(family) => Kernels::General(run(py, "conditioning", || family.within(&condition))?),
        };
        Ok(KernelFamily(kernels))
    }

    /// The same family on the region of every row.
    fn on_regions(&self, py: Python<'_>, regions: &Bound<'_, RegionBatch>) -> PyResult<Vec<KernelFamily>> {
        let regions = regions.get().inner();
        let rows: Vec<Kernels> = match &self.0 {
            Kernels::Plane(family) => {
                run(py, "compiling", || family.on_regions(regions))?.into_iter().map(Kernels::Plane).collect()
            }
            Kernels::General(family) => {
                run(py, "compiling", || family.on_regions(regions))?.into_iter().map(Kernels::General).collect()
            }
        };
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
        let (params, points) = (copied(&params), copied(&points));
        let general = |family: &Bound<'py, KernelFamily>| match &family.get().0 {
            Kernels::General(family) => Some(family.clone()),
            Kernels::Plane(_) => None,
        };
        let found = match families.iter().map(general).collect::<Option<Vec<_>>>() {
            Some(general) if !general.is_empty() => {
                let general: Vec<&kernel::GeneralKernelFamily> = general.iter().collect();
                py.detach(|| kernel::general_log_prob_each(&general, &params, &points, with_gradient))
            }
            _ => {
                let families = planes(&families, "steps")?;
                let inside = inside.map(|flags| copied(&flags));
                py.detach(|| match &inside {
                    Some(inside) => kernel::log_prob_where(&families, &params, &points, inside, with_gradient),
                    None => kernel::log_prob_each(&families, &params, &points, with_gradient),
                })
            }
        };
        let found = found.map_err(Report::report)?;
        let optional = |numbers: Vec<f64>| with_gradient.then(|| array(py, numbers));
        Ok((array(py, found.log_prob), optional(found.gradient), optional(found.point_gradient)))
    }

    /// Log-densities of many points under one row of parameters.
    fn log_prob<'py>(&self, py: Python<'py>, params: Input<'py>, points: Input<'py>) -> PyResult<FloatArray<'py>> {
        let (params, points) = (copied(&params), copied(&points));
        Ok(array(py, run(py, "evaluating", || either!(&self.0, family => family.log_prob(&params, &points)))?))
    }

    /// Whether the constraint contains each point.
    fn contains<'py>(&self, py: Python<'py>, points: Input<'py>) -> Bound<'py, numpy::PyArray1<bool>> {
        let points = copied(&points);
        let width = either!(&self.0, family => family.dimension());
        let contains = |point: &[f64]| either!(&self.0, family => family.contains(point));
        let inside = py.detach(|| points.chunks_exact(width).map(contains).collect());
        crate::convert::flags(py, inside)
    }

    fn probability<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, KernelFamily>,
        params: Input<'py>,
        with_gradient: bool,
    ) -> PyResult<(FloatArray<'py>, Option<FloatArray<'py>>)> {
        let params = copied(&params);
        let (values, gradient) = match (&self.0, &event.get().0) {
            (Kernels::Plane(family), Kernels::Plane(event)) if with_gradient => {
                run(py, "integrating", || family.probability_with_gradient(event, &params))?
            }
            (Kernels::Plane(family), Kernels::Plane(event)) => {
                (run(py, "integrating", || family.probability(event, &params))?, Vec::new())
            }
            (Kernels::General(family), Kernels::General(event)) if with_gradient => {
                run(py, "integrating", || family.probability_with_gradient(event, &params))?
            }
            (Kernels::General(family), Kernels::General(event)) => {
                (run(py, "integrating", || family.probability(event, &params))?, Vec::new())
            }
            _ => unreachable!("an event is made from the family that is asked"),
        };
        Ok((array(py, values), with_gradient.then(|| array(py, gradient))))
    }

    fn sample<'py>(&self, py: Python<'py>, params: Input<'py>, count: usize, seed: u64) -> PyResult<FloatArray<'py>> {
        let params = copied(&params);
        let (per, width) = either!(&self.0, family => (family.num_params(), family.dimension()));
        let rows = params.len() as f64 / per as f64;
        check_room(rows * count as f64 * width as f64, "so many samples")?;
        Ok(array(py, run(py, "sampling", || either!(&self.0, family => family.sample(&params, count, seed)))?))
    }

    /// One sample of each row on the region of its own family.
    #[staticmethod]
    fn sample_each<'py>(
        py: Python<'py>,
        families: Vec<Bound<'py, KernelFamily>>,
        params: Input<'py>,
        seed: u64,
    ) -> PyResult<FloatArray<'py>> {
        let (families, params) = (planes(&families, "steps")?, copied(&params));
        Ok(array(py, run(py, "sampling", || kernel::sample_each(&families, &params, seed))?))
    }

    /// The means of all rows, and their covariance matrices, row by row.
    fn mean_and_covariance<'py>(
        &self,
        py: Python<'py>,
        params: Input<'py>,
    ) -> PyResult<(FloatArray<'py>, FloatArray<'py>)> {
        let params = copied(&params);
        let (means, covariances): (Vec<Vec<f64>>, Vec<Vec<f64>>) = match &self.0 {
            Kernels::Plane(family) => {
                let found = run(py, "integrating", || family.mean_and_covariance(&params))?;
                found.into_iter().map(|(mean, covariance)| (mean.to_vec(), covariance.to_vec())).unzip()
            }
            Kernels::General(family) => {
                run(py, "integrating", || family.mean_and_covariance(&params))?.into_iter().unzip()
            }
        };
        Ok((array(py, means.concat()), array(py, covariances.concat())))
    }

    fn expectation<'py>(
        &self,
        py: Python<'py>,
        integrand: &Bound<'py, PyAny>,
        params: Input<'py>,
    ) -> PyResult<FloatArray<'py>> {
        let (integrand, params) = (polynomial(integrand)?, copied(&params));
        Ok(array(
            py,
            run(
                py,
                "integrating",
                || either!(&self.0, family => family.expectation(&params, std::slice::from_ref(&integrand))),
            )?,
        ))
    }

    fn marginals<'py>(&self, py: Python<'py>, axis: usize, params: Input<'py>) -> PyResult<Vec<Marginal>> {
        let params = copied(&params);
        let family = self.plane("marginals")?;
        let marginals = run(py, "integrating", || family.marginals(&params, axis))?;
        Ok(marginals.into_iter().map(Marginal).collect())
    }

    fn modes<'py>(&self, py: Python<'py>, params: Input<'py>, options: &ModeOptions) -> PyResult<Vec<ModeAnswer<'py>>> {
        let params = copied(&params);
        let family = self.plane("modes")?;
        let modes = run(py, "searching", || family.modes(&params, &options.0))?;
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
        let (family, params) = (self.plane("entropies")?, copied(&params));
        if with_gradient {
            let (found, gradient) = run(py, "integrating", || family.entropies_with_gradient(&params, &options.0))?;
            return Ok((found.iter().map(entropy_answer).collect(), Some(array(py, gradient))));
        }
        let found = run(py, "integrating", || family.entropies(&params, &options.0))?;
        Ok((found.iter().map(entropy_answer).collect(), None))
    }
}
