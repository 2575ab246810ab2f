//! One sample of one component inside one element, coordinate by coordinate.
//!
//! Uniform numbers determine the coordinates s_1 .. s_n of the element (see [`crate::density::mesh`]) one after the
//! other: given those before, the density of s_k is a polynomial in one variable, known from cubature over the
//! coordinates after it, and its distribution function is inverted. The PAL paper (Section 5) does the same with the
//! variables themselves; in coordinates of an element no marginal has to be pieced together. Where a component is a
//! product of functions of single variables, the coordinates of a box are independent and need no cubature.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::univariate::Univariate;
use crate::density::cubature::{CubatureRule, MeshCubature};
use crate::density::gauss::Gauss;
use crate::density::lanes::dot;
use crate::density::mesh::{Element, Shape};
use crate::density::{ComponentFunctions, Degree, Support};

/// The rules that sampling needs: they depend on the number of variables and the degree only.
pub(super) struct Rules {
    /// Rules for the masses of elements.
    pub cubature: MeshCubature,
    /// One stage for each coordinate.
    cuboid: Vec<Stage>,
    simplex: Vec<Stage>,
}

struct Stage {
    /// Nodes at which the density of the coordinate is computed.
    gauss: Arc<Gauss>,
    /// The rule that integrates over the coordinates after it.
    inner: CubatureRule,
}

/// The least number of points that are evaluated together, where there are as many.
const BLOCK: usize = 256;

/// The number of variables and the degrees.
type RulesKey = (usize, usize, usize);

impl Rules {
    /// The rules for a number of variables and a degree, made once per process.
    pub fn shared(n: usize, degree: Degree) -> Arc<Rules> {
        static KNOWN: OnceLock<Mutex<HashMap<RulesKey, Arc<Rules>>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Mutex::default);
        let key = (n, degree.total, degree.axis);
        // Entries are complete before they are stored, so that a poisoned lock does no harm.
        let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = lock().get(&key) {
            return rules.clone();
        }
        // Made without the lock, which others need meanwhile; whoever comes first is kept.
        let made = Arc::new(Rules::new(n, degree));
        lock().entry(key).or_insert(made).clone()
    }

    fn new(n: usize, degree: Degree) -> Rules {
        let stage = |like: fn(usize, usize) -> CubatureRule, inner: usize, here: usize, k: usize| Stage {
            gauss: Gauss::with_points(here + 1),
            inner: like(n - 1 - k, inner),
        };
        Rules {
            cubature: MeshCubature::new(n, degree),
            cuboid: (0..n).map(|k| stage(CubatureRule::cuboid, degree.axis, degree.axis, k)).collect(),
            simplex: (0..n).map(|k| stage(CubatureRule::simplex, degree.total, degree.total + n - 1 - k, k)).collect(),
        }
    }
}

/// What a sample is drawn from: a component on an element.
#[derive(Clone, Copy)]
pub(super) struct Target<'t> {
    pub functions: &'t dyn ComponentFunctions,
    pub component: usize,
    pub element: &'t Element,
}

impl Target<'_> {
    fn is_cuboid(&self) -> bool {
        matches!(self.element.shape, Shape::Cuboid(..))
    }

    /// Whether the coordinates of the element are independent.
    fn is_product(&self) -> bool {
        self.is_cuboid() && self.functions.factor(self.component, 0, &self.element.bin, 0.5).is_some()
    }
}

/// Memory for values at many points.
#[derive(Default)]
pub(super) struct PointValues {
    points: Vec<f64>,
    values: Vec<f64>,
}

impl PointValues {
    /// Adds to `masses` the masses of some components on an element, one after the other.
    pub fn add_masses(
        &mut self,
        functions: &dyn ComponentFunctions,
        components: Range<usize>,
        element: &Element,
        cubature: &MeshCubature,
        masses: &mut [f64],
    ) {
        let values = &mut self.values;
        cubature.visit_blocks(element, &mut self.points, |points, weights| {
            values.resize(weights.len(), 0.0);
            for (component, mass) in components.clone().zip(&mut *masses) {
                functions.values_at_points(component, &element.bin, points, values);
                *mass += element.volume * dot(weights, values);
            }
        });
    }

    /// The mass of a component on an element.
    pub fn mass(&mut self, target: &Target<'_>, cubature: &MeshCubature) -> f64 {
        let mut mass = [0.0];
        let component = target.component..target.component + 1;
        self.add_masses(target.functions, component, target.element, cubature, &mut mass);
        mass[0].max(0.0)
    }
}

/// The state of drawing samples, whose coordinates are fixed one after the other. The memory serves for any target.
pub(super) struct Walk<'r> {
    rules: &'r Rules,
    /// The contribution of the coordinates fixed so far to the point, per stage.
    base: Vec<Vec<f64>>,
    /// The product of the coordinates fixed so far, per stage; for simplices only.
    product: Vec<f64>,
    values: Vec<f64>,
    /// See [`Walk::look_ahead`].
    ahead: Vec<f64>,
    memory: PointValues,
    /// The densities of all coordinates given those before them, for boxes and for simplices.
    cuboid: Vec<Univariate>,
    simplex: Vec<Univariate>,
    t: Vec<f64>,
}

