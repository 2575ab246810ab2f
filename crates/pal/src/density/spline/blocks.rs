//! Integrals of products of Bernstein polynomials over the elements of one bin: a block of the form H.
//!
//! In one or two dimensions, and on boxes, they are computed by cubature, where all terms are positive. On simplices in
//! three or four dimensions cubature needs thousands of nodes, each of which touches all 7^n products. There all
//! moments in u = 2 t - 1 come from the recurrence of [`crate::moments`] at a thousandth of the cost, and are converted
//! to Bernstein polynomials axis by axis. Since
//!
//! ```text
//! B_i = C(6, i) (1 + u)^i (1 - u)^(6 - i) / 64
//! ```
//!
//! has coefficients whose magnitudes add up to at most 2.8, few digits of the largest products cancel. Products that
//! are small on a simplex, such as those of a far corner, keep no digits: integrals that consist of them are recognised
//! by their size and computed again by cubature.

use std::sync::Arc;

use nalgebra::DMatrix;

use super::hermite::{self, SQUARE};
use crate::density::DensityError;
use crate::density::cubature::MeshCubature;
use crate::density::grid::{BinIndex, Grid};
use crate::density::mesh::{Degree, Element, Shape};
use crate::moments::simplex::{Simplices, generating_sums};
use crate::moments::{Exponents, moment_factor};
use crate::number;

/// The number of cubature nodes per matrix product.
const NODES: usize = 512;
/// From this dimension on the recurrence is used for simplices.
const MANY: usize = 3;

/// What is needed to compute any block of a form.
pub(super) struct Blocks {
    grid: Arc<Grid>,
    /// The exponents of a monomial in coordinates that run from 0 to 1 over the box.
    powers: Vec<u16>,
    rules: MeshCubature,
    /// The exponents of the recurrence with their factors; `None` if cubature is used throughout.
    exponents: Option<(Exponents, Vec<f64>)>,
}

impl Blocks {
    pub fn new(grid: &Arc<Grid>, powers: &[u16]) -> Result<Self, DensityError> {
        let n = grid.dimension();
        let powers: Vec<u16> = (0..n).map(|j| powers.get(j).copied().unwrap_or(0)).collect();
        let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
        let degree = Degree { total: 6 * n + extra, axis: 6 + extra };
        let too_large = || DensityError::Settings(format!("powers {powers:?} are too high for this family"));
        let exponents = if Blocks::sweeps(n) {
            let set = Exponents::tensor(&powers.iter().map(|p| p + 6).collect::<Vec<_>>()).map_err(|_| too_large())?;
            let factors = set.iter().map(|alpha| number::to_f64(&moment_factor(alpha))).collect();
            Some((set, factors))
        } else {
            None
        };
        if !MeshCubature::feasible(n, degree) {
            return Err(too_large());
        }
        Ok(Blocks { grid: grid.clone(), rules: MeshCubature::new(n, degree), powers, exponents })
    }

    /// Whether the recurrence is used for simplices of this dimension.
    pub fn sweeps(dimension: usize) -> bool {
        dimension >= MANY
    }

    /// The block of a bin, given its elements.
    pub fn block(&self, bin: &[BinIndex], elements: &[&Element]) -> Vec<f64> {
        let swept = |element: &&&Element| self.exponents.is_some() && matches!(element.shape, Shape::Simplex(_));
        let mut sums = vec![0.0; SQUARE.pow(bin.len() as u32)];
        for element in elements.iter().filter(|element| !swept(element)) {
            self.add_cubature(element, &mut sums);
        }
        let simplices: Vec<&&Element> = elements.iter().filter(swept).collect();
        if let Some((exponents, factors)) = &self.exponents
            && !simplices.is_empty()
        {
            let block = self.recurrence(bin, &simplices, exponents, factors);
            sums.iter_mut().zip(block).for_each(|(sum, x)| *sum += x);
        }
        sums
    }

    /// Adds the integrals over one element by cubature. The sum over nodes of `weight B_i1(t_1) .. B_in(t_n)` is a
    /// matrix product between the products along the first axes and those along the others.
    fn add_cubature(&self, element: &Element, sums: &mut [f64]) {
        let n = element.bin.len();
        let half = n / 2;
        let (rows, columns) = (SQUARE.pow(half as u32), SQUARE.pow((n - half) as u32));
        // The matrix is column-major, so the last axis runs fastest.
        let mut block = DMatrix::zeros(columns, rows);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut flush = |first: &mut Vec<f64>, second: &mut Vec<f64>| {
            let left = DMatrix::from_vec(columns, second.len() / columns, std::mem::take(second));
            let right = DMatrix::from_vec(rows, first.len() / rows, std::mem::take(first));
            block.gemm(1.0, &left, &right.transpose(), 1.0);
        };
        self.rules.visit(element, |t, weight| {
            let weight = weight * self.grid.monomial(&element.bin, t, &self.powers);
            extend_products(&t[..half], weight, &mut first);
            extend_products(&t[half..], 1.0, &mut second);
            if first.len() == NODES * rows {
                flush(&mut first, &mut second);
            }
        });
        if !first.is_empty() {
            flush(&mut first, &mut second);
        }
        sums.iter_mut().zip(block.as_slice()).for_each(|(sum, x)| *sum += x);
    }

