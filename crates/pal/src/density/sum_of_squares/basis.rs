//! Bases of polynomials of bounded total degree: one function per column, coefficients per bin.

use nalgebra::{Cholesky, DMatrix};
use rayon::prelude::*;

use super::local::{self, inner};
use crate::density::grid::{Axis, BinIndex, Grid};
use crate::density::occupied::OccupiedBins;
use crate::interrupt::checkpoint;
use crate::moments::Exponents;

/// The global coordinate x, which runs from -1 to 1 over the box, is `centre + half * u` in the local coordinate u of a
/// bin.
fn affine(axis: &Axis, bin: BinIndex) -> (f64, f64) {
    let (low, high) = (axis.fraction(bin, 0.0), axis.fraction(bin, 1.0));
    (low + high - 1.0, high - low)
}

/// Legendre polynomials normalised on the box, `prod_j sqrt(2 a_j + 1) P_aj(x_j)`.
pub(super) fn legendre(exponents: &Exponents, grid: &Grid, bins: &OccupiedBins) -> Vec<DMatrix<f64>> {
    let top = exponents.degree() + 1;
    let table = |axis: &Axis, bin: BinIndex| {
        let (centre, half) = affine(axis, bin);
        let mut table = vec![vec![0.0; top]; top];
        table[0][0] = 1.0;
        for k in 0..top - 1 {
            // (k + 1) P_(k+1) = (2 k + 1) x P_k - k P_(k-1)
            let next = times(&table[k], centre, half);
            for j in 0..top {
                let below = if k == 0 { 0.0 } else { table[k - 1][j] };
                table[k + 1][j] = ((2 * k + 1) as f64 * next[j] - k as f64 * below) / (k + 1) as f64;
            }
        }
        for (k, row) in table.iter_mut().enumerate() {
            row.iter_mut().for_each(|c| *c *= ((2 * k + 1) as f64).sqrt());
        }
        table
    };
    products(exponents, grid, bins, table)
}

/// Monomials in the user's own coordinates, each scaled by a constant.
pub(super) fn monomials(exponents: &Exponents, grid: &Grid, bins: &OccupiedBins) -> Vec<DMatrix<f64>> {
    let top = exponents.degree() + 1;
    let table = |axis: &Axis, bin: BinIndex| {
        let ends = axis.positions();
        let (middle, reach) = (ends[0] / 2.0 + ends[ends.len() - 1] / 2.0, axis.length() / 2.0);
        let size = middle.abs() + reach;
        let (centre, half) = affine(axis, bin);
        let mut table = vec![vec![0.0; top]; top];
        table[0][0] = 1.0;
        for k in 1..top {
            table[k] = times(&table[k - 1], (middle + reach * centre) / size, reach * half / size);
        }
        table
    };
    products(exponents, grid, bins, table)
}

/// A Chebyshev series times `centre + half * u`, truncated to its length.
fn times(series: &[f64], centre: f64, half: f64) -> Vec<f64> {
    let mut out: Vec<f64> = series.iter().map(|c| centre * c).collect();
    for (j, c) in series.iter().enumerate() {
        let part = half * if j == 0 { *c } else { c / 2.0 };
        if j + 1 < out.len() {
            out[j + 1] += part;
        }
        if j > 0 {
            out[j - 1] += part;
        }
    }
    out
}

fn products(
    exponents: &Exponents,
    grid: &Grid,
    bins: &OccupiedBins,
    table: impl Fn(&Axis, BinIndex) -> Vec<Vec<f64>>,
) -> Vec<DMatrix<f64>> {
    let matrix = |bin: &Vec<BinIndex>| {
        let tables: Vec<_> = grid.axes().iter().zip(bin).map(|(axis, b)| table(axis, *b)).collect();
        DMatrix::from_fn(exponents.len(), exponents.len(), |row, column| {
            let factors = exponents.get(column).iter().zip(exponents.get(row)).zip(&tables);
            factors.map(|((a, b), table)| table[usize::from(*a)][usize::from(*b)]).product()
        })
    };
    bins.list.iter().map(matrix).collect()
}

/// Multiplication by global coordinates on coefficients per bin.
struct Multiplier<'e> {
    exponents: &'e Exponents,
    /// For each axis and exponent, the position of the exponent that is one higher along that axis.
    above: Vec<Vec<Option<usize>>>,
    /// For each bin and axis, the affine map to the global coordinate.
    affine: Vec<Vec<(f64, f64)>>,
}