impl<'r> Walk<'r> {
    pub fn new(rules: &'r Rules, n: usize) -> Walk<'r> {
        let empty = vec![Univariate::from_values(&[]); n];
        Walk {
            rules,
            base: vec![vec![0.0; n]; n + 1],
            product: vec![1.0; n + 1],
            values: Vec::new(),
            ahead: Vec::new(),
            memory: PointValues::default(),
            cuboid: empty.clone(),
            simplex: empty,
            t: vec![0.0; n],
        }
    }

    /// Draws one sample from n uniform numbers. The first `known` densities of coordinates are those of the sample
    /// before.
    pub fn draw(&mut self, target: &Target<'_>, uniforms: &[f64], known: usize) {
        let product = target.is_product();
        for (k, uniform) in uniforms.iter().enumerate() {
            if k >= known {
                if product {
                    self.evaluate_factor(target, k);
                } else {
                    self.evaluate(target, k);
                }
            }
            let density = if target.is_cuboid() { &mut self.cuboid[k] } else { &mut self.simplex[k] };
            if k >= known {
                density.refit(&self.values);
            }
            let s = density.inverse(*uniform);
            self.set(&target.element.shape, k, s);
        }
    }

    /// For how many coordinates all samples of a target have the same densities.
    pub fn common(&self, target: &Target<'_>) -> usize {
        if target.is_product() { self.t.len() } else { 1 }
    }

    /// Computes the coordinates of the sample.
    pub fn point(&self, target: &Target<'_>, support: &Support, point: &mut [f64]) {
        support.grid().point_at(&target.element.bin, &self.t, point);
    }

    /// Computes the values of the density of coordinate k of a box in which coordinates are independent.
    fn evaluate_factor(&mut self, target: &Target<'_>, k: usize) {
        let Shape::Cuboid(low, high) = &target.element.shape else { unreachable!("only boxes have factors") };
        self.values.clear();
        self.values.extend(self.rules.cuboid[k].gauss.nodes.iter().map(|s| {
            let t = low[k] + s * (high[k] - low[k]);
            target.functions.factor(target.component, k, &target.element.bin, t).unwrap_or(0.0)
        }));
    }

    /// Computes the values of the density of coordinate k, given those before it, at the nodes of its stage.
    fn evaluate(&mut self, target: &Target<'_>, k: usize) {
        let stage = if target.is_cuboid() { &self.rules.cuboid[k] } else { &self.rules.simplex[k] };
        let Target { functions, component, element } = *target;
        let (n, inner) = (self.t.len(), stage.inner.len());
        self.look_ahead(&element.shape, &stage.inner, k);
        self.values.clear();
        for nodes in stage.gauss.nodes.chunks((BLOCK / inner).max(1)) {
            let count = nodes.len() * inner;
            self.memory.points.resize(count * n, 0.0);
            self.memory.values.resize(count, 0.0);
            for (j, points) in self.memory.points.chunks_exact_mut(count).enumerate() {
                let ahead = &self.ahead[j * inner..(j + 1) * inner];
                for (points, s) in points.chunks_exact_mut(inner).zip(nodes) {
                    // Every coordinate is an affine function of what lies ahead.
                    let (from, factor) = match &element.shape {
                        Shape::Cuboid(..) if j < k => (self.base[k][j], 0.0),
                        Shape::Cuboid(low, high) if j == k => (low[k] + s * (high[k] - low[k]), 0.0),
                        Shape::Cuboid(..) => (0.0, 1.0),
                        Shape::Simplex(v) => {
                            let (stay, go) = (self.product[k] * (1.0 - s), self.product[k] * s);
                            (self.base[k][j] + stay * v[k * n + j], go)
                        }
                    };
                    points.iter_mut().zip(ahead).for_each(|(t, ahead)| *t = from + factor * ahead);
                }
            }
            functions.values_at_points(component, &element.bin, &self.memory.points, &mut self.memory.values);
            for (values, s) in self.memory.values.chunks_exact(inner).zip(nodes) {
                let jacobian = match &element.shape {
                    Shape::Cuboid(..) => 1.0,
                    Shape::Simplex(_) => s.powi((n - 1 - k) as i32),
                };
                self.values.push((dot(stage.inner.weights(), values) * jacobian).max(0.0));
            }
        }
    }

    /// Computes the part of the coordinates that the nodes of an inner rule contribute, the first coordinates of all
    /// nodes first.
    fn look_ahead(&mut self, shape: &Shape, inner: &CubatureRule, k: usize) {
        let (n, count) = (self.t.len(), inner.len());
        self.ahead.resize(n * count, 0.0);
        for (i, (node, _)) in inner.iter().enumerate() {
            for j in 0..n {
                self.ahead[j * count + i] = match shape {
                    Shape::Cuboid(..) if j <= k => 0.0,
                    Shape::Cuboid(low, high) => low[j] + node[j - k - 1] * (high[j] - low[j]),
                    Shape::Simplex(v) => node.iter().enumerate().map(|(i, x)| x * v[(k + 1 + i) * n + j]).sum(),
                };
            }
        }
    }

    /// Fixes coordinate k; after the last one `t` is the sample.
    fn set(&mut self, shape: &Shape, k: usize, s: f64) {
        let n = self.t.len();
        let (before, after) = self.base.split_at_mut(k + 1);
        after[0].copy_from_slice(&before[k]);
        match shape {
            Shape::Cuboid(low, high) => after[0][k] = low[k] + s * (high[k] - low[k]),
            Shape::Simplex(v) => {
                let stay = self.product[k] * (1.0 - s);
                self.product[k + 1] = self.product[k] * s;
                for j in 0..n {
                    after[0][j] += stay * v[k * n + j];
                    if k + 1 == n {
                        after[0][j] += self.product[n] * v[n * n + j];
                    }
                }
            }
        }
        if k + 1 == n {
            self.t.copy_from_slice(&self.base[n]);
        }
    }
}
