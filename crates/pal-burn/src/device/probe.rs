//! Tests of single tensor operations on a device, compared number by number with the CPU.

use std::fmt;

use burn::tensor::activation::log_softmax;
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};

use super::{DeviceError, name};

/// A tensor operation that this crate relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sums and differences of entries.
    Addition,
    /// Products of entries, squares among them.
    Multiplication,
    /// Quotients of entries.
    Division,
    /// Square roots.
    Root,
    /// Absolute values and signs.
    Sign,
    /// Clamping from below.
    Clamp,
    /// Exponentials.
    Exponential,
    /// Natural logarithms.
    Logarithm,
    /// Logarithms of softmax.
    LogSoftmax,
    /// The largest entry of each row.
    Maximum,
    /// The sum of each row.
    Sum,
    /// Filling where a mask is set, with an infinity.
    Mask,
    /// Reading and assigning slices.
    Slice,
    /// Selecting columns by index.
    Selection,
    /// Products of matrices.
    MatrixProduct,
    /// Batched products of matrices.
    StackedMatrixProduct,
}

impl Operation {
    /// All operations.
    pub const ALL: [Operation; 16] = [
        Operation::Addition,
        Operation::Multiplication,
        Operation::Division,
        Operation::Root,
        Operation::Sign,
        Operation::Clamp,
        Operation::Exponential,
        Operation::Logarithm,
        Operation::LogSoftmax,
        Operation::Maximum,
        Operation::Sum,
        Operation::Mask,
        Operation::Slice,
        Operation::Selection,
        Operation::MatrixProduct,
        Operation::StackedMatrixProduct,
    ];

    /// The operations of cubature, without division, roots and logarithms.
    pub const PRODUCTS: [Operation; 6] = [
        Operation::Addition,
        Operation::Multiplication,
        Operation::Sum,
        Operation::Slice,
        Operation::Selection,
        Operation::MatrixProduct,
    ];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Addition => "addition",
            Operation::Multiplication => "multiplication",
            Operation::Division => "division",
            Operation::Root => "square roots",
            Operation::Sign => "signs",
            Operation::Clamp => "clamping",
            Operation::Exponential => "exponentials",
            Operation::Logarithm => "logarithms",
            Operation::LogSoftmax => "log-softmax",
            Operation::Maximum => "maxima",
            Operation::Sum => "sums",
            Operation::Mask => "masks",
            Operation::Slice => "slices",
            Operation::Selection => "selection",
            Operation::MatrixProduct => "matrix products",
            Operation::StackedMatrixProduct => "batched matrix products",
        })
    }
}

/// The numbers of rows and columns of the matrices in the tests.
const ROWS: usize = 12;
const COLUMNS: usize = 7;
const SIZE: usize = ROWS * COLUMNS;

/// Tests one operation on a device in float32 or float64.
pub fn probe(device: &Device, dtype: DType, operation: Operation) -> Result<(), DeviceError> {
    // More than the error that graphics interfaces allow for float32 exponentials and logarithms, and far less than
    // that of a wrong result.
    let tolerance = match dtype {
        DType::F32 => 2e-5,
        DType::F64 => 1e-13,
        _ => return Err(DeviceError::Precision(dtype)),
    };
    if !device.supports_dtype(dtype) {
        return Err(DeviceError::Unsupported { device: name(device), dtype });
    }
    let trial = Trial { device: device.clone().without_autodiff(), dtype };
    let (got, want) = trial.run(operation);
    let got: Vec<f64> = got
        .try_into_data_dtype(DType::F64)
        .map_err(|error| error.to_string())
        .and_then(|data| data.try_into_vec().map_err(|error| format!("{error:?}")))
        .map_err(|message| DeviceError::Failed { device: name(device), operation, dtype, message })?;
    // The errors of sums and matrix products are proportional to the size of their terms, which is at most about 1.
    let close =
        |got: f64, want: f64| got == want || (got - want).abs() <= tolerance * (want.abs() + trial.floor(operation));
    match got.iter().zip(&want).find(|(got, want)| !close(**got, **want)) {
        None if got.len() == want.len() => Ok(()),
        None => {
            let message = format!("{} numbers instead of {}", got.len(), want.len());
            Err(DeviceError::Failed { device: name(device), operation, dtype, message })
        }
        Some((got, want)) => Err(DeviceError::Wrong { device: name(device), operation, dtype, got: *got, want: *want }),
    }
}

struct Trial {
    device: Device,
    dtype: DType,
}

impl Trial {
    /// Rounds numbers to the precision of the test.
    fn rounded(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let single = self.dtype == DType::F32;
        values.map(|x| if single { f64::from(x as f32) } else { x }).collect()
    }

    /// Returns numbers between -1 and 1 with all digits in use.
    fn signed(&self) -> Vec<f64> {
        self.rounded((0..SIZE).map(|k| (1.0 + 7.7 * k as f64).sin()))
    }

    /// Returns positive numbers of all magnitudes, down to the smallest one whose logarithm a layer takes.
    fn positive(&self) -> Vec<f64> {
        let least = crate::layer::tiny(self.dtype).ln();
        self.rounded((0..SIZE).map(|k| (least * (1.0 - 1.2 * k as f64 / (SIZE - 1) as f64)).exp()))
    }

    fn tensor(&self, values: &[f64]) -> Tensor<2> {
        Tensor::from_data(
            TensorData::new(values.to_vec(), [values.len() / COLUMNS, COLUMNS]),
            (&self.device, self.dtype),
        )
    }

