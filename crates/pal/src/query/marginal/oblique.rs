//! The marginal of a variable that is an affine function of the coordinates, such as a dependent variable of a flat.
//!
//! With `h = c + sum_i a_i y_i` in place of the coordinate `y_j` that moves it most, the density is one over the
//! coordinates `(.., h, ..)`, and its marginal along the axis of h is found from slices like any other:
//!
//! ```text
//! t  =  sum_i w_i g_i,      w_i = |a_i| L_i / sum_k |a_k| L_k,      g_i = f_i where a_i > 0, 1 - f_i where a_i < 0
//! ```
//!
//! is the place of h between its bounds on the box, where f_i is the fraction of the side L_i of the box. Vertices of
//! elements are mapped to it, boxes are cut into simplices for that, and points of slices are mapped back.

use std::sync::Arc;

use super::Marginal;
use super::slices::Slices;
use crate::density::mesh::{Degree, Element, Mesh, Shape};
use crate::density::{Axis, BinIndex, ComponentFunctions, Grid};
use crate::number::{self, Rational};

/// The largest number of simplices that boxes are cut into.
const MAX_SIMPLICES: usize = 1_000_000;

/// Why there is no marginal of an affine function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::query) enum NoMarginal {
    /// The function is constant, or varies less than float64 can resolve.
    Constant,
    /// Cutting all boxes into simplices would take too many of them.
    Simplices,
    /// The density has no mass.
    Mass,
}

/// The change of coordinates.
#[derive(Clone, Debug)]
struct Shear {
    grid: Arc<Grid>,
    /// The coordinate that the function takes the place of.
    axis: usize,
    /// How much every coordinate moves the function, as fractions of its range on the box.
    weights: Vec<f64>,
    /// Whether the function falls with the coordinate.
    falls: Vec<bool>,
}

/// The marginal of `constant + sum_i coefficients_i y_i` under `sum_c weights_c q_c`.
pub(in crate::query) fn oblique_marginal(
    mesh: &Mesh,
    functions: &Arc<dyn ComponentFunctions>,
    weights: &[f64],
    constant: &Rational,
    coefficients: &[Rational],
) -> Result<Marginal, NoMarginal> {
    let grid = &mesh.grid;
    let (mut low, mut high) = (constant.clone(), constant.clone());
    let mut moves = Vec::new();
    for (a, axis) in coefficients.iter().zip(grid.axes()) {
        let ends = (a * &axis.edges()[0], a * &axis.edges()[axis.bins()]);
        moves.push(number::to_f64(&(&ends.1 - &ends.0)));
        let (least, most) = if ends.0 <= ends.1 { ends } else { (ends.1, ends.0) };
        (low, high) = (low + least, high + most);
    }
    let line = Axis::new(vec![low, high]).ok_or(NoMarginal::Constant)?;
    let size: f64 = moves.iter().map(|a| a.abs()).sum();
    let axis = (0..moves.len()).max_by(|i, j| moves[*i].abs().total_cmp(&moves[*j].abs()));
    let axis = axis.ok_or(NoMarginal::Constant)?;
    let shear = Shear {
        grid: grid.clone(),
        axis,
        weights: moves.iter().map(|a| a.abs() / size).collect(),
        falls: moves.iter().map(|a| *a < 0.0).collect(),
    };
    let mut axes = grid.axes().to_vec();
    axes[axis] = line;
    let sheared = Arc::new(shear.mesh(mesh, Arc::new(Grid::new(axes)))?);
    let functions = ShearedFunctions { functions: functions.clone(), shear };
    let slices = Slices::new(&sheared, axis, functions.degree());
    slices.marginal(&functions, weights).ok_or(NoMarginal::Mass)
}

impl Shear {
    /// The part of the place of the function that a coordinate accounts for.
    fn part(&self, axis: usize, fraction: f64) -> f64 {
        self.weights[axis] * if self.falls[axis] { 1.0 - fraction } else { fraction }
    }

