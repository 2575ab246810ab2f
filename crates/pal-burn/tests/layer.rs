//! The layer agrees with the library: log-densities and gradients, in doubles and in singles.

mod common;

use burn::tensor::{DType, Device};
use common::layer::check;

#[test]
fn doubles_agree_to_twelve_digits() {
    check(&Device::flex(), DType::F64, 1e-12);
}

#[test]
fn singles_agree_to_four_digits() {
    check(&Device::flex(), DType::F32, 1e-4);
}