    /// Returns what is added to the size of the correct value before the relative error is taken: where a result near 0
    /// has terms of size 1, the error is that of its terms.
    fn floor(&self, operation: Operation) -> f64 {
        use Operation::*;
        match operation {
            Addition | Logarithm | LogSoftmax | Sum | MatrixProduct | StackedMatrixProduct => 1.0,
            // Results below the smallest normal float32 may come out as 0.
            Exponential => 1e-33,
            _ => 0.0,
        }
    }

    /// Returns the entries that the device computes, row by row, and the correct ones.
    fn run(&self, operation: Operation) -> (Tensor<1>, Vec<f64>) {
        let x = self.signed();
        let each = |values: &[f64], f: &dyn Fn(f64) -> f64| values.iter().map(|x| f(*x)).collect::<Vec<f64>>();
        let rows = |f: &dyn Fn(&[f64]) -> f64| x.chunks(COLUMNS).map(f).collect::<Vec<f64>>();
        let (got, want): (Tensor<2>, Vec<f64>) = match operation {
            Operation::Addition => {
                let y = self.positive();
                let want = x.iter().zip(&y).map(|(x, y)| x + y - 0.75).collect();
                (self.tensor(&x) + self.tensor(&y) - 0.75, want)
            }
            Operation::Multiplication => {
                let y: Vec<f64> = x.iter().rev().copied().collect();
                let want = x.iter().zip(&y).map(|(x, y)| x * x * y).collect();
                (self.tensor(&x).square() * self.tensor(&y), want)
            }
            Operation::Division => {
                let y = self.rounded(x.iter().map(|x| 1.5 - x));
                let want = x.iter().zip(&y).map(|(x, y)| x / y).collect();
                (self.tensor(&x) / self.tensor(&y), want)
            }
            Operation::Root => {
                let y = self.positive();
                (self.tensor(&y).sqrt(), each(&y, &f64::sqrt))
            }
            Operation::Sign => {
                let x = self.tensor(&x);
                (x.clone().sign() * x.abs(), self.signed())
            }
            Operation::Clamp => (self.tensor(&x).clamp_min(0.25), each(&x, &|x| x.max(0.25))),
            Operation::Exponential => {
                let y = self.rounded((0..SIZE).map(|k| 20.0 - 220.0 * k as f64 / (SIZE - 1) as f64));
                (self.tensor(&y).exp(), each(&y, &f64::exp))
            }
            Operation::Logarithm => {
                let y = self.positive();
                (self.tensor(&y).log(), each(&y, &f64::ln))
            }
            Operation::LogSoftmax => {
                let log_softmax_of = |row: &[f64]| {
                    let total: f64 = row.iter().map(|x| x.exp()).sum();
                    row.iter().map(|x| x - total.ln()).collect::<Vec<f64>>()
                };
                (log_softmax(self.tensor(&x), 1), x.chunks(COLUMNS).flat_map(log_softmax_of).collect())
            }
            Operation::Maximum => {
                (self.tensor(&x).max_dim(1), rows(&|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
            }
            Operation::Sum => (self.tensor(&x).sum_dim(1), rows(&|row| row.iter().sum())),
            Operation::Mask => {
                let set: Vec<bool> = x.iter().map(|x| *x < 0.0).collect();
                let mask = Tensor::<2, Bool>::from_data(TensorData::new(set, [ROWS, COLUMNS]), &self.device);
                let want = each(&x, &|x| if x < 0.0 { f64::NEG_INFINITY } else { x });
                (self.tensor(&x).mask_fill(mask, f64::NEG_INFINITY), want)
            }
            Operation::Slice => {
                // Rows 2 to 4 become rows 3 to 5, which leaves row 2 there twice.
                let tensor = self.tensor(&x);
                let part = tensor.clone().slice([2..5, 0..COLUMNS]);
                let mut want = x.clone();
                want.copy_within(2 * COLUMNS..5 * COLUMNS, 3 * COLUMNS);
                (tensor.slice_assign([3..6, 0..COLUMNS], part), want)
            }
            Operation::Selection => {
                let chosen = [3usize, 0, 3, 6, 5];
                let numbers: Vec<i64> = chosen.iter().map(|k| *k as i64).collect();
                let numbers = Tensor::<1, Int>::from_data(TensorData::new(numbers, [chosen.len()]), &self.device);
                let want = x.chunks(COLUMNS).flat_map(|row| chosen.map(|k| row[k])).collect();
                (self.tensor(&x).select(1, numbers), want)
            }
            Operation::MatrixProduct => {
                let tensor = self.tensor(&x);
                (tensor.clone().matmul(tensor.transpose()), gram(&x))
            }
            Operation::StackedMatrixProduct => {
                let stack = self.tensor(&x).reshape([2, ROWS / 2, COLUMNS]);
                let product = stack.clone().matmul(stack.transpose());
                let want = x.chunks(SIZE / 2).flat_map(gram).collect();
                (product.reshape([ROWS, ROWS / 2]), want)
            }
        };
        let count = got.shape().num_elements();
        (got.reshape([count]), want)
    }
}

/// Returns a matrix times its transpose.
fn gram(rows: &[f64]) -> Vec<f64> {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    rows.chunks(COLUMNS).flat_map(|a| rows.chunks(COLUMNS).map(move |b| product(a, b))).collect()
}
