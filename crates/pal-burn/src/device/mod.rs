//! Where tensors live: the CPU, or a GPU through Vulkan, Metal or DirectX 12 with the cargo feature `wgpu`.
//!
//! A GPU may lack a precision, or compute in it and be wrong without saying so: logarithms and exponentials in doubles are a known case. So every device is
//! asked to show what it can do before work is entrusted to it: see [`check`].
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

/// What to compute on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All cores of the processor.
    #[default]
    Cpu,
    /// The best GPU that the drivers of the machine offer.
    Gpu,
}

/// What is to be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Log-densities and their gradients: everything that a [`PalLayer`](crate::PalLayer) does.
    LogSpace,
    /// Products and sums alone: [`cubature`](crate::cubature).
    Products,
}

impl Work {
    /// What it is made of.
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
        "no GPU can be used: {0}. Install the Vulkan, Metal or DirectX 12 driver of the GPU (on Linux, Mesa's lavapipe stands in for one), or use the CPU"
    )]
    NoAdapter(String),
    /// A type of numbers that nothing here is made for.
    #[error("numbers of type {0:?} are not precise enough here; use F32 or F64")]
    Precision(DType),
    /// The device does not know the type of numbers.
    #[error("{device} has no numbers of type {dtype:?}; {}", alternative(*.dtype))]
    Unsupported {
        /// its name
        device: String,
        /// the type asked for
        dtype: DType,
    },
    /// The device computes something else than it should.
    #[error("{device} is wrong in {operation} of {dtype:?}: {got:e} instead of {want:e}; {}", alternative(*.dtype))]
    Wrong {
        /// its name
        device: String,
        /// what it was asked to compute
        operation: Operation,
        /// in which precision
        dtype: DType,
        /// what it gave
        got: f64,
        /// what is true
        want: f64,
    },
    /// The device gives up.
    #[error("{device} fails in {operation} of {dtype:?}: {message}; {}", alternative(*.dtype))]
    Failed {
        /// its name
        device: String,
        /// what it was asked to compute
        operation: Operation,
        /// in which precision
        dtype: DType,
        /// its own words
        message: String,
    },
}

/// What would work.
fn alternative(dtype: DType) -> &'static str {
    if dtype == DType::F64 { "use F32 on it, or the CPU" } else { "use the CPU" }
}

/// The device of one's choice.
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

/// Only through interfaces made for computing: OpenGL, which burn would fall back to, has no doubles and is not what anybody asks for.
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
    // An interface can be opened once.
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

/// What a device calls itself.
pub fn name(device: &Device) -> String {
    #[cfg(feature = "wgpu")]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    format!("{device:?}")
}

/// Whether a device does all operations of a kind of work right in a precision; if not, which one is wrong. Every device is asked once.
pub fn check(device: &Device, dtype: DType, work: Work) -> Result<(), DeviceError> {
    type Answer = (Device, DType, Work, Result<(), DeviceError>);
    static ANSWERS: Mutex<Vec<Answer>> = Mutex::new(Vec::new());
    // Held while the device is asked, so that threads do not ask at the same time. Whole answers are pushed, so what a panic leaves is sound.
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = answers.iter().find(|(d, t, w, _)| (d, *t, *w) == (device, dtype, work));
    if let Some((.., answer)) = known {
        return answer.clone();
    }
    let answer = work.operations().iter().try_for_each(|operation| probe(device, dtype, *operation));
    answers.push((device.clone().without_autodiff(), dtype, work, answer.clone()));
    answer
}
