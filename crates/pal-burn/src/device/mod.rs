//! Devices that tensors live on: the CPU, or a GPU through Vulkan, Metal or DirectX 12 with the cargo feature `wgpu`.
//!
//! A GPU may lack a precision, or compute wrongly in it without any error: logarithms and exponentials in float64 are a
//! known case. So every device is tested before it is used: see [`check`].
//!
//! ```
//! use burn::tensor::DType;
//! use pal_burn::device::{self, Choice, Work};
//!
//! let device = device::open(Choice::Cpu)?;
//! device::check(&device, DType::F64, Work::LogSpace)?;
//! // On a machine without a GPU, or in a build without GPUs, this says so.
//! if let Err(error) = device::open(Choice::Gpu) {
//!     println!("{error}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod probe;

use std::sync::{Mutex, PoisonError};

use burn::tensor::{DType, Device};
use thiserror::Error;

pub use probe::{Operation, probe};

/// Which device to compute on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All cores of the processor.
    #[default]
    Cpu,
    /// The best GPU that the drivers of the machine offer.
    Gpu,
}

/// A kind of computation, which decides the operations that a device must do correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Log-densities and their gradients, as a [`PalLayer`](crate::PalLayer) computes them.
    LogSpace,
    /// Products and sums only, as [`cubature`](crate::cubature) needs them.
    Products,
}

impl Work {
    /// Returns the operations that the computation uses.
    pub fn operations(self) -> &'static [Operation] {
        match self {
            Work::LogSpace => &Operation::ALL,
            Work::Products => &Operation::PRODUCTS,
        }
    }
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DeviceError {
    /// The crate was compiled without the feature `wgpu`.
    #[error("this build cannot use GPUs: build it with the cargo feature `wgpu`, or use the CPU")]
    NotCompiled,
    /// There is no GPU, or no driver for it.
    #[error(
        "no GPU can be used: {0}. Install the Vulkan, Metal or DirectX 12 driver of the GPU (on Linux, Mesa's lavapipe \
         stands in for one), or use the CPU"
    )]
    NoAdapter(String),
    /// A number type that the algorithms are not made for.
    #[error("numbers of type {0:?} are not precise enough here; use F32 or F64")]
    Precision(DType),
    /// The device does not support the number type.
    #[error("{device} has no numbers of type {dtype:?}; {}", alternative(*.dtype))]
    Unsupported {
        /// The name of the device.
        device: String,
        /// The number type asked for.
        dtype: DType,
    },
    /// The device computes a wrong result.
    #[error("{device} is wrong in {operation} of {dtype:?}: {got:e} instead of {want:e}; {}", alternative(*.dtype))]
    Wrong {
        /// The name of the device.
        device: String,
        /// The operation that was tested.
        operation: Operation,
        /// The number type of the test.
        dtype: DType,
        /// The result of the device.
        got: f64,
        /// The correct result.
        want: f64,
    },
    /// The device returns no result.
    #[error("{device} fails in {operation} of {dtype:?}: {message}; {}", alternative(*.dtype))]
    Failed {
        /// The name of the device.
        device: String,
        /// The operation that was tested.
        operation: Operation,
        /// The number type of the test.
        dtype: DType,
        /// The message of the driver.
        message: String,
    },
}

/// Says what to use instead.
fn alternative(dtype: DType) -> &'static str {
    if dtype == DType::F64 { "use F32 on it, or the CPU" } else { "use the CPU" }
}

/// Opens the chosen device.
pub fn open(choice: Choice) -> Result<Device, DeviceError> {
    match choice {
        Choice::Cpu => Ok(Device::flex()),
        Choice::Gpu => open_gpu(),
    }
}

#[cfg(not(feature = "wgpu"))]
fn open_gpu() -> Result<Device, DeviceError> {
    Err(DeviceError::NotCompiled)
}

/// Opens a GPU through an interface that is made for computing. OpenGL, which burn would fall back to, has no float64.
#[cfg(feature = "wgpu")]
fn open_gpu() -> Result<Device, DeviceError> {
    use burn::tensor::wgpu::WgpuBackend;
    use std::sync::OnceLock;

    const INTERFACES: &[WgpuBackend] = if cfg!(target_os = "macos") {
        &[WgpuBackend::Metal]
    } else if cfg!(target_os = "windows") {
        &[WgpuBackend::Vulkan, WgpuBackend::Dx12]
    } else {
        &[WgpuBackend::Vulkan]
    };
    // An interface can be opened only once per process.
    static OPENED: OnceLock<Result<Device, DeviceError>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| {
        let mut reasons = Vec::new();
        for interface in INTERFACES {
            match Device::wgpu_options().graphics_api(*interface).init() {
                Ok(device) => return Ok(device),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(DeviceError::NoAdapter(reasons.join("; ")))
    });
    opened.clone()
}

/// Returns the name by which a device identifies itself.
pub fn name(device: &Device) -> String {
    #[cfg(feature = "wgpu")]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    format!("{device:?}")
}

/// Tests whether a device does all operations of a computation correctly in a precision; the error names the first one
/// that it gets wrong. The answer is remembered, so that every device is tested only once.
pub fn check(device: &Device, dtype: DType, work: Work) -> Result<(), DeviceError> {
    type Answer = (Device, DType, Work, Result<(), DeviceError>);
    static ANSWERS: Mutex<Vec<Answer>> = Mutex::new(Vec::new());
    // The lock is held during the test, so that threads do not test at the same time. Answers are pushed when they are
    // complete, so a panic leaves the list in a sound state.
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = answers.iter().find(|(d, t, w, _)| (d, *t, *w) == (device, dtype, work));
    if let Some((.., answer)) = known {
        return answer.clone();
    }
    let answer = work.operations().iter().try_for_each(|operation| probe(device, dtype, *operation));
    answers.push((device.clone().without_autodiff(), dtype, work, answer.clone()));
    answer
}