    fn recurrence(&self, bin: &[BinIndex], elements: &[&&Element], exponents: &Exponents, factors: &[f64]) -> Vec<f64> {
        let n = bin.len();
        let n_factorial: f64 = (1..=n).map(|k| k as f64).product();
        let mut simplices = Simplices { dimension: n, ..Simplices::default() };
        for element in elements {
            if let Shape::Simplex(vertices) = &element.shape {
                simplices.vertices.extend(vertices.iter().map(|t| 2.0 * t - 1.0));
                simplices.sizes.push(element.volume * n_factorial);
            }
        }
        let sums = generating_sums(&simplices, exponents);
        // From the graded order of the exponents to an array whose last axis runs fastest.
        let lengths: Vec<usize> = self.powers.iter().map(|p| SQUARE + usize::from(*p)).collect();
        let mut tensor = vec![0.0; lengths.iter().product()];
        for ((alpha, sum), factor) in exponents.iter().zip(&sums).zip(factors) {
            let at = alpha.iter().zip(&lengths).fold(0, |at, (a, length)| at * length + usize::from(*a));
            tensor[at] = sum * factor;
        }
        for j in (0..n).rev() {
            tensor = along_last(&tensor, &self.conversion(bin, j));
        }
        tensor
    }

    /// The polynomials `B_i x^power` along an axis, in powers of u; x runs from 0 to 1 over the whole axis.
    fn conversion(&self, bin: &[BinIndex], axis: usize) -> Vec<Vec<f64>> {
        let line = &self.grid.axes()[axis];
        let (low, high) = (line.fraction(bin[axis], 0.0), line.fraction(bin[axis], 1.0));
        let (centre, half) = ((low + high) / 2.0, (high - low) / 2.0);
        (0..SQUARE)
            .map(|i| {
                let mut row = vec![hermite::BINOMIAL_6[i] / 64.0];
                (0..i).for_each(|_| row = times(&row, 1.0, 1.0));
                (i..SQUARE - 1).for_each(|_| row = times(&row, 1.0, -1.0));
                (0..self.powers[axis]).for_each(|_| row = times(&row, centre, half));
                row
            })
            .collect()
    }
}

/// A polynomial times `constant + linear u`.
fn times(polynomial: &[f64], constant: f64, linear: f64) -> Vec<f64> {
    let mut product = vec![0.0; polynomial.len() + 1];
    for (k, c) in polynomial.iter().enumerate() {
        product[k] += constant * c;
        product[k + 1] += linear * c;
    }
    product
}

/// Applies a matrix along the last axis and makes that axis the first. Applied once for each axis, it restores their
/// order.
fn along_last(tensor: &[f64], matrix: &[Vec<f64>]) -> Vec<f64> {
    let length = matrix[0].len();
    let rest = tensor.len() / length;
    let mut out = vec![0.0; rest * matrix.len()];
    for (at, fibre) in tensor.chunks(length).enumerate() {
        for (i, row) in matrix.iter().enumerate() {
            out[i * rest + at] = row.iter().zip(fibre).map(|(a, b)| a * b).sum();
        }
    }
    out
}

/// Appends `factor * B_i1(t_1) .. B_in(t_n)` for all i, the last axis fastest.
fn extend_products(t: &[f64], factor: f64, out: &mut Vec<f64>) {
    match t {
        [] => out.push(factor),
        [first, rest @ ..] => {
            hermite::square_basis(*first).iter().for_each(|b| extend_products(rest, factor * b, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::grid::Axis;
    use crate::density::mesh::Mesh;
    use crate::number::Rational;
    use crate::region::Region;
    use crate::shapes;

    #[test]
    fn recurrence_and_cubature_agree() {
        for n in [3, 4] {
            for power in [0u16, 2] {
                let mut powers = vec![0; n];
                powers[1] = power;
                let region = Region::new(&shapes::simplex(n)).unwrap();
                let axis = || Axis::new(vec![0.into(), Rational::ONE / Rational::from(3), 1.into()]).unwrap();
                let mesh = Mesh::new(&region, &Arc::new(Grid::new((0..n).map(|_| axis()).collect()))).unwrap();
                let blocks = Blocks::new(&mesh.grid, &powers).unwrap();
                let bin = vec![BinIndex::default(); n];
                let elements: Vec<&Element> = mesh.elements.iter().filter(|e| e.bin == bin).collect();
                let fast = blocks.block(&bin, &elements);
                let mut slow = vec![0.0; fast.len()];
                elements.iter().for_each(|element| blocks.add_cubature(element, &mut slow));
                let largest = slow.iter().fold(0.0f64, |a, b| a.max(*b));
                // In four dimensions the weights of the cubature alternate, and four digits cancel there.
                let tolerance = if n == 3 { 1e-13 } else { 3e-11 };
                for (a, b) in fast.iter().zip(&slow) {
                    assert!((a - b).abs() < tolerance * largest, "{n} {power}: {a} {b}");
                }
            }
        }
    }
}
