//! What tests on the CPU and on GPUs share.
#![allow(dead_code)] // each test file uses a part

pub mod cubature;
pub mod layer;