impl<'e> Multiplier<'e> {
    fn new(exponents: &'e Exponents, grid: &Grid, bins: &OccupiedBins) -> Self {
        let positions = exponents.positions();
        let above = |j: usize| {
            let shift = |alpha: &[u16]| {
                let mut higher = alpha.to_vec();
                higher[j] += 1;
                positions.get(&higher[..]).copied()
            };
            exponents.iter().map(shift).collect()
        };
        let axes = |bin: &Vec<BinIndex>| grid.axes().iter().zip(bin).map(|(axis, b)| affine(axis, *b)).collect();
        Multiplier {
            exponents,
            above: (0..exponents.dimension()).map(above).collect(),
            affine: bins.list.iter().map(axes).collect(),
        }
    }

    fn apply(&self, slot: usize, axis: usize, from: &[f64], to: &mut [f64]) {
        let (centre, half) = self.affine[slot][axis];
        for (at, c) in from.iter().enumerate() {
            to[at] += centre * c;
            let below = self.exponents.predecessors(at)[axis].position();
            if let Some(above) = self.above[axis][at] {
                to[above] += half * c * if below.is_none() { 1.0 } else { 0.5 };
            }
            if let Some(below) = below {
                to[below] += half * c * 0.5;
            }
        }
    }
}

/// Polynomials that are orthonormal under the given integrals of pairs, in graded order.
///
/// Those of degree k are coordinates times those of degree k - 1, made orthogonal to all before them and then to each
/// other, twice. Each step starts from functions of size one, so few digits are lost; if all monomials were made
/// orthogonal at once, most would be. Returns `None` if coefficients grow beyond a limit.
pub(super) fn orthonormal(
    exponents: &Exponents,
    grid: &Grid,
    bins: &OccupiedBins,
    pairs: &[DMatrix<f64>],
    limit: f64,
) -> Option<Vec<DMatrix<f64>>> {
    let size = exponents.len();
    let multiplier = Multiplier::new(exponents, grid, bins);
    let mut functions = vec![DMatrix::zeros(size, size); bins.len()];
    functions.iter_mut().for_each(|f| f[(0, 0)] = 1.0);
    for (degree, level) in exponents.levels().enumerate() {
        let done: Vec<DMatrix<f64>> = functions.iter().map(|f| f.columns(0, level.start).into_owned()).collect();
        let mut block: Vec<DMatrix<f64>> = (0..bins.len())
            .into_par_iter()
            .map(|slot| {
                checkpoint();
                let mut block = DMatrix::zeros(size, level.len());
                for (mut column, at) in block.column_iter_mut().zip(level.clone()) {
                    if degree == 0 {
                        column[0] = 1.0;
                        continue;
                    }
                    // From the largest exponent down, so that every product has its own leading term.
                    let alpha = exponents.get(at);
                    let axis = (0..alpha.len()).max_by_key(|j| alpha[*j]).unwrap_or(0);
                    let parent = exponents.predecessors(at)[axis].position().expect("the largest exponent is not 0");
                    multiplier.apply(slot, axis, functions[slot].column(parent).as_slice(), column.as_mut_slice());
                }
                block
            })
            .collect();
        for _ in 0..2 {
            if degree > 0 {
                let overlap = inner(pairs, &done, &block);
                block.par_iter_mut().zip(&done).for_each(|(block, done)| block.gemm(-1.0, done, &overlap, 1.0));
            }
            let gram = inner(pairs, &block, &block);
            straighten(&mut block, &gram)?;
        }
        if growth(&block) > limit {
            return None;
        }
        for (functions, block) in functions.iter_mut().zip(block) {
            functions.columns_mut(level.start, level.len()).copy_from(&block);
        }
    }
    Some(functions)
}

/// Replaces functions that are nearly orthonormal by combinations of them, given their Gram matrix.
pub(super) fn straighten(functions: &mut [DMatrix<f64>], gram: &DMatrix<f64>) -> Option<()> {
    let factor = Cholesky::new((gram + gram.transpose()) / 2.0)?;
    let mut inverse = DMatrix::identity(gram.nrows(), gram.ncols());
    factor.l_dirty().solve_lower_triangular_mut(&mut inverse);
    let change = inverse.transpose();
    functions.par_iter_mut().for_each(|functions| *functions = &*functions * &change);
    Some(())
}

/// The largest [`local::growth`] over all bins.
pub(super) fn growth(functions: &[DMatrix<f64>]) -> f64 {
    functions.iter().map(local::growth).fold(0.0, f64::max)
}
