//! One density on a support: its log-density. Everything else that can be asked of it is in `query`.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use super::flat::shifted;
use super::weights::log_sum_exp;
use super::{BinIndex, ChebyshevSeries, Grid, Support};
use crate::interrupt::checkpoint;
use crate::region::Chart;

/// One density: the member of a family with one parameter vector, or what conditioning makes of it.
#[derive(Clone)]
pub struct Density {
    pub(crate) support: Arc<Support>,
    pub(crate) functions: Arc<dyn ChebyshevSeries>,
    /// `sum_c weights_c q_c` integrates to 1 over the support, relative to the volume of the box.
    pub(crate) weights: Vec<f64>,
    /// The logarithms of the weights, which do not underflow.
    pub(crate) log_weights: Vec<f64>,
    /// Where the constraint has equalities: how free coordinates, which all of the above is in, determine all others.
    pub(crate) chart: Option<Arc<Chart>>,
}

impl fmt::Debug for Density {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = ("components", self.weights.len());
        f.debug_struct("Density").field("support", &self.support).field(parts.0, &parts.1).finish()
    }
}

/// The number of points per parallel task.
const BLOCK: usize = 2048;

impl Density {
    pub(crate) fn new(
        support: Arc<Support>,
        functions: Arc<dyn ChebyshevSeries>,
        log_weights: Vec<f64>,
        chart: Option<Arc<Chart>>,
    ) -> Density {
        let weights = log_weights.iter().map(|w| w.exp()).collect();
        Density { support, functions, weights, log_weights, chart }
    }

    /// What the density lives on, in free coordinates where the constraint has equalities.
    pub fn support(&self) -> &Arc<Support> {
        &self.support
    }

    /// The number of free coordinates; that of all variables where the constraint has no equalities.
    pub fn dimension(&self) -> usize {
        self.support.dimension()
    }

    /// The log-density of each point, given row by row: minus infinity outside the constraint and where the density is
    /// 0, never NaN. A trailing incomplete row is ignored.
    pub fn log_prob(&self, points: &[f64]) -> Vec<f64> {
        if let Some(chart) = &self.chart {
            let free = chart.restrict(points, f64::EPSILON);
            return shifted(self.in_free_coordinates().log_prob(&free), chart);
        }
        let n = self.dimension();
        let inside = self.support.membership().contains_batch(points);
        let mut result = vec![f64::NEG_INFINITY; inside.len()];
        let tasks = result.par_chunks_mut(BLOCK).zip(points.par_chunks(BLOCK * n)).zip(inside.par_chunks(BLOCK));
        tasks.for_each(|((out, points), inside)| {
            checkpoint();
            let mut work = Work::new(n, self.weights.len());
            for ((out, point), inside) in out.iter_mut().zip(points.chunks_exact(n)).zip(inside) {
                if *inside {
                    *out = self.log_density_with(point, &mut work);
                }
            }
        });
        result
    }

    /// The log-density of a point that is known to be inside.
    pub(crate) fn log_density_inside(&self, point: &[f64]) -> f64 {
        self.log_density_with(point, &mut Work::new(point.len(), self.weights.len()))
    }

    fn log_density_with(&self, point: &[f64], work: &mut Work) -> f64 {
        let grid = self.support.grid();
        grid.locate(point, &mut work.bin, &mut work.t);
        if !Grid::in_bin(&work.t) {
            return f64::NEG_INFINITY;
        }
        self.functions.values(&work.bin, &work.t, &mut work.values);
        let sum: f64 = self.weights.iter().zip(&work.values).map(|(w, q)| w * q).sum();
        if sum.is_normal() && sum < f64::INFINITY {
            return sum.ln() - work.log_volume(grid);
        }
        // Products of small numbers may have underflowed to 0; sums of their logarithms do not.
        let logs = self.log_weights.iter().enumerate().map(|(c, w)| match *w {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            w => w + self.functions.log_value(c, &work.bin, &work.t),
        });
        log_sum_exp(logs) - work.log_volume(grid)
    }
}

/// Buffers for the evaluation at one point.
struct Work {
    bin: Vec<BinIndex>,
    t: Vec<f64>,
    values: Vec<f64>,
    log_volume: Option<f64>,
}

impl Work {
    fn new(dimension: usize, components: usize) -> Work {
        Work {
            bin: vec![BinIndex::default(); dimension],
            t: vec![0.0; dimension],
            values: vec![0.0; components],
            log_volume: None,
        }
    }

    fn log_volume(&mut self, grid: &Grid) -> f64 {
        *self.log_volume.get_or_insert_with(|| grid.log_volume())
    }
}
