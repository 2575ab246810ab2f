//! The layer agrees with the core: log-densities and gradients, in float64 and in float32.

mod common;

use burn::tensor::{DType, Device};
use common::layer::{check, check_normalisers, check_zeros};

#[test]
fn float64_agrees_to_twelve_digits() {
    check(&Device::flex(), DType::F64, 1e-12);
}

#[test]
fn float32_agrees_to_four_digits() {
    check(&Device::flex(), DType::F32, 1e-4);
}

#[test]
fn zeros_are_close_to_uniform() {
    check_zeros(&Device::flex(), DType::F64, 1e-12);
    check_zeros(&Device::flex(), DType::F32, 1e-4);
}

#[test]
fn normalisers_of_smaller_regions_agree() {
    check_normalisers(&Device::flex(), DType::F64, 1e-10);
    check_normalisers(&Device::flex(), DType::F32, 1e-3);
}
