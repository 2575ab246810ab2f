//! Devices are tested before they are used.

use burn::tensor::{DType, Device};
use pal_burn::device::{self, Choice, DeviceError, Operation, Work};

#[test]
fn the_cpu_is_right_in_both_precisions() {
    let cpu = device::open(Choice::Cpu).unwrap();
    assert_eq!(cpu, Device::flex());
    for dtype in [DType::F32, DType::F64] {
        for operation in Operation::ALL {
            assert_eq!(device::probe(&cpu, dtype, operation), Ok(()), "{operation} of {dtype:?}");
        }
        for work in [Work::LogSpace, Work::Products] {
            // The second answer is the remembered first one; a device with gradients is the same device.
            assert_eq!(device::check(&cpu, dtype, work), Ok(()));
            assert_eq!(device::check(&cpu.clone().autodiff(), dtype, work), Ok(()));
        }
    }
}

#[test]
fn other_precisions_are_refused() {
    for dtype in [DType::F16, DType::BF16, DType::I32] {
        assert_eq!(device::check(&Device::flex(), dtype, Work::Products), Err(DeviceError::Precision(dtype)));
    }
}

#[cfg(not(feature = "wgpu"))]
#[test]
fn a_build_without_gpus_says_so() {
    let error = device::open(Choice::Gpu).unwrap_err();
    assert_eq!(error, DeviceError::NotCompiled);
    assert!(error.to_string().contains("feature `wgpu`"), "{error}");
}
