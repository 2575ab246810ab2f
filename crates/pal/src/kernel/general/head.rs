//! What the parameters of a kernel mixture in any number of variables mean: as in the plane (`kernel/head.rs`), with lower
//! triangular factors of frames and components,
//!
//! ```text
//! frame        F = diag(f) (1 + E) at the place c,      E strictly lower triangular
//! component    G = diag(s) (1 + D) at the place p, in the frame
//! kernel       place c + F p, factor F G with NARROWEST added to its diagonal
//! ```
//!
//! A component has one logit, one for each width but the first, its place, its scales and its directions, row by row.
//! After all components come the logit of the uniform part and the frame: place, scales, directions.

// Loops over indices of small matrices read like the formulas.
#![allow(clippy::needless_range_loop)]

use super::super::head::{
    ComponentShares, DIRECTION_GAIN, FRAME_DIRECTION_GAIN, FRAME_PLACE_GAIN, FRAME_REACH, FRAME_SCALE_GAIN,
    FRAME_SCALES, Limited, NARROWEST, PLACE_GAIN, REACH, SCALE_GAIN, SCALES, SPREAD, STEEPEST, TAIL_AT_ZERO,
    UNIFORM_AT_ZERO, WIDTHS,
};
use super::integral::{GeneralKernel, GeneralKernelGradient, Matrix};
use super::{MOST, Point};

/// Steps that fill a box evenly, for one to three axes: powers of numbers that are hard to approximate by fractions.
const STEPS: [&[f64]; MOST] = [
    &[0.618_033_988_749_894_9],
    &[0.754_877_666_246_692_7, 0.569_840_290_998_053_2],
    &[0.819_172_513_396_164_4, 0.671_043_606_703_789_2, 0.549_700_477_901_970_2],
];

/// The number of parameters of a place, scales and directions.
fn frame_params(n: usize) -> usize {
    2 * n + n * (n - 1) / 2
}

/// The number of parameters of a component.
fn per_component(n: usize) -> usize {
    WIDTHS.len() + frame_params(n)
}

/// The constants that are added to parameters times their gains, so that zeros are a broad density.
pub(super) fn offset(n: usize, components: usize) -> Vec<f64> {
    let mut offset = Vec::new();
    for component in 0..components {
        let mut numbers = vec![0.0; per_component(n)];
        numbers[1..WIDTHS.len()].fill(TAIL_AT_ZERO.ln());
        for (j, step) in STEPS[n - 1].iter().enumerate() {
            let place = SPREAD * (2.0 * (0.5 + component as f64 * step).fract() - 1.0);
            numbers[WIDTHS.len() + j] = REACH * (place / REACH).atanh();
        }
        numbers[WIDTHS.len() + n..WIDTHS.len() + 2 * n].fill(SCALES.offset());
        offset.extend(numbers);
    }
    let mut shared = vec![0.0; 1 + frame_params(n)];
    shared[0] = (components as f64 * UNIFORM_AT_ZERO).ln();
    shared[1 + n..1 + 2 * n].fill(FRAME_SCALES.offset());
    offset.extend(shared);
    offset
}

/// A place, scales and directions, with their derivatives with respect to the parameters.
#[derive(Clone, Debug)]
struct GeneralFrame {
    n: usize,
    /// In the order of the parameters.
    numbers: Vec<Limited>,
}

impl GeneralFrame {
    fn value(&self, k: usize) -> f64 {
        self.numbers[k].value
    }

    fn place(&self) -> Point {
        std::array::from_fn(|j| if j < self.n { self.value(j) } else { 0.0 })
    }

    /// Where the direction at a row and a column below the diagonal is.
    fn direction(&self, row: usize, column: usize) -> usize {
        2 * self.n + row * (row - 1) / 2 + column
    }

    /// The matrix 1 + E.
    fn shear(&self) -> Matrix {
        let mut shear = Matrix::default();
        for i in 0..self.n {
            shear[i][i] = 1.0;
            (0..i).for_each(|j| shear[i][j] = self.value(self.direction(i, j)));
        }
        shear
    }

    /// The matrix diag(f) (1 + E).
    fn matrix(&self) -> Matrix {
        let mut matrix = self.shear();
        (0..self.n).for_each(|i| matrix[i].iter_mut().for_each(|x| *x *= self.value(self.n + i)));
        matrix
    }

    /// The derivatives with respect to the parameters, from those with respect to the place and the matrix.
    fn pull_back(&self, of_place: &Point, of_matrix: &Matrix, out: &mut [f64]) {
        let shear = self.shear();
        for i in 0..self.n {
            out[i] = of_place[i];
            out[self.n + i] = (0..=i).map(|j| of_matrix[i][j] * shear[i][j]).sum();
            (0..i).for_each(|j| out[self.direction(i, j)] = of_matrix[i][j] * self.value(self.n + i));
        }
        out.iter_mut().zip(&self.numbers).for_each(|(x, number)| *x *= number.slope);
    }
}

