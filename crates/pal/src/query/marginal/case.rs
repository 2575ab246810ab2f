//! Densities given as code, for the tests of queries.

use std::sync::Arc;

use super::Marginal;
use super::joint::joint_density;
use super::slices::Slices;
use crate::density::cubature::MeshCubature;
use crate::density::functions::ComponentFunctions;
use crate::density::mesh::{Degree, Mesh};
use crate::density::{Axis, BinIndex, Grid};
use crate::formula::Formula;
use crate::number::Rational;
use crate::region::Region;

type Function = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// Polynomials given as code, in coordinates of the user.
pub(in crate::query) struct Explicit {
    grid: Arc<Grid>,
    degree: Degree,
    functions: Vec<Function>,
}

impl ComponentFunctions for Explicit {
    fn components(&self) -> usize {
        self.functions.len()
    }

    fn degree(&self) -> Degree {
        self.degree
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        let mut point = vec![0.0; t.len()];
        self.grid.point_at(bin, t, &mut point);
        out.iter_mut().zip(&self.functions).for_each(|(out, f)| *out = f(&point));
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let mut out = vec![0.0; self.functions.len()];
        self.values(bin, t, &mut out);
        out[component]
    }
}

/// A region in bins with one density on it.
pub(in crate::query) struct Case {
    pub mesh: Arc<Mesh>,
    pub functions: Explicit,
    pub weights: Vec<f64>,
}

impl Case {
    /// `edges` are the ends of the bins per axis, of which the outermost bound the region.
    pub fn new(
        region: Formula,
        edges: &[&[i32]],
        total: usize,
        f: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Case {
        let axes = edges.iter().map(|edges| Axis::new(edges.iter().map(|e| Rational::from(*e)).collect()).unwrap());
        let grid = Arc::new(Grid::new(axes.collect()));
        let mesh = Arc::new(Mesh::new(&Region::new(&region.into()).unwrap(), &grid).unwrap());
        Case::on(mesh, total, f)
    }

    pub fn on(mesh: Arc<Mesh>, total: usize, f: impl Fn(&[f64]) -> f64 + Send + Sync + 'static) -> Case {
        let degree = Degree { total, axis: total };
        let f: Function = Arc::new(f);
        // Two components, so that weights matter.
        let g = f.clone();
        let functions: Vec<Function> = vec![f, Arc::new(move |y| 3.0 * g(y))];
        let functions = Explicit { grid: mesh.grid.clone(), degree, functions };
        let cubature = MeshCubature::new(mesh.dimension(), degree);
        let mut mass = 0.0;
        for element in &mesh.elements {
            cubature.visit(element, |t, w| mass += w * functions.value(0, &element.bin, t));
        }
        Case { mesh, functions, weights: vec![0.4 / mass, 0.2 / mass] }
    }

    /// The marginal of one variable.
    pub fn marginal(&self, axis: usize) -> Marginal {
        Slices::new(&self.mesh, axis, self.functions.degree).marginal(&self.functions, &self.weights).unwrap()
    }

    /// The joint marginal of several.
    pub fn joint(&self, axes: &[usize], points: &[f64]) -> Vec<f64> {
        joint_density(&self.mesh, &self.functions, &self.weights, axes, points)
    }
}

/// Runs a function on a number of threads.
pub(in crate::query) fn on_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}
