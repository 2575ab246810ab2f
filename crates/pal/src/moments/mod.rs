//! Integrals of polynomials over polytopes and regions.
//!
//! [`integrate`] is the entry; [`Moments`] holds all moments of a region at once. Underneath are four integrators:
//!
//! - the generating-function recurrence in float64, over simplices or over the face lattice, with certified bounds;
//! - the same recurrence in exact arithmetic;
//! - [`gasp`], Grundmann-Moeller cubature as in the paper;
//! - [`rejection`] sampling, the approximate baseline.

pub(crate) mod certify;
mod compiled;
mod exact;
mod exponents;
mod faces;
mod frame;
pub mod gasp;
mod integrand;
mod integrate;
pub mod rejection;
pub(crate) mod simplex;
mod surface;
mod wide;

pub use certify::Integral;
pub use compiled::{CoefficientCountError, Moments};
pub use exponents::{Exponents, ExponentsError};
pub use frame::AffineFrame;
pub(crate) use frame::Converter;
pub(crate) use integrand::moment_factor;
pub use integrand::{Estimate, Integrand, IntegrandError};
pub(crate) use integrate::around;
pub use integrate::{IntegrateError, Method, integrate};
pub(crate) use surface::in_free_variables;
pub use surface::{SurfaceIntegral, surface_integral};
