//! Checks that run both on the CPU and on GPUs.
#![allow(dead_code)] // each test file uses some of them

pub mod cubature;
pub mod layer;