/// The mixture that one row of parameters stands for.
#[derive(Clone, Debug)]
pub(super) struct GeneralRow {
    n: usize,
    /// The kernels: all widths of the first component, then those of the second one, and so on.
    pub kernels: Vec<GeneralKernel>,
    /// Their weights, which sum to 1 together with the uniform one.
    pub weights: Vec<f64>,
    pub uniform: f64,
    frame: GeneralFrame,
    inner: Vec<GeneralFrame>,
    shares: ComponentShares,
}

/// The derivatives of one number with respect to a mixture.
pub(super) struct GeneralRowGradient {
    /// For each kernel its weight times the derivative with respect to its weight.
    pub weights: Vec<f64>,
    pub kernels: Vec<GeneralKernelGradient>,
    /// The derivative with respect to the weight of the uniform part.
    pub uniform: f64,
}

impl GeneralRowGradient {
    pub fn zero(row: &GeneralRow) -> GeneralRowGradient {
        let count = row.kernels.len();
        let kernels = vec![GeneralKernelGradient::default(); count];
        GeneralRowGradient { weights: vec![0.0; count], kernels, uniform: 0.0 }
    }
}

impl GeneralRow {
    /// The mixture of one row of finite parameters with offsets that belong to them.
    pub fn new(n: usize, params: &[f64], offset: &[f64]) -> GeneralRow {
        let theta = |k: usize, gain: f64| gain * params[k] + offset[k];
        let per = per_component(n);
        let count = params.len() / per;
        let (weights, uniform, shares) = ComponentShares::new(&theta, count, per);
        let shared = count * per + 1;
        let number = |at: usize, k: usize, reach: f64, scales: &super::super::head::ScaleRange, gains: [f64; 3]| {
            if k < n {
                Limited::new(theta(at + k, gains[0]), reach, gains[0])
            } else if k < 2 * n {
                scales.at(theta(at + k, gains[1]), gains[1])
            } else {
                Limited::new(theta(at + k, gains[2]), STEEPEST, gains[2])
            }
        };
        let gains = [FRAME_PLACE_GAIN, FRAME_SCALE_GAIN, FRAME_DIRECTION_GAIN];
        let numbers = (0..frame_params(n)).map(|k| number(shared, k, FRAME_REACH, &FRAME_SCALES, gains)).collect();
        let frame = GeneralFrame { n, numbers };
        let outer = frame.matrix();
        let (mut kernels, mut inner) = (Vec::with_capacity(count * WIDTHS.len()), Vec::with_capacity(count));
        for m in 0..count {
            let at = m * per + WIDTHS.len();
            let gains = [PLACE_GAIN, SCALE_GAIN, DIRECTION_GAIN];
            let numbers = (0..frame_params(n)).map(|k| number(at, k, REACH, &SCALES, gains)).collect();
            let own = GeneralFrame { n, numbers };
            let (p, g) = (own.place(), own.matrix());
            let mut kernel = GeneralKernel { n, place: frame.place(), factor: Matrix::default() };
            for i in 0..n {
                kernel.place[i] += (0..=i).map(|j| outer[i][j] * p[j]).sum::<f64>();
                for j in 0..=i {
                    kernel.factor[i][j] = (j..=i).map(|k| outer[i][k] * g[k][j]).sum();
                }
                kernel.factor[i][i] += NARROWEST;
            }
            for width in WIDTHS {
                let mut copy = kernel;
                copy.factor.iter_mut().flatten().for_each(|x| *x *= width);
                kernels.push(copy);
            }
            inner.push(own);
        }
        GeneralRow { n, kernels, weights, uniform, frame, inner, shares }
    }

    /// The vector-Jacobian product: writes the derivatives with respect to the parameters.
    pub fn pull_back(&self, from: &GeneralRowGradient, gradient: &mut [f64]) {
        let (n, per) = (self.n, per_component(self.n));
        self.shares.pull_back([self.uniform, from.uniform], &from.weights, per, gradient);
        let outer = self.frame.matrix();
        let (mut of_place, mut of_outer) = (Point::default(), Matrix::default());
        for (m, own) in self.inner.iter().enumerate() {
            // The sums over the widths of a component.
            let mut sum = GeneralKernelGradient::default();
            for (kernel, width) in from.kernels[m * WIDTHS.len()..].iter().zip(WIDTHS) {
                for i in 0..n {
                    sum.place[i] += kernel.place[i];
                    (0..=i).for_each(|j| sum.factor[i][j] += width * kernel.factor[i][j]);
                }
            }
            let (p, g) = (own.place(), own.matrix());
            let (mut of_p, mut of_g) = (Point::default(), Matrix::default());
            for i in 0..n {
                of_place[i] += sum.place[i];
                for j in 0..=i {
                    of_p[j] += outer[i][j] * sum.place[i];
                    of_outer[i][j] += sum.place[i] * p[j];
                    of_outer[i][j] += (0..=j).map(|k| sum.factor[i][k] * g[j][k]).sum::<f64>();
                    of_g[i][j] = (i..n).map(|k| outer[k][i] * sum.factor[k][j]).sum();
                }
            }
            let at = m * per + WIDTHS.len();
            own.pull_back(&of_p, &of_g, &mut gradient[at..at + frame_params(n)]);
        }
        let shared = self.inner.len() * per + 1;
        self.frame.pull_back(&of_place, &of_outer, &mut gradient[shared..]);
    }
}
