//! The layer agrees with the core: log-densities and gradients, in float64 and in float32.

mod common;

use burn::tensor::{DType, Device};
use common::layer::check;

#[test]
fn float64_agrees_to_twelve_digits() {
    check(&Device::flex(), DType::F64, 1e-12);
}

#[test]
fn float32_agrees_to_four_digits() {
    check(&Device::flex(), DType::F32, 1e-4);
}