    fn mesh(&self, mesh: &Mesh, grid: Arc<Grid>) -> Result<Mesh, NoMarginal> {
        let n = grid.dimension();
        let orders = permutations(n).ok_or(NoMarginal::Simplices)?;
        let boxes = mesh.elements.iter().filter(|element| matches!(element.shape, Shape::Cuboid(..))).count();
        if boxes.saturating_mul(orders.len()) > MAX_SIMPLICES {
            return Err(NoMarginal::Simplices);
        }
        let mut elements = Vec::new();
        for element in &mesh.elements {
            match &element.shape {
                Shape::Simplex(vertices) => elements.push(self.simplex(element, vertices.clone(), element.volume)),
                Shape::Cuboid(low, high) => {
                    // From the lowest corner to the highest, along one axis after the other in every order.
                    for order in &orders {
                        let mut corner = low.clone();
                        let mut vertices = corner.clone();
                        for axis in order {
                            corner[*axis] = high[*axis];
                            vertices.extend_from_slice(&corner);
                        }
                        elements.push(self.simplex(element, vertices, element.volume / orders.len() as f64));
                    }
                }
            }
        }
        let cell_ends = vec![elements.len()];
        Ok(Mesh { grid, cells: 1, elements, cell_ends, undecided: vec![None] })
    }

    fn simplex(&self, element: &Element, mut vertices: Vec<f64>, volume: f64) -> Element {
        for vertex in vertices.chunks_mut(self.weights.len()) {
            let axes = self.grid.axes().iter().zip(&element.bin).zip(vertex.iter()).enumerate();
            let place = axes.map(|(i, ((axis, bin), t))| self.part(i, axis.fraction(*bin, *t))).sum::<f64>();
            vertex[self.axis] = place.clamp(0.0, 1.0);
        }
        let mut bin = element.bin.clone();
        bin[self.axis] = BinIndex::default();
        Element { bin, shape: Shape::Simplex(vertices), volume }
    }

    /// The bin and local coordinates of a point that is given with the place of the function in place of a coordinate.
    fn back(&self, bin: &[BinIndex], t: &[f64]) -> (Vec<BinIndex>, Vec<f64>) {
        let axes = self.grid.axes();
        let others = (0..t.len()).filter(|i| *i != self.axis);
        let others: f64 = others.map(|i| self.part(i, axes[i].fraction(bin[i], t[i]))).sum();
        let rest = (t[self.axis] - others) / self.weights[self.axis];
        let fraction = if self.falls[self.axis] { 1.0 - rest } else { rest };
        let starts = axes[self.axis].edge_fractions();
        let at = starts[1..starts.len() - 1].partition_point(|start| *start <= fraction);
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        bin[self.axis] = BinIndex::new(at);
        t[self.axis] = ((fraction - starts[at]) / axes[self.axis].width_fraction(bin[self.axis])).clamp(0.0, 1.0);
        (bin, t)
    }
}

/// All orders of n axes; `None` if they alone are too many.
fn permutations(n: usize) -> Option<Vec<Vec<usize>>> {
    if (1..=n).try_fold(1usize, |product, k| product.checked_mul(k)).is_none_or(|count| count > MAX_SIMPLICES) {
        return None;
    }
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for k in 0..n {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=k).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, k);
                longer
            })
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    Some(orders)
}

/// The components as functions of the new coordinates.
struct ShearedFunctions {
    functions: Arc<dyn ComponentFunctions>,
    shear: Shear,
}

impl ComponentFunctions for ShearedFunctions {
    fn components(&self) -> usize {
        self.functions.components()
    }

    fn degree(&self) -> Degree {
        let total = self.functions.degree().total;
        Degree { total, axis: total }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        let (bin, t) = self.shear.back(bin, t);
        self.functions.values(&bin, &t, out);
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let (bin, t) = self.shear.back(bin, t);
        self.functions.value(component, &bin, &t)
    }
}
